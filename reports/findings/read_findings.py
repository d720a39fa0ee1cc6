"""Reads the findings of a complete run."""

from __future__ import annotations

from reports.diff.verdicts import FAILING
from reports.findings.find import find_findings
from reports.findings.finding import Finding
from reports.findings.read_cells import read_cells
from reports.run_store.answers import RunAnswers
from reports.run_store.store import RunStore


def read_findings(store: RunStore) -> dict[str, tuple[Finding, ...]]:
    """The findings of each backend of a run that fails."""
    return find_findings(read_cells(store, FAILING), RunAnswers(store).values)
