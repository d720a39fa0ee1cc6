"""What a policy makes of a run: each reason to fail, and each to let pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest

from reports.diff.judgement import Judgement
from reports.findings.report import read_report
from reports.gate.outputs import KINDS, gate_junit, gate_summary
from reports.gate.policy_verdict import Judged
from specs.cases import Case
from tests.reports.gated import (
    CASE,
    CASES,
    Plant,
    evidence,
    gated_run,
    only,
    policy,
    verdict_of,
    wrong,
)


def judged(folder: Path, plant: Plant = lambda case: None, **by: Any) -> Judged:
    return evidence(gated_run(folder / "run", plant), policy(**by)).judged()


def kinds(found: Judged) -> list[str]:
    return [failure.kind for failure in found.failures]


def accepted(**changes: Any) -> dict[str, Any]:
    entry = {"cases": [CASE], "rule": "rounds", "reason": "ticket 7", "expires": "2026-01-02"}
    return {"accepted": [entry | changes]}


def test_all_right_passes(tmp_path: Path) -> None:
    found = judged(tmp_path, **{"minimum-coverage": {"**": 100}, "time-limit": 60})
    assert found.passes
    assert found.ran
    assert len(found.cells) == len(CASES)


FAILS: dict[str, tuple[Judgement, str]] = {
    "divergence": (wrong(CASE), "rounds (§ 1, required)"),
    "error": (verdict_of(CASE, "error"), "error"),
    "crashed": (verdict_of(CASE, "crashed"), "crashed"),
    "differs": (verdict_of(CASE, "differs"), "differs"),
    "unsupported": (verdict_of(CASE, "unsupported"), "may not be unsupported"),
    "not-run": (verdict_of(CASE, "not-run"), "was not run"),
    "hollow": (Judgement(CASE, "vendor", "conforms"), "conforms, with nothing asked"),
}


@pytest.mark.parametrize("kind", FAILS)
def test_each_verdict_that_is_not_good_fails(kind: str, tmp_path: Path) -> None:
    judgement, told = FAILS[kind]
    found = judged(tmp_path, only(judgement))
    [failure] = found.failures
    assert (failure.kind, failure.told, failure.cases) == (kind, told, [CASE])
    assert kind in KINDS


def test_a_verdict_at_odds_with_its_answers_fails(tmp_path: Path) -> None:
    lie = Judgement(**{**vars(wrong(CASE)), "verdict": "conforms"})
    assert kinds(judged(tmp_path, only(lie))) == ["divergence", "hollow"]


def test_a_recommended_rule_counts_where_its_level_is_asked(tmp_path: Path) -> None:
    plant = only(wrong(CASE, level="recommended"))
    assert kinds(judged(tmp_path / "1", plant)) == ["divergence"]
    found = judged(tmp_path / "2", plant, levels=["required"])
    assert found.passes
    assert [each.standing for each in found.standings] == ["not-asked"]


def test_what_may_be_unsupported_is_a_matter_of_patterns(tmp_path: Path) -> None:
    plant = only(verdict_of(CASE, "unsupported"))
    may = {"may-be-unsupported": ["pypto-cast:*/float32/float16/**"]}
    assert judged(tmp_path / "1", plant, **may).passes
    may = {"may-be-unsupported": ["pypto-cast:*/float16/**"]}
    assert kinds(judged(tmp_path / "2", plant, **may)) == ["unsupported"]
    # Only an opt-out may be one.
    crash = only(verdict_of(CASE, "crashed"))
    assert kinds(judged(tmp_path / "3", crash, **{"may-be-unsupported": ["**"]})) == ["crashed"]


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        ({}, "accepted"),
        ({"cases": ["pypto-cast:0.2/float32/**"]}, "accepted"),
        ({"expires": "2026-01-01"}, "expired"),
        ({"rule": "other"}, "fails"),
        ({"cases": ["pypto-cast:0.2/float16/**"]}, "fails"),
        ({"region": "0" * 16}, "fails"),
        ({"rule": None, "verdict": "error"}, "fails"),
    ],
)
def test_a_divergence_is_accepted_by_rule_case_and_day(
    changes: dict[str, Any], standing: str, tmp_path: Path
) -> None:
    found = judged(tmp_path, only(wrong(CASE)), **accepted(**changes))
    assert [each.standing for each in found.standings] == [standing]
    assert found.passes == (standing == "accepted")
    if standing == "expired":
        [failure] = found.failures
        assert failure.kind == "expired"
        assert failure.told.endswith(": was accepted until 2026-01-01 (ticket 7)")


def test_a_region_that_is_accepted_is_that_region_alone(tmp_path: Path) -> None:
    first = judged(tmp_path / "1", only(wrong(CASE)))
    broken = first.standings[0].broken
    assert broken is not None
    by = accepted(region=broken.digest)
    assert judged(tmp_path / "2", only(wrong(CASE)), **by).passes
    assert kinds(judged(tmp_path / "3", only(wrong(CASE, rows=2)), **by)) == ["divergence"]


def test_an_error_can_be_accepted_too(tmp_path: Path) -> None:
    by = accepted(rule=None, verdict="error")
    assert judged(tmp_path / "1", only(verdict_of(CASE, "error")), **by).passes
    assert kinds(judged(tmp_path / "2", only(verdict_of(CASE, "crashed")), **by)) == ["crashed"]


BEFORE_AND_NOW: list[tuple[Judgement | None, Judgement | None, list[str]]] = [
    (None, None, []),
    (None, wrong(CASE), ["divergence"]),
    (wrong(CASE), wrong(CASE), []),
    (wrong(CASE), None, []),
    (wrong(CASE, rows=2), wrong(CASE), ["divergence"]),
    (wrong(CASE, rule="other"), wrong(CASE), ["divergence"]),
    (None, verdict_of(CASE, "unsupported"), ["unsupported"]),
    (verdict_of(CASE, "unsupported"), verdict_of(CASE, "unsupported"), []),
    (verdict_of(CASE, "crashed"), verdict_of(CASE, "crashed"), []),
    (verdict_of(CASE, "error"), verdict_of(CASE, "crashed"), ["crashed"]),
    (verdict_of(CASE, "unsupported"), wrong(CASE), ["divergence"]),
    (verdict_of(CASE, "not-run"), verdict_of(CASE, "not-run"), ["not-run"]),
]


@pytest.mark.parametrize(("before", "now", "expected"), BEFORE_AND_NOW)
def test_against_a_baseline_only_what_is_new_fails(
    before: Judgement | None, now: Judgement | None, expected: list[str], tmp_path: Path
) -> None:
    old = gated_run(tmp_path / "old", only(before) if before else lambda case: None)
    new = gated_run(tmp_path / "new", only(now) if now else lambda case: None)
    by = policy(**{"only-new": True, "may-be-unsupported": ["**"]})
    assert kinds(evidence(new, by, old).judged()) == expected


def test_a_case_that_the_baseline_has_not_is_judged_by_the_rules(tmp_path: Path) -> None:
    old = gated_run(tmp_path / "old", cases=[case for case in CASES if case.id != CASE])
    new = gated_run(tmp_path / "new", only(wrong(CASE)))
    found = evidence(new, policy(**{"only-new": True}), old).judged()
    assert kinds(found) == ["divergence"]


def test_coverage_is_counted_exactly(tmp_path: Path) -> None:
    few = [case.id for case in CASES[: len(CASES) // 3]]
    assert len(CASES) == 3 * len(few)

    def plant(case: Case) -> Judgement | None:
        return verdict_of(case.id, "unsupported") if case.id in few else None

    may: dict[str, Any] = {"may-be-unsupported": ["**"]}
    assert judged(tmp_path / "1", plant, **may, **{"minimum-coverage": {"**": 66}}).passes
    found = judged(tmp_path / "2", plant, **may, **{"minimum-coverage": {"**": 67}})
    [failure] = found.failures
    assert failure.kind == "coverage"
    assert failure.told == "116 of 174 cases of ** are answered; 67% are wanted"


def test_the_time_limit_counts_whole_seconds(tmp_path: Path) -> None:
    assert judged(tmp_path / "1", **{"time-limit": 60}).passes
    assert kinds(judged(tmp_path / "2", **{"time-limit": 59})) == ["time-limit"]


def test_a_case_that_is_missing_fails(tmp_path: Path) -> None:
    store = gated_run(tmp_path / "run", cases=CASES[1:])
    [failure] = evidence(store).judged().failures
    assert (failure.kind, failure.cases) == ("missing", [CASES[0].id])


def test_junit_and_summary_follow_the_policy(tmp_path: Path) -> None:
    plant = only(wrong(CASE))
    found = judged(tmp_path, plant)
    report = read_report([str(tmp_path / "run")])
    first, second = Tree.fromstring(gate_junit(report, policy(), found))
    assert (first.get("tests"), first.get("failures")) == (str(len(KINDS)), "1")
    assert (second.get("tests"), second.get("failures")) == (str(len(CASES)), "1")
    told = second.find(f"testcase[@name='{CASE.split('/', 1)[1]}']/failure")
    assert told is not None
    assert told.get("message") == "divergence: rounds (§ 1, required)"
    assert gate_summary(report, policy(), found).startswith("# Gate: FAIL\n")
    by = policy(**accepted())
    passed = evidence(gated_run(tmp_path / "again", plant), by).judged()
    first, second = Tree.fromstring(gate_junit(report, by, passed))
    assert (first.get("failures"), second.get("failures")) == ("0", "0")
    page = gate_summary(report, by, passed)
    assert page.startswith("# Gate: pass\n")
    assert "- rounds: accepted until 2026-01-02: ticket 7: 1 cases" in page
