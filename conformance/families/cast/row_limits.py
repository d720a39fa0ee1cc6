"""Asks the same inputs in rows on the other side of a compiler's limits.

A compiler may cast in another way above a certain number of elements. An oracle names such numbers
in ``row_limits``. A case's inputs are one row, which lies on one side of each limit: here they are
asked on the other side too, and each input is judged by the worse of its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from conformance.judging.asking import Ask
from conformance.judging.values import ValueAnswer, value_answer, value_request, values_of
from oracles.backend.replies import BatchReply, Declined, Unanswered, value_of
from oracles.backend.requests import CastBatch
from oracles.protocol import Bits
from oracles.reference.expectations import Expected
from oracles.tensor_batch import TensorBatch
from reports.counterexample.drawing import datum_text
from reports.grading.allowed_answers import grade_answers
from reports.grading.divergences import datum_of, index_of_simplest
from reports.grading.grades import ALLOWED, Grades
from specs.branches import Ruling
from specs.case_calls import receiver_of
from specs.cases import Case


@dataclass(frozen=True)
class Judged:
    """An answer to each input, its grade, and notes on lengths."""

    answer: Bits
    grades: Grades
    notes: tuple[str, ...] = ()


def across(
    limits: Sequence[int],
    case: Case,
    rules: Ruling,
    inputs: Bits,
    expected: Expected,
    in_one_row: Judged,
) -> Ask[Judged]:
    """The worse of each input's answers on both sides of every limit, and a note on each limit."""
    worse = in_one_row
    for limit in limits:
        name, rows = _beyond(inputs, limit)
        try:
            answers = yield from _answers(case, rules, rows)
        except Unanswered as unanswered:
            if not isinstance(unanswered.answer, Declined):
                raise
            note = f"{name} not asked: {unanswered.answer.text}"
            worse = replace(worse, notes=(*worse.notes, note))
            continue
        answer = np.concatenate(answers)[: inputs.size]
        grades = grade_answers(rules, inputs, expected, answer)
        note = _note(rules, inputs, limit, in_one_row, Judged(answer, grades))
        is_worse = grades > worse.grades
        worse = Judged(
            np.where(is_worse, answer, worse.answer),
            np.where(is_worse, grades, worse.grades),
            (*worse.notes, note) if note else worse.notes,
        )
    return worse


def _answers(case: Case, rules: Ruling, rows: Sequence[Bits]) -> Ask[list[Bits]]:
    """The answers to several rows, which cases on one road share; raise as ``values_of`` does."""
    answers: list[ValueAnswer]
    if receiver_of(case.document) is not None:
        replies = yield [value_request(case, row) for row in rows]
        answers = [value_answer(case, *pair) for pair in zip(rows, replies, strict=True)]
    else:
        [reply] = yield [CastBatch(case, TensorBatch.of(rows), rules.source.kind != "text")]
        whole: BatchReply = value_of(reply)
        answers = [*whole.each()]
    return [*map(values_of, answers)]


def _beyond(inputs: Bits, limit: int) -> tuple[str, list[Bits]]:
    """The same inputs in rows on the other side of a limit, and what these are called."""
    if inputs.size > limit:
        parts = [inputs[first : first + limit] for first in range(0, inputs.size, limit)]
        return f"rows of at most {limit:,} elements", parts
    return f"rows of more than {limit:,} elements", [np.resize(inputs, limit + 1)]


def _note(rules: Ruling, inputs: Bits, limit: int, one: Judged, other: Judged) -> str:
    """How many answers depend on the length, how many of them are wrong, and the simplest input."""
    short, long = (other, one) if inputs.size > limit else (one, other)
    changed = short.answer != long.answer
    if not changed.any():
        return ""
    only_short, only_long = (
        changed & (these.grades != ALLOWED) & (those.grades == ALLOWED)
        for these, those in ((short, long), (long, short))
    )
    shown = next(each for each in (only_short, only_long, changed) if each.any())
    index = index_of_simplest(rules.source, inputs, shown)
    given = datum_text(rules.source, datum_of(inputs[index]))
    in_short, in_long = (
        datum_text(rules.target, datum_of(each.answer[index])) for each in (short, long)
    )
    return (
        f"{np.count_nonzero(changed):,} of {inputs.size:,} inputs have other answers in rows of at"
        f" most {limit:,} elements than in longer ones: {np.count_nonzero(only_short):,} are wrong"
        f" only in the shorter, {np.count_nonzero(only_long):,} only in the longer;"
        f" {given} gives {in_short} in the shorter, {in_long} in the longer"
    )
