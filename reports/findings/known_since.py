"""Finds since which version of its backend a finding exists, from the runs of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reports.ledger.version_spans import public_version


class PastRun(NamedTuple):
    """The versions of a run's backends, and the ids of its findings; None if they are unknown."""

    versions: Mapping[str, str]
    findings: frozenset[str] | None


def since_words(runs: Sequence[PastRun], backend: str, finding: str) -> str:
    """Say which version first had a finding, or that all have it; empty for a single version.

    ``runs`` are in order, the last has the finding.
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
