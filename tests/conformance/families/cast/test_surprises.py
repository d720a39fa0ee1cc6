"""Faults of position, neighbors, shape, memory and past are found, but for one limitation."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.families.cast.probes import KIND_TURNS
from conformance.judging.asking import Settings
from conformance.judging.space import drawn_probe
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.protocol import Bits
from oracles.registry import Backend
from reports.judgement import Verdict
from specs.ruling import ruling
from specs.selection import select
from tests.conformance.data.surprises import (
    FAULTS,
    OF_SOME,
    ONLY_FULL,
    RARE,
    REPLACED,
    UNSEEN,
    BeginsSmall,
    ConvertsColumns,
    Past,
    Surprising,
    TakesOneForTheOther,
)
from tests.conformance.families.cast.test_invariances import HALF, ONNX, cases
from tests.conformance.feeding import check_invariances

SURPRISES = Path(__file__).parents[2] / "data" / "surprises.py"
LIMITATIONS = Path(__file__).parents[4] / "docs" / "trust.md"
FAILED = ("violates", "deviates", "error", "crashed")
Tier = Literal["quick", "full"]


def verdicts(
    backend: Backend,
    tier: Tier,
    pair: tuple[str, str] = HALF,
    *,
    as_a_gate: bool = False,
    seed: int = 0,
) -> list[Verdict]:
    settings = Settings(seed, max_examples=20, tier=tier, isolates_sweeps=as_a_gate)
    judge = BackendJudge(backend, {}, settings)
    asked = cases(*pair)
    return [judge.judge(asked[0]).verdict, check_invariances(judge, asked).verdict]


def test_the_reference_without_a_fault_conforms() -> None:
    assert verdicts(Backend("none", Surprising("")), "quick") == ["conforms", "conforms"]


PAIRS = [*dict.fromkeys((case.source, case.target) for case in select([ONNX]))]
OF_ONE_SOURCE = [pair for pair in PAIRS if pair[0] == "float32"]


def is_found(name: str, tier: Tier, pair: tuple[str, str], seed: int = 0) -> bool:
    found = verdicts(Backend(name, Surprising(name)), tier, pair, seed=seed)
    return bool(set(found) & set(FAILED))


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize("name", sorted(({*FAULTS} | {*REPLACED}) - UNSEEN - RARE - ONLY_FULL))
def test_a_fault_of_the_kernel_for_one_source_is_found_in_a_week(name: str) -> None:
    week = product(range(7), OF_ONE_SOURCE)
    assert any(is_found(name, "quick", pair, seed) for seed, pair in week)


@pytest.mark.nightly  # thousands of tensors each
@pytest.mark.parametrize("name", sorted(ONLY_FULL))
def test_a_fault_is_found_at_full(name: str) -> None:
    assert is_found(name, "full", HALF)


@pytest.mark.nightly  # thousands of tensors each
@pytest.mark.parametrize("name", sorted(RARE))
def test_a_rare_condition_is_in_the_space(name: str) -> None:
    inputs = np.random.default_rng(0).integers(0, 1 << 32, 40, np.uint32)
    chance = Random(name)
    tensors = (drawn_probe(chance, inputs.size).tensor(inputs) for _ in range(1 << 17))
    assert any(meets(name, tensor) for tensor in tensors)


def meets(name: str, tensor: Bits) -> bool:
    """Whether a fault shows in a tensor that no other tensor precedes."""
    if name in FAULTS:
        return bool(np.any(FAULTS[name](tensor, Past())))
    try:
        return REPLACED[name](tensor, tensor, Past()) is not tensor
    except MemoryError:
        return True


@pytest.mark.parametrize("name", sorted(UNSEEN))
def test_what_no_tier_finds_is_among_the_limitations(name: str) -> None:
    assert verdicts(Backend(name, Surprising(name)), "full") == ["conforms", "conforms"]
    assert f"`{name}`" in LIMITATIONS.read_text()


@pytest.mark.parametrize("name", sorted(OF_SOME))
def test_a_fault_that_every_second_case_is_asked_is_found(name: str) -> None:
    targets = ("float16", "bfloat16", "float64", "int32", "uint8", "int64")
    pairs = [("float32", target) for target in targets]
    wrong = [pair for pair in pairs if is_found(name, "quick", pair)]
    assert 0 < len(wrong) < len(pairs)


def test_memory_that_is_written_anew_is_read_anew() -> None:
    backend = load_isolated(f"{SURPRISES}:KeepsByObject", LaunchConfig())
    try:
        nights = [verdicts(backend, "quick", seed=seed) for seed in range(KIND_TURNS)]
        assert {values for values, _ in nights} == {"conforms"}
        assert sorted(check for _, check in nights) == ["conforms"] * (KIND_TURNS - 1) + [
            "violates"
        ]
    finally:
        close(backend)


def test_a_pair_that_begins_with_a_short_row_is_judged_in_every_second_case() -> None:
    found = {
        BackendJudge(Backend("small", BeginsSmall()), {}, Settings()).judge(case).verdict
        for source in ("float32", "float64", "bfloat16")
        for case in cases(source, "float16")
    }
    assert found == {"conforms", "violates"}


def test_a_bitcast_before_a_cast_leaves_nothing_behind() -> None:
    oracle = Backend("one", TakesOneForTheOther())
    judges = [BackendJudge(oracle, {}, Settings(seed)) for seed in range(KIND_TURNS)]
    asked = cases("float32", "int32")
    assert {check_invariances(judge, asked).verdict for judge in judges} == {"conforms"}
    views = select(["torch-view"])
    asked += [each for each in views if (each.source, each.target) == ("float32", "int32")]
    found = [check_invariances(judge, asked).verdict for judge in judges]
    assert sorted(found) == ["conforms"] * (KIND_TURNS - 1) + ["violates"]


@pytest.mark.parametrize("again", [False, True])
def test_a_refusal_is_awaited_again_and_in_another_layout(again: bool) -> None:
    judge = BackendJudge(Backend("odd", ConvertsColumns(again)), {}, Settings())
    refused = [each for each in select(["onnx-cast:1"]) if ruling(each).is_rejection][:40]
    found = [judge.judge(case) for case in refused]
    wrong = [each for each in found if each.verdict == "violates"]
    assert 4 <= len(wrong) < len(refused)
    assert all(("dimensions in memory" in each.message) != again for each in wrong)


def test_an_error_counts_though_a_second_attempt_succeeds() -> None:
    backend = load_isolated(f"{SURPRISES}:RaisesOnce", LaunchConfig())
    try:
        assert verdicts(backend, "quick") == ["conforms", "error"]
    finally:
        close(backend)


@pytest.mark.parametrize(
    ("name", "fails"),
    [
        ("SharesItsScratch", True),
        ("SharesItsScratchForLayouts", True),
        ("GuardsItsScratch", False),
    ],
)
def test_two_callers_at_once_get_their_own_answers(name: str, fails: bool) -> None:
    backend = load_isolated(f"{SURPRISES}:{name}", LaunchConfig())
    try:
        found = set(verdicts(backend, "quick", ("int64", "float32"), as_a_gate=True))
        assert bool(found & set(FAILED)) == fails
    finally:
        close(backend)
