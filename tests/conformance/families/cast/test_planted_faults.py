"""Every planted fault is found: how many inputs it spoils, at what level, and the smallest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import inputs_of
from conformance.families.reference import Reference
from oracles.backend.replies import malformed
from reports.judgement import Judgement
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance import feeding
from tests.conformance.feeding import answering, planted

RIGHT = Reference()
EXAMPLES = 200
Change = Callable[[Any, Any], Any]
"""Takes inputs and right answers, and returns wrong answers."""


def judged(case: str, change: Change) -> Judgement:
    answer = answering(cast=lambda case, bits: change(bits, RIGHT.cast(case, bits)))
    return feeding.judged(case, answer, planted(max_examples=EXAMPLES))


def where(condition: Any, then: Any, answers: Any) -> Any:
    return np.where(condition, np.asarray(then).astype(answers.dtype), answers)


def finite_half(inputs: Any) -> Any:
    return (inputs & 0x7FFF) < 0x7C00


def ties_away(inputs: Any, answers: Any) -> Any:
    return where((inputs & 0x1FF == 0x80) & finite_half(inputs), (inputs >> 8) + 1, answers)


def clamped(inputs: Any, answers: Any) -> Any:
    return np.clip(inputs.view(np.int16), -128, 127).astype(np.int8).view(np.uint8)


def saturated(inputs: Any, answers: Any) -> Any:
    overflows = (answers & 0x7FFF == 0x7C00) & (inputs & 0x7FFFFFFF < 0x7F800000)
    return where(overflows, answers - 1, answers)


def through_float32(inputs: Any, answers: Any) -> Any:
    """Round twice, as a system without the direct cast would."""
    middle = RIGHT.cast(case_named("onnx-cast:25/float64/float32"), inputs)
    return RIGHT.cast(case_named("onnx-cast:25/float32/float16"), middle)


def magnitude(source: str, code: int) -> int:
    form = format_named(source)
    if form.kind == "integer":
        return abs(code - (form.mask + 1)) if code & form.sign_bit else code
    return code & ~form.sign_bit


HALF = "onnx-cast:25/float16/"
E5M2 = HALF + "float8e5m2/saturate:1"
FAULTS: dict[str, tuple[str, Change, int, int | None, str]] = {
    # The smallest wrong input, and the number of wrong inputs; None if it depends on the sample.
    "one pattern of 65536": (HALF + "float32", lambda x, y: where(x == 0x3555, y ^ 1, y),
                             0x3555, 1, "violates"),
    # Of each sign 62 even tops below the largest have a tie above them.
    "ties away": (E5M2, ties_away, 0x0080, 2 * 62, "violates"),
    # Of each sign 123 tops with 127 patterns beyond the middle, 61 odd ones with the middle too.
    "truncated": (E5M2, lambda x, y: where(finite_half(x), x >> 8, y), 0x0081,
                  2 * (123 * 127 + 61), "violates"),
    # From 432, which is half way between the largest two, to infinity.
    "off by one at the top": (HALF + "float8e4m3fn/saturate:1",
                              lambda x, y: where(y == 0x7E, 0x7D, y),
                              0x6000, 0x7C00 - 0x5EC0 + 1, "violates"),
    "sign of NaN lost": (HALF + "float8e4m3fn/saturate:0",
                         lambda x, y: where(x > 0xFC00, 0x7F, y), 0xFC01, 1023, "violates"),
    "-0 lost": ("pypto-cast:seed/float16/float32", lambda x, y: where(x == 0x8000, 0, y),
                0x8000, 1, "violates"),
    "-0 lost where it is only recommended": (
        HALF + "bfloat16", lambda x, y: where(x == 0x8000, 0, y), 0x8000, 1, "deviates"),
    "subnormals flushed": (HALF + "float32",
                           lambda x, y: where(x & 0x7C00 == 0, y & 0x80000000, y),
                           0x0001, 2 * 1023, "violates"),
    # 65280 are out of range; 127 of each sign clamp to the value of their low byte.
    "clamped instead of wrapped": ("onnx-cast:25/int16/int8", clamped,
                                   0x0080, 65536 - 256 - 2 * 127, "violates"),
    "true and false swapped": (HALF + "bool", lambda x, y: y ^ 1, 0x0000, 65536, "violates"),
    # 0x48000000 is 2^17, the smallest of those with two set bits.
    "overflow saturates": ("onnx-cast:25/float32/float16", saturated, 0x48000000, None,
                           "violates"),
    "a text of another value": ("onnx-cast:25/int8/string", lambda x, y: where(x == 0xF8, "-7", y),
                                0xF8, 1, "violates"),
    # 1.5 may be rounded, but it is recommended that its text reads back.
    "a text that only rounds": ("onnx-cast:25/float8e4m3fn/string",
                                lambda x, y: where(x == 0x3C, "2", y), 0x3C, 1, "deviates"),
    "rounded twice": ("onnx-cast:25/float64/float16", through_float32, -1, None, "deviates"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_and_counted(name: str) -> None:
    case_id, change, known, count, verdict = FAULTS[name]
    case = case_named(case_id)
    found = judged(case_id, change)
    assert found.verdict == verdict
    inputs = inputs_of(case, ruling(case), 0, EXAMPLES)
    right = RIGHT.cast(case, inputs)
    spoilt = inputs[change(inputs, right) != right].tolist()
    assert count in (None, len(spoilt))
    assert found.wrong == len(spoilt) > 0
    assert found.inputs == inputs.size
    assert sum(divergence.count for divergence in found.divergences) == len(spoilt)
    smallest = min(spoilt, key=lambda code: (code.bit_count(), magnitude(case.source, code)))
    assert known in (-1, smallest)
    assert smallest in [divergence.smallest for divergence in found.divergences]


@pytest.mark.parametrize("case", sorted({fault[0] for fault in FAULTS.values()}))
def test_without_a_fault_nothing_is_found(case: str) -> None:
    assert judged(case, lambda _, answers: answers).verdict == "conforms"


def test_the_answer_and_what_is_allowed_belong_to_the_smallest() -> None:
    [found] = judged(E5M2, ties_away).divergences
    assert (found.smallest, found.answer, found.allowed) == (0x0080, 0x01, ("0x00",))
    assert (found.rule, found.level) == ("saturate-24", "required")
    assert found.runs.first[:2].tolist() == [0x0080, 0x0280]
    assert found.runs.last[:2].tolist() == [0x0080, 0x0280]


@pytest.mark.parametrize(
    ("case", "verdict"),
    # The other document leaves tensors without dimensions open.
    [(HALF + "float32", "violates"), ("pypto-cast:seed/float16/float32", "conforms")],
)
def test_a_shape_that_is_lost_in_a_scalar_is_found(case: str, verdict: str) -> None:
    def loses_shape(case: Case, bits: Any) -> Any:
        if bits.ndim == 0:
            raise malformed("the answer has shape (1,), the input ()")
        return RIGHT.cast(case, bits)

    found = feeding.judged(case, answering(cast=loses_shape), planted(max_examples=EXAMPLES))
    message = "shape (): the answer has shape (1,), the input ()"
    assert (found.verdict, found.message) == (verdict, message if verdict == "violates" else "")
