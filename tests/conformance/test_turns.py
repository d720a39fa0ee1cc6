"""Cases that repeat another are asked in turn: which, with which seed, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from conformance.families.reference import Reference
from conformance.pair import TURNS, judge_pair
from oracles.protocol import Unsupported
from reports.judgement import IN_TURN, Judgement
from reports.outputs.totals import LEFT_TO_OTHERS, Totals, count_record
from specs.cases import Case
from specs.selection import cases_of_pair, select
from tests.conformance.feeding import answering, feed, planted

CAST, LIKE, QUANTIZE = "onnx-cast", "onnx-cast-like", "onnx-quantize-linear"
REFERENCE = Reference()


def versions(document: str, source: str, target: str, *names: str) -> list[Case]:
    return [case for name in names for case in cases_of_pair(document, name, source, target)]


SIGNED = [
    *versions(CAST, "int8", "int16", "13", "19", "21", "23", "24", "25"),
    *versions(LIKE, "int8", "int16", "15", "25"),
]
SATURATING = versions(CAST, "float16", "float8e4m3fn", "19", "25")
EARLY = versions(CAST, "float16", "float8e4m3fn", "13")


def answers_of_all(cases: Iterable[Case], **more: Any) -> dict[Case, Judgement]:
    """Judge cases of a backend that answers rightly, with turns."""
    right = {"cast": REFERENCE.cast, "quantize": REFERENCE.quantize} | more.pop("methods", {})
    subject = planted(**{"has_turns": True} | more)
    cases = [*cases]
    return dict(zip(cases, feed(judge_pair(subject, cases), answering(**right)), strict=True))


def asked(found: dict[Case, Judgement]) -> set[Case]:
    return {case for case, each in found.items() if each.verdict != "not-run"}


def test_a_week_of_seeds_asks_each_case_and_every_seed_the_newest_version() -> None:
    week = [asked(answers_of_all(SIGNED, seed=seed)) for seed in range(20261126, 20261126 + TURNS)]
    assert set.union(*week) == {*SIGNED}
    [newest] = versions(CAST, "int8", "int16", "25")
    assert set.intersection(*week) == {newest}
    turns = [sum(case in night for night in week) for case in SIGNED if case != newest]
    assert turns == [1] * len(turns)


def test_what_is_left_out_says_which_seed_asks_it_and_which_case_has_its_rules() -> None:
    found = answers_of_all(SIGNED)
    left = next(each for each in found.values() if each.verdict == "not-run")
    words, seed, rest = left.message.partition(" --seed ")
    assert words == f"{IN_TURN}, with"
    assert seed
    assert rest[1:] == ", as onnx-cast:25/int8/int16 has its dtypes and modes"
    again = answers_of_all(SIGNED, seed=int(rest[0]))
    assert left.case in {case.id for case in asked(again)}


def test_modes_of_their_own_are_asked_with_every_seed() -> None:
    found = answers_of_all(SATURATING)
    newest = {case for case in SATURATING if case.version == "25"}
    assert newest <= asked(found)
    assert {case.mode["saturate"] for case in newest} == {"0", "1"}
    # Version 13 has no mode, so that no newer version has its case with the same modes.
    assert asked(answers_of_all([*SATURATING, *EARLY])) >= {*EARLY}


@pytest.mark.parametrize(
    "more", [{"has_turns": False}, {"tier": "full"}, {"isolates_sweeps": True}], ids=str
)
def test_without_turns_and_at_full_and_in_a_gate_all_are_asked(more: dict[str, Any]) -> None:
    few = [case for case in SIGNED if case.version in ("13", "25")]
    assert asked(answers_of_all(few, **more)) == {*few}


def test_the_claimed_version_is_asked_with_every_seed_not_a_newer_one() -> None:
    claimed = [case for case in SIGNED if case.version == "21"]
    for seed in range(TURNS):
        assert asked(answers_of_all(SIGNED, seed=seed, claims=["onnx-cast:21"])) >= {*claimed}


def test_versions_that_are_named_are_asked_with_every_seed() -> None:
    named = frozenset({f"{CAST}:13", f"{CAST}:21", CAST})
    old = {case for case in SIGNED if case.document == CAST and case.version in ("13", "21")}
    found = [asked(answers_of_all(SIGNED, seed=seed, asked_for=named)) for seed in range(TURNS)]
    assert set.intersection(*found) - {*versions(CAST, "int8", "int16", "25")} == old


def test_a_version_is_asked_if_the_backend_declines_the_newest() -> None:
    def cast(case: Case, bits: Any) -> Any:
        if case.version == "25":
            raise Unsupported("no such version")
        return REFERENCE.cast(case, bits)

    found = answers_of_all(SIGNED, methods={"cast": cast})
    assert asked(found) == {*SIGNED}
    verdicts = {case: each.verdict for case, each in found.items()}
    assert {case.version for case in SIGNED if verdicts[case] == "unsupported"} == {"25"}
    assert "conforms" in verdicts.values()


def test_versions_of_quantization_repeat_each_other_too() -> None:
    cases = versions(QUANTIZE, "float32", "int8", "23", "25")
    assert any(case.version == "23" for case in asked(answers_of_all(cases)) ^ {*cases})


def test_modes_are_asked_apart_even_where_they_have_the_same_rules() -> None:
    found = answers_of_all(versions(CAST, "bool", "float8e4m3fn", "25"))
    assert {case.mode["saturate"] for case in asked(found)} == {"1", "0"}


def test_examples_repeat_none() -> None:
    examples = [case for case in select([CAST]) if case.example][:2]
    assert len(examples) == len({*examples}) == 2
    for seed in range(TURNS):
        found = answers_of_all(examples, seed=seed)
        assert {*examples} == asked(found)


def test_the_last_screen_says_that_cases_were_left_to_other_seeds() -> None:
    totals = Totals()
    for case, judgement in answers_of_all(SIGNED).items():
        totals.add(count_record(case, judgement))
    assert [*totals.lines()][-1] == LEFT_TO_OTHERS
    whole = Totals()
    for case, judgement in answers_of_all(SIGNED, has_turns=False).items():
        whole.add(count_record(case, judgement))
    assert LEFT_TO_OTHERS not in [*whole.lines()]
