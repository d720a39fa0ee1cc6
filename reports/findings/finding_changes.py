"""Compares the findings of two runs: which are new, changed or mended."""

from __future__ import annotations

from dataclasses import dataclass

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


def finding_changes(before: Findings, now: Findings, *, has_same_seed: bool) -> list[FindingChange]:
    """List the findings that are new, then those changed, then those mended.

    Both runs must have the same backends: all findings of another backend count as new or mended.
    Unless both ``has_same_seed``, they asked other inputs, and only cases are compared.
    """
    old, new = (
        {each.id: each for found in findings.values() for each in found}
        for findings in (before, now)
    )
    changes = [FindingChange("new", each) for name, each in new.items() if name not in old]
    for name, each in new.items():
        if name in old and (words := _difference(old[name], each, has_same_seed)):
            changes.append(FindingChange("changed", each, words))
    return changes + [
        FindingChange("mended", each) for name, each in old.items() if name not in new
    ]


def _difference(before: Finding, now: Finding, has_same_seed: bool) -> str:
    if set(before.cases) != set(now.cases):
        return f"from {len(before.cases):,} to {len(now.cases):,} cases"
    if not has_same_seed:
        return ""
    if before.inputs != now.inputs:
        return f"from {before.inputs:,} to {now.inputs:,} inputs"
    regions = [[(each.cell.case, each.digest) for each in one.explained] for one in (before, now)]
    return "" if regions[0] == regions[1] else "other inputs or answers"
