"""The tables of verdicts: per edition, and per kind of check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from io import StringIO

from rich.console import Console
from rich.table import Table

from reports.verdicts import VERDICTS

MIN_WIDTH = 140
"""Columns of text that the tables need, however narrow the terminal is."""
EditionKey = tuple[str, str, str]
"""Backend, document, version."""


def verdict_table(counts: Mapping[EditionKey, Counter[str]], width: int) -> str:
    """One row per backend, document and version; a column per verdict that occurs."""
    rows = {
        (backend, f"{document}:{version}"): row
        for (backend, document, version), row in counts.items()
    }
    return verdict_count_table("document", rows, width)


def verdict_count_table(
    title: str, counts: Mapping[tuple[str, str], Counter[str]], width: int
) -> str:
    """One row per backend and entry of the column ``title``; a column per verdict that occurs."""
    occurring = [verdict for verdict in VERDICTS if any(row[verdict] for row in counts.values())]
    table = _table("backend", title)
    for verdict in occurring:
        table.add_column(verdict, justify="right", no_wrap=True)
    for names, row in counts.items():
        table.add_row(*names, *(str(row[verdict] or "") for verdict in occurring))
    return _as_text(table, width)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=True)
    return table


def _as_text(table: Table, width: int) -> str:
    out = StringIO()
    # A backend may be a path whose brackets must not be read as markup.
    Console(file=out, width=width, color_system=None, markup=False, emoji=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
