"""A fault is one of the run before if its fields are, but for those that say how it came about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.findings.judged_cells import cell_of
from reports.gate.fault_comparison import broken_rules, fails_alike
from reports.judgement import Judgement
from reports.problems import (
    BrokenPromise,
    Died,
    Fault,
    WrongByAnyReading,
    WrongElement,
    WrongForm,
    WrongTensor,
)
from specs.selection import case_named

CASE = "onnx-cast:25/float16/int8"
WIDE = "onnx-cast:25/float32/int8"
RULE = ("rounding", "§ 1", "required")
QUANTIZED = WrongTensor(*RULE, "y", "0x1", "0x2", ("0x3",), 3, 100_000)
ELEMENT = WrongElement(*RULE, (2,), 1, "0x1", "0x2")
READ = WrongByAnyReading(*RULE, (ELEMENT,))
LAYER = BrokenPromise(*RULE, "layer's input", ("int8", "no kernel at 0x7ffe0123 for it"))
FORM = WrongForm("the answer holds 0x1f", "", *RULE)


def is_known(before: Fault, now: Fault, name: str = CASE) -> bool:
    case = case_named(name)
    old, new = (
        cell_of(case, Judgement(case.id, "b", "violates", (each,)), ()) for each in (before, now)
    )
    [broken] = broken_rules(new)
    return fails_alike(old, new, broken)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (QUANTIZED, replace(QUANTIZED, followed=("floor",), script="import it")),
        (READ, replace(READ, readings=(replace(ELEMENT, followed=("swaps",)),))),
        (LAYER, replace(LAYER, facts=("int8", "no kernel at 0x7ffe9876 for it"))),
    ],
)
def test_what_explains_a_fault_or_differs_anyway_is_not_compared(before: Fault, now: Fault) -> None:
    assert is_known(before, now)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (QUANTIZED, replace(QUANTIZED, got="0x4")),
        (QUANTIZED, replace(QUANTIZED, inputs=200_000)),
        (READ, replace(READ, readings=(replace(ELEMENT, index=0),))),
        (LAYER, replace(LAYER, facts=("int16", LAYER.facts[1]))),
        (FORM, replace(FORM, what="the answer is no array")),
        (FORM, LAYER),
    ],
)
def test_another_field_is_another_fault(before: Fault, now: Fault) -> None:
    assert is_known(before, before)
    assert not is_known(before, now)


@pytest.mark.parametrize(
    ("now", "is_known"),
    [
        ("on 0x3f800000 (1): SIGSEGV", True),
        ("on 0x40000000 (2): SIGSEGV", True),
        ("on 0x00000000 (0): SIGSEGV", False),
        ("on 0x00000000 (0) to 0x40000000 (2) together: SIGSEGV", False),
        ("SIGSEGV", False),
    ],
)
def test_a_crash_is_known_on_inputs_that_a_seed_may_draw(now: str, is_known: bool) -> None:
    case = case_named(WIDE)
    before, after = (
        cell_of(case, Judgement(case.id, "b", "crashed", (Died(how),)), ())
        for how in ("on 0x3f800000 (1): SIGSEGV", now)
    )
    assert fails_alike(before, after, None) == is_known
