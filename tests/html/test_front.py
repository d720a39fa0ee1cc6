"""Counts on the front page and the trend page, from runs with known verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reports.drawn_tensors import SHARES
from reports.findings.report import Report, read_report
from reports.html.front_page import RuleSummary, front_page
from reports.html.pages import ComparedBehavior, Point, TargetFamily, behaviors_by_family, trends
from reports.html.site import write_site
from reports.judgement import Judgement
from specs.cases import Case
from specs.formats import format_named
from specs.loader import documents
from tests.html.planted import STARTED, Plant, cases, planted_run
from tests.reports.common import divergence, steps

ONNX = [case.id for case in cases() if case.document == "onnx-cast"]
PYPTO = [case.id for case in cases() if case.document == "pypto-cast"]
NUMBERS = [case.id for case in cases() if format_named(case.target).is_numeric]


def judged(*found: Judgement) -> Plant:
    """Plant these judgements; all other cases conform."""
    known = {(each.backend, each.case): each for each in found}

    def plant(backend: str, case: Case) -> Judgement:
        return known.get((backend, case.id), Judgement(case.id, backend, "conforms", inputs=2))

    return plant


def broken(backend: str, name: str, *rules: str, **changes: Any) -> Judgement:
    """A judgement with one divergence per rule."""
    wrong = tuple(replace(divergence(steps(1), rule=rule), **changes) for rule in rules)
    return Judgement(name, backend, "violates", wrong, inputs=2, open_inputs=1)


def test_trend_counts_wrong_verdicts_and_their_change_between_runs(tmp_path: Path) -> None:
    kinds = ("deviates", "differs", "error", "crashed", "unsupported", "not-run", "open")
    last = [Judgement(case, "ort", kind) for case, kind in zip(ONNX, kinds, strict=False)]
    runs = [
        planted_run(tmp_path / "0", judged(broken("ort", ONNX[0], "a")), ["ort", "torch"]),
        planted_run(tmp_path / "1", judged(), ["ort"], 1, document="pypto-cast"),
        planted_run(tmp_path / "2", judged(), ["torch"], 2),
        planted_run(tmp_path / "3", judged(*last), ["ort", "torch"], 3),
        planted_run(tmp_path / "4", judged(), ["ort", "torch"], 4),
    ]
    ort, torch = trends(read_report(runs))
    assert (ort.backend, torch.backend) == ("ort", "torch")
    days = {
        trend.backend: [(started - STARTED).days for started, _ in trend.runs]
        for trend in (ort, torch)
    }
    assert days == {"ort": [0, 1, 3, 4], "torch": [0, 2, 3, 4]}
    assert {version for trend in (ort, torch) for _, version in trend.runs} == {"1.2"}
    conforming = len(ONNX) - len(kinds)
    assert ort.points["onnx-cast"] == [
        Point(Counter(violates=1, conforms=len(ONNX) - 1), 1, None),
        Point(Counter(), 0, None),
        Point(Counter(kinds) | Counter(conforms=conforming), 4, 3),
        Point(Counter(conforms=len(ONNX)), 0, -4),
    ]
    assert [point.change for point in torch.points["onnx-cast"]] == [None, 0, 0, 0]
    assert [point.change for point in ort.points["pypto-cast"]] == [None, 0, 0, 0]


def front_page_of(tmp_path: Path, *plants: Plant) -> dict[str, Any]:
    """The front page of one run per plant, a day apart."""
    return front_page(
        read_report(
            [
                planted_run(tmp_path / str(day), plant, ["ort", "torch"], day)
                for day, plant in enumerate(plants)
            ]
        )
    )


def test_broken_rules_are_sorted_by_level_then_by_number_of_cases(tmp_path: Path) -> None:
    plant = judged(
        broken("ort", ONNX[0], "few", "many"),
        broken("torch", ONNX[0], "many"),
        broken("ort", ONNX[1], "many"),
        broken("torch", ONNX[2], "some", level="recommended"),
        broken("torch", ONNX[3], "some", level="recommended"),
        broken("torch", PYPTO[0], "many"),
        broken("ort", ONNX[4], "many", clause="§ 2"),
    )
    assert front_page_of(tmp_path, plant)["broken"] == [
        RuleSummary("onnx-cast", "many", "§ 1", "required", Counter(ort=2, torch=1), ONNX[0]),
        RuleSummary("onnx-cast", "few", "§ 1", "required", Counter(ort=1), ONNX[0]),
        RuleSummary("onnx-cast", "many", "§ 2", "required", Counter(ort=1), ONNX[4]),
        RuleSummary("onnx-cast", "some", "§ 1", "recommended", Counter(torch=2), ONNX[2]),
        RuleSummary("pypto-cast", "many", "§ 1", "required", Counter(torch=1), PYPTO[0]),
    ]


def test_the_front_page_counts_cases_inputs_and_changes(tmp_path: Path) -> None:
    before = judged(broken("ort", ONNX[0], "a", "b"))
    now = judged(broken("torch", ONNX[0], "a"), broken("torch", PYPTO[0], "a"))
    page = front_page_of(tmp_path, judged(), before, now)
    every = len(ONNX) + len(PYPTO)
    assert (page["facts"]["cases"], page["facts"]["inputs"]) == (every, 2 * 2 * every)
    assert [(row["document"], row["cases"]) for row in page["rows"]] == [
        ("onnx-cast", len(ONNX)),
        ("pypto-cast", len(PYPTO)),
    ]
    assert page["previous"].started == STARTED + timedelta(days=1)
    assert page["change_counts"] == {"ort": Counter(mended=2), "torch": Counter(new=2)}
    assert [(each.kind, each.backend, each.case) for each in page["shown_changes"]] == [
        ("mended", "ort", ONNX[0]),
        ("mended", "ort", ONNX[0]),
        ("new", "torch", ONNX[0]),
        ("new", "torch", PYPTO[0]),
    ]
    assert page["all_changes"] == 4
    assert page["not_compared"] == 0
    assert page["facts"]["digests"] == {
        name: documents()[name].digest for name in ("onnx-cast", "pypto-cast")
    }


@pytest.mark.parametrize(("wrong", "more"), [(40, 0), (41, 1)])
def test_front_page_lists_forty_changes_and_counts_the_rest(
    tmp_path: Path, wrong: int, more: int
) -> None:
    plant = judged(*(broken("ort", name, "a") for name in NUMBERS[:wrong]))
    runs = [
        planted_run(tmp_path / "before", judged(), ["ort"]),
        planted_run(tmp_path / "now", plant, ["ort"], 1),
    ]
    write_site(runs, tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text()
    assert page.count("<b>ort</b> <code>a</code>") == 40
    assert ("<p>Not listed: 1 more. <a " in page) == bool(more)


def test_front_page_counts_verdicts_that_the_previous_run_lacks(tmp_path: Path) -> None:
    runs = [
        planted_run(tmp_path / "0", judged(), ["ort", "torch"]),
        planted_run(tmp_path / "1", judged(), ["ort"], 1, document="onnx-cast"),
        planted_run(tmp_path / "2", judged(), ["ort", "torch"], 2),
    ]
    page = front_page(read_report(runs))
    assert page["not_compared"] == 2 * len(PYPTO) + len(ONNX)
    assert page["setup_differences"] == []
    assert front_page(read_report(runs[:1]))["not_compared"] == 0


def test_what_one_of_two_runs_did_not_ask_has_not_changed(tmp_path: Path) -> None:
    wrong = broken("ort", ONNX[0], "a"), broken("torch", PYPTO[0], "a")
    runs = [
        planted_run(tmp_path / "before", judged(*wrong), ["torch"], document="onnx-cast"),
        planted_run(tmp_path / "now", judged(*wrong), ["ort", "torch"], 1),
        planted_run(tmp_path / "last", judged(), ["torch"], 2, document="onnx-cast"),
    ]
    for two in (runs[:2], runs[1:]):
        page = front_page(read_report(two))
        assert [(step["heading"], step["changes"]) for step in page["steps"]] == [
            (f"torch 1.2, since the previous run: nothing changed, {len(ONNX)} cases as before", [])
        ]
        assert all(not each.changes.total() for each in page["found"])
    assert front_page(read_report(runs[1:2]))["steps"] == []


def test_last_run_is_compared_with_the_previous_one_only(tmp_path: Path) -> None:
    runs = [
        planted_run(tmp_path / str(day), judged(), ["ort"], day, seed=seed)
        for day, seed in enumerate((1, 2, 2))
    ]
    assert front_page(read_report(runs))["setup_differences"] == []
    assert front_page(read_report(runs[:2]))["setup_differences"] == ["seed: 1 before, 2 now"]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return read_report([planted_run(tmp_path / "run", judged(), ["ort", "torch", "vendor:fast"])])


def test_behaviors_are_listed_by_family_with_those_of_most_pairs_first(report: Report) -> None:
    int16, int8 = "onnx-cast:25/float32/int16", "onnx-cast:25/float32/int8"
    odd = "pypto-cast:0.2/float32/int16/mode:CAST_ODD/satmode:on"
    half, to_bool = "onnx-cast:25/int8/float16", "onnx-cast:25/float32/bool"
    lines = {
        ("ort", to_bool): ("a: 100 % of 2 inputs",),
        ("ort", int8): ("b: 100 % of 2 inputs", "unexplained: c"),
        ("ort", int16): ("z", "b: 100 % of 3 inputs"),
        ("ort", odd): ("z",),
        ("ort", half): ("a",),
        ("torch", int8): ("a",),
    }
    to_int8, to_int16 = {"float32 → int8": int8}, {"float32 → int16": int16}
    assert behaviors_by_family(replace(report, behaviors=lines)) == [
        TargetFamily(
            "signed integers",
            [
                ComparedBehavior("b", {"ort": to_int16 | to_int8}),
                ComparedBehavior("a", {"torch": to_int8}),
                ComparedBehavior("z", {"ort": to_int16}),
            ],
            [ComparedBehavior("unexplained: c", {"ort": to_int8})],
        ),
        TargetFamily("bool", [ComparedBehavior("a", {"ort": {"float32 → bool": to_bool}})], []),
        TargetFamily(
            "wider floats", [ComparedBehavior("a", {"ort": {"int8 → float16": half}})], []
        ),
    ]


def test_what_backends_share_stands_in_one_row(report: Report) -> None:
    int8 = "onnx-cast:25/float32/int8"
    lines = {("ort", int8): ("b", "a"), ("torch", int8): ("a",)}
    [family] = behaviors_by_family(replace(report, behaviors=lines))
    pair = {"float32 → int8": int8}
    assert family.whole == [
        ComparedBehavior("a", {"ort": pair, "torch": pair}),
        ComparedBehavior("b", {"ort": pair}),
    ]


@pytest.mark.parametrize(("tier", "tensors"), [("quick", 8), ("full", 3200)])
def test_the_front_page_says_how_likely_drawn_tensors_meet_a_fault(
    tier: str, tensors: int, tmp_path: Path
) -> None:
    report = read_report([planted_run(tmp_path / "run", judged(), ["ort"], tier=tier)])
    assert front_page(report)["drawn"] is None
    cell = next(iter(report.cells.values()))
    checked = replace(report, checks=(replace(cell, check="invariances/float32/int8"),))
    drawn = front_page(checked)["drawn"]
    assert (drawn["tensors"], len(drawn["rows"])) == (tensors, len(SHARES))
