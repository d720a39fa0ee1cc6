"""The data files of the case pages: one per document and source dtype, for all versions.

Divergences, messages and scripts that several cells share are stored once per file.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Any

from reports.counterexample.drawing import allowed_columns, stored_columns
from reports.findings.cells import Cell, Divergence
from reports.findings.report import Report
from reports.grading.failure_runs import MOST_RUNS
from reports.html.document_page import document_page_file
from specs.coverage import lines_of_rules
from specs.formats import format_named
from specs.loader import documents
from specs.model.page_lines import cite_lines
from specs.ruling import EVERY_INPUT, CaseRule


class SharedValues:
    """A list that stores each value once; others refer to a value by its index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._indexes: dict[Hashable, int] = {}

    def index_of(self, key: Hashable, value: Any) -> int:
        """Return the index of the value that has this key.

        For a new key, the value is appended, or what it returns if it is callable.
        """
        if key not in self._indexes:
            self._indexes[key] = len(self.values)
            self.values.append(value() if callable(value) else value)
        return self._indexes[key]


def case_details(report: Report) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name, without suffix, and the content (``_file_content``) of each data file."""
    files: dict[str, list[Cell]] = {}
    for cases in report.cases.values():
        for cell in cases:
            files.setdefault(f"{cell.document}.{cell.source}", []).append(cell)
    for name, cases in sorted(files.items()):
        yield name, _file_content(report, cases[0].document, cases)


def _file_content(report: Report, document: str, cases: Iterable[Cell]) -> dict[str, Any]:
    broken, texts, answers, rules = (SharedValues() for _ in range(4))
    texts.index_of("", "")
    return {
        "cases": {
            one.case: [
                _cell(report, cell, broken, texts)
                # Two cells with the same number have the same answers, bit for bit.
                | {"answers": cell.answers and answers.index_of((cell.asked, cell.answers), None)}
                for cell in report.cells_of_case(one.case)
            ]
            for one in cases
        },
        "rules_of": {
            one.case: rules.index_of(rows := _rule_rows(report.case_rules[one.case]), rows)
            for one in cases
        },
        "rules": rules.values,
        "page": document_page_file(document),
        "lines": {
            rule: {clause: cite_lines(spans) for clause, spans in clauses.items()}
            for rule, clauses in lines_of_rules(documents()[document]).items()
        },
        "broken": broken.values,
        "texts": texts.values,
    }


def _rule_rows(rules: Iterable[CaseRule]) -> tuple[tuple[str, ...], ...]:
    """Return the rule, level, clause and inputs of each rule of a case."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in rules:
        found.setdefault((each.rule, each.level, each.clause), []).append(each.inputs)
    if len(found) == 1:
        return tuple((*rule, EVERY_INPUT) for rule in found)
    return tuple((*rule, "; ".join(dict.fromkeys(inputs))) for rule, inputs in found.items())


def _cell(report: Report, cell: Cell, broken: SharedValues, texts: SharedValues) -> dict[str, Any]:
    key = cell.backend, cell.case
    return {
        "backend": report.backends.index(cell.backend),
        "history": report.history[key],
        "inputs": cell.inputs,
        "open": cell.open,
        "answered": cell.is_answered,
        "broken": [
            broken.index_of((cell.target, each), lambda each=each: _broken_rule(cell, each))
            for each in cell.broken
        ],
        "message": texts.index_of(cell.message, cell.message),
        "script": texts.index_of(cell.reproduction, cell.reproduction),
        "behaviors": [texts.index_of(line, line) for line in report.behaviors.get(key, ())],
        "changes": [
            [change.kind, change.rule, change.level] for change in report.changes.get(key, ())
        ],
    }


def _broken_rule(cell: Cell, broken: Divergence) -> dict[str, Any]:
    source, target = format_named(cell.source), format_named(cell.target)
    return {
        "rule": broken.rule,
        "clause": broken.clause,
        "level": broken.level,
        "wrong": broken.wrong,
        "runs": broken.runs,
        "listed": min(broken.runs, MOST_RUNS),
        "smallest": None if broken.smallest is None else _stored(source, broken.smallest),
        "allowed": [_allowed(target, word) for word in broken.allowed],
        "answer": None if broken.answer is None else _stored(target, broken.answer),
        "segments": broken.segments,
        "stretches": broken.shown_runs,
    }


_stored, _allowed = cache(stored_columns), cache(allowed_columns)
