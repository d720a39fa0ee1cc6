"""Collects the data of a report's smaller pages: open points, layouts, the trend, behaviors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from reports import case_patterns
from reports.case_patterns import kind_of_check
from reports.dtype_order import usual_first
from reports.findings.cells import Cell
from reports.findings.report import Report
from reports.html.page_data import ALL_OF
from reports.judgement import WRONG
from specs.formats import Format, format_named
from specs.loader import Document, documents
from specs.model.document import ConflictEntry


@dataclass
class OpenRules:
    """The rules that together leave inputs open in some cases, and counts of these cases.

    ``versions`` are those of the cases, as keys, and ``example`` is the id of one case.
    """

    rules: tuple[str, ...]
    clauses: tuple[tuple[str, str], ...]
    """Pairs of a rule and its clause, each clause once."""
    input_classes: set[str] = field(default_factory=set)
    versions: dict[str, None] = field(default_factory=dict)
    cases: int = 0
    inputs: Counter[str] = field(default_factory=Counter)
    """How many open inputs each backend was given."""
    example: str = ""


@dataclass(frozen=True)
class Conflict:
    """Two texts that disagree, and in how many cases each backend breaks the chosen reading."""

    rule: str
    clause: str
    entry: ConflictEntry
    broken: Counter[str]


@dataclass(frozen=True)
class OpenPoints:
    """The open points of one document; ``changed`` says whether it has changed since the run."""

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
    """Yield, for each document of the last run, its open inputs and tensors, and its conflicts."""
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


ONLY_COUNTED = ("unsupported", "conforms")
"""Verdicts that the page only counts; it lists checks of all other verdicts with their messages."""


@dataclass(frozen=True)
class LayoutChecks:
    """The checks of one kind on a backend: how many have each verdict, and their messages.

    ``says`` names the kind. ``shown`` has one check for each message; those with a verdict in
    ``ONLY_COUNTED`` are left out.
    """

    backend: str
    says: str
    counts: Counter[str]
    shown: list[ShownCheck]


class ShownCheck(NamedTuple):
    """A check with its name on the page; ``others`` counts further checks with the same message."""

    cell: Cell
    name: str
    others: int


def layout_checks(report: Report) -> Iterator[LayoutChecks]:
    """Yield the checks of each backend and kind, in the order of the run."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    place = usual_first()
    for cell in report.checks:
        groups.setdefault((cell.backend, kind_of_check(cell.check)), []).append(cell)
    for (backend, kind), cells in groups.items():
        cells.sort(key=lambda cell: (place[cell.source], place[cell.target]))
        counts = Counter(cell.verdict for cell in cells)
        yield LayoutChecks(backend, _kind_words(kind), counts, [*_shown_checks(kind, cells)])


def _kind_words(kind: str) -> str:
    name, _, about = kind.partition("/")
    match name:
        case case_patterns.VARIANTS:
            return f"compared with {about}"
        case case_patterns.CHAINS:
            return f"casts in company, by {about}"
    return "positions, lengths and layouts"


def _shown_checks(kind: str, cells: Sequence[Cell]) -> Iterator[ShownCheck]:
    """Group checks by their message; yield the first of each group, and how many others it has."""
    same: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.verdict not in ONLY_COUNTED:
            same.setdefault(cell.message, []).append(cell)
    for [first, *others] in same.values():
        dtype, *more = first.check.removeprefix(f"{kind}/").split("/")
        path = "".join(f" {part}" if ":" in part else f" → {part}" for part in more)
        yield ShownCheck(first, dtype + path, len(others))


@dataclass(frozen=True)
class Point:
    """A backend's verdicts on a document in one run.

    ``counts`` has the number of each verdict, and ``wrong`` that of the wrong ones. ``change`` is
    by how much ``wrong`` differs from the last run before with verdicts on the document. It is None
    without such a run, or without verdicts in this one.
    """

    counts: Counter[str]
    wrong: int
    change: int | None


@dataclass(frozen=True)
class Trend:
    """The runs of one backend, oldest first, and for each document a point per run."""

    backend: str
    runs: tuple[tuple[datetime, str], ...]
    """The start of each run, and the version of the backend in it."""
    points: dict[str, list[Point]]


def trends(report: Report) -> list[Trend]:
    """Return the trend of every backend of the last run, over the runs that include it."""
    return [_trend(report, backend) for backend in report.backends]


def _trend(report: Report, backend: str) -> Trend:
    runs = [
        (record.started, each.version, counts)
        for record, counts in zip(report.records, report.trend, strict=True)
        for each in record.backends
        if each.name == backend
    ]
    documents = dict.fromkeys(document for document, _ in report.cases)
    points = {
        document: _points([counts.get((backend, document), Counter()) for *_, counts in runs])
        for document in documents
    }
    return Trend(backend, tuple((started, version) for started, version, _ in runs), points)


def _points(counts_per_run: list[Counter[str]]) -> list[Point]:
    points: list[Point] = []
    previous: int | None = None
    for counts in counts_per_run:
        wrong = sum(counts[verdict] for verdict in WRONG)
        change = wrong - previous if counts and previous is not None else None
        points.append(Point(counts, wrong, change))
        previous = wrong if counts else previous
    return points


NARROW_BITS = 8
"""The widest of the narrow floats."""
FAMILIES = (
    "signed integers",
    "unsigned integers",
    "bool",
    f"floats of at most {NARROW_BITS} bits",
    "wider floats",
    "complex numbers and texts",
)
"""The groups of target dtypes, in the order of the table."""


@dataclass
class ComparedBehavior:
    """A sentence about open answers, and the dtype pairs to which it applies.

    ``pairs`` has, by backend and pair, the id of one case.
    """

    text: str
    pairs: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the sentence explains all the answers by behaviors, and not only some."""
        return "unexplained" not in self.text

    @property
    def order(self) -> tuple[int, int, str]:
        """The key that sorts behaviors: first those of most backends, then those of most pairs."""
        return -len(self.pairs), -sum(map(len, self.pairs.values())), self.text


@dataclass
class TargetFamily:
    """A group of targets, and the behaviors of backends on it, the most common first.

    ``whole`` are the behaviors that give all the answers.
    """

    name: str
    whole: list[ComparedBehavior]
    others: list[ComparedBehavior]


def family_of(target: Format) -> str:
    """Return the item of ``FAMILIES`` to which a target belongs."""
    signed, unsigned, boolean, narrow, wide, others = FAMILIES
    match target.kind:
        case "integer":
            return signed if target.is_signed else unsigned
        case "boolean":
            return boolean
        case "float":
            return narrow if target.bits <= NARROW_BITS else wide
    return others


def behaviors_by_family(report: Report) -> list[TargetFamily]:
    """Return the groups of targets for which open answers were explained, with the sentences."""
    place = usual_first()
    found: dict[str, dict[str, ComparedBehavior]] = {}
    cells = sorted(
        ((report.cells[key], lines) for key, lines in report.behaviors.items()),
        key=lambda item: (place[item[0].source], place[item[0].target]),
    )
    for cell, lines in cells:
        here = found.setdefault(family_of(format_named(cell.target)), {})
        for line in lines:
            text = line.partition(ALL_OF)[0]
            behavior = here.setdefault(text, ComparedBehavior(text))
            pairs = behavior.pairs.setdefault(cell.backend, {})
            pairs.setdefault(f"{cell.source} → {cell.target}", cell.case)
    return [_family(name, found[name]) for name in FAMILIES if name in found]


def _family(name: str, behaviors: dict[str, ComparedBehavior]) -> TargetFamily:
    in_order = sorted(behaviors.values(), key=lambda each: each.order)
    return TargetFamily(
        name,
        [each for each in in_order if each.is_whole],
        [each for each in in_order if not each.is_whole],
    )
