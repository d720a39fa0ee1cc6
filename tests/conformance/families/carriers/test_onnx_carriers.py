"""ONNX's carriers: the table of nodes, the document, and what ONNX's runtimes make of both."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles.adapters.onnx_carriers import CONSTANTS, DOCUMENT, NODES, WORD, CarrierModels
from oracles.adapters.onnx_models import ModelBuilder
from oracles.protocol import Unsupported
from oracles.reference.expect_by_exact import allow
from specs.cases import Case
from specs.editions import edition
from specs.formats import format_named
from specs.loader import document_named
from specs.ruling import ruling
from specs.selection import cases_of_pair
from tests.adapters.common import bits_of, patterns_of
from tests.adapters.contract import make
from tests.conformance.families.carriers.checks import assert_same_carriers

INFINITY, LOWEST, HIGHEST = 0x7F800000, 0xFF7FFFFF, 0x7F7FFFFF
ONE, MINUS_ZERO, BEYOND_FLOAT16 = 0x3F800000, 0x80000000, 0x47C35000  # 100000
ROADS = ("ort", "ort:basic", "ort:extended", "ort:optimized", "ort:folded", "onnx", "openvino")


def carrier(name: str, source: str = "float32", target: str = "float32") -> Case:
    return Case(DOCUMENT, "25", source, target, (("carrier", name),))


def all_carried() -> list[Case]:
    version = edition(document_named(DOCUMENT), "25")
    return [
        case
        for source, target in version.pairs()
        for case in cases_of_pair(DOCUMENT, "25", source, target)
    ]


CASES = all_carried()


@pytest.fixture(scope="module")
def models() -> CarrierModels:
    return CarrierModels(ModelBuilder(pytest.importorskip("onnx")))


@cache
def oracle_of(road: str) -> Any:
    backend, _, variant = road.partition(":")
    pytest.importorskip({"ort": "onnxruntime"}.get(backend, backend))
    return make(backend, variant or None)


def test_the_table_has_the_carriers_of_the_document() -> None:
    assert_same_carriers(DOCUMENT, NODES)
    assert len(CASES) <= 310


def test_every_constant_is_used() -> None:
    words = {word for nodes in NODES.values() for word in WORD.findall(" ".join(nodes))}
    assert {*CONSTANTS} <= words


@pytest.mark.parametrize("name", NODES)
def test_onnx_accepts_each_model(models: CarrierModels, name: str) -> None:
    import onnx

    for case in CASES:
        if case.mode["carrier"] == name:
            for length in (None, 3):
                onnx.checker.check_model(models.with_input(case, length), full_check=True)


@pytest.mark.parametrize("name", NODES)
def test_each_carrier_depends_on_its_input(models: CarrierModels, name: str) -> None:
    """x is an input of a node, so that nothing is folded before it is asked."""
    case = next(each for each in CASES if each.mode["carrier"] == name)
    graph = models.with_input(case).graph
    assert [each.name for each in graph.input] == ["x"]
    assert name == "if" or any("x" in node.input for node in graph.node)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("multiply-by-one", 1, {1}),  # the smallest subnormal number
        ("multiply-by-one", MINUS_ZERO, {MINUS_ZERO}),
        ("sum-of-one", MINUS_ZERO, {MINUS_ZERO, 0}),
        ("take", 0x7F800001, {0x7F800001}),
        ("clip-without-limits", INFINITY, {HIGHEST}),
        ("clip-without-limits", INFINITY | MINUS_ZERO, {LOWEST}),
        ("max-pool-of-one", INFINITY | MINUS_ZERO, {INFINITY | MINUS_ZERO}),
        ("through-float16-tile", BEYOND_FLOAT16, {INFINITY}),
        ("through-float16-tile", ONE + 1, {ONE}),
        ("through-bfloat16", 0x3F818000, {0x3F820000}),  # a tie, to even
        ("through-float16-where", 1 | MINUS_ZERO, {MINUS_ZERO}),
    ],
)
def test_what_the_document_expects(name: str, given: int, expected: set[int]) -> None:
    assert {*allow(ruling(carrier(name)), given).codes} == expected


@pytest.mark.parametrize("road", ROADS)
class TestAnswers:
    @pytest.mark.parametrize("name", ["multiply-by-one", "concatenate", "reshape", "pad", "tile"])
    def test_a_row_is_carried(self, road: str, name: str) -> None:
        given = [ONE, 0xC0490FDB, INFINITY, 0, 0x00800000]
        answer = oracle_of(road).carry(carrier(name), bits_of("float32", given))
        assert patterns_of(answer) == given

    def test_a_cast_before_the_operator(self, road: str) -> None:
        case = carrier("cast-concatenate", "float32", "float16")
        answer = oracle_of(road).carry(case, bits_of("float32", [ONE + 1, 0x47800000]))
        assert patterns_of(answer) == [0x3C00, 0x7C00]

    def test_a_script_prints_what_the_adapter_answers(self, road: str, tmp_path: Path) -> None:
        oracle, case = oracle_of(road), carrier("scatter", "int64", "int64")
        bits = bits_of("int64", [1, 2**53 + 1, 2**63])
        answer = oracle.carry(case, bits)
        script = tmp_path / "script.py"
        script.write_text(oracle.reproduce_carry(case, bits))
        run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        printed = [int(code, 16) for code in re.findall(r"-> (0x\w+)", run.stdout)]
        assert printed == patterns_of(answer)

    def test_an_unknown_carrier_is_unsupported(self, road: str) -> None:
        with pytest.raises(Unsupported, match="no carrier teleport"):
            oracle_of(road).carry(carrier("teleport"), bits_of("float32", [0]))


def test_a_script_of_a_result_that_is_no_tensor_ends_as_the_adapter_does(tmp_path: Path) -> None:
    """ONNX's evaluator returns the list in which it wraps an optional value."""
    oracle, case, bits = oracle_of("onnx"), carrier("optional"), bits_of("float32", [ONE])
    with pytest.raises(TypeError) as raised:
        oracle.carry(case, bits)
    script = tmp_path / "script.py"
    script.write_text(oracle.reproduce_carry(case, bits))
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert run.stderr.splitlines()[-1] == f"TypeError: {raised.value}"


def test_levels_of_optimization_differ_where_an_operator_is_removed() -> None:
    """Without optimization a Mul of float16 runs in float32, and both of its casts go."""
    case, bits = carrier("through-float16-multiply-by-one"), bits_of("float32", [ONE + 1])
    found = {road: patterns_of(oracle_of(road).carry(case, bits)) for road in ("ort", "ort:basic")}
    assert found == {"ort": [ONE + 1], "ort:basic": [ONE]}


def test_a_kernel_that_refuses_a_dtype_when_it_runs_is_unsupported() -> None:
    case = carrier("scatter-add", "float16", "float16")
    with pytest.raises(Unsupported, match="not supported"):
        oracle_of("ort").carry(case, np.zeros(1, format_named("float16").storage))
