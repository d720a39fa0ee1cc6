"""The summary of a run: verdicts per backend and version, and the rules that were broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO

from rich.console import Console
from rich.table import Table

from reports.diff.judgement import VERDICTS
from reports.ledger.listing import WORDS

NARROWEST = 140
"""Columns that the tables need."""
Row = tuple[str, str, str]
"""Backend, document, version."""
BrokenRule = tuple[str, str, str, str, str]
"""Backend, document, rule, clause, level."""


@dataclass
class Breach:
    """How often a rule was broken, and the first case in which it was."""

    cases: int = 0
    inputs: int = 0
    example: str = ""


def verdict_table(counts: Mapping[Row, Counter[str]], width: int) -> str:
    """One row per backend, document and version; a column per verdict that occurs."""
    rows = {
        (backend, f"{document}:{version}"): row
        for (backend, document, version), row in counts.items()
    }
    return counted_table("document", rows, width)


def counted_table(what: str, counts: Mapping[tuple[str, str], Counter[str]], width: int) -> str:
    """One row per backend and something else; a column per verdict that occurs."""
    occurring = [verdict for verdict in VERDICTS if any(row[verdict] for row in counts.values())]
    table = _table("backend", what)
    for verdict in occurring:
        table.add_column(verdict, justify="right", no_wrap=True)
    for names, row in counts.items():
        table.add_row(*names, *(str(row[verdict] or "") for verdict in occurring))
    return _text(table, width)


def breach_table(breaches: Mapping[BrokenRule, Breach], width: int) -> str:
    """One row per backend and broken rule: clause, level, how much, and where to look first."""
    table = _table("backend", "rule", "level")
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("inputs", justify="right", no_wrap=True)
    table.add_column("clause, and a case to look at", overflow="fold")
    for (backend, _, rule, clause, level), breach in breaches.items():
        where = f"{clause}: {breach.example}"
        table.add_row(backend, rule, level, str(breach.cases), f"{breach.inputs:,}", where)
    return _text(table, width)


def ledger_table(counts: Mapping[str, Counter[str]], width: int) -> str:
    """One row per backend: how many cases stand to its ledger in which way."""
    table = _table("backend")
    for word in WORDS:
        table.add_column(word, justify="right", no_wrap=True)
    for backend, row in sorted(counts.items()):
        table.add_row(backend, *(str(row[word]) for word in WORDS))
    return _text(table, width)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=True)
    return table


def _text(table: Table, width: int) -> str:
    out = StringIO()
    # A backend may be a path, in which brackets are no markup.
    Console(file=out, width=width, color_system=None, markup=False, emoji=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
