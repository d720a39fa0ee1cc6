"""Finds which party changes a tensor, and shows it by the smallest tensor and a script.

A writer is at fault if the party `text` also reads the tensor changed from the writer's bytes. A
reader is at fault if it also reads the tensor changed from the bytes that `text` writes. If neither
holds, the fault lies between the two.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from conformance.extras.containers.faults import common_fault
from conformance.extras.containers.parties.dlpack_memory import capsule_statements
from conformance.extras.containers.parties.parties import TEXT
from conformance.extras.containers.parties.party import container_case
from conformance.extras.containers.requests import ReadStatements, WriteStatements
from conformance.extras.containers.ways import ChangedProbe, Way, smallest_difference
from oracles.adapters.script_text import WIDTH, bits_statement
from oracles.backend.client import Client
from oracles.backend.replies import Answered
from oracles.backend.requests import MethodRequest
from oracles.protocol import Bits
from oracles.registry import Backend
from specs.formats import format_named
from specs.model.strict_model import StrictModel

SHOWN = 8
"""Elements of a tensor that a finding shows."""
MOST_NAMED = 5
"""The most dtypes that a line names."""
MOST_LINES = 15
"""The most lines of a script; one with more omits reading, or is left out as a whole."""
WRITES, READS, BETWEEN = "writes", "reads", "exchange"


class ChangedTensor(StrictModel):
    """A tensor that comes back changed: what was written, what was read, and a script.

    ``patterns`` and ``read_patterns`` have a few elements in hex. The fields on what was read are
    empty if nothing was. ``script`` is empty if it is too long or cannot be written.
    """

    dtype: str
    writer: str
    reader: str
    probe: str
    shape: tuple[int, ...]
    patterns: tuple[str, ...]
    read_dtype: str
    read_shape: tuple[int, ...]
    read_patterns: tuple[str, ...]
    script: str

    @property
    def lines(self) -> list[str]:
        """A line for the tensor that was written, and one for that which was read, if any was."""
        written = f"{self.dtype}{list(self.shape)} {_row(self.patterns)} ({self.probe})"
        if not self.read_dtype:
            return [f"written   {written}"]
        read = f"{self.read_dtype}{list(self.read_shape)} {_row(self.read_patterns)}"
        return [f"written   {written}", f"read      {read}"]


def _row(patterns: Sequence[str]) -> str:
    return " ".join(patterns) + (" …" if len(patterns) == SHOWN else "")


class PartyFault(StrictModel):
    """One fault of a party in a container, with all dtypes, writers and readers that show it.

    ``side`` tells whether the party ``WRITES`` or ``READS`` wrongly. If that is unknown it is
    ``BETWEEN``, and ``party`` names the writer and the reader.
    """

    container: str
    fault: str
    party: str
    side: str
    dtypes: tuple[str, ...]
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    example: ChangedTensor

    @property
    def title(self) -> str:
        """The container, the party and the fault in one line."""
        whose = f"between {self.party}" if self.side == BETWEEN else f"{self.party} {self.side}"
        return f"{self.container}: {whose}: {self.fault}"

    @property
    def dtype_words(self) -> str:
        """The first ``MOST_NAMED`` dtypes, and the number of the others."""
        rest = len(self.dtypes) - MOST_NAMED
        return ", ".join(self.dtypes[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def findings_of(backends: Sequence[Backend], ways: Sequence[Way]) -> list[PartyFault]:
    """Return the faults in the ways of one container, each fault of a party once.

    The parties, ``backends``, are asked again for the smallest tensor and the script of each fault.
    """
    named = {each.name: each for each in backends}
    blamed: dict[tuple[str, str, str], list[tuple[Way, ChangedProbe]]] = defaultdict(list)
    changed = {
        (way.dtype, way.writer, way.reader, each.probe.name)
        for way in ways
        for each in way.different
    }
    for way in ways:
        groups: dict[tuple[str, str], list[ChangedProbe]] = defaultdict(list)
        for each in way.different:
            groups[_guilty(way, each, changed)].append(each)
        for (party, side), differences in groups.items():
            for fault, found in _by_fault(differences):
                blamed[party, side, fault] += [(way, each) for each in found]
    return [_finding(named, *key, found) for key, found in blamed.items()]


def _by_fault(differences: Sequence[ChangedProbe]) -> Iterator[tuple[str, list[ChangedProbe]]]:
    """Yield faults that together explain all differences, each with those that it explains.

    Of differences that are not mixed, each counts for one fault, and the one that explains most
    comes first. Each part of a mixed difference is a fault too.
    """
    whole = [each for each in differences if not each.explanation.is_mixed]
    faults: dict[str, list[ChangedProbe]] = defaultdict(list)
    while whole:
        fault = common_fault([each.names for each in whole])
        faults[fault] += [each for each in whole if fault in each.names]
        whole = [each for each in whole if fault not in each.names]
    for each in differences:
        if each.explanation.is_mixed:
            for fault in each.names:
                faults[fault].append(each)
    yield from faults.items()


def _guilty(
    way: Way, difference: ChangedProbe, changed: set[tuple[str, str, str, str]]
) -> tuple[str, str]:
    """Return the party at fault for a difference, and whether it ``WRITES`` or ``READS`` wrongly.

    If that is unknown, return both parties and ``BETWEEN``. ``changed`` has the dtype, writer,
    reader and probe of each tensor that changes.
    """
    probe = difference.probe.name
    if way.writer != TEXT and (way.dtype, way.writer, TEXT, probe) in changed:
        return way.writer, WRITES
    if way.reader != TEXT and (way.dtype, TEXT, way.reader, probe) in changed:
        return way.reader, READS
    if way.writer == TEXT:
        return way.reader, READS
    if way.reader == TEXT:
        return way.writer, WRITES
    return f"{way.writer} and {way.reader}", BETWEEN


def _finding(
    named: Mapping[str, Backend],
    party: str,
    side: str,
    fault: str,
    found: Sequence[tuple[Way, ChangedProbe]],
) -> PartyFault:
    ways = [way for way, _ in found]
    # The smallest tensor, on a way of which both ends can be shown by a script.
    way, difference = min(
        found,
        key=lambda each: (
            each[0].reader == TEXT,
            each[0].writer == TEXT,
            not each[1].probe.bits.size,
            each[1].probe.bits.size,
            each[1].probe.is_strided,
            not 8 <= format_named(each[0].dtype).bits <= 16,
            format_named(each[0].dtype).bits,
        ),
    )
    smallest = smallest_difference(named, way, fault, difference)
    return PartyFault(
        container=way.container,
        fault=fault,
        party=party,
        side=side,
        dtypes=tuple(dict.fromkeys(each.dtype for each in ways)),
        writers=tuple(dict.fromkeys(each.writer for each in ways)),
        readers=tuple(dict.fromkeys(each.reader for each in ways)),
        example=_example(named, way, smallest),
    )


def _example(named: Mapping[str, Backend], way: Way, difference: ChangedProbe) -> ChangedTensor:
    probe, read = difference.probe, difference.read
    first = _first_shown(difference)
    return ChangedTensor(
        dtype=way.dtype,
        writer=way.writer,
        reader=way.reader,
        probe=probe.name,
        shape=probe.bits.shape,
        patterns=_patterns(probe.bits, first),
        read_dtype="" if read is None else read.dtype,
        read_shape=() if read is None else read.bits.shape,
        read_patterns=() if read is None else _patterns(read.bits, first),
        script=_script(named, way, difference),
    )


def _first_shown(difference: ChangedProbe) -> int:
    """Return the index of the first element that a finding shows.

    It is that of the first difference if the tensor has more than ``SHOWN`` elements and keeps its
    shape and storage dtype, otherwise 0.
    """
    read, bits = difference.read, difference.probe.bits
    if read is None or read.bits.shape != bits.shape or bits.size <= SHOWN:
        return 0
    if read.bits.dtype != bits.dtype:
        return 0
    return int(np.flatnonzero(read.bits.reshape(-1) != bits.reshape(-1))[:1].sum())


def _patterns(bits: Bits, first: int) -> tuple[str, ...]:
    row = np.ascontiguousarray(bits).reshape(-1)[first : first + SHOWN]
    digits = 2 * row.dtype.itemsize
    return tuple(f"0x{element.tobytes()[::-1].hex():0>{digits}}" for element in row)


def _script(named: Mapping[str, Backend], way: Way, difference: ChangedProbe) -> str:
    """Return a script that shows a difference; empty if it is too long or cannot be written."""
    probe = difference.probe
    case = container_case(way.container, way.dtype, is_big=probe.is_big)
    write = _statements(named[way.writer], WriteStatements(case))
    read = _statements(named[way.reader], ReadStatements(case))
    versions = ", ".join(
        f"{name} {named[name].version}" for name in dict.fromkeys((way.writer, way.reader))
    )
    lines = [f"# {versions}: {way.container}, {way.dtype}, {probe.name}", "import numpy as np"]
    if write:
        lines += bits_statement(way.dtype, np.ascontiguousarray(probe.bits)).splitlines()
        lines += (probe.layout + write).splitlines()
    elif not difference.content:
        return ""
    elif way.container == "dlpack":
        lines[1:] = capsule_statements(difference.content).splitlines()
    else:
        lines += _literal(difference.content)
    end = ["print(content.hex())"]
    if read:
        shown = [line for line in read.splitlines() if line not in lines]
        shown.append("print(y.dtype, y.shape, y.tobytes().hex())")
        # Without room for the reader, the bytes show what the writer did.
        end = shown if len(lines) + len(shown) <= MOST_LINES else end
    return "\n".join([*lines, *end]) + "\n" if len(lines) < MOST_LINES else ""


def _statements(backend: Backend, request: MethodRequest) -> str:
    [reply] = Client(backend).send([request])
    return str(reply.value) if isinstance(reply, Answered) else ""


def _literal(content: bytes) -> Iterator[str]:
    line = f'content = bytes.fromhex("{content.hex()}")'
    if len(line) <= WIDTH:
        yield line
        return
    yield "content = bytes.fromhex("
    yield from (f'    "{part}"' for part in textwrap.wrap(content.hex(), WIDTH - 6))
    yield ")"
