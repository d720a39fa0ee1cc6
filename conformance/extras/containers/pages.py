"""Shows what containers change: on a terminal, as a page in Markdown, and as a report's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.extras.containers.findings import PartyFault
from conformance.extras.containers.results import (
    CHANGED,
    IDENTICAL,
    PARTLY,
    REFUSED,
    ContainerCell,
    Containers,
    ContainerTable,
    stored_tables,
    tables,
)
from reports.html.site import Mark, Page
from reports.outputs.table import markdown_table
from reports.run_store.store import RunStore
from specs import VERSION

SIGNS: Mapping[str, Mark] = {
    IDENTICAL: Mark(
        "=", "v-conforms", "every tensor comes back with its bits, its dtype and its shape"
    ),
    PARTLY: Mark("~", "v-unsupported", "some tensors are refused, all others come back unchanged"),
    CHANGED: Mark("!", "v-violates", "a tensor comes back changed, or ends the process"),
    REFUSED: Mark("–", "v-unsupported", "the writer or the reader refuses every tensor"),
}
"""The sign of each outcome of passing a dtype from one party to another, the best first."""


def containers_page(store: RunStore) -> Page | None:
    """Return a run's page about containers; None if no survey is stored with the run."""
    found = stored_tables(store.folder)
    content = {"tables": found, "signs": SIGNS}
    return Page("containers", "Containers", __package__, content) if found else None


def matrix(table: ContainerTable) -> list[list[str]]:
    """Return a container's table as rows of text: titles, then a row for each group and writer."""
    rows = [
        [
            group,
            writer,
            *(cell_words(cells[each]) if each in cells else "" for each in table.readers),
        ]
        for group, writer, cells in table.rows
    ]
    return [["dtypes", "written by", *table.readers], *rows]


def cell_words(cell: ContainerCell) -> str:
    """Return the number of dtypes with each outcome, followed by the outcome's sign."""
    return " ".join(
        f"{cell.counts[name]}{sign.mark}" for name, sign in SIGNS.items() if cell.counts[name]
    )


def finding_lines(finding: PartyFault) -> Iterator[str]:
    """Yield lines for a finding: the fault, dtypes and parties, the smallest tensor, the script."""
    yield finding.title
    yield f"    dtypes    {finding.dtype_words}"
    yield f"    ways      {', '.join(finding.writers)} to {', '.join(finding.readers)}"
    yield from (f"    {line}" for line in finding.example.lines)
    if finding.example.script:
        yield "    reproduce"
        yield from (f"      {line}".rstrip() for line in finding.example.script.splitlines())


def page(found: Containers) -> str:
    """Return the findings, tables and scripts of a survey as a page in Markdown."""
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
    rows = [
        [
            each.container,
            f"{each.party} {each.side}",
            each.fault,
            each.dtype_words,
            "; ".join(" ".join(line.split()) for line in each.example.lines),
        ]
        for each in found.findings
    ]
    titles = ("container", "at fault", "what happens", "dtypes", "smallest tensor")
    yield from markdown_table(titles, rows)


def _matrices(found: Containers) -> Iterator[str]:
    for table in tables(found):
        yield ""
        yield f"## {table.name}"
        yield ""
        titles, *rows = matrix(table)
        yield from markdown_table(titles, rows)


def _scripts(found: Containers) -> Iterator[str]:
    yield ""
    yield "## Scripts"
    for each in found.findings:
        if each.example.script:
            yield ""
            yield f"{each.title}:"
            yield ""
            yield f"```python\n{each.example.script}```"
