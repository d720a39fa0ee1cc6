"""``summary.md``: changes, findings and verdicts of a run, for the page of a CI job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reports.changes.divergences import setup_differences
from reports.changes.words import markdown
from reports.findings.finding_text import extent_words
from reports.findings.report import Report
from reports.judgement import VERDICTS
from reports.outputs.table import escaped, markdown_table
from specs.plain_text import escape_markdown


def summary_md(report: Report) -> str:
    """Return the changes, findings and verdicts of a report as Markdown."""
    cases = sum(map(len, report.cases.values()))
    backends = escape_markdown(report.record.backend_words)
    return "\n".join(
        [
            "# Castigate",
            "",
            f"{cases:,} cases, {_tiers(report)}, {backends}.",
            "",
            *_changes(report),
            *_findings(report),
            *_verdicts(report),
            "",
        ]
    )


def _tiers(report: Report) -> str:
    """Return the tier in words, or how many cases each tier has if a policy chose them."""
    record = report.record
    if not record.selection.choices:
        return f"tier {record.tier}"
    cases = (cell.case for each in report.cases.values() for cell in each)
    choices = filter(None, map(record.selection.choice, cases))
    counts = Counter(choice.tier for choice in choices)
    return ", ".join(f"{counts[tier]:,} at tier {tier}" for tier in sorted(counts))


def _verdicts(report: Report) -> Iterator[str]:
    counts = {
        name: sum(
            (report.verdict_counts(version, name) for version in report.cases), Counter[str]()
        )
        for name in report.backends
    }
    occurring = [verdict for verdict in VERDICTS if any(row[verdict] for row in counts.values())]
    rows = [[name, *(f"{row[verdict]:,}" for verdict in occurring)] for name, row in counts.items()]
    yield from markdown_table(("backend", *occurring), escaped(rows))
    yield ""
    for backend, line in report.left_open.items():
        yield f"- {escape_markdown(f'{backend}: {line}' if len(report.backends) > 1 else line)}"
    if report.left_open:
        yield ""


def _changes(report: Report) -> Iterator[str]:
    """Yield what changed for each backend, and what else differs from the previous run."""
    if not report.steps:
        yield "There is no previous run to compare with."
        yield ""
    yield from markdown(report.steps)
    if len(report.records) < 2:
        return
    differences = setup_differences(*report.records[-2:])
    for difference in differences:
        yield f"- The runs differ in their setup: {escape_markdown(difference)}"
    if differences:
        yield ""


def _findings(report: Report) -> Iterator[str]:
    """Yield the Markdown section on the findings of all backends."""
    yield "## Findings"
    yield ""
    if not report.findings:
        yield "None."
        yield ""
        return
    for backend, findings in report.findings.items():
        yield f"### {escape_markdown(backend)}"
        yield ""
        for each in findings:
            kinds = ", ".join(report.kinds_of_change(each))
            words = f" ({kinds})" if kinds else ""
            yield f"- **{each.kind}**: {escape_markdown(each.says)}{words}  "
            yield f"  {escape_markdown(extent_words(each))}"
        yield ""
