"""A party writes tensors into containers and reads them back.

A container is named by what the bytes are (`npy`, `onnx-raw`), not by who wrote them. A party is an
oracle that casts nothing, so that it runs in a process of its own as any backend does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.memory_layouts import is_packed
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import formats

DOCUMENT = "containers"
"""The name in place of a document in a container's case: reading returns what was written."""
HOST = "cpu"
BIG = ("order", "big")
"""The mode of a case whose array lies in memory with the highest byte first."""


def container_case(container: str, dtype: str, *, is_big: bool = False) -> Case:
    """Return the case of a dtype in a container; if ``is_big``, writers get a big-endian array."""
    return Case(DOCUMENT, container, dtype, dtype, (BIG,) if is_big else ())


@dataclass(frozen=True)
class ContainerRoad:
    """How a party writes a container and reads it, as functions and as scripts.

    A function is None if the party cannot do it. Scripts are templates of statements, in which
    ``{dtype}`` stands for the dtype. ``write_script`` binds ``content`` to the container of
    ``bits``. ``read_script`` binds ``y`` to a numpy array of the tensor in ``content``.
    """

    write: Callable[[Case, Bits], bytes] | None = None
    read: Callable[[Case, bytes], Tensor] | None = None
    write_script: str = ""
    read_script: str = ""


class Party:
    """Base class of parties, which writes and reads by what a subclass's ``roads`` returns."""

    name: str
    version: str
    claims: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._roads = self.roads()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return by container how this party writes and reads it."""
        raise NotImplementedError

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Raise Unsupported, as parties cast nothing."""
        raise Unsupported(f"{self.name} casts nothing: it writes and reads containers")

    def write_container(self, case: Case, bits: Bits) -> Bits:
        """Return the bytes of the case's container that the party writes for the patterns ``bits``.

        The party gets the patterns in the memory layout that they have. Raises Unsupported if the
        party does not write the container or the dtype.
        """
        write = self._road(case).write
        if write is None:
            raise Unsupported(f"{self.name} writes no {case.version}")
        return np.frombuffer(bytes(write(case, bits)), np.uint8)

    def read_container(self, case: Case, content: Bits) -> Tensor:
        """Return the tensor that the party reads from a container, with the dtype that it reads.

        Raises Unsupported if the party does not read the container or the dtype.
        """
        read = self._road(case).read
        if read is None:
            raise Unsupported(f"{self.name} reads no {case.version}")
        return read(case, content.tobytes())

    def reproduce_write(self, case: Case) -> str:
        """Return statements that bind ``content`` to a container of ``bits``; empty if none exist.

        Raises Unsupported if the party does not know the container.
        """
        return self._script(case, self._road(case).write_script)

    def reproduce_read(self, case: Case) -> str:
        """Return statements that bind ``y`` to the tensor in ``content``; empty if none exist.

        Raises Unsupported if the party does not know the container.
        """
        return self._script(case, self._road(case).read_script)

    def dtype_expression(self, dtype: str) -> str:
        """Return the text that replaces ``{dtype}`` in this party's scripts."""
        return dtype

    def _script(self, case: Case, script: str) -> str:
        dtype = self.dtype_expression(case.source)
        if BIG in case.modes:
            dtype = f'np.dtype({dtype}).newbyteorder(">")'
        return script.format(dtype=dtype)

    def _road(self, case: Case) -> ContainerRoad:
        road = self._roads.get(case.version)
        if road is None:
            raise Unsupported(f"{self.name} has no {case.version}")
        return road


def tensor(dtype: str, bits: Any) -> Tensor:
    """Return the elements of ``bits`` as a tensor of patterns of ``dtype``.

    The elements must be as wide as the dtype's storage. If Castigate does not know the dtype, they
    become unsigned integers of the same width, or raw bytes if numpy has none so wide. In elements
    of less than a byte, the bits above are cleared.
    """
    array = np.asarray(bits)
    entry, width = formats().get(dtype), array.dtype.itemsize
    words = f"uint{8 * width}" if width in (1, 2, 4, 8) else f"V{width}"
    storage = words if entry is None else entry.storage
    codes = np.ascontiguousarray(array).reshape(array.shape)
    codes = codes.view(storage) if codes.size else np.empty(codes.shape, storage)
    if entry is not None and is_packed(entry):
        codes = np.asarray(codes & np.uint8(entry.mask))
    return Tensor(dtype, HOST, codes)


def big_endian(bits: Bits, dtype: np.dtype[Any]) -> Bits:
    """Return the patterns ``bits`` as a big-endian array of a numpy dtype.

    Raises Unsupported if the dtype has one byte or no big-endian form.
    """
    if dtype.itemsize == 1:
        raise Unsupported("an element of one byte has no byte order")
    swapped = dtype.newbyteorder(">")
    if swapped == dtype or swapped.byteorder not in ">":
        raise Unsupported(f"numpy has no {dtype.name} in the other byte order")
    parts = f"uint{4 * dtype.itemsize}" if dtype.kind == "c" else f"uint{8 * dtype.itemsize}"
    halves = bits.view(parts) if dtype.kind != "c" else _halves(bits, parts)
    array: Bits = halves.byteswap().view(swapped)
    return array.reshape(bits.shape)


def _halves(bits: Bits, parts: str) -> Bits:
    """Return complex patterns as their real and imaginary parts, along a last axis of two."""
    return np.ascontiguousarray(bits).reshape(*bits.shape, 1).view(parts)
