"""Reads the findings of a complete run, which are found once and stored beside its tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from itertools import chain
from typing import Any

from reports.findings.cells import Cell, CellKey
from reports.findings.finding import ExplainedCase, Finding, Findings
from reports.findings.read_cells import read_cells, read_checks
from reports.run_store.answers import RunAnswers
from reports.run_store.open_run import REPAIR_ADVICE
from reports.run_store.store import CAUSES, RunStore
from reports.verdicts import FAILING
from specs.errors import CastigateError
from specs.json_source import JsonError, load_json

FORMAT = 1
"""Changes when the fields of a finding change; findings of another format are found again."""
STORED = tuple(each.name for each in fields(ExplainedCase) if each.name != "cell")


def found_again(store: RunStore) -> dict[str, tuple[Finding, ...]]:
    """Find the causes of a run's failures, whether they are stored or not."""
    failing = [*_failing_cells(store)]
    if not failing:
        return {}
    from reports.findings.find import find_findings  # The search is large, and often not needed.

    return find_findings(failing, RunAnswers(store).values)


def causes_of(store: RunStore) -> bytes:
    """Find the causes of a run's failures, and encode them for storage."""
    return encode_findings(found_again(store))


def read_findings(
    store: RunStore, cells: Callable[[], Iterable[Cell]] | None = None
) -> dict[str, tuple[Finding, ...]]:
    """The findings of each backend that fails, as they are stored, or else found again.

    ``cells`` returns all failing cells and checks of the run, if they are known already.
    """
    data = store.folder.read(CAUSES)
    if data is None:
        return found_again(store)
    failing = _failing_cells(store) if cells is None else cells()
    try:
        content = load_json(data.decode("utf-8", "surrogatepass"))
        if content["format"] == FORMAT:
            by_key = {(each.backend, each.name): each for each in failing}
            return _decode(content["findings"], by_key)
    except (JsonError, ValueError, LookupError, TypeError):
        path = store.folder.display_path(CAUSES)
        raise CastigateError(f"{path} is damaged; {REPAIR_ADVICE}") from None
    return found_again(store)


def stored_ids(store: RunStore) -> frozenset[str] | None:
    """The ids of a run's stored findings; None without these, because finding them takes long."""
    data = store.folder.read(CAUSES)
    try:
        content = load_json((data or b"").decode("utf-8", "surrogatepass"))
        if content["format"] != FORMAT:
            return None
        found = content["findings"].items()
        return frozenset(f"{backend}/{each['name']}" for backend, every in found for each in every)
    except (JsonError, ValueError, LookupError, TypeError):
        return None


def encode_findings(findings: Findings) -> bytes:
    """Encode findings; their cells are stored by name only."""
    content = {
        backend: [
            {
                "name": each.name,
                "kind": each.kind,
                "says": each.says,
                "explained": [_explained_json(case) for case in each.explained],
            }
            for each in found
        ]
        for backend, found in findings.items()
    }
    text = json.dumps({"format": FORMAT, "findings": content}, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _explained_json(explained: ExplainedCase) -> list[Any]:
    """The fields in the order of the class, after the name of the cell."""
    return [explained.cell.name, *(getattr(explained, name) for name in STORED)]


def _decode(
    content: Mapping[str, Any], cells: Mapping[CellKey, Cell]
) -> dict[str, tuple[Finding, ...]]:
    return {
        backend: tuple(
            Finding(
                each["name"],
                backend,
                each["kind"],
                each["says"],
                tuple(_decode_explained(backend, case, cells) for case in each["explained"]),
            )
            for each in found
        )
        for backend, found in content.items()
    }


def _decode_explained(
    backend: str, stored: list[Any], cells: Mapping[CellKey, Cell]
) -> ExplainedCase:
    name, *values = stored
    named = dict(zip(STORED, values, strict=True))
    named |= {"allowed": tuple(named["allowed"]), "segments": tuple(named["segments"])}
    return ExplainedCase(cells[backend, name], **named)


def _failing_cells(store: RunStore) -> Iterable[Cell]:
    return chain(read_cells(store, FAILING), read_checks(store, FAILING))
