"""Reads the runs of a report: the cells of the last run, and what changed since earlier ones."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from sys import intern
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.reference import expect_by_kernels
from reports.behaviors.explanation import explain, sentence
from reports.behaviors.regions import has_behaviors
from reports.behaviors.tally import BehaviorSearch, behavior_search, tally_each
from reports.changes.change import KINDS, BackendChanges, ChangeKind
from reports.changes.divergences import DivergenceChange, run_changes
from reports.changes.of_runs import ChangedCells, describe_changes, have_same_inputs
from reports.findings.cells import Cell, CellKey
from reports.findings.finding import Finding, Findings
from reports.findings.left_open import left_open
from reports.findings.read_findings import (
    read_cells,
    read_checks,
    read_findings,
    read_verdicts,
    stored_ids,
)
from reports.findings.roads import RoadGroup, differing_cases, road_groups
from reports.findings.verdict_signs import NO_VERDICT
from reports.judgement import FAILING, VERDICT_DIGITS
from reports.ledger.version_spans import public_version
from reports.other_processes import done_meanwhile
from reports.run_store.open_run import RunAnswers, open_run
from reports.run_store.record import RunRecord
from reports.run_store.store import RunStore
from specs import VERSION
from specs.branches import Ruling
from specs.errors import CastigateError
from specs.formats import formats
from specs.loader import documents
from specs.ruling import CaseRule, case_rules, ruling

Version = tuple[str, str]
"""The names of a document and of one of its versions."""
Cells = Mapping[CellKey, Cell]
TextLines = tuple[str, ...]
Behaviors = dict[CellKey, TextLines]
EXPLAINERS = 2
"""Processes, besides this one, that explain the open answers of a large run."""
MANY_CELLS = 20_000
"""From this many cells on, other processes explain the open answers."""
VerdictCounts = dict[tuple[str, str], Counter[str]]
"""How often each verdict occurs, by backend and document."""


@dataclass(frozen=True)
class Report:
    """The runs of a report, oldest first, and what pages show of the last one.

    ``cells`` are the results of its cases, and ``checks`` those of its checks on dtype pairs.
    ``history`` has the verdicts of a cell in all runs, one character per run. ``trend`` has the
    verdict counts of each run. ``changes`` compares the last two runs. ``steps`` has what changed
    for each backend, since the run before or since a ledger.
    ``behaviors`` has the sentences that explain the open answers of a cell. ``findings`` has the
    findings of each backend.
    """

    records: tuple[RunRecord, ...]
    cells: dict[CellKey, Cell]
    checks: tuple[Cell, ...]
    history: dict[CellKey, str]
    changes: dict[CellKey, list[DivergenceChange]]
    trend: tuple[VerdictCounts, ...]
    behaviors: Behaviors
    findings: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    steps: tuple[BackendChanges, ...] = ()
    since: Mapping[str, str] = field(default_factory=dict)
    """Maps the id of a finding to words for the version since which it exists, or to ''."""
    left_open: Mapping[str, str] = field(default_factory=dict)
    """By backend, a line on the inputs that its documents leave open, if there are any."""

    @property
    def record(self) -> RunRecord:
        """The record of the last run."""
        return self.records[-1]

    @cached_property
    def backends(self) -> list[str]:
        """The names of the last run's backends, in the order of its record."""
        return [backend.name for backend in self.record.backends]

    @cached_property
    def road_groups(self) -> list[RoadGroup]:
        """The backends of the last run by framework."""
        return road_groups(self.backends)

    @cached_property
    def differing_cases(self) -> dict[str, frozenset[str]]:
        """By road, the cases in which its result is not that of its framework's plain backend."""
        return differing_cases(self.cells, self.road_groups)

    @cached_property
    def cases(self) -> dict[Version, list[Cell]]:
        """One cell of each case, by document and version, in the order of the documents.

        Documents with house rules come last.
        """
        cell_of_case = {cell.case: cell for cell in reversed(self.cells.values())}
        others = sorted({cell.document for cell in cell_of_case.values()} - {*documents()})
        found: dict[Version, list[Cell]] = {
            (name, version): []
            for name in (*documents(), *others)
            for version in documents()[name].entry.versions
        }
        for cell in reversed(cell_of_case.values()):
            found[cell.document, cell.version].append(cell)
        return {version: cases for version, cases in found.items() if cases}

    @cached_property
    def case_rules(self) -> dict[str, tuple[CaseRule, ...]]:
        """The rules of each case, by case id."""
        every = (cell for cases in self.cases.values() for cell in cases)
        return {cell.case: _rules_of(cell) for cell in every}

    def step(self, backend: str) -> BackendChanges | None:
        """Return what changed for a backend; None if there is nothing to compare it with."""
        return next((each for each in self.steps if each.backend == backend), None)

    def kinds_of_change(self, finding: Finding) -> list[ChangeKind]:
        """Return in which ways cases changed that a finding explains, or explained before."""
        step = self.step(finding.backend)
        changes = step.changes if step is not None else ()
        return [
            kind
            for kind in KINDS
            if any(each.kind == kind and finding.name in each.findings for each in changes)
        ]

    def cells_of_case(self, case: str) -> list[Cell]:
        """Return the cells that a case has, in the order of the backends."""
        keys = ((backend, case) for backend in self.backends)
        return [self.cells[key] for key in keys if key in self.cells]

    def verdict_counts(self, version: Version, backend: str) -> Counter[str]:
        """Count a backend's verdicts on the cases of one version of a document."""
        keys = ((backend, cell.case) for cell in self.cases[version])
        return Counter(self.cells[key].verdict for key in keys if key in self.cells)


def _rules_of(cell: Cell) -> tuple[CaseRule, ...]:
    """Return the rules of a cell's case; none if the document no longer has the case."""
    try:
        return tuple(case_rules(documents()[cell.document], cell.as_case))
    except (CastigateError, KeyError):
        return ()


def read_report(runs: Sequence[str], steps: Sequence[BackendChanges] = ()) -> Report:
    """Read complete runs, one or more, from these folders, oldest first, and report on the last.

    ``steps`` are what changed for each backend; without any, the last two runs are compared.
    Raise CastigateError if a run is incomplete or damaged, if runs are out of order, or if one of
    the last two has no cases, or an unknown document, version or dtype.
    """
    last = open_run(runs[-1])  # First, so that its own documents are those of the report.
    stores = [*(open_run(run, allows_edited=True) for run in runs[:-1]), last]
    for earlier, later in pairwise(stores):
        if later.record.started < earlier.record.started:
            raise CastigateError(
                f"run {later.folder.display_name} began before {earlier.folder.display_name}; "
                "give the runs in order, oldest first"
            )
    now = {(cell.backend, cell.case): cell for cell in _known_cells(stores[-1])}
    checks = tuple(read_checks(stores[-1]))
    changed = _changed_cells(stores, now, checks)
    changes, failed_before = _cell_changes(stores, now, changed)
    with _explained_meanwhile(runs[-1], now) as behaviors:
        findings = read_findings(stores[-1], lambda: [*now.values(), *checks])
        if changed is not None and not steps:
            steps = _steps(stores, changed, failed_before, findings)
        explanations = behaviors()
    history, trend = _history_and_trend(stores, now)
    return Report(
        tuple(store.record for store in stores),
        now,
        checks,
        history,
        changes,
        trend,
        explanations,
        findings,
        tuple(steps),
        _since(stores, findings),
        left_open(stores[-1], now.values()),
    )


def _since(stores: Sequence[RunStore], findings: Findings) -> dict[str, str]:
    runs = [PastRun(store.record.versions, stored_ids(store)) for store in stores]
    return {
        each.id: since_words(runs, backend, each.id)
        for backend, found in findings.items()
        for each in found
    }


@contextmanager
def _explained_meanwhile(run: str, cells: Cells) -> Iterator[Callable[[], Behaviors]]:
    """Yield a function that returns the explanations of a run's open answers.

    If the run is large, other processes begin to explain at once, and the function waits for them.
    It explains the answers itself if the run is small, or if one of the processes was killed.
    """

    def explain_here() -> Behaviors:
        return explain_open_answers(RunAnswers(open_run(run)), cells)

    if len(cells) < MANY_CELLS:
        yield explain_here
        return
    with TemporaryDirectory(prefix="castigate-") as folder:
        file = Path(folder, "cells")
        file.write_bytes(pickle.dumps({key: cell for key, cell in cells.items() if cell.open}))
        parts = [partial(_explain_part, run, file, number) for number in range(EXPLAINERS)]
        with done_meanwhile(parts) as explained:

            def explanations() -> Behaviors:
                results = explained()
                if results is None:
                    return explain_here()
                found = {key: lines for each in results for key, lines in each.items()}
                return {key: found[key] for key in cells if key in found}

            yield explanations


def _explain_part(run: str, file: Path, number: int) -> Behaviors:
    """Explain a share of the cells in a file."""
    cells: Cells = pickle.loads(file.read_bytes())
    share = slice(number, None, EXPLAINERS)
    return explain_open_answers(RunAnswers(open_run(run)), cells, share)


def _changed_cells(
    stores: Sequence[RunStore], now: Cells, checks: Sequence[Cell]
) -> ChangedCells | None:
    """Return what will hold the cells that changed since the run before; None without such a run.

    The checks are compared already.
    """
    if len(stores) < 2:
        return None
    known = {(each.backend, each.name): each for each in (*now.values(), *checks)}
    changed = ChangedCells(known, have_same_inputs(*(each.record for each in stores[-2:])))
    for check in read_checks(stores[-2]):
        changed.add(check)
    return changed


def _cell_changes(
    stores: Sequence[RunStore], now: Cells, changed: ChangedCells | None
) -> tuple[dict[CellKey, list[DivergenceChange]], list[Cell]]:
    """Return the changes of cells between the last two runs, and the cells that failed before.

    Cells of the run before are compared while they are read, and most are then dropped: those of
    two nights together would take twice the memory. Those that changed are added to ``changed``.
    Without a run before, there are neither.
    """
    if changed is None:
        return {}, []
    failing: list[Cell] = []

    def before() -> Iterator[Cell]:
        for cell in _known_cells(stores[-2]):
            if cell.verdict in FAILING:
                failing.append(cell)
            changed.add(cell)
            yield cell

    has_same_seed = stores[-2].record.seed == stores[-1].record.seed
    return run_changes(before(), now, has_same_seed=has_same_seed), failing


def _steps(
    stores: Sequence[RunStore], changed: ChangedCells, failing: Sequence[Cell], now: Findings
) -> list[BackendChanges]:
    """Return what changed between the last two runs, for each backend that both have.

    ``failing`` are cells of the run before the last, and ``now`` the findings of the last.
    """
    earlier, later = stores[-2:]
    names = {each.name for each in earlier.record.backends}
    common = [each.name for each in later.record.backends if each.name in names]
    found = read_findings(earlier, lambda: [*failing, *read_checks(earlier, FAILING)])
    return [*describe_changes((earlier, later), changed, (found, now), common)]


def _known_cells(store: RunStore) -> Iterator[Cell]:
    """Yield all cells of a run.

    Raise CastigateError if there are none, if a table is damaged, or for an unknown document,
    version or dtype.
    """
    has_cells = False
    for cell in read_cells(store, has_inputs=False):
        has_cells = True
        document = documents().get(cell.document)
        if document is None or cell.version not in document.entry.versions:
            raise _unknown(store, f"document `{cell.document}:{cell.version}`")
        for name in (cell.source, cell.target):
            if name not in formats():
                raise _unknown(store, f"dtype `{name}`")
        yield cell
    if not has_cells:
        raise CastigateError(
            f"run {store.folder.display_name} holds no cases; there is nothing to report"
        )


def _unknown(store: RunStore, what: str) -> CastigateError:
    return CastigateError(
        f"run {store.folder.display_name} has {what}, which castigate {VERSION} does not know; "
        "make the report with the version that wrote the run"
    )


def _history_and_trend(
    stores: Sequence[RunStore], now: Cells
) -> tuple[dict[CellKey, str], tuple[VerdictCounts, ...]]:
    """Return the history of each cell of the last run, and the trend, as a ``Report`` has them.

    Of each earlier run, only a character per cell is kept: a report has up to thirty.
    """
    place_of = {key: place for place, key in enumerate(now)}
    runs, trend = [], []
    last = ((key, cell.verdict) for key, cell in now.items())
    for verdicts in (*map(read_verdicts, stores[:-1]), last):
        digits, counts = [NO_VERDICT] * len(now), VerdictCounts()
        for key, verdict in verdicts:
            backend, case = key
            document, _, _ = case.partition(":")
            counts.setdefault((backend, document), Counter())[verdict] += 1
            if key in place_of:
                digits[place_of[key]] = VERDICT_DIGITS[verdict]
        runs.append("".join(digits))
        trend.append(counts)
    history = zip(now, zip(*runs, strict=True), strict=True)
    return {key: intern("".join(digits)) for key, digits in history}, tuple(trend)


class PastRun(NamedTuple):
    """The versions of a run's backends, by name, and the ids of its findings.

    ``findings`` is None if they are unknown.
    """

    versions: Mapping[str, str]
    findings: frozenset[str] | None


def since_words(runs: Sequence[PastRun], backend: str, finding: str) -> str:
    """Return words for the version of a backend that first had a finding, given by its id.

    ``runs`` are oldest first, and the last has the finding. Runs without the backend or with
    unknown findings are left out. The words are empty if all runs have one version, or if the first
    version with the finding also has a run without it.
    """
    first, before = public_version(runs[-1].versions[backend]), ""
    seen = {first}
    for run in reversed(runs[:-1]):
        if backend not in run.versions or run.findings is None:
            continue
        version = public_version(run.versions[backend])
        seen.add(version)
        if finding not in run.findings:
            before = version
            break
        first = version
    if before and before != first:
        return f"since {first}; {before} did not have it"
    return (
        f"in all versions of this report, from {first} on" if len(seen) > 1 and not before else ""
    )


ALL = slice(None)


@dataclass
class _CellGroup:
    """Cells of any documents that share the pair, the rounding and the inputs.

    ``asked`` is the digest of the inputs. ``rules`` has the rulings of the cells, by
    ``Ruling.meaning``: they say which inputs are open. Cells with the same meaning and the same
    digest of answers share an explanation; ``cells`` has their keys by these two.
    """

    search: BehaviorSearch
    asked: str
    rules: dict[object, Ruling] = field(default_factory=dict)
    cells: dict[tuple[object, str], list[CellKey]] = field(default_factory=dict)


def explain_open_answers(
    recorded: RunAnswers, cells: Mapping[CellKey, Cell], share: slice = ALL
) -> dict[CellKey, TextLines]:
    """Return, by cell, the sentences that explain its open answers.

    Cells without such sentences are left out. Many cells share inputs, of which their documents
    leave more or fewer open; each behavior is evaluated once per such group. With a ``share``, a
    slice of the list of groups, only their cells are explained.
    """
    groups: dict[Hashable, _CellGroup] = {}
    for key, cell in cells.items():
        rules = _rules_if_open(cell)
        if rules is not None and cell.asked is not None and cell.answers is not None:
            asked = rules.source, rules.target, rules.rounding
            group = groups.setdefault(
                (*asked, cell.asked), _CellGroup(behavior_search(*asked), cell.asked)
            )
            group.rules[rules.meaning] = rules
            group.cells.setdefault((rules.meaning, cell.answers), []).append(key)
    found = {
        key: lines
        for group in [*groups.values()][share]
        for keys, lines in zip(group.cells.values(), _explain_group(recorded, group), strict=True)
        for key in keys
    }
    return {key: found[key] for key in cells if found.get(key)}


def _rules_if_open(cell: Cell) -> Ruling | None:
    """Return the ruling of a cell that has open inputs, or None.

    None is also returned if the case has no ruling, or if no behavior can apply to its pair.
    """
    if not cell.open:
        return None
    try:
        rules = ruling(cell.as_case)
    except CastigateError:
        return None  # No cast, or the document no longer has the case.
    return rules if has_behaviors(rules.source, rules.target) else None


def _explain_group(recorded: RunAnswers, group: _CellGroup) -> Iterator[TextLines]:
    """Yield the sentences for each entry of ``group.cells``, in their order."""
    inputs = recorded.array(group.asked).values
    is_open = {meaning: _open_inputs(rules, inputs) for meaning, rules in group.rules.items()}
    ever = np.logical_or.reduce([*is_open.values()])
    answers = [recorded.array(digest).values[ever] for _, digest in group.cells]
    counted = [is_open[meaning][ever] for meaning, _ in group.cells]
    for found in tally_each(group.search, inputs[ever], answers, counted):
        yield tuple(sentence(found, line) for line in explain(found))


def _open_inputs(rules: Ruling, inputs: NDArray[Any]) -> NDArray[np.bool_]:
    if rules.is_open:
        return np.ones(inputs.size, bool)  # The kernels do not support complex128.
    return np.isin(expect_by_kernels.expect(rules, inputs).branch_indices, rules.open_branches)
