"""Registers a device of torch, written in Python, with three planted faults.

Its tensors hold numpy arrays. It makes bfloat16 by truncation, leaves float16 to the CPU, as many
devices do with what they lack, and makes int8 on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

__version__ = "0.1"

_setup_privateuseone_for_python_backend("planted")

LIBRARY = torch.library.Library("aten", "IMPL")


class Held(torch.Tensor):
    """A tensor of the device; ``memory`` holds its bytes."""

    memory: Any

    @staticmethod
    def __new__(cls, size: Any, dtype: Any, memory: Any) -> Any:
        made = torch._C._acc.create_empty_tensor(size, dtype)  # type: ignore[attr-defined]
        made.__class__ = cls
        made.memory = memory
        return made


def empty(size: Any, dtype: Any = None, **_: Any) -> Any:
    """Make a tensor of the device."""
    dtype = dtype or torch.get_default_dtype()
    return Held(size, dtype, np.zeros((*size, dtype.itemsize), np.uint8))


def empty_strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> Any:
    """Make a contiguous tensor of the device."""
    return empty(size, dtype)


def copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:
    """Copy a tensor to, from or within the device, and cast it."""
    if source.dtype == target.dtype:
        moved = _bytes_of(source)
    elif target.dtype == torch.float16:
        moved = _bytes_of(_on_host(source).to(torch.float16))
    elif (source.dtype, target.dtype) == (torch.float32, torch.bfloat16):
        moved = _bytes_of(source)[..., 2:]  # little endian: the upper half
    else:
        raise NotImplementedError(f"planted has no cast to {target.dtype}")
    (target.memory if isinstance(target, Held) else _bytes_of(target))[...] = moved
    return target


def to_copy(tensor: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """Do what ``Tensor.to`` does, but return int8 on the CPU."""
    dtype = dtype or tensor.dtype
    if dtype == torch.int8:
        return torch.zeros(tensor.shape, dtype=dtype)
    return torch.empty(tensor.shape, dtype=dtype, device=device or tensor.device).copy_(tensor)


def _on_host(tensor: Any) -> Any:
    memory = torch.from_numpy(tensor.memory).view(tensor.dtype) if tensor.memory.size else None
    return torch.empty(tensor.shape, dtype=tensor.dtype) if memory is None else memory[..., 0]


def _bytes_of(tensor: Any) -> Any:
    if isinstance(tensor, Held):
        return tensor.memory
    return tensor.contiguous().unsqueeze(-1).view(torch.uint8).numpy()


for name, kernel in {
    "empty.memory_format": empty,
    "empty_strided": empty_strided,
    "_copy_from": copy_from,
    "_to_copy": to_copy,
}.items():
    LIBRARY.impl(name, kernel, "PrivateUse1")
