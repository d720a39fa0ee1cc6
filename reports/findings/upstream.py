"""Finds where findings were reported, and where owners document them as intended.

The threads of the docket name the findings that they report. ``intended.yaml`` has the places
where owners document a behavior as intended.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

import specs
from oracles.registry import framework_of
from specs.model.yaml_source import explain_validation_error, read_yaml

DOCKET = Path(specs.__file__).with_name("docket")
"""The files of public threads."""
INTENDED_FILE = Path(__file__).with_name("intended.yaml")
FindingId = Annotated[str, Field(pattern=r"^[\w.:-]+/[\w.:-]+$")]
Places = dict[FindingId, Annotated[str, Field(min_length=1)]]


@cache
def upstream_links() -> Mapping[str, str]:
    """The first thread about each finding, by the framework and the finding's name.

    Nothing else is read of a thread: ``castigate docket`` checks them.
    """
    links: dict[str, str] = {}
    for path in sorted(DOCKET.glob("*.yaml")):
        for link, thread in read_yaml(path).data["threads"].items():
            for finding in thread.get("findings", ()):
                links.setdefault(finding, link)
    return links


@cache
def intended_places() -> Mapping[str, str]:
    """The place where owners document each finding as intended, by framework and name."""
    source = read_yaml(INTENDED_FILE)
    try:
        return TypeAdapter(Places).validate_python(source.data)
    except ValidationError as error:
        raise source.error(*explain_validation_error(source, error)) from None


def upstream_of(backend: str, name: str) -> str | None:
    """The thread where a finding was reported; all variants of a framework share it."""
    return upstream_links().get(f"{framework_of(backend)}/{name}")


def intended_of(backend: str, name: str) -> str | None:
    """The place where a finding is documented as intended; all variants share it."""
    return intended_places().get(f"{framework_of(backend)}/{name}")
