"""Tallies of parts of the inputs merge to that of all, also with fewer behaviors or compiled."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lab.tallies import merged, narrow, tally_answers
from reports.behaviors.explanation import explain
from reports.behaviors.regions import behaviors_between, evaluate
from reports.behaviors.tally import BehaviorSearch, behavior_search
from specs.formats import format_named
from tests.reports.test_behavior_search import ROUNDING, inputs_of, tally_of
from tests.search import examples


def test_narrowing_keeps_only_behaviors_that_explain_a_whole_group() -> None:
    inputs = {"+infinity": 2, "-infinity": 2}
    found = tally_of(inputs, {"zero": {}, "one": {"+infinity": 1}})
    assert [behavior.name for behavior in narrow(found).candidates] == ["zero"]


def test_if_narrowing_leaves_no_behavior_everything_is_unexplained() -> None:
    found = tally_of({"+infinity": 2}, {"zero": {"+infinity": 2}})
    search = narrow(found)
    assert search.candidates == ()
    assert explain(replace(found, search=search)) == explain(found)


SOURCE, TARGET = format_named("float16"), format_named("int8")
SHUFFLED = np.random.default_rng(5).permutation(1 << 16).astype(np.uint16)


def mixed() -> NDArray[Any]:
    """Answers that one behavior explains in some regions, another in others, and none elsewhere."""
    by_name = {behavior.name: behavior for behavior in behaviors_between(SOURCE, TARGET)}
    first, _ = evaluate(by_name["via-int32"], SOURCE, TARGET, SHUFFLED)
    second, _ = evaluate(by_name["half-away-saturate"], SOURCE, TARGET, SHUFFLED)
    answers = np.where(SHUFFLED & 0x8000, first, second)
    answers[SHUFFLED % 1021 == 5] ^= 0x55
    return answers.astype(np.uint8)


ANSWERS = mixed()


@examples(5)
@given(st.lists(st.integers(0, 1 << 16), max_size=4), st.randoms(use_true_random=False))
def test_tallies_of_parts_merge_in_any_order_to_the_whole(cuts: list[int], chance: Any) -> None:
    search = behavior_search(SOURCE, TARGET, ROUNDING)
    whole = tally_answers(search, SHUFFLED, ANSWERS)
    edges = pairwise([0, *sorted(cuts), 1 << 16])
    parts = [tally_answers(search, SHUFFLED[a:b], ANSWERS[a:b]) for a, b in edges]
    chance.shuffle(parts)
    forward = reduce(merged, parts)
    backward = reduce(lambda later, one: merged(one, later), parts)
    assert forward == backward == whole
    assert explain(forward) == explain(backward) == explain(whole)


def test_tallies_merge_if_one_input_has_several_answers() -> None:
    search = behavior_search(SOURCE, TARGET, ROUNDING)
    answers = np.array([9, 3, 3, 7, 8, 2, 1], np.uint8)
    inputs = np.full(answers.size, 0x7E00, np.uint16)
    parts = [
        tally_answers(search, inputs[at : at + 1], answers[at : at + 1])
        for at in range(answers.size)
    ]
    assert reduce(merged, parts) == reduce(merged, parts[::-1])
    assert reduce(merged, parts) == tally_answers(search, inputs, answers)


def test_with_more_inputs_narrowed_search_explains_the_same() -> None:
    few = tally_answers(behavior_search(SOURCE, TARGET, ROUNDING), SHUFFLED[::16], ANSWERS[::16])
    fewer = narrow(few)
    assert 0 < len(fewer.candidates) < len(few.search.candidates)
    whole = tally_answers(few.search, SHUFFLED, ANSWERS)
    assert [
        (line.regions, line.behavior, line.inputs)
        for line in explain(tally_answers(fewer, SHUFFLED, ANSWERS))
        if line.behavior
    ] == [(line.regions, line.behavior, line.inputs) for line in explain(whole) if line.behavior]


COMPILED = [("float32", "int8"), ("int64", "float16"), ("float8e5m2", "float8e8m0")]


@pytest.mark.nightly
@pytest.mark.parametrize("names", COMPILED, ids=["-".join(pair) for pair in COMPILED])
def test_the_compiled_tally_is_the_same(names: tuple[str, str]) -> None:
    compiled = pytest.importorskip("lab.tally_numba", reason="needs the extra `fast`")
    source, target = map(format_named, names)
    every = behaviors_between(source, target)
    candidates = [each for each in every[:: 1 + len(every) // 4] if each.name != "nan"]
    candidates += [each for each in every if each.name == "nan"]
    search = BehaviorSearch(source, target, ROUNDING, tuple(candidates))
    inputs = inputs_of(source)
    chance = np.random.default_rng(7)
    random = chance.integers(0, target.mask, inputs.size, np.uint64, endpoint=True)
    right, defined = evaluate(search.candidates[0], source, target, inputs)
    ends = [
        code & target.mask
        for nans in target.nan_codes
        for code in (nans.start - 1, nans.start, nans.stop - 1, nans.stop)
    ]
    for answers in (random, np.where(defined, right, 0), np.resize(ends or [0], inputs.size)):
        got = answers.astype(target.storage)
        assert compiled.tally_answers(search, inputs, got) == tally_answers(search, inputs, got)
