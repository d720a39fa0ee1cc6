"""Stretches partition every source, and staircases allow what the kernels compute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import expect_by_kernels
from oracles.reference.staircase import Staircase, staircase, stretches
from specs.formats import Format, formats
from specs.outcomes import Anything, Exactly, Nan
from tests.reference.distinct import numeric_rulings

NUMERIC = [form for form in formats().values() if form.is_numeric]
RANDOM_PATTERNS = 3_000
SEED = 20_261_122


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("source", NUMERIC, ids=lambda form: form.name)
def test_stretches_partition_the_source(source: Format) -> None:
    for target in NUMERIC:
        parts = stretches(source, target)
        assert (parts[0].first, parts[-1].last) == (0, source.mask), target.name
        assert [b.first for b in parts[1:]] == [a.last + 1 for a in parts[:-1]], target.name
        for part in parts:
            assert part.first <= part.last, target.name
            assert part.offsets[0] == 0, target.name
            assert all(here < after for here, after in pairwise(part.offsets)), target.name
            assert part.offsets[-1] < 1 << part.shift, target.name


def expanded(stairs: Staircase, inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Per input the branch's index and both ranges, read off the staircase step by step."""
    patterns = inputs.astype(np.uint64)
    stretch = stairs.stretches[np.searchsorted(stairs.stretches["first"], patterns, "right") - 1]
    inside = patterns - stretch["first"]
    periods = inside >> stretch["shift"]
    offset = inside - (periods << stretch["shift"])
    found = stretch["begin"].copy()
    for nth in range(1, int((stretch["end"] - stretch["begin"]).max())):
        step = stretch["begin"] + nth
        step = np.where(step < stretch["end"], step, stretch["begin"])
        found = np.where(stairs.steps["offset"][step] <= offset, np.maximum(step, found), found)
    steps = stairs.steps[found]
    mask = np.uint64(stairs.ruling.target.mask)
    lift, other_lift = periods * steps["rise"], periods * steps["other_rise"]
    return {
        "branch_index": steps["branch_index"],
        "low": (steps["low"] + lift) & mask,
        "high": (steps["high"] + lift) & mask,
        "other_low": (steps["other_low"] + other_lift) & mask,
        "other_high": (steps["other_high"] + other_lift) & mask,
    }


def computed(stairs: Staircase, inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Per input the branch's index and both ranges, by the kernels."""
    rules = stairs.ruling
    expected = expect_by_kernels.expect(rules, inputs)
    codes, others = expected.codes.astype(np.uint64), expected.others.astype(np.uint64)
    columns = {"low": codes, "high": codes.copy(), "other_low": others, "other_high": others.copy()}
    for branch_index, branch in enumerate(rules.branches):
        match branch.strictest:
            case Exactly(code=code):
                ranges = [range(code, code + 1)]
            case Anything():
                ranges = [range(rules.target.mask + 1)]
            case Nan(sign=sign):
                ranges = list(rules.target.nans(sign))
            case _:
                continue
        ends = (ranges[0][0], ranges[0][-1], ranges[-1][0], ranges[-1][-1])
        for column, end in zip(columns.values(), ends, strict=True):
            column[expected.branch_indices == branch_index] = end
    return {"branch_index": expected.branch_indices, **columns}


def disagreements(stairs: Staircase, inputs: NDArray[Any]) -> list[str]:
    """The columns in which staircase and kernels differ, each with the first such input."""
    by_steps, by_kernels = expanded(stairs, inputs), computed(stairs, inputs)
    return [
        f"{name} at {int(inputs[np.flatnonzero(by_steps[name] != by_kernels[name])[0]]):#x}"
        for name in by_steps
        if (by_steps[name] != by_kernels[name]).any()
    ]


@pytest.mark.ci_runs_one_of(40)
@pytest.mark.parametrize("name", numeric_rulings())
def test_staircase_and_kernels_agree(name: str) -> None:
    rules = numeric_rulings()[name]
    stairs = staircase(rules)
    inputs = quick_inputs(rules.source.name, rules.target.name, SEED, RANDOM_PATTERNS)
    if rules.source.bits <= 16:
        assert inputs.size == 1 << rules.source.bits
    else:
        assert inputs.size > RANDOM_PATTERNS
        assert disagreements(stairs, inputs_near_steps(stairs)) == []
    assert disagreements(stairs, inputs) == []


def inputs_near_steps(stairs: Staircase) -> NDArray[Any]:
    """The offsets at which answers may change and their neighbors, in five periods of each stretch.

    They come from the pair, not from the staircase, so that a missing step is noticed as well.
    """
    rules = stairs.ruling
    found: set[int] = set()
    for part in stretches(rules.source, rules.target, rules.on_the_way):
        last = part.last - part.first >> part.shift
        for period in (0, 1, last // 3, last - 1, last):
            start = part.first + (period << part.shift)
            found.update(start + offset + step for offset in part.offsets for step in (-1, 0, 1))
    return np.array(
        sorted(code for code in found if 0 <= code <= rules.source.mask), rules.source.storage
    )


def planted(stairs: Staircase, at: int, **changes: int) -> Staircase:
    """The staircase with numbers added to fields of one step (modulo the target's patterns)."""
    steps = stairs.steps.copy()
    for name, rise in changes.items():
        steps[name][at] = int(steps[name][at]) + rise & stairs.ruling.target.mask
    return replace(stairs, steps=steps)


def faults(stairs: Staircase) -> Iterator[tuple[str, int, Staircase]]:
    """Plant, in every tenth step, each kind of fault that changes the answers allowed somewhere."""
    for stretch in stairs.stretches:
        for at in range(int(stretch["begin"]), int(stretch["end"])):
            if at % 10:
                continue
            yield "code", at, planted(stairs, at, low=1, high=1)
            yield "other code", at, planted(stairs, at, other_low=1, other_high=1)
            yield "end", at, planted(stairs, at, high=1)
            yield "branch_index", at, planted(stairs, at, branch_index=1)
            if stairs.steps["offset"][at] > 0:
                for move in (-1, 1):
                    steps = stairs.steps.copy()
                    steps["offset"][at] = int(steps["offset"][at]) + move
                    yield "offset", at, replace(stairs, steps=steps)
            periods = (int(stretch["last"]) - int(stretch["first"]) >> int(stretch["shift"])) + 1
            if periods > 2:
                yield "rise", at, planted(stairs, at, rise=1)
                yield "other rise", at, planted(stairs, at, other_rise=1)


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize(
    "name",
    [
        "onnx-cast:19/float16/float8e4m3fn/saturate:1",
        "onnx-cast:13/float32/float16",
        "pypto-cast:seed/float16/int8/mode:CAST_RINT",
        "onnx-cast:13/int64/float32",
    ],
)
def test_a_wrong_step_is_noticed(name: str) -> None:
    rules = numeric_rulings()[name]
    stairs = staircase(rules)
    inputs = inputs_near_steps(stairs)
    kinds = set()
    for kind, at, wrong in faults(stairs):
        assert disagreements(wrong, inputs) != [], (kind, at)
        kinds.add(kind)
    assert {"code", "end", "branch_index", "offset", "rise"} <= kinds
