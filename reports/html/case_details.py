"""The data behind the cases of one source of a document, all its versions together.

What several cells say alike (a finding, a message, a script) is held once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Any

from reports.counterexample.drawing import Columns, allowed_line
from reports.counterexample.drawing import line as drawn_line
from reports.diff.failure_runs import KEPT_RUNS
from reports.findings.case_rules import EVERY, Part
from reports.findings.cells import Broken, Cell
from reports.findings.report import Report
from reports.html.rules_page import rules_page
from specs.coverage import lines_of_rules
from specs.formats import Format, format_named
from specs.loader import documents
from specs.model.page_lines import cited


class Table:
    """Things that are held once and named by their place."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._places: dict[Hashable, int] = {}

    def place(self, key: Hashable, row: Any) -> int:
        """Where a thing stands; it is added if it is new."""
        if key not in self._places:
            self._places[key] = len(self.rows)
            self.rows.append(row() if callable(row) else row)
        return self._places[key]


def details(report: Report) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each data file's name and content."""
    parts: dict[str, list[Cell]] = {}
    for cases in report.cases.values():
        for cell in cases:
            parts.setdefault(f"{cell.document}.{cell.source}", []).append(cell)
    for name, cases in sorted(parts.items()):
        yield name, _detail(report, cases[0].document, cases)


def _detail(report: Report, document: str, cases: Iterable[Cell]) -> dict[str, Any]:
    findings, texts, answers, rules = Table(), Table(), Table(), Table()
    page = rules_page(document)
    lines = lines_of_rules(documents()[document]) if page else {}
    texts.place("", "")
    return {
        "cases": {
            one.case: [
                _cell(report, cell, findings, texts)
                # Two cells with the same number have the same answers, in every bit.
                | {"answers": cell.answers and answers.place((cell.asked, cell.answers), None)}
                for cell in report.of_case(one.case)
            ]
            for one in cases
        },
        "rules_of": {
            one.case: rules.place(told := _rules(report.parts[one.case]), told) for one in cases
        },
        "rules": rules.rows,
        "page": page,
        "lines": {
            rule: {clause: cited(spans) for clause, spans in clauses.items()}
            for rule, clauses in lines.items()
        },
        "findings": findings.rows,
        "texts": texts.rows,
    }


def _rules(parts: Iterable[Part]) -> tuple[tuple[str, ...], ...]:
    """The rules that take a case: level, clause, and the inputs of each."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for part in parts:
        found.setdefault((part.rule, part.level, part.clause), []).append(part.inputs)
    if len(found) == 1:
        return tuple((*rule, EVERY) for rule in found)
    return tuple((*rule, ", ".join(dict.fromkeys(inputs))) for rule, inputs in found.items())


def _cell(report: Report, cell: Cell, findings: Table, texts: Table) -> dict[str, Any]:
    key = cell.backend, cell.case
    return {
        "backend": report.backends.index(cell.backend),
        "history": report.history[key],
        "inputs": cell.inputs,
        "open": cell.open,
        "answered": cell.is_answered,
        "findings": [
            findings.place((cell.target, each), lambda each=each: _finding(cell, each))
            for each in cell.broken
        ],
        "message": texts.place(cell.message, cell.message),
        "script": texts.place(cell.reproduction, cell.reproduction),
        "behaviours": [texts.place(line, line) for line in report.behaviours.get(key, ())],
        "changes": [
            [change.kind, change.rule, change.level] for change in report.changes.get(key, ())
        ],
    }


def _finding(cell: Cell, broken: Broken) -> dict[str, Any]:
    source, target = format_named(cell.source), format_named(cell.target)
    return {
        "rule": broken.rule,
        "clause": broken.clause,
        "level": broken.level,
        "wrong": broken.wrong,
        "runs": broken.runs,
        "listed": min(broken.runs, KEPT_RUNS),
        "smallest": _drawn(source, broken.smallest),
        "allowed": [_allowed(target, word) for word in broken.allowed],
        "answer": _drawn(target, broken.answer),
        "segments": broken.segments,
        "stretches": broken.stretches,
    }


@cache
def _drawn(form: Format, datum: str | None) -> Columns | None:
    if datum is None:
        return None
    return drawn_line(form, datum if form.kind == "text" else int(datum, 16))


_allowed = cache(allowed_line)
