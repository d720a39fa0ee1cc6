"""``summary.md``: what a CI job's page shows of a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from reports.diff.judgement import VERDICTS
from reports.findings.cells import FAILED
from reports.findings.changes import CHANGES, reservations
from reports.findings.report import Report

SHOWN = 20
"""Changes and broken rules that are listed."""
MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


def summary_md(report: Report) -> str:
    """The page."""
    return "\n".join([*_head(report), *_verdicts(report), *_changes(report), *_broken(report), ""])


def _head(report: Report) -> Iterator[str]:
    record = report.record
    backends = ", ".join(f"{each.name} {each.version}" for each in record.backends)
    yield "# Castigate"
    yield ""
    yield f"{sum(map(len, report.cases.values())):,} cases, tier {record.tier}, {plain(backends)}."
    yield ""


def _verdicts(report: Report) -> Iterator[str]:
    counts = {
        name: sum((report.counts(version, name) for version in report.cases), Counter[str]())
        for name in report.backends
    }
    occurring = [verdict for verdict in VERDICTS if any(row[verdict] for row in counts.values())]
    yield from table(
        ("backend", *occurring),
        ([name, *(f"{row[verdict]:,}" for verdict in occurring)] for name, row in counts.items()),
    )


def _changes(report: Report) -> Iterator[str]:
    yield "## Since the previous run"
    yield ""
    if len(report.records) < 2:
        yield "There is none."
        yield ""
        return
    changes = [change for each in report.changes.values() for change in each]
    kinds = Counter(change.kind for change in changes)
    yield ", ".join(f"{kinds[kind]:,} {kind}" for kind in CHANGES) + "."
    yield ""
    for told in reservations(*report.records[-2:]):
        yield f"- The runs are not alike: {plain(told)}"
    for change in changes[:SHOWN]:
        what = f"{change.kind}: {change.backend}, {change.case}, {change.rule}"
        yield f"- {plain(what)}"
    if len(changes) > SHOWN:
        yield f"- {len(changes) - SHOWN:,} more"
    yield ""


def _broken(report: Report) -> Iterator[str]:
    """Only what fails: rules of claimed documents, errors and crashes."""
    cases: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], str] = {}
    for cell in report.cells.values():
        rules = [broken.rule for broken in cell.broken] or [cell.verdict]
        if cell.verdict in (*FAILED, "violates", "deviates"):
            for rule in dict.fromkeys(rules):
                key = cell.backend, cell.document, rule
                cases[key] += 1
                examples.setdefault(key, cell.case)
    yield "## What fails"
    yield ""
    if not cases:
        yield "Nothing."
        return
    yield from table(
        ("backend", "document", "rule", "cases", "for instance"),
        ([*key, f"{count:,}", examples[key]] for key, count in cases.most_common(SHOWN)),
    )
    if len(cases) > SHOWN:
        yield f"{len(cases) - SHOWN:,} more rows."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(plain, row))} |"
    yield ""


def plain(text: str) -> str:
    """A text in which nothing is markup."""
    return MARKUP.sub(r"\\\1", " ".join(text.split()))
