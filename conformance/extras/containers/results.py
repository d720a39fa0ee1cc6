"""Asks parties what containers change, and keeps the answers: every way, tables, findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from conformance.extras.containers.findings import PartyFault, findings_of
from conformance.extras.containers.parties.parties import installed_parties, load_party
from conformance.extras.containers.ways import CONTAINERS, Way, storable, ways_of
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import close, launch_configs
from reports.run_store.storage import Folder, folder_at
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.model.strict_model import StrictModel

FILE = "containers.json"
"""The file in a run's folder."""
IDENTICAL, PARTLY, CHANGED, REFUSED = "identical", "partly refused", "changed", "refused"
"""The outcomes of passing a dtype from one party to another."""


class WayResult(StrictModel):
    """The result of a way: how a dtype passes from a writer to a reader through a container.

    ``outcome`` is ``IDENTICAL``, ``PARTLY``, ``CHANGED`` or ``REFUSED``. ``fault`` explains most of
    the differences; it is empty if there are none. ``identical`` counts the probes that came back
    unchanged.
    """

    container: str
    dtype: str
    writer: str
    reader: str
    outcome: str
    fault: str
    identical: int
    refused: Mapping[str, str]
    """By probe, the party that refuses it or raises an error, and why."""


class Containers(StrictModel):
    """The result of a survey: the parties' versions by name, every way, and the faults found."""

    date: str
    versions: Mapping[str, str]
    ways: tuple[WayResult, ...]
    findings: tuple[PartyFault, ...]

    @property
    def names(self) -> list[str]:
        """The containers that some party writes and some party reads."""
        return list(dict.fromkeys(way.container for way in self.ways))


def way_result(way: Way) -> WayResult:
    """Return the outcome of a way by the results of its probes.

    A refused big-endian probe does not make a way ``PARTLY``, as some parties have no such arrays.
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


def survey(
    parties: Sequence[str] = (),
    names: Sequence[str] = CONTAINERS,
    dtypes: Sequence[str] = (),
    pythons: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
) -> Containers:
    """Write tensors with each party and read them with each; return how they change.

    The defaults are all installed parties, all containers (``names``), and all dtypes that
    containers hold. Raise CastigateError if a party cannot be loaded.
    """
    ways: list[WayResult] = []
    findings: list[PartyFault] = []
    with ExitStack() as stack:
        backends = []
        configs = launch_configs(parties or installed_parties(), pythons, timeout)
        for name, config in configs.items():
            backends.append(load_party(name, config))
            stack.callback(close, backends[-1])
        for name in names:
            found = ways_of(backends, name, dtypes or storable())
            findings += findings_of(backends, found)
            ways += map(way_result, found)
        versions = {each.name: each.version for each in backends}
    return Containers(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        versions=versions,
        ways=tuple(ways),
        findings=tuple(findings),
    )


@dataclass(frozen=True)
class ContainerCell:
    """The results of a group of dtypes from one writer to one reader.

    ``counts`` has the number of dtypes by outcome. ``words`` names the dtypes that change, and
    gives up to two reasons why others are ``REFUSED``.
    """

    group: str
    writer: str
    reader: str
    counts: Counter[str]
    words: str

    @property
    def outcome(self) -> str:
        """The first of changed, partly refused, identical and refused that any dtype has."""
        return next(each for each in (CHANGED, PARTLY, IDENTICAL, REFUSED) if self.counts[each])


@dataclass(frozen=True)
class ContainerTable:
    """The table of a container: its readers, a cell per group, writer and reader, and faults."""

    name: str
    readers: tuple[str, ...]
    cells: tuple[ContainerCell, ...]
    findings: tuple[PartyFault, ...]

    @property
    def rows(self) -> Sequence[tuple[str, str, Mapping[str, ContainerCell]]]:
        """The rows of the table: a group of dtypes, a writer, and the cells by reader.

        Rows in which every cell is refused are left out.
        """
        found: dict[tuple[str, str], dict[str, ContainerCell]] = {}
        for cell in self.cells:
            found.setdefault((cell.group, cell.writer), {})[cell.reader] = cell
        groups = dict.fromkeys(group for group, _ in found)
        return [
            (group, writer, found[group, writer])
            for group in groups
            for own, writer in found
            if own == group
            and any(cell.outcome != REFUSED for cell in found[group, writer].values())
        ]


def group_of(entry: Format) -> str:
    """Return the name of the group of dtypes in which tables have a format."""
    if entry.kind in ("boolean", "complex"):
        return "bool, complex"
    if entry.bits < 8:
        return "below 8 bits"
    if entry.kind == "integer":
        return "integers"
    return "8-bit floats" if entry.bits == 8 else "floats"


def tables(found: Containers) -> Iterator[ContainerTable]:
    """Yield a table for each container of a survey."""
    for name in found.names:
        ways = [way for way in found.ways if way.container == name]
        yield ContainerTable(
            name,
            tuple(dict.fromkeys(way.reader for way in ways)),
            tuple(_cells(ways)),
            tuple(each for each in found.findings if each.container == name),
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


def survey_of_run(run: str, timeout: float) -> None:
    """Survey all installed parties, and store the result in a run's folder."""
    store(run, survey(timeout=timeout))


def store(run: str, found: Containers) -> None:
    """Write the result of a survey into a run's folder, in place of an earlier one."""
    folder_at(run).write(FILE, found.model_dump_json().encode() + b"\n")


def stored_tables(folder: Folder) -> list[ContainerTable]:
    """Return the tables of the survey in a run's folder; an empty list if the folder has none.

    Raise CastigateError if the file cannot be read.
    """
    content = folder.read(FILE)
    if content is None:
        return []
    try:
        return list(tables(Containers.model_validate_json(content)))
    except ValidationError as error:
        where = folder.display_path(FILE)
        problem = error.errors()[0]["msg"]
        raise CastigateError(
            f"{where} cannot be read: {problem}; write it again with castigate containers --run"
        ) from None
