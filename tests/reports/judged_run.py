"""Writes runs of faulty backends: the reference with some answers spoilt, judged as in a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.driver import BackendJudge
from conformance.families.reference import Reference
from conformance.judging.asking import Settings
from oracles.registry import Backend
from reports.run_store.record import BackendRecord
from reports.run_store.store import RunStore, create
from specs.cases import Case
from specs.editions import edition
from specs.loader import documents
from tests.reports.common import record

RIGHT = Reference()
Answer = Callable[[Case, Any], Any]
"""Answers a case like ``Oracle.cast``."""


class Faulty:
    """An oracle that answers casts by a function, and bitcasts by the same one."""

    name = "faulty"
    version = "1"

    def __init__(self, answer: Answer) -> None:
        self.cast = self.bitcast = answer


def cases_of(*patterns: str) -> list[Case]:
    """The cases whose ids begin with one of some patterns, such as ``onnx-cast:25/float32/``."""
    return [
        case
        for name, document in documents().items()
        for version in document.entry.versions
        if any(pattern.startswith(f"{name}:{version}/") for pattern in patterns)
        for case in edition(document, version).cases()
        if f"{case.id}/".startswith(patterns)
    ]


def judged_run(
    folder: Path, backends: Mapping[str, Answer], cases: Sequence[Case], seed: int = 0
) -> RunStore:
    """Judge backends that answer by functions and claim every document; return the whole run."""
    faulty = [Backend(name, Faulty(answer)) for name, answer in backends.items()]
    return run_of(folder, faulty, cases, seed)


def run_of(
    folder: Path,
    backends: Sequence[Backend],
    cases: Sequence[Case],
    seed: int = 0,
    checks: Sequence[str] = (),
) -> RunStore:
    """A complete run of these backends, which claim every document; checks are of one pair."""
    settings = Settings(seed=seed, max_examples=100, asked_for=frozenset(documents()))
    records = tuple(BackendRecord(name=each.name, version="1") for each in backends)
    store = create(str(folder), record(backends=records, seed=seed))
    rows = []
    for backend in backends:
        judge = BackendJudge(backend, {}, settings)
        rows += [(backend.name, case, judge.judge(case)) for case in cases]
        found = judge.judge_pair((), checks, cases)
        rows += [(backend.name, cases[0], judgement) for judgement in found]
    return store.finish(rows, lambda: 1)


def through(dtype: str) -> Answer:
    """Answers that are rounded twice: first to ``dtype``, then to the target."""

    def cast(case: Case, bits: Any) -> Any:
        if dtype in (case.source, case.target):
            return RIGHT.cast(case, bits)
        between = RIGHT.cast(replace(case, target=dtype, modes=()), bits)
        return RIGHT.cast(replace(case, source=dtype), between)

    return cast


def with_mode(parameter: str, value: str) -> Answer:
    """Answers that take ``value`` for a parameter, whatever the case has."""

    def cast(case: Case, bits: Any) -> Any:
        modes = tuple((name, value if name == parameter else old) for name, old in case.modes)
        return RIGHT.cast(replace(case, modes=modes), bits)

    return cast


def with_version(version: str) -> Answer:
    """Answers by the rules of another version of the case's document."""

    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(replace(case, version=version), bits)

    return cast


def where(wrong: Callable[[Case, Any], Any], answer: Callable[[Case], int]) -> Answer:
    """Right answers, except that the inputs that ``wrong`` selects all get the same pattern."""

    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits).copy()
        answers[wrong(case, bits)] = answer(case)
        return answers

    return cast


def raising(error: Exception) -> Answer:
    """Raises an error instead of an answer."""

    def cast(case: Case, bits: Any) -> Any:
        raise error

    return cast
