"""Reads the findings of a complete run."""

from __future__ import annotations

from itertools import chain

from reports.findings.find import find_findings
from reports.findings.finding import Finding
from reports.findings.read_cells import read_cells, read_checks
from reports.run_store.answers import RunAnswers
from reports.run_store.store import RunStore
from reports.verdicts import FAILING


def read_findings(store: RunStore) -> dict[str, tuple[Finding, ...]]:
    """The findings of each backend of a run that fails."""
    failing = chain(read_cells(store, FAILING), read_checks(store, FAILING))
    return find_findings(failing, RunAnswers(store).values)
