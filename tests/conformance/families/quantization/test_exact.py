"""The kernels of quantization allow what the definition in fractions allows."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.families.quantization import exact as exact_quantization
from conformance.families.quantization.dynamic import dynamic_inputs
from conformance.families.quantization.grading import allowed, as_code
from conformance.families.quantization.inputs import telling_requests
from conformance.families.quantization.kernels import NO_CODE, expect, quantize, values_of
from conformance.families.quantization.ruling import formula
from specs.cases import Case
from specs.formats import format_named, value_of
from specs.outcomes import Nan
from specs.selection import case_named, select

EDITIONS = (
    "onnx-quantize-linear:13", "onnx-quantize-linear:19", "onnx-quantize-linear:21",
    "onnx-quantize-linear:25", "onnx-dequantize-linear:21", "onnx-dequantize-linear:25",
    "webnn-quantize-linear", "webnn-dequantize-linear",
)  # fmt: skip
ELEMENTS = 400
"""Elements of each edition that are compared."""


@pytest.mark.parametrize("edition", EDITIONS)
def test_both_allow_the_same(edition: str) -> None:
    draw = np.random.default_rng(len(edition))
    cases = select([edition])
    for case in draw.choice(np.array(cases, object), min(40, len(cases)), replace=False):
        for given in telling_requests(case, has_whole=False):
            x, scale = given.tensors["x"].reshape(-1), given.scales.reshape(-1)
            picked = draw.choice(x.size, 4)
            zero = None if given.zeros is None else given.zeros.reshape(-1)[picked]
            check(case, x[picked], scale[picked], zero)


def check(case: Case, x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None) -> None:
    rules = formula(case)
    found = expect(rules, x, scale, zero)
    for at in range(x.size):
        offset = None if zero is None else int(zero[at])
        due = allowed(rules, int(x[at]), int(scale[at]), offset)
        shown = f"{case.id} {x[at]:#x} {scale[at]:#x} {offset}: {due}"
        assert bool(found.is_open[at]) == due.is_open, shown
        if due.is_open:
            continue
        strong = {int(codes[at]) for codes in found.strong} - {NO_CODE}
        weaker = {int(codes[at]) for codes in found.weaker} - {NO_CODE} - strong
        assert (strong, weaker) == ({*map(as_code, due.codes)}, {*map(as_code, due.weaker)}), shown
        assert bool(found.is_recommended[at]) == (due.level == "recommended"), shown


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8e4m3fn", "int8", "uint4", "int16"])
def test_values_are_those_of_the_format(dtype: str) -> None:
    fmt = format_named(dtype)
    special = {code for codes in fmt.nan_codes for code in codes}
    if fmt.entry.infinity:
        special |= {fmt.infinity_code, fmt.infinity_code | fmt.sign_bit}
    codes = np.arange(1 << fmt.bits, dtype=fmt.storage)
    with np.errstate(invalid="ignore"):  # signaling NaNs
        values = values_of(fmt, codes)
    for code in range(0, 1 << fmt.bits, max(1, (1 << fmt.bits) // 997)):
        if code not in special:
            assert values[code] == value_of(fmt, code)


def code_of(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


BY_HAND: list[tuple[str, float, float, int | None, set[int]]] = [
    ("uint8", 0.5, 1.0, None, {0}),
    ("uint8", 1.5, 1.0, None, {2}),
    ("uint8", 2.5, 1.0, 1, {3}),
    ("uint8", 0.5, 1.0, 1, {1}),
    ("uint8", -5.0, 1.0, 3, {0}),
    ("uint8", 300.0, 1.0, 0, {255}),
    ("int8", -200.0, 1.0, 0, {0x80}),
    ("int8", 1.0, 0.1, 0, {10}),
    ("int4", 100.0, 1.0, 0, {7}),
    ("float4e2m1", 2.5, 1.0, None, {4}),
    ("float4e2m1", 100.0, 1.0, None, {7}),
]


@pytest.mark.parametrize(("target", "x", "scale", "zero", "codes"), BY_HAND)
def test_elements_by_hand(
    target: str, x: float, scale: float, zero: int | None, codes: set[int]
) -> None:
    case = case_named(f"onnx-quantize-linear:25/float32/{target}/scale:float32/form:tensor")
    due = exact_quantization.quantized(formula(case), code_of(x), code_of(scale), zero)
    assert set(due.codes) == codes


@pytest.mark.parametrize(
    ("x", "scale", "is_open"),
    [("inf", 1e9, True), ("-inf", 1e9, True), ("inf", 3.0, False), ("nan", 1e9, False)],
)
def test_an_infinity_by_a_scale_beyond_the_precision_is_open(
    x: str, scale: float, is_open: bool
) -> None:
    edition = "onnx-quantize-linear:25/float32/float8e5m2/scale:float32/form:tensor/saturate:1"
    case = case_named(f"{edition}/precision:float16")
    code, by = code_of(float(x)), code_of(scale)
    due = exact_quantization.quantized(formula(case), code, by, None)
    assert due.is_open == is_open
    check(case, np.array([code], np.uint32), np.array([by], np.uint32), None)


@pytest.mark.parametrize("scale", [-1.0, 0.0, float("inf"), float("nan")])
def test_other_scales_are_open(scale: float) -> None:
    case = case_named("onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor")
    assert exact_quantization.quantized(formula(case), code_of(1.0), code_of(scale), 0).is_open


def test_dynamic_answers_are_allowed() -> None:
    case = case_named("onnx-dynamic-quantize-linear:11/float32/uint8")
    rules = formula(case)
    settled = 0
    for x in dynamic_inputs():
        found = quantize(case, {"x": x})
        scale, zero = int(found["scale"]), int(found["zero"])
        due = exact_quantization.dynamic_scale(rules, x.tolist())
        if due.is_open:
            continue
        settled += 1
        assert scale in due.codes
        if scale == 0:  # The range is less than 255 times the smallest scale.
            continue
        assert zero in exact_quantization.dynamic_zero_point(rules, x.tolist(), scale).codes
        for element, code in zip(x.tolist(), found["y"].tolist(), strict=True):
            of_element = exact_quantization.quantized(rules, element, scale, zero)
            assert of_element.is_open or code in of_element.codes
    assert settled > 20


ONNX, WEBNN = "onnx-quantize-linear:25/float32", "webnn-quantize-linear:draft/float32"
SPECIAL: list[tuple[str, float, int | None, set[int], str]] = [
    # An infinity is limited as all others are; no page says so in words.
    (f"{ONNX}/int8/scale:float32/form:tensor", float("inf"), 3, {0x7F}, "recommended"),
    (f"{ONNX}/int8/scale:float32/form:tensor", float("-inf"), 3, {0x80}, "recommended"),
    (f"{WEBNN}/uint8/scale:float32/form:tensor", float("-inf"), 0, {0}, "recommended"),
    # Where floats hold a wide zero point and the sum, WebNN's formula and emulation agree.
    (f"{WEBNN}/int32/scale:float32/form:tensor", 5.0, 7, {12}, "required"),
    (f"{WEBNN}/int32/scale:float32/form:tensor", 5.0, 2**24, set(), "open"),
    (f"{WEBNN}/int32/scale:float32/form:tensor", 5.0, 2**24 + 1, set(), "open"),
    # NaN is no number, and the page is silent.
    (f"{ONNX}/int8/scale:float32/form:tensor", float("nan"), 3, set(), "open"),
]


@pytest.mark.parametrize(("name", "x", "zero", "codes", "level"), SPECIAL)
def test_special_elements_by_hand(
    name: str, x: float, zero: int | None, codes: set[int], level: str
) -> None:
    case = case_named(name)
    due = exact_quantization.quantized(formula(case), code_of(x), code_of(1.0), zero)
    assert ("open" if due.is_open else due.level) == level
    assert set(due.codes) == codes


@pytest.mark.parametrize("target", ["int32", "uint32"])
def test_both_say_where_floats_hold_a_wide_zero_point(target: str) -> None:
    """Beyond 2^53 a sum is rounded in float64, and must not seem to fit because of it."""
    case = case_named(f"{WEBNN}/{target}/scale:float32/form:tensor")
    numbers = [sign * 2.0**power for sign in (1, -1) for power in (0, 23, 24, 30, 54, 60, 100)]
    zeros = [0, 1, 5, 2**24, 2**31, 2**32 - 5]
    x = np.array([code_of(number) for number in numbers for _ in zeros], np.uint32)
    zero = np.array(zeros * len(numbers), np.uint32)
    check(case, x, np.full(x.shape, code_of(1.0), np.uint32), zero)


def test_the_scale_of_zeros_is_zero() -> None:
    rules = formula(case_named("onnx-dynamic-quantize-linear:11/float32/uint8"))
    for zeros in ([0, 0], [0x80000000]):
        due = exact_quantization.dynamic_scale(rules, zeros)
        assert (due.codes, due.level, due.is_open) == ((0,), "required", False)


@pytest.mark.parametrize(
    ("code", "codes"),
    [(0x7C, {0x7F800000}), (0xFC, {0xFF800000}), (0x7D, {Nan("any")}), (0xFF, {Nan("any")})],
)
def test_infinities_and_nans_are_dequantized_by_the_formula(
    code: int, codes: set[int | Nan]
) -> None:
    case = case_named("onnx-dequantize-linear:25/float8e5m2/float32/scale:float32/form:tensor")
    due = exact_quantization.dequantized(formula(case), code, code_of(0.5), None)
    assert (set(due.codes), due.level) == (codes, "recommended")
