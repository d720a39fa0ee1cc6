"""Torch tensors made of bit patterns and read as bit patterns, and torch's dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from oracles.bit_packing import is_packed, pack, unpack
from oracles.memory_layouts import storage_offset
from oracles.protocol import Bits, Unsupported
from specs.formats import format_named

DTYPES: Mapping[str, str] = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint64": "uint64",
    "uint32": "uint32",
    "uint16": "uint16",
    "uint8": "uint8",
    "bool": "bool",
    "complex64": "complex64",
    "complex128": "complex128",
}
"""The dtypes that torch casts."""

PAIRED: Mapping[str, str] = {"float4e2m1": "float4_e2m1fn_x2"}
"""The dtypes that torch only views: an element holds two codes, the first in its low bits."""

BYTE_PER_CODE = ("int4", "int2", "uint4", "uint2")
"""The dtypes that torch stores in a byte per code; the upper bits are undefined."""

VIEWED: Mapping[str, str] = {**DTYPES, **PAIRED}
NAMES: Mapping[str, str] = {torch_name: name for name, torch_name in VIEWED.items()}


class Tensors:
    """Converts between patterns and the tensors of a torch module, on the CPU or on a device."""

    def __init__(self, torch: Any, device: str | None = None) -> None:
        self._torch = torch
        self._device = device

    def castable(self, dtype: str) -> Any:
        """Return the torch dtype for ``to``; raise Unsupported if torch casts none of that name."""
        found = getattr(self._torch, DTYPES.get(dtype, ""), None)
        if found is None:
            raise Unsupported(f"torch has no dtype castable as {dtype}")
        return found

    def viewable(self, dtype: str) -> Any:
        """Return the torch dtype for ``view``; raise Unsupported if torch has none of that size."""
        if dtype in BYTE_PER_CODE:
            raise Unsupported(f"torch stores every {dtype} in a byte of its own")
        found = getattr(self._torch, VIEWED.get(dtype, ""), None)
        if found is None:
            raise Unsupported(f"torch has no dtype viewable as {dtype}")
        return found

    def name(self, torch_dtype: Any) -> str:
        """Return the project's name of a torch dtype, or torch's own if the project has none."""
        name = str(torch_dtype).removeprefix("torch.")
        return NAMES.get(name, name)

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of the patterns: on the device, or in their memory where torch can."""
        torch_dtype = self.viewable(dtype)
        if is_packed(format_named(dtype)):
            bits = _pairs(dtype, bits)
        elif any(stride < 0 for stride in bits.strides):
            bits = bits.copy()  # torch has no negative strides
        if not bits.size:
            # An empty numpy array has strides of 0, which torch refuses to view.
            return self._torch.empty(bits.shape, dtype=torch_dtype, device=self._device)
        with warnings.catch_warnings():
            # torch warns about read-only arrays.
            warnings.simplefilter("ignore")
            host = self._torch.from_numpy(bits.view(_carrier(dtype)))
        return self._placed(host).view(torch_dtype)

    def in_storage(self, dtype: str, bits: Bits) -> Any:
        """Return a contiguous tensor with the storage offset of the patterns."""
        offset, carrier = storage_offset(bits), getattr(self._torch, _carrier(dtype))
        elements = self.tensor(dtype, bits).view(carrier)
        storage = self._torch.zeros(
            offset + elements.numel(), dtype=carrier, device=elements.device
        )
        placed = storage[offset:].view(elements.shape)
        return placed.copy_(elements).view(self.viewable(dtype))

    def _placed(self, host: Any) -> Any:
        """Return a copy on the device with the host tensor's strides; without a device, itself."""
        if self._device is None:
            return host
        strides = zip(host.stride(), host.shape, strict=True)
        span = 1 + sum(stride * (length - 1) for stride, length in strides)
        # `to` would make the elements of a strided tensor neighbors.
        memory = host.as_strided((span,), (1,)).to(self._device, copy=True)
        return memory.as_strided(host.shape, host.stride())

    def bits(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in a tensor, in its memory if that is the host's, one per byte."""
        entry = format_named(dtype)
        codes: Bits = tensor.view(getattr(self._torch, _carrier(dtype))).cpu().numpy()
        if not is_packed(entry):
            return codes.view(entry.storage)
        if not codes.ndim:
            raise Unsupported(f"torch's {PAIRED[dtype]} without dimensions holds a pair of codes")
        shape = (*codes.shape[:-1], 2 * codes.shape[-1])
        return unpack(codes.reshape(-1), 2 * codes.size, entry.bits).reshape(shape)


def shares_memory(x: Any, y: Any) -> bool:
    """Whether two tensors have the same storage; empty ones share none."""
    left, right = x.untyped_storage(), y.untyped_storage()
    return bool(x is y or (left.nbytes() and left.data_ptr() == right.data_ptr()))


def _pairs(dtype: str, bits: Bits) -> Bits:
    """Pack two codes per byte along the last dimension."""
    if not bits.ndim or bits.shape[-1] % 2:
        raise Unsupported(f"torch's {PAIRED[dtype]} holds pairs along the last dimension")
    packed = pack(bits, format_named(dtype).bits)
    return packed.reshape(*bits.shape[:-1], bits.shape[-1] // 2)


def _carrier(dtype: str) -> str:
    """Return a dtype of this size that numpy and torch share: an integer, up to 64 bits."""
    storage = format_named(dtype).storage
    return "complex128" if storage == "V16" else storage
