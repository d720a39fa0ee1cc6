"""The example in JavaScript conforms to what it claims; a wrong rounding in it is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.extras.selftest import checks
from conformance.judging.asking import Settings
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.protocol import Unsupported
from oracles.registry import Backend
from specs.selection import case_named, select
from tests.conformance.processes import castigate

PROGRAM = Path(__file__).parents[2] / "examples" / "vendor_node" / "program.js"
LINES = 151
PAIRS = [
    ("float64", "float32"),
    ("float64", "float8e5m2"),
    ("float32", "float64"),
    ("float32", "float16"),
    ("float32", "float8e4m3fn"),
    ("float32", "int8"),
    ("float16", "bfloat16"),
    ("float16", "uint32"),
    ("float8e4m3fn", "float8e5m2"),
    ("float8e5m2", "bool"),
    ("int32", "float16"),
    ("int32", "float32"),
    ("uint32", "int16"),
    ("bool", "bfloat16"),
]
Load = Callable[[Path], Backend]


@pytest.fixture
def load() -> Iterator[Load]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    backends: list[Backend] = []

    def load_program(program: Path) -> Backend:
        backends.append(load_isolated(f"exec:node {program}", LaunchConfig()))
        return backends[-1]

    yield load_program
    for backend in backends:
        close(backend)


def verdicts(backend: Backend, cases: list[str]) -> dict[str, str]:
    judge = BackendJudge(backend, {}, Settings())
    return {case: judge.judge(case_named(case)).verdict for case in cases}


def test_the_program_is_short_and_needs_nothing_but_node() -> None:
    text = PROGRAM.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("require(") == text.count('require("node:fs")') == 1


def test_it_conforms_to_what_it_claims(load: Load) -> None:
    backend = load(PROGRAM)
    assert [str(claim) for claim in backend.claimed] == ["onnx-bitcast", "onnx-cast:25"]
    casts = select(["onnx-cast:25"])
    cases = [case.id for case in casts if (case.source, case.target) in PAIRS]
    found = verdicts(backend, cases)
    assert {(case_named(case).source, case_named(case).target) for case in found} == set(PAIRS)
    assert {case: verdict for case, verdict in found.items() if verdict != "conforms"} == {}


def test_bitcasts_conform_and_other_widths_are_refused(load: Load) -> None:
    names = ("float64/float64/shape:3", "float16/int16/shape:2x1", "float32/int8/shape:scalar")
    cases = [f"onnx-bitcast:26/{name}" for name in names]
    assert verdicts(load(PROGRAM), cases) == dict.fromkeys(cases, "conforms")


def test_a_sweep_gets_the_answers_of_a_cast(load: Load) -> None:
    oracle: Any = load(PROGRAM).oracle
    case = case_named("onnx-cast:25/uint32/float16")
    inputs = np.arange(65_000, 66_000, dtype=np.uint32)
    assert (oracle.sweep(case, 65_000, 66_000)(65_000, 1000) == oracle.cast(case, inputs)).all()


def test_a_parameter_or_dtype_that_it_lacks_is_unsupported(load: Load) -> None:
    oracle = load(PROGRAM).oracle
    for name in (
        "pypto-cast:0.2/float32/int16/mode:CAST_RINT/satmode:on",
        "onnx-cast:25/int4/int8",
    ):
        with pytest.raises(Unsupported):
            oracle.cast(case_named(name), np.zeros(1, np.uint8))


def test_ties_away_from_zero_are_found(load: Load, tmp_path: Path) -> None:
    text, rule = PROGRAM.read_text(encoding="utf-8"), "rest > 0.5 ||"
    assert text.count(rule) == 1
    program = tmp_path / "program.js"
    program.write_text(text.replace(rule, "rest >= 0.5 ||"), encoding="utf-8")
    case = "onnx-cast:25/float32/float16"
    assert verdicts(load(program), [case]) == {case: "deviates"}


def test_the_self_test_finds_nothing(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SECONDS_OF_A_FIGURE", 0.0)
    monkeypatch.setattr(checks, "LONGEST_ROW", checks.LONG_ROW)
    load(PROGRAM)
    code, out, err = castigate("selftest", f"exec:node {PROGRAM}")
    assert (code, err) == (0, "")
    assert "BROKEN" not in out
