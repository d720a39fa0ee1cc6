"""The `.npy` format after its page: magic, version, header length, a dict literal, then elements.

numpy/numpy doc/neps/nep-0001-npy-format.rst, as `numpy.lib.format` documents versions 1 to 3. The
dtypes are those that numpy writes by itself: the format has no word for any other.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from math import prod

import numpy as np

from oracles.containers.party import tensor
from oracles.protocol import Bits, Tensor, Unsupported
from specs.formats import format_named

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
NAMES = {description: name for name, description in DESCRIPTIONS.items()}


def write_npy(dtype: str, bits: Bits, *, is_big: bool) -> bytes:
    """Return a file of version 1.0; arrays that are contiguous in Fortran order keep it."""
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
    """Return the tensor of a file; an unknown dtype keeps the name that the file gives it."""
    if content[: len(MAGIC)] != MAGIC:
        raise ValueError("the file does not begin with the magic of npy")
    size = 2 if content[6] == 1 else 4
    start = 8 + size
    length = int.from_bytes(content[8:start], "little")
    header = ast.literal_eval(content[start : start + length].decode("utf-8"))
    order, description = header["descr"][0], header["descr"][1:]
    dtype = NAMES.get(description, description)
    shape = tuple(header["shape"])
    width = int(description[1:])
    elements = content[start + length :][: width * prod(shape)]
    if order == ">" and dtype in DESCRIPTIONS:
        elements = _swapped(dtype, elements)
    codes = np.frombuffer(elements, f"uint{8 * width}" if width <= 8 else f"V{width}")
    return tensor(dtype, codes.reshape(shape, order="F" if header["fortran_order"] else "C"))


def _swapped(dtype: str, elements: bytes) -> bytes:
    """Return the elements with the bytes of each number reversed; a complex one is two numbers."""
    entry = format_named(dtype)
    width = entry.bits // 8 // (2 if entry.kind == "complex" else 1)
    return np.frombuffer(elements, f"uint{8 * width}").byteswap().tobytes()
