"""Compares two runs, divergence by divergence: what is new, changed, mended or unanswered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports.findings.cells import Cell, CellKey, Divergence
from reports.judgement import NO_ANSWER
from reports.run_store.record import RunRecord

DivergenceKey = tuple[str, str, str]
"""Rule, clause and level; of an error or crash without a rule, the verdict and two empty texts."""
CHANGES = {
    "new": "the previous run did not have this divergence",
    "changed": "other inputs or other answers are wrong than in the previous run",
    "mended": "the answers are right now",
    "unanswered": "the divergence is gone, but only because the backend did not answer",
}


@dataclass(frozen=True, slots=True)
class DivergenceChange:
    """How one divergence of a backend changed; ``kind`` is a key of ``CHANGES``."""

    kind: str
    backend: str
    case: str
    rule: str
    level: str


def cell_changes(before: Cell, now: Cell, *, has_same_seed: bool) -> list[DivergenceChange]:
    """List the divergences of a cell that appeared, disappeared or changed, sorted by kind.

    None has changed unless the runs ``has_same_seed``: with another they asked other inputs.
    """
    old, new = _divergences(before), _divergences(now)
    gone = "mended" if now.is_answered else "unanswered"
    kinds = {key: "new" for key in new if key not in old}
    kinds |= {key: gone for key in old if key not in new}
    if has_same_seed:
        kinds |= {key: "changed" for key in new if key in old and new[key] != old[key]}
    return [
        DivergenceChange(kinds[key], now.backend, now.case, key[0], key[2])
        for key in sorted(kinds, key=lambda key: (list(CHANGES).index(kinds[key]), key))
    ]


def run_changes(
    before: Iterable[Cell], now: Mapping[CellKey, Cell], *, has_same_seed: bool
) -> dict[CellKey, list[DivergenceChange]]:
    """Return the changes of each cell that both runs asked and that has changed, in order of now.

    No cell of the run before is kept.
    """
    found = {}
    for old in before:
        key = old.backend, old.case
        new = now.get(key)
        if new is not None and "not-run" not in (old.verdict, new.verdict):
            changes = cell_changes(old, new, has_same_seed=has_same_seed)
            if changes:
                found[key] = changes
    return {key: found[key] for key in now if key in found}


def setup_differences(before: RunRecord, now: RunRecord) -> list[str]:
    """List in words the differences in setup between two runs that may explain changes.

    These are versions, tier, seed, number of random inputs, selection, chains, house rules, and
    encodings of documents.
    """
    lines = [
        f"{name}: {_as_text(old)} before, {_as_text(new)} now"
        for name, old, new in (
            ("castigate", before.suite, now.suite),
            ("tier", before.tier, now.tier),
            ("seed", before.seed, now.seed),
            ("random inputs", before.max_examples, now.max_examples),
            ("selected documents", before.selection.documents, now.selection.documents),
            ("selected sources", before.selection.source, now.selection.source),
            ("selected targets", before.selection.target, now.selection.target),
            ("tiers of cases", *(_listed(each.selection.choices) for each in (before, now))),
            ("chains of", *(_listed(sorted(each.chains)) for each in (before, now))),
            ("house rules", *(_listed(each.rules) for each in (before, now))),
        )
        if old != new
    ]
    versions = before.versions
    for each in now.backends:
        if versions.get(each.name, each.version) != each.version:
            lines.append(f"{each.name}: {versions[each.name]} before, {each.version} now")
    for name, digest in now.documents.items():
        if before.documents.get(name, digest) != digest:
            lines.append(f"{name}: Castigate's encoding of this document has changed")
    return lines


def _divergences(cell: Cell) -> dict[DivergenceKey, object]:
    found: dict[DivergenceKey, object] = {each.key: _region(each) for each in cell.broken}
    if not found and cell.verdict in NO_ANSWER:
        found[cell.verdict, "", ""] = None
    return found


def _region(broken: Divergence) -> object:
    return broken.digest, broken.wrong, broken.runs, broken.smallest, broken.answer


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _as_text(value: object) -> str:
    return " ".join(value) or "all" if isinstance(value, tuple) else str(value)
