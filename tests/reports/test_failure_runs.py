"""Runs equal those of a plain walk over the answers: cut anywhere, capped, in every column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from reports.grading import failure_runs
from reports.grading.chunk_comparison import chunk_comparison
from reports.grading.failure_runs import Runs, gather
from tests.reports.common import NO_RUNS

GradedAnswers = tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]
"""Inputs in rising order, their answers, and the group of each: 0 if the answer is allowed."""

COMPARISONS = [chunk_comparison(compiled=False)]
with suppress(ImportError):
    COMPARISONS.append(chunk_comparison(compiled=True))


def gather_in_64_bits(
    inputs: NDArray[Any], answers: NDArray[Any], groups: NDArray[np.uint8]
) -> Iterator[tuple[int, Runs]]:
    """Gather by numba without compiling for each width of inputs, which takes a second."""
    return COMPARISONS[-1].gather(inputs.astype(np.uint64), answers, groups)


GATHERS = [gather, gather_in_64_bits][: len(COMPARISONS)]
IN_OWN_WIDTHS = pytest.param(COMPARISONS[-1].gather, marks=pytest.mark.nightly, id="own widths")
"""Inputs are widened where they are loaded, so that their width matters little."""


@st.composite
def graded_answers(draw: st.DrawFn) -> GradedAnswers:
    """Patterns with runs, gaps and slopes of all lengths, up to the last pattern there is."""
    storage = np.dtype(draw(st.sampled_from(["uint8", "uint16", "uint32", "uint64"])))
    largest = int(np.iinfo(storage).max)
    code = draw(st.sampled_from([0, largest // 2, largest - 40]))
    inputs, answers, groups = [], [], []
    answer = draw(st.integers(0, (1 << 64) - 1))
    for _ in range(draw(st.integers(0, 8))):
        code += draw(st.sampled_from([0, 0, 1, 9]))
        group = draw(st.sampled_from([0, 1, 2, 2, 255]))
        rise = draw(st.sampled_from([0, 0, 1, 2, -1, 1 << 63]))
        for _ in range(draw(st.integers(1, 5))):
            if code <= largest:
                inputs.append(code)
                answers.append(answer)
                groups.append(group)
            code, answer = code + 1, (answer + rise) % (1 << 64)
    return np.array(inputs, storage), np.array(answers, np.uint64), np.array(groups, np.uint8)


def walk(data: GradedAnswers, rises: Callable[[Any, Any], int]) -> dict[int, list[tuple[Any, ...]]]:
    """The runs of each group, gathered input by input: every column of ``Runs``."""
    runs: dict[int, list[list[tuple[Any, Any]]]] = {}
    before = None
    for code, answer, group in zip(*(column.tolist() for column in data), strict=True):
        if group and before == (group, code if isinstance(code, str) else code - 1):
            runs[group][-1].append((code, answer))
        elif group:
            runs.setdefault(group, []).append([(code, answer)])
        before = (group, code) if group else None
    return {group: [run_row(run, rises) for run in found] for group, found in runs.items()}


def run_row(run: list[tuple[Any, Any]], rises: Callable[[Any, Any], int]) -> tuple[Any, ...]:
    slopes = [rises(one[1], after[1]) for one, after in pairwise(run)]
    slope = slopes[0] if slopes else 0
    return run[0][0], run[-1][0], run[0][1], run[-1][1], slope, len(set(slopes)) <= 1


def signed_difference(one: int, after: int) -> int:
    """A difference of 64-bit words as a signed integer."""
    rise = (after - one) % (1 << 64)
    return rise - (1 << 64) if rise >> 63 else rise


def run_rows(runs: Runs) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in runs.columns), strict=True))


def same(one: Runs, other: Runs) -> bool:
    columns = zip(one.columns, other.columns, strict=True)
    alike = all(np.array_equal(a, b) and (a.dtype == b.dtype or not a.size) for a, b in columns)
    return alike and (one.total, one.checksum) == (other.total, other.checksum)


def runs_of_part(data: GradedAnswers, group: int, begin: int, end: int) -> Runs:
    """The runs of one group in a part of the inputs."""
    inputs, answers, groups = (column[begin:end] for column in data)
    return dict(gather(inputs, answers, groups)).get(group, NO_RUNS)


@pytest.mark.parametrize("gather_variant", [*GATHERS, IN_OWN_WIDTHS])
@given(graded_answers())
def test_gather_finds_the_same_runs_as_a_walk(gather_variant: Any, data: GradedAnswers) -> None:
    found = dict(gather_variant(*data))
    assert {group: run_rows(runs) for group, runs in found.items()} == walk(data, signed_difference)
    assert all(runs.total == len(run_rows(runs)) for runs in found.values())
    whole = dict(gather(*data))
    assert all(same(runs, whole[group]) for group, runs in found.items())


@given(st.integers(0, (1 << 64) - 100), st.integers(1, 100), st.integers(0, (1 << 64) - 1))
def test_the_checksum_of_a_row_is_that_of_its_run(first: int, count: int, answer: int) -> None:
    inputs = np.arange(first, first + count, dtype=np.uint64)
    [(_, run)] = gather(inputs, np.full(count, answer, np.uint64), np.ones(count, np.uint8))
    for comparison in COMPARISONS:
        assert comparison.checksum_of_row(first, count, answer) == run.checksum


@given(graded_answers().filter(lambda data: data[2].any()), st.data())
def test_another_answer_anywhere_gives_another_checksum(
    data: GradedAnswers, choice: st.DataObject
) -> None:
    inputs, answers, groups = data
    at = choice.draw(st.sampled_from(np.flatnonzero(groups).tolist()))
    changed = answers.copy()
    changed[at] ^= np.uint64(choice.draw(st.integers(1, (1 << 64) - 1)))
    group = int(groups[at])
    for gather_variant in GATHERS:
        before = dict(gather_variant(inputs, answers, groups))
        after = dict(gather_variant(inputs, changed, groups))
        assert after.pop(group).checksum != before.pop(group).checksum
        assert {key: runs.checksum for key, runs in after.items()} == {
            key: runs.checksum for key, runs in before.items()
        }


@given(
    graded_answers(), st.lists(st.integers(0, 40), max_size=4), st.sampled_from([1, 2, 3, 1 << 16])
)
def test_joining_the_runs_of_parts_gives_the_runs_of_the_whole(
    data: GradedAnswers, cuts: list[int], kept: int
) -> None:
    size = data[0].size
    edges = [0, *sorted(min(cut, size) for cut in cuts), size]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failure_runs, "MOST_RUNS", kept)
        for gather_variant in GATHERS:
            for group, whole in gather_variant(*data):
                parts = [runs_of_part(data, group, begin, end) for begin, end in pairwise(edges)]
                forward = reduce(Runs.joined, parts)
                backward = reduce(lambda later, one: one.joined(later), reversed(parts))
                assert same(forward, whole)
                assert same(backward, whole)


@given(graded_answers(), st.integers(1, 4))
def test_the_cap_keeps_the_first_runs_and_the_last_and_counts_all(
    data: GradedAnswers, kept: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failure_runs, "MOST_RUNS", kept)
        for gather_variant in GATHERS:
            found = dict(gather_variant(*data))
            for group, all_rows in walk(data, signed_difference).items():
                runs = found[group]
                assert runs.total == len(all_rows)
                capped = all_rows[:kept] + all_rows[kept:][-1:]
                assert run_rows(runs) == capped
                assert run_rows(runs.listed) == all_rows[:kept]
                assert runs.listed.total == len(all_rows)


TEXTS = st.lists(st.sampled_from(["1", "2", "inf"]), min_size=1, max_size=9)


@given(TEXTS, st.data())
def test_each_text_input_is_a_run_of_its_own(texts: list[str], data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(texts), max_size=len(texts)))
    given_texts = np.array(texts, object)
    answers = np.arange(len(texts), dtype=np.uint16)
    expected = [
        (text, text, at, at, 0, True)
        for at, (text, group) in enumerate(zip(texts, groups, strict=True))
        if group
    ]
    columns = (given_texts, answers, np.array(groups, np.uint8))
    found = runs_of_part(columns, 1, 0, len(texts))
    assert run_rows(found) == expected
    cut = data.draw(st.integers(0, len(texts)))
    joined = runs_of_part(columns, 1, 0, cut).joined(runs_of_part(columns, 1, cut, len(texts)))
    assert same(joined, found)


@given(TEXTS, st.integers(0, 9))
def test_the_slope_of_text_answers_says_whether_they_change(texts: list[str], cut: int) -> None:
    size = len(texts)
    inputs = np.arange(7, 7 + size, dtype=np.uint32)
    data = (inputs, np.array(texts, object), np.ones(size, np.uint8))
    known = walk(data, lambda one, after: int(one != after))
    found = runs_of_part(data, 1, 0, size)
    assert run_rows(found) == known[1]
    assert same(
        runs_of_part(data, 1, 0, min(cut, size)).joined(runs_of_part(data, 1, cut, size)), found
    )


def test_patterns_of_128_bits_are_stored_as_integers() -> None:
    codes = [1, 2, 1 << 64, (1 << 127) + 5]
    raw = b"".join(code.to_bytes(16, "little") for code in codes)
    inputs = np.frombuffer(raw, "V16")
    [(group, found)] = gather(inputs, inputs[::-1], np.array([1, 1, 0, 1], np.uint8))
    assert group == 1
    assert found.first.tolist() == found.last.tolist() == [1, 2, (1 << 127) + 5]
    assert found.answer.tolist() == [(1 << 127) + 5, 1 << 64, 1]


@pytest.mark.parametrize("gather_variant", GATHERS)
def test_runs_of_alternating_and_of_all_answers(
    gather_variant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_runs, "MOST_RUNS", 1000)
    size = 10_001
    inputs = np.arange((1 << 64) - size, 1 << 64, dtype=np.uint64)
    answers = inputs * np.uint64(3)
    [(_, alternating)] = gather_variant(
        inputs, answers, (np.arange(size) % 2 == 0).astype(np.uint8)
    )
    assert alternating.total == 5_001
    assert alternating.first.size == 1_001
    assert int(alternating.last[-1]) == (1 << 64) - 1
    [(_, one)] = gather_variant(inputs, answers, np.ones(size, np.uint8))
    assert run_rows(one) == [
        ((1 << 64) - size, (1 << 64) - 1, int(answers[0]), int(answers[-1]), 3, True)
    ]
    assert list(gather_variant(inputs, answers, np.zeros(size, np.uint8))) == []
    assert list(gather_variant(inputs[:0], answers[:0], np.zeros(0, np.uint8))) == []


def test_long_runs_are_the_same_in_both_forms() -> None:
    """The compiled form compares long runs block by block."""
    chance = np.random.default_rng(5)
    lengths = [1, 31, 32, 33, 1023, 1055, 1056, 1057, 1058, 5000, 2, 2080]
    for seed in range(20):
        chance.shuffle(lengths)
        size = sum(lengths)
        inputs = np.cumsum(1 + (chance.random(size) < seed / 20_000)).astype(np.uint32)
        groups = np.repeat(chance.integers(0, 3, len(lengths)), lengths).astype(np.uint8)
        answers = np.repeat(chance.integers(0, 3, len(lengths)), np.roll(lengths, 1))
        answers = answers.astype(np.uint16)
        one, *others = [dict(each.gather(inputs, answers, groups)) for each in COMPARISONS]
        assert all(same(runs, other[group]) for other in others for group, runs in one.items())
