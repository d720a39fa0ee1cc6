"""The CI files in `examples/ci/` ask for what there is: commands, options, extras and files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from conformance.nightly import Nights
from reports.outputs.writing import FORMS
from tests.conformance.processes import ROOT, castigate

FILES = sorted((ROOT / "examples" / "ci").glob("*.yml"))


def texts(part: Any) -> Iterator[str]:
    """All texts of a file, with their lines."""
    match part:
        case dict():
            for each in part.values():
                yield from texts(each)
        case list():
            for each in part:
                yield from texts(each)
        case str():
            yield from part.splitlines()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_asked_for_is_there(file: Path) -> None:
    lines = list(texts(YAML(typ="safe").load(file)))
    [command] = {match[1] for line in lines if (match := re.match(r"castigate (.*)", line))}
    name, option, folder = command.split()
    assert option in castigate(name, "--help")[1]
    nights = Nights(Path(folder))
    made = {str(nights.report), *(f"{folder}/{form}" for form in FORMS)}
    named = {line.rstrip("/") for line in lines if line.startswith(f"{folder}/")} - {folder}
    assert named == made
    [extra] = {match[1] for line in lines if (match := re.search(r"'\.\[(\w+)\]'", line))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]


def test_a_night_with_failures_is_kept_for_the_next() -> None:
    github, gitlab = (YAML(typ="safe").load(file) for file in FILES)
    steps = github["jobs"]["nightly"]["steps"]
    [saving] = [each for each in steps if re.match("actions/cache(/save)?@", each.get("uses", ""))]
    assert saving["if"] == "always()"
    assert gitlab["castigate"]["cache"]["when"] == "always"


def test_both_services_are_served() -> None:
    assert [file.stem for file in FILES] == ["github", "gitlab"]
