"""Adapters execute the lines of their scripts; other ways to the same kernel give the same bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from oracles.adapters.dtype_table import names_in
from oracles.adapters.scripted import call_steps, function_of
from oracles.protocol import Bits
from specs.formats import format_named, formats
from tests.adapters.common import assert_same, layouts, onnx_case, some_patterns
from tests.adapters.contract import make

SHARED = ("numpy", "ml_dtypes", "torch", "array_api_strict")
"""The backends that one process can load together."""


def answers_of(script: str) -> Bits:
    """Execute a script, and return the patterns that it prints."""
    names: dict[str, Any] = {"print": lambda *_: None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(script, "script", "exec"), names)
    return np.asarray(names["answers"])


class TestFunctions:
    def test_a_function_takes_names_and_gives_an_expression(self) -> None:
        function = function_of(
            {"two": 2}, "x, more", 'y = x + more\ntext = """a\nb"""', "y * two, text"
        )
        assert function(1, 2) == (6, "a\nb")

    def test_a_maker_gets_a_function_once(self) -> None:
        steps = call_steps("x + 1", "made", "fast=True")
        assert steps.once == "function = made(lambda x: x + 1, fast=True)\n"
        assert steps.text == steps.once + "y = function(x)\n"

    def test_long_lines_are_broken(self) -> None:
        once = call_steps("x" + ".to(torch.float16)" * 4, "torch.compile").once
        assert max(map(len, once.splitlines())) <= 100
        assert once.startswith("function = torch.compile(\n    lambda x: ")


class TestTable:
    def test_a_package_names_dtypes_of_this_project_once(self) -> None:
        for package in (
            "torch",
            "jax",
            "tf",
            "paddle",
            "tvm",
            "openvino",
            "stablehlo",
            "xla",
            "ml",
        ):
            names = names_in(package)
            assert names.keys() <= formats().keys()
            assert len(set(names.values())) == len(names) > 5


@pytest.mark.parametrize("backend", SHARED)
@pytest.mark.parametrize(("source", "target"), [("float32", "int8"), ("int16", "float64")])
class TestOtherWays:
    def test_every_memory_layout_is_cast_as_the_script_casts(
        self, backend: str, source: str, target: str
    ) -> None:
        oracle, case = make(backend), onnx_case(source, target)
        patterns = np.resize(some_patterns(source, 12) & 0x3FFF, 12)
        for view in layouts(patterns.astype(format_named(source).storage)).values():
            expected = answers_of(oracle.reproduce(case, view.ravel()))
            assert_same(oracle.cast(case, view), expected.reshape(view.shape))

    def test_a_bound_call_answers_as_the_script_does(
        self, backend: str, source: str, target: str
    ) -> None:
        oracle, case = make(backend), onnx_case(source, target)
        bits = some_patterns(source, 300)[:300]
        assert_same(oracle.bind(case, bits)(), answers_of(oracle.reproduce(case, bits)))
