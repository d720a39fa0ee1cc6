"""All that the pages tell: the last of some runs, and what the runs before say of its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from reports.findings.case_rules import Part, parts
from reports.findings.cells import Cell, Key
from reports.findings.changes import Change, all_changes
from reports.findings.open_answers import Lines, explanations
from reports.findings.read_cells import cells, verdicts
from reports.findings.verdict_signs import ABSENT, CODES
from reports.run_store.answers import KeptAnswers
from reports.run_store.open_run import open_run
from reports.run_store.record import RunRecord
from reports.run_store.store import RunStore
from specs.errors import CastigateError
from specs.formats import formats
from specs.loader import documents
from specs.release import VERSION

Version = tuple[str, str]
"""A document and one of its versions."""
Row = tuple[str, str]
"""A backend and a document."""


@dataclass(frozen=True)
class Report:
    """The runs of a report, the last of them in full."""

    records: tuple[RunRecord, ...]
    cells: dict[Key, Cell]
    history: dict[Key, str]
    changes: dict[Key, list[Change]]
    trend: tuple[dict[Row, Counter[str]], ...]
    behaviours: dict[Key, Lines]

    @property
    def record(self) -> RunRecord:
        """The record of the run that is shown."""
        return self.records[-1]

    @cached_property
    def backends(self) -> list[str]:
        """The backends in the order in which they were given."""
        return [backend.name for backend in self.record.backends]

    @cached_property
    def cases(self) -> dict[Version, list[Cell]]:
        """One cell of each case, by version, in the order of the documents."""
        one_of = {cell.case: cell for cell in reversed(self.cells.values())}
        found: dict[Version, list[Cell]] = {
            (name, version): []
            for name, made in documents().items()
            for version in made.entry.versions
        }
        for cell in reversed(one_of.values()):
            found[cell.document, cell.version].append(cell)
        return {version: cases for version, cases in found.items() if cases}

    @cached_property
    def parts(self) -> dict[str, tuple[Part, ...]]:
        """Which rule takes which inputs of each case."""
        every = (cell for cases in self.cases.values() for cell in cases)
        return {cell.case: tuple(parts(cell)) for cell in every}

    def of_case(self, case: str) -> list[Cell]:
        """What the backends make of a case, in their order."""
        keys = ((backend, case) for backend in self.backends)
        return [self.cells[key] for key in keys if key in self.cells]

    def counts(self, version: Version, backend: str) -> Counter[str]:
        """How often each verdict occurs."""
        keys = ((backend, cell.case) for cell in self.cases[version])
        return Counter(self.cells[key].verdict for key in keys if key in self.cells)


def read_report(runs: Sequence[str]) -> Report:
    """Read runs, the oldest first, or raise an error that says which cannot be told."""
    stores = [open_run(run) for run in runs]
    for earlier, later in pairwise(stores):
        if later.record.started < earlier.record.started:
            raise CastigateError(
                f"{later.place.given} began before {earlier.place.given}; "
                "give the runs in their order, the oldest first"
            )
    now = _cells(stores[-1])
    before = _cells(stores[-2]) if len(stores) > 1 else {}
    columns = [dict(verdicts(store)) for store in stores[:-1]]
    columns.append({key: cell.verdict for key, cell in now.items()})
    return Report(
        tuple(store.record for store in stores),
        now,
        {key: "".join(map(_letter(key), columns)) for key in now},
        all_changes(before, now),
        tuple(map(_counted, columns)),
        explanations(KeptAnswers(stores[-1]), now),
    )


def _cells(store: RunStore) -> dict[Key, Cell]:
    found = {}
    for cell in cells(store):
        made = documents().get(cell.document)
        if made is None or cell.version not in made.entry.versions:
            raise _unknown(store, f"`{cell.document}:{cell.version}` among its documents")
        for name in (cell.source, cell.target):
            if name not in formats():
                raise _unknown(store, f"`{name}` among its dtypes")
        found[cell.backend, cell.case] = cell
    if not found:
        raise CastigateError(f"{store.place.given} holds no case; there is nothing to report")
    return found


def _unknown(store: RunStore, what: str) -> CastigateError:
    return CastigateError(
        f"{store.place.given} has {what}, which castigate {VERSION} does not know; "
        "use the version that wrote it"
    )


def _letter(key: Key) -> Callable[[dict[Key, str]], str]:
    """The verdict on a cell as one letter, run by run."""
    return lambda column: CODES[column[key]] if key in column else ABSENT


def _counted(column: dict[Key, str]) -> dict[Row, Counter[str]]:
    """How often each verdict occurs, by backend and document."""
    found: dict[Row, Counter[str]] = {}
    for (backend, case), verdict in column.items():
        document, _, _ = case.partition(":")
        found.setdefault((backend, document), Counter())[verdict] += 1
    return found
