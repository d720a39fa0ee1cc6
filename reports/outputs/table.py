"""Tables of texts for people: in the columns of a terminal, and in Markdown.

JSON and the pages of a report take the same rows as they are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from specs.plain_text import escape_markdown


def in_columns(rows: Sequence[Sequence[str]], numbers: Container[int] = ()) -> Iterator[str]:
    """Yield each row as a line in aligned columns.

    The columns whose index is in ``numbers`` are aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; titles and cells are Markdown already."""
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def escaped(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return the same rows with every character escaped that Markdown could take for markup."""
    return [[*map(escape_markdown, row)] for row in rows]
