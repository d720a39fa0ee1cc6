"""torch's carriers: the table and its document agree, modes are restored, some answers by hand."""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles.adapters.torch_carriers import CARRIERS, FEW_COMPILED, OF_CPU
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.editions import edition
from specs.formats import format_named
from specs.loader import document_named
from tests.adapters.common import bits_of, onnx_case, patterns_of
from tests.adapters.contract import make
from tests.conformance.families.carriers.checks import assert_same_carriers

DOCUMENT = "torch-carriers"
CASES = tuple(edition(document_named(DOCUMENT), "2.13").cases())
ONE_OF_EACH = {case.mode["carrier"]: case for case in CASES}


def carrier(source: str, target: str, name: str) -> Case:
    return next(
        case for case in CASES
        if (case.source, case.target, case.mode["carrier"]) == (source, target, name)
    )  # fmt: skip


def modes() -> tuple[Any, ...]:
    """Return whatever a carrier may set and leave behind."""
    torch = pytest.importorskip("torch")
    smallest = torch.tensor([1], dtype=torch.int32).view(torch.float32)
    return (
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.is_autocast_enabled("cpu"),
        torch.get_num_threads(),
        ctypes.CDLL(None).fegetround(),
        (smallest * torch.ones(())).view(torch.int32).tolist(),
        threading.active_count(),
    )


def test_the_document_and_the_table_have_the_same_carriers() -> None:
    assert_same_carriers(DOCUMENT, CARRIERS)


def test_what_is_compiled_is_a_case_and_an_expression() -> None:
    asked = {(case.source, case.target, case.mode["carrier"]) for case in CASES}
    compiled = {(*pair, name) for pair, names in FEW_COMPILED.items() for name in names}
    assert compiled <= asked
    assert not any("y = " in CARRIERS[name] for _, _, name in compiled)


def test_no_carrier_leaves_a_mode_behind() -> None:
    oracle, before = make("torch"), modes()
    for name in OF_CPU:
        case = ONE_OF_EACH[name]
        oracle.carry(case, np.zeros(3, format_named(case.source).storage))
        assert modes() == before, name


def test_no_carrier_leaves_a_mode_behind_when_it_fails() -> None:
    torch, before = pytest.importorskip("torch"), modes()
    for name in OF_CPU:
        text = CARRIERS[name].format(source="torch.float32", target="torch.float32")
        with suppress(AttributeError, TypeError):
            exec(text, {"torch": torch, "x": None})
            pytest.fail(f"{name} carries None")
        assert modes() == before, name


@pytest.mark.parametrize(
    ("source", "target", "name", "given", "answer"),
    [
        # 1 + 2^-8 and 1 + 3 * 2^-8 are ties of bfloat16
        ("float32", "bfloat16", "matmul-by-one-under-autocast", 0x3F808000, 0x3F80),
        ("float32", "bfloat16", "matmul-by-one-under-autocast", 0x3F818000, 0x3F82),
        ("float32", "float16", "linear-by-one-under-float16-autocast", 0x477FE000, 0x7BFF),
        ("bfloat16", "float32", "index-copy-under-autocast", 0x3F81, 0x3F810000),
        ("bfloat16", "float32", "product-of-one-under-autocast", 0xFF80, 0xFF800000),
        ("float32", "float32", "matmul-by-one-beside-autocast", 0x3F800001, 0x3F800001),
        ("float32", "float32", "matmul-under-medium-precision", 0x3F800001, 0x3F800001),
        # 1 + 2^-24 + 2^-25 lies between 1 and 1 + 2^-23, nearer to the latter
        ("float64", "float32", "cast-after-rounding-toward-zero", 0x3FF0000018000000, 0x3F800001),
        ("float64", "float32", "cast-beside-rounding-toward-zero", 0x3FF0000018000000, 0x3F800001),
        ("float32", "float32", "multiply-after-flush", 0x80000001, 0x80000001),
        # 2^53 + 1 is a tie of float64
        ("int64", "float64", "multiply-by-python-one-under-default-float64", 2**53 + 1,
         0x4340000000000000),
        ("float32", "int32", "set-items", 0xC0300000, 2**32 - 2),  # -2.75
        ("int32", "uint8", "add-out", 0x1FF, 0xFF),
        ("int32", "uint8", "sum-of-one", 0x110, 0x10),
        ("bfloat16", "bfloat16", "index-put-under-determinism", 0x7F81, 0x7F81),
    ],
)  # fmt: skip
def test_some_answers_by_hand(source: str, target: str, name: str, given: int, answer: int) -> None:
    oracle = make("torch")
    assert patterns_of(oracle.carry(carrier(source, target, name), bits_of(source, [given]))) == [
        answer
    ]


@pytest.mark.parametrize("name", ["add-out", "multiply-out", "multiply-in-place"])
def test_an_integer_takes_no_float_as_output(name: str) -> None:
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        make("torch").carry(carrier("float32", "int32", name), bits_of("float32", [0]))


def test_a_result_of_another_dtype_is_no_answer() -> None:
    promoted = Case(DOCUMENT, "2.13", "int64", "int64", (("carrier", "multiply-by-python-one"),))
    with pytest.raises(TypeError, match=r"the result has dtype torch\.float32"):
        make("torch").carry(promoted, bits_of("int64", [1]))


@pytest.mark.nightly
def test_the_script_of_one_compiled_element_prints_the_answer_of_the_run(tmp_path: Path) -> None:
    """Alone it would be compiled for one element: 0x7FC0, not 0xFFFF, of a NaN that is padded."""
    oracle, case = make("torch", "compile"), carrier("bfloat16", "bfloat16", "pad")
    bits = bits_of("bfloat16", [0x7F81])
    [answer] = patterns_of(oracle.carry(case, bits))
    script = tmp_path / "script.py"
    script.write_text(oracle.reproduce_carry(case, bits))
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert {*run.stdout.splitlines()} == {f"0x7f81 -> {answer:#x}"}


def test_a_functionalized_store_is_no_mutation() -> None:
    oracle = make("torch", "functionalized")
    case = carrier("bfloat16", "bfloat16", "index-put")
    assert patterns_of(oracle.carry(case, bits_of("bfloat16", [1, 0xFF81]))) == [1, 0xFF81]
    assert "torch.func.functionalize(" in oracle.reproduce_carry(case, bits_of("bfloat16", [1]))


def test_what_only_carries_does_not_cast() -> None:
    with pytest.raises(Unsupported, match="functionalized offers other operations alone"):
        make("torch", "functionalized").cast(
            onnx_case("float32", "float16"), bits_of("float32", [0])
        )


def test_a_device_is_not_asked_for_modes_of_the_cpu() -> None:
    pytest.importorskip("torch")
    adapter = importlib.import_module("oracles.adapters.torch").Torch
    on_device = type("OnDevice", (adapter,), {"devices": {"cuda": "cpu"}})("cuda")
    with pytest.raises(Unsupported, match="sets a mode of the CPU"):
        on_device.carry(ONE_OF_EACH["multiply-after-flush"], bits_of("float32", [0]))
