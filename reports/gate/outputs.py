"""The result of a gate for a CI system, as JUnit XML and as a page of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reports.findings.cells import Cell
from reports.findings.finding import Finding
from reports.findings.finding_text import counted, example_words, pairs_words
from reports.findings.report import Report
from reports.gate.policy import Policy
from reports.gate.policy_verdict import EXAMPLES, GateFailure, PolicyDivergence, PolicyVerdict
from reports.judgement import NOT_RUN
from reports.outputs.junit import JunitResult, JunitTest, failure_text, junit
from reports.outputs.summary_md import summary_md
from specs.plain_text import escape_markdown

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
    requirements = []
    for kind, text in REQUIREMENTS.items():
        lines = [failure_line(failure) for failure in verdict.failures if failure.kind == kind]
        result = JunitResult("failure", lines[0], kind, "\n".join(lines)) if lines else None
        requirements.append(JunitTest(group, text, result))
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
    findings = [each for found in report.findings.values() for each in found]
    passing = (each for each in verdict.divergences if each.status in ("accepted", "known"))
    return "\n".join(
        [
            *_result(policy, verdict, findings),
            *_counted_section("Accepted", map(_why_it_passes, passing)),
            *_counted_section("Not judged", verdict.unjudged.values()),
            summary_md(report),
        ]
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


def defects(
    findings: Sequence[Finding], failures: Sequence[GateFailure]
) -> Iterator[tuple[str, ...]]:
    """Yield what is wrong: two lines for each finding behind a failure, one for any other failure.

    The first line of a finding says where and what, with one input; the second names the cause, how
    far it reaches, and what it breaks of the policy.
    """
    failing = {case for failure in failures for case in failure.cases}
    behind = [each for each in findings if failing.intersection(each.cases)]
    for finding in behind:
        example = example_words(finding)
        reach = f"{counted(len(finding.cases), 'case')}, {pairs_words(finding)}"
        if finding.inputs:
            least = "" if finding.is_exact else "at least "
            reach += f", {least}{counted(finding.inputs, 'input')}"
        reasons = [each.reason for each in failures if {*finding.cases} & {*each.cases}]
        more = f" and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
        yield (
            f"{finding.simplest.cell.name}{f': {example}' if example else ''}",
            f"{finding.kind}: {finding.says} ({reach}); {reasons[0]}{more}",
        )
    explained = {case for each in behind for case in each.cases}
    for failure in failures:
        if not explained.intersection(failure.cases):
            yield (failure_line(failure, most=1),)


def _why_it_passes(divergence: PolicyDivergence) -> str:
    entry = divergence.accepted_by
    match divergence.status:
        case "accepted" if entry is not None:
            return f"{divergence.rule}: accepted until {entry.expires}: {entry.reason}"
        case "known":
            return f"{divergence.rule}: known from the baseline"
    return f"{divergence.rule}: of a level that the policy does not require"


def _result(policy: Policy, verdict: PolicyVerdict, findings: Sequence[Finding]) -> Iterator[str]:
    yield f"# Gate: {'pass' if verdict.passes else 'FAIL'}"
    yield ""
    yield f"{answered_line(verdict.answered).capitalize()}."
    yield ""
    yield f"Policy {escape_markdown(policy.name)}: {escape_markdown(policy.entry.title)}."
    yield ""
    for first, *rest in defects(findings, verdict.failures):
        yield f"- {escape_markdown(first)}"
        yield from (f"  {escape_markdown(line)}" for line in rest)
    if verdict.failures:
        yield ""


def _counted_section(title: str, of_cases: Iterable[str]) -> Iterator[str]:
    """Yield a Markdown section that counts cases by the text about each; nothing without cases."""
    counts = Counter(of_cases)
    if counts:
        yield f"## {title}"
        yield ""
        for text, count in counts.items():
            yield f"- {escape_markdown(text)}: {counted(count, 'case')}"
        yield ""
