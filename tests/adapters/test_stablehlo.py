"""StableHLO text, the shape that it declares for the result of a bitcast, and the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oracles.adapters import stablehlo_interpreter
from oracles.adapters.stablehlo import (
    ELEMENTS,
    REDUCTION,
    bitcast_shape,
    precision_of,
    program,
    widths_of,
)
from oracles.adapters.stablehlo_interpreter import HloProgram
from oracles.protocol import Unsupported
from reports.findings.issue_text import requirements_of
from specs.cases import Case, Shape
from specs.formats import formats
from tests.adapters.common import assert_same, bits_of, onnx_case, some_patterns, view_case
from tests.adapters.contract import built


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


def test_a_reduction_names_the_precision() -> None:
    statement = program("reduce_precision", "float32", "float32", (3,), "e5m10").splitlines()[1]
    assert statement == (
        "  %y = stablehlo.reduce_precision %x, format = e5m10 : (tensor<3xf32>) -> tensor<3xf32>"
    )
    assert widths_of("e11m52") == (11, 52)


def test_a_reduction_to_another_type_is_no_operation() -> None:
    assert precision_of(onnx_case("float32", "float16")) is None
    assert precision_of(reduction("float32", "float32", bits="e4m3")) == "e4m3"
    with pytest.raises(Unsupported, match="returns the type that it takes"):
        precision_of(reduction("float32", "float16"))


def reduction(source: str, target: str, **modes: str) -> Case:
    return Case(REDUCTION, "1.20", source, target, tuple(modes.items()))


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
        # The rule refuses these, so it gives no shape to declare.
        ("float16", "float64", (3,), ()),
        ("float16", "float64", (), ()),
    ],
)
def test_the_shape_of_a_bitcast(source: str, target: str, shape: Shape, result: Shape) -> None:
    assert bitcast_shape(source, target, shape) == result


def test_every_element_type_is_a_format_and_no_two_are_the_same() -> None:
    assert set(ELEMENTS) <= set(formats())
    assert len(set(ELEMENTS.values())) == len(ELEMENTS)


def test_every_number_is_an_element_type() -> None:
    assert formats().keys() - ELEMENTS.keys() == {"string"}


class TestInterpretedPrograms:
    def test_what_numpy_reads_is_returned_as_it_is(self) -> None:
        assert HloProgram("convert", "float32", "float16", (3,)).text() == (
            "func.func @main(%x: tensor<3xf32>) -> (tensor<3xf16>) {\n"
            "  %y = stablehlo.convert %x : (tensor<3xf32>) -> tensor<3xf16>\n"
            "  return %y : tensor<3xf16> }"
        )

    def test_other_types_are_read_as_unsigned_integers(self) -> None:
        lines = HloProgram("convert", "float32", "bfloat16", (3,)).text().splitlines()
        assert lines[2:] == [
            "  %0 = stablehlo.bitcast_convert %y : (tensor<3xbf16>) -> tensor<3xui16>",
            "  return %0 : tensor<3xui16> }",
        ]

    def test_codes_of_less_than_a_byte_are_read_bit_by_bit(self) -> None:
        lines = HloProgram(None, "float6e2m3", "float6e2m3", ()).text().splitlines()
        assert lines[1:] == [
            "  %0 = stablehlo.bitcast_convert %x : (tensor<f6E2M3FN>) -> tensor<6xi1>",
            "  return %0 : tensor<6xi1> }",
        ]

    def test_a_complex_number_is_read_in_two_parts(self) -> None:
        lines = HloProgram("bitcast_convert", "complex128", "complex64", (2,)).text().splitlines()
        assert lines[2:] == [
            "  %0 = stablehlo.real %y : (tensor<2x2xcomplex<f32>>) -> tensor<2x2xf32>",
            "  %1 = stablehlo.imag %y : (tensor<2x2xcomplex<f32>>) -> tensor<2x2xf32>",
            "  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32> }",
        ]


class TestInterpreter:
    @pytest.fixture
    def oracle(self) -> Iterator[Any]:
        with built("stablehlo") as built_oracle:
            yield built_oracle

    @pytest.mark.parametrize("dtype", ELEMENTS)
    def test_a_bitcast_to_the_same_type_keeps_every_pattern(self, oracle: Any, dtype: str) -> None:
        bits = some_patterns(dtype)
        assert_same(oracle.bitcast(onnx_case(dtype, dtype), bits), bits)

    def test_the_first_element_has_the_lowest_bits(self, oracle: Any) -> None:
        number = bits_of("float64", [0x0123456789ABCDEF]).reshape(())
        parts = oracle.bitcast(onnx_case("float64", "float16"), number)
        assert_same(parts, bits_of("float16", [0xCDEF, 0x89AB, 0x4567, 0x0123]))
        halves = oracle.bitcast(view_case("uint8", "int4"), bits_of("uint8", [0xA5]))
        assert_same(halves, bits_of("int4", [0x5, 0xA]).reshape(1, 2))

    def test_a_reduction_flushes_what_the_precision_has_as_subnormals(self, oracle: Any) -> None:
        case = reduction("float32", "float32", bits="e5m10")
        given = np.array([2.0**-14, 2.0**-15, -(2.0**-15), 65519, 65520, 1 + 2.0**-11], np.float32)
        answer = np.array([2.0**-14, 0.0, -0.0, 65504, np.inf, 1], np.float32)
        assert_same(oracle.cast(case, given.view(np.uint32)), answer.view(np.uint32))
        assert oracle.road(case) == "float32->float32, e5m10"
        lines = oracle.reproduce(case, given[:1].view(np.uint32)).splitlines()
        assert len([line for line in lines if line and not line.startswith("#")]) <= 15

    def test_a_program_that_breaks_a_constraint_is_refused(self, oracle: Any) -> None:
        with pytest.raises(Exception, match="requires compatible bit widths"):
            oracle.bitcast(view_case("float32", "float64"), bits_of("float32", [1, 2, 3]))

    def test_a_context_does_not_keep_tensors_for_ever(
        self, oracle: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bits = bits_of("uint8", [1, 2, 3, 4])
        monkeypatch.setattr(stablehlo_interpreter, "MOST_BYTES", 3 * bits.nbytes)
        contexts = []
        for _ in range(7):
            assert_same(oracle.identity("uint8", bits), bits)
            contexts.append(oracle._context)
        assert [id(each) for each in dict.fromkeys(contexts)] == [
            id(contexts[index]) for index in (0, 3, 6)
        ]

    def test_its_version_is_that_of_jax_and_a_script_says_what_to_install(
        self, oracle: Any
    ) -> None:
        release, _, own = oracle.version.partition("+stablehlo")
        assert own
        script = oracle.reproduce(onnx_case("float32", "bfloat16"), bits_of("float32", [1]))
        assert requirements_of(script) == [f"jax=={release}", "jaxlib", "numpy"]
        lines = [line for line in script.splitlines() if line and not line.startswith("#")]
        assert len(lines) <= 15
