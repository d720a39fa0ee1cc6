"""A document's page and its rules: which lines each rule encodes, and who breaks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from reports.findings.report import Report
from specs.coverage import Coverage, Encoder, coverage, encoders, lines_of_rules, page_sections
from specs.loader import Document, documents
from specs.model.page_lines import Span, cited


@dataclass(frozen=True)
class LineRow:
    """Lines that the same rules encode; ``reason`` says why none does."""

    span: Span
    encoders: tuple[Encoder, ...]
    reason: str


@dataclass
class RuleRow:
    """A rule with its clauses, and in how many cases each backend breaks it."""

    name: str
    kind: str
    level: str
    clauses: list[Clause] = field(default_factory=list)
    cases: Counter[str] = field(default_factory=Counter)
    example: str = ""


@dataclass(frozen=True)
class Clause:
    """One clause of a rule; each of its ranges with the row of lines in which it begins."""

    text: str
    ranges: tuple[tuple[Span, Span], ...]


@dataclass(frozen=True)
class PageOfRules:
    """Everything that the page of one document shows."""

    document: Document
    rules: list[RuleRow]
    parts: list[tuple[str, list[LineRow]]]


def rules_page(document: str) -> str:
    """The file that shows a document's rules and lines; empty where it points at no lines."""
    made = documents().get(document)
    return "" if made is None or coverage(made) is None else f"page-{document}.html"


def rule_page(document: str, rule: str) -> str:
    """The file that has a rule's row; empty where the document has no such rule any more."""
    page = rules_page(document)
    return page if page and rule in lines_of_rules(documents()[document]) else ""


def cited_lines(document: str, rule: str, clause: str) -> str:
    """The lines of a rule's clause in words; empty where it has none."""
    made = documents().get(document)
    return "" if made is None else cited(lines_of_rules(made).get(rule, {}).get(clause, ()))


def pages_of_rules(report: Report) -> Iterator[PageOfRules]:
    """The pages of all documents of a report that point at lines."""
    for name in dict.fromkeys(document for document, _ in report.cases):
        made = documents()[name]
        found = coverage(made)
        if found is not None:
            sections = page_sections(made, found.page)
            parts = [(title, list(_rows(found, span))) for title, span in sections]
            rows = [row for _, part in parts for row in part]
            yield PageOfRules(made, _rules(report, made, rows), parts)


def _rows(found: Coverage, section: Span) -> Iterator[LineRow]:
    def content(line: int) -> tuple[tuple[Encoder, ...], str]:
        encoded = tuple(found.encoders.get(line, ()))
        return encoded, "" if encoded else found.reasons.get(line, "")

    for (encoded, reason), grouped in groupby(found.page.texts(section), content):
        lines = list(grouped)
        yield LineRow(Span(lines[0], lines[-1]), encoded, reason)


def _rules(report: Report, made: Document, lines: list[LineRow]) -> list[RuleRow]:
    """Every part of a document that has a clause, in the document's order."""
    rows: dict[str, RuleRow] = {}
    for each in encoders(made):
        if each.clause is not None:
            row = rows.setdefault(each.rule, RuleRow(each.rule, each.kind, each.level))
            spans = [(span, _row_of(lines, span.first)) for span in each.spans or ()]
            clause = Clause(each.clause, tuple(spans))
            if clause not in row.clauses:
                row.clauses.append(clause)
    for cell in report.cells.values():
        if cell.document == made.name:
            for name in {broken.rule for broken in cell.broken} & rows.keys():
                rows[name].cases[cell.backend] += 1
                rows[name].example = rows[name].example or cell.case
    return list(rows.values())


def _row_of(rows: list[LineRow], line: int) -> Span:
    return next(row.span for row in rows if row.span.first <= line <= row.span.last)
