"""Reads and checks ``upstream.yaml``, which says where findings were reported."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from oracles.registry import framework_of
from specs.model.yaml_source import explain_validation_error, read_yaml

FILE = Path(__file__).with_name("upstream.yaml")
FINDING, LINK = r"^[\w.:-]+/[\w.:-]+$", "^https://"
Links = dict[Annotated[str, Field(pattern=FINDING)], Annotated[str, Field(pattern=LINK)]]


@cache
def upstream_links() -> Mapping[str, str]:
    """The address of each finding that was reported, by the framework and the finding's name."""
    source = read_yaml(FILE)
    try:
        return TypeAdapter(Links).validate_python(source.data)
    except ValidationError as error:
        raise source.error(*explain_validation_error(source, error)) from None


def upstream_of(backend: str, name: str) -> str | None:
    """The address where a finding was reported; all variants of a framework share it."""
    return upstream_links().get(f"{framework_of(backend)}/{name}")
