"""Writes tensors with one party and reads them with another: reading must give what was written.

Each party writes all probes, then each reads every distinct content. Where a format has a text, the
party `text` is one of them, which tells the writer's faults from the reader's.

The probes have few elements first, then every pattern of up to 16 bits, and of wider dtypes those
that the quick tier asks of any target. Elements of a row are distinct as far as the dtype allows,
so that a wrong order shows. Packed elements are asked in every combination of a byte, and in rows
that end within one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import product, repeat
from math import prod
from typing import Any

import numpy as np

from conformance.extras.containers.faults import ChangeNames, common_fault, explained
from conformance.extras.containers.parties.party import HOST, container_case
from conformance.extras.containers.requests import ReadContainer, WriteContainer
from conformance.families.cast.quick_inputs import every_pattern, few_patterns
from oracles.backend.client import Client
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, NoAnswer, Raised
from oracles.backend.requests import MethodRequest
from oracles.memory_layouts import Layout, is_packed, with_layout
from oracles.protocol import Bits, Tensor
from oracles.registry import Backend
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format, format_named, formats

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
"""The containers in the order of tables; docs/checkpoints.md describes each."""

INVALID = "the answer is invalid"
ROWS = (1, 2, 3, 5, 7, 8)
"""Lengths of short rows: with odd ones the last byte of packed elements is not full."""
SHAPES: tuple[tuple[int, ...], ...] = ((1, 1), (3, 5), (2, 3, 5), (4, 1, 3))
EMPTY: tuple[tuple[int, ...], ...] = ((0,), (2, 0, 3))
BLOCKS: tuple[tuple[int, ...], ...] = ((32,), (3, 64))
"""Rows of whole blocks, as block formats want them."""
BYTES_IN_ORDER = 0x0102030405060708090A0B0C0D0E0F1D
"""A pattern of which no two bytes are equal."""
ODD_STEP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""An odd number far from any power of two: its multiples are distinct in any width."""


@dataclass(frozen=True)
class LaidTensor:
    """A probe: a tensor with its layout in memory.

    If ``is_big``, a writer gets the same patterns in big-endian order.
    """

    name: str
    bits: Bits
    is_big: bool = False
    layout: str = ""
    """The statement with which a script gives ``bits`` its layout."""

    @property
    def is_strided(self) -> bool:
        """Whether the elements are not adjacent in memory, or not in row-major order."""
        return not self.bits.flags.c_contiguous


def storable() -> list[str]:
    """Return the names of the dtypes that containers hold: all except texts."""
    return [name for name, entry in formats().items() if entry.kind != "text"]


@cache
def probes(dtype: str) -> tuple[LaidTensor, ...]:
    """Return the probes of a dtype, those with few elements first."""
    return tuple(_probes(format_named(dtype)))


def row_of(entry: Format, count: int) -> Bits:
    """Return a row of ``count`` patterns, distinct as far as the dtype has enough of them."""
    words = [(BYTES_IN_ORDER + at * ODD_STEP) & entry.mask for at in range(count)]
    return _words(entry, words)


def _words(entry: Format, words: list[int]) -> Bits:
    if entry.bits <= 64:
        return np.array(words, entry.storage)
    width = entry.bits // 8
    content = b"".join(word.to_bytes(width, "little") for word in words)
    return np.frombuffer(content, entry.storage).copy()


def _probes(entry: Format) -> Iterator[LaidTensor]:
    for count in ROWS:
        yield LaidTensor(f"row of {count}", row_of(entry, count))
    yield LaidTensor("scalar", row_of(entry, 1).reshape(()))
    for shape in EMPTY:
        yield LaidTensor(f"empty, {_sides(shape)}", np.zeros(shape, entry.storage))
    for shape in SHAPES:
        yield LaidTensor(f"shape {_sides(shape)}", row_of(entry, prod(shape)).reshape(shape))
    yield from _layouts(entry)
    if entry.bits > 8:
        yield LaidTensor("big-endian", row_of(entry, 3), True, "bits = bits.byteswap()\n")
    for shape in BLOCKS:
        yield LaidTensor(f"blocks, {_sides(shape)}", _blocks(entry, shape))
    yield LaidTensor(
        "every pattern" if entry.bits <= EXHAUSTIVE_BITS else "telling patterns", whole(entry)
    )


def _layouts(entry: Format) -> Iterator[LaidTensor]:
    table, row = row_of(entry, 15).reshape(3, 5), row_of(entry, 8)
    for name, bits, layout, statement in (
        ("columns first", table, Layout((1, 3)), "np.asfortranarray(bits)"),
        ("every second element", row, Layout((2,)), "np.repeat(bits, 2)[::2]"),
        ("backwards", row, Layout((-1,)), "bits[::-1].copy()[::-1]"),
        ("begins after a boundary", row, Layout((1,), 1), "np.append(bits[:1], bits)[1:]"),
        ("part of a wider table", table, Layout((7, 1), 1), "np.tile(bits, 2)[:, :5]"),
    ):
        yield LaidTensor(name, with_layout(bits, layout), layout=f"bits = {statement}\n")


def _blocks(entry: Format, shape: tuple[int, ...]) -> Bits:
    """Return a tensor of whole blocks of 32 elements.

    Of 8-bit integers, each block contains 127, and none -128, so that the scale of a block can be
    one.
    """
    row = row_of(entry, prod(shape))
    if entry.kind == "integer" and entry.bits == 8:
        row[row == 0x80] = 0x81
        row[::32] = 0x7F
    return row.reshape(shape)


def whole(entry: Format) -> Bits:
    """Return a row of every pattern, or of special ones if the dtype has more than 16 bits.

    Elements of 2 and 4 bits come in every combination that fits a byte, those of 6 bits at each
    place in three bytes.
    """
    if entry.kind == "complex":
        part = few_patterns(entry.entry.part, "string", 0).astype(object)
        pairs = zip(part, np.roll(part, part.size // 2 + 1), strict=True)
        half = entry.bits // 2
        return _words(entry, [int(real) | int(imaginary) << half for real, imaginary in pairs])
    if entry.bits > EXHAUSTIVE_BITS:
        return few_patterns(entry.name, "string", 0)
    if is_packed(entry):
        count = 8 // entry.bits if entry.bits != 6 else 4
        if entry.bits == 6:
            # Each pattern at each of the four places in three bytes.
            rows = [
                np.roll([code, 0x15, 0x2A, 0x3F], place) for code in range(64) for place in range(4)
            ]
            return np.array(rows, np.uint8).ravel()
        return np.array([*product(range(1 << entry.bits), repeat=count)], np.uint8).ravel()
    return every_pattern(entry)


def _sides(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


@dataclass(frozen=True)
class ChangedProbe:
    """A probe that came back changed or malformed, or that crashed the reader or the writer.

    ``read`` is the tensor that came back, and ``content`` the bytes in between. They are None and
    empty if it was malformed or a process crashed.
    """

    probe: LaidTensor
    explanation: ChangeNames
    read: Tensor | None = None
    content: bytes = b""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the changes that explain the difference."""
        return self.explanation.names


@dataclass
class Way:
    """The results of all probes of a dtype in a container, from a writer to a reader.

    Both may be the same party. ``identical`` names the probes that came back unchanged.
    """

    container: str
    dtype: str
    writer: str
    reader: str
    identical: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """By probe, the party that refuses it or raises an error, and why."""
    different: list[ChangedProbe] = field(default_factory=list)

    @property
    def case(self) -> Case:
        """The case of the container and the dtype."""
        return container_case(self.container, self.dtype)

    @property
    def fault(self) -> str:
        """The name of the change that explains most of the differences; empty if there are none."""
        return common_fault([each.names for each in self.different]) if self.different else ""


def ways_of(backends: Sequence[Backend], container: str, dtypes: Sequence[str]) -> list[Way]:
    """Have each party write all probes of the dtypes, and each party read all that was written.

    Return a way for each writer, reader and dtype. Parties that do not support the container are
    left out.
    """
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
ReadResults = Mapping[tuple[str, bytes], Answered[Tensor] | NoAnswer]
"""By dtype and content, what a party read."""


def _written(client: Client, container: str, asked: Sequence[tuple[str, LaidTensor]]) -> Written:
    requests = [
        WriteContainer(container_case(container, dtype, is_big=probe.is_big), probe.bits)
        for dtype, probe in asked
    ]
    keys = [(dtype, probe.name) for dtype, probe in asked]
    return dict(zip(keys, _sent(client, requests, [name for _, name in keys]), strict=True))


def _held(
    asked: Sequence[tuple[str, LaidTensor]], written: Mapping[str, Written]
) -> dict[tuple[str, bytes], str]:
    """Return the distinct contents of each dtype, each with the first probe that became it."""
    found: dict[tuple[str, bytes], str] = {}
    for replies in written.values():
        for dtype, probe in asked:
            match replies[dtype, probe.name]:
                case Answered(content):
                    found.setdefault((dtype, content.tobytes()), probe.name)
    return found


def _read(client: Client, container: str, held: Mapping[tuple[str, bytes], str]) -> ReadResults:
    requests = [
        ReadContainer(container_case(container, dtype), np.frombuffer(content, np.uint8))
        for dtype, content in held
    ]
    return dict(zip(held, _sent(client, requests, [*held.values()]), strict=True))


def _sent(
    client: Client, requests: Sequence[MethodRequest], names: Sequence[str]
) -> list[Answered[Any] | NoAnswer]:
    """Send requests, those of the first request's dtype first; return replies in the given order.

    ``names`` has the probe of each request. If a probe of the first dtype crashes the process, it
    is not sent for other dtypes, as each crash costs a start: these get the same reply.
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
    return any(not isinstance(reply, Declined) for reply in replies)


def _ways(
    container: str,
    names: tuple[str, str],
    dtypes: Sequence[str],
    written: Written,
    read: ReadResults,
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


def _compare(
    way: Way, probe: LaidTensor, content: bytes, reply: Answered[Tensor] | NoAnswer
) -> None:
    match reply:
        case Answered(found):
            changed = explained(way.dtype, probe.bits, found, is_strided=probe.is_strided)
            if changed.names:
                way.different.append(ChangedProbe(probe, changed, found, content))
            else:
                way.identical.append(probe.name)
        case missing:
            _missing(way, probe, way.reader, missing)


def _missing(way: Way, probe: LaidTensor, party: str, missing: object) -> None:
    match missing:
        case Declined(text):
            way.refused[probe.name] = f"{party}: {text}"
        case Raised():
            way.refused[probe.name] = f"{party}: {missing.text}"
        case Crashed():
            way.different.append(ChangedProbe(probe, ChangeNames((missing.text,))))
        case Malformed(text):
            way.different.append(ChangedProbe(probe, ChangeNames((f"{INVALID}: {text}",))))


def smallest_difference(
    backends: Mapping[str, Backend], way: Way, fault: str, found: ChangedProbe
) -> ChangedProbe:
    """Return a smaller tensor than ``found`` that the same fault changes, else ``found``.

    The parties are asked the smallest pattern that changes by itself and, if elements are packed,
    rows of two. They are asked nothing if the probe has a layout or elements above 64 bits, or if
    no tensor of its dtype and shape came back.
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
            again = _again(backends, way, LaidTensor(f"row of {bits.size}", bits))
            if again is not None and fault in again.names:
                return again
    return found


def _alone(dtype: str, fault: str, written: Bits, read: Bits) -> Iterator[Bits]:
    """Yield a row of one element: the smallest pattern that the fault changes by itself, if any."""
    row, found = written.reshape(-1), read.reshape(-1)
    wrong = np.flatnonzero(row != found)
    for at in wrong[np.argsort(row[wrong], kind="stable")].tolist():
        one = Tensor(dtype, HOST, found[at : at + 1])
        if fault in explained(dtype, row[at : at + 1], one, is_strided=False).names:
            yield row[at : at + 1].copy()
            return


def _again(backends: Mapping[str, Backend], way: Way, probe: LaidTensor) -> ChangedProbe | None:
    [written] = Client(backends[way.writer]).send([WriteContainer(way.case, probe.bits)])
    if not isinstance(written, Answered):
        return None
    [read] = Client(backends[way.reader]).send([ReadContainer(way.case, written.value)])
    if not isinstance(read, Answered):
        return None
    changed = explained(way.dtype, probe.bits, read.value, is_strided=False)
    content = written.value.tobytes()
    return ChangedProbe(probe, changed, read.value, content) if changed.names else None
