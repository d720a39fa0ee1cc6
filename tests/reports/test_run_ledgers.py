"""A run is compared with ledgers: known failures are no news; new, changed and gone ones are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.judgement import Judgement
from reports.ledger import run_check
from reports.ledger.breaches import breaches
from reports.ledger.listing import InputOptions, KnownFinding, Ledger, Listing
from reports.ledger.run_check import RunLedgers
from reports.ledger.version_spans import Span
from tests.reports.common import HALF, divergence, judgement, record, steps

KNOWN = judgement(HALF, divergence(steps(3)))
[BREACH] = breaches(HALF, KNOWN)
LISTED = Ledger(
    "ort",
    findings={"truncates": KnownFinding("wrong value", "truncates")},
    listings={HALF.id: [Listing(BREACH, Span.of("1.31.1"), ("truncates",))]},
)


def news_of(
    monkeypatch: pytest.MonkeyPatch, ledger: Ledger | None, found: Judgement
) -> tuple[int, list[str]]:
    monkeypatch.setattr(run_check, "load_ledger", lambda name: ledger)
    ledgers = RunLedgers(record())
    ledgers.add(HALF, found)
    return sum(map(len, ledgers.news.values())), list(ledgers.lines({}))


def test_a_known_failure_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    assert news_of(monkeypatch, LISTED, KNOWN) == (
        0,
        ["every backend does as its ledger says: 1 known failures, nothing new"],
    )


@pytest.mark.parametrize(
    ("ledger", "found", "expected"),
    [
        (None, KNOWN, "new finding unexplained (): 1 case not listed; for instance "),
        (LISTED, replace(KNOWN, verdict="conforms", problems=()),
            "finding truncates (truncates): 1 case listed, but gone; for instance "),
        (LISTED, judgement(HALF, divergence(steps(4))),
            "finding truncates (truncates): 1 case changed; for instance "),
    ],
)  # fmt: skip
def test_what_is_not_as_listed_is_news(
    monkeypatch: pytest.MonkeyPatch, ledger: Ledger | None, found: Judgement, expected: str
) -> None:
    count, lines = news_of(monkeypatch, ledger, found)
    assert count == 1
    assert lines[0].startswith(f"ort: {expected}{HALF.id}, ")
    assert lines[-1] == "not as the ledgers say: 1 case; 0 known failures"


def test_a_ledger_of_other_inputs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(LISTED, options=InputOptions("full"))
    count, lines = news_of(monkeypatch, other, KNOWN)
    assert count == 1
    assert lines[0].startswith("ort: its ledger is not used; it was written with --tier=full")
