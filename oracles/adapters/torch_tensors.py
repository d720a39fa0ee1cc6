"""Bit patterns as torch's tensors: which dtypes torch has, and the way in and out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from oracles.bit_packing import is_packed, pack, unpack
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
"""The dtypes that torch only views: an element holds two codes, the first one in its low bits."""

NOT_OF_ITS_SIZE = ("int4", "int2", "uint4", "uint2")
"""The dtypes of torch that take a byte for every code, and say nothing of its upper bits."""

VIEWED: Mapping[str, str] = {**DTYPES, **PAIRED}
NAMES: Mapping[str, str] = {theirs: ours for ours, theirs in VIEWED.items()}


class Tensors:
    """The tensors of one torch module, made of patterns and read as patterns."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def castable(self, dtype: str) -> Any:
        """The torch dtype that ``to`` knows under the name."""
        found = getattr(self._torch, DTYPES.get(dtype, ""), None)
        if found is None:
            raise Unsupported(f"torch has no dtype castable as {dtype}")
        return found

    def viewable(self, dtype: str) -> Any:
        """The torch dtype that ``view`` knows under the name, if it is of the dtype's size."""
        if dtype in NOT_OF_ITS_SIZE:
            raise Unsupported(f"torch stores every {dtype} in a byte of its own")
        found = getattr(self._torch, VIEWED.get(dtype, ""), None)
        if found is None:
            raise Unsupported(f"torch has no dtype viewable as {dtype}")
        return found

    def name(self, torch_dtype: Any) -> str:
        """The project's name of a torch dtype; torch's own where the project has none."""
        name = str(torch_dtype).removeprefix("torch.")
        return NAMES.get(name, name)

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """The tensor that holds the patterns: on their memory, unless torch cannot lie there."""
        torch_dtype = self.viewable(dtype)
        if is_packed(format_named(dtype)):
            bits = _pairs(dtype, bits)
        elif any(stride < 0 for stride in bits.strides):
            bits = bits.copy()  # torch has no negative strides
        if not bits.size:
            # numpy gives an empty array strides of 0, with which torch would refuse to view it.
            return self._torch.empty(bits.shape, dtype=torch_dtype)
        with warnings.catch_warnings():
            # A read-only array warns of being one.
            warnings.simplefilter("ignore")
            return self._torch.from_numpy(bits.view(_carrier(dtype))).view(torch_dtype)

    def bits(self, dtype: str, tensor: Any) -> Bits:
        """The patterns in a tensor, on its memory unless several share a byte."""
        entry = format_named(dtype)
        codes: Bits = tensor.view(getattr(self._torch, _carrier(dtype))).numpy()
        if not is_packed(entry):
            return codes.view(entry.storage)
        if not codes.ndim:
            raise Unsupported(f"torch's {PAIRED[dtype]} without dimensions holds a pair of codes")
        shape = (*codes.shape[:-1], 2 * codes.shape[-1])
        return unpack(codes.reshape(-1), 2 * codes.size, entry.bits).reshape(shape)


def shares_memory(x: Any, y: Any) -> bool:
    """Whether two tensors lie in one memory; those without elements share none."""
    here, there = x.untyped_storage(), y.untyped_storage()
    return bool(x is y or (here.nbytes() and here.data_ptr() == there.data_ptr()))


def _pairs(dtype: str, bits: Bits) -> Bits:
    """Two codes to a byte along the last dimension."""
    if not bits.ndim or bits.shape[-1] % 2:
        raise Unsupported(f"torch's {PAIRED[dtype]} holds pairs along the last dimension")
    packed = pack(bits, format_named(dtype).bits)
    return packed.reshape(*bits.shape[:-1], bits.shape[-1] // 2)


def _carrier(dtype: str) -> str:
    """What numpy and torch both have to carry the patterns: integers, up to 64 bits."""
    storage = format_named(dtype).storage
    return "complex128" if storage == "V16" else storage
