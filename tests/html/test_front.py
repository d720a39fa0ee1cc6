"""What the front page and the trend count, from runs in which it is known what is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reports.diff.judgement import Judgement
from reports.findings.report import Report, read_report
from reports.html.behaviors import PairBehaviours, Shared, pair_behaviours
from reports.html.front_page import BrokenRule, front
from reports.html.site import write_site
from reports.html.trend import Point, trends
from specs.cases import Case
from specs.formats import format_named
from specs.loader import documents
from tests.html.planted import STARTED, Plant, cases, planted_run
from tests.reports.common import divergence, steps

ONNX = [case.id for case in cases() if case.document == "onnx-cast"]
PYPTO = [case.id for case in cases() if case.document == "pypto-cast"]
NUMBERS = [case.id for case in cases() if format_named(case.target).is_numeric]


def judged(*found: Judgement) -> Plant:
    """These judgements; all else conforms."""
    known = {(each.backend, each.case): each for each in found}

    def plant(backend: str, case: Case) -> Judgement:
        return known.get((backend, case.id), Judgement(case.id, backend, "conforms", inputs=2))

    return plant


def broken(backend: str, name: str, *rules: str, **changes: Any) -> Judgement:
    wrong = tuple(replace(divergence(steps(1), rule=rule), **changes) for rule in rules)
    return Judgement(name, backend, "violates", inputs=2, open_inputs=1, divergences=wrong)


def test_a_trend_counts_what_is_not_right_and_how_it_rose(tmp_path: Path) -> None:
    kinds = ("deviates", "differs", "error", "crashed", "unsupported", "not-run", "open")
    last = [Judgement(ONNX[place], "ort", kind) for place, kind in enumerate(kinds)]
    runs = [
        planted_run(tmp_path / "0", judged(broken("ort", ONNX[0], "a")), ["ort", "torch"]),
        planted_run(tmp_path / "1", judged(), ["ort"], 1, document="pypto-cast"),
        planted_run(tmp_path / "2", judged(), ["torch"], 2),
        planted_run(tmp_path / "3", judged(*last), ["ort", "torch"], 3),
        planted_run(tmp_path / "4", judged(), ["ort", "torch"], 4),
    ]
    ort, torch = trends(read_report(runs))
    assert (ort.backend, torch.backend) == ("ort", "torch")
    days = {trend.backend: [(at - STARTED).days for at, _ in trend.runs] for trend in (ort, torch)}
    assert days == {"ort": [0, 1, 3, 4], "torch": [0, 2, 3, 4]}
    assert {version for trend in (ort, torch) for _, version in trend.runs} == {"1.2"}
    right = len(ONNX) - len(kinds)
    assert ort.rows["onnx-cast"] == [
        Point(Counter(violates=1, conforms=len(ONNX) - 1), 1, None),
        Point(Counter(), 0, None),
        Point(Counter(kinds) | Counter(conforms=right), 4, 3),
        Point(Counter(conforms=len(ONNX)), 0, -4),
    ]
    assert [point.rises for point in torch.rows["onnx-cast"]] == [None, 0, 0, 0]
    assert [point.rises for point in ort.rows["pypto-cast"]] == [None, 0, 0, 0]


def front_of(tmp_path: Path, *plants: Plant) -> dict[str, Any]:
    """The front page's words of a run a day."""
    return front(
        read_report(
            [
                planted_run(tmp_path / str(day), plant, ["ort", "torch"], day)
                for day, plant in enumerate(plants)
            ]
        )
    )


def test_broken_rules_are_told_the_required_and_the_most_broken_first(tmp_path: Path) -> None:
    plant = judged(
        broken("ort", ONNX[0], "few", "many"),
        broken("torch", ONNX[0], "many"),
        broken("ort", ONNX[1], "many"),
        broken("torch", ONNX[2], "some", level="recommended"),
        broken("torch", ONNX[3], "some", level="recommended"),
        broken("torch", PYPTO[0], "many"),
        broken("ort", ONNX[4], "many", clause="§ 2"),
    )
    assert front_of(tmp_path, plant)["broken"] == [
        BrokenRule("onnx-cast", "many", "§ 1", "required", Counter(ort=2, torch=1), ONNX[0]),
        BrokenRule("onnx-cast", "few", "§ 1", "required", Counter(ort=1), ONNX[0]),
        BrokenRule("onnx-cast", "many", "§ 2", "required", Counter(ort=1), ONNX[4]),
        BrokenRule("onnx-cast", "some", "§ 1", "recommended", Counter(torch=2), ONNX[2]),
        BrokenRule("pypto-cast", "many", "§ 1", "required", Counter(torch=1), PYPTO[0]),
    ]


def test_the_front_page_counts_cases_inputs_and_changes(tmp_path: Path) -> None:
    before = judged(broken("ort", ONNX[0], "a", "b"))
    now = judged(broken("torch", ONNX[0], "a"), broken("torch", PYPTO[0], "a"))
    told = front_of(tmp_path, judged(), before, now)
    every = len(ONNX) + len(PYPTO)
    assert (told["facts"]["cases"], told["facts"]["inputs"]) == (every, 2 * 2 * every)
    assert [(row["document"], row["cases"]) for row in told["rows"]] == [
        ("onnx-cast", len(ONNX)),
        ("pypto-cast", len(PYPTO)),
    ]
    assert told["previous"].started == STARTED + timedelta(days=1)
    assert told["changed"] == {"ort": Counter(fixed=2), "torch": Counter(new=2)}
    assert [(each.kind, each.backend, each.case) for each in told["shown_changes"]] == [
        ("fixed", "ort", ONNX[0]),
        ("fixed", "ort", ONNX[0]),
        ("new", "torch", ONNX[0]),
        ("new", "torch", PYPTO[0]),
    ]
    assert told["all_changes"] == 4
    assert told["not_compared"] == 0
    assert told["facts"]["digests"] == {
        name: documents()[name].digest for name in ("onnx-cast", "pypto-cast")
    }


@pytest.mark.parametrize(("wrong", "more"), [(40, 0), (41, 1)])
def test_forty_changes_are_listed_and_more_are_counted(
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
    assert ("<p>1 more are " in page) == bool(more)


def test_verdicts_that_the_previous_run_had_not_are_counted(tmp_path: Path) -> None:
    runs = [
        planted_run(tmp_path / "0", judged(), ["ort", "torch"]),
        planted_run(tmp_path / "1", judged(), ["ort"], 1, document="onnx-cast"),
        planted_run(tmp_path / "2", judged(), ["ort", "torch"], 2),
    ]
    told = front(read_report(runs))
    assert told["not_compared"] == 2 * len(PYPTO) + len(ONNX)
    assert told["reservations"] == []
    assert front(read_report(runs[:1]))["not_compared"] == 0


def test_two_runs_are_held_against_each_other_not_against_older_ones(tmp_path: Path) -> None:
    runs = [
        planted_run(tmp_path / str(day), judged(), ["ort"], day, seed=seed)
        for day, seed in enumerate((1, 2, 2))
    ]
    assert front(read_report(runs))["reservations"] == []
    assert front(read_report(runs[:2]))["reservations"] == ["seed: 1 before, 2 now"]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return read_report([planted_run(tmp_path / "run", judged(), ["ort", "torch", "vendor:fast"])])


def test_behaviours_are_told_pair_by_pair_the_most_shared_first(report: Report) -> None:
    wide, byte = "onnx-cast:25/float32/int16", "onnx-cast:25/float32/int8"
    half, other = (
        "onnx-cast:25/float32/float16",
        "pypto-cast:0.2/float32/int16/mode:CAST_ODD/satmode:on",
    )
    small = "onnx-cast:25/int8/float16"
    truth = "onnx-cast:25/float32/bool"
    lines = {
        ("ort", small): ("a",),
        ("ort", truth): ("a",),
        ("ort", byte): ("b", "unexplained: c"),
        ("ort", wide): ("z", "y"),
        ("ort", half): ("a",),
        ("torch", byte): ("a", "unexplained: c"),
        ("torch", wide): ("a",),
        ("torch", other): ("a",),
        ("vendor:fast", wide): ("a",),
    }
    assert pair_behaviours(replace(report, behaviours=lines)) == [
        PairBehaviours("float32", "float16", [Shared("a", ["ort"], half)]),
        PairBehaviours(
            "float32",
            "int16",
            [
                Shared("a", ["torch", "vendor:fast"], wide),
                Shared("y", ["ort"], wide),
                Shared("z", ["ort"], wide),
            ],
        ),
        PairBehaviours(
            "float32",
            "int8",
            [
                Shared("a", ["torch"], byte),
                Shared("b", ["ort"], byte),
                Shared("unexplained: c", ["ort", "torch"], byte),
            ],
        ),
        PairBehaviours("float32", "bool", [Shared("a", ["ort"], truth)]),
        PairBehaviours("int8", "float16", [Shared("a", ["ort"], small)]),
    ]
