"""What the documents leave open or contradict, and how often the backends of a run met it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from reports.findings.report import Report
from specs.loader import Document, documents
from specs.model.document import ConflictEntry


@dataclass
class Silent:
    """Rules that leave inputs open, in the cases in which just these do."""

    rules: tuple[str, ...]
    clauses: tuple[tuple[str, str], ...]
    """Each clause with a rule that has it."""
    classes: set[str] = field(default_factory=set)
    versions: dict[str, None] = field(default_factory=dict)
    cases: int = 0
    inputs: Counter[str] = field(default_factory=Counter)
    example: str = ""


@dataclass(frozen=True)
class Conflict:
    """Two texts that disagree, the reading taken, and in how many cases each backend breaks it."""

    rule: str
    clause: str
    entry: ConflictEntry
    broken: Counter[str]


@dataclass(frozen=True)
class OpenPoints:
    """The open points of one document."""

    name: str
    title: str
    changed: bool
    silences: list[Silent]
    tensors: list[tuple[str, str, str]]
    conflicts: list[Conflict]
    inputs: Counter[str]


def open_points(report: Report) -> Iterator[OpenPoints]:
    """The open points of each document of a run."""
    for name in dict.fromkeys(document for document, _ in report.cases):
        made = documents()[name]
        silences = _silences(report, made)
        inputs: Counter[str] = Counter()
        for silent in silences:
            inputs.update(silent.inputs)
        tensors = [
            (rule, entry.clause, entry.note or "")
            for rule, entry in made.entry.tensors.items()
            if entry.then == "unspecified"
        ]
        conflicts = list(_conflicts(report, made))
        changed = report.record.documents.get(name) != made.digest
        yield OpenPoints(name, made.entry.title, changed, silences, tensors, conflicts, inputs)


def _silences(report: Report, made: Document) -> list[Silent]:
    found: dict[tuple[str, ...], Silent] = {}
    for (document, version), cases in report.cases.items():
        if document != made.name:
            continue
        for cell in cases:
            silences = [part for part in report.parts[cell.case] if part.is_open]
            if not silences:
                continue
            rules = tuple(dict.fromkeys(part.rule for part in silences))
            rule_of = {part.clause: part.rule for part in reversed(silences)}
            clauses = dict.fromkeys((rule_of[part.clause], part.clause) for part in silences)
            silent = found.setdefault(rules, Silent(rules, tuple(clauses), example=cell.case))
            silent.classes.update(part.inputs for part in silences)
            silent.versions[version] = None
            silent.cases += 1
            for each in report.of_case(cell.case):
                silent.inputs[each.backend] += each.open
    return sorted(found.values(), key=lambda silent: (-silent.cases, silent.rules))


def _conflicts(report: Report, made: Document) -> Iterator[Conflict]:
    broken: dict[str, Counter[str]] = {}
    for cell in report.cells.values():
        if cell.document == made.name:
            for broken_rule in {each.rule for each in cell.broken}:
                broken.setdefault(broken_rule, Counter())[cell.backend] += 1
    for name, clause, entry in made.entry.conflicts():
        yield Conflict(name, clause, entry, broken.get(name, Counter()))
