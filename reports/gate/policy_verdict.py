"""Applies a policy to a complete run: what fails, what is accepted, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from reports.case_patterns import any_matches, document_of, matches
from reports.findings.cells import Cell, Divergence
from reports.findings.finding_text import shortened
from reports.gate.baseline import EarlierRun
from reports.gate.fault_comparison import broken_rules, problems_of
from reports.gate.policy import AcceptedEntry, Policy
from reports.judgement import BREAKS_RULE, NO_ANSWER, NOT_RUN
from reports.problem_words import joined_words
from reports.problems import Unoffered
from specs.operations import is_cast

EXAMPLES = 3
"""The most cases that are named for each failure."""


@dataclass(frozen=True)
class PolicyDivergence:
    """A failure of a cell, and whether the policy lets it pass.

    ``status`` is `fails`, `expired`, `accepted`, `known` (to the baseline), or `not-asked` (of a
    level that the policy does not name). If ``broken`` is None, the failure is the cell's verdict.
    """

    cell: Cell
    broken: Divergence | None
    status: str
    accepted_by: AcceptedEntry | None = None

    @property
    def rule(self) -> str:
        """The broken rule, or the verdict of the cell if ``broken`` is None."""
        return self.broken.rule if self.broken else self.cell.verdict

    @property
    def fails(self) -> bool:
        return self.status in ("fails", "expired")

    @property
    def kind(self) -> str:
        """The kind of ``GateFailure`` that the divergence makes, if it fails."""
        if self.status == "expired":
            return "expired"
        if self.broken is None:
            return self.cell.verdict
        return "layout" if self.cell.check else "divergence"

    @property
    def reason(self) -> str:
        """The broken rule, or the verdict with its message; cases that fail alike have the same.

        The reason of an expired acceptance is added.
        """
        if self.broken is None:
            text = ": ".join(filter(None, (self.cell.verdict, shortened(self.cell.message))))
        else:
            text = f"{self.broken.rule} ({self.broken.clause}, {self.broken.level})"
        if self.status == "expired" and self.accepted_by is not None:
            text += f": was accepted until {self.accepted_by.expires} ({self.accepted_by.reason})"
        return text


@dataclass
class GateFailure:
    """One reason why the gate fails, and the cases that it concerns.

    Certificates hold ``kind`` and ``reason``, so their texts are part of the format.
    """

    kind: str
    document: str
    reason: str
    cases: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PolicyVerdict:
    """The result of applying a policy to a run; the gate passes if ``failures`` is empty.

    ``cells`` are the results of cases, ``checks`` those of checks on dtype pairs.
    """

    cells: tuple[Cell, ...]
    checks: tuple[Cell, ...]
    divergences: tuple[PolicyDivergence, ...]
    failures: tuple[GateFailure, ...]
    unused: tuple[AcceptedEntry, ...] = ()
    """Acceptances that are the ``accepted_by`` of none of ``divergences``."""

    @property
    def answered(self) -> dict[str, int]:
        """The numbers of cases, inputs and checks that the verdict covers.

        ``cases`` counts all cases, ``answered`` and ``unsupported`` some of them. ``accepted`` and
        ``known`` count cases and checks with a failure that the policy or the baseline lets pass.
        ``unjudged`` is left out if it is 0.
        """
        names = {
            status: {each.cell.name for each in self.divergences if each.status == status}
            for status in ("accepted", "known")
        }
        unjudged = {"unjudged": len(self.unjudged)} if self.unjudged else {}
        is_answered = [cell.verdict not in (*NOT_RUN, *NO_ANSWER) for cell in self.cells]
        return {
            "cases": len(self.cells),
            "answered": sum(is_answered),
            "unsupported": sum(cell.verdict == "unsupported" for cell in self.cells),
            "accepted": len(names["accepted"]),
            "known": len(names["known"]),
            "inputs": sum(cell.inputs for cell in self.cells),
            "checks": sum(cell.verdict not in NOT_RUN for cell in self.checks),
            **unjudged,
        }

    @property
    def unjudged(self) -> dict[str, str]:
        """The names of cases and checks that were judged only in part, each with the reason.

        Either the backend declined a part of what was requested, or a case has no answer at all,
        which the policy or the baseline lets pass.
        """
        found = {
            each.cell.name: f"no answer: {each.reason}"
            for each in self.divergences
            if each.broken is None
            and each.status in ("accepted", "known")
            and not (each.cell.check or each.cell.asked or each.cell.is_answered)
        }
        for cell in (*self.cells, *self.checks):
            declined = [each for each in cell.limits if isinstance(each, Unoffered)]
            if declined:
                found[cell.name] = joined_words(declined)
        return found

    @property
    def passed_over(self) -> tuple[str, ...]:
        """The names of cases and checks that break a rule of a level that the policy leaves out."""
        found = (each.cell.name for each in self.divergences if each.status == "not-asked")
        return tuple(dict.fromkeys(found))

    @property
    def passes(self) -> bool:
        return not self.failures

    @property
    def ran(self) -> bool:
        """Whether the backend got a case and did not decline it, even if only an error came."""
        return any(cell.verdict not in NOT_RUN for cell in self.cells)


def apply_policy(
    policy: Policy,
    cells: Iterable[Cell],
    checks: Iterable[Cell],
    expected: Iterable[str],
    baseline: EarlierRun | None,
    day: date,
    seconds: int,
) -> PolicyVerdict:
    """Return the verdict of a policy on the results of a run.

    ``expected`` are the names of cases and checks that the run must have; one that it lacks is a
    failure. ``baseline`` is None if the policy compares with none. Acceptances that end before
    ``day`` have expired, and ``seconds`` is the time that the run took.
    """
    cells, checks = tuple(cells), tuple(checks)
    found = {cell.name: cell for cell in (*cells, *checks)}
    failures = _Failures()
    for case in expected:
        if case not in found:
            failures.add("missing", case, "the run does not have it")
    divergences = []
    for cell in found.values():
        for divergence in _divergences(policy, cell, baseline, day):
            divergences.append(divergence)
            if divergence.fails:
                failures.add(divergence.kind, cell.name, divergence.reason)
        if missing := _missing_answer(policy, cell, baseline):
            failures.add(cell.verdict, cell.name, missing)
        if hollow := _hollow_verdict(cell):
            failures.add("hollow", cell.name, hollow)
    answered = [each for each in cells if each.verdict not in NOT_RUN]
    # An answer is judged if it was compared with what its document says.
    if answered and not any(each.inputs > 0 and each.verdict != "open" for each in answered):
        failures.add("nothing-judged", "", "every case is open, or has no answer to judge")
    for shortfall in _coverage_shortfalls(policy, cells):
        failures.add("coverage", "", shortfall)
    limit = policy.entry.time_limit
    if limit is not None and seconds > limit:
        failures.add("time-limit", "", f"the run took {seconds} s; {limit} s are allowed")
    used = [each.accepted_by for each in divergences]
    unused = tuple(entry for entry in policy.entry.accepted if entry not in used)
    return PolicyVerdict(cells, checks, tuple(divergences), failures.found, unused)


class _Failures:
    """Collects failures; cases of one document that fail for the same reason share one."""

    def __init__(self) -> None:
        self._by_reason: dict[tuple[str, str, str], GateFailure] = {}

    def add(self, kind: str, case: str, reason: str) -> None:
        document = document_of(case)
        key = (kind, document, reason)
        failure = self._by_reason.setdefault(key, GateFailure(*key))
        if case:
            failure.cases.append(case)

    @property
    def found(self) -> tuple[GateFailure, ...]:
        return tuple(self._by_reason.values())


def _divergences(
    policy: Policy, cell: Cell, baseline: EarlierRun | None, day: date
) -> Iterator[PolicyDivergence]:
    """Yield each failure of a cell with its status under a policy on a day."""
    for failing, broken in _failures(cell):
        if broken is not None and broken.level not in policy.levels_of(cell.name):
            yield PolicyDivergence(failing, broken, "not-asked")
            continue
        found = failing.failure_by(broken)
        entries = [each for each in policy.entry.accepted if each.accepts(cell.name, found)]
        valid = [entry for entry in entries if entry.expires >= day.isoformat()]
        if valid:
            yield PolicyDivergence(failing, broken, "accepted", valid[0])
        elif baseline is not None and baseline.has(failing, broken):
            yield PolicyDivergence(failing, broken, "known")
        elif entries:
            yield PolicyDivergence(failing, broken, "expired", entries[0])
        else:
            yield PolicyDivergence(failing, broken, "fails")


def _failures(cell: Cell) -> Iterator[tuple[Cell, Divergence | None]]:
    """Yield a cell with each rule that it breaks, and with None for each way to lack an answer.

    A verdict that says that rules are broken comes with None if no rule is known. A check that
    breaks rules may also lack an answer, and a process may have died before it answered. No
    acceptance of a rule excuses these, so they come as a copy of the cell with the verdict `error`
    or `crashed`, and a message about them.
    """
    rules = broken_rules(cell)
    yield from ((cell, broken) for broken in rules)
    if cell.verdict in NO_ANSWER or (cell.verdict in (*BREAKS_RULE, "differs") and not rules):
        yield cell, None
    elif cell.check and (missing := problems_of(cell, None)):
        yield replace(cell, verdict="error", message=joined_words(missing)), None
    if cell.verdict != "crashed" and (deaths := problems_of(cell, None, "crashed")):
        yield replace(cell, verdict="crashed", message=joined_words(deaths)), None


def _missing_answer(policy: Policy, cell: Cell, baseline: EarlierRun | None) -> str:
    """Return why a case that was declined or not run fails the policy; empty if it does not."""
    if cell.verdict == "not-run":
        return "was not run"
    # The cases of a pair say already that it is not supported.
    if cell.verdict != "unsupported" or cell.check:
        return ""
    before = baseline.cells.get(cell.case) if baseline is not None else None
    if before is not None:
        return "" if before.verdict in NOT_RUN else "was answered in the baseline"
    if any_matches(policy.entry.may_be_unsupported, cell.case):
        return ""
    return "may not be unsupported"


def _hollow_verdict(cell: Cell) -> str:
    """Return why a cell's counts contradict `conforms` or `open`; empty if they do not."""
    if cell.verdict not in ("conforms", "open"):
        return ""
    if cell.broken or cell.wrong:
        return f"{cell.verdict}, with wrong answers"
    # Cases of other operations may have no inputs.
    if not cell.inputs and is_cast(cell.as_case):
        return f"{cell.verdict}, with nothing asked"
    return ""


def _coverage_shortfalls(policy: Policy, cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a sentence for each ``minimum_coverage`` of a policy that its cases fall short of.

    That is a percentage of all cases that match, and of these the answered ones count, whatever the
    verdict: all but `unsupported` and `not-run`. If no case matches, it falls short too.
    """
    for pattern, per_cent in policy.entry.minimum_coverage.items():
        matching = [cell for cell in cells if matches(pattern, cell.case)]
        yield from _shortfall(pattern, per_cent, matching)
    for entry in policy.entry.cases:
        if entry.minimum_coverage is not None:
            of_entry = [cell for cell in cells if policy.entry_of(cell.case) is entry]
            yield from _shortfall(" ".join(entry.match), entry.minimum_coverage, of_entry)


def _shortfall(patterns: str, per_cent: int, cells: Sequence[Cell]) -> Iterator[str]:
    answered = sum(cell.verdict not in NOT_RUN for cell in cells)
    if not cells or 100 * answered < per_cent * len(cells):
        count = f"{answered:,} of {len(cells):,} cases of {patterns} are answered"
        yield f"{count}; {per_cent}% are wanted"


def verdict_counts(cells: Iterable[Cell]) -> dict[str, dict[str, int]]:
    """Map each ``DOCUMENT:VERSION`` to how often each verdict occurs among its cells."""
    counts: dict[str, Counter[str]] = {}
    for cell in cells:
        counts.setdefault(f"{cell.document}:{cell.version}", Counter())[cell.verdict] += 1
    return {version: dict(each) for version, each in counts.items()}
