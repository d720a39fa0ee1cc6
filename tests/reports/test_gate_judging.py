"""Policies applied to runs: every reason to fail, and every reason to let a divergence pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import numpy as np
import pytest

from reports.drawn_tensors import FEW_SHAPES
from reports.findings.judged_cells import cell_of
from reports.findings.report import read_report
from reports.gate.certificate import certificate_body
from reports.gate.fault_comparison import broken_rules
from reports.gate.left_out import left_out, policy_words
from reports.gate.outputs import (
    REQUIREMENTS,
    answered_line,
    defects,
    failure_line,
    gate_junit,
    gate_summary,
)
from reports.gate.policy import policy_named
from reports.gate.policy_verdict import GateFailure, PolicyVerdict
from reports.judgement import DatumArray, InputsAndAnswers, Judgement, Verdict
from reports.problems import ChangesWithShape, Died, Refused, Unoffered
from specs.cases import Case
from specs.selection import case_named
from tests.reports.gated import (
    CASE,
    CASES,
    Plant,
    evidence,
    gated_run,
    only,
    policy,
    violated,
    whole_case,
)


def apply_to_run(folder: Path, plant: Plant = lambda case: None, **by: Any) -> PolicyVerdict:
    return evidence(gated_run(folder / "run", plant), policy(**by)).judged()


def kinds(found: PolicyVerdict) -> list[str]:
    return [failure.kind for failure in found.failures]


def accepted(**changes: Any) -> dict[str, Any]:
    """A policy's `accepted`, with one entry."""
    entry = {"cases": [CASE], "rule": "rounds", "reason": "ticket 7", "expires": "2026-01-02"}
    return {"accepted": [entry | changes]}


def test_a_conforming_run_passes(tmp_path: Path) -> None:
    found = apply_to_run(tmp_path, **{"minimum-coverage": {"**": 100}, "time-limit": 60})
    assert found.passes
    assert found.ran
    assert len(found.cells) == len(CASES)


FAILS: dict[str, tuple[Judgement, str]] = {
    "divergence": (violated(CASE), "rounds (§ 1, required)"),
    "error": (whole_case(CASE, "error"), "error: error it is"),
    "crashed": (whole_case(CASE, "crashed"), "crashed: crashed it is"),
    "differs": (whole_case(CASE, "differs"), "differs: differs it is"),
    "unsupported": (whole_case(CASE, "unsupported"), "may not be unsupported"),
    "not-run": (whole_case(CASE, "not-run"), "was not run"),
    "hollow": (Judgement(CASE, "vendor", "conforms"), "conforms, with nothing asked"),
}


@pytest.mark.parametrize("kind", FAILS)
def test_each_bad_verdict_fails(kind: str, tmp_path: Path) -> None:
    judgement, reason = FAILS[kind]
    found = apply_to_run(tmp_path, only(judgement))
    [failure] = found.failures
    assert (failure.kind, failure.reason, failure.cases) == (kind, reason, [CASE])
    assert kind in REQUIREMENTS


@pytest.mark.parametrize("verdict", ["open", "conforms"])
def test_a_run_in_which_nothing_is_judged_fails(verdict: Verdict, tmp_path: Path) -> None:
    inputs = 256 if verdict == "open" else 0

    def plant(case: str) -> Judgement:
        return Judgement(case, "vendor", verdict, inputs=inputs, open_inputs=inputs)

    found = apply_to_run(tmp_path, plant)
    assert "nothing-judged" in kinds(found)
    assert "nothing-judged" in REQUIREMENTS


def test_what_a_gate_leaves_out_is_said(tmp_path: Path) -> None:
    run = gated_run(tmp_path / "run", only(violated(CASE)))
    ours = policy(levels=["recommended"])
    lines = [*left_out(ours, evidence(run, ours).judged())]
    assert lines[0].startswith("not asked: chains of casts")
    assert lines[1:] == [
        "not judged: required rules",
        f"not judged: 1 case with wrong answers by such rules, for instance {CASE}",
    ]
    chosen = policy(cases=[{"match": [CASE], "levels": ["recommended"]}, {"match": ["**"]}])
    assert f"not judged: required rules of {CASE}" in left_out(
        chosen, evidence(run, chosen).judged()
    )
    body = certificate_body(evidence(run, ours), evidence(run, ours).judged(), {})
    assert body["left-out"] == lines


def lines_of(found: PolicyVerdict, **by: Any) -> list[str]:
    """Return the lines about what a gate leaves out, but for those about chains."""
    return [*left_out(policy(**by), found)][1:]


def test_a_gate_says_how_many_cases_it_cannot_judge(tmp_path: Path) -> None:
    found = apply_to_run(tmp_path, only(whole_case(CASE, "open")))
    [line] = lines_of(found)
    assert line == (
        f"not judged: 1 of {len(CASES)} cases, in which the document leaves every answer open"
    )
    assert lines_of(apply_to_run(tmp_path / "other")) == []


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ({"cases": [{"match": [CASE]}]}, "cases of the documents that no entry"),
        ({"seed": 7}, "inputs and tensors that the backend cannot know"),
        ({"max-examples": 1}, "the policy draws 1 random input for each case"),
    ],
    ids=["cases", "seed", "max-examples"],
)
def test_a_gate_says_what_its_policy_leaves_out(
    by: dict[str, Any], words: str, tmp_path: Path
) -> None:
    [line] = lines_of(apply_to_run(tmp_path), **by)
    assert line.startswith("not asked: ")
    assert words in line


def test_a_gate_says_no_chance_of_draws_where_each_shape_is_compiled(tmp_path: Path) -> None:
    found = apply_to_run(tmp_path)
    limits = (Unoffered(FEW_SHAPES),)
    few = replace(found.cells[0], check="invariances/float8e5m2/bool", problems=limits)
    [line] = lines_of(replace(found, checks=(few,)))
    assert line == (
        f"not judged: parts of 1 case, for instance invariances/float8e5m2/bool: {FEW_SHAPES}"
    )


def test_the_fewest_draws_of_any_case_are_said(tmp_path: Path) -> None:
    judged = apply_to_run(tmp_path)
    held = replace(judged.cells[0], check="invariances/float8e5m2/bool")
    cases = [{"match": [CASE], "tier": "full"}, {"match": ["**"]}]
    lines = lines_of(replace(judged, checks=(held,)), cases=cases)
    assert any("the 160 drawn" in line for line in lines)


@pytest.mark.parametrize(("tier", "draws"), [("quick", "160"), ("full", "3,200")])
def test_a_gate_says_how_likely_its_tensors_meet_a_fault(
    tier: str, draws: str, tmp_path: Path
) -> None:
    ours = policy(tier=tier)
    judged = evidence(gated_run(tmp_path / "run"), ours).judged()
    assert not any("tensors" in line for line in left_out(ours, judged))
    held = replace(judged.cells[0], check="invariances/float8e5m2/bool")
    _, line, *_ = left_out(ours, replace(judged, checks=(held,)))
    assert line.startswith(f"not asked: most tensors; the {draws} drawn for a pair meet")


def test_a_policy_that_looks_like_a_shipped_one_is_shown_as_another() -> None:
    assert policy_words(policy_named("strict")) == "strict (as castigate ships)"
    assert policy_words(policy(policy="str1ct")) == "str1ct (not one that castigate ships)"


def test_a_verdict_says_how_much_it_is_about(tmp_path: Path) -> None:
    answered = apply_to_run(tmp_path, only(whole_case(CASE, "unsupported"))).answered
    assert answered == {
        "cases": len(CASES),
        "answered": len(CASES) - 1,
        "unsupported": 1,
        "accepted": 0,
        "known": 0,
        "inputs": 256 * (len(CASES) - 1),
        "checks": 0,
    }


def test_an_acceptance_that_nothing_needs_is_named(tmp_path: Path) -> None:
    needed = {"cases": [CASE], "rule": "rounds", "reason": "known", "expires": "2027-01-31"}
    idle = {**needed, "rule": "float-to-float-odd"}
    found = apply_to_run(tmp_path, only(violated(CASE)), accepted=[needed, idle])
    assert (found.passes, [entry.rule for entry in found.unused]) == (True, [idle["rule"]])
    assert found.answered["accepted"] == 1


def test_a_verdict_that_contradicts_its_divergences_fails(tmp_path: Path) -> None:
    contradiction = replace(violated(CASE), verdict="conforms")
    assert kinds(apply_to_run(tmp_path, only(contradiction))) == ["divergence", "hollow"]


def test_a_recommended_rule_counts_if_the_policy_names_its_level(tmp_path: Path) -> None:
    plant = only(violated(CASE, level="recommended"))
    assert kinds(apply_to_run(tmp_path / "1", plant)) == ["divergence"]
    found = apply_to_run(tmp_path / "2", plant, levels=["required"])
    assert found.passes
    assert [each.status for each in found.divergences] == ["not-asked"]
    assert found.passed_over == (CASE,)


def test_a_rule_after_one_that_is_not_asked_counts(tmp_path: Path) -> None:
    [recommended], [required] = (
        violated(CASE, rule, level).problems
        for rule, level in (("odd", "recommended"), ("rounds", "required"))
    )
    both = Judgement(CASE, "vendor", "violates", (recommended, required), inputs=256)
    found = apply_to_run(tmp_path, only(both), levels=["required"])
    assert [(each.rule, each.status) for each in found.divergences] == [
        ("odd", "not-asked"),
        ("rounds", "fails"),
    ]


def test_a_check_breaks_the_rules_that_its_problems_name() -> None:
    problems = (
        ChangesWithShape("whole", "§ 2", "required", (5,)),
        Refused("ValueError", "no rank 0"),
        Died("on 0x0000"),
    )
    judgement = Judgement(CASE, "vendor", "violates", problems, check="invariances/float32/float16")
    checked = replace(cell_of(case_named(CASE), judgement, ()), broken=())
    assert [each.key for each in broken_rules(checked)] == [("whole", "§ 2", "required")]


def test_patterns_allow_unsupported_cases(tmp_path: Path) -> None:
    plant = only(whole_case(CASE, "unsupported"))
    may = {"may-be-unsupported": ["pypto-cast:*/float32/float16/**"]}
    assert apply_to_run(tmp_path / "1", plant, **may).passes
    may = {"may-be-unsupported": ["pypto-cast:*/float16/**"]}
    assert kinds(apply_to_run(tmp_path / "2", plant, **may)) == ["unsupported"]
    # The patterns do not allow crashes.
    crash = only(whole_case(CASE, "crashed"))
    assert kinds(apply_to_run(tmp_path / "3", crash, **{"may-be-unsupported": ["**"]})) == [
        "crashed"
    ]


@pytest.mark.parametrize(
    ("changes", "status"),
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
def test_a_divergence_is_accepted_by_rule_case_region_and_date(
    changes: dict[str, Any], status: str, tmp_path: Path
) -> None:
    found = apply_to_run(tmp_path, only(violated(CASE)), **accepted(**changes))
    assert [each.status for each in found.divergences] == [status]
    assert found.passes == (status == "accepted")
    if status == "expired":
        [failure] = found.failures
        assert failure.kind == "expired"
        assert failure.reason.endswith(": was accepted until 2026-01-01 (ticket 7)")


def test_an_accepted_region_covers_no_other_region(tmp_path: Path) -> None:
    first = apply_to_run(tmp_path / "1", only(violated(CASE)))
    broken = first.divergences[0].broken
    assert broken is not None
    by = accepted(region=broken.digest)
    assert apply_to_run(tmp_path / "2", only(violated(CASE)), **by).passes
    assert kinds(apply_to_run(tmp_path / "3", only(violated(CASE, rows=2)), **by)) == ["divergence"]


def test_an_error_can_be_accepted(tmp_path: Path) -> None:
    by = accepted(rule=None, verdict="error")
    assert apply_to_run(tmp_path / "1", only(whole_case(CASE, "error")), **by).passes
    assert kinds(apply_to_run(tmp_path / "2", only(whole_case(CASE, "crashed")), **by)) == [
        "crashed"
    ]


def refused(
    line: str = "no rank 0", where: str = "", error: str = "ValueError", **more: Any
) -> Judgement:
    """An error that the backend raises."""
    return Judgement(CASE, "vendor", "error", (Refused(error, line, where=where),), **more)


RANK_0 = refused(where="shape ()")
BEFORE_AND_NOW: list[tuple[Judgement | None, Judgement | None, list[str]]] = [
    (None, None, []),
    (None, violated(CASE), ["divergence"]),
    (violated(CASE), violated(CASE), []),
    (violated(CASE), None, []),
    (violated(CASE, rows=2), violated(CASE), ["divergence"]),
    (violated(CASE, rule="other"), violated(CASE), ["divergence"]),
    (None, whole_case(CASE, "unsupported"), ["unsupported"]),
    (whole_case(CASE, "unsupported"), whole_case(CASE, "unsupported"), []),
    (whole_case(CASE, "crashed"), whole_case(CASE, "crashed"), []),
    (whole_case(CASE, "error"), whole_case(CASE, "crashed"), ["crashed"]),
    (whole_case(CASE, "unsupported"), violated(CASE), ["divergence"]),
    (whole_case(CASE, "not-run"), whole_case(CASE, "not-run"), ["not-run"]),
    (RANK_0, RANK_0, []),
    (RANK_0, refused(), ["error"]),
    (RANK_0, refused("no kernel", "shape ()"), ["error"]),
    (RANK_0, refused(where="shape ()", error="MemoryError"), ["error"]),
    (RANK_0, replace(RANK_0, further=(Refused("ValueError", "", where="shape (2,)"),)), ["error"]),
    (refused("at 0x7f5500001000"), refused("at 0x7f5500002000"), []),
]


@pytest.mark.parametrize(("before", "now", "expected"), BEFORE_AND_NOW)
def test_only_new_divergences_fail_against_a_baseline(
    before: Judgement | None, now: Judgement | None, expected: list[str], tmp_path: Path
) -> None:
    old = gated_run(tmp_path / "old", only(before) if before else lambda case: None)
    new = gated_run(tmp_path / "new", only(now) if now else lambda case: None)
    by = policy(**{"only-new": True, "may-be-unsupported": ["**"]})
    assert kinds(evidence(new, by, old).judged()) == expected


def test_a_case_that_the_baseline_lacks_is_judged_without_it(tmp_path: Path) -> None:
    old = gated_run(tmp_path / "old", cases=[case for case in CASES if case.id != CASE])
    new = gated_run(tmp_path / "new", only(violated(CASE)))
    found = evidence(new, policy(**{"only-new": True}), old).judged()
    assert kinds(found) == ["divergence"]


def test_coverage_is_not_rounded(tmp_path: Path) -> None:
    unsupported = [case.id for case in CASES[: len(CASES) // 3]]
    assert len(CASES) == 3 * len(unsupported)

    def plant(case: Case) -> Judgement | None:
        return whole_case(case.id, "unsupported") if case.id in unsupported else None

    may: dict[str, Any] = {"may-be-unsupported": ["**"]}
    assert apply_to_run(tmp_path / "1", plant, **may, **{"minimum-coverage": {"**": 66}}).passes
    found = apply_to_run(tmp_path / "2", plant, **may, **{"minimum-coverage": {"**": 67}})
    [failure] = found.failures
    assert failure.kind == "coverage"
    assert failure.reason == "116 of 174 cases of ** are answered; 67% are wanted"


def test_the_coverage_of_chosen_cases_counts_those_that_an_entry_is_the_first_to_match(
    tmp_path: Path,
) -> None:
    chosen = [{"match": [pattern], "minimum-coverage": 100} for pattern in (CASE, "**")]
    plant = only(whole_case(CASE, "unsupported"))
    found = apply_to_run(tmp_path, plant, cases=chosen, **{"may-be-unsupported": ["**"]})
    [failure] = found.failures
    assert failure.kind == "coverage"
    assert failure.reason == f"0 of 1 cases of {CASE} are answered; 100% are wanted"


def test_time_limit_counts_whole_seconds(tmp_path: Path) -> None:
    assert apply_to_run(tmp_path / "1", **{"time-limit": 60}).passes
    assert kinds(apply_to_run(tmp_path / "2", **{"time-limit": 59})) == ["time-limit"]


def test_a_missing_case_fails(tmp_path: Path) -> None:
    store = gated_run(tmp_path / "run", cases=CASES[1:])
    [failure] = evidence(store).judged().failures
    assert (failure.kind, failure.cases) == ("missing", [CASES[0].id])


def test_junit_and_summary_follow_the_policy(tmp_path: Path) -> None:
    plant = only(violated(CASE))
    found = apply_to_run(tmp_path, plant)
    report = read_report([str(tmp_path / "run")])
    first, second = Tree.fromstring(gate_junit(report, policy(), found))
    assert (first.get("tests"), first.get("failures")) == (str(len(REQUIREMENTS)), "1")
    assert (second.get("tests"), second.get("failures")) == (str(len(CASES)), "1")
    failure = second.find(f"testcase[@name='{CASE.split('/', 1)[1]}']/failure")
    assert failure is not None
    assert failure.get("message") == "divergence: rounds (§ 1, required)"
    assert gate_summary(report, policy(), found).startswith("# Gate: FAIL\n")
    by = policy(**accepted())
    passed = evidence(gated_run(tmp_path / "again", plant), by).judged()
    first, second = Tree.fromstring(gate_junit(report, by, passed))
    assert (first.get("failures"), second.get("failures")) == ("0", "0")
    page = gate_summary(report, by, passed)
    assert page.startswith("# Gate: pass\n")
    assert "- rounds: accepted until 2026-01-02: ticket 7: 1 case\n" in page


def test_a_defect_is_two_lines_and_any_other_reason_one(tmp_path: Path) -> None:
    store = gated_run(tmp_path / "run", only(violated(CASE)))
    failed = evidence(store).judged()
    [finding] = read_report([str(tmp_path / "run")]).findings["vendor"]
    late = GateFailure("time-limit", "", "the run took 3 s; 2 s are allowed")
    found = [*defects([finding], [*failed.failures, late])]
    assert [len(each) for each in found] == [2, 1]
    (first, second), [other] = found
    assert first.startswith(f"{CASE}: 0x")
    assert " gives " in first
    assert second.startswith(f"wrong value: {finding.says} (1 case, ")
    assert other == "time-limit: the run took 3 s; 2 s are allowed"
    # A finding whose cases the policy does not hold against the backend is no defect.
    assert [*defects([finding], [late])] == [("time-limit: the run took 3 s; 2 s are allowed",)]


def test_what_a_backend_declines_of_an_answered_case_is_said(tmp_path: Path) -> None:
    declined = Unoffered("it does not say", "not-copied is not judged")
    judgement = Judgement(CASE, "vendor", "conforms", (declined,), inputs=256)
    store = gated_run(tmp_path / "run", only(judgement))
    found = evidence(store).judged()
    said = "not-copied is not judged: it does not say"
    assert (found.passes, found.unjudged) == (True, {CASE: said})
    assert "1 not wholly judged" in answered_line(found.answered)
    body = certificate_body(evidence(store), found, {})
    assert (body["unjudged"], body["answered"]["unjudged"]) == ({CASE: said}, 1)
    summary = gate_summary(read_report([str(tmp_path / "run")]), policy(), found)
    assert f"## Not judged\n\n- {said}: 1 case\n" in summary


def test_an_accepted_error_says_that_the_other_inputs_were_not_judged(tmp_path: Path) -> None:
    error = Refused("ValueError", "no NaN", "on 0x7f81")
    entry = accepted(rule=None, verdict="error")
    plant = only(Judgement(CASE, "vendor", "error", (error,)))
    found = apply_to_run(tmp_path, plant, **entry)
    assert found.passes
    assert found.unjudged == {CASE: "no answer: error: on 0x7f81: ValueError: no NaN"}


def test_an_accepted_error_of_other_tensors_than_one_row_leaves_nothing_unjudged(
    tmp_path: Path,
) -> None:
    bits = np.array([0x3F800000], np.uint32)
    answered = InputsAndAnswers(
        DatumArray("float32", bits), DatumArray("float16", np.array([0x3C00], np.uint16))
    )
    plant = only(refused(where="shape ()", answered=answered))
    found = apply_to_run(tmp_path, plant, **accepted(rule=None, verdict="error"))
    assert [each.status for each in found.divergences] == ["accepted"]
    assert found.unjudged == {}


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (GateFailure("time-limit", "", "too long"), "time-limit: too long"),
        (GateFailure("missing", "onnx-cast", "not there"), "missing: onnx-cast: not there"),
        (GateFailure("error", "a", "no", list("1234")), "error: a: no: 1, 2, 3 and 1 more"),
    ],
)
def test_a_failure_is_told_with_its_document_if_it_is_about_one(
    failure: GateFailure, line: str
) -> None:
    assert failure_line(failure) == line
