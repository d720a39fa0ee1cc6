"""A complete run judged by a policy: what fails, what is accepted and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date

from reports.findings.cells import FAILED, NOT_ANSWERED, Broken, Cell
from reports.findings.changes import is_known
from reports.gate.policy import AcceptedEntry, Policy, any_matches, matches

EXAMPLES = 3
"""Cases that are named for each thing that fails."""
BREAKS = ("violates", "deviates", "differs")
Baseline = Mapping[str, Cell]
"""What an earlier run says of each case."""


@dataclass(frozen=True)
class Standing:
    """A divergence, and how it stands to the policy.

    ``standing`` is `fails`, `expired`, `accepted`, `known` (to the baseline), or `not-asked` (of a
    level that need not hold). Without a rule it is an answer that did not come.
    """

    cell: Cell
    broken: Broken | None
    standing: str
    by: AcceptedEntry | None = None

    @property
    def rule(self) -> str:
        """The rule, or the verdict where no rule tells of it."""
        return self.broken.rule if self.broken else self.cell.verdict

    @property
    def fails(self) -> bool:
        return self.standing in ("fails", "expired")

    @property
    def told(self) -> str:
        """What is wrong, in words that its like share."""
        if self.broken is None:
            told = self.cell.verdict
        else:
            told = f"{self.broken.rule} ({self.broken.clause}, {self.broken.level})"
        if self.standing == "expired" and self.by is not None:
            told += f": was accepted until {self.by.expires} ({self.by.reason})"
        return told


@dataclass
class Failure:
    """One reason why the gate fails, and the cases that show it."""

    kind: str
    document: str
    told: str
    cases: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Judged:
    """What a policy makes of a run."""

    cells: tuple[Cell, ...]
    standings: tuple[Standing, ...]
    failures: tuple[Failure, ...]

    @property
    def passes(self) -> bool:
        return not self.failures

    @property
    def ran(self) -> bool:
        """Whether any case was answered in some way."""
        return any(cell.verdict not in NOT_ANSWERED for cell in self.cells)


def judged(
    policy: Policy,
    cells: Iterable[Cell],
    expected: Iterable[str],
    baseline: Baseline | None,
    on: date,
    seconds: int,
) -> Judged:
    """Judge the cells of a run, of which these cases are expected, as of a day."""
    found = {cell.case: cell for cell in cells}
    reasons = _Reasons()
    for case in expected:
        if case not in found:
            reasons.add("missing", case, "the run has no such case")
    standings = []
    for cell in found.values():
        for standing in _standings(policy, cell, baseline, on):
            standings.append(standing)
            if standing.fails:
                kind = "divergence" if standing.broken else cell.verdict
                reasons.add(
                    "expired" if standing.standing == "expired" else kind, cell.case, standing.told
                )
        lost = _lost(policy, cell, baseline)
        if lost:
            reasons.add(cell.verdict, cell.case, lost)
        hollow = _hollow(cell)
        if hollow:
            reasons.add("hollow", cell.case, hollow)
    for pattern, per_cent in policy.entry.minimum_coverage.items():
        short = _short(pattern, per_cent, found.values())
        if short:
            reasons.add("coverage", "", short)
    limit = policy.entry.time_limit
    if limit is not None and seconds > limit:
        reasons.add("time-limit", "", f"the run took {seconds} s; {limit} s are allowed")
    return Judged(tuple(found.values()), tuple(standings), reasons.found)


class _Reasons:
    """Gathers failures; those that are told alike, of one document, are one."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str, str], Failure] = {}

    def add(self, kind: str, case: str, told: str) -> None:
        document = case.partition(":")[0]
        failure = self._of.setdefault((kind, document, told), Failure(kind, document, told))
        if case:
            failure.cases.append(case)

    @property
    def found(self) -> tuple[Failure, ...]:
        return tuple(self._of.values())


def _standings(
    policy: Policy, cell: Cell, baseline: Baseline | None, on: date
) -> Iterator[Standing]:
    """Each divergence of a cell; an answer that did not come is one without a rule."""
    before = baseline.get(cell.case) if baseline is not None else None
    told: list[Broken | None] = [*cell.broken]
    if cell.verdict in FAILED or (cell.verdict in BREAKS and not told):
        told.append(None)
    for broken in told:
        if broken is not None and broken.level not in policy.entry.levels:
            yield Standing(cell, broken, "not-asked")
            continue
        rule, region = (broken.rule, broken.digest) if broken else (cell.verdict, "")
        taking = [each for each in policy.entry.accepted if each.takes(cell.case, rule, region)]
        valid = [each for each in taking if each.expires >= on.isoformat()]
        if valid:
            yield Standing(cell, broken, "accepted", valid[0])
        elif before is not None and is_known(before, cell, broken):
            yield Standing(cell, broken, "known")
        elif taking:
            yield Standing(cell, broken, "expired", taking[0])
        else:
            yield Standing(cell, broken, "fails")


def _lost(policy: Policy, cell: Cell, baseline: Baseline | None) -> str:
    """Why an answer that did not come is missed, if it is."""
    if cell.verdict == "not-run":
        return "was not run"
    if cell.verdict != "unsupported":
        return ""
    before = baseline.get(cell.case) if baseline is not None else None
    if before is not None:
        return "" if before.verdict in NOT_ANSWERED else "was answered in the baseline"
    if any_matches(policy.entry.may_be_unsupported, cell.case):
        return ""
    return "may not be unsupported"


def _hollow(cell: Cell) -> str:
    """Why a good verdict cannot be believed, if it cannot: nothing was asked, or it is at odds."""
    if cell.verdict not in ("conforms", "open"):
        return ""
    if cell.broken or cell.wrong:
        return f"{cell.verdict}, with wrong answers"
    if not cell.inputs and cell.asks_inputs:
        return f"{cell.verdict}, with nothing asked"
    return ""


def _short(pattern: str, per_cent: int, cells: Iterable[Cell]) -> str:
    """How a pattern's cases fall short of the coverage wanted, if they do."""
    among = [cell for cell in cells if matches(pattern, cell.case)]
    answered = sum(cell.verdict not in NOT_ANSWERED for cell in among)
    if among and 100 * answered >= per_cent * len(among):
        return ""
    return f"{answered:,} of {len(among):,} cases of {pattern} are answered; {per_cent}% are wanted"


def verdict_counts(cells: Iterable[Cell]) -> dict[str, dict[str, int]]:
    """How often each verdict occurs, by version of a document."""
    found: dict[str, Counter[str]] = {}
    for cell in cells:
        found.setdefault(f"{cell.document}:{cell.version}", Counter())[cell.verdict] += 1
    return {version: dict(counts) for version, counts in found.items()}
