"""A sweep counts the same as a walk, with any number of rulings and any cuts."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.sweep import engine
from conformance.sweep.engine import MOST_WAITING
from conformance.sweep.plan import completed, joined
from oracles.reference import expect_by_kernels
from oracles.reference.sweep_inputs import Sample, StepPatterns
from reports.grading.allowed_answers import grade_answers
from reports.grading.chunk_check import ChunkCheck
from reports.grading.chunk_comparison import fastest_comparison
from reports.grading.divergences import simplest_between, simplicity
from reports.grading.failure_runs import gather
from reports.judgement import NEXT_SCRIPT, Judgement
from reports.problems import ChangesWithShape, WrongValues
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance.sweep.swept import (
    DENSE,
    RANGES,
    SMALL_CHUNK,
    Bound,
    Change,
    Planted,
    plain,
    raising_where_open,
    swept,
    unchanged,
)
from tests.conformance.sweep.test_visits import rulings_of
from tests.reference.distinct import numeric_rulings
from tests.reports.common import NO_RUNS
from tests.search import examples


def walked(oracle: Planted, name: str, inputs: Any) -> list[WrongValues]:
    """Find divergences by comparing each answer alone, the worst level first."""
    case = case_named(name)
    rules = ruling(case)
    expected = expect_by_kernels.expect(rules, inputs)
    answers = oracle.cast(case, inputs)
    broken = grade_answers(rules, inputs, expected, answers) > 0
    found: dict[tuple[str, str, str], Any] = {}
    for place, branch in enumerate(rules.branches):
        key = (branch.rule, branch.clause, branch.level)
        found[key] = found.get(key, False) | (broken & (expected.branch_indices == place))
    divergences = []
    for key in sorted(found, key=lambda key: (key[2] != "required", key)):
        here = found[key]
        if here.any():
            smallest = min(inputs[here].tolist(), key=lambda code: simplicity(rules.source, code))
            answer = int(answers[inputs == smallest][0])
            runs = dict(gather(inputs, answers, here.astype(np.uint8)))[1]
            divergences.append(WrongValues(*key, int(here.sum()), runs, smallest, answer, ()))
    return divergences


def assert_found(judgement: Judgement, oracle: Planted, inputs: Any) -> None:
    known = walked(oracle, judgement.case, inputs)
    assert [plain(replace(each, allowed=())) for each in judgement.divergences] == plain(
        tuple(known)
    )
    rules = ruling(case_named(judgement.case))
    places = expect_by_kernels.expect(rules, inputs).branch_indices
    assert judgement.open_inputs == np.isin(places, rules.open_branches).sum()
    assert judgement.inputs == inputs.size
    assert judgement.wrong == sum(each.count for each in known)
    level = "violates" if any(each.level == "required" for each in known) else "deviates"
    assert judgement.verdict == (level if known else "open" if rules.is_open else "conforms")
    assert all(each.allowed for each in judgement.divergences)
    assert bool(judgement.reproduction) == bool(known)


def names_of(pair: str) -> list[str]:
    wanted = set(rulings_of(pair))
    return [name for name, rules in numeric_rulings().items() if rules in wanted]


def at_random(density: int) -> Change:
    """Flip a bit, which depends on the input, of one answer in ``density``."""

    def change(inputs: Any, answers: Any) -> Any:
        mixed = (inputs.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)) >> np.uint64(40)
        flip = (np.uint64(1) << (mixed & np.uint64(3))).astype(answers.dtype)
        return np.where(mixed % np.uint64(density) == 0, answers ^ flip, answers)

    return change


def in_stretches(wrong: int) -> Change:
    """Flip a bit of the first ``wrong`` answers of each 2048."""

    def change(inputs: Any, answers: Any) -> Any:
        is_wrong = (inputs & np.uint32(0x7FF)) < wrong
        return np.where(is_wrong, answers ^ answers.dtype.type(1), answers)

    return change


CHANGES: dict[str, Change] = {
    "right": unchanged,
    "stretches of 3": in_stretches(3),
    "stretches of 1500": in_stretches(1500),
    "one in 7": at_random(7),
    "one in 3000": at_random(3000),
    "all alike": lambda _, answers: np.full_like(answers, 1),
}


@pytest.mark.ci_runs_one_of(10)
# Numba compiles for each width; tests below sweep by it in CI, with answers of 16 bits.
@pytest.mark.parametrize(
    "fast", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["numpy", "fastest"]
)
@pytest.mark.parametrize("oracle_class", [Planted, Bound])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pair", RANGES)
def test_counts_are_exact_for_each_of_several_rulings(
    pair: str, change: str, oracle_class: type[Planted], fast: bool
) -> None:
    lo, hi = RANGES[pair]
    names = names_of(pair)
    oracle = oracle_class(names[0], CHANGES[change])
    found = swept(oracle, names, lo, hi, fast=fast)
    assert oracle.asked == -(-(hi - lo) // SMALL_CHUNK) * SMALL_CHUNK
    assert [each.case for each in found] == names
    inputs = np.arange(lo, hi, dtype=np.uint64).astype(np.uint32)
    for judgement in found:
        assert_found(judgement, oracle, inputs)
    if oracle_class is Bound:
        alone = [swept(oracle, [name], lo, hi, fast=fast)[0] for name in names]
        assert plain(tuple(alone)) == plain(tuple(found))


@pytest.mark.ci_runs_one_of(5)
@pytest.mark.parametrize("oracle_class", [Planted, Bound])
@pytest.mark.parametrize(
    "pair", ["float64/float4e2m1", "float64/float8e8m0", "uint64/bfloat16", "int64/float4e2m1"]
)
def test_counts_are_exact_on_the_steps_of_a_64_bit_source(
    pair: str, oracle_class: type[Planted]
) -> None:
    names = names_of(pair)
    chosen = StepPatterns(rulings_of(pair))
    inputs = np.zeros(chosen.size, np.uint64)
    chosen.fill(inputs, 0)
    oracle = oracle_class(names[0], at_random(11))
    found = swept(oracle, names, 0, chosen.size, chosen, fast=oracle_class is Bound)
    for judgement in found:
        assert_found(judgement, oracle, inputs)


CUTS = {
    "dense": ("float32/float16", DENSE, *RANGES["float32/float16"]),
    "int8": ("float32/int8", DENSE, *RANGES["float32/int8"]),
    "steps": ("uint64/bfloat16", StepPatterns(rulings_of("uint64/bfloat16")), 100, 15_000),
    "sample": ("float64/float16", Sample(format_named("float64"), (1, 2), 1 << 14), 0, 1 << 14),
}


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("raises", [False, True], ids=["answers", "raises where open"])
@pytest.mark.parametrize("name", CUTS)
@given(cuts=st.lists(st.floats(0, 1), max_size=5), density=st.sampled_from([2, 50, 3_000]))
@examples(12)
def test_the_parts_of_any_cut_make_up_the_whole(
    name: str, raises: bool, cuts: list[float], density: int
) -> None:
    pair, visit, lo, hi = CUTS[name]
    names = names_of(pair)[:1] if raises else names_of(pair)
    change = at_random(density)
    oracle = Bound(names[0], raising_where_open(names[0], change) if raises else change)
    whole = swept(oracle, names, lo, hi, visit)
    edges = sorted({lo, hi, *(lo + int(cut * (hi - lo)) for cut in cuts)})
    parts = [swept(oracle, names, *part, visit) for part in pairwise(edges)]
    for number, one in enumerate(whole):
        each = [part[number] for part in parts]
        assert plain(reduce(joined, each)) == plain(one)
        assert plain(reduce(lambda later, part: joined(part, later), reversed(each))) == plain(one)


@pytest.mark.parametrize(
    ("quick_scripts", "has_wrong_values"), [(["values", "shape"], True), (["shape"], False)]
)
def test_a_swept_case_keeps_the_script_of_its_fault(
    quick_scripts: list[str], has_wrong_values: bool
) -> None:
    wrong = WrongValues("rule", "a clause", "required", 1, NO_RUNS, 0, 0, ())
    fault = ChangesWithShape("shape-kept", "a clause", "required", ())
    problems = (wrong, fault) if has_wrong_values else (fault,)
    case, scripts = ("a/b/c", "x", "violates"), NEXT_SCRIPT.join(quick_scripts)
    quick = Judgement(*case, problems, reproduction=scripts)
    swept_values = Judgement(*case, inputs=1 << 32, reproduction="swept")
    assert completed(quick, swept_values).reproduction == NEXT_SCRIPT.join(["swept", "shape"])


@given(st.sampled_from(["float8e5m2", "int16", "float32", "uint64"]), st.data())
def test_the_smallest_of_a_whole_range_is_known_without_a_walk(
    name: str, data: st.DataObject
) -> None:
    source = format_named(name)
    edge = st.integers(0, source.bits).map(lambda place: 1 << place)
    near = data.draw(edge | st.integers(0, source.mask))
    first = max(0, near - data.draw(st.integers(1, 1_000)))
    longest = 1 << 16 if source.bits <= 16 else 1_000
    last = min(source.mask, first + data.draw(st.integers(0, longest)))
    walked = min(range(first, last + 1), key=lambda code: simplicity(source, code))
    assert simplest_between(source, first, last) == walked


def test_few_wrong_answers_of_many_chunks_and_a_stretch_after_them_are_found_in_order() -> None:
    # From 0x1000_0000 on the right answer is zero: one step, which has a stretch of wrong answers.
    lo = 0x1000_0000
    stretch = lo + 2 * MOST_WAITING * SMALL_CHUNK
    hi = stretch + 4 * SMALL_CHUNK

    def change(inputs: Any, answers: Any) -> Any:
        few = at_random(3000)(inputs, answers)
        return np.where(inputs >= stretch, answers.dtype.type(1), few)

    oracle = Bound("onnx-cast:25/float32/float16", change)
    [judgement] = swept(oracle, [oracle.base], lo, hi, fast=True)
    [divergence] = judgement.divergences
    assert divergence.runs.total > MOST_WAITING
    assert_found(judgement, oracle, np.arange(lo, hi, dtype=np.uint32))


def alternating(inputs: Any, answers: Any) -> Any:
    """Answer 1 to all inputs of four chunks, 2 to those of the next four, and so on."""
    return (1 + (inputs // np.uint32(4 * SMALL_CHUNK) & np.uint32(1))).astype(answers.dtype)


ENDS: list[tuple[str, int, Change, int, int]] = [
    # From 1.5 on some modes round to 2, and others to 1 up to the end of the binade.
    ("float32/float8e8m0", 99, lambda _, answers: np.full_like(answers, 0x80),
     0x3FC0_0000 - 5 * SMALL_CHUNK - 9, 0x3FC0_0000 + 5 * SMALL_CHUNK),
    # Each call gets another answer than the one before, throughout.
    ("float32/float16", 1, alternating, 0x1000_0000, 0x1000_0000 + 16 * SMALL_CHUNK),
    ("float32/float16", 2, alternating, 0x1000_0000, 0x1000_0000 + 16 * SMALL_CHUNK),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "count", "change", "lo", "hi"), ENDS)
def test_a_stretch_ends_where_a_ruling_allows_the_answer_or_the_answer_changes(
    pair: str, count: int, change: Change, lo: int, hi: int
) -> None:
    names = names_of(pair)[:count]
    oracle = Bound(names[0], change)
    for judgement in swept(oracle, names, lo, hi):
        assert_found(judgement, oracle, np.arange(lo, hi, dtype=np.uint32))


def test_a_stretch_ends_where_its_answer_does_not_pass_another_check() -> None:
    answers = np.full(16, 3, np.uint8)
    is_uniform = fastest_comparison().is_uniform
    for passes in (True, False):
        checks: list[ChunkCheck] = [lambda *_: True, lambda *_, passes=passes: passes]
        found = engine._continue_stretch(checks, is_uniform, 99, 3, 0, answers, None, 0)
        assert found == passes
