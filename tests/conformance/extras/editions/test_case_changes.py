"""Cases that have no staircase are compared as a whole, or on listed inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformance.extras.editions.case_changes import (
    AN_ANSWER,
    CaseChange,
    ListedInputs,
    case_changes,
)
from conformance.extras.editions.edition_pairs import CasePair
from specs.branches import AnswerDue, Ruling
from specs.cases import Case
from specs.outcomes import Outcome, ParsesTo, PlainText, Rejected
from specs.ruling import ruling

TEXTS = np.array(["0", "7", "-3", "1e2", "nan", "x", ""], object)


def case(text: str) -> Case:
    document, source, target, *modes = text.split("/")
    name, _, version = document.partition(":")
    pairs = tuple((each.partition(":")[0], each.partition(":")[2]) for each in modes)
    return Case(name, version, source, target, pairs)


def compared(old: Ruling, new: Ruling) -> list[CaseChange]:
    asked = case(f"onnx-cast:25/{old.source.name}/{old.target.name}")
    return list(case_changes(CasePair(asked, asked), old, new, lambda _: TEXTS))


def with_outcome(rules: Ruling, outcome: Outcome) -> Ruling:
    """Return a ruling in which all branches have this outcome."""
    branches = (replace(each, outcome=outcome, recommended=None) for each in rules.branches)
    return replace(rules, branches=tuple(branches))


def test_another_class_of_the_same_inputs_is_no_change() -> None:
    rules = ruling(case("onnx-cast:24/int8/int2"))
    other = replace(rules, branches=(replace(rules.branches[0], input_class="in-range"),))
    assert rules.meaning != other.meaning
    assert compared(rules, other) == []


def test_a_case_of_complex_numbers_changes_as_a_whole() -> None:
    rules = ruling(case("numpy-astype:2.4/complex64/complex128/casting:same_value"))
    [change] = compared(rules, with_outcome(rules, Rejected()))
    assert (change.change.direction, change.inputs.count) == ("stricter", 1 << 64)
    assert (change.was, change.now) == (("anything",), ("error",))
    named = with_outcome(rules, Rejected("TypeError"))
    [change] = compared(with_outcome(rules, Rejected()), named)
    assert change.change.direction == "stricter"


def test_texts_are_compared_one_by_one() -> None:
    old, new = (ruling(case(f"onnx-cast:25/string/{target}")) for target in ("int8", "int8"))
    assert compared(old, new) == []
    changes = compared(old, with_outcome(new, Rejected()))
    found = {text for each in changes for text in each.inputs.patterns(99).tolist()}
    assert found == set(TEXTS)
    assert all(isinstance(each.inputs, ListedInputs) for each in changes)
    assert {each.inputs.compared for each in changes} == {TEXTS.size}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        (PlainText(reads_back=False), PlainText(reads_back=True), "stricter"),
        (PlainText(reads_back=True), PlainText(reads_back=False), "looser"),
        (ParsesTo(), PlainText(reads_back=False), "other"),
    ],
)
def test_kinds_of_text_are_compared(old: Outcome, new: Outcome, direction: str) -> None:
    rules = ruling(case("onnx-cast:25/int8/string"))
    one, other = (with_outcome(rules, each) for each in (old, new))
    changes = case_changes(
        CasePair(case("onnx-cast:25/int8/string"), case("onnx-cast:25/int8/string")),
        one,
        other,
        lambda _: np.arange(256, dtype=np.uint8),
    )
    assert {each.change.direction for each in changes} == {direction}


def test_an_answer_that_is_due_to_an_open_case_is_stricter() -> None:
    rules = ruling(case("numpy-astype:2.4/complex64/complex128/casting:same_value"))
    due = replace(rules, answer_due=AnswerDue("answers", "section 9", "required"))
    [change] = compared(replace(rules, answer_due=None), due)
    assert (change.change.direction, change.change.new.rule) == ("stricter", "answers")
    assert (change.was, change.now) == (("anything",), (AN_ANSWER,))
    [change] = compared(due, replace(rules, answer_due=None))
    assert change.change.direction == "looser"
