"""The filter lets nothing wrong through, and leaves to grading only what it says it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from conformance.running.selection import case_named
from conformance.sweep.array_forms import forms
from oracles.reference import chunk_check, expect_by_kernels
from oracles.reference.chunk_table import ANYTHING, CODE, GRADED, RANGES, ROW, Rows, Table, table
from oracles.reference.staircase import STEP, Step
from reports.diff.allowed_answers import levels_broken
from specs.ruling import Ruling, ruling
from tests.reference.distinct import numeric_rulings
from tests.reference.test_grading import right_answers

pytest.importorskip("numba", reason="the fast form needs the extra `fast`")

DENSE = {name: rules for name, rules in numeric_rulings().items() if rules.source.bits == 32}
LENGTHS = (1, 2, 3, 1000, 1025, 4999, 5000)
END = 1 << 32
SEED = 20_261_124
Check = Callable[[Table, int, NDArray[Any]], bool]
FORMS: tuple[Check, ...] = (chunk_check.all_right, forms(True).all_right)


class Chunk:
    """Consecutive inputs with answers that are all right."""

    def __init__(self, rules: Ruling, first: int, size: int, chance: np.random.Generator) -> None:
        self.rules, self.table = rules, table(rules)
        self.first = max(0, min(first, END - size))
        if size % 8 == 0:
            # Such a chunk may be looked at in whole words.
            self.first -= self.first % 8
        self.inputs = (self.first + np.arange(size, dtype=np.uint64)).astype(np.uint32)
        self.expected = expect_by_kernels.expect(rules, self.inputs)
        self.answers = right_answers(rules, self.expected, chance).astype(rules.target.storage)
        begin, end = np.searchsorted(self.table.firsts, self.inputs[[0, -1]], "right").tolist()
        self.segments = range(begin - 1, end)

    @property
    def left_to_grading(self) -> bool:
        return bool((self.table.kinds[list(self.segments)] == GRADED).any())

    @property
    def ends(self) -> list[int]:
        """The first and the last place of every segment."""
        starts = [int(self.table.firsts[number]) - self.first for number in self.segments[1:]]
        return [0, *starts, *(start - 1 for start in starts), self.inputs.size - 1]

    def says(self, answers: NDArray[Any]) -> bool:
        """What both forms of the filter say."""
        said = {check(self.table, self.first, answers) for check in FORMS}
        assert len(said) == 1, f"the forms differ from {self.first:#x} on"
        return said.pop()

    def wrong(self, at: int, answers: NDArray[Any]) -> bool:
        one, here = slice(at, at + 1), np.array([at])
        levels = levels_broken(self.rules, self.inputs[one], self.expected.at(here), answers[one])
        return bool(levels[0])

    def hold(self, flips: Iterable[tuple[int, int]]) -> int:
        """See the filter be right on right answers and on each with a bit flipped; count those."""
        passes = not self.left_to_grading
        assert self.says(self.answers) == passes, hex(self.first)
        noticed = 0
        for at, bit in flips:
            answers = self.answers.copy()
            answers[at] ^= answers.dtype.type(1 << bit)
            wrong = self.wrong(at, answers)
            assert self.says(answers) == (passes and not wrong), (hex(self.first), at, bit)
            noticed += wrong and passes
        return noticed


def spots(known: Table, size: int, chance: np.random.Generator) -> list[int]:
    """Both ends of the source, and around a boundary and inside a segment of every kind."""
    found = [0, END - size]
    for kind in (CODE, RANGES, ANYTHING, GRADED, None):
        here = np.flatnonzero(known.kinds == kind if kind is not None else known.kinds >= 0)
        if here.size:
            number = int(chance.choice(here))
            start = int(known.firsts[number])
            end = int(known.firsts[number + 1]) if number + 1 < known.firsts.size else END
            found += [start - int(chance.integers(0, size)), int(chance.integers(start, end))]
    return found


@pytest.mark.parametrize("name", DENSE)
def test_a_flipped_bit_never_passes(name: str) -> None:
    rules, chance = DENSE[name], np.random.default_rng(SEED)
    bits = 8 * np.dtype(rules.target.storage).itemsize
    noticed = 0
    for size in LENGTHS:
        for spot in spots(table(rules), size, chance):
            chunk = Chunk(rules, spot, size, chance)
            places = sorted({*chunk.ends, int(chance.integers(0, size))})
            if len(places) > 8:
                places = [*places[:2], *chance.choice(places, 4).tolist(), *places[-2:]]
            noticed += chunk.hold((at, int(chance.integers(0, bits))) for at in places)
    assert noticed or rules.is_open


NAMES = st.sampled_from([*DENSE])


@given(NAMES, st.data())
@settings(max_examples=200, deadline=None)
def test_wherever_a_chunk_begins_and_whatever_is_flipped(name: str, data: st.DataObject) -> None:
    rules = DENSE[name]
    known = table(rules)
    size = data.draw(st.sampled_from(LENGTHS) | st.integers(1, 3 * ROW))
    number = data.draw(st.integers(0, known.firsts.size - 1))
    start = int(known.firsts[number]) + data.draw(st.integers(-size, 3 * ROW))
    chunk = Chunk(rules, start, size, np.random.default_rng(data.draw(st.integers(0, 1 << 32))))
    bits = 8 * np.dtype(rules.target.storage).itemsize
    places = st.sampled_from(chunk.ends) | st.integers(0, size - 1)
    chunk.hold(data.draw(st.lists(st.tuples(places, st.integers(0, bits - 1)), max_size=4)))


@pytest.mark.parametrize(
    ("name", "first", "places"),
    [
        ("onnx-cast:13/float32/float16", 0x5000_0000, range(256)),
        ("onnx-cast:13/int32/float32", 0x4000_0000, range(77, 6 * ROW, ROW)),
    ],
)
def test_no_part_of_a_chunk_is_passed_over(name: str, first: int, places: range) -> None:
    # Constant answers are compared line by line of the cache, rows four at once and then the rest.
    chunk = Chunk(DENSE[name], first, places.stop, np.random.default_rng(SEED))
    assert chunk.hold((at, 0) for at in places) == len(places)


@pytest.mark.parametrize("name", ["onnx-cast:13/float32/float16", "onnx-cast:1/float32/int64"])
def test_answers_may_lie_apart(name: str) -> None:
    chunk = Chunk(DENSE[name], 0x2000, 256, np.random.default_rng(SEED))
    apart = np.zeros(2 * 256, chunk.answers.dtype)[::2]
    apart[:] = chunk.answers
    assert chunk.says(apart)
    apart.base[1::2] = 7
    assert chunk.says(apart)
    # Beyond what as many answers side by side would take.
    apart[200] ^= 1
    assert not chunk.says(apart)


def test_many_wrong_answers_that_make_up_for_each_other_do_not_pass() -> None:
    # As many turns as there are to be, at other places: counting turns alone would not tell.
    rules = DENSE["onnx-cast:13/float32/float16"]
    chunk = Chunk(rules, 0x3F80_0000, 1 << 16, np.random.default_rng(SEED))
    for shift in (-1, 1):
        late = np.roll(chunk.answers, shift)
        late[[0, -1]] = chunk.answers[[0, -1]]
        assert np.count_nonzero(late[1:] != late[:-1]) == len(chunk.segments) - 1
        assert not chunk.says(late)


@pytest.mark.parametrize("first", [0x3F80_0000, 0x3F80_2000])
def test_a_segment_that_is_wrong_as_a_whole_does_not_pass(first: int) -> None:
    rules = DENSE["onnx-cast:13/float32/float16"]
    chunk = Chunk(rules, first, 1 << 15, np.random.default_rng(SEED))
    ends = [0, *(np.flatnonzero(np.diff(chunk.answers)) + 1).tolist(), chunk.answers.size]
    assert len(ends) > 4
    for begin, end in pairwise(ends):
        answers = chunk.answers.copy()
        answers[begin:end] ^= 0x40
        assert not chunk.says(answers)


def test_what_is_left_to_grading_never_passes() -> None:
    chunk = Chunk(DENSE["onnx-cast:13/float32/float16"], 0, 100, np.random.default_rng(SEED))
    assert chunk.says(chunk.answers)
    kinds = np.full_like(chunk.table.kinds, GRADED)
    chunk.table = replace(chunk.table, kinds=kinds)
    assert not chunk.says(chunk.answers)


def test_no_shipped_ruling_is_left_to_grading() -> None:
    assert not [name for name, rules in DENSE.items() if (table(rules).kinds == GRADED).any()]


def test_a_row_cares_for_nothing_where_anything_is_allowed() -> None:
    # CINN's integers: a value where it is whole, and anything between two of these.
    known = table(ruling(case_named("cinn-cast:1.0/float32/int32")))
    assert {*known.cares[0].tolist()} == {0, 0xFFFF_FFFF}
    whole = table(ruling(case_named("onnx-cast:13/float32/int32")))
    assert {*whole.cares.ravel().tolist()} == {0xFFFF_FFFF}


STEPS: dict[str, tuple[list[Step], int]] = {
    "one rise": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 0, 6, 6, 2, 6, 6, 2)], 0),
    "two rises": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 0, 6, 6, 1, 6, 6, 1)], GRADED),
    "a range": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 0, 6, 7, 2, 6, 7, 2)], GRADED),
    "a code and anything": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 1, 0, 255, 0, 0, 255, 0)], 0),
    "only anything": (
        [Step(0, 0, 0, 255, 0, 0, 255, 0), Step(1, 1, 0, 255, 0, 0, 255, 0)],
        ANYTHING,
    ),
}


@pytest.mark.parametrize("what", STEPS)
def test_what_steps_make_a_row(what: str) -> None:
    steps, kind = STEPS[what]
    assert Rows(255, np.dtype(np.uint8)).kind(1, np.array(steps, STEP)) == kind


def test_all_kinds_of_segments_are_met() -> None:
    kinds = {min(int(kind), 0) for rules in DENSE.values() for kind in set(table(rules).kinds)}
    assert kinds >= {CODE, RANGES, ANYTHING, 0}


def test_answers_may_be_read_only() -> None:
    chunk = Chunk(DENSE["onnx-cast:13/float32/float16"], 0x5000_0000, 256, np.random.default_rng(0))
    chunk.answers.flags.writeable = False
    assert chunk.says(chunk.answers)
