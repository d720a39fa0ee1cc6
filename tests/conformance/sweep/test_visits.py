"""Visits give every input once and in order, with any cuts, and visit every step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from conformance.families.cast.breakpoints import breakpoints
from oracles.reference import expect_by_kernels, sweep_inputs
from oracles.reference.staircase import stretches
from oracles.reference.sweep_inputs import (
    SAMPLE,
    Dense,
    InputSequence,
    Sample,
    StepPatterns,
    input_sequence,
    sequence_kinds,
)
from specs.branches import Ruling
from specs.formats import format_named
from tests.reference.distinct import numeric_rulings
from tests.search import examples

SEED = 20_261_125
MARGIN = 1_500


def rulings_of(pair: str) -> list[Ruling]:
    """All rulings of a pair that are swept together; those that refuse inputs ask them singly."""
    return [
        rules
        for name, rules in numeric_rulings().items()
        if f"/{pair}/" in f"/{name}/" and not rules.is_open and not rules.refuses_some
    ]


def steps_of(pair: str) -> StepPatterns:
    return StepPatterns(rulings_of(pair))


def filled(chosen: InputSequence, at: int, size: int) -> NDArray[np.uint64]:
    buffer = np.zeros(size, np.uint64)
    chosen.fill(buffer, at)
    return buffer


VISITS: dict[str, Callable[[], InputSequence]] = {
    "dense": lambda: Dense(1 << 32),
    "sample": lambda: Sample(format_named("float64"), (SEED, 1)),
    "small sample": lambda: Sample(format_named("uint64"), (SEED, 2), 1 << 10),
    "float64 to int4": partial(steps_of, "float64/int4"),
    "float64 to float32": partial(steps_of, "float64/float32"),
    "float64 to float8e8m0": partial(steps_of, "float64/float8e8m0"),
    "int64 to float32": partial(steps_of, "int64/float32"),
    "uint64 to bfloat16": partial(steps_of, "uint64/bfloat16"),
    "int64 to uint64": partial(steps_of, "int64/uint64"),
    "uint64 to bool": partial(steps_of, "uint64/bool"),
}


@cache
def visit(name: str) -> InputSequence:
    return VISITS[name]()


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("name", VISITS)
@given(data=st.data())
@examples(60)
def test_inputs_rise_and_do_not_depend_on_how_they_are_cut(name: str, data: st.DataObject) -> None:
    chosen = visit(name)
    size = data.draw(st.integers(1, min(3_000, chosen.size)))
    at = data.draw(st.integers(0, chosen.size - size) | st.just(chosen.size - size))
    whole = filled(chosen, at, size)
    assert (whole[1:] > whole[:-1]).all()
    edges = [0, *sorted(data.draw(st.sets(st.integers(1, size), max_size=4))), size]
    parts = [
        filled(chosen, at + begin, end - begin) for begin, end in pairwise(edges) if end > begin
    ]
    assert np.array_equal(np.concatenate(parts), whole)


def test_past_the_last_step_the_last_is_repeated() -> None:
    chosen = steps_of("uint64/bool")
    buffer = filled(chosen, chosen.size - 2, 5)
    assert buffer[0] < buffer[1]
    assert buffer[1:].tolist() == [(1 << 64) - 1] * 4


def test_what_is_filled_is_in_the_sources_storage() -> None:
    buffer = np.zeros(3, np.uint32)
    Dense(1 << 32).fill(buffer, (1 << 32) - 3)
    assert buffer.tolist() == [(1 << 32) - 3, (1 << 32) - 2, (1 << 32) - 1]


def visited(chosen: StepPatterns, lo: int, hi: int) -> list[int]:
    """The inputs of a visit from ``lo`` to before ``hi``."""
    begin, end = (
        bisect_left(range(chosen.size), edge, key=lambda at: int(filled(chosen, at, 1)[0]))
        for edge in (lo, hi)
    )
    return filled(chosen, begin, end - begin).tolist() if end > begin else []


def changes(rules: Ruling, inputs: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether the allowed answers differ from those of the pattern before."""
    expected = expect_by_kernels.expect(rules, inputs)
    columns = (expected.branch_indices, expected.codes, expected.others)
    return np.any([column[1:] != column[:-1] for column in columns], axis=0)


def windows(pair: str, chance: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Some thousand patterns around a few steps and around where stretches begin."""
    source, target = map(format_named, pair.split("/"))
    parts = stretches(source, target)
    cuts = [part.first for part in parts if part.shift] + [part.last for part in parts]
    points = [0, *chance.choice(np.array(cuts, np.uint64), 12).tolist(), source.mask]
    if target.bits < 64:
        codes = chance.integers(1, target.max_code, 8, np.uint64, endpoint=True).tolist()
        points += breakpoints(source, target, [1, target.max_code, *codes]).tolist()[::5]
    for point in points:
        yield max(1, point - MARGIN), min(source.mask, point + MARGIN)


PAIRS = (
    "float64/int4",
    "float64/float32",
    "float64/float16",
    "int64/float32",
    "float64/int32",
    "float64/int64",
    "float64/float4e2m1",
    "float64/float8e8m0",
    "float64/uint2",
    "uint64/bfloat16",
    "int64/float64",
    "uint64/float4e2m1",
)


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("pair", PAIRS)
def test_the_inputs_below_at_and_above_each_step_are_visited(pair: str) -> None:
    rulings, chosen = rulings_of(pair), steps_of(pair)
    reached = 0
    for lo, hi in windows(pair, np.random.default_rng(SEED)):
        inputs = np.arange(lo - 1, hi + 1, dtype=np.uint64)
        here = np.any([changes(rules, inputs) for rules in rulings], axis=0)
        begins = [lo + place for place in np.flatnonzero(here).tolist()]
        near = {begin + step for begin in begins for step in (-1, 0, 1)}
        inside = {code for code in near if lo <= code < hi}
        assert inside - set(visited(chosen, lo, hi)) == set(), (hex(lo), len(inside))
        reached += len(begins)
    assert reached >= 3


def test_a_walk_sees_a_step_that_is_not_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    original = sweep_inputs._points
    monkeypatch.setattr(sweep_inputs, "_points", lambda steps: original(steps)[:1])
    with pytest.raises(AssertionError, match="0x"):
        test_the_inputs_below_at_and_above_each_step_are_visited("float64/int4")


def test_of_too_many_steps_those_at_both_ends_are_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = 1 << 10
    monkeypatch.setattr(sweep_inputs, "END_PERIODS", kept)
    rules = next(rules for rules in rulings_of("int64/float64") if not rules.open_branches)
    chosen = StepPatterns([rules])
    part = next(part for part in stretches(rules.source, rules.target) if part.first == 1 << 61)
    found = visited(chosen, part.first, part.last + 1)
    assert (found[0], found[-1]) == (part.first, part.last)
    periods = sorted({code - part.first >> part.shift for code in found})
    last = part.last - part.first >> part.shift
    # If no step begins at the start of its period, one more period is visited.
    near = bisect_left(periods, last // 2)
    assert near in (kept, kept + 1)
    assert periods[:near] == list(range(near))
    assert periods[near:] == list(range(last + 1 - len(periods[near:]), last + 1))
    assert len(periods) - near in (kept, kept + 1)


@pytest.mark.parametrize("size", [1 << 10, SAMPLE])
def test_the_sample_has_one_pattern_of_each_equal_part(size: int) -> None:
    source = format_named("int64")
    for at in (0, 17, size - 500):
        found = filled(Sample(source, (SEED, 3), size), at, 500)
        parts = found // np.uint64((1 << 64) // size)
        assert parts.tolist() == list(range(at, at + 500))
    inside = found % np.uint64((1 << 64) // size)
    assert np.unique(inside).size == 500
    assert inside.max() > (1 << 63) // size > inside.min()


def test_the_sample_depends_on_the_seed_and_the_pair_alone() -> None:
    float64, float32, int64 = map(format_named, ("float64", "float32", "int64"))

    def sampled(*given: Any) -> list[int]:
        source, target, seed = given
        return filled(input_sequence("sample", source, target, [], seed), 12_345, 100).tolist()

    first = sampled(float64, float32, 7)
    assert first == sampled(float64, float32, 7)
    for other in ((float64, float32, 8), (float64, int64, 7), (int64, float32, 7)):
        found = sampled(*other)
        assert sum(one == another for one, another in zip(first, found, strict=True)) < 3


def test_ways_of_visiting() -> None:
    int4, float32, float64 = map(format_named, ("int4", "float32", "float64"))
    assert sequence_kinds(float32) == ("dense",)
    assert sequence_kinds(float64) == ("steps", "sample")
    assert input_sequence("dense", float32, float64, [], 0) == Dense(1 << 32)
    assert input_sequence("sample", float64, float32, [], 0).size == 1 << 30
    assert isinstance(
        input_sequence("steps", float64, int4, rulings_of("float64/int4"), 0), StepPatterns
    )
