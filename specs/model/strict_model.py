"""The base of all that is parsed from YAML or JSON of others."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model that refuses unknown keys and values of another type, and cannot be changed.

    A text is no number, a boolean no integer, and an integer no boolean.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
