"""Parsed models are strict: no value of one type is converted to another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel

ROOT = Path(__file__).parents[2]
LAYERS = ("specs", "oracles", "reports", "conformance")
IMPORTS = re.compile(r"^from pydantic import|^from specs\.model\.strict_model import", re.M)
WRITTEN_ONLY = "conformance.commands.document_listing"
"""Its models are printed, and never parsed."""


def models() -> Iterator[type[BaseModel]]:
    """The models that the modules of all layers define."""
    for path in (path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if IMPORTS.search(path.read_text()) and name != WRITTEN_ONLY:
            for each in vars(import_module(name)).values():
                is_model = isinstance(each, type) and issubclass(each, BaseModel)
                # Leave parametrized generics out: the models derived from them are checked.
                if is_model and each.__module__ == name and "[" not in each.__name__:
                    yield each


def test_no_model_converts_one_type_into_another() -> None:
    found = list(models())
    assert len(found) > 40
    assert [each for each in found if not each.model_config.get("strict")] == []
