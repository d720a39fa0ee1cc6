"""``castigate specs diff``: the inputs whose ruling changes from one edition to another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import quick_inputs
from reports.editions.edition_changes import edition_changes
from reports.editions.effects import recorded_backends
from reports.editions.words import change_lines, change_records
from specs.edition_pairs import CasePair, edition_pairs
from specs.errors import CastigateError


def list_edition_changes(words: Sequence[str], as_json: bool) -> tuple[Iterator[str], bool]:
    """Return lines on what changes between two editions, and whether anything does.

    ``words`` name the old and the new edition. Raise CastigateError if they do not.
    """
    if len(words) != 2:
        raise CastigateError(
            "`castigate specs diff` takes two editions; write castigate specs diff OLD NEW"
        )
    old, new = words
    pairs = edition_pairs(old, new)
    backends = recorded_backends()
    changes = edition_changes(pairs, _listed_inputs, backends)
    if as_json:
        return (
            json.dumps(each, ensure_ascii=False) for each in change_records(changes)
        ), not changes.is_same
    return change_lines(f"{old} → {new}", changes, backends), not changes.is_same


def _listed_inputs(cases: CasePair) -> NDArray[Any]:
    return quick_inputs(cases.new.source, cases.new.target, 0, 0)
