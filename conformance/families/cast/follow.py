"""Follows failing inputs to the ends of their stretches, so that the quick tier knows regions.

The quick tier asks a selection of a wide source. Around each of them that fails, every pattern is
asked, outward until a stretch of them is answered right. What fails may also be scattered: the
integers among floats, say, have a million right answers between one and the next. So inputs are
asked that lie a power of two of patterns beyond either end of a stretch (*leaps*), and what fails
there is followed in turn, until nothing new fails. Sources of at most 16 bits need no following, as
every pattern was asked. Those of more than 32 bits are not followed: no sweep could check what is
then called exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.baseline import (
    Followed,
    GradedAnswers,
    not_followed,
    wrong_values_of,
)
from conformance.judging.asking import Ask
from conformance.judging.values import DepartedError, ask_values, values_of
from oracles.backend.replies import Unanswered
from oracles.protocol import Bits
from oracles.reference.staircase import staircase
from reports.grading.chunk_comparison import ChunkComparison, chunk_comparison, fastest_comparison
from reports.grading.staircase_grades import grade_by_staircase
from specs.branches import Ruling
from specs.cases import Case

ROW = 1 << 16
"""Elements of each row that is requested."""
MANY = 1 << 21
"""With this many inputs or more, numba saves more time than it takes to load."""
MOST_FOLLOWED = 1 << 24
"""The most inputs that are requested of one case: as many as float32 has NaNs."""
FIRST_REACH = 8
MOST_LEAPED = 1024
"""Leaps start from at most this many stretches; where there are more, from a spread of them."""
MOST_ROUNDS = 8
"""Rounds of leaps. Scattered failures can need hundreds, and each round merges all inputs again."""


@dataclass(frozen=True)
class Ranges:
    """Ranges of consecutive inputs, as first inputs and sizes, in the order of the request."""

    firsts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def inputs(self, storage: Any) -> Bits:
        """Return the inputs of all ranges, one range after the other, in the dtype ``storage``."""
        if (self.sizes == 1).all():
            return self.firsts.astype(storage)
        inputs = np.empty(self.sizes.sum(), storage)
        ends = np.cumsum(self.sizes)
        bounds = zip(self.firsts.tolist(), self.sizes.tolist(), ends.tolist(), strict=True)
        for first, size, end in bounds:
            inputs[end - size : end] = np.arange(first, first + size, dtype=storage)
        return inputs


AskRanges = Callable[[Ranges], Ask[GradedAnswers]]
"""Requests the inputs of some ranges, and returns their graded answers."""


def follow_all_stretches(known: GradedAnswers, ask_ranges: AskRanges) -> Ask[GradedAnswers | None]:
    """Return the known answers and those of all stretches of failing inputs that can be reached.

    Some known answer must fail. Returns None if stretches have too many inputs, if leaps reach too
    many new ones, or after ``MOST_ROUNDS`` rounds. Answers after leaps are left out if none of a
    round fails.
    """
    whole = yield from follow_stretches(known, ask_ranges)
    before = np.zeros(0, np.int64)
    for _ in range(MOST_ROUNDS):
        if whole is None:
            return None
        firsts, lasts = _stretches(whole)
        is_new = ~np.isin(firsts, before)
        if is_new.sum() > MOST_LEAPED and before.size:
            return None
        before = firsts
        leaps = _leaps(whole, _spread(firsts[is_new]), _spread(lasts[is_new]))
        found = yield from ask_ranges(Ranges(leaps, np.ones_like(leaps)))
        if not found.fails.any():
            return whole
        joined = _merged([(whole, _sizes_of_ranges(whole.inputs)), (found, np.ones_like(leaps))])
        whole = yield from follow_stretches(joined, ask_ranges)
    return None


def _stretches(whole: GradedAnswers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first input of each stretch of failing ones, and the last of each."""
    failing = whole.inputs[whole.fails]
    begins = np.append(True, failing[1:] - failing[:-1] != 1)
    ends = np.append(begins[1:], True)
    return failing[begins].astype(np.int64), failing[ends].astype(np.int64)


def _spread(stretches: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pick at most ``MOST_LEAPED`` of the stretches' inputs, evenly spread."""
    places = np.linspace(0, stretches.size - 1, min(MOST_LEAPED, stretches.size))
    return stretches[places.astype(np.intp)]


def _leaps(
    whole: GradedAnswers, firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the unknown inputs that lie a power of two below or above a stretch."""
    codes = whole.inputs
    distances = 1 << np.arange(int(codes[-1]).bit_length())
    far = np.unique([firsts - each for each in distances] + [lasts + each for each in distances])
    inside = far[(codes[0] <= far) & (far <= codes[-1])]
    nearest = codes[np.searchsorted(codes, inside.astype(codes.dtype))]
    unknown: NDArray[np.int64] = inside[nearest != inside]
    return unknown


def follow_stretches(known: GradedAnswers, ask_ranges: AskRanges) -> Ask[GradedAnswers | None]:
    """Return the known answers and those of the failing stretches around them.

    Returns None if these have more than ``MOST_FOLLOWED`` inputs.
    """
    parts = [(known, _sizes_of_ranges(known.inputs))]
    codes, fails = known.inputs.astype(np.int64), known.fails
    gaps = np.diff(codes) - 1
    inside = fails[:-1] & fails[1:] & (gaps > 0)
    if gaps[inside].sum() > MOST_FOLLOWED:
        return None
    if inside.any():
        found = yield from ask_ranges(Ranges(codes[:-1][inside] + 1, gaps[inside]))
        parts.append((found, gaps[inside]))
    at_edge = (fails[:-1] != fails[1:]) & (gaps > 0)
    edges = _Edges(codes[:-1][at_edge] + 1, gaps[at_edge], fails[:-1][at_edge])
    reach, left = FIRST_REACH, MOST_FOLLOWED - int(gaps[inside].sum())
    while edges.sizes.size:
        blocks = np.minimum(edges.sizes, reach)
        left -= int(blocks.sum())
        if left < 0:
            return None
        firsts = np.where(edges.rises, edges.firsts, edges.firsts + edges.sizes - blocks)
        found = yield from ask_ranges(Ranges(firsts, blocks))
        parts.append((found, blocks))
        edges = edges.beyond(blocks, _outermost(found.fails, blocks, edges.rises))
        reach *= 2
    return _merged(parts)


@dataclass(frozen=True)
class _Edges:
    """Ranges of inputs not requested yet, each between one that fails and one that does not.

    A range ``rises`` if it is requested from its first input on, because the one before it fails.
    Otherwise it is requested from its last input down.
    """

    firsts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    rises: NDArray[np.bool_]

    def beyond(self, blocks: NDArray[np.int64], outermost: NDArray[np.int64]) -> _Edges:
        """Return what is left of each range in which the outer half of its block still fails.

        ``outermost`` says how far into its block the outermost failing input lies.
        """
        is_open = (2 * outermost > blocks) & (blocks < self.sizes)
        firsts = self.firsts + np.where(self.rises, blocks, 0)
        return _Edges(firsts[is_open], (self.sizes - blocks)[is_open], self.rises[is_open])


def _outermost(
    fails: NDArray[np.bool_], blocks: NDArray[np.int64], rises: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the depth of each block's outermost failing input, counted from 1; 0 if none fails.

    ``fails`` has the inputs of all blocks, one block after the other, and ``blocks`` has their
    sizes. Depth counts up from a block's first input where it ``rises``, and otherwise down from
    its last. The outermost failing input is the one with the greatest depth.
    """
    ends = np.cumsum(blocks)
    starts = ends - blocks
    # Places in 32 bits, because there may be millions.
    places = np.arange(fails.size, dtype=np.int32)
    last = np.maximum.reduceat(np.where(fails, places, np.int32(-1)), starts)
    first = np.minimum.reduceat(np.where(fails, places, np.int32(fails.size)), starts)
    depths: NDArray[np.int64] = np.where(rises, last + 1 - starts, ends - first)
    return np.where(last >= 0, depths, 0)


def _merged(parts: Sequence[tuple[GradedAnswers, NDArray[np.int64]]]) -> GradedAnswers:
    """Join graded answers in rising order of the inputs; each part has the sizes of its ranges.

    Ranges of consecutive inputs are put in order, and not the inputs: sorting these takes longer.
    """
    whole = [part for part, _ in parts]
    sizes = np.concatenate([sizes for _, sizes in parts])
    starts = np.cumsum(sizes) - sizes
    inputs = np.concatenate([part.inputs for part in whole])
    order = np.argsort(inputs[starts])
    moved = sizes[order]
    shifts = (starts[order] - (np.cumsum(moved) - moved)).astype(np.int32)
    # In 32 bits, because there may be millions.
    places = np.arange(inputs.size, dtype=np.int32)
    places += np.repeat(shifts, moved)
    del inputs
    columns = (
        np.concatenate([getattr(part, each.name) for part in whole])[places]
        for each in fields(GradedAnswers)
    )
    return GradedAnswers(*columns)


def _sizes_of_ranges(inputs: Bits) -> NDArray[np.int64]:
    """Return the sizes of the longest ranges of consecutive inputs."""
    starts = np.flatnonzero(inputs[1:] - inputs[:-1] != 1) + 1
    return np.diff(starts, prepend=0, append=inputs.size)


def follow(case: Case, rules: Ruling, known: GradedAnswers) -> Ask[Followed]:
    """Request every input around failing ones, and return the wrong values among all answers.

    They are those of the ``known`` answers alone, of which some must fail, if an answer is missing
    or too many inputs fail.
    """
    stairs = staircase(rules)

    def ask_ranges(ranges: Ranges) -> Ask[GradedAnswers]:
        inputs = ranges.inputs(rules.source.storage)
        answers = yield from _answers(case, rules, inputs)
        compare = _comparison_of(inputs).compare_with_steps
        graded = grade_by_staircase(stairs, inputs, answers, compare)
        return GradedAnswers(inputs, answers, *graded)

    try:
        whole = yield from follow_all_stretches(known, ask_ranges)
    except (Unanswered, DepartedError):
        whole = None
    if whole is None:
        return not_followed(rules, known)
    found = wrong_values_of(rules, whole, _comparison_of(whole.inputs).gather)
    return Followed(found, whole.inputs.size - known.inputs.size, reaches_ends=True)


def _answers(case: Case, rules: Ruling, inputs: Bits) -> Ask[Bits]:
    """Return the answers to many inputs, in rows of one length; raise as ``values_of`` does."""
    answers = np.empty(inputs.size, rules.target.storage)
    for first in range(0, inputs.size, ROW):
        part = inputs[first : first + ROW]
        row = part if part.size == ROW else np.resize(part, ROW)
        answer = values_of((yield from ask_values(case, row)))
        answers[first : first + part.size] = answer[: part.size]
    return answers


def _comparison_of(inputs: Bits) -> ChunkComparison:
    """Return numba's comparison for many inputs, else numpy's: loading numba takes long."""
    return fastest_comparison() if inputs.size >= MANY else chunk_comparison(compiled=False)
