"""Compares the findings of two runs: which are new, changed or mended."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from reports.findings.cells import CellKey
from reports.findings.finding import Finding, Findings

CHANGE_KINDS = ("new", "changed", "mended")


@dataclass(frozen=True)
class FindingChange:
    """How a finding changed: `new`, `changed` or `mended`; ``words`` say from what to what.

    The words are empty unless it is `changed`.
    """

    kind: str
    finding: Finding
    words: str = ""


def finding_changes(
    before: Findings,
    now: Findings,
    *,
    has_same_seed: bool,
    not_compared: Container[CellKey] = (),
) -> list[FindingChange]:
    """List the findings that are new, then those changed, then those mended.

    Both runs must have the same backends: all findings of another backend count as new or mended.
    Unless both ``has_same_seed``, they asked other inputs, and only cases are compared. Of the
    cases ``not_compared``, which one of the runs did not ask, no finding is new, changed or mended.
    """

    def compared(finding: Finding) -> list[str]:
        return [case for case in finding.cases if (finding.backend, case) not in not_compared]

    old, new = (
        {each.id: each for found in findings.values() for each in found}
        for findings in (before, now)
    )

    def alone(these: Mapping[str, Finding], those: Mapping[str, Finding]) -> list[Finding]:
        return [each for name, each in these.items() if name not in those and compared(each)]

    changes = [FindingChange("new", each) for each in alone(new, old)]
    for name, each in new.items():
        if name not in old:
            continue
        cases = compared(old[name]), compared(each)
        if set(cases[0]) != set(cases[1]):
            words = f"from {len(cases[0]):,} to {len(cases[1]):,} cases"
        else:
            words = _difference(old[name], each) if has_same_seed else ""
        if words:
            changes.append(FindingChange("changed", each, words))
    return changes + [FindingChange("mended", each) for each in alone(old, new)]


def _difference(before: Finding, now: Finding) -> str:
    if before.inputs != now.inputs:
        return f"from {before.inputs:,} to {now.inputs:,} inputs"
    regions = [[(each.cell.case, each.digest) for each in one.explained] for one in (before, now)]
    return "" if regions[0] == regions[1] else "other inputs or answers"
