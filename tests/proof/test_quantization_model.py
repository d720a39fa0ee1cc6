"""The reference of quantization agrees with a model that was written apart from it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import perf_counter

import numpy as np
import pytest

from conformance.kinds.quantization_inputs import telling_requests
from oracles.reference.quantization_kernels import NO_CODE, expect
from specs.cases import Case
from specs.quantization_ruling import formula
from specs.selection import select
from tests.proof import quantization_model as model

EDITIONS = (
    "onnx-quantize-linear:10", "onnx-quantize-linear:13", "onnx-quantize-linear:19",
    "onnx-quantize-linear:21", "onnx-quantize-linear:23", "onnx-quantize-linear:24",
    "onnx-quantize-linear:25", "onnx-dequantize-linear:10", "onnx-dequantize-linear:19",
    "onnx-dequantize-linear:21", "onnx-dequantize-linear:23", "onnx-dequantize-linear:25",
)  # fmt: skip
IN_THE_SUITE = 4_000


def expected(case: Case, x: int, s: int, z: int | None) -> model.Expected:
    if case.document == "onnx-dequantize-linear":
        return model.dequantize(case.source, case.mode["scale"], case.target, x, s, z)
    return model.quantize(
        int(case.version),
        case.source,
        case.mode["scale"],
        case.mode.get("precision"),
        case.target,
        case.mode.get("saturate", "1") == "1",
        x,
        s,
        z,
    )


def random_elements(case: Case, count: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Draw patterns of x, of the scale and of the zero point among all of their formats.

    Half of the elements are drawn near a code, as most random elements are out of range.
    """
    rules = formula(case)
    codes = rules.source if rules.operation == "dequantize" else rules.target
    near = np.concatenate([each.tensors["x"].reshape(-1) for each in telling_requests(case)])
    scales = np.concatenate([each.scales.reshape(-1) for each in telling_requests(case)])
    x = draw.integers(0, rules.source.mask, count, endpoint=True)
    scale = draw.integers(0, rules.scale.mask, count, endpoint=True)
    zero = draw.integers(0, codes.mask, count, endpoint=True)
    if not codes.is_integral or codes.bits > 16:
        zero[: count // 2] = 0
    picked = draw.integers(0, near.size, count // 2)
    x[: count // 2] = near[picked] + draw.integers(-3, 3, count // 2) & rules.source.mask
    scale[: count // 2] = scales[picked]
    yield from (
        each.astype(fmt.storage)
        for each, fmt in ((x, rules.source), (scale, rules.scale), (zero, codes))
    )


def differences(case: Case, x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None) -> list[str]:
    """Describe each element on which the kernels differ from the model."""
    found = expect(formula(case), x, scale, zero)
    zeros = [None] * x.size if zero is None else zero.tolist()
    unlike = []
    for at, (one, by, offset) in enumerate(zip(x.tolist(), scale.tolist(), zeros, strict=True)):
        due = expected(case, one, by, offset)
        strong = {int(codes[at]) for codes in found.strong} - {NO_CODE}
        weaker = {int(codes[at]) for codes in found.weaker} - {NO_CODE} - strong
        is_open = bool(found.is_open[at])
        if due.is_open != is_open or (not is_open and (due.strong, due.weaker) != (strong, weaker)):
            unlike.append(f"{case.id} {one:#x} {by:#x} {offset}: {due}, not {strong} {weaker}")
    return unlike


def cases() -> list[Case]:
    return [case for case in select(EDITIONS) if case.mode["form"] == "tensor"]


@pytest.mark.parametrize("edition", EDITIONS)
def test_random_elements(edition: str) -> None:
    own = [case for case in cases() if case.id.startswith(f"{edition}/")]
    draw = np.random.default_rng(int(edition.rpartition(":")[2]))
    count = max(8, IN_THE_SUITE // len(own) // 2 * 2)
    for case in own:
        assert differences(case, *random_elements(case, count, draw)) == []


def test_telling_elements() -> None:
    draw = np.random.default_rng(0)
    for case in draw.choice(np.array(cases(), object), 40, replace=False):
        for given in telling_requests(case, has_whole=False):
            picked = draw.integers(0, given.scales.size, 24)
            zeros = None if given.zeros is None else given.zeros.reshape(-1)[picked]
            x, scales = given.tensors["x"].reshape(-1)[picked], given.scales.reshape(-1)[picked]
            assert differences(case, x, scales, zeros) == []


def test_the_model_itself() -> None:
    tie = model.quantize(25, "float32", "float32", None, "uint8", True, 0x3F000000, 0x3F800000, 1)
    assert tie.strong == {1}  # 0.5 rounds to 0, and the zero point is 1
    assert model.halfway_even(5, 2) == 2
    assert model.halfway_even(7, 2) == 4
    assert model.halfway_even(-5, 2) == -2
    assert model.round_to("float16", (65520, 1)) == model.OUT
    assert model.code_of("float16", (65504, 1), True) == 0xFBFF
    assert model.value("float8e5m2", 0x7C) == "inf"


def main(count: int) -> None:
    """Compare on ``count`` random elements, and on all telling ones; print the differences."""
    began, draw, own = perf_counter(), np.random.default_rng(46), cases()
    unlike: list[str] = []
    compared = 0
    for case in own:
        elements = [*random_elements(case, count // len(own) // 2 * 2, draw)]
        compared += elements[0].size
        unlike += differences(case, *elements)
    print(f"{compared:,} random elements of {len(own)} cases: {len(unlike)} differences")
    compared = 0
    for case in own:
        for given in telling_requests(case, has_whole=False):
            zeros = None if given.zeros is None else given.zeros.reshape(-1)
            x = given.tensors["x"].reshape(-1)
            compared += x.size
            unlike += differences(case, x, given.scales.reshape(-1), zeros)
    print(f"{compared:,} telling elements: {len(unlike)} differences in all")
    print(*unlike[:20], f"{perf_counter() - began:.0f} s", sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
