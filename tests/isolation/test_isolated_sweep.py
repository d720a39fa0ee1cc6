"""A sweep that another process answers: the same judgements, which it cannot influence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.running.worker import Ready, TaskRunner
from conformance.sweep import road_answers
from conformance.sweep.engine import sweep
from oracles.backend import isolated_oracle
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend, load_backend
from reports.grading.chunk_comparison import chunk_comparison
from reports.judgement import Judgement
from specs.errors import CastigateError
from specs.selection import case_named
from tests.isolation.data.swept import GUILTY

ADAPTERS = Path(__file__).with_name("data") / "swept.py"
CASE = case_named("onnx-cast:25/uint32/uint8")
LO, HI = GUILTY - 5_000, GUILTY + 9_001
Load = Callable[[str], Backend]


@pytest.fixture(autouse=True)
def _small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(road_answers, "call_size", lambda source, target: 1 << 11)
    monkeypatch.setattr(isolated_oracle, "SWEEP_CALL", 1 << 9)
    monkeypatch.setattr(isolated_oracle, "SWEEP_BYTES", 1 << 12)


@pytest.fixture
def isolated() -> Iterator[Load]:
    """Load adapters in processes of their own, which end with the test."""
    loaded = []

    def load(name: str) -> Backend:
        loaded.append(load_isolated(f"{ADAPTERS}:{name}", LaunchConfig()))
        return loaded[-1]

    yield load
    for backend in loaded:
        close(backend)


def judged(backend: Backend, lo: int = LO, hi: int = HI) -> Judgement:
    judge = BackendJudge(backend, {}, Settings(tier="full"))
    comparison = chunk_comparison(compiled=False)
    [found] = sweep(judge, [CASE], Dense(hi), lo, hi, comparison, lambda *_: None)
    return found


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("Swept", "conforms"), ("Bound", "conforms"), ("Wrong", "violates"), ("TooShort", "error"),
        ("OtherStorage", "error"), ("NoArray", "error"), ("Raises", "error"), ("Writes", "error"),
        ("MakesTheInputs", "violates"),
    ],
)  # fmt: skip
def test_an_isolated_sweep_is_judged_as_one_in_this_process(
    isolated: Load, name: str, verdict: str
) -> None:
    found = judged(isolated(name))
    assert found.verdict == verdict
    assert repr(found) == repr(judged(load_backend(f"{ADAPTERS}:{name}")))


def test_an_input_that_ends_the_process_is_named(isolated: Load) -> None:
    found = judged(isolated("Dies"), GUILTY - 5, GUILTY + 4)
    assert (found.verdict, f"{GUILTY:#010x}" in found.message) == ("crashed", True), found.message


def test_an_adapter_that_replaces_the_judge_does_not_reach_it(isolated: Load) -> None:
    found = judged(isolated("ReplacesTheJudge"))
    assert (found.verdict, found.wrong) == ("violates", 1)


def test_other_requests_between_the_parts_of_a_sweep_do_no_harm(isolated: Load) -> None:
    backend = isolated("Bound")
    oracle = backend.oracle
    part = getattr(oracle, "sweep")(CASE, 7, 9_000)  # noqa: B009
    for first in range(7, 9_000, 2997):
        count = min(2997, 9_000 - first)
        assert (part(first, count) == np.arange(first, first + count) % 256).all()
        if first % 2:
            assert oracle.cast(CASE, np.array([1, 300], np.uint32)).tolist() == [1, 44]
        else:
            close(backend)


def test_without_shared_memory_answers_come_through_the_pipe(
    isolated: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.memfd_create")
    assert judged(isolated("Wrong")).wrong == 1


@pytest.mark.parametrize("isolates", [True, False])
def test_a_worker_that_isolates_sweeps_loads_no_adapter(isolates: bool) -> None:
    link, other = Pipe()
    named = f"{ADAPTERS}:Bound", LaunchConfig()
    runner = TaskRunner(link, named, None, Settings(tier="full", isolates_sweeps=isolates))
    try:
        assert (runner.fastest is runner.isolated) == isolates
    finally:
        close(runner.isolated.backend)
        link.close()
        other.close()


def test_a_worker_that_only_sweeps_starts_no_process() -> None:
    link, other = Pipe()
    named = f"{ADAPTERS}:Bound", LaunchConfig()
    ready = Ready("1", (), {"int4": "is broken"})
    with link, other:
        runner = TaskRunner(link, named, None, Settings(tier="full"), ready)
        assert runner.fastest.broken == ready.broken
        assert "isolated" not in vars(runner)


def test_a_worker_whose_backend_has_another_version_is_refused() -> None:
    link, other = Pipe()
    named = f"{ADAPTERS}:Bound", LaunchConfig()
    with link, other:
        runner = TaskRunner(link, named, None, Settings(tier="full"), Ready("0", (), {}))
        with pytest.raises(CastigateError, match=r"is version \S+ now, and was 0; run again"):
            _ = runner.fastest
