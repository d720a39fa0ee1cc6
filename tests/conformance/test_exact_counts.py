"""A sweep that finds something else than what a quick run calls exact is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from conformance.judging.backend_judge import BackendJudge, Settings
from conformance.running.run import RunRequest
from conformance.running.selection import case_named
from conformance.sweep import exact_counts
from conformance.sweep.engine import sweep
from conformance.sweep.joining import completed, joined
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend
from reports.diff.chunk_comparison import fastest_comparison
from reports.diff.judgement import Judgement
from reports.run_store.record import BackendRecord
from reports.run_store.store import RunStore, create
from tests.conformance.data.runnable import HiddenRange, KnownRange
from tests.conformance.processes import ROOT, RUNNABLE
from tests.conformance.test_run import needs_numba
from tests.reports.common import record

CASE = case_named("onnx-cast:25/uint32/bool")
KNOWN, HIDDEN = 0x1100, 5
"""How many numbers fail where the tier quick asks some of them, and where it asks none."""
ABOUT_BOTH = ((0x12345000, 0x12346000), (0x7FFFF000, 0x80002000))


def judge_of(oracle: Any, tier: str) -> BackendJudge:
    settings = Settings(asked_for=frozenset({CASE.document}), tier=tier)
    return BackendJudge(Backend("planted", oracle), {}, settings)


def quick(oracle: Any) -> Judgement:
    return judge_of(oracle, "quick").judge(CASE)


def swept(oracle: Any) -> Judgement:
    """The judgement at the tier full, of which the sweep asks only what is about the two ranges."""
    judge, compare = judge_of(oracle, "full"), fastest_comparison()
    [one], [other] = (
        sweep(judge, [CASE], Dense(1 << 32), *ends, compare, lambda *_: None) for ends in ABOUT_BOTH
    )
    return completed(judge.judge(CASE), replace(joined(one, other), inputs=1 << 32))


Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Compares two judgements by the command."""

    def store_of(folder: Path, judgement: Judgement) -> RunStore:
        store = create(str(folder), record(backends=(BackendRecord(name="planted", version="1"),)))
        return store.finish([("planted", CASE, judgement)], lambda: 1)

    def check(at_quick: Judgement, at_full: Judgement, *arguments: str) -> Result:
        def complete_run(request: RunRequest, folder: Path, jobs: int) -> RunStore:
            return store_of(folder, at_quick if request.tier == "quick" else at_full)

        monkeypatch.setattr(exact_counts, "_complete_run", complete_run)
        page = f"--page={tmp_path / 'page.md'}"
        command = ["--backend=planted", f"--out={tmp_path / 'runs'}", page, *arguments]
        found = CliRunner().invoke(exact_counts.app, command)
        assert found.exit_code in (0, 1), found.output
        assert found.output in (tmp_path / "page.md").read_text(encoding="utf-8") + "\n"
        return found

    return check


def test_a_sweep_that_finds_the_same(check: Check) -> None:
    found = check(quick(KnownRange()), swept(KnownRange()))
    assert found.exit_code == 0
    assert "1 cases are called exact, and 1 of them were swept. They agree." in found.output
    assert "change none of the 1 findings" in found.output
    assert "| uint32/bool | 1 | integer-to-bool: 4,352 in 1 runs | agrees |" in found.output
    assert KNOWN == 4352


def test_a_stretch_that_only_the_sweep_finds(check: Check) -> None:
    found = check(quick(HiddenRange()), swept(HiddenRange()))
    assert found.exit_code == 1
    rule = f"- {CASE}: integer-to-bool (required)"
    assert f"{rule}: wrong is {KNOWN} at quick, {KNOWN + HIDDEN} at full\n" in found.output
    assert f"{rule}: runs is 1 at quick, 2 at full\n" in found.output
    assert f"{rule}: digest is " in found.output
    assert f": inputs is {KNOWN} at quick, {KNOWN + HIDDEN} at full\n" in found.output
    assert found.output.rstrip().endswith("| disagrees |")


def test_answers_that_differ_on_the_same_inputs(check: Check) -> None:
    before = quick(KnownRange())
    [divergence] = before.divergences
    runs = replace(divergence.runs, checksum=divergence.runs.checksum + 1)
    after = replace(before, inputs=1 << 32, divergences=(replace(divergence, runs=runs),))
    found = check(before, after)
    assert found.exit_code == 1
    assert "They disagree in 1 figures:" in found.output
    assert "digest is " in found.output


def test_a_rule_that_only_one_of_them_breaks(check: Check) -> None:
    before = quick(KnownRange())
    [divergence] = before.divergences
    after = replace(before, inputs=1 << 32, divergences=(replace(divergence, level="recommended"),))
    found = check(before, after)
    assert found.exit_code == 1
    assert "integer-to-bool (required) is broken at quick only" in found.output
    assert "integer-to-bool (recommended) is broken at full only" in found.output


def test_a_sweep_that_did_not_ask_all_inputs(check: Check) -> None:
    found = check(quick(KnownRange()), replace(swept(KnownRange()), inputs=(1 << 32) - 1))
    assert found.exit_code == 1
    assert f"{CASE}: the sweep asked 4,294,967,295 of 4,294,967,296 inputs" in found.output


def test_what_was_not_swept_is_listed(check: Check) -> None:
    found = check(quick(HiddenRange()), swept(HiddenRange()), "--pair=int32/bool")
    assert found.exit_code == 0
    assert "1 cases are called exact, and 0 of them were swept." in found.output
    assert found.output.rstrip().endswith("| not made |")


@needs_numba
def test_a_sweep_of_all_inputs(tmp_path: Path) -> None:
    """Whole runs: what one backend does in secret is found, and another one is exonerated."""
    command = [sys.executable, "-m", "conformance.sweep.exact_counts", "--document=onnx-cast:1"]
    names = [f"--backend={RUNNABLE}:{name}" for name in ("KnownRange", "HiddenRange")]
    done = run(
        [*command, *names, f"--out={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    known, hidden = done.stdout.split("HiddenRange")
    assert "They agree." in known
    assert f"wrong is {KNOWN} at quick, {KNOWN + HIDDEN} at full\n" in hidden
