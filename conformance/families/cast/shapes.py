"""Asks a cast again in tensors of every rank: it must keep the shape and the answers.

A compiler may cast in another way above a certain number of elements. An oracle names such numbers
in ``row_limits``. A case's inputs are one row, which lies on one side of each limit: here they are
asked on the other side too, and each input is judged by the worse of its answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from conformance.judging.asking import Ask
from conformance.judging.values import (
    Departed,
    ValueAnswer,
    batch_answers,
    batch_requests,
    value_answer,
    value_request,
    values_of,
)
from conformance.judging.verdicts import problem_of
from oracles.adapters.script_text import UNEVEN
from oracles.backend.replies import (
    Answered,
    BatchReply,
    Crashed,
    Declined,
    Malformed,
    Raised,
    Unanswered,
    value_of,
)
from oracles.backend.requests import CastBatch
from oracles.memory_layouts import TensorBatch
from oracles.protocol import Bits
from oracles.reference.expectations import Expected
from reports.counterexample.drawing import datum_text
from reports.grading.allowed_answers import ALLOWED, Grades, grade_answers
from reports.grading.divergences import datum_of, index_of_simplest
from reports.problems import BrokenPromise, ChangesWithShape, Problem, Unoffered
from specs.branches import Ruling
from specs.case_calls import receiver_of
from specs.cases import Case, Shape
from specs.editions import tensor_rule

PLANS_KEPT = 256


@dataclass(frozen=True)
class FaultyTensor:
    """A problem, and a tensor that shows it.

    ``further`` are the problems of other tensors that raise an error too.
    """

    problem: Problem
    bits: Bits
    further: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class ShortRow:
    """A few inputs of a case that were asked in a row before all of them, and the answer."""

    picked: NDArray[np.intp]
    answer: ValueAnswer


@lru_cache(PLANS_KEPT)
def shape_picks(
    document: str, version: str, shapes: tuple[Shape, ...], count: int
) -> dict[Shape, NDArray[np.intp]]:
    """Return which of ``count`` inputs fill each shape that a document requires to be kept.

    The first and the last are in each shape that has room.
    """
    return {
        shape: np.linspace(0, count - 1, prod(shape)).astype(np.intp)
        for shape in shapes
        if tensor_rule(document, version, shape).keeps_shape
    }


def _picked(case: Case, shapes: tuple[Shape, ...], grades: Grades) -> dict[Shape, NDArray[np.intp]]:
    """Return for each shape that must be kept the places of inputs to fill it, all answered right.

    There are no shapes for a worked example, or if no input is answered right.
    """
    sound = np.flatnonzero(grades == ALLOWED)
    if case.example is not None or not sound.size:
        return {}
    picks = shape_picks(case.document, case.version, shapes, sound.size)
    return picks if sound.size == grades.size else {at: sound[each] for at, each in picks.items()}


def shape_fault(
    case: Case,
    rules: Ruling,
    inputs: Bits,
    expected: Expected,
    answer: Bits,
    grades: Grades,
    shapes: tuple[Shape, ...],
    before: ShortRow | None = None,
) -> Ask[list[FaultyTensor]]:
    """Return, in a list, the fault of the first shape with a wrong or missing answer.

    If ``before`` was answered right in the long row, it counts as the first of the shapes. If a
    shape raises an error, its fault lists the other shapes that do. Raises ``Unanswered`` if the
    backend crashes in a shape.
    """
    places = _picked(case, shapes, grades)
    none = np.zeros(0, np.intp)
    elements = inputs[np.concatenate([*places.values(), none], dtype=np.intp)]
    batch = TensorBatch(elements, [*places])
    replies = yield batch_requests(case, batch)
    asked = [*places.items()]
    answers: Iterator[ValueAnswer] = batch_answers(case, batch, replies)
    if before is not None and (grades[before.picked] == ALLOWED).all():
        asked.insert(0, (before.picked.shape, before.picked))
        answers = chain([before.answer], answers)
    for number, (shape, picked) in enumerate(asked, 1):
        rule = tensor_rule(case.document, case.version, shape)
        where, named = f"shape {shape}", (rule.rule, rule.clause, rule.level)
        problem: Problem | None = None
        shown = inputs[picked].reshape(shape)
        match next(answers):
            case Answered(value):
                again = value.reshape(-1)
                if (again != answer[picked]).any():
                    regraded = grade_answers(rules, inputs[picked], expected.at(picked), again)
                    if (wrong := regraded != ALLOWED).any():
                        problem = ChangesWithShape(*named, shape)
                        shown = np.resize(inputs[picked[wrong][:1]], UNEVEN)
            case Declined(text):
                problem = Unoffered(text, where)
            case Departed(promise):
                problem = BrokenPromise(*named, promise.promise, promise.facts, where)
            case Raised() | Malformed() as missing:
                by_rule = dict(zip(("rule", "clause", "level"), named, strict=True))
                problem = problem_of(missing, where, **by_rule)
                rest = {at: inputs[picked].reshape(at) for at, picked in asked[number:]}
                further = yield from _also_raising(case, rest)
                return [FaultyTensor(problem, shown, further)]
            case Crashed() as crashed:
                raise Unanswered(crashed)
        if problem is not None:
            return [FaultyTensor(problem, shown)]
    return []


def _also_raising(case: Case, tensors: Mapping[Shape, Bits]) -> Ask[tuple[Problem, ...]]:
    """Ask further tensors; return the problems of those to which the backend raises an error."""
    replies = yield [value_request(case, bits) for bits in tensors.values()]
    return tuple(
        problem_of(reply, f"shape {shape}")
        for shape, reply in zip(tensors, replies, strict=True)
        if isinstance(reply, Raised)
    )


@dataclass(frozen=True)
class WorstAnswers:
    """The worst answer to each input over rows of several lengths, its grade, and notes."""

    answer: Bits
    grades: Grades
    notes: tuple[str, ...] = ()


def across(
    limits: Sequence[int],
    case: Case,
    rules: Ruling,
    inputs: Bits,
    expected: Expected,
    in_one_row: WorstAnswers,
) -> Ask[WorstAnswers]:
    """Return the worse of each input's answers on both sides of every limit, with notes.

    A limit is a row length above which a compiler may cast otherwise. A note says what differs, or
    that the backend declines such rows. Raises as ``values_of`` does for other missing answers.
    """
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
        note = _note(rules, inputs, limit, in_one_row, WorstAnswers(answer, grades))
        is_worse = grades > worse.grades
        worse = WorstAnswers(
            np.where(is_worse, answer, worse.answer),
            np.where(is_worse, grades, worse.grades),
            (*worse.notes, note) if note else worse.notes,
        )
    return worse


def _answers(case: Case, rules: Ruling, rows: Sequence[Bits]) -> Ask[list[Bits]]:
    """Return the answers to several rows; raise as ``values_of`` does.

    Cases on one road share the answers to casts of numbers.
    """
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
    """Return words for rows on the other side of a limit, and the same inputs in such rows."""
    if inputs.size > limit:
        parts = [inputs[first : first + limit] for first in range(0, inputs.size, limit)]
        return f"rows of at most {limit:,} elements", parts
    return f"rows of more than {limit:,} elements", [np.resize(inputs, limit + 1)]


def _note(rules: Ruling, inputs: Bits, limit: int, one: WorstAnswers, other: WorstAnswers) -> str:
    """Say how many answers depend on the length, how many are wrong, and the simplest such input.

    The note is empty if none depends on it. ``one`` has the answers in one row, ``other`` those
    beyond the limit.
    """
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
