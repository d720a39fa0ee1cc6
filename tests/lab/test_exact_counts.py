"""Cases are named in which a sweep contradicts what a quick run calls exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.running.run import RunRequest
from conformance.sweep.engine import sweep
from conformance.sweep.plan import completed, joined
from lab import exact_counts
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend
from reports.grading.chunk_comparison import fastest_comparison
from reports.judgement import Judgement
from reports.run_store.record import BackendRecord, Selection
from reports.run_store.store import RunStore, create
from specs.selection import case_named
from tests.conformance.data.runnable import HiddenRange, KnownRange, Right
from tests.conformance.processes import RUNNABLE
from tests.conformance.test_run import needs_numba
from tests.reports.common import record

CASE = case_named("onnx-cast:25/uint32/bool")
KNOWN, HIDDEN = 0x1100, 5
"""The numbers of failing inputs in the range that the tier quick samples, and in the other one."""
ABOUT_BOTH = ((0x12345000, 0x12346000), (0x7FFFF000, 0x80002000))


def judge_of(oracle: Any, tier: str) -> BackendJudge:
    settings = Settings(asked_for=frozenset({CASE.document}), tier=tier)
    return BackendJudge(Backend("planted", oracle), {}, settings)


def quick(oracle: Any) -> Judgement:
    return judge_of(oracle, "quick").judge(CASE)


def swept(oracle: Any) -> Judgement:
    """The judgement at the tier full, with a sweep of the inputs around the two ranges only."""
    judge, compare = judge_of(oracle, "full"), fastest_comparison()
    [one], [other] = (
        sweep(judge, [CASE], Dense(1 << 32), *ends, compare, lambda *_: None) for ends in ABOUT_BOTH
    )
    return completed(judge.judge(CASE), replace(joined(one, other), inputs=1 << 32))


Check = Callable[..., str]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """A function that compares judgements by the command, and returns what the command prints."""

    def store_of(folder: Path, judgement: Judgement) -> RunStore:
        store = create(str(folder), record(backends=(BackendRecord(name="planted", version="1"),)))
        return store.finish([("planted", CASE, judgement)], lambda: 1)

    def check(
        code: int,
        at_quick: Judgement,
        at_full: Judgement,
        *arguments: str,
        second: Judgement | None = None,
    ) -> str:
        def complete_run(request: RunRequest, folder: Path, jobs: int) -> RunStore:
            again = at_quick if second is None else second
            of_seed = {0: at_quick, 1: again}[request.seed]
            return store_of(folder, of_seed if request.tier == "quick" else at_full)

        monkeypatch.setattr(exact_counts, "_complete_run", complete_run)
        page, out = tmp_path / "page.md", tmp_path / str(len(list(tmp_path.iterdir())))
        command = ["--backend=planted", f"--out={out}", f"--page={page}", *arguments]
        found = CliRunner().invoke(exact_counts.app, command)
        assert found.exit_code == code, found.output
        assert found.output in page.read_text(encoding="utf-8") + "\n"
        return found.output

    return check


def test_a_sweep_that_finds_the_same(check: Check) -> None:
    output = check(0, quick(KnownRange()), swept(KnownRange()))
    assert "- Cases called exact: 1; swept: 1.\n" in output
    assert "- Findings: 1; the results of the sweeps change none.\n" in output
    assert "The second quick run has the same findings" in output
    assert "**Different**" not in output
    assert "| uint32/bool | 1 | integer-to-bool: 4,352 (1) | agrees |" in output
    assert KNOWN == 4352


def test_a_stretch_that_only_the_sweep_finds(check: Check) -> None:
    output = check(1, quick(HiddenRange()), swept(HiddenRange()))
    rule = f"- **Different**: {CASE}: integer-to-bool (required)"
    assert f"{rule}: wrong is {KNOWN} at quick, {KNOWN + HIDDEN} at full\n" in output
    assert f"{rule}: runs is 1 at quick, 2 at full\n" in output
    assert f"{rule}: digest is " in output
    # One stretch is evidence of a constant; two are not, with this number of inputs asked.
    assert "- **Different**: planted/zero is a finding at quick only\n" in output
    assert output.rstrip().endswith("| disagrees |")


def with_divergence(found: Judgement, **changes: Any) -> Judgement:
    """Change the only divergence of a judgement."""
    [divergence] = found.divergences
    return replace(found, problems=(replace(divergence, **changes),))


def test_answers_that_differ_on_the_same_inputs(check: Check) -> None:
    before = quick(KnownRange())
    runs = before.divergences[0].runs
    after = with_divergence(before, runs=replace(runs, checksum=runs.checksum + 1))
    output = check(1, before, replace(after, inputs=1 << 32))
    assert output.count("**Different**") == 1
    assert "digest is " in output


def test_a_rule_that_only_one_of_them_breaks(check: Check) -> None:
    before = quick(KnownRange())
    after = replace(with_divergence(before, level="recommended"), inputs=1 << 32)
    output = check(1, before, after)
    assert "integer-to-bool (required) is broken at quick only" in output
    assert "integer-to-bool (recommended) is broken at full only" in output


def test_a_sweep_that_did_not_ask_all_inputs(check: Check) -> None:
    output = check(1, quick(KnownRange()), replace(swept(KnownRange()), inputs=(1 << 32) - 1))
    assert f"{CASE}: the sweep asked 4,294,967,295 of 4,294,967,296 inputs" in output


def test_what_was_not_swept_is_listed(check: Check) -> None:
    output = check(0, quick(HiddenRange()), swept(HiddenRange()), "--pair=int32/bool")
    assert "- Cases called exact: 1; swept: 0.\n" in output
    assert output.rstrip().endswith("| not made |")


def test_another_seed_that_finds_something_else(check: Check) -> None:
    at_quick, at_full = quick(KnownRange()), swept(KnownRange())
    output = check(1, at_quick, at_full, second=with_divergence(at_quick, count=KNOWN - 1))
    assert "wrong is 4352 with seed 0, 4351 with seed 1\n" in output
    assert "The second quick run has the same findings" not in output
    output = check(1, at_quick, at_full, second=replace(at_quick, verdict="conforms", problems=()))
    assert "planted/zero is a finding with seed 0 only\n" in output


def test_no_case_is_exact(check: Check) -> None:
    right = quick(Right())
    output = check(0, right, right)
    assert "- Cases called exact: 0; swept: 0.\n" in output
    assert "|" not in output


@pytest.mark.nightly
@needs_numba
def test_a_sweep_of_all_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run one pair in worker processes: the tool reports only the hidden stretch."""
    pair = partial(Selection, source=CASE.source, target=CASE.target)
    monkeypatch.setattr(exact_counts, "Selection", pair)
    known, hidden = (
        CliRunner().invoke(
            exact_counts.app,
            [f"--backend={RUNNABLE}:{name}", "--document=onnx-cast:25", f"--out={tmp_path}"],
        )
        for name in ("KnownRange", "HiddenRange")
    )
    assert known.exit_code == 0, known.output
    assert "swept: 1." in known.output
    assert hidden.exit_code == 1, hidden.output
    assert f"wrong is {KNOWN} at quick, {KNOWN + HIDDEN} at full\n" in hidden.output
