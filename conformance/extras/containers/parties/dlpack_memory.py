"""Carries DLPack tensors between processes: the structures of `dlpack.h` as bytes and back.

A framework exports a capsule. Its structure and the memory that it points to are serialized, so
that another process can build the same structure for the framework that imports it. The description
is a line of JSON: type code, bits and lanes, shape, strides, and the positions of the pointer and
the first element.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from conformance.extras.containers.parties.party import tensor
from oracles.memory_layouts import is_packed, layout_of, pack, unpack
from oracles.protocol import Bits, Tensor, Unsupported
from specs.formats import format_named

CPU = 1
PADDED = 1 << 2
"""The flag of a tensor whose elements of less than a byte have a byte of their own."""
CODES: Mapping[str, tuple[int, int]] = {
    **{f"int{bits}": (0, bits) for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (2, 4, 8, 16, 32, 64)},
    **{f"float{bits}": (2, bits) for bits in (16, 32, 64)},
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "bool": (6, 8),
    "float8e3m4": (7, 8),
    "float8e4m3": (8, 8),
    "float8e4m3b11fnuz": (9, 8),
    "float8e4m3fn": (10, 8),
    "float8e4m3fnuz": (11, 8),
    "float8e5m2": (12, 8),
    "float8e5m2fnuz": (13, 8),
    "float8e8m0": (14, 8),
    "float6e2m3": (15, 6),
    "float6e3m2": (16, 6),
    "float4e2m1": (17, 4),
}
"""By dtype: its type code in `dlpack.h`, and the bits of an element."""
NAMES = {code: name for name, code in CODES.items()}


class _DlTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (
        ("dl_tensor", _DlTensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", _Deleter),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", _DlTensor),
    )


_NEW = ctypes.pythonapi.PyCapsule_New
_NEW.restype, _NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_POINTER = ctypes.pythonapi.PyCapsule_GetPointer
_POINTER.restype, _POINTER.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_IS_VALID = ctypes.pythonapi.PyCapsule_IsValid
_IS_VALID.restype, _IS_VALID.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_KEEP_ALL = _Deleter(lambda pointer: None)
"""A deleter that frees nothing: the memory belongs to the exporter, which is still alive."""


@dataclass(frozen=True)
class DlpackTensor:
    """The description of a DLPack tensor, without its memory.

    ``code``, ``bits``, ``lanes``, ``shape`` and ``strides`` are those of `dlpack.h`. If
    ``is_padded``, elements of less than a byte have a byte each.
    """

    code: int
    bits: int
    lanes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int
    """Bytes from the start of the memory to where the pointer points."""
    byte_offset: int
    """Bytes from there to the first element."""
    is_padded: bool = False


def described(dtype: str, bits: Bits) -> bytes:
    """Serialize a tensor of these patterns as `dlpack.h` defines it.

    The pointer points to the start of the memory, and the offset leads to the first element. The
    memory layout of ``bits`` is kept, except that elements of less than a byte are packed in row-
    major order. Raises Unsupported if `dlpack.h` has no such type.
    """
    try:
        code, width = CODES[dtype]
    except KeyError:
        raise Unsupported(f"dlpack.h has no type {dtype}") from None
    entry, size = format_named(dtype), bits.dtype.itemsize
    strides = tuple(stride // size for stride in bits.strides)
    if is_packed(entry) or not bits.size:
        row = np.ascontiguousarray(bits)
        memory = (pack(row, width) if is_packed(entry) else row).tobytes()
        strides, first = tuple(stride // size for stride in row.strides), 0
    else:
        below = -sum(min(0, (n - 1) * s) for n, s in zip(bits.shape, strides, strict=True))
        span = 1 + sum(abs((n - 1) * s) for n, s in zip(bits.shape, strides, strict=True))
        layout = layout_of(bits)
        before = layout.offset if layout is not None else 0
        first, words = before + below, np.zeros(before + span, bits.dtype)
        byte_strides = tuple(stride * size for stride in strides)
        np.ndarray(bits.shape, bits.dtype, words, first * size, byte_strides)[...] = bits
        memory = words.tobytes()
    return _encoded(DlpackTensor(code, width, 1, bits.shape, strides, 0, first * size), memory)


def exported(owner: Any) -> bytes:
    """Serialize the tensor that an array exports by ``__dlpack__``.

    The capsule is versioned if the array's library supports that. Raises Unsupported if the tensor
    is not in the host's memory; errors of the export itself pass through.
    """
    try:
        capsule = owner.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = owner.__dlpack__()
    return of_capsule(capsule)


def of_capsule(capsule: Any) -> bytes:
    """Serialize the tensor of a DLPack capsule; raise Unsupported if it is on another device."""
    flags = 0
    if _IS_VALID(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_POINTER(capsule, b"dltensor_versioned"))
        found, flags = versioned.dl_tensor, versioned.flags
    else:
        found = _Managed.from_address(_POINTER(capsule, b"dltensor")).dl_tensor
    if found.device_type != CPU:
        raise Unsupported(f"the tensor lies on a device of type {found.device_type}")
    shape = tuple(found.shape[: found.ndim]) if found.ndim else ()
    strides = tuple(found.strides[: found.ndim]) if found.strides else _row_major(shape)
    is_padded = bool(flags & PADDED)
    width = 8 * -(-found.bits // 8) if is_padded else found.bits
    ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    below = -sum(end for end in ends if end < 0)
    elements = (1 + sum(map(abs, ends))) * found.lanes if prod(shape) else 0
    size, first = -(-elements * width // 8), below * found.lanes * width // 8
    address = (found.data or 0) + found.byte_offset - first
    memory = ctypes.string_at(address, size) if size else b""
    fields = (found.code, found.bits, found.lanes, shape, strides)
    places = (first - found.byte_offset, found.byte_offset)
    return _encoded(DlpackTensor(*fields, *places, is_padded), memory)


def read_described(content: bytes) -> Tensor:
    """Return the tensor that serialized bytes describe, by the definitions of `dlpack.h`.

    Raises ValueError for an unknown type, and Unsupported for elements of several lanes that are
    not in row-major order.
    """
    tensor_of, memory = _decoded(content)
    dtype = NAMES.get((tensor_of.code, tensor_of.bits))
    if dtype is None:
        raise ValueError(f"type code {tensor_of.code} of {tensor_of.bits} bits has no meaning")
    entry, shape, strides = format_named(dtype), tensor_of.shape, tensor_of.strides
    if tensor_of.lanes > 1:
        # Each element is a vector: its lanes are neighbors.
        shape = (*shape[:-1], shape[-1] * tensor_of.lanes) if shape else (tensor_of.lanes,)
        if strides not in ((), _row_major(tensor_of.shape)):
            raise Unsupported("vectors of lanes in a memory layout of their own")
        strides = _row_major(shape)
    start = tensor_of.start + tensor_of.byte_offset
    if is_packed(entry) and not tensor_of.is_padded:
        row = np.frombuffer(memory, np.uint8)
        codes = unpack(row, len(memory) * 8 // entry.bits, entry.bits)
        first = start * 8 // entry.bits
    else:
        codes = np.frombuffer(memory, entry.storage)
        first = start // codes.dtype.itemsize
    if not prod(shape):
        return tensor(dtype, np.zeros(shape, entry.storage))
    size = codes.dtype.itemsize
    view = np.ndarray(shape, codes.dtype, codes, first * size, tuple(s * size for s in strides))
    return tensor(dtype, view)


def capsule_statements(content: bytes) -> str:
    """Return statements that bind ``content`` to an object that exports a serialized tensor.

    Unlike ``DlpackExporter``, the object exports an unversioned capsule only, which cannot mark
    elements as padded.
    """
    held, memory = _decoded(content)
    rank, lists = (
        len(held.shape),
        [", ".join(map(str, each)) for each in (held.shape, held.strides)],
    )
    return (
        "import ctypes, struct\n"
        f'memory = ctypes.create_string_buffer(bytes.fromhex("{memory.hex()}"))\n'
        f"shape, strides = (ctypes.c_int64 * {rank})({lists[0]}), "
        f"(ctypes.c_int64 * {rank})({lists[1]})\n"
        "at, new = ctypes.addressof, ctypes.pythonapi.PyCapsule_New\n"
        f'held = struct.pack("@PiiiBBHPPQPP", at(memory) + {held.start}, {CPU}, 0, {rank}, '
        f"{held.code}, {held.bits}, {held.lanes},\n"
        f"    at(shape), at(strides), {held.byte_offset}, 0, 0)\n"
        "held, new.restype = ctypes.create_string_buffer(held), ctypes.py_object\n"
        "new.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p\n"
        'own = {"__dlpack__": lambda self, **rest: new(at(held), b"dltensor", None),\n'
        f'    "__dlpack_device__": lambda self: ({CPU}, 0)}}\n'
        'content = type("Exporter", (), own)()\n'
    )


class DlpackExporter:
    """Exports a serialized tensor by DLPack, from memory of its own.

    It must be kept alive longer than every tensor that is imported from it.
    """

    def __init__(self, content: bytes) -> None:
        self._described, memory = _decoded(content)
        # dlpack.h asks for an alignment of 256 bytes. An importer that gets the layout wrong reads
        # outside of the memory, so leave space on both sides.
        self._memory = np.zeros(3 * len(memory) + 256, np.uint8)
        start = len(memory) + -(self._memory.ctypes.data + len(memory)) % 256
        self._memory[start : start + len(memory)] = np.frombuffer(memory, np.uint8)
        rank = len(self._described.shape)
        self._shape = (ctypes.c_int64 * max(rank, 1))(*self._described.shape)
        self._strides = (ctypes.c_int64 * max(rank, 1))(*self._described.strides)
        self._address = self._memory.ctypes.data + start + self._described.start if memory else None
        self._managed: list[ctypes.Structure] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **rest: Any) -> Any:
        """Return a capsule of the tensor, versioned if the importer takes version 1 or later.

        Raises BufferError if elements are padded and the capsule would be unversioned.
        """
        found = self._described
        fields = (self._address, CPU, 0, len(found.shape), found.code, found.bits, found.lanes)
        held = _DlTensor(*fields, self._shape, self._strides, found.byte_offset)
        managed: _Versioned | _Managed
        if max_version is not None and max_version[0] >= 1:
            flags = PADDED if found.is_padded else 0
            managed, name = _Versioned(1, 0, None, _KEEP_ALL, flags, held), b"dltensor_versioned"
        elif found.is_padded:
            raise BufferError("a tensor of padded elements needs a versioned capsule")
        else:
            managed, name = _Managed(held, None, _KEEP_ALL), b"dltensor"
        self._managed.append(managed)
        return _NEW(ctypes.addressof(managed), name, None)


def _encoded(tensor_of: DlpackTensor, memory: bytes) -> bytes:
    return json.dumps(vars(tensor_of)).encode() + b"\n" + memory


def _decoded(content: bytes) -> tuple[DlpackTensor, bytes]:
    line, _, memory = content.partition(b"\n")
    fields = json.loads(line)
    fields |= {name: tuple(fields[name]) for name in ("shape", "strides")}
    return DlpackTensor(**fields), memory


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
