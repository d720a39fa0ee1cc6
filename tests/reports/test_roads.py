"""Backends by framework: their groups, where roads differ, and how screens name many."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.findings.cells import Cell
from reports.findings.read_findings import read_findings
from reports.findings.roads import (
    RoadGroup,
    alike_roads,
    backend_and_road,
    differing_cases,
    road_groups,
    same_findings,
    together,
)
from reports.outputs.totals import Totals, findings_screens
from tests.reports.judged_run import RIGHT, cases_of, judged_run, through

GCC = RoadGroup("gcc", "gcc", ("gcc:f16c", "gcc:x87"))
TOLD = "onnx-cast:25/float64/float16"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("ort", ("ort", "")),
        ("torch:compile", ("torch", "compile")),
        ("exec:./vendor", ("exec:./vendor", "")),
        ("tests/a.py:Vendor", ("tests/a.py:Vendor", "")),
    ],
)
def test_a_road_is_a_variant(name: str, parts: tuple[str, str]) -> None:
    assert backend_and_road(name) == parts


def test_backends_are_grouped_by_framework_in_the_order_of_the_run() -> None:
    names = ["gcc:f16c", "ort", "gcc", "a.py:Npu", "gcc:x87", "a.py:Gpu", "exec:./a", "exec:./a b"]
    assert [(each.framework, each.backends) for each in road_groups(names)] == [
        ("gcc", ("gcc", "gcc:f16c", "gcc:x87")),
        ("ort", ("ort",)),
        ("a.py:Npu", ("a.py:Npu",)),
        ("a.py:Gpu", ("a.py:Gpu",)),
        ("exec:./a", ("exec:./a",)),
        ("exec:./a b", ("exec:./a b",)),
    ]


def test_a_framework_without_its_plain_backend_is_led_by_its_first_road() -> None:
    [group] = road_groups(["jax:jit", "jax:folded"])
    assert (group.plain, group.roads) == ("jax:jit", ("jax:folded",))
    assert [group.road_of(each) for each in (*group.backends, "jax")] == [":jit", ":folded", "jax"]


def cell(backend: str, case: str, verdict: str = "conforms", answers: str = "a") -> Cell:
    place = (case, "onnx-cast", "25", "float32", case, "")
    message = f"says {backend}"
    return Cell(backend, *place, verdict, message, 9, 0, 0, 0, False, (), "", "i", answers)


def differing(*cells: Cell) -> dict[str, set[str]]:
    found = differing_cases({(each.backend, each.case): each for each in cells}, [GCC])
    return {road: {*cases} for road, cases in found.items()}


def test_roads_differ_by_verdict_and_by_answers_but_not_by_message() -> None:
    plain = [cell("gcc", each) for each in ("int8", "int16", "int32")]
    alike = [cell("gcc:f16c", each) for each in ("int8", "int16", "int32")]
    other = [
        cell("gcc:x87", "int8", "open"),
        cell("gcc:x87", "int16"),
        cell("gcc:x87", "int32", answers="b"),
    ]
    assert differing(*plain, *alike, *other) == {"gcc:f16c": set(), "gcc:x87": {"int8", "int32"}}


def test_roads_differ_in_cases_that_only_one_was_asked() -> None:
    cells = [cell("gcc", "int8"), cell("gcc:f16c", "int16")]
    assert differing(*cells) == {"gcc:f16c": {"int8", "int16"}, "gcc:x87": {"int8"}}


EVERY = ("ort", "gcc", "gcc:f16c", "gcc:x87", "jax", "jax:jit", "onnx")


@pytest.mark.parametrize(
    ("some", "line"),
    [
        ((), ""),
        (("onnx", "ort"), "ort, onnx"),
        (("gcc", "gcc:f16c", "gcc:x87"), "gcc and its 2 other roads"),
        (("gcc", "gcc:x87", "jax", "jax:jit"), "gcc, gcc:x87, jax and its other road"),
        (("ort", "gcc", "gcc:x87", "jax:jit", "onnx"), "ort, gcc, gcc:x87, jax:jit and 1 more"),
    ],
)
def test_a_line_names_a_whole_framework_once(some: tuple[str, ...], line: str) -> None:
    assert together(some, EVERY, most=4) == line


def test_only_roads_of_one_framework_share_a_line() -> None:
    told = {"ort": 1, "gcc": 1, "gcc:f16c": 2, "gcc:x87": 1, "onnx": 1}
    assert [*alike_roads(told)] == [("ort",), ("gcc", "gcc:x87"), ("gcc:f16c",), ("onnx",)]


def test_the_last_lines_of_a_run_name_roads_with_the_same_counts_together() -> None:
    totals = Totals()
    verdicts = {"gcc": "conforms", "gcc:f16c": "conforms", "gcc:x87": "open", "ort": "conforms"}
    for backend, verdict in verdicts.items():
        totals.add(
            {
                "case": TOLD,
                "check": "",
                "backend": backend,
                "document": "onnx-cast",
                "version": "25",
            }
            | {"verdict": verdict, "inputs": 1, "open": 0, "wrong": 0, "message": "", "broken": []}
        )
    assert [*totals.lines()] == [
        "gcc, gcc:f16c: 1 conforms",
        "gcc:x87: 1 open",
        "ort: 1 conforms",
    ]


def test_a_screen_shows_the_findings_of_roads_that_share_them_once(tmp_path: Path) -> None:
    wrong = through("float32")
    answers = {"gcc": wrong, "gcc:f16c": wrong, "gcc:x87": RIGHT.cast, "ort": wrong}
    store = judged_run(tmp_path / "run", answers, cases_of(TOLD))
    found = {each: read_findings(store).get(each, ()) for each in answers}
    assert same_findings(found, "gcc:f16c", "gcc")
    assert not same_findings(found, "gcc:x87", "gcc")
    screens = [*findings_screens(found, dict.fromkeys(answers, "1.0"))]
    assert [each.heading for each in screens] == [
        "gcc, gcc:f16c 1.0: 1 finding, 1 failing case",
        "gcc:x87 1.0: no finding",
        "ort 1.0: 1 finding, 1 failing case",
    ]
    [[*_, shared]] = screens[0].findings
    assert shared == "    also in ort"
