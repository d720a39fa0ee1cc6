"""What has changed in a case on a backend since the previous run, divergence by divergence."""

from __future__ import annotations

from dataclasses import dataclass

from reports.findings.cells import FAILED, Broken, Cell, Key
from reports.run_store.record import RunRecord

Name = tuple[str, str, str]
"""Rule, clause and level of a divergence; or how no answer came."""
CHANGES = {
    "new": "the previous run had no such divergence",
    "changed": "other inputs or other answers than in the previous run",
    "fixed": "the answers are right now",
    "unanswered": "the divergence is gone because no answer came",
}


@dataclass(frozen=True, slots=True)
class Change:
    """What has become of one divergence."""

    kind: str
    backend: str
    case: str
    rule: str
    level: str


def changes(before: Cell, now: Cell) -> list[Change]:
    """The divergences that came, went, or moved."""
    old, new = _divergences(before), _divergences(now)
    gone = "fixed" if now.is_answered else "unanswered"
    kinds = {name: "new" for name in new if name not in old}
    kinds |= {name: gone for name in old if name not in new}
    kinds |= {name: "changed" for name in new if name in old and new[name] != old[name]}
    return [
        Change(kinds[name], now.backend, now.case, name[0], name[2])
        for name in sorted(kinds, key=lambda name: (list(CHANGES).index(kinds[name]), name))
    ]


def all_changes(before: dict[Key, Cell], now: dict[Key, Cell]) -> dict[Key, list[Change]]:
    """The changes of all cells that stand in both runs, where there are any."""
    found = {key: changes(before[key], cell) for key, cell in now.items() if key in before}
    return {key: each for key, each in found.items() if each}


def is_known(before: Cell, now: Cell, broken: Broken | None) -> bool:
    """Whether a divergence, or an answer that did not come, was the same in an earlier run."""
    if broken is None:
        return before.verdict == now.verdict
    return _divergences(before).get(broken.name) == _region(broken)


def reservations(before: RunRecord, now: RunRecord) -> list[str]:
    """In what else the two runs differ, which may be why their divergences do."""
    told = [
        f"{name}: {_shown(old)} before, {_shown(new)} now"
        for name, old, new in (
            ("castigate", before.suite, now.suite),
            ("tier", before.tier, now.tier),
            ("seed", before.seed, now.seed),
            ("random inputs", before.max_examples, now.max_examples),
            ("documents asked", before.selection.documents, now.selection.documents),
            ("source asked", before.selection.source, now.selection.source),
            ("target asked", before.selection.target, now.selection.target),
        )
        if old != new
    ]
    versions = {each.name: each.version for each in before.backends}
    for each in now.backends:
        if versions.get(each.name, each.version) != each.version:
            told.append(f"{each.name}: {versions[each.name]} before, {each.version} now")
    for name, digest in now.documents.items():
        if before.documents.get(name, digest) != digest:
            told.append(f"{name}: our encoding of the document has changed")
    return told


def _divergences(cell: Cell) -> dict[Name, object]:
    found: dict[Name, object] = {each.name: _region(each) for each in cell.broken}
    if not found and cell.verdict in FAILED:
        found[cell.verdict, "", ""] = None
    return found


def _region(broken: Broken) -> object:
    return broken.digest, broken.wrong, broken.runs, broken.smallest, broken.answer


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(value) or "all"
    return "all" if value is None else str(value)
