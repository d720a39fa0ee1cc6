"""Lists where documents are open or contradict themselves, with the cases of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from reports.findings.report import Report
from specs.loader import Document, documents
from specs.model.document import ConflictEntry


@dataclass
class OpenRules:
    """A set of rules that leave inputs open, with the cases in which exactly these do."""

    rules: tuple[str, ...]
    clauses: tuple[tuple[str, str], ...]
    """Each clause with a rule that cites it."""
    input_classes: set[str] = field(default_factory=set)
    versions: dict[str, None] = field(default_factory=dict)
    cases: int = 0
    inputs: Counter[str] = field(default_factory=Counter)
    """How many open inputs each backend was given."""
    example: str = ""


@dataclass(frozen=True)
class Conflict:
    """Two texts that disagree, and in how many cases each backend breaks the reading we chose."""

    rule: str
    clause: str
    entry: ConflictEntry
    broken: Counter[str]


@dataclass(frozen=True)
class OpenPoints:
    """The open points of one document; ``changed`` says whether it is newer than the run."""

    name: str
    title: str
    changed: bool
    open_rules: list[OpenRules]
    tensors: list[tuple[str, str, str]]
    """Rule, clause and note of each rule that leaves a whole tensor open."""
    conflicts: list[Conflict]
    inputs: Counter[str]
    """How many open inputs each backend was given."""


def open_points(report: Report) -> Iterator[OpenPoints]:
    """Yield the open points of each document of a run."""
    for name in dict.fromkeys(document for document, _ in report.cases):
        document = documents()[name]
        open_rules = _open_rules(report, document)
        inputs: Counter[str] = Counter()
        for each in open_rules:
            inputs.update(each.inputs)
        tensors = [
            (rule, entry.clause, entry.note or "")
            for rule, entry in document.entry.tensors.items()
            if entry.then == "unspecified"
        ]
        conflicts = list(_conflicts(report, document))
        changed = report.record.documents.get(name) != document.digest
        title = document.entry.title
        yield OpenPoints(name, title, changed, open_rules, tensors, conflicts, inputs)


def _open_rules(report: Report, document: Document) -> list[OpenRules]:
    found: dict[tuple[str, ...], OpenRules] = {}
    for (name, version), cases in report.cases.items():
        if name != document.name:
            continue
        for cell in cases:
            open_here = [each for each in report.case_rules[cell.case] if each.is_open]
            if not open_here:
                continue
            rules = tuple(dict.fromkeys(each.rule for each in open_here))
            rule_of = {each.clause: each.rule for each in reversed(open_here)}
            clauses = dict.fromkeys((rule_of[each.clause], each.clause) for each in open_here)
            entry = found.setdefault(rules, OpenRules(rules, tuple(clauses), example=cell.case))
            entry.input_classes.update(each.inputs for each in open_here)
            entry.versions[version] = None
            entry.cases += 1
            for each in report.cells_of_case(cell.case):
                entry.inputs[each.backend] += each.open
    return sorted(found.values(), key=lambda entry: (-entry.cases, entry.rules))


def _conflicts(report: Report, document: Document) -> Iterator[Conflict]:
    broken: dict[str, Counter[str]] = {}
    for cell in report.cells.values():
        if cell.document == document.name:
            for rule in {each.rule for each in cell.broken}:
                broken.setdefault(rule, Counter())[cell.backend] += 1
    for name, clause, entry in document.entry.conflicts():
        yield Conflict(name, clause, entry, broken.get(name, Counter()))
