"""Describes the backend of a gate in ``program.json``: its hello, and digests of its files."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError

from specs.errors import CastigateError
from specs.model.strict_model import StrictModel

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class ProgramHello(StrictModel):
    """The hello of a backend; earlier versions recorded its name, version and claims only."""

    name: str
    version: str
    claims: list[str]
    compiles_shapes: bool = False
    row_limits: list[int] = Field(default_factory=list)


class Program(StrictModel):
    """A backend's hello, and the sha256 of each of its files."""

    hello: ProgramHello
    files: dict[str, Digest]


def check_program(content: dict[str, Any], named: str) -> dict[str, Any]:
    """Return the record of a program if it is valid; else raise an error that names the key."""
    try:
        Program.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CastigateError(
            f"{named}: `{where}`: {first['msg']}; get the original folder of the gate"
        ) from None
    return content
