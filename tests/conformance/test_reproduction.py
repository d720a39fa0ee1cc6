"""The script of a failing case asks about a tensor that shows the failure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings

from oracles.adapters.script_text import bits_statement
from oracles.protocol import Bits, Oracle
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from specs.cases import Case
from specs.selection import case_named
from tests.conformance.test_suite import suite

ONE = 0x3F800000
SHOWN, HIDDEN = Settings(), Settings(hides_unclaimed=True)


class Vectors:
    """Answers a 1 wrongly: in a row of at least ``length`` otherwise than in a shorter one."""

    name, version = "vectors", "1"
    claims: tuple[str, ...] = ()

    def __init__(self, length: int) -> None:
        self._length = length

    def cast(self, case: Case, bits: Bits) -> Bits:
        wrong = np.uint16(0x8000 if bits.size >= self._length else 0x7FFF)
        return np.where(bits == ONE, wrong, Reference().cast(case, bits))

    def reproduce(self, case: Case, bits: Bits) -> str:
        return bits_statement(case.source, bits)


class FiveAreZero(Vectors):
    """Answers zeros in a row of five elements, and otherwise rightly."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        answers = Reference().cast(case, bits)
        return np.zeros_like(answers) if bits.size == 5 else answers


class AlwaysWrong(Vectors):
    """The same in a row of any length."""

    def __init__(self) -> None:
        super().__init__(1)


def script(oracle: Oracle, settings: Settings = SHOWN) -> str:
    judge = BackendJudge(Backend("planted", oracle), {}, settings)
    return judge.judge(case_named("onnx-cast:25/float32/int16")).reproduction


@pytest.mark.parametrize(
    ("length", "shown"), [(1, "np.array([0x3f800000], "), (20, "np.full(37, 0x3f800000, ")]
)
def test_an_input_that_gets_another_answer_alone_is_shown_in_a_row(length: int, shown: str) -> None:
    assert shown in script(Vectors(length))


def test_a_right_input_that_turns_wrong_in_a_shape_is_shown_in_a_row() -> None:
    assert "np.full(37, 0x" in script(FiveAreZero(1))


def test_a_difference_that_nobody_sees_has_no_script() -> None:
    asked_for = replace(HIDDEN, asked_for=frozenset({"onnx-cast"}))
    assert script(Vectors(1), HIDDEN) == ""
    assert script(Vectors(1), asked_for) == script(Vectors(1)) != ""


@pytest.mark.parametrize(("option", "is_shown"), [((), False), (("--runxfail",), True)])
def test_pytest_shows_an_unclaimed_difference_only_under_runxfail(
    option: tuple[str, ...], is_shown: bool
) -> None:
    pair = ("-k", "onnx-cast:25/float32/int16", "-rA")
    _, output = suite(f"--backend={__file__}:AlwaysWrong", *pair, *option)
    assert ("np.array([0x3f800000], " in output) == is_shown
    assert ("differs from a document it does not claim" in output) == (not is_shown)
