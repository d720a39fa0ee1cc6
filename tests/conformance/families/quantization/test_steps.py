"""Systems that quantize in other steps than the formula's, made in numpy: each is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.families.quantization.kernels import quantize as answer_rightly
from conformance.families.quantization.wrongs import says
from reports.problems import WrongTensor
from specs.cases import Case
from tests.conformance.families.quantization.planted_quantizers import (
    TENSOR,
    Tensors,
    dequantizing,
    ends,
    not_a_number,
    operands,
    replacing,
    stored,
    unsigned,
)
from tests.conformance.families.quantization.test_judge import judge

Quantize = Callable[[Case, Tensors], Mapping[str, Any]]

HALF_SCALE = "onnx-quantize-linear:25/float32/int8/scale:float16/form:tensor"
E4M3 = "onnx-quantize-linear:25/float32/float8e4m3fn/scale:float32/form:tensor/saturate:1"
E5M2 = "onnx-quantize-linear:25/float32/float8e5m2/scale:float32/form:tensor/saturate:1"
TO_HALF = "onnx-dequantize-linear:25/int16/float16/scale:float32/form:tensor"
BYTE_TO_HALF = "onnx-dequantize-linear:25/uint8/float16/scale:float16/form:tensor"
TO_BRAIN = "onnx-dequantize-linear:25/int16/bfloat16/scale:float32/form:tensor"


def named(case: str, quantize: Quantize) -> list[str]:
    """Judge a system; return the mechanisms that explain its wrong answers."""
    problem = judge(case, quantize).problems[0]
    assert isinstance(problem, WrongTensor)
    assert all(map(says, problem.followed))
    return [*problem.followed]


def scaled_limits(case: Case, tensors: Tensors, largest: float = np.inf) -> Any:
    """Return x, and the scale times the limits of codes, in float32."""
    x, scale, zero = operands(case, tensors)
    x, scale, zero = (each.astype(np.float32) for each in (x, scale, zero))
    limits = [scale * (np.float32(end) - zero) for end in ends(case)]
    limits = [np.where(np.abs(end) > largest, np.copysign(np.inf, end), end) for end in limits]
    return x, *(end.astype(np.float32) for end in limits)


def dividing(largest: float = np.inf) -> Quantize:
    """Fake quantization that divides by the range between the limits."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        lowest, highest = map(np.float32, ends(case))
        count = highest - lowest
        with np.errstate(all="ignore"):
            x, low, high = scaled_limits(case, tensors, largest)
            steps = np.rint((x - low) / (high - low) * count)
            inside = steps / count * count + lowest
            codes = np.where(x <= low, lowest, np.where(x > high, highest, inside))
        return stored(case, np.trunc(codes))

    return quantize


def multiplying(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """Fake quantization that multiplies by a factor and adds a term."""
    lowest, highest = map(np.float32, ends(case))
    with np.errstate(all="ignore"):
        x, low, high = scaled_limits(case, tensors)
        factor = (highest - lowest) / (high - low)
        codes = np.rint(np.clip(x, low, high) * factor - low * factor) + lowest
    return stored(case, codes)


def test_fake_quantization_is_named_by_its_steps() -> None:
    assert named(TENSOR, dividing()) == ["divides-between-scaled-limits"]
    assert named(TENSOR, multiplying) == ["multiplies-between-scaled-limits"]


def test_limits_that_overflow() -> None:
    assert named(HALF_SCALE, dividing(65504)) == [
        "divides-between-scaled-limits+overflows-in-scaled-limits"
    ]


def in_float16(values: Any) -> Any:
    return values.astype(np.float16)


def from_odd(values: Any) -> Any:
    """Round to bfloat16, as float32: add the half only where the truncated pattern is odd."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    high = bits + ((bits & 0x10000) >> 1) >> 16 << 16
    return np.where(np.isfinite(values), high.astype(np.uint32).view(np.float32), values)


def by_steps(codes: Any, scale: Any, difference: Any, product: Any) -> Quantize:
    """A dequantization whose steps are rounded by the given functions."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x, factor, zero = operands(case, tensors)
        with np.errstate(all="ignore"):
            found = difference(codes(x).astype(np.float32) - codes(zero).astype(np.float32))
            found = product(found.astype(np.float32) * scale(factor).astype(np.float32))
            target = np.float16 if case.target == "float16" else ml_dtypes.bfloat16
            return {"y": found.astype(target).view(np.uint16)}

    return quantize


def kept(values: Any) -> Any:
    return values


def brain(values: Any) -> Any:
    return values.astype(np.float32).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("case", "steps", "name"),
    [
        (TO_HALF, (in_float16,) * 4, "rounds-each-step"),
        (TO_HALF, (in_float16, in_float16, kept, in_float16), "rounds-operands"),
        (TO_BRAIN, (from_odd,) * 4, "rounds-each-step-up-from-odd"),
        (TO_BRAIN, (from_odd, from_odd, kept, from_odd), "rounds-operands-up-from-odd"),
        (TO_BRAIN, (from_odd, brain, kept, brain), "rounds-codes-up-from-odd"),
    ],
)
def test_steps_of_dequantization_are_named(case: str, steps: tuple[Any, ...], name: str) -> None:
    assert named(case, by_steps(*steps)) == [name]


def test_subnormal_products_are_no_subnormal_scales() -> None:
    def multiply(difference: Any, scale: Any) -> Any:
        product = difference.astype(np.float16) * scale
        return np.where(np.abs(product) < np.finfo(np.float16).tiny, np.float16(0), product)

    found = named(BYTE_TO_HALF, dequantizing(multiply=multiply))
    assert found == ["makes-subnormal-products-zero"]


def with_quotients(change: Callable[[Any], Any]) -> Quantize:
    """A quantization that changes the quotients in float32, and then rounds these rightly."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x, scale, _ = operands(case, tensors)
        with np.errstate(all="ignore"):
            quotient = change(x / scale).astype(np.float32)
        one = np.full(tensors["scale"].shape, 1, np.float32).view(np.uint32)
        return answer_rightly(case, {**tensors, "x": quotient.view(np.uint32), "scale": one})

    return quantize


def without_last_bits(quotients: Any) -> Any:
    """Round quotients to four significant bits, and truncate those that are subnormal in E4M3."""
    unit = 2.0**-9
    magnitudes = np.abs(quotients.astype(np.float64))
    significand, exponent = np.frexp(magnitudes)
    rounded = np.ldexp(np.rint(significand * 16) / 16, exponent)
    whole = np.where(magnitudes < unit, 0, np.floor(rounded / unit) * unit)
    found = np.where(magnitudes < 8 * unit, whole, magnitudes)
    return np.copysign(found, quotients).astype(np.float32)


def carried(quotients: Any) -> Any:
    """Round quotients to float16, and double subnormal powers of two that were rounded up."""
    rounded = quotients.astype(np.float16)
    grown = np.abs(rounded.astype(np.float64)) > np.abs(quotients.astype(np.float64))
    is_power = np.isin(np.abs(rounded).view(np.uint16), 1 << np.arange(10))
    return np.where(grown & is_power, 2 * rounded, rounded)


def test_subnormal_codes_that_are_truncated() -> None:
    assert named(E4M3, with_quotients(without_last_bits)) == ["truncates-subnormals"]


def test_a_carry_in_float16_that_counts_twice() -> None:
    assert named(E5M2, with_quotients(carried)) == ["carries-twice-in-float16"]


def test_quotients_in_float16_carry_once() -> None:
    names = named(E5M2, with_quotients(in_float16))
    assert "rounds-quotients-to-float16" in names
    assert "carries-twice-in-float16" not in names


def of_sign(x: Any) -> Any:
    return np.where(np.signbit(x), 0xFE, 0x7E).astype(np.uint8)


@pytest.mark.parametrize(
    ("codes", "name"),
    [
        (unsigned(0x7E), "makes-nans-the-largest"),
        (unsigned(0xFE), "makes-nans-the-lowest"),
        (of_sign, "makes-nans-the-largest-of-their-sign"),
    ],
)
def test_what_becomes_of_nan_is_named(codes: Any, name: str) -> None:
    assert named(E4M3, replacing((not_a_number, codes))) == [name]
