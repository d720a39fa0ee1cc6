"""StableHLO text, and the shape that a bitcast's result is declared to have."""

from __future__ import annotations

import pytest

from oracles.adapters.stablehlo import ELEMENTS, Shape, bitcast_shape, program
from specs.formats import formats


def test_a_conversion() -> None:
    assert program("convert", "float32", "float8e4m3fn", (2, 0, 3)) == (
        "func.func @main(%x: tensor<2x0x3xf32>) -> tensor<2x0x3xf8E4M3FN> {\n"
        "  %y = stablehlo.convert %x : (tensor<2x0x3xf32>) -> tensor<2x0x3xf8E4M3FN>\n"
        "  return %y : tensor<2x0x3xf8E4M3FN>\n"
        "}\n"
    )


def test_no_operation() -> None:
    text = "func.func @main(%x: tensor<i1>) -> tensor<i1> {\n  return %x : tensor<i1>\n}\n"
    assert program(None, "bool", "bool", ()) == text


def test_a_bitcast_declares_the_shape_of_its_result() -> None:
    assert "-> tensor<3x4xui8>" in program("bitcast_convert", "float32", "uint8", (3,))


@pytest.mark.parametrize(
    ("source", "target", "shape", "result"),
    [
        ("float32", "int32", (3,), (3,)),
        ("float32", "int32", (), ()),
        ("float32", "float16", (3,), (3, 2)),
        ("complex128", "int2", (), (64,)),
        ("uint8", "bool", (0,), (0, 8)),
        ("float16", "float64", (3, 4), (3,)),
        ("int4", "uint8", (2,), ()),
        # Refused by the rule, which has nothing to declare for them.
        ("float16", "float64", (3,), ()),
        ("float16", "float64", (), ()),
    ],
)
def test_the_shape_of_a_bitcast(source: str, target: str, shape: Shape, result: Shape) -> None:
    assert bitcast_shape(source, target, shape) == result


def test_every_element_type_is_a_format_and_no_two_are_the_same() -> None:
    assert set(ELEMENTS) <= set(formats())
    assert len(set(ELEMENTS.values())) == len(ELEMENTS)
