"""Messages in runs of earlier versions are converted to the problems that a run has now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.findings.cells import Divergence
from reports.findings.judged_cells import cell_of
from reports.findings.old_messages import problems_of_message
from reports.judgement import Judgement
from reports.problems import (
    ChangesWithShape,
    Died,
    Note,
    NotRefused,
    Problem,
    Refused,
    WrongForm,
    WrongShape,
)
from specs.selection import case_named

CASE = "onnx-cast:25/float16/int8"
RULE = ("wraps", "§ 3", "required")
BROKEN = Divergence(*RULE, 1, 1, "", None, None, (), (), ())
"""A rule that is broken, but not by a wrong value."""
WRONG_VALUE = replace(BROKEN, rule="rounds", smallest="0x0001", answer="0x02")


def problems(message: str, *broken: Divergence, verdict: str = "violates") -> list[Problem]:
    cell = cell_of(case_named(CASE), Judgement(CASE, "b", verdict), ())
    return problems_of_message(replace(cell, message=message, broken=broken))


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("shape (2, 3) gives shape (6,) instead of (2, 3)", WrongShape(*RULE, (2, 3), (6,))),
        (
            "shape (2, 3) is not refused, but gives shape ()",
            NotRefused(*RULE, "", (2, 3), ()),
        ),
        ("int8 is not refused, but gives 3", NotRefused(*RULE, "int8 is not refused, but gives 3")),
        (
            "shape (4,): an element answers otherwise than in one row",
            ChangesWithShape(*RULE, ()),
        ),
        (
            "shape (2,): ValueError: no\nsuch mode",
            Refused(
                "ValueError",
                "no\nsuch mode",
                where="shape (2,): ",
                rule=RULE[0],
                clause=RULE[1],
                level=RULE[2],
            ),
        ),
        ("something else", Note("something else")),
    ],
)
def test_the_message_of_a_broken_rule_is_read(message: str, problem: Problem) -> None:
    assert problems(message, BROKEN) == [problem]


@pytest.mark.parametrize(
    ("message", "verdict", "problem"),
    [
        ("exit code 139", "crashed", Died("exit code 139")),
        ("RuntimeError: bad", "error", Refused("RuntimeError", "bad")),
        ("the answer is no array", "error", WrongForm("the answer is no array")),
        ("shape (3,): the answer is None", "error", WrongForm("shape (3,): the answer is None")),
        ("two kernels", "conforms", Note("two kernels")),
    ],
)
def test_the_message_of_a_cell_without_a_broken_rule_is_read(
    message: str, verdict: str, problem: Problem
) -> None:
    assert problems(message, verdict=verdict) == [problem]


def test_each_rule_that_is_broken_otherwise_than_by_a_wrong_value_has_a_problem() -> None:
    other = replace(BROKEN, rule="saturates")
    assert problems("it", WRONG_VALUE, BROKEN, other) == [Note("it"), Note("it")]
    assert problems("it", WRONG_VALUE) == []
