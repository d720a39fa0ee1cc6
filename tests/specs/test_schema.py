"""The JSON schema is valid and current, accepts shipped documents and rejects invalid ones."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import specs
from specs.loader import DOCUMENTS
from specs.model.document import json_schema
from specs.model.yaml_file import read_yaml

SHIPPED_SCHEMA = Path(specs.__file__).with_name("document.schema.json")
PATHS = [*sorted(DOCUMENTS.glob("*.yaml")), Path(__file__).parent / "data" / "small.yaml"]


@cache
def validator() -> Any:
    return jsonschema.Draft202012Validator(json_schema())


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_shipped_schema_is_current() -> None:
    assert SHIPPED_SCHEMA.read_text(encoding="utf-8") == json.dumps(json_schema(), indent=2) + "\n"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_schema_accepts_every_valid_document(path: Path) -> None:
    assert [error.message for error in validator().iter_errors(read_yaml(path).data)] == []


def with_value(data: Any, path: tuple[str, ...], value: Any) -> Any:
    """A copy of the data with the value at a path; without the key if the value is None."""
    changed = copy.deepcopy(data)
    part = changed
    for key in path[:-1]:
        part = part[key]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("document",), None),
        (("rules", "to-integer", "clause"), None),
        (("rules", "to-integer", "level"), "certain"),
        (("rules", "to-integer", "nota"), "an unknown key"),
        (("rules", "to-integer", "then", "nan"), 0.5),
        (("tensors", "of-more-axes", "then"), "error"),
        (("versions", "2", "extends"), 1.5),
        (("rules",), {}),
    ],
)
def test_the_schema_rejects_an_invalid_document(path: tuple[str, ...], value: Any) -> None:
    assert not validator().is_valid(with_value(read_yaml(PATHS[-1]).data, path, value))
