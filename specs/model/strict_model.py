"""The base of all models that check YAML or JSON from outside."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model that refuses unknown keys and values of another type, and cannot be changed.

    A text is no number, a boolean no integer, and an integer no boolean.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
