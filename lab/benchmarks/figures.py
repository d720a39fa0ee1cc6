"""Computes medians, describes the machine, and prints and stores figures."""

from __future__ import annotations

import json
import os
import platform
import statistics
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rich.console import Console
from rich.table import Table

from specs import VERSION

NARROWEST = 150
"""The least width of tables in columns, so that they are not folded in a log."""
PACKAGES = ("numpy", "numba", "torch", "onnxruntime", "ml_dtypes", "gfloat", "gmpy2")


def surroundings() -> dict[str, Any]:
    """Versions, processors and the date."""
    return {
        "castigate": VERSION,
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "architecture": platform.machine(),
        "cpus": os.cpu_count(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def median(figures: Iterable[float]) -> float:
    """The middle figure, or the mean of the two middle ones."""
    return statistics.median(figures)


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; all columns but the first hold numbers."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=not place)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.width = max(NARROWEST, console.width)
    console.print(table)


def keep(chosen: Namespace, figures: dict[str, Any]) -> None:
    """Write all figures to the JSON file of the options; without one, print them as one line."""
    options = {name: value for name, value in vars(chosen).items() if name != "json"}
    whole = {**surroundings(), "options": options, **figures}
    if chosen.json is None:
        print(json.dumps(whole))
    else:
        chosen.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
