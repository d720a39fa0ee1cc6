"""Planted oracles are found again, planted exceptions too, however the inputs are cut."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from conformance.judging.quick_inputs import quick_inputs
from oracles.reference import exact
from oracles.reference.machine_words import select_arrays
from reports.behaviors.closed_forms import behaviors_between, evaluate
from reports.behaviors.explanation import Explanation, explain, narrow, sentence
from reports.behaviors.regions import PHRASES, atoms_by_mark, mark_of, phrases_for
from reports.behaviors.tally import (
    MAX_EXAMPLES,
    BehaviorSearch,
    CountedInputs,
    Tally,
    behavior_search,
    smallest_examples,
    tally_answers,
)
from reports.diff.divergences import simplicity
from specs.behaviors import Behaviour
from specs.formats import Format, format_named, formats
from specs.model.vocabulary import Atom, Rounding, atoms

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
NAMES = [form.name for form in formats().values() if form.is_numeric]


def inputs_of(source: Format) -> NDArray[Any]:
    inputs = quick_inputs(source.name, "bool", 20_261_121, 3_000)
    return inputs[:: 1 + inputs.size // 9_000]


def planted() -> list[Any]:
    return [
        pytest.param(format_named(one), format_named(other), form, id=f"{one}-{other}-{form.name}")
        for one, other in PAIRS
        for form in behaviors_between(format_named(one), format_named(other))
    ]


def answered(
    form: Behaviour, source: Format, target: Format
) -> tuple[BehaviorSearch, NDArray[Any], NDArray[Any]]:
    """The inputs of which a form says something, and what it says."""
    inputs = inputs_of(source)
    answers, told = evaluate(form, source, target, inputs)
    return behavior_search(source, target, ROUNDING), inputs[told], answers[told]


@pytest.mark.parametrize(("source", "target", "form"), planted())
def test_a_form_is_found_by_its_name_or_by_simpler_ones(
    source: Format, target: Format, form: Behaviour
) -> None:
    asked, inputs, answers = answered(form, source, target)
    lines = explain(tally_answers(asked, inputs, answers))
    order = [each.name for each in asked.candidates]
    assert [line.exceptions for line in lines] == [0] * len(lines)
    assert sum(line.inputs for line in lines) == inputs.size
    [line] = lines
    assert line.behavior is not None
    assert line.regions == ("every open input",)
    assert order.index(line.behavior) <= order.index(form.name)


# To bool every answer is some form's.
@pytest.mark.parametrize(
    ("source", "target", "form"), [each for each in planted() if each.values[1].name != "bool"]
)
def test_one_other_answer_is_the_one_exception(
    source: Format, target: Format, form: Behaviour
) -> None:
    asked, inputs, answers = answered(form, source, target)
    marks = mark_of(source, target, ROUNDING, inputs.astype(np.uint64), select_arrays)
    common = np.bincount(marks.astype(np.intp)).argmax()
    place = int(np.flatnonzero(marks == common)[7])
    said = {int(evaluate(each, source, target, inputs[[place]])[0][0]) for each in asked.candidates}
    said.update(code for nans in target.nan_codes for code in nans)
    free = [code for code in range(1 << min(target.bits, 16)) if code not in said]
    answers[place] = free[-1]
    lines = explain(tally_answers(asked, inputs, answers))
    [line] = [line for line in lines if line.behavior is None]
    assert line.nearest is not None
    assert line.exceptions == 1
    assert line.examples == ((int(inputs[place]), free[-1]),)
    assert all(line.behavior is None or line.exceptions == 0 for line in lines)
    assert f"{int(inputs[place]):x} →" in sentence(tally_answers(asked, inputs, answers), line)


def test_forms_share_a_case_along_its_regions() -> None:
    asked = behavior_search(format_named("float32"), format_named("int8"), ROUNDING)
    inputs = inputs_of(asked.source)
    numbers = inputs.view(np.float32)
    clamped = np.clip(np.where(np.isnan(numbers), 0, numbers), -128, 127).astype(np.int64)
    answers = np.where(np.isnan(numbers), 1, clamped).astype(np.uint8)
    assert [
        (line.behavior, line.regions, line.exceptions)
        for line in explain(tally_answers(asked, inputs, answers))
    ] == [
        ("saturate", ("finite inputs", "infinities"), 0),
        ("one", ("NaN",), 0),
    ]


def covered(*covers: str) -> list[tuple[int | None, int]]:
    """The forms chosen where each of the first ones is right in the regions of its letters."""
    asked = behavior_search(format_named("float32"), format_named("int8"), ROUNDING)
    regions = dict(zip(sorted(set("".join(covers))), atoms(asked.source), strict=False))
    met = CountedInputs(1, ((0, 0),))
    rights = dict(zip((form.name for form in asked.candidates), covers, strict=False))
    misses = {
        (atom, form.name): met
        for letter, atom in regions.items()
        for form in asked.candidates
        if letter not in rights.get(form.name, "")
    }
    found = Tally(asked, dict.fromkeys(regions.values(), met), misses)
    order = [form.name for form in asked.candidates]
    return [
        (None if line.behavior is None else order.index(line.behavior), line.inputs)
        for line in explain(found)
    ]


def test_the_fewest_forms_are_taken_not_the_largest_first() -> None:
    assert covered("abcd", "abe", "cdf") == [(1, 3), (2, 3)]


def test_of_as_many_forms_the_simplest_are_taken() -> None:
    assert covered("ab", "a", "b", "ab", "c", "c") == [(0, 2), (4, 1)]


def test_more_forms_than_are_tried_together_are_taken_too() -> None:
    chosen = covered("a", "b", "c", "de", "e", "f", "g")
    assert sorted(chosen, key=str) == [(0, 1), (1, 1), (2, 1), (3, 2), (5, 1), (6, 1)]


def test_as_many_forms_as_are_tried_together_are_the_fewest() -> None:
    assert covered("abcd", "abe", "cdf", "g", "h") == [(1, 3), (2, 3), (3, 1), (4, 1)]


def test_what_two_forms_explain_is_told_with_the_one_that_explains_more() -> None:
    assert covered("ab", "bcd") == [(1, 3), (0, 1)]


def test_after_the_form_that_explains_most_the_fewest_are_taken_for_the_rest() -> None:
    chosen = covered("uvwxyz", "abcd", "abex", "cdf", "g", "h")
    assert sorted(chosen) == [(0, 6), (2, 3), (3, 3), (4, 1), (5, 1)]


def test_a_form_whose_regions_larger_ones_explain_is_not_told() -> None:
    chosen = covered("uvwxyz", "abc", "adxyz", "bexyz", "cfxyz", "g", "h")
    assert sorted(chosen) == [(0, 6), (2, 2), (3, 2), (4, 2), (5, 1), (6, 1)]


def by_hand(inputs: dict[str, int], misses: dict[str, dict[str, int]]) -> Tally:
    """So many inputs in some regions, and those on which one form or another is wrong."""
    every = behavior_search(format_named("float32"), format_named("int8"), ROUNDING)
    asked = replace(
        every, candidates=tuple(each for each in every.candidates if each.name in misses)
    )
    regions = {phrases_for([atom], atoms(asked.source))[0]: atom for atom in atoms(asked.source)}
    return Tally(
        asked,
        {regions[name]: CountedInputs(count, ((0, 0),)) for name, count in inputs.items()},
        {
            (regions[name], form): CountedInputs(count, ((0, 0),))
            for form, wrong in misses.items()
            for name, count in wrong.items()
        },
    )


def test_only_a_form_that_is_right_more_often_than_not_is_nearest() -> None:
    inputs = {"+infinity": 4, "-infinity": 4}
    found = by_hand(inputs, {"zero": {"+infinity": 1, "-infinity": 2}})
    assert {line.regions: (line.nearest, line.exceptions) for line in explain(found)} == {
        ("+infinity",): ("zero", 1),
        ("-infinity",): (None, 4),
    }


def test_what_is_unexplained_comes_last_and_of_as_many_inputs_the_first_by_name() -> None:
    inputs = {"zero": 1, "+infinity": 1, "-0": 9}
    wrong = {"zero": {"+infinity": 1, "-0": 9}, "one": {"zero": 1, "-0": 9}}
    lines = [(line.regions, line.behavior) for line in explain(by_hand(inputs, wrong))]
    assert lines == [(("out of range",), "one"), (("zero",), "zero"), (("-0",), None)]


def test_narrowing_keeps_what_explains_a_whole_line_alone() -> None:
    inputs = {"+infinity": 2, "-infinity": 2}
    found = by_hand(inputs, {"zero": {}, "one": {"+infinity": 1}})
    assert [form.name for form in narrow(found).candidates] == ["zero"]


def test_where_narrowing_leaves_no_form_everything_is_unexplained() -> None:
    found = by_hand({"+infinity": 2}, {"zero": {"+infinity": 2}})
    asked = narrow(found)
    assert asked.candidates == ()
    assert explain(replace(found, behavior_search=asked)) == explain(found)


def test_regions_are_listed_with_one_and() -> None:
    found = by_hand({"zero": 1}, {"zero": {}})
    line = Explanation(("NaN", "zeros", "infinities"), "zero", 1_000, ())
    said = "float32→int8, NaN, zeros and infinities: zero: 100 % of 1,000 inputs"
    assert sentence(found, line) == said


@pytest.mark.parametrize("name", ["int8", "uint8", "float8e5m2", "float8e4m3fnuz"])
def test_the_smallest_are_those_that_divergences_show(name: str) -> None:
    source = format_named(name)
    codes = sorted(range(source.mask + 1), key=lambda code: simplicity(source, code))
    for some in (codes, codes[1:], codes[9:], codes[40:]):
        kept = smallest_examples(source, [(code, 0) for code in sorted(some)])
        assert [code for code, _ in kept] == some[:MAX_EXAMPLES]


def test_what_no_form_explains_is_counted_with_its_smallest_inputs() -> None:
    asked = behavior_search(format_named("float16"), format_named("int16"), ROUNDING)
    inputs = np.arange(0x7C01, 0x7C41, dtype=np.uint16)
    answers = (inputs * np.uint16(40503)) | np.uint16(2)
    [line] = explain(tally_answers(asked, inputs, answers))
    examples = sorted(
        zip(inputs.tolist(), answers.tolist(), strict=True),
        key=lambda each: simplicity(asked.source, each[0]),
    )
    assert line == Explanation(
        ("every open input",), None, 64, tuple(examples[:MAX_EXAMPLES]), None, 64
    )
    assert sentence(tally_answers(asked, inputs, answers), line).startswith(
        "float16→int16, every open input: unexplained: 64 inputs: 0x7c01 → "
    )


SOURCE, TARGET = format_named("float16"), format_named("int8")
SHUFFLED = np.random.default_rng(5).permutation(1 << 16).astype(np.uint16)


def mixed() -> NDArray[Any]:
    """Answers that one form explains in some regions, another in others, and none in the rest."""
    forms = {form.name: form for form in behaviors_between(SOURCE, TARGET)}
    first, _ = evaluate(forms["via-int32"], SOURCE, TARGET, SHUFFLED)
    second, _ = evaluate(forms["half-away-saturate"], SOURCE, TARGET, SHUFFLED)
    answers = np.where(SHUFFLED & 0x8000, first, second)
    answers[SHUFFLED % 1021 == 5] ^= 0x55
    return answers.astype(np.uint8)


ANSWERS = mixed()


@settings(deadline=None, max_examples=5)
@given(st.lists(st.integers(0, 1 << 16), max_size=4), st.randoms(use_true_random=False))
def test_parts_merge_in_any_order_to_the_same(cuts: list[int], chance: Any) -> None:
    asked = behavior_search(SOURCE, TARGET, ROUNDING)
    whole = tally_answers(asked, SHUFFLED, ANSWERS)
    edges = pairwise([0, *sorted(cuts), 1 << 16])
    parts = [tally_answers(asked, SHUFFLED[a:b], ANSWERS[a:b]) for a, b in edges]
    chance.shuffle(parts)
    forward = reduce(Tally.merged, parts)
    backward = reduce(lambda later, one: one.merged(later), parts)
    assert forward == backward == whole
    assert explain(forward) == explain(backward) == explain(whole)


def test_an_input_that_is_answered_twice_differently_merges_too() -> None:
    asked = behavior_search(SOURCE, TARGET, ROUNDING)
    answers = np.array([9, 3, 3, 7, 8, 2, 1], np.uint8)
    inputs = np.full(answers.size, 0x7E00, np.uint16)
    parts = [
        tally_answers(asked, inputs[at : at + 1], answers[at : at + 1])
        for at in range(answers.size)
    ]
    assert reduce(Tally.merged, parts) == reduce(Tally.merged, parts[::-1])
    assert reduce(Tally.merged, parts) == tally_answers(asked, inputs, answers)


def test_more_inputs_change_nothing_that_narrowing_dropped() -> None:
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


@pytest.mark.parametrize("names", COMPILED, ids=["-".join(pair) for pair in COMPILED])
def test_compiled_it_is_the_same(names: tuple[str, str]) -> None:
    fast = pytest.importorskip("reports.behaviors.tally_numba", reason="needs the extra `fast`")
    source, target = map(format_named, names)
    forms = behaviors_between(source, target)
    some = [form for form in forms[:: 1 + len(forms) // 4] if form.name != "nan"]
    some += [form for form in forms if form.name == "nan"]
    asked = BehaviorSearch(source, target, ROUNDING, tuple(some))
    inputs = inputs_of(source)
    chance = np.random.default_rng(7)
    random = chance.integers(0, target.mask, inputs.size, np.uint64, endpoint=True)
    right, told = evaluate(asked.candidates[0], source, target, inputs)
    ends = [
        code & target.mask
        for nans in target.nan_codes
        for code in (nans.start - 1, nans.start, nans.stop - 1, nans.stop)
    ]
    for answers in (random, np.where(told, right, 0), np.resize(ends or [0], inputs.size)):
        got = answers.astype(target.storage)
        assert fast.tally_answers(asked, inputs, got) == tally_answers(asked, inputs, got)


@pytest.mark.parametrize("rounding", ["toward-zero", "nearest-even", "ceil"])
@pytest.mark.parametrize("source", [form for form in formats().values() if form.name in NAMES])
def test_marks_are_the_definitions_atoms(source: Format, rounding: Rounding) -> None:
    inputs = inputs_of(source)
    inputs = inputs[:: 1 + inputs.size // 300]
    for target in map(format_named, NAMES):
        marks = mark_of(source, target, rounding, inputs.astype(np.uint64), select_arrays)
        for code, mark in zip(inputs.tolist(), marks.tolist(), strict=True):
            atom = exact.atom_of(source, target, rounding, exact.decode(source, code))
            # A mark leaves out whether the target has the value.
            assert atoms_by_mark(source)[mark] == atom._replace(representable=False)


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.data())
def test_words_say_exactly_the_atoms(name: str, data: st.DataObject) -> None:
    every = [atom for atom in atoms(format_named(name)) if not atom.representable]
    among = data.draw(st.sets(st.sampled_from(every), min_size=1))
    some = data.draw(st.sets(st.sampled_from(sorted(among)), min_size=1))
    said = phrases_for(some, among)
    by_name = {str(atom): {atom} for atom in every}
    meant: list[set[Atom]] = [
        {atom for atom in among if PHRASES[each](atom)} if each in PHRASES else by_name[each]
        for each in said
    ]
    assert set().union(*meant) == some
    assert len(set(said)) == len(said)
