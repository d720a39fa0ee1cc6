"""The party `text`: writes and reads containers byte by byte, as the texts of the formats say."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from functools import partial

import numpy as np

from oracles.bit_packing import is_packed, pack, unpack
from oracles.containers.dlpack_memory import described, read_described
from oracles.containers.party import BIG, Party, Road, tensor
from oracles.containers.text_gguf import BLOCK_TYPES, read_gguf, write_gguf
from oracles.containers.text_npy import read_npy, write_npy
from oracles.containers.text_onnx import read_tensor, write_tensor
from oracles.containers.text_safetensors import read_safetensors, write_safetensors
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import format_named
from specs.release import VERSION

MEMBER = "x.npy"
PACKED = {"packed-low-first": False, "packed-high-first": True}
"""The containers of packed rows, and whether the first element is in the high bits of its byte."""


class Texts(Party):
    """Knows no framework: its answers are what a format's text fixes."""

    name = "text"
    version = VERSION

    def roads(self) -> Mapping[str, Road]:
        """Return all containers that a text fixes."""
        return {
            "onnx-raw": Road(partial(_onnx, True), lambda case, given: read_tensor(given)),
            "onnx-typed": Road(partial(_onnx, False), lambda case, given: read_tensor(given)),
            "npy": Road(_npy, lambda case, given: read_npy(given)),
            "npz": Road(_npz, _read_npz),
            "safetensors": Road(
                lambda case, bits: write_safetensors(case.source, _little(case, bits)),
                lambda case, given: read_safetensors(given),
            ),
            "dlpack": Road(
                lambda case, bits: described(case.source, _little(case, bits)),
                lambda case, given: read_described(given),
            ),
            **dict.fromkeys(("gguf", *BLOCK_TYPES), Road(_gguf, _read_gguf)),
            **dict.fromkeys(PACKED, Road(_packed, _read_packed)),
        }


def _little(case: Case, bits: Bits) -> Bits:
    """Return the patterns, as the format has one byte order; refuse elements that have none."""
    if BIG in case.modes and format_named(case.source).bits <= 8:
        raise Unsupported("an element of one byte has no byte order")
    return bits


def _onnx(is_raw: bool, case: Case, bits: Bits) -> bytes:
    return write_tensor(case.source, _little(case, bits), is_raw=is_raw)


def _npy(case: Case, bits: Bits) -> bytes:
    return write_npy(case.source, bits, is_big=BIG in case.modes)


def _npz(case: Case, bits: Bits) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(MEMBER), _npy(case, bits))
    return file.getvalue()


def _read_npz(case: Case, content: bytes) -> Tensor:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        [member] = archive.namelist()
        return read_npy(archive.read(member))


def _gguf(case: Case, bits: Bits) -> bytes:
    return write_gguf(case.version, case.source, _little(case, bits))


def _read_gguf(case: Case, content: bytes) -> Tensor:
    return read_gguf(case.version, content)


def _packed(case: Case, bits: Bits) -> bytes:
    """Return the elements of a row packed, after the number of elements in 8 bytes."""
    entry = format_named(case.source)
    if not is_packed(entry) or bits.ndim != 1 or BIG in case.modes:
        raise Unsupported("rows of elements of less than a byte are packed")
    is_high_first = PACKED[case.version]
    if is_high_first and entry.bits == 6:
        raise Unsupported("no text packs 6 bits from the high end")
    return len(bits).to_bytes(8, "little") + packed_row(bits, entry.bits, is_high_first)


def packed_row(bits: Bits, width: int, is_high_first: bool) -> bytes:
    """Return a row with several elements in each byte, the first in its low or its high bits."""
    row = np.ascontiguousarray(bits)
    if not is_high_first:
        return pack(row, width).tobytes()
    count = 8 // width
    whole = np.zeros(-(-row.size // count) * count, np.uint8)
    whole[: row.size] = row
    return pack(np.ascontiguousarray(whole.reshape(-1, count)[:, ::-1]), width).tobytes()


def _read_packed(case: Case, content: bytes) -> Tensor:
    entry = format_named(case.source)
    size, row = int.from_bytes(content[:8], "little"), np.frombuffer(content[8:], np.uint8)
    if not PACKED[case.version]:
        return tensor(case.source, unpack(row, size, entry.bits))
    count = 8 // entry.bits
    codes = unpack(row, row.size * count, entry.bits).reshape(-1, count)[:, ::-1]
    return tensor(case.source, codes.reshape(-1)[:size])
