"""A run is compared with ledgers: known failures are counted, what changed is listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.changes.words import screen
from reports.findings.finding import ExplainedCase, Finding
from reports.findings.judged_cells import cell_of
from reports.judgement import Judgement
from reports.known_failures import failures
from reports.ledger import news
from reports.ledger.listing import InputOptions, KnownFinding, Ledger, ListedFailure
from reports.ledger.news import RunLedgers
from reports.ledger.version_spans import Span
from reports.problems import WrongTensor
from reports.run_store.record import Selection
from tests.reports.common import HALF, divergence, judgement, record, steps

KNOWN = judgement(HALF, divergence(steps(3)))
[FAILURE] = failures(HALF, KNOWN)
LISTED = Ledger(
    "ort",
    findings={"truncates": KnownFinding("wrong value", "truncates")},
    listings={HALF.id: [ListedFailure(FAILURE, Span.of("1.31.1"), ("truncates",))]},
    versions=("1.31.1",),
)
OTHER = "onnx-cast:25/float16/int8"
RECORDS = "  to record it: pytest --pyargs conformance --backend=ort --update-ledger"
RIGHT = replace(KNOWN, verdict="conforms", problems=())
WEAKER = replace(divergence(steps(4)), level="recommended")


def screen_of(
    monkeypatch: pytest.MonkeyPatch,
    ledger: Ledger | None,
    found: Judgement,
    findings: Sequence[Finding] = (),
    seed: int = 0,
) -> tuple[bool, list[str]]:
    monkeypatch.setattr(news, "load_ledger", lambda name: ledger)
    ledgers = RunLedgers(record(seed=seed))
    ledgers.add(HALF, found)
    by_backend = {"ort": tuple(findings)}
    [step] = ledgers.changes(by_backend)
    return not step.changes, screen([step])


def test_a_known_failure_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    told = ["ort 1.31.1, since its ledger: nothing changed, 1 case as before"]
    assert screen_of(monkeypatch, LISTED, KNOWN) == (True, told)


def test_a_comparison_of_two_variants_is_not_compared_with_a_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    differs = replace(KNOWN, check="variants/ort/float32/float16")
    same = ["ort 1.31.1, since its ledger: nothing changed, 0 cases as before"]
    assert screen_of(monkeypatch, LISTED, differs) == (True, same)


def test_a_users_own_document_is_not_compared_with_a_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(news, "load_ledger", lambda name: LISTED)
    own = record(own_documents={HALF.document: "text"})
    ledgers = RunLedgers(own)
    ledgers.add(HALF, replace(KNOWN, verdict="crashed"))
    [step] = ledgers.changes({"ort": ()})
    assert (step.changes, step.same) == ((), 0)


@pytest.mark.parametrize(
    ("documents", "holds"),
    [
        (["mine:2"], True),
        (["mine", "mine+ours:1"], True),
        (["mine", "onnx-cast"], False),
        ([], False),
    ],
    ids=str,
)
def test_a_run_knows_whether_all_its_documents_are_a_users(
    documents: list[str], holds: bool
) -> None:
    chosen = Selection(documents=tuple(documents))
    found = record(own_documents={"mine": "text"}, selection=chosen)
    assert found.selects_only_own_documents is holds


def test_the_nearest_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    [listing] = LISTED.listings[HALF.id]
    earlier = replace(listing, span=Span.of("1.30.0"))
    before = replace(LISTED, listings={HALF.id: [earlier]}, versions=("1.30.0",))
    told = ["ort 1.31.1, since 1.30.0: nothing changed, 1 case as before"]
    assert screen_of(monkeypatch, before, KNOWN) == (True, told)


@pytest.mark.parametrize(
    ("ledger", "found", "counts", "lines"),
    [
        (None, KNOWN, "without a ledger: 1 worse, 0 cases as before",
            ["  worse: now fails, and no mechanism explains it; before: right",
             "    right → violates (3 inputs), in onnx-cast:25/float32/float16; 1 case of "]),
        (LISTED, RIGHT, "since its ledger: 1 better, 0 cases as before",
            ["  better: no longer truncates; now: right",
             "    violates (3 inputs) → conforms, in onnx-cast:25/float32/float16; 1 case of "]),
        (LISTED, replace(RIGHT, verdict="unsupported"),
            "since its ledger: 1 no longer supported, 0 cases as before",
            ["  no longer supported: before: truncates",
             "    1 case of onnx-cast, float32 to float16 (truncates); violates (3 inputs) → "]),
        (LISTED, judgement(HALF, divergence(steps(4))),
            "since its ledger: 1 worse, 0 cases as before",
            ["  worse: other inputs or answers than before: truncates",
             "    violates (3 inputs) → violates (4 inputs), in onnx-cast:25/float32/float16; "]),
        (LISTED, judgement(HALF, divergence(steps(2))),
            "since its ledger: 1 better, 0 cases as before",
            ["  better: other inputs or answers than before: truncates",
             "    violates (3 inputs) → violates (2 inputs), in onnx-cast:25/float32/float16; "]),
        (LISTED, replace(judgement(HALF, WEAKER), verdict="deviates"),
            "since its ledger: 1 better, 0 cases as before",
            ["  better: other inputs or answers than before: truncates",
             "    violates (3 inputs) → deviates (4 inputs), in onnx-cast:25/float32/float16; "]),
    ],
)  # fmt: skip
def test_what_is_not_as_listed_is_told(
    monkeypatch: pytest.MonkeyPatch,
    ledger: Ledger | None,
    found: Judgement,
    counts: str,
    lines: list[str],
) -> None:
    holds, [head, *told] = screen_of(monkeypatch, ledger, found)
    assert not holds
    assert head == f"ort 1.31.1, {counts}"
    assert told[0] == lines[0]
    assert told[1].startswith(lines[1])
    assert (told[-1] == RECORDS) == (ledger is not None)


def test_a_case_may_move_from_one_finding_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = cell_of(HALF, KNOWN, ())
    case = ExplainedCase(cell, "a", "1", "required", 4, True, "", "0x0001", "0x02", ("0x03",))
    wraps = Finding("wraps", "ort", "wrong value", "wraps", (case,))
    other = judgement(HALF, divergence(steps(4)))
    holds, lines = screen_of(monkeypatch, LISTED, other, [wraps])
    assert not holds
    assert lines[0] == "ort 1.31.1, since its ledger: 1 worse, 0 cases as before"
    assert lines[1] == "  worse: now wraps; before: truncates"


def test_a_ledger_of_other_inputs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(LISTED, options=InputOptions("full"))
    holds, lines = screen_of(monkeypatch, other, KNOWN)
    assert not holds
    assert "  its ledger is not used; it was made with --tier=full --seed=0" in lines[-1]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (judgement(HALF, divergence(steps(4))), "nothing changed, 1 case as before"),
        (RIGHT, "nothing changed, 0 cases as before"),
        (replace(judgement(HALF, WEAKER), verdict="deviates"), "1 worse, 0 cases as before"),
    ],
    ids=["other inputs of the same verdict", "not met", "another verdict"],
)
def test_with_another_seed_verdicts_alone_are_compared(
    monkeypatch: pytest.MonkeyPatch, found: Judgement, told: str
) -> None:
    holds, [head, *_] = screen_of(monkeypatch, LISTED, found, seed=1)
    assert head == f"ort 1.31.1, since its ledger of seed 0: {told}"
    assert holds == ("worse" not in told)


@pytest.mark.parametrize(
    ("name", "where", "seed", "told"),
    [
        ("truncates", "shape 3 x 5", 1, "ledger of seed 0: nothing changed, 0 cases as before"),
        ("truncates", "shape 3 x 5", 0, "ledger: 1 worse, 0 cases as before"),
        ("truncates", "", 1, "ledger of seed 0: 1 worse, 0 cases as before"),
        ("wraps", "shape 3 x 5", 1, "ledger of seed 0: 1 worse, 0 cases as before"),
    ],
    ids=["a drawn tensor", "the ledger's seed", "a listed tensor", "a finding not listed"],
)
def test_another_seed_may_meet_a_listed_finding_in_another_case(
    monkeypatch: pytest.MonkeyPatch, name: str, where: str, seed: int, told: str
) -> None:
    broken = WrongTensor("r", "c", "required", "y", "0x1", "0x2", ("0x3",), 1, 9, where=where)
    failing = replace(KNOWN, problems=(broken,))
    explained = ExplainedCase(
        cell_of(HALF, failing, ()), "a", "1", "required", 1, True, "", "0x0001", "0x02", ("0x03",)
    )
    finding = Finding(name, "ort", "depends on layout", name, (explained,))
    others = replace(LISTED, listings={OTHER: LISTED.listings[HALF.id]})
    holds, lines = screen_of(monkeypatch, others, failing, [finding], seed)
    assert lines[0] == f"ort 1.31.1, since its {told}"
    assert holds == ("  1 case more by other tensors" in lines) == ("nothing" in told)
