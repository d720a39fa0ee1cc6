"""The judge of quantization: right answers conform, and planted mechanisms are found and named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from conformance.families.quantization.dynamic import dynamic_inputs
from conformance.families.quantization.inputs import telling_requests
from conformance.families.quantization.kernels import quantize as answer_rightly
from conformance.families.quantization.kernels import spread
from conformance.families.quantization.wrongs import IN_OTHER_TENSORS, SAYS, says
from oracles.backend.replies import Declined, Reply, attempt
from oracles.protocol import Unsupported
from reports.grading.allowed_answers import Expectations
from reports.judgement import Judgement
from reports.known_failures import failures
from reports.problems import WrongShape, WrongTensor
from specs.cases import Case
from specs.formats import format_named
from specs.selection import case_named
from tests.conformance import feeding
from tests.conformance.feeding import Answer, judged, planted

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


WITH_USUAL_SCALES = planted(shows_usual_scales=True)
AS_A_GATE = planted(isolates_sweeps=True)
"""Draws more tensors, so that a rare one is among those of a single case."""


def judge(name: str, quantize: Quantize) -> Judgement:
    return judged(name, answering(quantize))


# The functions below share nothing with the reference: plain numpy, in numpy's dtypes.


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


@pytest.mark.parametrize(
    "name", [TENSOR, HALF, ALONG_AXIS, IN_BLOCKS, FLOAT8, UNSATURATED, IN_FLOAT16, BACK, DYNAMIC]
)
def test_right_answers_conform(name: str) -> None:
    found = judge(name, answer_rightly)
    assert (found.verdict, found.problems) == ("conforms", ())


@pytest.mark.parametrize("name", [TENSOR, UNSIGNED, HALF, ALONG_AXIS, IN_BLOCKS])
def test_plain_numpy_conforms(name: str) -> None:
    assert judge(name, by()).verdict == "conforms"


@pytest.mark.parametrize("name", [BACK, SIGNED_BACK, BACK_IN_BLOCKS, WIDE_BACK])
def test_plain_numpy_dequantizes(name: str) -> None:
    assert judge(name, dequantizing()).verdict == "conforms"


def test_rounding_operands_first_conforms() -> None:
    """Only elements with open answers have scales that become infinite in float16."""
    found = judge(FLOAT8_IN_FLOAT16, rounding_operands)
    assert (found.verdict, found.problems) == ("conforms", ())


@pytest.mark.parametrize(
    ("mechanism", "name", "quantize"),
    PLANTED,
    ids=[f"{at}-{name}" for at, (name, *_) in enumerate(PLANTED)],
)
def test_planted_mechanisms_are_named(mechanism: str, name: str, quantize: Quantize) -> None:
    found = judge(name, quantize)
    assert found.verdict in ("violates", "deviates"), found
    problem = found.problems[0]
    assert isinstance(problem, WrongTensor)
    assert mechanism in problem.followed, problem
    assert says(mechanism)


def wrong_from(length: int) -> Quantize:
    """A kernel whose second thread, which gets the elements from ``length`` on, is wrong."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        codes = np.array(answer_rightly(case, tensors)["y"])
        codes.reshape(-1)[length:] ^= 1
        return {"y": codes}

    return quantize


def lost_alone(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """As ``wrong_from``, but a tensor of one element is answered by an empty one."""
    codes = wrong_from(8_192)(case, tensors)["y"]
    return {"y": codes[:0] if codes.size == 1 else codes}


def in_memory_order(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """Read the elements one after another in memory, ignoring the strides."""
    x = tensors["x"]
    contiguous = np.lib.stride_tricks.as_strided(x, x.shape, np.empty(x.shape, x.dtype).strides)
    return answer_rightly(case, {**tensors, "x": contiguous})


def with_scales_in_memory_order(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    scale = tensors["scale"]
    strides = np.empty(scale.shape, scale.dtype).strides
    contiguous = np.lib.stride_tricks.as_strided(scale, scale.shape, strides)
    return answer_rightly(case, {**tensors, "scale": contiguous})


@pytest.mark.parametrize(
    ("name", "quantize", "where"),
    [
        (TENSOR, wrong_from(16_384), "shape ("),
        (BACK, wrong_from(8_192), "shape ("),
        (BACK, lost_alone, "shape ("),
        (TENSOR, in_memory_order, "steps ("),
        (ALONG_AXIS, in_memory_order, "dimensions in memory ("),
        (IN_BLOCKS, in_memory_order, "dimensions in memory ("),
        (BACK_IN_BLOCKS, with_scales_in_memory_order, "shape ("),
    ],
)
def test_a_fault_of_long_tensors_or_of_their_layout_is_found_and_named(
    name: str, quantize: Quantize, where: str
) -> None:
    found = judged(name, answering(quantize), AS_A_GATE)
    assert found.verdict == "violates"
    assert isinstance(found.problems[0], WrongTensor)
    assert found.problems[0].followed == (IN_OTHER_TENSORS,)
    assert "; only in tensors of " in found.message
    assert found.problems[0].where
    assert where in found.message


@pytest.mark.parametrize("seed", range(3))
def test_elements_of_drawn_tensors_that_the_mechanism_explains_are_no_fault_of_tensors(
    seed: int,
) -> None:
    reciprocal = by(lambda x, scale: x * (np.float32(1) / scale))
    wide = IN_BLOCKS.replace("int8", "int16")
    for name in (wide, IN_BLOCKS, ALONG_AXIS):
        subject = planted(seed=seed, isolates_sweeps=True)
        for each in judged(name, answering(reciprocal), subject).problems:
            assert isinstance(each, WrongTensor)
            assert IN_OTHER_TENSORS not in each.followed


def test_a_wrong_element_that_only_drawn_tensors_hold_is_no_fault_of_theirs() -> None:
    name = IN_BLOCKS.replace("int8", "int16")
    case = case_named(name)

    def elements(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return (x.astype(np.uint64) << np.uint64(32) | scale).reshape(-1)

    listed = np.concatenate(
        [elements(each.tensors["x"], each.scales) for each in telling_requests(case)]
    )

    def odd(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x, y = tensors["x"], answer_rightly(case, tensors)["y"]
        own = elements(x, spread(case, x.shape, tensors["scale"]))
        unlisted = ~np.isin(own, listed).reshape(x.shape)
        near = np.abs(numbers("float32", x)) < 1
        return {"y": np.where(unlisted & near, y ^ 1, y)}

    found = judged(name, answering(odd), AS_A_GATE)
    for each in found.problems:
        assert isinstance(each, WrongTensor)
        assert IN_OTHER_TENSORS not in each.followed
        assert each.where.startswith("met in tensors of shape (")
    assert failures(case, found)
    assert failures(case, found, with_drawn=False) == ()


def test_a_fault_of_tensors_beside_another_is_told() -> None:
    def both(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        found = np.array(by(round_to=half_away)(case, tensors)["y"])
        found.reshape(-1)[16_384:] = 0
        return {"y": found}

    found = judged(TENSOR, answering(both), AS_A_GATE)
    named = {each.followed for each in found.problems if isinstance(each, WrongTensor)}
    assert (IN_OTHER_TENSORS,) in named
    assert ("rounds-half-away",) in named


def zeros_unless(is_served: Callable[[Tensors], bool]) -> Quantize:
    """A kernel that has some layouts of scales, and returns zeros for all others."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        made = answer_rightly(case, tensors)
        return made if is_served(tensors) else {**made, "y": np.zeros_like(made["y"])}

    return quantize


@pytest.mark.parametrize(
    ("name", "is_served"),
    [
        (ALONG_AXIS, lambda tensors: tensors["x"].ndim == 3 and tensors["scale"].size in (11, 14)),
        (IN_BLOCKS, lambda tensors: tensors["x"].ndim == 2),
        (IN_BLOCKS, lambda tensors: tensors["x"].shape[1] % 16 > 0),
        (ALONG_AXIS, lambda tensors: tensors["x"].shape[1] != tensors["x"].shape[-1]),
        (DYNAMIC, lambda tensors: tensors["x"].size <= 256),
    ],
)
def test_a_backend_that_serves_only_some_shapes_is_found(
    name: str, is_served: Callable[[Tensors], bool]
) -> None:
    found = judged(name, answering(zeros_unless(is_served)), AS_A_GATE)
    assert found.verdict == "violates"


def test_two_mechanisms_together() -> None:
    reciprocal = by(lambda x, scale: x * (np.float32(1) / scale), half_away)
    [problem, *_] = judge(TENSOR, reciprocal).problems
    assert isinstance(problem, WrongTensor)
    together = {"multiplies-by-the-reciprocal", "rounds-half-away"}
    assert set(problem.followed[0].split("+")) == together
    assert says(problem.followed[0]).count(", and ") == 1


def test_mechanisms_part_by_region() -> None:
    several = replacing(
        (beyond(61440, 65536), signed(0x7F)),
        (infinite, signed(0x7B)),
        (not_a_number, unsigned(0x7B)),
        quantize=halves_in_float32,
    )
    [problem, *_] = judge(HALF_FLOAT8, several).problems
    assert isinstance(problem, WrongTensor)
    [first, *more] = problem.followed[0].split("+")
    assert first in ("divides-in-float64", "divides-in-float32")
    assert more == ["makes-carries-nan", "saturates-infinities", "makes-nans-the-largest"]
    assert says(problem.followed[0]).count(", and ") == 3


def test_a_wrong_special_value_of_no_mechanism_is_unnamed() -> None:
    [problem] = judge(FLOAT8, replacing((infinite, unsigned(3)))).problems
    assert isinstance(problem, WrongTensor)
    assert problem.followed == ()


def test_every_mechanism_has_words() -> None:
    assert all(name in SAYS for name, _, _ in PLANTED)


def test_the_smallest_wrong_element_is_shown() -> None:
    found = judge(UNSIGNED, by(round_to=half_away))
    problem, *others = [each for each in found.problems if isinstance(each, WrongTensor)]
    assert found.wrong == problem.wrong + sum(each.wrong for each in others)
    assert [each.level for each in others] == ["recommended"]  # near ties, where others divide so
    assert (problem.rule, problem.level, problem.tensor) == ("round-quotient", "required", "y")
    assert "scale 0x" in problem.given
    assert problem.wrong < problem.inputs
    got, (allowed, *_) = int(problem.got.split()[0], 16), problem.allowed
    assert abs(got - int(allowed.split()[0], 16)) == 1


def test_a_lost_axis_is_a_wrong_shape() -> None:
    found = judge(ALONG_AXIS, lambda case, tensors: {"y": answer_rightly(case, tensors)["y"][0]})
    assert found.verdict == "violates"
    assert isinstance(found.problems[0], WrongShape)
    assert found.problems[0].rule == "shape-kept"


def test_what_is_not_offered_is_left_out() -> None:
    def without_zero(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        if "zero" in tensors:
            return answer_rightly(case, tensors)
        raise Unsupported("it needs a zero point")

    found = judge(TENSOR, without_zero)
    assert found.verdict == "conforms"
    assert found.message == "1 of 10 not asked: it needs a zero point"

    def nothing(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        raise Unsupported("it has no such kernel")

    assert judge(TENSOR, nothing).verdict == "unsupported"


def test_an_error_is_one() -> None:
    def broken(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        raise ValueError("no")

    assert judge(TENSOR, broken).verdict == "error"
    assert judge(DYNAMIC, broken).verdict == "error"


def test_an_error_has_a_script_for_one_number() -> None:
    shown: list[np.ndarray] = []

    def broken(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        raise ValueError("no")

    def script(case: Case, tensors: Tensors) -> str:
        shown.append(tensors["x"])
        return "print()"

    found = judged(TENSOR, feeding.answering(quantize=broken, reproduce_quantize=script))
    assert (found.verdict, found.reproduction) == ("error", "print()")
    assert [each.size for each in shown] == [1]


def test_an_error_hides_no_wrong_answer_of_another_request() -> None:
    def odd(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        if "zero" not in tensors:
            raise ValueError("no zero point")
        return {"y": answer_rightly(case, tensors)["y"] ^ 1}

    found = judge(TENSOR, odd)
    assert found.verdict == "violates"
    assert isinstance(found.problems[0], WrongTensor)
    assert "no zero point" in found.message


def test_an_error_hides_no_wrong_answer_of_another_tensor() -> None:
    def odd(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        if tensors["x"].size == 1:
            raise ValueError("one element only")
        found = answer_rightly(case, tensors)
        return {**found, "y": np.zeros_like(found["y"])}

    found = judge(DYNAMIC, odd)
    assert found.verdict == "violates"
    assert isinstance(found.problems[0], WrongTensor)
    assert "one element only" in found.message


@pytest.mark.parametrize("edition", ["21", "25"])
def test_recommendations_are_weaker(edition: str) -> None:
    """A division in float32 gives one of the values beside the quotient in float16."""
    name = HALF.replace(":25", f":{edition}")
    found = judge(name, by(in_float32))
    assert found.verdict == "deviates"
    assert {each.level for each in found.problems} == {"recommended"}
    assert judge(name, by(round_to=np.floor)).verdict == "violates"


def test_open_scales_break_nothing() -> None:
    name = "onnx-quantize-linear:25/float32/int8/scale:float8e8m0/form:tensor"
    found = judge(name, lambda case, tensors: {"y": np.zeros(tensors["x"].shape, np.uint8)})
    assert found.open_inputs > 0


@pytest.mark.parametrize(
    ("tensor", "change"),
    [
        ("scale", lambda found: found | {"scale": found["scale"] + np.uint32(2)}),
        ("zero", lambda found: found | {"zero": (found["zero"] + 1).astype(np.uint8)}),
        ("y", lambda found: found | {"y": np.zeros_like(found["y"])}),
    ],
)
def test_each_result_of_a_dynamic_quantization_is_judged(
    tensor: str, change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
) -> None:
    found = judge(DYNAMIC, lambda case, tensors: change(answer_rightly(case, tensors)))
    assert found.verdict in ("violates", "deviates")
    assert tensor in [each.tensor for each in found.problems if isinstance(each, WrongTensor)]


def test_a_dynamic_mechanism_is_named() -> None:
    def half_up(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        found = answer_rightly(case, tensors)
        x, scale = tensors["x"].view(np.float32), found["scale"].view(np.float32)
        with np.errstate(all="ignore"):
            rounded = np.nan_to_num(half_away(x / scale)) + found["zero"]
        return found | {"y": np.clip(rounded, 0, 255).astype(np.uint8)}

    problems = judge(DYNAMIC, half_up).problems
    assert [each.level for each in problems if isinstance(each, WrongTensor)][:1] == ["required"]
    for problem in problems:
        assert isinstance(problem, WrongTensor)
        assert "rounds-half-away" in problem.followed


def over(part: Callable[[np.ndarray], np.ndarray], extends: bool = True) -> Quantize:
    """Quantize dynamically by the range of a part of the tensor's values."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x = tensors["x"]
        found = dict(answer_rightly(case, tensors))
        seen = part(x.view(np.float32).reshape(-1))
        if not (seen.size and np.isfinite(x.view(np.float32)).all()):
            return found
        ends = np.float32([seen.min(), seen.max()])
        if extends:
            like = answer_rightly(case, {"x": ends.view(np.uint32)})
            return found | {"scale": like["scale"], "zero": like["zero"]}
        width = answer_rightly(case, {"x": (ends[1:] - ends[:1]).view(np.uint32)})
        return found | {"scale": width["scale"]}

    return quantize


@pytest.mark.parametrize(
    ("name", "quantize"),
    [
        ("range-without-the-last", over(lambda x: x[:-1])),
        ("range-without-the-rest-of-16", over(lambda x: x[: x.size // 16 * 16])),
        ("range-without-the-rest-of-64", over(lambda x: x[: x.size // 64 * 64])),
        ("range-without-zero", over(lambda x: x, extends=False)),
    ],
)
def test_a_range_that_leaves_something_out_is_found_with_every_seed_and_named(
    name: str, quantize: Quantize
) -> None:
    for seed in range(5):
        problems = judged(DYNAMIC, answering(quantize), planted(seed=seed)).problems
        wrong = [each for each in problems if isinstance(each, WrongTensor)]
        assert "scale" in {each.tensor for each in wrong}
        for each in wrong:
            assert each.tensor == "y" or each.followed[:1] == (name,)
    assert says(name)


def test_dynamic_inputs_reach_both_ends() -> None:
    case = case_named(DYNAMIC)
    zeros = {int(answer_rightly(case, {"x": x})["zero"]) for x in dynamic_inputs()}
    assert {0, 255} < zeros


def test_the_reference_is_judged_by_the_definition() -> None:
    independent = replace(planted(), expectations=Expectations(independent=True))
    for name in (TENSOR, FLOAT8, BACK, DYNAMIC):
        assert judged(name, answering(answer_rightly), independent).verdict == "conforms"


def test_the_example_has_an_ordinary_scale() -> None:
    """Bits of a very small scale and its x may be simpler, but nobody meets them."""
    case = "onnx-quantize-linear:25/float32/int8/scale:float32/form:axis"
    [problem, *_] = judged(case, answering(by(round_to=np.floor)), WITH_USUAL_SCALES).problems
    assert isinstance(problem, WrongTensor)
    scale = float(problem.given.split("scale ")[1].split("(")[1].split(")")[0].split()[-1])
    assert 2.0**-16 <= scale <= 2.0**16, problem.given
