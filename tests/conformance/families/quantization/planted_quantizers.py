"""Quantizers in plain numpy, right ones and wrong ones, which share nothing with the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from conformance.families.quantization.kernels import quantize as answer_rightly
from conformance.families.quantization.kernels import spread
from oracles.backend.replies import Declined, Reply, attempt
from specs.cases import Case
from specs.formats import format_named
from tests.conformance.feeding import Answer

Tensors = Mapping[str, np.ndarray]
Quantize = Callable[[Case, Tensors], Mapping[str, Any]]

TENSOR = "onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor"
UNSIGNED = "onnx-quantize-linear:25/float32/uint8/scale:float32/form:tensor"
HALF = "onnx-quantize-linear:25/float16/uint8/scale:float16/form:tensor"
ALONG_AXIS = "onnx-quantize-linear:25/float32/int8/scale:float32/form:axis"
IN_BLOCKS = "onnx-quantize-linear:25/float32/int8/scale:float32/form:block/block:16"
FLOAT8 = "onnx-quantize-linear:25/float32/float8e4m3fn/scale:float32/form:tensor/saturate:1"
UNSATURATED = "onnx-quantize-linear:25/float32/float8e5m2/scale:float32/form:tensor/saturate:0"
PLAIN_END = "onnx-quantize-linear:25/float32/float8e4m3fn/scale:float32/form:tensor/saturate:0"
UNSIGNED_ZERO = (
    "onnx-quantize-linear:19/float32/float8e4m3fnuz/scale:float32/form:tensor/saturate:1"
)
WITH_INFINITIES = "onnx-quantize-linear:25/float32/float8e5m2/scale:float32/form:tensor/saturate:1"
FLOAT4 = "onnx-quantize-linear:25/float32/float4e2m1/scale:float32/form:tensor"
FLOAT8_IN_FLOAT16 = f"{FLOAT8}/precision:float16"
HALF_FLOAT8 = "onnx-quantize-linear:25/float16/float8e5m2/scale:float16/form:tensor/saturate:0"
IN_FLOAT16 = "onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor/precision:float16"
BACK = "onnx-dequantize-linear:25/uint8/float32/scale:float32/form:tensor"
SIGNED_BACK = "onnx-dequantize-linear:25/int8/float32/scale:float32/form:tensor"
BACK_IN_BLOCKS = "onnx-dequantize-linear:25/uint8/float16/scale:float16/form:block/block:16"
WIDE_BACK = "onnx-dequantize-linear:25/int16/float32/scale:float32/form:tensor"
INT32_BACK = "webnn-dequantize-linear:draft/int32/float32/scale:float32/form:tensor"
DYNAMIC = "onnx-dynamic-quantize-linear:11/float32/uint8"


def answering(quantize: Quantize) -> Answer:
    def answer(request: Any) -> Reply:
        if request.method != "quantize":
            return Declined(f"planted has no {request.method}")
        return attempt(partial(quantize, request.case, request.tensors))

    return answer


def numbers(dtype: str, bits: np.ndarray) -> np.ndarray:
    if dtype in ("float32", "float16"):
        return bits.view(dtype)
    return bits.view(dtype) if dtype.startswith("int") else bits


def operands(case: Case, tensors: Tensors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, scales and zero points of a case, one for each element; zero points as int64."""
    codes = case.source if "dequantize" in case.document else case.target
    x = numbers(case.source, tensors["x"])
    scale = spread(case, x.shape, numbers(case.mode["scale"], tensors["scale"]))
    if "zero" not in tensors:
        return x, scale, np.zeros(x.shape, np.int64)
    return x, scale, spread(case, x.shape, numbers(codes, tensors["zero"])).astype(np.int64)


def ends(case: Case) -> tuple[int, int]:
    info = np.iinfo(case.target)
    return int(info.min), int(info.max)


def stored(case: Case, total: np.ndarray) -> dict[str, np.ndarray]:
    """The patterns of codes, as a backend returns them."""
    finite = np.nan_to_num(total, nan=0, posinf=2.0**40, neginf=-(2.0**40))
    return {"y": (finite.astype(np.int64) & format_named(case.target).mask).astype(np.uint8)}


def by(
    divide: Callable[[Any, Any], Any] = np.divide,
    round_to: Callable[[Any], Any] = np.rint,
    add: Callable[[Case, Any, Any], Any] = lambda _, rounded, zero: rounded + zero,
    limit: Callable[[Case, Any], Any] = lambda case, total: np.clip(total, *ends(case)),
) -> Quantize:
    """A quantization by the formula, of which each argument replaces a part."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x, scale, zero = operands(case, tensors)
        with np.errstate(all="ignore"):
            rounded = round_to(divide(x, scale)).astype(np.float64)
            return stored(case, limit(case, add(case, rounded, zero)))

    return quantize


def before_rounding(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    x, scale, zero = operands(case, tensors)
    with np.errstate(all="ignore"):
        total = np.rint(x / scale + zero.astype(np.float32))
        return stored(case, np.clip(total, *ends(case)))


def half_away(values: Any) -> Any:
    wide = values.astype(np.float64)
    return np.sign(wide) * np.floor(np.abs(wide) + 0.5)


def other_type(case: Case, rounded: Any, zero: Any) -> Any:
    signed = case.target.startswith("int")
    return (
        rounded + np.where(zero < 0, zero + 256, zero)
        if signed
        else rounded + (zero - 256 * (zero > 127))
    )


def in_int32(_: Case, rounded: Any, zero: Any) -> Any:
    """Convert to int32 as processors do, which make all values out of range the smallest int32."""
    wide = rounded.astype(np.float64)
    kept = np.where(np.abs(wide) < 2.0**31, wide, -(2.0**31)).astype(np.int32)
    with np.errstate(over="ignore"):
        return kept + zero.astype(np.int32)


def with_other_modes(**changed: str) -> Quantize:
    """Answer as for a case of the same document in other modes."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        modes = dict(case.modes) | changed
        kept = tuple((name, value) for name, value in modes.items() if value)
        return answer_rightly(replace(case, modes=kept), tensors)

    return quantize


def flushed(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    x, scale, zero = operands(case, tensors)
    smallest = np.finfo(case.mode["scale"]).tiny
    with np.errstate(all="ignore"):
        quotient = x / np.where(scale < smallest, scale.dtype.type(0), scale)
        return stored(case, np.clip(np.nan_to_num(np.rint(quotient)) + zero, *ends(case)))


def all_flushed(nan: int) -> Quantize:
    """Treat subnormal numbers and scales as zero; 0/0 is the code ``nan`` for any zero point."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x, scale, zero = operands(case, tensors)
        x, scale = (np.where(np.abs(each) < 2.0**-126, 0, each) for each in (x, scale))
        with np.errstate(all="ignore"):
            total = np.rint(x / scale) + zero
        codes = np.clip(np.where(np.isnan(total), 0, total), *ends(case))
        return stored(case, np.where(np.isnan(total), nan, codes))

    return quantize


def flushed_products(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """Round differences to float32 and multiply there, with subnormal scales as zero."""
    x, scale, zero = operands(case, tensors)
    scale = np.where(scale < np.finfo(np.float32).tiny, np.float32(0), scale)
    difference = (x.astype(np.int64) - zero).astype(np.float32)
    with np.errstate(over="ignore"):
        return {"y": (difference * scale).view(np.uint32)}


def unsigned(code: int) -> Callable[[Any], Any]:
    return lambda x: np.uint8(code)


def signed(code: int) -> Callable[[Any], Any]:
    return lambda x: np.where(np.signbit(x), code | 0x80, code).astype(np.uint8)


def replacing(
    *parts: tuple[Callable[[Any, Any], Any], Callable[[Any], Any]],
    quantize: Quantize = answer_rightly,
) -> Quantize:
    """Answer as ``quantize`` does, with other codes where x and its quotient meet a condition."""

    def answer(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        y, (x, scale, _) = quantize(case, tensors)["y"], operands(case, tensors)
        with np.errstate(all="ignore"):
            quotient = np.abs(x.astype(np.float32) / scale.astype(np.float32))
            quotient = np.minimum(quotient, np.finfo(np.float32).max)
        for applies, codes in parts:
            y = np.where(applies(x, quotient), codes(x), y).astype(np.uint8)
        return {"y": y}

    return answer


def infinite(x: Any, _: Any) -> Any:
    return np.isinf(x)


def not_a_number(x: Any, _: Any) -> Any:
    return np.isnan(x)


def beyond(low: float, high: float = np.inf) -> Callable[[Any, Any], Any]:
    """Whether x is finite, and its quotient at least ``low`` and less than ``high``."""
    return lambda x, quotient: np.isfinite(x) & (quotient >= low) & (quotient < high)


def rounding_operands(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """Round x and scales to float16 and divide there; the largest scales become infinite."""
    x, scale, _ = operands(case, tensors)
    with np.errstate(all="ignore"):
        quotient = x.astype(np.float16) / scale.astype(np.float16)
    kept = tuple((name, value) for name, value in case.modes if name != "precision")
    halves = replace(case, source="float16", modes=(("scale", "float16"), *kept[1:]))
    one = np.full((), 1, np.float16).view(np.uint16)
    return answer_rightly(halves, {"x": quotient.view(np.uint16), "scale": one})


def without_minus_zero(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    y = answer_rightly(case, tensors)["y"]
    return {"y": np.where(y == 0x80, 0, y).astype(np.uint8)}


def halves_in_float32(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """Answer for float16 as for float32 of the same values."""
    wide = {name: numbers("float16", tensors[name]).astype(np.float32) for name in ("x", "scale")}
    modes = tuple(dict(case.modes, scale="float32").items())
    given = dict(tensors) | {name: values.view(np.uint32) for name, values in wide.items()}
    return answer_rightly(replace(case, source="float32", modes=modes), given)


Lay = Callable[[tuple[int, ...], np.ndarray], np.ndarray]


def in_layout(lay: Lay) -> Quantize:
    """Quantize with scales and zero points that ``lay`` spreads over the tensor."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        scale, zero = (lay(tensors["x"].shape, tensors[name]) for name in ("scale", "zero"))
        with np.errstate(all="ignore"):
            quotient = tensors["x"].view(np.float32) / scale.view(np.float32)
            return stored(case, np.clip(np.rint(quotient) + zero.view(np.int8), *ends(case)))

    return quantize


def with_pairs_exchanged(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """Quantize along an axis with the zero points of each two channels exchanged."""
    if tensors["zero"].size % 2:
        return answer_rightly(case, tensors)
    zero = tensors["zero"].reshape(-1, 2)[:, ::-1].reshape(-1).copy()
    return answer_rightly(case, {**tensors, "zero": zero})


def turned(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """Dequantize with the row of scales repeated, instead of each scale in its block."""
    length = tensors["x"].shape[1]
    scale, zero = (np.tile(tensors[name], 16)[:, :length] for name in ("scale", "zero"))
    with np.errstate(all="ignore"):
        difference = tensors["x"].astype(np.int64) - zero
        return {"y": (difference.astype(np.float16) * scale.view(np.float16)).view(np.uint16)}


def dequantizing(
    subtract: Callable[[Case, Any, Any], Any] = lambda _, x, zero: x.astype(np.int64) - zero,
    multiply: Callable[[Any, Any], Any] = lambda difference, scale: (
        difference.astype(scale.dtype) * scale
    ),
) -> Quantize:
    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x, scale, zero = operands(case, tensors)
        with np.errstate(all="ignore"):
            product = multiply(subtract(case, x, zero), scale).astype(case.target)
        return {"y": product.view(format_named(case.target).storage)}

    return quantize


def alone_scaled(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    x, scale, zero = operands(case, tensors)
    with np.errstate(all="ignore"):
        product = x.astype(np.float32) * scale - zero.astype(np.float32) * scale
    return {"y": product.view(np.uint32)}


def truncated_product(difference: Any, scale: Any) -> Any:
    exact = difference.astype(np.float64) * scale.astype(np.float64)
    near = exact.astype(np.float32)
    return np.where(np.abs(near) > np.abs(exact), np.nextafter(near, np.float32(0)), near)


def in_float32(x: Any, scale: Any) -> Any:
    return x.astype(np.float32) / scale.astype(np.float32)


PLANTED: list[tuple[str, str, Quantize]] = [
    ("multiplies-by-the-reciprocal", TENSOR, by(lambda x, scale: x * (np.float32(1) / scale))),
    ("divides-in-float64", TENSOR, by(lambda x, scale: x.astype(np.float64) / scale)),
    ("divides-in-float32", HALF, by(in_float32)),
    ("rounds-half-away", TENSOR, by(round_to=half_away)),
    ("rounds-half-up", TENSOR, by(round_to=lambda each: np.floor(each.astype(np.float64) + 0.5))),
    ("adds-half-then-floors", TENSOR, by(round_to=lambda each: np.floor(each + np.float32(0.5)))),
    (
        "adds-half-then-truncates",
        UNSIGNED,
        by(round_to=lambda each: np.trunc(each + np.copysign(np.float32(0.5), each))),
    ),
    ("truncates-quotients", TENSOR, by(round_to=np.trunc)),
    ("rounds-quotients-down", TENSOR, by(round_to=np.floor)),
    ("adds-zero-points-before-rounding", TENSOR, before_rounding),
    (
        "limits-before-zero-points",
        TENSOR,
        by(
            add=lambda case, rounded, zero: np.clip(rounded, *ends(case)) + zero,
            limit=lambda _, total: total,
        ),
    ),
    ("wraps-codes", UNSIGNED, by(limit=lambda _, total: np.clip(total, -(2.0**62), 2.0**62))),
    ("overflows-in-int32", TENSOR, by(add=in_int32)),
    ("leaves-out-lowest-codes", TENSOR, by(limit=lambda _, total: np.clip(total, -127, 127))),
    ("leaves-out-zero-points", UNSIGNED, by(add=lambda _, rounded, zero: rounded)),
    ("reads-zero-points-as-another-type", UNSIGNED, by(add=other_type)),
    ("reads-zero-points-as-another-type", TENSOR, by(add=other_type)),
    ("ignores-saturate", FLOAT8, with_other_modes(saturate="0")),
    ("ignores-saturate", UNSATURATED, with_other_modes(saturate="1")),
    ("makes-overflows-nan", UNSATURATED, replacing((beyond(61440), signed(0x7F)))),
    ("makes-carries-nan", UNSATURATED, replacing((beyond(61440, 65536), signed(0x7F)))),
    ("saturates-truncated-nans", PLAIN_END, replacing((beyond(480, 496), signed(0x7E)))),
    ("saturates-infinities", UNSIGNED_ZERO, replacing((infinite, signed(0x7F)))),
    ("keeps-infinities", WITH_INFINITIES, replacing((infinite, signed(0x7C)))),
    ("makes-infinities-nan", FLOAT8, replacing((infinite, unsigned(0x7F)))),
    ("makes-nans-zero", FLOAT4, replacing((not_a_number, unsigned(8)))),
    ("makes-nans-the-largest", FLOAT8, replacing((not_a_number, unsigned(0x7E)))),
    ("gives-zeros-of-the-other-sign", FLOAT8, without_minus_zero),
    ("ignores-precision", IN_FLOAT16, with_other_modes(precision="")),
    ("treats-subnormal-scales-as-zero", TENSOR, flushed),
    ("treats-subnormal-scales-as-zero", INT32_BACK, flushed_products),
    ("treats-subnormals-as-zero", TENSOR, all_flushed(0)),
    ("treats-subnormals-as-zero-with-largest-nans", UNSIGNED, all_flushed(255)),
    (
        "takes-one-scale",
        ALONG_AXIS,
        in_layout(lambda _, values: values[:1].reshape(1, 1, 1)),
    ),
    ("takes-another-axis", ALONG_AXIS, in_layout(lambda _, values: values.reshape(-1, 1, 1))),
    (
        "takes-blocks-of-another-size",
        IN_BLOCKS,
        in_layout(
            lambda shape, values: np.repeat(values, -(-shape[1] // values.shape[1]), axis=1)[
                :, : shape[1]
            ]
        ),
    ),
    (
        "repeats-scales-in-turn",
        BACK_IN_BLOCKS,
        turned,
    ),
    (
        "repeats-scales-after-vectors-of-8",
        ALONG_AXIS,
        in_layout(lambda _, values: values[np.minimum(np.arange(14), 7)].reshape(1, -1, 1)),
    ),
    (
        "takes-the-scale-before-in-short-blocks",
        IN_BLOCKS,
        in_layout(
            lambda shape, values: values[
                :, np.minimum(np.arange(shape[1]) // 16, max(values.shape[1] - 2, 0))
            ]
        ),
    ),
    (
        "runs-blocks-across-rows",
        IN_BLOCKS,
        in_layout(
            lambda shape, values: np.repeat(values.reshape(-1), 16)[: shape[0] * shape[1]].reshape(
                shape
            )
        ),
    ),
    ("exchanges-pairs-of-zero-points", ALONG_AXIS, with_pairs_exchanged),
    ("wraps-differences", BACK, dequantizing(lambda _, x, zero: (x - zero) & 255)),
    ("leaves-out-zero-points", BACK, dequantizing(lambda _, x, zero: x)),
    (
        "reads-zero-points-as-another-type",
        SIGNED_BACK,
        dequantizing(lambda _, x, zero: x - np.where(zero < 0, zero + 256, zero)),
    ),
    ("scales-zero-points-alone", BACK, alone_scaled),
    ("truncates-products", WIDE_BACK, dequantizing(multiply=truncated_product)),
    (
        "multiplies-in-float16",
        BACK,
        dequantizing(multiply=lambda d, scale: d.astype(np.float16) * scale.astype(np.float16)),
    ),
]  # fmt: skip
