"""The search finds planted behaviors and planted exceptions, however the inputs are divided."""

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

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import exact
from oracles.reference.machine_words import select_arrays
from reports.behaviors.explanation import Explanation, explain, narrow, sentence
from reports.behaviors.regions import (
    PHRASES,
    atoms_by_mark,
    behaviors_between,
    evaluate,
    mark_of,
    phrases_for,
)
from reports.behaviors.tally import (
    MAX_EXAMPLES,
    BehaviorSearch,
    CountedInputs,
    Tally,
    behavior_search,
    smallest_examples,
    tally_answers,
)
from reports.grading.divergences import simplicity
from specs.behaviors import Behavior
from specs.formats import Format, format_named, formats
from specs.model.vocabulary import Atom, Rounding, atoms
from tests.search import examples

PAIRS: list[tuple[str, str]] = [
    ("float32", "int8"),
    ("float64", "uint32"),
    ("float16", "uint4"),
    ("float8e5m2", "int16"),
    ("int32", "int8"),
    ("int64", "float16"),
    ("float32", "float8e8m0"),
    ("float16", "float8e4m3fn"),
    ("float32", "bool"),
]
ROUNDING: Rounding = "toward-zero"
NAMES = [dtype.name for dtype in formats().values() if dtype.is_numeric]


def inputs_of(source: Format) -> NDArray[Any]:
    inputs = quick_inputs(source.name, "bool", 20_261_121, 3_000)
    return inputs[:: 1 + inputs.size // 9_000]


def planted() -> list[Any]:
    """Every behavior of every pair, as parameters of a test."""
    return [
        pytest.param(
            format_named(one), format_named(other), behavior, id=f"{one}-{other}-{behavior.name}"
        )
        for one, other in PAIRS
        for behavior in behaviors_between(format_named(one), format_named(other))
    ]


def answered(
    behavior: Behavior, source: Format, target: Format
) -> tuple[BehaviorSearch, NDArray[Any], NDArray[Any]]:
    """The search of a pair, and the inputs and answers for which a behavior is defined."""
    inputs = inputs_of(source)
    answers, defined = evaluate(behavior, source, target, inputs)
    return behavior_search(source, target, ROUNDING), inputs[defined], answers[defined]


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(("source", "target", "behavior"), planted())
def test_a_planted_behavior_is_explained_by_itself_or_a_simpler_one(
    source: Format, target: Format, behavior: Behavior
) -> None:
    search, inputs, answers = answered(behavior, source, target)
    lines = explain(tally_answers(search, inputs, answers))
    order = [each.name for each in search.candidates]
    assert [line.exceptions for line in lines] == [0] * len(lines)
    assert sum(line.inputs for line in lines) == inputs.size
    [line] = lines
    assert line.behavior is not None
    assert line.regions == ("every open input",)
    assert order.index(line.behavior) <= order.index(behavior.name)


@pytest.mark.ci_runs_one_of(5)
# In casts to bool, every answer is that of some behavior.
@pytest.mark.parametrize(
    ("source", "target", "behavior"), [each for each in planted() if each.values[1].name != "bool"]
)
def test_one_changed_answer_is_reported_as_the_one_exception(
    source: Format, target: Format, behavior: Behavior
) -> None:
    search, inputs, answers = answered(behavior, source, target)
    marks = mark_of(source, target, ROUNDING, inputs.astype(np.uint64), select_arrays)
    common = np.bincount(marks.astype(np.intp)).argmax()
    place = int(np.flatnonzero(marks == common)[7])
    # An answer that no behavior gives.
    taken = {
        int(evaluate(each, source, target, inputs[[place]])[0][0]) for each in search.candidates
    }
    taken.update(code for nans in target.nan_codes for code in nans)
    free = [code for code in range(1 << min(target.bits, 16)) if code not in taken]
    answers[place] = free[-1]
    lines = explain(tally_answers(search, inputs, answers))
    [line] = [line for line in lines if line.behavior is None]
    assert line.nearest is not None
    assert line.exceptions == 1
    assert line.examples == ((int(inputs[place]), free[-1]),)
    assert all(line.behavior is None or line.exceptions == 0 for line in lines)
    assert f"{int(inputs[place]):x} →" in sentence(tally_answers(search, inputs, answers), line)


def test_different_regions_may_have_different_behaviors() -> None:
    search = behavior_search(format_named("float32"), format_named("int8"), ROUNDING)
    inputs = inputs_of(search.source)
    numbers = inputs.view(np.float32)
    clamped = np.clip(np.where(np.isnan(numbers), 0, numbers), -128, 127).astype(np.int64)
    answers = np.where(np.isnan(numbers), 1, clamped).astype(np.uint8)
    assert [
        (line.behavior, line.regions, line.exceptions)
        for line in explain(tally_answers(search, inputs, answers))
    ] == [
        ("saturate", ("finite inputs", "infinities"), 0),
        ("one", ("NaN",), 0),
    ]


def chosen_for(*covers: str) -> list[tuple[int | None, int]]:
    """The indices of the chosen behaviors, each with the number of regions that it explains.

    Argument i lists the regions, one letter each, in which behavior i is right.
    """
    search = behavior_search(format_named("float32"), format_named("int8"), ROUNDING)
    regions = dict(zip(sorted(set("".join(covers))), atoms(search.source), strict=False))
    counted = CountedInputs(1, ((0, 0),))
    rights = dict(zip((behavior.name for behavior in search.candidates), covers, strict=False))
    misses = {
        (atom, behavior.name): counted
        for letter, atom in regions.items()
        for behavior in search.candidates
        if letter not in rights.get(behavior.name, "")
    }
    found = Tally(search, dict.fromkeys(regions.values(), counted), misses)
    order = [behavior.name for behavior in search.candidates]
    return [
        (None if line.behavior is None else order.index(line.behavior), line.inputs)
        for line in explain(found)
    ]


def test_the_fewest_behaviors_are_chosen_not_the_largest_first() -> None:
    assert chosen_for("abcd", "abe", "cdf") == [(1, 3), (2, 3)]


def test_of_equally_many_behaviors_the_simplest_are_chosen() -> None:
    assert chosen_for("ab", "a", "b", "ab", "c", "c") == [(0, 2), (4, 1)]


def test_more_behaviors_than_are_combined_can_be_chosen() -> None:
    chosen = chosen_for("a", "b", "c", "de", "e", "f", "g")
    assert sorted(chosen, key=str) == [(0, 1), (1, 1), (2, 1), (3, 2), (5, 1), (6, 1)]


def test_up_to_the_combined_number_the_choice_is_minimal() -> None:
    assert chosen_for("abcd", "abe", "cdf", "g", "h") == [(1, 3), (2, 3), (3, 1), (4, 1)]


def test_a_shared_region_goes_to_the_behavior_that_explains_more() -> None:
    assert chosen_for("ab", "bcd") == [(1, 3), (0, 1)]


def test_after_the_largest_behavior_the_rest_is_covered_minimally() -> None:
    chosen = chosen_for("uvwxyz", "abcd", "abex", "cdf", "g", "h")
    assert sorted(chosen) == [(0, 6), (2, 3), (3, 3), (4, 1), (5, 1)]


def test_a_behavior_that_others_make_redundant_is_not_reported() -> None:
    chosen = chosen_for("uvwxyz", "abc", "adxyz", "bexyz", "cfxyz", "g", "h")
    assert sorted(chosen) == [(0, 6), (2, 2), (3, 2), (4, 2), (5, 1), (6, 1)]


def tally_of(inputs: dict[str, int], misses: dict[str, dict[str, int]]) -> Tally:
    """A tally from the number of inputs per region, and of misses per behavior and region."""
    every = behavior_search(format_named("float32"), format_named("int8"), ROUNDING)
    search = replace(
        every, candidates=tuple(each for each in every.candidates if each.name in misses)
    )
    regions = {
        phrases_for([atom], atoms(search.source), PHRASES)[0]: atom for atom in atoms(search.source)
    }
    return Tally(
        search,
        {regions[name]: CountedInputs(count, ((0, 0),)) for name, count in inputs.items()},
        {
            (regions[name], behavior): CountedInputs(count, ((0, 0),))
            for behavior, wrong in misses.items()
            for name, count in wrong.items()
        },
    )


def test_a_nearest_behavior_is_right_more_often_than_not() -> None:
    inputs = {"+infinity": 4, "-infinity": 4}
    found = tally_of(inputs, {"zero": {"+infinity": 1, "-infinity": 2}})
    assert {line.regions: (line.nearest, line.exceptions) for line in explain(found)} == {
        ("+infinity",): ("zero", 1),
        ("-infinity",): (None, 4),
    }


def test_explanations_are_sorted_with_unexplained_ones_last() -> None:
    inputs = {"zero": 1, "+infinity": 1, "-0": 9}
    wrong = {"zero": {"+infinity": 1, "-0": 9}, "one": {"zero": 1, "-0": 9}}
    lines = [(line.regions, line.behavior) for line in explain(tally_of(inputs, wrong))]
    assert lines == [(("out of range",), "one"), (("zero",), "zero"), (("-0",), None)]


def test_narrowing_keeps_only_behaviors_that_explain_a_whole_group() -> None:
    inputs = {"+infinity": 2, "-infinity": 2}
    found = tally_of(inputs, {"zero": {}, "one": {"+infinity": 1}})
    assert [behavior.name for behavior in narrow(found).candidates] == ["zero"]


def test_if_narrowing_leaves_no_behavior_everything_is_unexplained() -> None:
    found = tally_of({"+infinity": 2}, {"zero": {"+infinity": 2}})
    search = narrow(found)
    assert search.candidates == ()
    assert explain(replace(found, search=search)) == explain(found)


def test_a_sentence_joins_regions_with_commas_and_one_and() -> None:
    found = tally_of({"zero": 1}, {"zero": {}})
    line = Explanation(("NaN", "zeros", "infinities"), "zero", 1_000, ())
    expected = "float32→int8, NaN, zeros and infinities: gives zero: 100 % of 1,000 inputs"
    assert sentence(found, line) == expected


@pytest.mark.parametrize("name", ["int8", "uint8", "float8e5m2", "float8e4m3fnuz"])
def test_the_smallest_examples_are_those_that_divergences_show(name: str) -> None:
    source = format_named(name)
    codes = sorted(range(source.mask + 1), key=lambda code: simplicity(source, code))
    for some in (codes, codes[1:], codes[9:], codes[40:]):
        examples = smallest_examples(source, [(code, 0) for code in sorted(some)])
        assert [code for code, _ in examples] == some[:MAX_EXAMPLES]


def test_unexplained_inputs_are_counted_with_the_smallest_as_examples() -> None:
    search = behavior_search(format_named("float16"), format_named("int16"), ROUNDING)
    inputs = np.arange(0x7C01, 0x7C41, dtype=np.uint16)
    answers = (inputs * np.uint16(40503)) | np.uint16(2)
    [line] = explain(tally_answers(search, inputs, answers))
    examples = sorted(
        zip(inputs.tolist(), answers.tolist(), strict=True),
        key=lambda each: simplicity(search.source, each[0]),
    )
    assert line == Explanation(
        ("every open input",), None, 64, tuple(examples[:MAX_EXAMPLES]), None, 64
    )
    assert sentence(tally_answers(search, inputs, answers), line).startswith(
        "float16→int16, every open input: unexplained: 64 inputs: 0x7c01 → "
    )


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
    forward = reduce(Tally.merged, parts)
    backward = reduce(lambda later, one: one.merged(later), parts)
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
    assert reduce(Tally.merged, parts) == reduce(Tally.merged, parts[::-1])
    assert reduce(Tally.merged, parts) == tally_answers(search, inputs, answers)


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
    compiled = pytest.importorskip("reports.behaviors.tally_numba", reason="needs the extra `fast`")
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


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("rounding", ["toward-zero", "nearest-even", "ceil"])
@pytest.mark.parametrize("source", [dtype for dtype in formats().values() if dtype.name in NAMES])
def test_marks_are_the_atoms_of_the_exact_definition(source: Format, rounding: Rounding) -> None:
    inputs = inputs_of(source)
    inputs = inputs[:: 1 + inputs.size // 300]
    for target in map(format_named, NAMES):
        marks = mark_of(source, target, rounding, inputs.astype(np.uint64), select_arrays)
        for code, mark in zip(inputs.tolist(), marks.tolist(), strict=True):
            atom = exact.atom_of(source, target, rounding, exact.decode(source, code))
            # A mark does not record whether the target has the value.
            assert atoms_by_mark(source)[mark] == atom._replace(representable=False)


@given(st.sampled_from(NAMES), st.data())
def test_phrases_name_exactly_the_atoms(name: str, data: st.DataObject) -> None:
    every = [atom for atom in atoms(format_named(name)) if not atom.representable]
    among = data.draw(st.sets(st.sampled_from(every), min_size=1))
    some = data.draw(st.sets(st.sampled_from(sorted(among)), min_size=1))
    phrases = phrases_for(some, among, PHRASES)
    by_name = {str(atom): {atom} for atom in every}
    meant: list[set[Atom]] = [
        {atom for atom in among if PHRASES[each](atom)} if each in PHRASES else by_name[each]
        for each in phrases
    ]
    assert set().union(*meant) == some
    assert len(set(phrases)) == len(phrases)
