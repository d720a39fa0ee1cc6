"""Reads runs as rows of the board: a version of a backend, by its last good run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import NamedTuple

from conformance.extras.board.asked import Candidate, answers_of
from conformance.extras.board.board_file import AskedAnswer, FailedRun, Reported
from reports.findings.cells import Cell, Divergence
from reports.findings.finding import ExplainedCase, Finding
from reports.findings.finding_text import share_words
from reports.findings.issue_text import script_or_command
from reports.findings.read_findings import read_cells, read_checks, read_findings
from reports.gate.canonical_json import digest_of
from reports.gate.certificate import FILE as CERTIFICATE
from reports.gate.certificate import file_digests
from reports.judgement import BREAKS_RULE, FAILING, NO_ANSWER, NOT_RUN
from reports.ledger.version_spans import version_order
from reports.run_store.open_run import RunAnswers, open_run, read_batches
from reports.run_store.record import RunRecord
from reports.run_store.storage import folder_at
from reports.run_store.store import RECORD, RunStore, read_record
from specs.errors import CastigateError

Warn = Callable[[str], None]
"""Tells the user, in one line, about a run that is not shown."""


class CellName(NamedTuple):
    """A case on the board: its document as ``DOCUMENT:VERSION``, its pair, and its mode."""

    edition: str
    source: str
    target: str
    mode: str

    @property
    def case(self) -> str:
        """The id of the case."""
        return "/".join(filter(None, self))


@dataclass(frozen=True, slots=True)
class WrongInput:
    """A wrong case: the rule that it breaks, the simplest input, and a script that shows it.

    ``smallest``, ``answer`` and ``allowed`` are patterns in hex, or texts. Without an input,
    ``told`` says what happened.
    """

    rule: str
    clause: str
    level: str
    wrong: int
    is_exact: bool
    smallest: str
    answer: str
    allowed: tuple[str, ...]
    told: str
    script: str

    @classmethod
    def of_finding(cls, finding: Finding, share: ExplainedCase) -> WrongInput:
        """Return the example of a finding in one case."""
        told = "" if share.smallest else share_words(share) or share.answer
        script = script_or_command(replace(finding, explained=(share,)))
        return cls(
            share.rule, share.clause, share.level, share.inputs, share.is_exact,
            share.smallest, share.answer, share.allowed, told, script,
        )  # fmt: skip

    @classmethod
    def of_broken_rule(cls, cell: Cell, broken: Divergence) -> WrongInput:
        """Return the example of a rule that a cell breaks, which no finding explains."""
        return cls(
            broken.rule, broken.clause, broken.level, broken.wrong, cell.reaches_ends,
            broken.smallest or "", broken.answer or "", broken.allowed,
            "" if broken.smallest else cell.message, cell.reproduction,
        )  # fmt: skip


@dataclass(frozen=True)
class RowFindings:
    """The findings of a row, and by case the place of each that explains it, with its example."""

    findings: tuple[Finding, ...] = ()
    explained: Mapping[str, Sequence[tuple[int, WrongInput]]] = field(default_factory=dict)


@dataclass(frozen=True)
class GoodRun:
    """Holds the answers of a backend in a run.

    ``verdicts`` has the cases of the newest version of each document. ``broken`` has an example of
    each wrong one that no finding explains, by the id of the case.
    """

    backend: str
    version: str
    started: datetime
    digest: str
    tier: str
    machine: str
    answers: tuple[AskedAnswer | None, ...]
    verdicts: Mapping[CellName, str]
    findings: RowFindings
    broken: Mapping[str, WrongInput]
    reported: Reported | None = None

    @property
    def day(self) -> date:
        """The day on which the run began."""
        return self.started.date()

    @property
    def names(self) -> frozenset[str]:
        """The names of the findings."""
        return frozenset(each.name for each in self.findings.findings)


@dataclass(frozen=True)
class FailedAttempt:
    """A run in which a backend answered nothing, and why."""

    backend: str
    version: str
    started: datetime
    why: str

    @property
    def day(self) -> date:
        """The day on which the run began."""
        return self.started.date()

    @property
    def entry(self) -> FailedRun:
        """The attempt as an entry of ``board.json``."""
        return FailedRun(date=self.day.isoformat(), version=self.version, why=self.why)


Attempt = GoodRun | FailedAttempt


def read_attempts(run: str, warn: Warn) -> Iterator[Attempt]:
    """Return an iterator over a run's good run or failed attempt of each backend.

    It reads the run's tables only when it is advanced. If these are damaged, it warns, and yields
    failed attempts. Raise CastigateError at once if the folder
    holds no run, or a shard.
    """
    folder = folder_at(run)
    names = folder.names()
    if CERTIFICATE in names and RECORD not in names:
        raise CastigateError(
            f"{folder.display_name} is the folder of a gate; say whose it is: --reported NAME={run}"
        )
    record = read_record(folder, allows_edited=True)
    if record.shard is not None and record.complete:
        open_run(run)  # Its error says what to do with a shard.
    return _attempts(run, record, warn)


def _attempts(run: str, record: RunRecord, warn: Warn) -> Iterator[Attempt]:
    if not record.complete:
        yield from _failures(record, "the run did not end")
        return
    try:
        yield from read_good_run(open_run(run, allows_edited=True))
    except CastigateError as error:
        warn(str(error))
        yield from _failures(record, "its run cannot be read")


def _failures(record: RunRecord, why: str) -> Iterator[FailedAttempt]:
    for each in record.backends:
        yield FailedAttempt(each.name, each.version, record.started, why)


def read_good_run(store: RunStore, reported: Reported | None = None) -> list[Attempt]:
    """Return what each backend of a complete run answered; a failure if it answered nothing.

    Raise CastigateError if a table is damaged.
    """
    reader = _RunReader(store)
    reader.read()
    return [*reader.attempts(reported)]


class _RunReader:
    """Reads all cells of a run once, and keeps what rows need."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self.newest = _newest_versions(store)
        self.counts: dict[str, Counter[str]] = {}
        self.verdicts: dict[str, dict[CellName, str]] = {}
        self.candidates: dict[str, list[Candidate]] = {}
        self.claimed: dict[str, set[str]] = {}
        self.unclaimed: dict[str, set[str]] = {}
        self.broken: dict[str, dict[str, WrongInput]] = {}
        self.failing: list[Cell] = []

    def read(self) -> None:
        for name in (each.name for each in self.store.record.backends):
            self.counts[name], self.verdicts[name] = Counter(), {}
            self.candidates[name], self.broken[name] = [], {}
            self.claimed[name], self.unclaimed[name] = set(), set()
        for cell in read_cells(self.store, has_inputs=False):
            self._add(cell)

    def _add(self, cell: Cell) -> None:
        self.counts[cell.backend][cell.verdict] += 1
        if cell.verdict in FAILING:
            self.failing.append(cell)
        if cell.verdict in BREAKS_RULE:
            self.claimed[cell.backend].add(cell.document)
        if cell.verdict == "differs":
            self.unclaimed[cell.backend].add(cell.document)
        if self.newest[cell.backend, cell.document] != cell.version:
            return
        name = CellName(f"{cell.document}:{cell.version}", cell.source, cell.target, cell.mode)
        self.verdicts[cell.backend][name] = cell.verdict
        if cell.broken:
            self.broken[cell.backend][cell.case] = WrongInput.of_broken_rule(cell, cell.broken[0])
        elif cell.verdict in NO_ANSWER:
            told = WrongInput("", "", "", 0, True, "", "", (), cell.message, cell.reproduction)
            self.broken[cell.backend][cell.case] = told
        if (candidate := Candidate.of(cell)) is not None:
            self.candidates[cell.backend].append(candidate)

    def attempts(self, reported: Reported | None) -> Iterator[Attempt]:
        record = self.store.record
        checks = read_checks(self.store, FAILING)
        found = read_findings(self.store, lambda: [*self.failing, *checks])
        held = RunAnswers(self.store, self._digests())
        digest = digest_of(file_digests(self.store))
        for backend in record.backends:
            name, counts = backend.name, self.counts[backend.name]
            if not any(verdict not in (*NOT_RUN, *NO_ANSWER) for verdict in counts):
                yield FailedAttempt(
                    name, backend.version, record.started, _nothing_answered(counts)
                )
                continue
            yield GoodRun(
                name, backend.version, record.started, digest, record.tier,
                ", ".join(dict.fromkeys(each.machine for each in record.environments)),
                answers_of(self.candidates[name], self._claim_order(name), held),
                self.verdicts[name], _row_findings(found.get(name, ()), self.verdicts[name]),
                self.broken[name], reported,
            )  # fmt: skip

    def _claim_order(self, backend: str) -> Callable[[str], int]:
        """Return the key that sorts documents: those that a backend claims, perhaps claims, or not.

        A run does not record claims, but verdicts show some: the verdict on a broken document is
        `differs` if and only if the backend does not claim it. A backend with no other wrong
        verdict is taken to claim nothing.
        """
        claimed, unclaimed = self.claimed[backend], self.unclaimed[backend]

        def place(document: str) -> int:
            if document in claimed:
                return 0
            return 2 if document in unclaimed or not claimed else 1

        return place

    def _digests(self) -> set[str]:
        every = (one for found in self.candidates.values() for one in found)
        return {digest for one in every for digest in (one.asked, one.answers) if digest}


def _newest_versions(store: RunStore) -> dict[tuple[str, str], str]:
    """Map each backend and document of a run to the document's newest version there."""
    found: dict[tuple[str, str], set[str]] = {}
    for batch in read_batches(store, "cases.parquet", ("backend", "document", "version")):
        rows = zip(*(batch[name].to_pylist() for name in batch.schema.names), strict=True)
        for backend, document, version in {*rows}:
            found.setdefault((backend, document), set()).add(version)
    return {key: max(versions, key=version_order) for key, versions in found.items()}


def _nothing_answered(counts: Counter[str]) -> str:
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common())
    return f"it answered nothing: {told or 'no case was run'}"


def _row_findings(findings: Sequence[Finding], shown: Mapping[CellName, str]) -> RowFindings:
    cases = {name.case for name in shown}
    explained: dict[str, list[tuple[int, WrongInput]]] = {}
    for place, finding in enumerate(findings):
        for share in finding.explained:
            if share.cell.check or share.cell.case not in cases:
                continue
            known = explained.setdefault(share.cell.case, [])
            # A case may break several rules by one finding, whose worst comes first.
            if place not in dict(known):
                known.append((place, WrongInput.of_finding(finding, share)))
    return RowFindings(tuple(findings), explained)
