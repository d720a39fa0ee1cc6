"""Comparison of two runs: changed divergences, and differences in setup."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reports.changes.divergences import (
    DivergenceChange,
    cell_changes,
    run_changes,
    setup_differences,
)
from reports.findings.cells import Cell, Divergence
from reports.run_store.record import BackendRecord, Selection, TierOfCases
from tests.reports.common import record

CASE = ("onnx-cast:25/float32/int8", "onnx-cast", "25", "float32", "int8", "")
KEY = ("ort", CASE[0])
BROKEN = Divergence(
    "rounds", "§ 1", "required", 3, 2, "0x00000001", "0x02", ("0x00",), "ab", (0, 1), ()
)


def cell(*broken: Divergence, verdict: str = "violates") -> Cell:
    return Cell("ort", *CASE, verdict, "", 9, 0, 3, 2, False, broken, "", None, None)


def changes(before: Cell, now: Cell) -> list[DivergenceChange]:
    return cell_changes(before, now, has_same_seed=True)


def test_changes_are_sorted_by_kind_then_by_rule() -> None:
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
        ("mended", "c", "required"),
        ("mended", "d", "required"),
    ]
    assert {(each.backend, each.case) for each in changes(before, now)} == {("ort", CASE[0])}


@pytest.mark.parametrize(
    "change", [{"digest": "cd"}, {"wrong": 4}, {"runs": 3}, {"smallest": "0x2"}, {"answer": "0x3"}]
)
def test_other_inputs_or_answers_change_a_divergence(change: dict[str, Any]) -> None:
    [found] = changes(cell(BROKEN), cell(replace(BROKEN, **change)))
    assert (found.kind, found.rule) == ("changed", "rounds")
    assert changes(cell(BROKEN), cell(replace(BROKEN, allowed=("0x01",)))) == []


def test_another_seed_asks_other_inputs_which_changes_no_divergence() -> None:
    before, now = cell(BROKEN), cell(replace(BROKEN, digest="cd"), replace(BROKEN, rule="new"))
    found = cell_changes(before, now, has_same_seed=False)
    assert [(each.kind, each.rule) for each in found] == [("new", "new")]


def test_a_case_that_one_run_did_not_ask_has_not_changed() -> None:
    fails, right, left = cell(BROKEN), cell(verdict="conforms"), cell(verdict="not-run")

    def kinds(before: Cell, now: Cell) -> list[str]:
        found = run_changes([before], {KEY: now}, has_same_seed=True)
        return [each.kind for of_cell in found.values() for each in of_cell]

    assert (kinds(fails, right), kinds(right, fails)) == (["mended"], ["new"])
    assert kinds(fails, left) == kinds(left, fails) == []


def test_changes_are_in_the_order_of_the_last_run() -> None:
    now = {(name, CASE[0]): replace(cell(), backend=name) for name in ("one", "two", "three")}
    before = (replace(cell(BROKEN), backend=name) for name in ("three", "gone", "one"))
    found = run_changes(before, now, has_same_seed=True)
    assert [backend for backend, _ in found] == ["one", "three"]


def test_an_error_with_broken_rules_is_compared_by_its_rules() -> None:
    wrong = cell(BROKEN, verdict="error")
    assert [each.rule for each in changes(cell(verdict="conforms"), wrong)] == ["rounds"]
    assert [each.kind for each in changes(cell(BROKEN), wrong)] == []


DIFFERENT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"suite": "1"}, {"suite": "2"}, "castigate: 1 before, 2 now"),
    ({}, {"tier": "full"}, "tier: quick before, full now"),
    ({"seed": 3}, {"seed": 4}, "seed: 3 before, 4 now"),
    ({"max_examples": 5}, {}, "random inputs: 5 before, 1000 now"),
    ({}, {"selection": Selection(documents=("a", "b:1"))},
        "selected documents: all before, a b:1 now"),
    ({"selection": Selection(source=("int8",))}, {}, "selected sources: int8 before, all now"),
    ({}, {"selection": Selection(target=("int8",))}, "selected targets: all before, int8 now"),
    ({}, {"selection": Selection(choices=(TierOfCases(match=("a/**",), tier="full"),))},
        "tiers of cases: none before, a/** at full now"),
    ({"chains": {"ort": ("a:1",)}}, {}, "chains of: ort before, none now"),
    ({}, {"rules": {"java": "text"}}, "house rules: none before, java now"),
    ({"documents": {"a": "1"}}, {"documents": {"a": "2"}},
        "a: Castigate's encoding of this document has changed"),
    ({"backends": (BackendRecord(name="ort", version="1"),)},
        {"backends": (BackendRecord(name="ort", version="2"),)}, "ort: 1 before, 2 now"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "now", "expected"), DIFFERENT)
def test_every_difference_in_setup_is_listed(
    before: dict[str, Any], now: dict[str, Any], expected: str
) -> None:
    [line] = setup_differences(record(**before), record(**now))
    assert line.startswith(expected)


def test_backends_and_documents_of_only_one_run_are_no_difference_in_setup() -> None:
    ort, torch = (BackendRecord(name=name, version="1") for name in ("ort", "torch"))
    one = record(documents={"a": "1"}, backends=(ort,))
    more = record(documents={"a": "1", "b": "2"}, backends=(ort, torch))
    assert setup_differences(one, more) == setup_differences(more, one) == []
