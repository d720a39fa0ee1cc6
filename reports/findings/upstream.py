"""What frameworks' owners say of findings: where they were reported, and what is intended.

``upstream.yaml`` has the addresses of issues, ``intended.yaml`` the places where owners document
that they mean it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from oracles.registry import framework_of
from specs.model.yaml_source import explain_validation_error, read_yaml

FILE = Path(__file__).with_name("upstream.yaml")
INTENDED_FILE = Path(__file__).with_name("intended.yaml")
Finding = Annotated[str, Field(pattern=r"^[\w.:-]+/[\w.:-]+$")]
Links = dict[Finding, Annotated[str, Field(pattern="^https://")]]
Places = dict[Finding, Annotated[str, Field(min_length=1)]]


@cache
def upstream_links() -> Mapping[str, str]:
    """The address of each finding that was reported, by the framework and the finding's name."""
    return _read(FILE, TypeAdapter(Links))


@cache
def intended_places() -> Mapping[str, str]:
    """Where owners document a finding as intended, by the framework and the finding's name."""
    return _read(INTENDED_FILE, TypeAdapter(Places))


def _read(path: Path, known: TypeAdapter[dict[str, str]]) -> Mapping[str, str]:
    source = read_yaml(path)
    try:
        return known.validate_python(source.data)
    except ValidationError as error:
        raise source.error(*explain_validation_error(source, error)) from None


def upstream_of(backend: str, name: str) -> str | None:
    """The address where a finding was reported; all variants of a framework share it."""
    return upstream_links().get(f"{framework_of(backend)}/{name}")


def intended_of(backend: str, name: str) -> str | None:
    """The place where a finding is documented as intended; all variants share it."""
    return intended_places().get(f"{framework_of(backend)}/{name}")
