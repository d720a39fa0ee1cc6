"""Two variants of one framework must agree: eager and compiled, at run time and folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.baseline import (
    NOTHING_TO_ASK,
    Baseline,
    NoBaseline,
    baseline_of,
    candidates,
    judgement_on_pair,
)
from conformance.judging.asking import Ask, Subject, on_first_variant
from reports.counterexample.drawing import datum_text, datum_with_value
from reports.grading.divergences import datum_of, index_of_simplest
from reports.judgement import Judgement
from reports.problem_words import words
from reports.problems import DiffersFromVariant, Note, Unoffered
from specs.cases import Case

Baselines = Mapping[Case, Baseline | NoBaseline]


def judge_variants(
    first: Subject, second: Subject, cases: Sequence[Case], known: Baselines
) -> Ask[Judgement]:
    """Compare two variants' answers to the first cast that both answer; judge the second variant.

    ``candidates`` gives the order. If there is no such cast, the verdict is ``unsupported``.
    ``known`` has the second variant's answers to cases that were judged before.
    """
    both = yield from _baselines(first, second, cases, known)
    if isinstance(both, NoBaseline):
        reason = Unoffered(both.reason)
        return judgement_on_pair(second, cases[0], "unsupported", [reason])
    there, here = both
    moved, is_forbidden = there.changed(np.arange(there.inputs.size), here.answers)
    if is_forbidden.any():
        worst = _difference(first, there, here, moved[is_forbidden])
        verdict = second.graded(there.case, {worst.level}, is_open=False)
        return judgement_on_pair(second, there.case, verdict, [worst], there)
    if moved.size:
        text = words(_difference(first, there, here, moved))
        note = Note(f"where the document is open: {text}")
        return judgement_on_pair(second, there.case, "open", [note], there)
    return judgement_on_pair(second, there.case, "conforms", (), there)


def _baselines(
    first: Subject, second: Subject, cases: Sequence[Case], known: Baselines
) -> Ask[tuple[Baseline, Baseline] | NoBaseline]:
    """Return both variants' answers to the first case that both answer, on the same inputs.

    If there is no such case, return why the first case has no answer.
    """
    first_reason: NoBaseline | None = None
    for case in candidates(second, cases, calls=False):
        there = yield from on_first_variant(baseline_of(first, case))
        here = there
        if isinstance(there, Baseline):
            here = known.get(case) or (yield from baseline_of(second, case))
        if isinstance(there, Baseline) and isinstance(here, Baseline):
            return _on_same_inputs(there, here)
        first_reason = first_reason or (here if isinstance(here, NoBaseline) else None)
    return first_reason or NoBaseline(NOTHING_TO_ASK)


def _difference(
    first: Subject, there: Baseline, here: Baseline, moved: NDArray[np.intp]
) -> DiffersFromVariant:
    """Return a problem: how many inputs are answered differently, and the simplest of them.

    ``moved`` are the indices of these inputs.
    """
    source, target = there.rules.source, there.rules.target
    differs = np.zeros(there.inputs.size, bool)
    differs[moved] = True
    worst = index_of_simplest(source, there.inputs, differs)
    branch = there.branch(worst)
    given = datum_with_value(source, datum_of(there.inputs[worst]))
    one, other = (datum_text(target, datum_of(each.answers[worst])) for each in (there, here))
    rule = branch.rule, branch.clause, branch.level
    return DiffersFromVariant(*rule, first.name, moved.size, there.inputs.size, given, one, other)


def _on_same_inputs(one: Baseline, other: Baseline) -> tuple[Baseline, Baseline]:
    """Return both baselines on the inputs that both have: one may have raised on the open ones."""
    if one.inputs.size == other.inputs.size:
        return one, other
    few, many = sorted((one, other), key=lambda each: each.inputs.size)
    kept = many.at(np.flatnonzero(np.isin(many.inputs, few.inputs)))
    return (one, kept) if few is one else (kept, other)
