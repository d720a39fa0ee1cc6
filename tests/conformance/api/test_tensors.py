"""``castigate.py`` on quantizations: functions of one's own, and recorded arrays by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import castigate as cg
from tests.conformance.processes import castigate

Array = NDArray[Any]
LINEAR = "onnx-quantize-linear:25"


def quantized(x: Array, scale: Array, zero: Array, whole: Callable[[Array], Array]) -> Array:
    total = whole(x / scale) + zero.astype(np.float32)
    return np.clip(np.nan_to_num(total, nan=0), -128, 127).astype(np.int8)


def nearest_even(x: Array, scale: Array, zero: Array) -> Array:
    return quantized(x, scale, zero, np.rint)


def plus_half(x: Array, scale: Array, zero: Array) -> Array:
    """Quantize as C programmers do: they round the sum to float32 before they take its floor."""
    return quantized(x, scale, zero, lambda each: np.floor(each + np.float32(0.5)))


def along_axis_1(x: Array, scale: Array, zero: Array) -> Array:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return nearest_even(x, scale.reshape(shape), zero.reshape(shape))


def in_blocks_of_16(x: Array, scale: Array, zero: Array) -> Array:
    scales, zeros = (np.repeat(each, 16, axis=1)[:, : x.shape[1]] for each in (scale, zero))
    return nearest_even(x, scales, zeros)


@pytest.mark.parametrize(
    ("function", "form"),
    [(nearest_even, "tensor"), (along_axis_1, "axis"), (in_blocks_of_16, "block")],
)
def test_a_function_that_quantizes_rightly_conforms(
    function: Callable[..., Array], form: str
) -> None:
    result = cg.check(function, "float32", "int8", document=LINEAR, mode={"form": form})
    assert result, result
    assert result.verdict == "conforms"
    assert result.findings == ()
    assert result.inputs > 1000


def test_a_wrong_function_is_told_with_its_element_and_its_mechanism() -> None:
    result = cg.check(plus_half, "float32", "int8", document=LINEAR)
    assert not result
    assert [each.name for each in result.findings] == ["adds-half-then-floors"]
    # 25.5 by 1/3 is 76.5, a tie between 76, which is even, and 77.
    assert "0x41cc0000 (25.5), scale 0x3eaaaaab (about 0.33333334) gives 0x4d (77), not" in str(
        result
    )
    assert result.to_arrow().to_pylist()[0]["answer"] == "0x4d (77)"


def test_a_function_of_blocks_returns_its_results_in_order_or_by_name() -> None:
    def zeros(x: Array) -> tuple[Array, Array]:
        blocks = -(-x.shape[-1] // 32)
        scale = np.full((*x.shape[:-1], blocks), 127, np.uint8)
        return scale, np.zeros(x.shape, np.uint8)

    def by_name(x: Array) -> dict[str, Array]:
        return dict(zip(("scale", "y"), zeros(x), strict=True))

    ordered, named = (
        cg.check(each, "fp32", "e2m1", document="mx-blocks") for each in (zeros, by_name)
    )
    assert ordered.wrong > 0
    assert ordered.wrong == named.wrong


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: cg.check(lambda x: x, "float32", "int8", document=LINEAR),
            "raised TypeError for x float32[363], scale float32[], zero int8[]",
        ),
        (
            lambda: cg.check(lambda *_: 1 / 0, "float32", "int8", document=LINEAR),
            "ZeroDivisionError",
        ),
        (
            lambda: cg.check(lambda x: x, "float32", "e2m1", document="mx-blocks"),
            "has the results scale, y; give them in this order, or a dict by name",
        ),
        (
            lambda: cg.check(nearest_even, "float32", "int8", document=LINEAR, every=True),
            "every=True asks all inputs of a cast",
        ),
        (
            lambda: cg.judge({"x": np.ones(2), "scale": 1.0}, np.ones(2, np.int8)),
            "name it, such as document='onnx-quantize-linear:25'",
        ),
        (
            lambda: cg.judge(np.ones(2, np.float32), np.ones(2, np.int8), document=LINEAR),
            "give inputs as a dict of x, scale, zero",
        ),
        (
            lambda: cg.judge({"x": np.ones(2, "f4")}, np.ones(2, np.int8), document=LINEAR),
            "there is no array `scale`; the arrays of",
        ),
        (
            lambda: cg.judge(
                {"x": np.ones(2, "f4"), "scales": 1}, np.ones(2, np.int8), document=LINEAR
            ),
            "`scales` is no array of",
        ),
        (
            lambda: cg.judge({"x": np.ones(2, "f4")}, np.ones(2, "i1"), document="onnx-cast:25"),
            "is about casts; give one array of inputs",
        ),
    ],
)
def test_wrong_arguments_are_one_line(call: Callable[[], object], says: str) -> None:
    with pytest.raises(cg.CastigateError) as raised:
        call()
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_recorded_arrays_are_judged_by_name() -> None:
    chance = np.random.default_rng(1)
    x = chance.normal(0, 1, (40, 30)).astype(np.float32)
    scale, zero = np.float32(0.02), np.int8(3)
    y = nearest_even(x, scale, zero)
    given = {"x": x, "scale": scale, "zero": zero}
    assert cg.judge(given, y, document=LINEAR).verdict == "conforms"
    y[7, 5] ^= 1
    result = cg.judge(given, {"y": y}, document=LINEAR)
    assert (result.verdict, result.wrong, result.inputs) == ("violates", 1, 1200)
    assert "y[7, 5] of x " in str(result)
    assert "shape (40, 30) gives shape (1, 30)" in str(cg.judge(given, y[:1], document=LINEAR))


def test_the_form_of_recorded_arrays_is_that_of_the_scale() -> None:
    x = np.random.default_rng(2).normal(0, 1, (5, 32)).astype(np.float32)
    scale = np.linspace(0.01, 0.1, 32, dtype=np.float32)
    zero = np.zeros(32, np.int8)
    axis = cg.judge({"x": x, "scale": scale, "zero": zero}, along_axis_1(x, scale, zero),
                    document=LINEAR)  # fmt: skip
    assert (axis.verdict, dict(axis.case.modes)["form"]) == ("conforms", "axis")
    scales, zeros = scale[:10].reshape(5, 2), np.zeros((5, 2), np.int8)
    blocks = cg.judge({"x": x, "scale": scales, "zero": zeros}, in_blocks_of_16(x, scales, zeros),
                      document=LINEAR)  # fmt: skip
    assert (blocks.verdict, dict(blocks.case.modes)["form"]) == ("conforms", "block")


def test_what_is_no_cast_is_explained_as_the_command_does() -> None:
    found = cg.explain(28, "fp32", "e2m1", document="mx-blocks", backends=["reference"])
    code, out, _ = castigate("explain", "mx-blocks", "fp32", "e2m1", "28", "--backend=reference")
    assert (code, str(found)) == (0, out.rstrip("\n"))
    assert [*found.answers] == ["reference"]
    assert found.to_arrow().num_rows == 1
    with pytest.raises(cg.CastigateError, match="needs one input and a scale"):
        cg.explain(28, "fp32", "int8", document="onnx-quantize-linear")
