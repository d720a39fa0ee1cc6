"""Faults of position, neighbors, shape, memory and past: all are found by the cases of a pair."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings
from oracles.backend.launch_config import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.registry import Backend
from reports.verdicts import Verdict
from tests.conformance.data.surprises import (
    FAULTS,
    OF_SOME_PAIRS,
    ONLY_FULL,
    REPLACED,
    UNSEEN,
    Surprising,
)
from tests.conformance.feeding import check_invariances
from tests.conformance.test_invariances import HALF, cases

SURPRISES = Path(__file__).with_name("data") / "surprises.py"
LIMITATIONS = Path(__file__).parents[2] / "docs" / "limitations.md"
FAILED = ("violates", "deviates", "error", "crashed")
Tier = Literal["quick", "full"]
DTYPES = ("bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
OTHERS = [
    *(("float32", target) for target in (*DTYPES, "uint64", "float8e4m3fn", "int4", "float32")),
    *((source, "float32") for source in DTYPES),
]
"""Pairs of which each has its own eighth of the less usual tensors."""


def verdicts(backend: Backend, tier: Tier, pair: tuple[str, str] = HALF) -> list[Verdict]:
    judge = BackendJudge(backend, {}, Settings(max_examples=20, tier=tier))
    asked = cases(*pair)
    return [judge.judge(asked[0]).verdict, check_invariances(judge, asked).verdict]


def test_the_reference_without_a_fault_conforms() -> None:
    assert verdicts(Backend("none", Surprising("")), "full") == ["conforms", "conforms"]


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize("name", sorted(({*FAULTS} | {*REPLACED}) - UNSEEN))
def test_a_fault_is_found(name: str) -> None:
    tier: Tier = "full" if name in ONLY_FULL else "quick"
    backend = Backend(name, Surprising(name))
    pairs = [HALF, *(OTHERS if name in OF_SOME_PAIRS else ())]
    assert any(set(verdicts(backend, tier, pair)) & set(FAILED) for pair in pairs)


@pytest.mark.parametrize("name", sorted(UNSEEN))
def test_what_no_tier_finds_is_among_the_limitations(name: str) -> None:
    assert not set(verdicts(Backend(name, Surprising(name)), "full")) & set(FAILED)
    assert f"`{name}`" in LIMITATIONS.read_text()


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
        ("SharesItsScratchForColumns", True),
        ("GuardsItsScratch", False),
    ],
)
def test_two_callers_at_once_get_their_own_answers(name: str, fails: bool) -> None:
    backend = load_isolated(f"{SURPRISES}:{name}", LaunchConfig())
    try:
        found = set(verdicts(backend, "quick", ("int64", "float32")))
        assert bool(found & set(FAILED)) == fails
    finally:
        close(backend)
