"""What a gate tells a CI system: JUnit XML and a page of Markdown, both by the policy."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.cells import NOT_ANSWERED, Cell
from reports.findings.report import Report
from reports.gate.policy import Policy
from reports.gate.policy_verdict import EXAMPLES, Failure, Judged, Standing
from reports.outputs.junit import Mark, details, junit
from reports.outputs.junit import Test as Tested
from reports.outputs.summary_md import plain, summary_md, table

KINDS = {
    "divergence": "every rule of the policy's levels holds",
    "expired": "no acceptance has expired",
    "error": "no error comes instead of an answer",
    "crashed": "the backend's process neither dies nor falls silent",
    "differs": "every request that has an answer is answered",
    "unsupported": "nothing is left out that may not be",
    "not-run": "every case was run",
    "missing": "every case of the policy's documents is in the run",
    "hollow": "no verdict is good without an answer",
    "coverage": "as much is answered as the policy wants",
    "time-limit": "the run ends within the policy's time",
}
"""What a policy asks, by the kind of failure where it is not so."""


def gate_junit(report: Report, policy: Policy, found: Judged) -> str:
    """A test per demand of the policy, then a test per case, which fails where the policy does."""
    demands = [(f"policy.{policy.name}", told, _mark(found, kind)) for kind, told in KINDS.items()]
    reasons: dict[str, list[str]] = {}
    for failure in found.failures:
        for case in failure.cases:
            reasons.setdefault(case, []).append(f"{failure.kind}: {failure.told}")
    excused: dict[str, list[str]] = {}
    for standing in found.standings:
        if not standing.fails:
            excused.setdefault(standing.cell.case, []).append(excuse(standing))

    def mark(cell: Cell) -> Mark | None:
        if cell.case in reasons:
            told = "; ".join(reasons[cell.case])
            return Mark("failure", told, cell.verdict, details(cell))
        if cell.verdict in NOT_ANSWERED:
            return Mark("skipped", cell.message or cell.verdict)
        if cell.case in excused:
            return Mark("system-out", text="\n".join([*excused[cell.case], details(cell)]))
        return None

    tests: list[Tested] = [*demands]
    return junit(report, mark, [(f"policy {policy.name}", tests)])


def gate_summary(report: Report, policy: Policy, found: Judged) -> str:
    """The result and its reasons, then the page of any run."""
    return "\n".join([*_result(policy, found), *_accepted(found), summary_md(report)])


def excuse(standing: Standing) -> str:
    """Why a divergence does not fail."""
    match standing.standing:
        case "accepted" if standing.by is not None:
            return f"{standing.rule}: accepted until {standing.by.expires}: {standing.by.reason}"
        case "known":
            return f"{standing.rule}: known to the baseline"
    return f"{standing.rule}: of a level that the policy does not ask"


def told_of(failure: Failure) -> str:
    """A reason in one line: what, how often, and where to look first."""
    where = f"{failure.document}: " if failure.document else ""
    if not failure.cases:
        return f"{failure.kind}: {where}{failure.told}"
    few = ", ".join(failure.cases[:EXAMPLES])
    rest = len(failure.cases) - EXAMPLES
    more = f" and {rest:,} more" if rest > 0 else ""
    return f"{failure.kind}: {where}{failure.told}: {few}{more}"


def _mark(found: Judged, kind: str) -> Mark | None:
    told = [told_of(failure) for failure in found.failures if failure.kind == kind]
    return Mark("failure", told[0], kind, "\n".join(told)) if told else None


def _result(policy: Policy, found: Judged) -> Iterator[str]:
    yield f"# Gate: {'pass' if found.passes else 'FAIL'}"
    yield ""
    yield f"Policy {plain(policy.name)}: {plain(policy.entry.title)}."
    yield ""
    if found.failures:
        rows = [
            [each.kind, each.document, each.told, f"{len(each.cases):,}", *each.cases[:1]]
            for each in found.failures
        ]
        yield from table(
            ("what", "document", "why", "cases", "for instance"),
            ([*row, "", ""][:5] for row in rows),
        )


def _accepted(found: Judged) -> Iterator[str]:
    """What would fail and does not, and why."""
    counts: dict[str, int] = {}
    for standing in found.standings:
        if standing.standing in ("accepted", "known"):
            counts[excuse(standing)] = counts.get(excuse(standing), 0) + 1
    if counts:
        yield "## Accepted"
        yield ""
        yield from (f"- {plain(told)}: {count:,} cases" for told, count in counts.items())
        yield ""
