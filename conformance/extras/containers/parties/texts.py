"""The party `text`: writes and reads containers byte by byte, as the texts of the formats say."""

from __future__ import annotations

import ast
import io
import json
import zipfile
from collections.abc import Mapping
from functools import partial
from math import prod

import numpy as np

from conformance.extras.containers.parties.dlpack_memory import described, read_described
from conformance.extras.containers.parties.party import BIG, ContainerRoad, Party, tensor
from conformance.extras.containers.parties.text_gguf import BLOCK_TYPES, read_gguf, write_gguf
from conformance.extras.containers.parties.text_onnx import read_tensor, write_tensor
from oracles.memory_layouts import is_packed, pack, unpack
from oracles.protocol import Bits, Tensor, Unsupported
from specs import VERSION
from specs.cases import Case
from specs.formats import format_named

MEMBER = "x.npy"
PACKED = {"packed-low-first": False, "packed-high-first": True}
"""The containers of packed rows, and whether the first element is in the high bits of its byte."""


class Texts(Party):
    """Writes and reads containers as their formats' texts define the bytes, without a framework."""

    name = "text"
    version = VERSION

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how to write and read each container whose bytes a text defines."""
        return {
            "onnx-raw": ContainerRoad(partial(_onnx, True), lambda case, given: read_tensor(given)),
            "onnx-typed": ContainerRoad(
                partial(_onnx, False), lambda case, given: read_tensor(given)
            ),
            "npy": ContainerRoad(_npy, lambda case, given: read_npy(given)),
            "npz": ContainerRoad(_npz, _read_npz),
            "safetensors": ContainerRoad(
                lambda case, bits: write_safetensors(case.source, _little(case, bits)),
                lambda case, given: read_safetensors(given),
            ),
            "dlpack": ContainerRoad(
                lambda case, bits: described(case.source, _little(case, bits)),
                lambda case, given: read_described(given),
            ),
            **dict.fromkeys(("gguf", *BLOCK_TYPES), ContainerRoad(_gguf, _read_gguf)),
            **dict.fromkeys(PACKED, ContainerRoad(_packed, _read_packed)),
        }


def _little(case: Case, bits: Bits) -> Bits:
    """Return ``bits`` unchanged, as the container has the same bytes for either byte order.

    Raises Unsupported for a big-endian case of one-byte elements, which have no byte order.
    """
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
    """Return the number of elements in 8 bytes, then the row's elements packed.

    Raises Unsupported unless ``bits`` is a row of elements of less than a byte and not big-endian,
    and for 6 bits if the first element is in the high bits.
    """
    entry = format_named(case.source)
    if not is_packed(entry) or bits.ndim != 1 or BIG in case.modes:
        raise Unsupported("rows of elements of less than a byte are packed")
    is_high_first = PACKED[case.version]
    if is_high_first and entry.bits == 6:
        raise Unsupported("no text packs 6 bits from the high end")
    return len(bits).to_bytes(8, "little") + packed_row(bits, entry.bits, is_high_first)


def packed_row(bits: Bits, width: int, is_high_first: bool) -> bytes:
    """Return a row packed with several elements of ``width`` bits in each byte.

    The first element of a byte lies in its high bits if ``is_high_first``, for which ``width`` must
    be 2 or 4, otherwise in its low bits.
    """
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


MAGIC = b"\x93NUMPY"
ALIGNMENT = 64
DESCRIPTIONS: Mapping[str, str] = {
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "int8": "i1",
    "int16": "i2",
    "int32": "i4",
    "int64": "i8",
    "uint8": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "uint64": "u8",
    "bool": "b1",
    "complex64": "c8",
    "complex128": "c16",
}
NAMES_BY_DESCRIPTION = {description: name for name, description in DESCRIPTIONS.items()}


def write_npy(dtype: str, bits: Bits, *, is_big: bool) -> bytes:
    """Return an npy file of version 1.0, in Fortran order if only that is contiguous in ``bits``.

    Raises Unsupported if the format lacks the dtype, and for one-byte elements if ``is_big``.
    """
    try:
        description = DESCRIPTIONS[dtype]
    except KeyError:
        raise Unsupported(f"the npy format has no dtype {dtype}") from None
    is_fortran = bool(bits.flags.f_contiguous and not bits.flags.c_contiguous)
    one_byte = format_named(dtype).bits <= 8
    if one_byte and is_big:
        raise Unsupported("an element of one byte has no byte order")
    order = "|" if one_byte else ">" if is_big else "<"
    fields = f"'descr': '{order}{description}', 'fortran_order': {is_fortran}, "
    header = f"{{{fields}'shape': {bits.shape}, }}".encode("latin1")
    length = len(MAGIC) + 4 + len(header) + 1
    header += b" " * (-length % ALIGNMENT) + b"\n"
    elements = np.array(bits, order="F" if is_fortran else "C")
    content = _swapped(dtype, elements.tobytes("A")) if is_big else elements.tobytes("A")
    return MAGIC + bytes([1, 0]) + len(header).to_bytes(2, "little") + header + content


def read_npy(content: bytes) -> Tensor:
    """Return the tensor of an npy file; an unknown dtype keeps the name that the file gives it.

    Raises ValueError if the bytes do not begin as an npy file; damage may raise other errors.
    """
    if content[: len(MAGIC)] != MAGIC:
        raise ValueError("the file does not begin with the magic of npy")
    size = 2 if content[6] == 1 else 4
    start = 8 + size
    length = int.from_bytes(content[8:start], "little")
    header = ast.literal_eval(content[start : start + length].decode("utf-8"))
    order, description = header["descr"][0], header["descr"][1:]
    dtype = NAMES_BY_DESCRIPTION.get(description, description)
    shape = tuple(header["shape"])
    width = int(description[1:])
    elements = content[start + length :][: width * prod(shape)]
    if order == ">" and dtype in DESCRIPTIONS:
        elements = _swapped(dtype, elements)
    codes = np.frombuffer(elements, f"V{width}")
    return tensor(dtype, codes.reshape(shape, order="F" if header["fortran_order"] else "C"))


def _swapped(dtype: str, elements: bytes) -> bytes:
    """Return elements with the bytes of each number reversed; a complex element has two numbers."""
    entry = format_named(dtype)
    width = entry.bits // 8 // (2 if entry.kind == "complex" else 1)
    return np.frombuffer(elements, f"uint{8 * width}").byteswap().tobytes()


KEY = "x"
"""The name of the only tensor in a file."""
DTYPES: Mapping[str, str] = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8e4m3fn": "F8_E4M3",
    "float8e4m3fnuz": "F8_E4M3FNUZ",
    "float8e5m2": "F8_E5M2",
    "float8e5m2fnuz": "F8_E5M2FNUZ",
    "float8e8m0": "F8_E8M0",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
}
NAMES_BY_WORD = {word: name for name, word in DTYPES.items()}


def write_safetensors(dtype: str, bits: Bits) -> bytes:
    """Return a safetensors file with one tensor; raise Unsupported if its page lacks the dtype.

    The header is padded with spaces to a multiple of 8 bytes.
    """
    if dtype not in DTYPES:
        raise Unsupported(f"the page of safetensors names no packing of {dtype}")
    entry = {"dtype": DTYPES[dtype], "shape": list(bits.shape), "data_offsets": [0, bits.nbytes]}
    header = json.dumps({KEY: entry}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + np.ascontiguousarray(bits).tobytes()


def read_safetensors(content: bytes) -> Tensor:
    """Return the only tensor of a safetensors file.

    Raises Unsupported for a dtype that the page of safetensors lacks, and ValueError for a file
    with several tensors or none.
    """
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    [entry] = [entry for key, entry in header.items() if key != "__metadata__"]
    first, last = entry["data_offsets"]
    elements, word = content[8 + length :][first:last], entry["dtype"]
    if word not in NAMES_BY_WORD:
        raise Unsupported(f"the page of safetensors names no packing of {word}")
    dtype = NAMES_BY_WORD[word]
    codes = np.frombuffer(elements, format_named(dtype).storage)
    return tensor(dtype, codes.reshape(entry["shape"]))
