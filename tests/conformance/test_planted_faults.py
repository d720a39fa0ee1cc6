"""Every planted fault is found: how many inputs it spoils, at what level, and the smallest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings

from conformance.kinds.quick_inputs import inputs_of
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named

RIGHT = Reference()
SETTINGS = Settings(max_examples=200)
Change = Callable[[Any, Any], Any]
"""Inputs and right answers to wrong answers."""


class Planted:
    """The reference with a change of its answers."""

    name = "planted"
    version = "0"

    def __init__(self, change: Change) -> None:
        self.change = change

    def cast(self, case: Case, bits: Any) -> Any:
        return self.change(bits, RIGHT.cast(case, bits))


@dataclass(frozen=True)
class Fault:
    """A change, where it shows, and what must be found; no count where the sample decides."""

    case: str
    change: Change
    smallest: int
    count: int | None
    verdict: str = "violates"


def where(condition: Any, then: Any, answers: Any) -> Any:
    return np.where(condition, np.asarray(then).astype(answers.dtype), answers)


def finite_half(inputs: Any) -> Any:
    return (inputs & 0x7FFF) < 0x7C00


def clamped(inputs: Any, answers: Any) -> Any:
    return np.clip(inputs.view(np.int16), -128, 127).astype(np.int8).view(np.uint8)


def through_float32(inputs: Any, answers: Any) -> Any:
    """Rounded twice, as a system without the direct cast would do it."""
    version = "onnx-cast:25"
    middle = RIGHT.cast(case_named(f"{version}/float64/float32"), inputs)
    return RIGHT.cast(case_named(f"{version}/float32/float16"), middle)


def magnitude(source: str, code: int) -> int:
    form = format_named(source)
    if form.kind == "integer":
        return abs(code - (form.mask + 1)) if code & form.sign_bit else code
    return code & ~form.sign_bit


HALF = "onnx-cast:25/float16/"
E5M2 = HALF + "float8e5m2/saturate:1"
FAULTS: dict[str, Fault] = {
    "one pattern of 65536": Fault(
        HALF + "float32", lambda x, y: where(x == 0x3555, y ^ 1, y), 0x3555, 1
    ),
    # Of each sign 62 even tops below the largest have a tie above them.
    "ties away": Fault(
        E5M2,
        lambda x, y: where((x & 0x1FF == 0x80) & finite_half(x), (x >> 8) + 1, y),
        0x0080,
        2 * 62,
    ),
    # Of each sign 123 tops with 127 patterns beyond the middle, 61 odd ones with the middle too.
    "truncated": Fault(
        E5M2, lambda x, y: where(finite_half(x), x >> 8, y), 0x0081, 2 * (123 * 127 + 61)
    ),
    # From 432, which is half way between the largest two, to infinity.
    "off by one at the top": Fault(
        HALF + "float8e4m3fn/saturate:1",
        lambda x, y: where(y == 0x7E, 0x7D, y),
        0x6000,
        0x7C00 - 0x5EC0 + 1,
    ),
    "sign of NaN lost": Fault(
        HALF + "float8e4m3fn/saturate:0", lambda x, y: where(x > 0xFC00, 0x7F, y), 0xFC01, 1023
    ),
    "-0 lost": Fault(
        "pypto-cast:seed/float16/float32", lambda x, y: where(x == 0x8000, 0, y), 0x8000, 1
    ),
    "-0 lost where it is only recommended": Fault(
        HALF + "bfloat16", lambda x, y: where(x == 0x8000, 0, y), 0x8000, 1, "deviates"
    ),
    "subnormals flushed": Fault(
        HALF + "float32",
        lambda x, y: where(x & 0x7C00 == 0, y & 0x80000000, y),
        0x0001,
        2 * 1023,
    ),
    # 65280 are out of range; 127 of each sign clamp to what their low byte is anyway.
    "clamped instead of wrapped": Fault(
        "onnx-cast:25/int16/int8", clamped, 0x0080, 65536 - 256 - 2 * 127
    ),
    "true and false swapped": Fault(HALF + "bool", lambda x, y: y ^ 1, 0x0000, 65536),
    # 0x48000000 is 2^17, the smallest of those with two set bits.
    "overflow saturates": Fault(
        "onnx-cast:25/float32/float16",
        lambda x, y: where(
            (y & 0x7FFF == 0x7C00) & (x & 0x7FFFFFFF < 0x7F800000), y - 1, y
        ),
        0x48000000,
        None,
    ),
    "rounded twice": Fault(
        "onnx-cast:25/float64/float16", through_float32, -1, None, "deviates"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_and_counted(name: str) -> None:
    fault = FAULTS[name]
    case = case_named(fault.case)
    found = BackendJudge(Backend("planted", Planted(fault.change)), {}, SETTINGS).judge(case)
    assert found.verdict == fault.verdict

    inputs = inputs_of(case, ruling(case), SETTINGS.seed, SETTINGS.max_examples)
    right = RIGHT.cast(case, inputs)
    spoilt = inputs[fault.change(inputs, right) != right].tolist()
    if fault.count is not None:
        assert len(spoilt) == fault.count
    assert found.wrong == len(spoilt) > 0
    assert found.inputs == inputs.size
    assert sum(divergence.count for divergence in found.divergences) == len(spoilt)

    smallest = min(spoilt, key=lambda code: (code.bit_count(), magnitude(case.source, code)))
    assert fault.smallest in (-1, smallest)
    assert smallest in [divergence.smallest for divergence in found.divergences]


@pytest.mark.parametrize("case", sorted({fault.case for fault in FAULTS.values()}))
def test_without_a_fault_nothing_is_found(case: str) -> None:
    honest = Backend("planted", Planted(lambda _, answers: answers))
    assert BackendJudge(honest, {}, SETTINGS).judge(case_named(case)).verdict == "conforms"


def test_the_answer_and_what_is_allowed_belong_to_the_smallest() -> None:
    fault = FAULTS["ties away"]
    backend_judge = BackendJudge(Backend("planted", Planted(fault.change)), {}, SETTINGS)
    [found] = backend_judge.judge(case_named(fault.case)).divergences
    assert (found.smallest, found.answer, found.allowed) == (0x0080, 0x01, ("0x00",))
    assert (found.rule, found.level) == ("saturate-24", "required")
    assert found.runs.first[:2].tolist() == [0x0080, 0x0280]
    assert found.runs.last[:2].tolist() == [0x0080, 0x0280]


def test_a_shape_dropped_at_rank_0_is_found() -> None:
    backend = Backend("planted", Planted(lambda _, answers: np.atleast_1d(answers)))
    found = BackendJudge(backend, {}, SETTINGS).judge(case_named(HALF + "float32"))
    assert found.verdict == "violates"
    assert found.message.endswith("the answer has shape (1,), the input ()")
    # The other document leaves rank 0 open.
    other = BackendJudge(backend, {}, SETTINGS).judge(case_named("pypto-cast:seed/float16/float32"))
    assert other.verdict == "conforms"
