"""Compares two releases on one case; judges and words the change as between two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from conformance.families import tensor_of
from conformance.families.value_spelling import tensor_words
from conformance.recorded_lines import judge_line
from reports.changes.change import (
    RIGHT,
    SEVERITY,
    UNCLAIMED,
    BackendChanges,
    CaseChange,
    ChangeKind,
    Example,
    grouped,
    kind_of,
)
from reports.changes.of_runs import ALLOWED, OTHER_ALLOWED, changes_of_runs
from reports.findings.finding_text import datum_words
from reports.findings.read_findings import causes_of
from reports.judgement import Judgement
from reports.run_store.open_run import open_run
from reports.run_store.record import BackendRecord, RunRecord, current_environment, current_time
from reports.run_store.store import RunStore, create
from specs.cases import Case
from specs.formats import format_named
from specs.loader import documents

WRONG, UNSUPPORTED = "wrong", "unsupported"
Releases = tuple[str, str]
"""Two releases, the earlier one first."""


def change_of_results(
    case: Case, backend: str, releases: Releases, results: tuple[Judgement, Judgement]
) -> BackendChanges:
    """Compare the results of two releases in the tier quick as runs are compared."""
    with TemporaryDirectory(prefix="castigate-") as folder:
        stores: list[RunStore] = []
        for release, result in zip(releases, results, strict=True):
            record = RunRecord(
                documents=dict(documents().digests),
                backends=(BackendRecord(name=backend, version=release),),
                environments=(current_environment(),),
                command_line=("castigate", "bisect"),
                started=current_time(),
            )
            store = create(f"{folder}/{len(stores)}", record)
            rows = [(backend, case, replace(result, backend=backend))]
            store.finish(rows, lambda: 0, causes_of)
            stores.append(open_run(store.folder.display_name))
        [changes] = changes_of_runs(stores[0], stores[1], [backend])
    return changes


def change_of_answers(
    case: Case,
    backend: str,
    releases: Releases,
    inputs: Sequence[Any],
    answers: tuple[Sequence[Any], Sequence[Any]],
    *,
    is_claimed: bool,
) -> BackendChanges:
    """Return what changed between the answers of two releases to ``inputs``, as JSON data.

    An answer is that of ``castigate explain``. If the backend does not claim the document, no
    change is worse or better.
    """
    found: list[tuple[ChangeKind, Example, tuple[str, str]]] = []
    for given, before, now in zip(inputs, *answers, strict=True):
        if before != now:
            kind, sides = _judged_change(case, given, before, now, is_claimed=is_claimed)
            words = (_words(case.target, each) for each in (before, now))
            found.append((kind, Example(case.id, _words(case.source, given), *words), sides))
    changes = []
    if found:
        order: Mapping[ChangeKind, int] = {"worse": 0, "unsupported": 1, "better": 2}
        kind, example, (was, will) = min(found, key=lambda each: order.get(each[0], 3))
        changes = [CaseChange(case.id, kind, (was,), (will,), example=example, inputs=len(found))]
    before, now = releases
    return BackendChanges(backend, now, f"since {before}", grouped(changes), int(not found))


def given_of(case: Case, inputs: Sequence[str]) -> list[Any]:
    """Return as JSON data what a person writes for inputs: each alone, or all as one tensor."""
    shaped = tensor_of(case)
    if shaped is None:
        is_text = format_named(case.source).kind == "text"
        return [{"text": word} if is_text else word for word in inputs]
    return [tensor_words(format_named(case.source), shaped.read(case, inputs))]


def _judged_change(
    case: Case, given: Any, before: Any, now: Any, *, is_claimed: bool
) -> tuple[ChangeKind, tuple[str, str]]:
    """Return how a changed answer is judged, and what it was before and is now in words."""
    verdicts = [_verdict(case, given, each) for each in (before, now)]
    wrong = WRONG if is_claimed else UNCLAIMED
    words = [
        each if each == UNSUPPORTED else wrong if each in SEVERITY else RIGHT for each in verdicts
    ]
    old, new = (SEVERITY.get(each, 0) if is_claimed else 0 for each in verdicts)
    kind = kind_of(new - old, 0)
    if verdicts[1] == UNSUPPORTED:
        kind = "unsupported"
    elif verdicts[0] == UNSUPPORTED and kind != "worse":
        kind = "supported"
    elif words == [RIGHT, RIGHT]:
        words = [ALLOWED, OTHER_ALLOWED]
    return kind, (words[0], words[1])


def _verdict(case: Case, given: Any, answer: Any) -> str:
    match answer:
        case {"unsupported": _}:
            return UNSUPPORTED
        case {"crashed": _}:
            return "crashed"
        case {"departed": _}:
            return "violates"
    line = {"case": case.id, "input": given, "output": answer}
    return str(judge_line(json.dumps(line), case)["verdict"])


def _words(dtype: str, datum: Any) -> str:
    match datum:
        case {"text": text}:
            return datum_words(dtype, str(text))
        case {"shape": shape}:
            return f"shape {shape}: {' '.join(datum.get('bits', ()))}"
        case dict():
            return ": ".join(next(iter(datum.items())))
    return datum_words(dtype, str(datum))
