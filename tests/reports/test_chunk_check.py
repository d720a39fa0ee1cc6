"""The pre-check of a chunk passes no wrong answer, and fails only where it must."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from oracles.reference import expect_by_kernels
from oracles.reference.staircase import STEP, Step
from reports.grading.allowed_answers import grade_answers
from reports.grading.chunk_check_torch import DeviceCheck
from reports.grading.chunk_comparison import chunk_comparison, fastest_comparison
from reports.grading.chunk_table import (
    ANYTHING,
    CODE,
    NEEDS_GRADING,
    RANGES,
    ROW,
    Rows,
    Table,
    table,
)
from specs.branches import Ruling
from specs.ruling import ruling
from specs.selection import case_named
from tests.reference.distinct import numeric_rulings
from tests.reports.test_staircase_grades import right_answers
from tests.search import examples

pytest.importorskip("numba", reason="needs numba: the extra `fast`")

DENSE = {name: rules for name, rules in numeric_rulings().items() if rules.source.bits == 32}
LENGTHS = (1, 2, 3, 1000, 1025, 4999, 5000)
END = 1 << 32
STEP_AHEAD = 77
SEED = 20_261_124
HAS_TORCH = find_spec("torch") is not None


def passes(compiled: bool, layout: Table, first: int, answers: NDArray[Any]) -> bool:
    check = chunk_comparison(compiled).check_of(layout)
    inputs = np.arange(answers.size, dtype=np.uint32)
    results = {check(first, answers, None, 0), check(first, answers, inputs, STEP_AHEAD)}
    assert (inputs == np.arange(STEP_AHEAD, STEP_AHEAD + answers.size)).all()
    [result] = results
    return result


WIDTHS = (2, 8)
"""Bytes of the answers that are checked by numba too, which takes seconds to compile for a width.

Numba computes narrower answers in 64 bits unless they are cut, so that 2 bytes stand for 1 and 4.
"""
ALL_WIDTHS = pytest.param((1, 2, 4, 8), marks=pytest.mark.nightly, id="all widths")


def passes_on_device(layout: Table, first: int, answers: NDArray[Any]) -> bool:
    """Check the same answers as a torch tensor; the CPU stands in for the device."""
    torch: Any = importlib.import_module("torch")
    signed = answers.copy().view(f"i{answers.itemsize}")
    return DeviceCheck(layout).all_right(first, torch.from_numpy(signed))


class Chunk:
    """Consecutive inputs with answers that are all allowed."""

    def __init__(
        self,
        rules: Ruling,
        first: int,
        size: int,
        chance: np.random.Generator,
        widths: tuple[int, ...] = WIDTHS,
    ) -> None:
        self.rules, self.table, self.widths = rules, table(rules), widths
        self.first = max(0, min(first, END - size))
        self.inputs = (self.first + np.arange(size, dtype=np.uint64)).astype(np.uint32)
        self.expected = expect_by_kernels.expect(rules, self.inputs)
        self.answers = right_answers(rules, self.expected, chance).astype(rules.target.storage)
        begin, end = np.searchsorted(self.table.firsts, self.inputs[[0, -1]], "right").tolist()
        self.segments = range(begin - 1, end)

    @property
    def needs_grading(self) -> bool:
        return bool((self.table.kinds[list(self.segments)] == NEEDS_GRADING).any())

    @property
    def segment_ends(self) -> list[int]:
        """The index of the first and the last input of every segment."""
        starts = [int(self.table.firsts[number]) - self.first for number in self.segments[1:]]
        return [0, *starts, *(start - 1 for start in starts), self.inputs.size - 1]

    def passes(self, answers: NDArray[Any]) -> bool:
        """Whether the pre-check passes; its implementations must agree."""
        variants = (False, True) if answers.itemsize in self.widths else (False,)
        results = {passes(compiled, self.table, self.first, answers) for compiled in variants}
        assert len(results) == 1, f"numpy and numba differ from {self.first:#x} on"
        [result] = results
        if HAS_TORCH:
            on_device = passes_on_device(self.table, self.first, answers)
            assert on_device == result, f"torch differs from {self.first:#x} on"
        return result

    def is_wrong(self, at: int, answers: NDArray[Any]) -> bool:
        """Whether one answer is wrong by the quick tier's comparison, or exceeds the target."""
        one = slice(at, at + 1)
        if answers[at] > self.rules.target.mask:
            return True
        expected = self.expected.at(np.array([at]))
        return bool(grade_answers(self.rules, self.inputs[one], expected, answers[one])[0])

    def count_noticed(self, flips: Iterable[tuple[int, int]]) -> int:
        """Flip one bit (index, bit) at a time; the pre-check must fail where that makes it wrong.

        Returns how many flips made an answer wrong, and were noticed.
        """
        can_pass = not self.needs_grading
        assert self.passes(self.answers) == can_pass, hex(self.first)
        noticed = 0
        for at, bit in flips:
            answers = self.answers.copy()
            answers[at] ^= answers.dtype.type(1 << bit)
            wrong = self.is_wrong(at, answers)
            assert self.passes(answers) == (can_pass and not wrong), (hex(self.first), at, bit)
            noticed += wrong and can_pass
        return noticed


def chunk_starts(layout: Table, size: int, chance: np.random.Generator) -> list[int]:
    """Starts of chunks: both ends of the source, and around and in a segment of every kind."""
    found = [0, END - size]
    for kind in (CODE, RANGES, ANYTHING, NEEDS_GRADING, None):
        of_kind = np.flatnonzero(layout.kinds == kind if kind is not None else layout.kinds >= 0)
        if of_kind.size:
            number = int(chance.choice(of_kind))
            start = int(layout.firsts[number])
            end = int(layout.firsts[number + 1]) if number + 1 < layout.firsts.size else END
            found += [start - int(chance.integers(0, size)), int(chance.integers(start, end))]
    return found


@pytest.mark.ci_runs_one_of(64)
@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("widths", [WIDTHS, ALL_WIDTHS], ids=str)
def test_an_answer_made_wrong_by_a_flipped_bit_never_passes(
    name: str, widths: tuple[int, ...]
) -> None:
    rules, chance = DENSE[name], np.random.default_rng(SEED)
    bits = 8 * np.dtype(rules.target.storage).itemsize
    noticed = 0
    for size in LENGTHS:
        for start in chunk_starts(table(rules), size, chance):
            chunk = Chunk(rules, start, size, chance, widths)
            indices = sorted({*chunk.segment_ends, int(chance.integers(0, size))})
            if len(indices) > 8:
                indices = [*indices[:2], *chance.choice(indices, 4).tolist(), *indices[-2:]]
            noticed += chunk.count_noticed((at, int(chance.integers(0, bits))) for at in indices)
    assert noticed or rules.is_open


NAMES = st.sampled_from([*DENSE])


@pytest.mark.parametrize("widths", [WIDTHS, ALL_WIDTHS], ids=str)
@given(NAMES, st.data())
@examples(60)
def test_flipped_bits_are_noticed_in_any_chunk(
    widths: tuple[int, ...], name: str, data: st.DataObject
) -> None:
    rules = DENSE[name]
    layout = table(rules)
    size = data.draw(st.sampled_from(LENGTHS) | st.integers(1, 3 * ROW))
    number = data.draw(st.integers(0, layout.firsts.size - 1))
    start = int(layout.firsts[number]) + data.draw(st.integers(-size, 3 * ROW))
    chance = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    chunk = Chunk(rules, start, size, chance, widths)
    bits = 8 * np.dtype(rules.target.storage).itemsize
    indices = st.sampled_from(chunk.segment_ends) | st.integers(0, size - 1)
    flips = st.lists(st.tuples(indices, st.integers(0, bits - 1)), max_size=4)
    chunk.count_noticed(data.draw(flips))


@pytest.mark.parametrize(
    ("name", "first", "indices", "bit"),
    [
        ("onnx-cast:13/float32/float16", 0x5000_0000, range(256), 0),
        ("onnx-cast:13/int32/float16", 0x8000, range(77, 6 * ROW, ROW), 0),
        ("openvino-convert:1/float32/int32", 0x4A00_0000, range(7, ROW + 256, 5), 1),
        ("webnn-cast:draft/int32/float32", 0x8000_0000, range(64, 2 * ROW, 128), 1),
    ],
)
def test_every_answer_of_a_chunk_is_checked(
    name: str, first: int, indices: range, bit: int
) -> None:
    # Constant answers; a repeating row, of which four are compared at once, then the rest; and rows
    # that allow two neighboring codes for fractions or ties, but neither with that bit flipped.
    chunk = Chunk(DENSE[name], first, indices.stop, np.random.default_rng(SEED))
    assert chunk.count_noticed((at, bit) for at in indices) == len(indices)


def test_the_code_after_the_last_is_the_first() -> None:
    # All answers but those with a bit beyond the target, of which the next code is an allowed one.
    rows = Rows(15, np.dtype(np.uint8))
    either = [Step(0, 0, 14, 14, 1, 15, 15, 1), Step(1, 0, 0, 0, 1, 15, 15, 1)]
    assert rows.add(1, np.array(either, STEP)) == 0
    columns = (np.array(each, np.uint8) for each in (rows.codes, rows.cares))
    layout = replace(
        table(ruling(case_named("onnx-cast:25/int32/int4"))),
        firsts=np.zeros(1, np.uint64),
        kinds=np.zeros(1, np.int32),
        bounds=np.array([[0], [15], [0], [15]], np.uint8),
        rows=next(columns),
        cares=next(columns),
        rises=np.array(rows.rises, np.uint8),
        slopes=np.array(rows.slopes, np.uint8),
    )
    allowed = [[14, 15], [15, 0], [15, 0], [0, 1], [0, 1], [1, 2]]
    for at, codes in enumerate(allowed):
        for answer in range(256):
            answers = np.array([each[0] for each in allowed], np.uint8)
            answers[at] = answer
            results = {passes(compiled, layout, 0, answers) for compiled in (False, True)}
            if HAS_TORCH:
                results.add(passes_on_device(layout, 0, answers))
            assert results == {answer in codes}, (at, answer)


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("name", ["onnx-cast:13/float32/float16", "onnx-cast:1/float32/int64"])
def test_answers_need_not_be_contiguous_or_writable(name: str) -> None:
    chunk = Chunk(DENSE[name], 0x2000, 256, np.random.default_rng(SEED))
    memory = np.zeros(2 * 256, chunk.answers.dtype)
    strided = memory[::2]
    strided.flags.writeable = False
    memory[::2] = chunk.answers
    assert chunk.passes(strided)
    memory[1::2] = 7
    assert chunk.passes(strided)
    # This answer lies beyond the memory that 256 contiguous ones would take.
    memory[400] ^= 1
    assert not chunk.passes(strided)


def test_answers_that_change_as_often_as_they_should_but_elsewhere_do_not_pass() -> None:
    rules = DENSE["onnx-cast:13/float32/float16"]
    chunk = Chunk(rules, 0x3F80_0000, 1 << 16, np.random.default_rng(SEED))
    for shift in (-1, 1):
        shifted = np.roll(chunk.answers, shift)
        shifted[[0, -1]] = chunk.answers[[0, -1]]
        assert np.count_nonzero(shifted[1:] != shifted[:-1]) == len(chunk.segments) - 1
        assert not chunk.passes(shifted)


@pytest.mark.parametrize("first", [0x3F80_0000, 0x3F80_2000])
def test_a_segment_that_is_wrong_as_a_whole_does_not_pass(first: int) -> None:
    rules = DENSE["onnx-cast:13/float32/float16"]
    chunk = Chunk(rules, first, 1 << 15, np.random.default_rng(SEED))
    ends = [0, *(np.flatnonzero(np.diff(chunk.answers)) + 1).tolist(), chunk.answers.size]
    assert len(ends) > 4
    for begin, end in pairwise(ends):
        answers = chunk.answers.copy()
        answers[begin:end] ^= 0x40
        assert not chunk.passes(answers)


def test_a_segment_that_needs_grading_never_passes() -> None:
    chunk = Chunk(DENSE["onnx-cast:13/float32/float16"], 0, 100, np.random.default_rng(SEED))
    assert chunk.passes(chunk.answers)
    kinds = np.full_like(chunk.table.kinds, NEEDS_GRADING)
    chunk.table = replace(chunk.table, kinds=kinds)
    assert not chunk.passes(chunk.answers)


@pytest.mark.nightly
def test_few_shipped_rulings_need_grading() -> None:
    """Those that refuse some numbers, and some two dozen integers beyond the range of a float.

    A sweep of a further ruling would be slower than its users expect.
    """
    graded = {name for name, rules in DENSE.items() if (table(rules).kinds == NEEDS_GRADING).any()}
    others = {name for name in graded if not DENSE[name].refused_branches}
    assert others == {
        f"stablehlo-convert:1.20/{source}/float6e3m2" for source in ("int32", "uint32")
    }


def test_a_row_compares_no_bits_where_anything_is_allowed() -> None:
    # CINN's document fixes the cast of whole values to integers, and leaves fractions open.
    partly_open = table(ruling(case_named("cinn-cast:1.0/float32/int32")))
    assert {*partly_open.cares[0].tolist()} == {0, 0xFFFF_FFFF}
    not_open = table(ruling(case_named("onnx-cast:13/float32/int32")))
    assert {*not_open.cares.ravel().tolist()} == {0xFFFF_FFFF}
    # WebNN's document leaves open to which neighbor a tie is rounded.
    rounded_up_or_down = table(ruling(case_named("webnn-cast:draft/int32/float32")))
    assert {*rounded_up_or_down.cares.ravel().tolist()} == {0xFFFF_FFFF, 0xFFFF_FFFE}


STEPS: dict[str, tuple[list[Step], int]] = {
    "one rise": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 0, 6, 6, 2, 6, 6, 2)], 0),
    "two rises": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 0, 6, 6, 1, 6, 6, 1)], NEEDS_GRADING),
    "a range": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 0, 6, 7, 2, 6, 7, 2)], NEEDS_GRADING),
    "two codes": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 0, 5, 5, 2, 6, 6, 2)], 0),
    "two codes, the next one first": ([Step(0, 0, 5, 5, 2, 4, 4, 2)], 0),
    "two codes apart": ([Step(0, 0, 5, 5, 2, 7, 7, 2)], NEEDS_GRADING),
    "two codes that rise apart": ([Step(0, 0, 5, 5, 2, 6, 6, 3)], NEEDS_GRADING),
    "a code and anything": ([Step(0, 0, 5, 5, 2, 5, 5, 2), Step(1, 1, 0, 255, 0, 0, 255, 0)], 0),
    "only anything": (
        [Step(0, 0, 0, 255, 0, 0, 255, 0), Step(1, 1, 0, 255, 0, 0, 255, 0)],
        ANYTHING,
    ),
}


@pytest.mark.parametrize("example", STEPS)
def test_which_steps_fit_into_a_row(example: str) -> None:
    steps, kind = STEPS[example]
    assert Rows(255, np.dtype(np.uint8)).add(1, np.array(steps, STEP)) == kind


def test_shipped_rulings_have_all_other_kinds_of_segments() -> None:
    missing = {CODE, RANGES, ANYTHING, 0}
    for rules in DENSE.values():
        if not (missing := missing - {min(int(kind), 0) for kind in set(table(rules).kinds)}):
            return
    pytest.fail(f"no table has {missing}")


def test_chunks_are_compared_by_numba_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numpy, numba = chunk_comparison(compiled=False), chunk_comparison(compiled=True)
    assert not numpy.gather.__module__.endswith("_numba")
    assert numba.gather.__module__.endswith("_numba")
    assert fastest_comparison() == numba
    monkeypatch.setattr("reports.grading.chunk_comparison.find_spec", lambda name: None)
    assert fastest_comparison() == numpy
