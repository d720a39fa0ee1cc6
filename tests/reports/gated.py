"""Complete runs of one backend on one document with planted judgements, and policies for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from conformance.running.run import selected_cases
from reports.gate.certificate import Evidence
from reports.gate.policy import Policy, PolicyEntry
from reports.judgement import Judgement
from reports.problems import Note
from reports.run_store.open_run import open_run
from reports.run_store.record import BackendRecord, Selection, serialize_record
from reports.run_store.store import RunStore, create
from specs.cases import Case
from specs.loader import documents
from tests.reports.common import divergence, record, steps

DOCUMENT = "pypto-cast:0.2"
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SELECTION = Selection(documents=(DOCUMENT,))
CASES = selected_cases(SELECTION)
CASE = "pypto-cast:0.2/float32/float16/mode:CAST_RINT"
Plant = Callable[[Case], Judgement | None]
"""Returns the judgement of a case, or None if it conforms."""


def conforming(case: Case) -> Judgement:
    return Judgement(case.id, "vendor", "conforms", inputs=256)


def violated(name: str, rule: str = "rounds", level: str = "required", rows: int = 1) -> Judgement:
    verdict = "violates" if level == "required" else "deviates"
    broken = replace(divergence(steps(rows), rule=rule), level=level)
    return Judgement(name, "vendor", verdict, (broken,), inputs=256)


def whole_case(name: str, verdict: Any) -> Judgement:
    """A judgement without divergences: the verdict is about the case as a whole."""
    return Judgement(name, "vendor", verdict, (Note(f"{verdict} it is"),))


def only(judgement: Judgement) -> Plant:
    """Plant a judgement for its case; all other cases conform."""
    return lambda case: judgement if case.id == judgement.case else None


def gated_run(
    folder: Path,
    plant: Plant = lambda case: None,
    seconds: int = 60,
    cases: list[Case] = CASES,
    **changes: Any,
) -> RunStore:
    """Write a complete run that took ``seconds``, and open it."""
    fields = {
        "documents": {name: each.digest for name, each in documents().items()},
        "backends": (BackendRecord(name="vendor", version="1.2"),),
        "selection": SELECTION,
        "started": STARTED,
        **changes,
    }
    store = create(str(folder), record(**fields))
    store.finish((("vendor", case, plant(case) or conforming(case)) for case in cases), lambda: 0)
    ended = {"finished": STARTED + timedelta(seconds=seconds)}
    complete = open_run(str(folder)).record
    (folder / "run.json").write_bytes(serialize_record(complete.model_copy(update=ended)))
    return open_run(str(folder))


def policy(**changes: Any) -> Policy:
    """A policy that requires every rule of the document, with changes to its keys."""
    fields = {
        "policy": "mine",
        "title": "One of our own",
        "documents": [DOCUMENT],
        "levels": ["required", "recommended"],
        "tier": "quick",
    }
    return Policy(PolicyEntry.model_validate(fields | changes))


def evidence(
    store: RunStore, by: Policy | None = None, baseline: RunStore | None = None
) -> Evidence:
    """The evidence of a run that must hold all cases, by default for `policy()`."""
    names = tuple(case.id for case in CASES)
    return Evidence(by or policy(), store, baseline, names, Path(store.folder.path).parent)
