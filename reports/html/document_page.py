"""The page of a document: verdicts, which backend breaks which rule, and which rules encode a line.

The matrices of verdicts are drawn by a script, for the version that the reader chooses. The rules
are those of all versions. A document that cites no lines of its source has no table of lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from urllib.parse import urlencode

from reports.findings.report import Report, Version
from specs.coverage import Coverage, Encoder, coverage, encoders, lines_of_rules, page_sections
from specs.loader import Document, documents
from specs.model.page_lines import LineSpan, cite_lines
from specs.rule_words import rule_lines


@dataclass(frozen=True)
class LineRow:
    """Consecutive lines of a source that the same rules encode.

    If no rule does, ``reason`` is the document's reason for that, or empty.
    """

    span: LineSpan
    encoders: tuple[Encoder, ...]
    reason: str


@dataclass
class RuleRow:
    """A rule with its clauses, what it says, and in how many cases each backend breaks it.

    ``example`` is the id of one of these cases.
    """

    name: str
    kind: str
    level: str
    says: tuple[str, ...] = ()
    clauses: list[Clause] = field(default_factory=list)
    cases: Counter[str] = field(default_factory=Counter)
    example: str = ""


@dataclass(frozen=True)
class Clause:
    """A clause of a rule with the lines that it cites.

    In ``ranges``, each cited range comes with the range of the ``LineRow`` in which it begins, for
    links.
    """

    text: str
    ranges: tuple[tuple[LineSpan, LineSpan], ...]


@dataclass(frozen=True)
class DocumentPage:
    """The content of one document's page; ``sections`` pairs a title with rows of lines."""

    document: Document
    cases: int
    rules: list[RuleRow]
    sections: list[tuple[str, list[LineRow]]]


def document_page_file(document: str) -> str:
    """Return the file name of a document's page."""
    return f"document-{document}.html"


def version_link(version: Version, **filters: str) -> str:
    """Return the address of a version's matrices; ``filters`` are added to its fragment."""
    document, number = version
    return f"{document_page_file(document)}#{urlencode({'version': number, **filters})}"


def rule_row_file(document: str, rule: str) -> str:
    """Return the name of the page with a rule's row; empty if document or rule is unknown."""
    known = documents().get(document)
    has_row = known is not None and rule in lines_of_rules(known)
    return document_page_file(document) if has_row else ""


def cited_lines(document: str, rule: str, clause: str) -> str:
    """Format the lines that a rule's clause cites, as in `lines 12, 94`; empty if it cites none."""
    known = documents().get(document)
    return "" if known is None else cite_lines(lines_of_rules(known).get(rule, {}).get(clause, ()))


def document_pages(report: Report) -> Iterator[DocumentPage]:
    """Yield the page of each document of a report, with the number of its cases."""
    cases = Counter[str]()
    for (name, _), of_version in report.cases.items():
        cases[name] += len(of_version)
    for name, count in cases.items():
        document = documents()[name]
        found = coverage(document)
        titled = [] if found is None else page_sections(document, found.page)
        sections = [(title, list(_line_rows(found, span))) for title, span in titled if found]
        lines = [row for _, section in sections for row in section]
        yield DocumentPage(document, count, _rule_rows(report, document, lines), sections)


def _line_rows(found: Coverage, section: LineSpan) -> Iterator[LineRow]:
    def content(line: int) -> tuple[tuple[Encoder, ...], str]:
        encoded = tuple(found.encoders.get(line, ()))
        return encoded, "" if encoded else found.reasons.get(line, "")

    for (encoded, reason), grouped in groupby(found.page.texts(section), content):
        lines = list(grouped)
        yield LineRow(LineSpan(lines[0], lines[-1]), encoded, reason)


def _rule_rows(report: Report, document: Document, lines: list[LineRow]) -> list[RuleRow]:
    """Return a row per rule name of the parts that have a clause, in the document's order."""
    rows: dict[str, RuleRow] = {}
    for each in encoders(document):
        if each.clause is not None:
            rule = document.entry.rules.get(each.rule)
            says = tuple(rule_lines(rule)) if rule is not None else ()
            row = rows.setdefault(each.rule, RuleRow(each.rule, each.kind, each.level, says))
            spans = each.spans or () if lines else ()
            clause = Clause(
                each.clause, tuple((span, _row_of(lines, span.first)) for span in spans)
            )
            if clause not in row.clauses:
                row.clauses.append(clause)
    for cell in report.cells.values():
        if cell.document == document.name:
            for name in {broken.rule for broken in cell.broken} & rows.keys():
                rows[name].cases[cell.backend] += 1
                rows[name].example = rows[name].example or cell.case
    return list(rows.values())


def _row_of(rows: list[LineRow], line: int) -> LineSpan:
    return next(row.span for row in rows if row.span.first <= line <= row.span.last)
