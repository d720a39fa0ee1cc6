"""What two runs have in common and what not: their divergences, and how they were asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reports.findings.cells import Broken, Cell
from reports.findings.changes import changes, reservations
from reports.run_store.record import BackendRecord, Selection
from tests.reports.common import record

CASE = ("onnx-cast:25/float32/int8", "onnx-cast", "25", "float32", "int8", "")
BROKEN = Broken(
    "rounds", "§ 1", "required", 3, 2, "0x00000001", "0x02", ("0x00",), "ab", (0, 1), ()
)


def cell(*broken: Broken, verdict: str = "violates") -> Cell:
    return Cell("ort", *CASE, verdict, "", 9, 0, 3, 2, broken, "", None, None)


def test_every_kind_of_change_is_told_by_kind_then_by_rule() -> None:
    before = cell(*(replace(BROKEN, rule=rule) for rule in ("d", "c", "b", "a")))
    now = cell(
        replace(BROKEN, rule="f"),
        replace(BROKEN, rule="e", level="recommended"),
        *(replace(BROKEN, rule=rule, digest="cd") for rule in ("b", "a")),
    )
    assert [(each.kind, each.rule, each.level) for each in changes(before, now)] == [
        ("new", "e", "recommended"),
        ("new", "f", "required"),
        ("changed", "a", "required"),
        ("changed", "b", "required"),
        ("fixed", "c", "required"),
        ("fixed", "d", "required"),
    ]
    assert {(each.backend, each.case) for each in changes(before, now)} == {("ort", CASE[0])}


@pytest.mark.parametrize(
    "moved", [{"digest": "cd"}, {"wrong": 4}, {"runs": 3}, {"smallest": "0x2"}, {"answer": "0x3"}]
)
def test_a_divergence_has_changed_with_any_of_its_inputs_and_answers(moved: dict[str, Any]) -> None:
    [change] = changes(cell(BROKEN), cell(replace(BROKEN, **moved)))
    assert (change.kind, change.rule) == ("changed", "rounds")
    assert changes(cell(BROKEN), cell(replace(BROKEN, allowed=("0x01",)))) == []


def test_an_error_that_comes_with_broken_rules_is_told_by_the_rules() -> None:
    wrong = cell(BROKEN, verdict="error")
    assert [each.rule for each in changes(cell(verdict="conforms"), wrong)] == ["rounds"]
    assert [each.kind for each in changes(cell(BROKEN), wrong)] == []


DIFFERENT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"suite": "1"}, {"suite": "2"}, "castigate: 1 before, 2 now"),
    ({}, {"tier": "full"}, "tier: quick before, full now"),
    ({"seed": 3}, {"seed": 4}, "seed: 3 before, 4 now"),
    ({"max_examples": 5}, {}, "random inputs: 5 before, 1000 now"),
    (
        {},
        {"selection": Selection(documents=("a", "b:1"))},
        "documents asked: all before, a b:1 now",
    ),
    ({"selection": Selection(source="int8")}, {}, "source asked: int8 before, all now"),
    ({}, {"selection": Selection(target="int8")}, "target asked: all before, int8 now"),
    ({"documents": {"a": "1"}}, {"documents": {"a": "2"}}, "a: our encoding of the document has"),
    (
        {"backends": (BackendRecord(name="ort", version="1"),)},
        {"backends": (BackendRecord(name="ort", version="2"),)},
        "ort: 1 before, 2 now",
    ),
]


@pytest.mark.parametrize(("before", "now", "told"), DIFFERENT)
def test_runs_that_are_not_alike_are_said_not_to_be(
    before: dict[str, Any], now: dict[str, Any], told: str
) -> None:
    [line] = reservations(record(**before), record(**now))
    assert line.startswith(told)


def test_what_only_one_run_has_makes_them_no_less_alike() -> None:
    ort, torch = (BackendRecord(name=name, version="1") for name in ("ort", "torch"))
    one = record(documents={"a": "1"}, backends=(ort,))
    more = record(documents={"a": "1", "b": "2"}, backends=(ort, torch))
    assert reservations(one, more) == reservations(more, one) == []
