"""Torch tensors made of bit patterns and read as bit patterns, and torch's dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from oracles.adapters.dtype_table import carrier_in, names_in
from oracles.adapters.scripted import Function, function_of
from oracles.memory_layouts import is_packed, pack, storage_offset, unpack
from oracles.protocol import Bits, Unsupported
from specs.formats import format_named

DTYPES: Mapping[str, str] = names_in("torch")
"""By dtype that torch casts, torch's name of it."""

PAIRED: Mapping[str, str] = {"float4e2m1": "float4_e2m1fn_x2"}
"""The dtypes that torch only views: an element holds two codes, the first in its low bits."""

BYTE_PER_CODE = ("int4", "int2", "uint4", "uint2")
"""The dtypes that torch stores in a byte per code; the upper bits are undefined."""

VIEWED: Mapping[str, str] = {**DTYPES, **PAIRED}
NAMES: Mapping[str, str] = {torch_name: name for name, torch_name in VIEWED.items()}


def tensor_text(dtype: str, device: str | None = None) -> str:
    """Return the Python expression of a tensor of this dtype, made from the array ``bits``.

    The tensor is on ``device`` or, if that is None, on the CPU.
    """
    array = "bits.view(np.complex128)" if dtype == "complex128" else "bits"
    there = f'.to("{device}")' if device else ""
    return f"torch.from_numpy({array}).view(torch.{VIEWED[dtype]}){there}"


def patterns_text(dtype: str, device: str | None = None) -> str:
    """Return the Python expression of the patterns in ``y``, a tensor of this dtype.

    Of codes that torch stores in pairs, it is the expression of the pairs' bytes.
    """
    storage, back = format_named(dtype).storage, ".cpu()" if device else ""
    if storage == "V16":
        return f'y{back}.numpy().view("V16")'
    return f"y{back}.view(torch.{storage}).numpy()"


class TorchTensors:
    """Converts between patterns and torch tensors, on a device or, if that is None, on the CPU."""

    def __init__(self, torch: Any, device: str | None = None) -> None:
        self._torch = torch
        self._device = device
        self._into = lru_cache(None)(self._make_into)
        self._out_of = lru_cache(None)(self._make_out_of)

    def castable(self, dtype: str) -> Any:
        """Return the torch dtype of a dtype; raise Unsupported if torch does not cast it."""
        found = getattr(self._torch, DTYPES.get(dtype, ""), None)
        if found is None:
            raise Unsupported(f"torch has no dtype castable as {dtype}")
        return found

    def viewable(self, dtype: str) -> Any:
        """Return the torch dtype of a dtype for ``view``.

        Raises Unsupported if torch lacks it, or stores each code of less than a byte in a byte.
        """
        if dtype in BYTE_PER_CODE:
            raise Unsupported(f"torch stores every {dtype} in a byte of its own")
        found = getattr(self._torch, VIEWED.get(dtype, ""), None)
        if found is None:
            raise Unsupported(f"torch has no dtype viewable as {dtype}")
        return found

    def name(self, torch_dtype: Any) -> str:
        """Return Castigate's name of a torch dtype, or torch's own if Castigate has none."""
        name = str(torch_dtype).removeprefix("torch.")
        return NAMES.get(name, name)

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of this dtype that holds these patterns, on the device if there is one.

        On the CPU it is in the patterns' own memory where torch allows that. Raises Unsupported for
        a dtype that torch does not view, and for codes that it stores in pairs, unless the last
        dimension is even.
        """
        into = self._into(dtype)
        if is_packed(format_named(dtype)):
            bits = _pairs(dtype, bits)
        elif any(stride < 0 for stride in bits.strides):
            bits = bits.copy()  # torch has no negative strides
        if not bits.size:
            # An empty numpy array has strides of 0, which torch refuses to view.
            return self._torch.empty(bits.shape, dtype=self.viewable(dtype), device=self._device)
        if self._device is not None and not bits.flags.c_contiguous:
            return self._placed(dtype, bits)
        if bits.flags.writeable:
            return into(bits)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about read-only arrays
            return into(bits)

    def in_storage(self, dtype: str, bits: Bits) -> Any:
        """Return a contiguous tensor of these patterns that begins inside its storage.

        Its offset is the one that ``storage_offset`` counts for ``bits``.
        """
        offset, carrier = storage_offset(bits), getattr(self._torch, carrier_in("torch", dtype))
        elements = self.tensor(dtype, bits).view(carrier)
        storage = self._torch.zeros(
            offset + elements.numel(), dtype=carrier, device=elements.device
        )
        placed = storage[offset:].view(elements.shape)
        return placed.copy_(elements).view(self.viewable(dtype))

    def _placed(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of these patterns on the device, with the strides of their array.

        The ``to`` of a script would make the tensor contiguous; so this copies the array's memory.
        """
        steps = tuple(stride // bits.itemsize for stride in bits.strides)
        ends = zip(steps, bits.shape, strict=True)
        span = 1 + sum(step * (length - 1) for step, length in ends)
        memory = np.lib.stride_tricks.as_strided(bits, (span,), (bits.itemsize,)).copy()
        return self._into(dtype)(memory).as_strided(bits.shape, steps)

    def bits(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in a tensor of this dtype, in its own memory if that is the host's.

        Two codes that share a byte become two patterns, in new memory. Raises Unsupported for such
        a pair in a tensor without dimensions.
        """
        codes: Bits = self._out_of(dtype)(tensor)
        entry = format_named(dtype)
        if not is_packed(entry):
            return codes
        if not codes.ndim:
            raise Unsupported(f"torch's {PAIRED[dtype]} without dimensions holds a pair of codes")
        shape = (*codes.shape[:-1], 2 * codes.shape[-1])
        return unpack(codes.reshape(-1), 2 * codes.size, entry.bits).reshape(shape)

    def _make_into(self, dtype: str) -> Function:
        self.viewable(dtype)
        names = {"np": np, "torch": self._torch}
        return function_of(names, "bits", "", tensor_text(dtype, self._device))

    def _make_out_of(self, dtype: str) -> Function:
        # Tensors of a call may be on the host whatever the device is.
        return function_of({"torch": self._torch}, "y", "", patterns_text(dtype, self._device))


def shares_memory(x: Any, y: Any) -> bool:
    """Return whether two tensors are one object, or have the same storage of at least one byte."""
    left, right = x.untyped_storage(), y.untyped_storage()
    return bool(x is y or (left.nbytes() and left.data_ptr() == right.data_ptr()))


def _pairs(dtype: str, bits: Bits) -> Bits:
    if not bits.ndim or bits.shape[-1] % 2:
        raise Unsupported(f"torch's {PAIRED[dtype]} holds pairs along the last dimension")
    packed = pack(bits, format_named(dtype).bits)
    return packed.reshape(*bits.shape[:-1], bits.shape[-1] // 2)
