"""The vendor in C conforms to what it claims, and each planted fault breaks the expected rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.sweep.engine import sweep
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend
from reports.grading.chunk_comparison import fastest_comparison
from reports.judgement import Judgement
from specs.selection import case_named, select
from tests.wire.conftest import SOURCE, BuildVendor

LoadProgram = Callable[[Path], Backend]
PAIRS = [
    ("float32", "float16"),
    ("float32", "float8e4m3fn"),
    ("float16", "float8e4m3fnuz"),
    ("float16", "float8e5m2"),
    ("float16", "int8"),
    ("float8e5m2fnuz", "bfloat16"),
    ("bfloat16", "float4e2m1"),
    ("int16", "int4"),
    ("uint8", "float16"),
    ("uint8", "bool"),
    ("bool", "float8e5m2"),
    ("int64", "float32"),
]
FLOAT8 = "onnx-cast:25/float16/float8e5m2/saturate:"
FAULTS = {
    "DOUBLE_ROUNDING": ("onnx-cast:25/float32/float8e4m3fn/saturate:1", "saturate-24"),
    "TIES_AWAY": (FLOAT8 + "1", "saturate-24"),
    "TRUNCATION": (FLOAT8 + "0", "no-saturate"),
    "NAN_SIGN_LOST": (FLOAT8 + "0", "no-saturate"),
    "NAN_TO_INFINITY": ("onnx-cast:25/float32/float16", "float-to-float"),
    "LOW_MAXIMUM": (FLOAT8 + "1", "saturate-24"),
    "EARLY_OVERFLOW": (FLOAT8 + "0", "no-saturate"),
    "FLUSHED_RESULTS": (FLOAT8 + "1", "saturate-24"),
    "FLUSHED_INPUTS": (FLOAT8 + "1", "saturate-24"),
    "ZERO_SIGN_LOST": (FLOAT8 + "1", "saturate-24"),
    "SWAPPED_NIBBLES": (FLOAT8 + "1", "saturate-24"),
    "BIG_ENDIAN_OUTPUT": ("onnx-cast:25/uint8/float16", "kept-value"),
    "NEAREST_INTEGER": ("onnx-cast:25/float16/int8", "float-to-integer"),
    "CLAMPED_INTEGERS": ("onnx-cast:25/int16/int8", "integer-to-integer"),
    "UNSIGNED_AS_SIGNED": ("onnx-cast:25/uint8/float16", "kept-value"),
    "ODD_IS_TRUE": ("onnx-cast:25/uint8/bool", "integer-to-bool"),
}


@pytest.fixture
def load() -> Iterator[LoadProgram]:
    backends: list[Backend] = []

    def load_program(program: Path) -> Backend:
        backends.append(load_isolated(f"exec:{program}", LaunchConfig()))
        return backends[-1]

    yield load_program
    for backend in backends:
        close(backend)


def judge(backend: Backend, case: str) -> Judgement:
    return BackendJudge(backend, {}, Settings()).judge(case_named(case))


def test_the_vendor_conforms_to_the_claimed_document(load: LoadProgram, vendor: Path) -> None:
    backend = load(vendor)
    assert backend.claims("onnx-cast", "25")
    assert not backend.claims("pypto-cast", "0.2")
    cases = [case for case in select(["onnx-cast:25"]) if (case.source, case.target) in PAIRS]
    assert {(case.source, case.target) for case in cases} == set(PAIRS)
    backend_judge = BackendJudge(backend, {}, Settings())
    found = {case.id: backend_judge.judge(case).verdict for case in cases}
    assert {case: verdict for case, verdict in found.items() if verdict != "conforms"} == {}


def test_bitcasts_give_the_right_shape_and_bits_or_are_refused(
    load: LoadProgram, vendor: Path
) -> None:
    backend = load(vendor)
    for case in ("float16/int16/shape:3", "uint4/int4/shape:scalar", "float16/int8/shape:3"):
        assert judge(backend, f"onnx-bitcast:26/{case}").verdict == "conforms"


def test_every_fault_of_the_vendor_is_listed_here() -> None:
    [listed] = re.findall(r"enum \{\n    DOUBLE_ROUNDING.*?\n\};", SOURCE.read_text(), re.S)
    assert re.findall(r"^    ([A-Z_]+)", listed, re.M) == list(FAULTS)


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_breaks_the_expected_rule(
    fault: str, load: LoadProgram, build_vendor: BuildVendor
) -> None:
    case, rule = FAULTS[fault]
    assert judge(load(build_vendor(0)), case).verdict == "conforms"
    judgement = judge(load(build_vendor(list(FAULTS).index(fault) + 1)), case)
    assert judgement.verdict in ("violates", "deviates")
    assert {divergence.rule for divergence in judgement.divergences} == {rule}


LO, HI = 0x3F7F_0000, 0x3FB3_4567
"""From below 1 to above it, across the end of a block."""


@pytest.mark.nightly
def test_a_sweep_finds_the_same_divergences_as_casts(
    load: LoadProgram, build_vendor: BuildVendor
) -> None:
    case = case_named("onnx-cast:25/float32/float8e4m3fn/saturate:1")
    wrong = []
    for fault in (0, list(FAULTS).index("TIES_AWAY") + 1):
        backend_judge = BackendJudge(load(build_vendor(fault)), {}, Settings())
        found = []
        for backend in (backend_judge.backend, _only_casts(backend_judge.backend)):
            fresh_meeting = BackendJudge(backend, {}, Settings())
            [judgement] = sweep(
                fresh_meeting, [case], Dense(HI), LO, HI, fastest_comparison(), lambda *_: None
            )
            assert judgement.inputs == HI - LO
            found.append(repr(judgement.divergences))
            wrong.append(judgement.wrong)
        assert found[0] == found[1]
    # Of the ties at 1.0625, 1.1875 and 1.3125, rounding to even also rounds the middle one up.
    assert wrong == [0, 0, 2, 2]


@pytest.mark.nightly
def test_other_requests_between_the_parts_of_a_sweep_do_no_harm(
    load: LoadProgram, vendor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oracles.wire.program_oracle.SLOT_BYTES", 1000)
    oracle: Any = load(vendor).oracle
    for target, mask in (
        ("int4", 15),
        ("int8", 255),
    ):  # answers are copied for int4, and read in place for int8
        case = case_named(f"onnx-cast:25/uint16/{target}")
        part = oracle.sweep(case, 7, 60_001)
        expected = np.arange(60_001) & mask
        for first in range(7, 60_001, 2997):
            count = min(2997, 60_001 - first)
            assert (part(first, count) == expected[first : first + count]).all()
            if first % 2:
                bits = np.array([1, 17], np.uint16)
                assert oracle.cast(case, bits).tolist() == [1, 17 & mask]
            elif first % 3:
                oracle.close()
        assert (part(7, 100) == expected[7:107]).all()


def _only_casts(backend: Backend) -> Backend:
    class OnlyCasts:
        name, version = backend.oracle.name, backend.version
        cast = staticmethod(backend.oracle.cast)

    return Backend(backend.name, OnlyCasts())
