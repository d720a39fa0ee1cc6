"""The result of a gate for a CI system, as JUnit XML and as a page of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reports.findings.cells import Cell
from reports.findings.finding_text import counted
from reports.findings.report import Report
from reports.gate.policy import Policy
from reports.gate.policy_verdict import EXAMPLES, GateFailure, PolicyDivergence, PolicyVerdict
from reports.judgement import NOT_RUN
from reports.outputs.junit import JunitResult, JunitTest, failure_text, junit
from reports.outputs.summary_md import summary_md
from reports.outputs.table import escaped, markdown_table
from specs.plain_text import escape_markdown

FINDINGS_SHOWN = 10
"""The most findings that a gate prints; its summary has all of them."""
REQUIREMENTS = {
    "divergence": "no rule of the policy's levels is broken",
    "layout": "no answer depends on position, length or layout",
    "expired": "no acceptance has expired",
    "error": "no case ends in an error",
    "crashed": "no case crashes the backend or makes it stop answering",
    "differs": "no case differs from a document that the backend does not claim",
    "unsupported": "no case is unsupported unless the policy allows it",
    "not-run": "every case was run",
    "missing": "the run holds every case of the policy's documents",
    "hollow": "every good verdict rests on right answers",
    "nothing-judged": "some answer was judged",
    "coverage": "the policy's minimum coverage is reached",
    "time-limit": "the run ends within the policy's time limit",
}
"""The requirements of a policy, by the kind of failure that breaks each."""


def gate_junit(report: Report, policy: Policy, verdict: PolicyVerdict) -> str:
    """Return JUnit XML with a test per requirement of a policy, and one per case of the run.

    A case fails if it is among the cases of one of the verdict's failures.
    """
    group = f"policy.{policy.name}"
    requirements = [
        JunitTest(group, text, _requirement_result(verdict, kind))
        for kind, text in REQUIREMENTS.items()
    ]
    reasons: dict[str, list[str]] = {}
    for failure in verdict.failures:
        for case in failure.cases:
            reasons.setdefault(case, []).append(f"{failure.kind}: {failure.reason}")
    passing: dict[str, list[str]] = {}
    for divergence in verdict.divergences:
        if not divergence.fails:
            passing.setdefault(divergence.cell.name, []).append(_why_it_passes(divergence))

    def result_of(cell: Cell) -> JunitResult | None:
        if cell.case in reasons:
            message = "; ".join(reasons[cell.case])
            return JunitResult("failure", message, cell.verdict, failure_text(cell))
        if cell.verdict in NOT_RUN:
            return JunitResult("skipped", cell.message or cell.verdict)
        if cell.case in passing:
            text = "\n".join([*passing[cell.case], failure_text(cell)])
            return JunitResult("system-out", text=text)
        return None

    return junit(report, result_of, [(f"policy {policy.name}", requirements)])


def gate_summary(report: Report, policy: Policy, verdict: PolicyVerdict) -> str:
    """Return Markdown: the gate's result with its reasons, then the summary of its run."""
    return "\n".join(
        [*_result(policy, verdict), *_accepted(verdict), *_unjudged(verdict), summary_md(report)]
    )


def failure_line(failure: GateFailure, most: int = EXAMPLES) -> str:
    """Describe a failure in one line: its kind, its reason and at most ``most`` of its cases."""
    document = f"{failure.document}: " if failure.document else ""
    text = f"{failure.kind}: {document}{failure.reason}"
    if not failure.cases:
        return text
    examples = ", ".join(failure.cases[:most])
    rest = len(failure.cases) - most
    return f"{text}: {examples}{f' and {rest:,} more' if rest > 0 else ''}"


def answered_line(answered: Mapping[str, int]) -> str:
    """Describe the counts of ``PolicyVerdict.answered`` in one line."""
    counts = [f"{answered['answered']:,} of {answered['cases']:,} cases answered"]
    for name in ("unsupported", "accepted", "known"):
        if answered[name]:
            counts.append(f"{answered[name]:,} {name}")
    if "unjudged" in answered:
        counts.append(f"{answered['unjudged']:,} not wholly judged")
    counts += [f"{answered['inputs']:,} inputs", f"{answered['checks']:,} dtype pairs checked"]
    return ", ".join(counts)


def finding_lines(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each of the first ``FINDINGS_SHOWN`` findings, and one that counts the rest.

    ``findings`` are those of a certificate.
    """
    for each in findings[:FINDINGS_SHOWN]:
        yield f"finding: {each['kind']}: {each['finding']} ({counted(each['cases'], 'case')})"
    if len(findings) > FINDINGS_SHOWN:
        yield f"{counted(len(findings) - FINDINGS_SHOWN, 'more finding')}"


def _why_it_passes(divergence: PolicyDivergence) -> str:
    entry = divergence.accepted_by
    match divergence.status:
        case "accepted" if entry is not None:
            return f"{divergence.rule}: accepted until {entry.expires}: {entry.reason}"
        case "known":
            return f"{divergence.rule}: known from the baseline"
    return f"{divergence.rule}: of a level that the policy does not require"


def _requirement_result(verdict: PolicyVerdict, kind: str) -> JunitResult | None:
    lines = [failure_line(failure) for failure in verdict.failures if failure.kind == kind]
    return JunitResult("failure", lines[0], kind, "\n".join(lines)) if lines else None


def _result(policy: Policy, verdict: PolicyVerdict) -> Iterator[str]:
    yield f"# Gate: {'pass' if verdict.passes else 'FAIL'}"
    yield ""
    yield f"{answered_line(verdict.answered).capitalize()}."
    yield ""
    yield f"Policy {escape_markdown(policy.name)}: {escape_markdown(policy.entry.title)}."
    yield ""
    if verdict.failures:
        rows = [
            [each.kind, each.document, each.reason, f"{len(each.cases):,}", *each.cases[:1]]
            for each in verdict.failures
        ]
        titles = ("failure", "document", "reason", "cases", "example")
        yield from markdown_table(titles, escaped(rows))
        yield ""


def _accepted(verdict: PolicyVerdict) -> Iterator[str]:
    """Yield a Markdown section that counts accepted and known failures by reason, if any exist."""
    counts: dict[str, int] = {}
    for divergence in verdict.divergences:
        if divergence.status in ("accepted", "known"):
            reason = _why_it_passes(divergence)
            counts[reason] = counts.get(reason, 0) + 1
    if counts:
        yield "## Accepted"
        yield ""
        for reason, count in counts.items():
            yield f"- {escape_markdown(reason)}: {count:,} {'case' if count == 1 else 'cases'}"
        yield ""


def _unjudged(verdict: PolicyVerdict) -> Iterator[str]:
    """Yield a Markdown section that counts by reason what was judged only in part, if anything."""
    counts = Counter(verdict.unjudged.values())
    if counts:
        yield "## Not judged"
        yield ""
        for text, count in counts.items():
            yield f"- {escape_markdown(text)}: {counted(count, 'case')}"
        yield ""
