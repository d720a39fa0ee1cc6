"""The script of a failing case asks about a tensor that shows the failure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.families.reference import Reference
from conformance.judging.asking import Subject
from oracles.adapters.script_text import bits_statement
from oracles.protocol import Bits
from specs.cases import Case
from tests.conformance import feeding
from tests.conformance.feeding import answering, planted
from tests.conformance.test_suite import suite

ONE = 0x3F800000
CASE = "onnx-cast:25/float32/int16"
SHOWN = "np.array([0x3f800000], "
SHOWN_IN_A_ROW = "np.full(37, 0x3f800000, "


class AlwaysWrong:
    """Answers 1 wrongly, in rows of at least ``length`` elements otherwise than in shorter ones."""

    name, version = "wrong", "1"
    claims: tuple[str, ...] = ()

    def __init__(self, length: int = 1) -> None:
        self._length = length

    def cast(self, case: Case, bits: Bits) -> Bits:
        wrong = np.uint16(0x8000 if bits.size >= self._length else 0x7FFF)
        return np.where(bits == ONE, wrong, Reference().cast(case, bits))

    def reproduce(self, case: Case, bits: Bits) -> str:
        return bits_statement(case.source, bits)


def script(cast: Any, subject: Subject | None = None) -> str:
    answer = answering(cast=cast, reproduce=AlwaysWrong().reproduce)
    return feeding.judged(CASE, answer, subject).reproduction


@pytest.mark.parametrize(("length", "shown"), [(1, SHOWN), (20, SHOWN_IN_A_ROW)])
def test_an_input_that_gets_another_answer_alone_is_shown_in_a_row(length: int, shown: str) -> None:
    assert shown in script(AlwaysWrong(length).cast)


def test_a_right_input_that_turns_wrong_in_a_shape_is_shown_in_a_row() -> None:
    def five_are_zero(case: Case, bits: Bits) -> Bits:
        answers = Reference().cast(case, bits)
        return np.zeros_like(answers) if bits.size == 5 else answers

    assert "np.full(37, 0x" in script(five_are_zero)


@pytest.mark.parametrize(
    ("subject", "is_shown"),
    [
        (planted([]), True),
        (planted([], hides_unclaimed=True), False),
        (planted([], hides_unclaimed=True, asked_for=frozenset({"onnx-cast"})), True),
    ],
)
def test_a_difference_that_nobody_sees_has_no_script(subject: Subject, is_shown: bool) -> None:
    assert bool(script(AlwaysWrong().cast, subject)) == is_shown


@pytest.mark.parametrize(("option", "is_shown"), [((), False), (("--runxfail",), True)])
def test_pytest_shows_an_unclaimed_difference_only_under_runxfail(
    option: tuple[str, ...], is_shown: bool
) -> None:
    _, output = suite(f"--backend={__file__}:AlwaysWrong", "-k", CASE, "-rA", *option)
    assert (SHOWN in output) == is_shown
    assert ("differs from a document it does not claim" in output) == (not is_shown)
