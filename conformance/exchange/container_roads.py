"""Writes tensors with one party and reads them with another: reading must give what was written.

Each party writes all probes, then each reads every distinct content. Where a format has a text, the
party `text` is one of them, which tells the writer's faults from the reader's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from conformance.exchange.container_faults import Explanation, common_fault, explained
from conformance.exchange.container_probes import Probe, probes, row_of
from oracles.backend.client import Client
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, NoAnswer, Raised
from oracles.backend.requests import MethodRequest, ReadContainer, WriteContainer
from oracles.containers.party import HOST, container_case
from oracles.protocol import Bits, Tensor
from oracles.registry import Backend
from specs.cases import Case
from specs.formats import format_named

CONTAINERS = (
    "onnx-raw",
    "onnx-typed",
    "safetensors",
    "npy",
    "npz",
    "dlpack",
    "torch-save",
    "gguf",
    "gguf-q4_0",
    "gguf-q8_0",
    "gguf-mxfp4",
    "packed-low-first",
    "packed-high-first",
)
"""The containers in the order of tables. docs/containers.md says what each is."""

INVALID = "the answer is invalid"


@dataclass(frozen=True)
class Difference:
    """A probe that came back changed, or ended the reader or the writer."""

    probe: Probe
    explanation: Explanation
    read: Tensor | None = None
    content: bytes = b""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the changes that explain it."""
        return self.explanation.names


@dataclass
class Way:
    """The results of all probes of a dtype from one party to another."""

    container: str
    dtype: str
    writer: str
    reader: str
    identical: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """By probe, who refuses it and why."""
    different: list[Difference] = field(default_factory=list)

    @property
    def case(self) -> Case:
        """The case of the container and the dtype."""
        return container_case(self.container, self.dtype)

    @property
    def fault(self) -> str:
        """The name that explains most of the differences; empty if there are none."""
        return common_fault([each.names for each in self.different]) if self.different else ""


def ways_of(backends: Sequence[Backend], container: str, dtypes: Sequence[str]) -> list[Way]:
    """Write and read all probes of some dtypes through a container, each party with each."""
    clients = {each.name: Client(each) for each in backends}
    asked = [(dtype, probe) for dtype in dtypes for probe in probes(dtype)]
    with ThreadPoolExecutor(len(clients)) as pool:
        every = clients.values()
        writing = pool.map(_written, every, repeat(container), repeat(asked))
        written = dict(zip(clients, writing, strict=True))
        held = _held(asked, written)
        reading = pool.map(_read, every, repeat(container), repeat(held))
        read = dict(zip(clients, reading, strict=True))
    return [
        way
        for writer, replies in written.items()
        if _has_container(replies.values())
        for reader, found in read.items()
        if _has_container(found.values())
        for way in _ways(container, (writer, reader), dtypes, replies, found)
    ]


Written = Mapping[tuple[str, str], Answered[Bits] | NoAnswer]
"""By dtype and probe, what a party wrote."""
Read = Mapping[tuple[str, bytes], Answered[Tensor] | NoAnswer]
"""By dtype and content, what a party read."""


def _written(client: Client, container: str, asked: Sequence[tuple[str, Probe]]) -> Written:
    requests = [
        WriteContainer(container_case(container, dtype, is_big=probe.is_big), probe.bits)
        for dtype, probe in asked
    ]
    keys = [(dtype, probe.name) for dtype, probe in asked]
    return dict(zip(keys, _sent(client, requests, [name for _, name in keys]), strict=True))


def _held(
    asked: Sequence[tuple[str, Probe]], written: Mapping[str, Written]
) -> dict[tuple[str, bytes], str]:
    """Return each distinct content of a dtype, with the probe that it first came from."""
    found: dict[tuple[str, bytes], str] = {}
    for replies in written.values():
        for dtype, probe in asked:
            match replies[dtype, probe.name]:
                case Answered(content):
                    found.setdefault((dtype, content.tobytes()), probe.name)
    return found


def _read(client: Client, container: str, held: Mapping[tuple[str, bytes], str]) -> Read:
    requests = [
        ReadContainer(container_case(container, dtype), np.frombuffer(content, np.uint8))
        for dtype, content in held
    ]
    return dict(zip(held, _sent(client, requests, [*held.values()]), strict=True))


def _sent(
    client: Client, requests: Sequence[MethodRequest], names: Sequence[str]
) -> list[Answered[Any] | NoAnswer]:
    """Send requests, those of the first dtype before the others.

    A probe that crashes the process is not sent for other dtypes: each crash costs a start.
    """
    if not requests:
        return []
    first = [each.case.source == requests[0].case.source for each in requests]
    early = [each for each, is_first in zip(requests, first, strict=True) if is_first]
    replies = iter(client.send(early))
    found: dict[int, Any] = {at: next(replies) for at, is_first in enumerate(first) if is_first}
    crashes = {names[at]: reply for at, reply in found.items() if isinstance(reply, Crashed)}
    late = [at for at, is_first in enumerate(first) if not is_first and names[at] not in crashes]
    found |= zip(late, client.send([requests[at] for at in late]), strict=True)
    return [found[at] if at in found else crashes[names[at]] for at in range(len(requests))]


def _has_container(replies: Iterable[object]) -> bool:
    """Whether a party has the container at all: it answers, or fails in doing so."""
    return any(not isinstance(reply, Declined) for reply in replies)


def _ways(
    container: str,
    names: tuple[str, str],
    dtypes: Sequence[str],
    written: Written,
    read: Read,
) -> Iterator[Way]:
    writer, reader = names
    for dtype in dtypes:
        way = Way(container, dtype, writer, reader)
        for probe in probes(dtype):
            match written[dtype, probe.name]:
                case Answered(content):
                    given = content.tobytes()
                    _compare(way, probe, given, read[dtype, given])
                case missing:
                    _missing(way, probe, writer, missing)
        yield way


def _compare(way: Way, probe: Probe, content: bytes, reply: Answered[Tensor] | NoAnswer) -> None:
    match reply:
        case Answered(found):
            changed = explained(way.dtype, probe.bits, found, is_strided=probe.is_strided)
            if changed.names:
                way.different.append(Difference(probe, changed, found, content))
            else:
                way.identical.append(probe.name)
        case missing:
            _missing(way, probe, way.reader, missing)


def _missing(way: Way, probe: Probe, party: str, missing: object) -> None:
    match missing:
        case Declined(text):
            way.refused[probe.name] = f"{party}: {text}"
        case Raised():
            way.refused[probe.name] = f"{party}: {missing.text}"
        case Crashed():
            way.different.append(Difference(probe, Explanation((missing.text,))))
        case Malformed(text):
            way.different.append(Difference(probe, Explanation((f"{INVALID}: {text}",))))


def smallest_difference(
    backends: Mapping[str, Backend], way: Way, fault: str, found: Difference
) -> Difference:
    """Return the smallest tensor that comes back changed by a fault, else the one that was found.

    The candidates are the smallest pattern that changes by itself and, if elements are packed, rows
    of two.
    """
    entry, read = format_named(way.dtype), found.read
    if read is None or read.bits.shape != found.probe.bits.shape or entry.bits > 64:
        return found
    if read.dtype != way.dtype or found.probe.layout:
        return found
    candidates = [*_alone(way.dtype, fault, found.probe.bits, read.bits)]
    if entry.bits < 8:
        candidates += [np.array([1, 0], np.uint8), row_of(entry, 2)]
    for bits in candidates:
        if bits.size < found.probe.bits.size:
            again = _again(backends, way, Probe(f"row of {bits.size}", bits))
            if again is not None and fault in again.names:
                return again
    return found


def _alone(dtype: str, fault: str, written: Bits, read: Bits) -> Iterator[Bits]:
    """Yield the smallest pattern to which a fault happens, if it happens to single elements."""
    row, found = written.reshape(-1), read.reshape(-1)
    wrong = np.flatnonzero(row != found)
    for at in wrong[np.argsort(row[wrong], kind="stable")].tolist():
        one = Tensor(dtype, HOST, found[at : at + 1])
        if fault in explained(dtype, row[at : at + 1], one, is_strided=False).names:
            yield row[at : at + 1].copy()
            return


def _again(backends: Mapping[str, Backend], way: Way, probe: Probe) -> Difference | None:
    [written] = Client(backends[way.writer]).send([WriteContainer(way.case, probe.bits)])
    if not isinstance(written, Answered):
        return None
    [read] = Client(backends[way.reader]).send([ReadContainer(way.case, written.value)])
    if not isinstance(read, Answered):
        return None
    changed = explained(way.dtype, probe.bits, read.value, is_strided=False)
    content = written.value.tobytes()
    return Difference(probe, changed, read.value, content) if changed.names else None
