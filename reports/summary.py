"""The summary of a run: a table of verdicts per backend, document and version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from io import StringIO

from rich.console import Console
from rich.table import Table

from reports.judgement import VERDICTS

Row = tuple[str, str, str]
"""Backend, document, version."""


def verdict_table(counts: Mapping[Row, Counter[str]], width: int) -> str:
    """One row per backend, document and version; a column per verdict that occurs."""
    occurring = [verdict for verdict in VERDICTS if any(row[verdict] for row in counts.values())]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("backend", "document"):
        table.add_column(title, no_wrap=True)
    for verdict in occurring:
        table.add_column(verdict, justify="right", no_wrap=True)
    for (backend, document, version), row in counts.items():
        table.add_row(
            backend, f"{document}:{version}", *(str(row[verdict] or "") for verdict in occurring)
        )
    out = StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
