"""Libraries that encode or decode blocks in arithmetic of narrow floats: each fault is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.families.blocks.kernels import answer_blocks
from conformance.families.blocks.sentences import says
from reports.problems import WrongTensor
from tests.conformance.families.blocks.planted_blocks import Quantize, library
from tests.conformance.feeding import answering, judged

MX = "mx-blocks:1/{number}/{element}/rule:{rule}/block:32"
NV = "nvfp4-blocks:1/{number}/float4e2m1/rule:nearest-even/global:{whole}/block:16"
MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
VALUES = np.concatenate([MAGNITUDES, -MAGNITUDES])
"""The values of the codes of E2M1, in the order of the codes."""
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
FIRST = "takes-the-first-of-the-nearest-codes"
BY_RECIPROCAL = "multiplies-quotients-by-the-reciprocal-of-the-global-scale"
FAR_OFF = "makes-blocks-zero-whose-scale-is-far-too-small"


def named(case: str, quantize: Quantize, tensor: str = "y") -> set[tuple[str, ...]]:
    """Judge a case; return the mechanisms that explain each rule that the tensor breaks."""
    found = judged(case, answering(quantize=quantize)).problems
    wrong = [each for each in found if isinstance(each, WrongTensor) and each.tensor == tensor]
    assert all(says(name) for each in wrong for name in each.followed)
    return {each.followed for each in wrong}


def values_of_scales(scale: Any, size: int, shape: Any) -> Any:
    """The values of scales, one for each element."""
    values = scale.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    if size == 32:
        with np.errstate(over="ignore"):
            values = np.ldexp(np.float32(1), scale.astype(np.int32) - 127)
    return np.repeat(values, size, axis=-1)[..., : shape[-1]]


def making(codes: Callable[[Any, Any, Any], Any], scales: Any = lambda scale: scale) -> Quantize:
    """A library whose codes a function computes from numbers, values of scales and global scale."""

    def quantize(case: Any, tensors: Any) -> Any:
        numbers = tensors["x"].view(DTYPES[case.source])
        scale = answer_blocks(case, tensors)["scale"]
        values = values_of_scales(scale, int(case.mode["block"]), numbers.shape)
        whole = np.float32(tensors.get("global", np.uint32(0x3F800000)).view(np.float32))
        with np.errstate(all="ignore"):
            return {"y": codes(numbers, values, whole).astype(np.uint8), "scale": scales(scale)}

    return quantize


def first_of_the_nearest(quotients: Any) -> Any:
    distances = np.abs(quotients.astype(np.float32)[..., np.newaxis] - VALUES)
    return distances.argmin(axis=-1)


def by_distance(numbers: Any, scales: Any, whole: Any) -> Any:
    return first_of_the_nearest(numbers / scales.astype(numbers.dtype))


def by_distance_and_reciprocal(numbers: Any, scales: Any, whole: Any) -> Any:
    quotients = (numbers / scales.astype(numbers.dtype)).astype(np.float32)
    return first_of_the_nearest(quotients * (np.float32(1) / whole))


def test_the_first_of_the_nearest_codes() -> None:
    assert named(NV.format(number="float32", whole="none"), making(by_distance)) == {(FIRST,)}


def test_distances_of_narrow_quotients() -> None:
    case = NV.format(number="bfloat16", whole="none")
    assert named(case, making(by_distance)) == {(f"{FIRST}-and-rounds-elements-to-bfloat16-first",)}


@pytest.mark.parametrize("number", ["float32", "float16", "bfloat16"])
def test_distances_of_quotients_times_a_reciprocal(number: str) -> None:
    case = NV.format(number=number, whole="given")
    assert named(case, making(by_distance_and_reciprocal)) == {(f"{FIRST}-and-{BY_RECIPROCAL}",)}


def test_ties_toward_zero_alone_are_no_first_codes() -> None:
    case = MX.format(number="float32", element="float4e2m1", rule="floor")
    assert named(case, library(mode="half-down")) == {("rounds-elements-half-toward-zero",)}


def test_an_infinite_divisor_narrow_quotients_and_lost_signs() -> None:
    def codes(numbers: Any, scales: Any, whole: Any) -> Any:
        divisors = np.where(scales < 2.0**-24, 1, scales).astype(np.float16)
        quotients = numbers / np.where(divisors < 2.0**14, divisors, np.inf).astype(np.float16)
        magnitudes = np.minimum(np.abs(quotients.astype(np.float32)), 6)
        places = magnitudes.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 7
        return places | np.where(quotients < 0, 8, 0)

    def scales(scale: Any) -> Any:
        return np.where((scale < 127 - 24) | (scale >= 127 + 14), 127, scale).astype(np.uint8)

    case = MX.format(number="float16", element="float4e2m1", rule="even")
    assert named(case, making(codes, scales)) == {
        (f"reads-negative-zero-as-zero-and-{FAR_OFF}-and-rounds-elements-to-float16-first",)
    }


def test_half_added_to_integers() -> None:
    def codes(numbers: Any, scales: Any, whole: Any) -> Any:
        multiples = np.abs(numbers / scales) * np.float32(64)
        places = np.floor(multiples + np.float32(0.5))
        places -= (multiples - np.float32(0.5)) % 2 == 0
        places = np.minimum(np.where(np.isfinite(places), places, 0), 127)
        return np.copysign(places, numbers).astype(np.int8).view(np.uint8)

    case = MX.format(number="float32", element="int8", rule="floor")
    assert named(case, making(codes)) == {("adds-half-to-elements-in-float32",)}


def test_integers_away_from_zero_are_no_halves_added() -> None:
    def codes(numbers: Any, scales: Any, whole: Any) -> Any:
        places = np.ceil(np.abs(numbers.astype(np.float64) / scales) * 64)
        places = np.minimum(np.where(np.isfinite(places), places, 0), 127)
        return np.copysign(places, numbers).astype(np.int8).view(np.uint8)

    case = MX.format(number="float32", element="int8", rule="floor")
    assert named(case, making(codes)) == {("rounds-elements-away-from-zero",)}


def test_a_reciprocal_of_the_largest_code_and_a_division_by_the_global_scale() -> None:
    def quantize(case: Any, tensors: Any) -> Any:
        found = answer_blocks(case, tensors)
        numbers, whole = tensors["x"].view(np.float32), tensors["global"].view(np.float32)
        width = numbers.shape[-1]
        padded = np.pad(np.abs(numbers), [*[(0, 0)] * (numbers.ndim - 1), (0, -width % 16)])
        with np.errstate(all="ignore"):
            largest = padded.reshape(*numbers.shape[:-1], -1, 16).max(-1)
            factors = np.clip(largest * np.float32(1 / 6) / whole, 2.0**-9, 448)
        codes = factors.astype(np.float32).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        is_ordinary = np.isfinite(largest) & (largest > 0)
        return {**found, "scale": np.where(is_ordinary, codes, found["scale"])}

    case = NV.format(number="float32", whole="given")
    [names] = named(case, quantize, "scale")
    assert names == ("divides-by-the-global-scale-after-a-reciprocal",)


def decoding(product: Callable[[Any, Any, Any], Any]) -> Quantize:
    """A library that decodes by a function of the values of codes and scales and global scale."""

    def quantize(case: Any, tensors: Any) -> Any:
        scale, x = tensors["scale"], tensors["x"]
        factors = values_of_scales(scale, int(case.mode["block"]), x.shape)
        whole = np.float32(tensors.get("global", np.uint32(0x3F800000)).view(np.float32))
        right, dtype = answer_blocks(case, tensors)["y"], DTYPES[case.target]
        with np.errstate(all="ignore"):
            found = product(VALUES[x], factors, whole).astype(dtype).view(right.dtype)
        is_nan = np.repeat(scale == (255 if case.document.startswith("mx") else 127), 32, axis=-1)
        return {"y": np.where(is_nan[..., : x.shape[-1]], right, found)}

    return quantize


def test_scales_in_the_dtype_of_products() -> None:
    def product(values: Any, scales: Any, whole: Any) -> Any:
        return values.astype(np.float16) * scales.astype(np.float16)

    case = "mx-blocks-decode:1/float4e2m1/float16/block:32"
    assert named(case, decoding(product)) == {("rounds-scales-to-the-dtype-of-the-products",)}


@pytest.mark.parametrize(
    ("product", "names"),
    [
        (
            lambda values, scales, whole: values * (scales * whole),
            {("multiplies-codes-by-the-rounded-product-of-the-scales",)},
        ),
        (lambda values, scales, whole: values * scales * whole, set()),
    ],
    ids=["scales first", "codes first"],
)
def test_the_rounded_product_of_the_scales(product: Any, names: set[tuple[str, ...]]) -> None:
    case = "nvfp4-blocks-decode:1/float4e2m1/float32/global:given/block:16"
    assert named(case, decoding(product)) == names
