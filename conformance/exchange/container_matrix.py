"""The matrix of containers: which dtypes survive from each writer to each reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from rich.table import Table

from conformance.exchange.container_findings import SHOWN, Finding
from conformance.exchange.container_roads import Way
from reports.html.containers import (
    CHANGED,
    IDENTICAL,
    PARTLY,
    REFUSED,
    SIGNS,
    ContainerCell,
    ContainerFault,
    ContainerTable,
)
from specs.formats import Format, format_named
from specs.model.strict_model import StrictModel

MOST_NAMED = 5
"""The most dtypes that a line names."""


class WayResult(StrictModel):
    """The result of writing tensors of a dtype with one party and reading them with another."""

    container: str
    dtype: str
    writer: str
    reader: str
    outcome: str
    fault: str
    identical: int
    refused: Mapping[str, str]
    """By tensor, who refuses it and why."""


class Containers(StrictModel):
    """The result of the command: the parties' versions, every way, and the faults."""

    date: str
    versions: Mapping[str, str]
    ways: tuple[WayResult, ...]
    findings: tuple[Finding, ...]

    @property
    def names(self) -> list[str]:
        """The containers that any party has."""
        return list(dict.fromkeys(way.container for way in self.ways))


def way_result(way: Way) -> WayResult:
    """Return the result of a way's probes.

    A refused big-endian tensor does not count: a party without such arrays cannot be given one.
    """
    refused = [probe for probe in way.refused if probe != "big-endian"]
    if way.different:
        outcome = CHANGED
    elif not way.identical:
        outcome = REFUSED
    else:
        outcome = PARTLY if refused else IDENTICAL
    return WayResult(
        container=way.container,
        dtype=way.dtype,
        writer=way.writer,
        reader=way.reader,
        outcome=outcome,
        fault=way.fault,
        identical=len(way.identical),
        refused=way.refused,
    )


def containers(
    versions: Mapping[str, str], ways: Sequence[WayResult], findings: Sequence[Finding], day: date
) -> Containers:
    """Return the results as one value, dated."""
    return Containers(
        date=f"{day:%Y-%m-%d}", versions=versions, ways=tuple(ways), findings=tuple(findings)
    )


def group_of(entry: Format) -> str:
    """Return the group of dtypes to which a format belongs in tables."""
    if entry.kind in ("boolean", "complex"):
        return "bool, complex"
    if entry.bits < 8:
        return "below 8 bits"
    if entry.kind == "integer":
        return "integers"
    return "8-bit floats" if entry.bits == 8 else "floats"


def tables(found: Containers) -> Iterator[ContainerTable]:
    """Yield the table of each container, its dtypes in groups."""
    for name in found.names:
        ways = [way for way in found.ways if way.container == name]
        yield ContainerTable(
            name,
            tuple(dict.fromkeys(way.reader for way in ways)),
            tuple(_cells(ways)),
            tuple(_faults(found, name)),
        )


def _cells(ways: Sequence[WayResult]) -> Iterator[ContainerCell]:
    groups: dict[tuple[str, str, str], list[WayResult]] = {}
    for way in ways:
        key = group_of(format_named(way.dtype)), way.writer, way.reader
        groups.setdefault(key, []).append(way)
    for (group, writer, reader), members in groups.items():
        counts = Counter(way.outcome for way in members)
        changed = [way.dtype for way in members if way.outcome == CHANGED]
        refusals = dict.fromkeys(
            reason for way in members if way.outcome == REFUSED for reason in way.refused.values()
        )
        words = "; ".join([*(f"{dtype} changes" for dtype in changed), *list(refusals)[:2]])
        yield ContainerCell(group, writer, reader, counts, words)


def _faults(found: Containers, name: str) -> Iterator[ContainerFault]:
    for each in found.findings:
        if each.container == name:
            yield ContainerFault(
                each.title, dtype_words(each), "; ".join(example_lines(each)), each.example.script
            )


def rich_table(table: ContainerTable) -> Table:
    """Return a container's table for a terminal: writers down, readers across."""
    shown = Table()
    shown.add_column("dtypes")
    shown.add_column("written by")
    for reader in table.readers:
        shown.add_column(reader)
    for group, writer, cells in table.rows:
        words = [cell_words(cells[reader]) if reader in cells else "" for reader in table.readers]
        shown.add_row(group, writer, *words)
    return shown


def cell_words(cell: ContainerCell) -> str:
    """Return the signs of a cell, each with the number of dtypes."""
    return " ".join(
        f"{cell.counts[name]}{sign}" for name, sign in SIGNS.items() if cell.counts[name]
    )


def finding_lines(finding: Finding) -> Iterator[str]:
    """Yield what a finding says: the fault, where it shows, the smallest tensor, the script."""
    yield finding.title
    yield f"    dtypes    {dtype_words(finding)}"
    yield f"    ways      {', '.join(finding.writers)} to {', '.join(finding.readers)}"
    yield from (f"    {line}" for line in example_lines(finding))
    if finding.example.script:
        yield "    reproduce"
        yield from (f"      {line}".rstrip() for line in finding.example.script.splitlines())


def dtype_words(finding: Finding) -> str:
    """Return the dtypes that a finding concerns, of many the first."""
    rest = len(finding.dtypes) - MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(finding.dtypes[:MOST_NAMED]) + more


def example_lines(finding: Finding) -> Iterator[str]:
    """Yield the tensor that was written, and the one that was read."""
    each = finding.example
    yield f"written   {each.dtype}{list(each.shape)} {_row(each.patterns)} ({each.probe})"
    if each.read_dtype:
        yield f"read      {each.read_dtype}{list(each.read_shape)} {_row(each.read_patterns)}"


def _row(patterns: Sequence[str]) -> str:
    return " ".join(patterns) + (" …" if len(patterns) == SHOWN else "")
