"""The search finds planted behaviors and planted exceptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import exact
from oracles.reference.kernels import select_arrays
from reports.behaviors.explanation import BehaviorExplanation, explain, sentence
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
    tally_each,
)
from reports.grading.divergences import simplicity
from specs.behaviors import Behavior
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
NAMES = [dtype.name for dtype in formats().values() if dtype.is_numeric]


def inputs_of(source: Format) -> NDArray[Any]:
    inputs = quick_inputs(source.name, "bool", 20_261_121, 3_000)
    return inputs[:: 1 + inputs.size // 9_000]


def tally_answers(search: BehaviorSearch, inputs: NDArray[Any], answers: NDArray[Any]) -> Tally:
    """The tally of one backend's answers."""
    [tally] = tally_each(search, inputs, [answers])
    return tally


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


def test_a_sentence_joins_regions_with_commas_and_one_and() -> None:
    found = tally_of({"zero": 1}, {"zero": {}})
    line = BehaviorExplanation(("NaN", "zeros", "infinities"), "zero", 1_000, ())
    expected = "NaN, zeros and infinities: gives zero: 100 % of 1,000 inputs"
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
    assert line == BehaviorExplanation(
        ("every open input",), None, 64, tuple(examples[:MAX_EXAMPLES]), None, 64
    )
    assert sentence(tally_answers(search, inputs, answers), line).startswith(
        "every open input: unexplained: 64 inputs: 0x7c01 → "
    )


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
