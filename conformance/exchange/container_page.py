"""Writes what containers change as a page: a table of findings, the matrices, the scripts."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.exchange.container_matrix import (
    Containers,
    cell_words,
    dtype_words,
    example_lines,
    tables,
)
from specs.release import VERSION


def page(found: Containers) -> str:
    """Return the page as Markdown."""
    return "\n".join([*_head(found), *_matrices(found), *_scripts(found)]) + "\n"


def _head(found: Containers) -> Iterator[str]:
    yield "# What containers change"
    yield ""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    yield (
        f"Made by `castigate containers … --page FILE` (castigate {VERSION}, {found.date}): "
        f"{versions}."
    )
    yield ""
    yield "| container | at fault | what happens | dtypes | smallest tensor |"
    yield "|---|---|---|---|---|"
    for each in found.findings:
        example = "; ".join(" ".join(line.split()) for line in example_lines(each))
        who = f"{each.party} {each.side}"
        yield f"| {each.container} | {who} | {each.fault} | {dtype_words(each)} | {example} |"


def _matrices(found: Containers) -> Iterator[str]:
    for table in tables(found):
        yield ""
        yield f"## {table.name}"
        yield ""
        yield "| dtypes | written by | " + " | ".join(table.readers) + " |"
        yield "|---" * (2 + len(table.readers)) + "|"
        for group, writer, cells in table.rows:
            words = [cell_words(cells[name]) if name in cells else "" for name in table.readers]
            yield f"| {group} | {writer} | {' | '.join(words)} |"


def _scripts(found: Containers) -> Iterator[str]:
    yield ""
    yield "## Scripts"
    for each in found.findings:
        if each.example.script:
            yield ""
            yield f"{each.title}:"
            yield ""
            yield f"```python\n{each.example.script}```"
