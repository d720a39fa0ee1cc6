"""Load paddle, and convert between bit patterns and its tensors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from oracles.adapters.refusals import load
from oracles.protocol import Bits, Unsupported
from specs.formats import format_named

DTYPES: Mapping[str, str] = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e5m2": "float8_e5m2",
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
"""paddle's dtype objects. As strings some names mean another dtype: `uint16` is bfloat16."""

CARRIERS: Mapping[str, str] = {
    "uint8": "uint8",
    "uint16": "int16",
    "uint32": "int32",
    "uint64": "int64",
    "V16": "complex128",
}
"""By storage, a dtype that numpy and paddle share; paddle can view it as any of the same size."""

ONLY_FATAL = "3"


def load_paddle() -> Any:
    """Import paddle for the CPU, with one thread and without output."""
    # paddle reads the log level once, at import. The import warns about a missing ccache.
    os.environ.setdefault("GLOG_minloglevel", ONLY_FATAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paddle = load("paddle", "paddle")
    # Its handlers print pages of traces; only the signal that ends the process matters.
    paddle.disable_signal_handler()
    paddle.set_device("cpu")
    paddle.set_flags({"FLAGS_new_executor_serial_run": True})
    return paddle


class Tensors:
    """Converts between patterns and the tensors of a paddle module."""

    def __init__(self, paddle: Any) -> None:
        self._paddle = paddle

    def dtype(self, dtype: str) -> Any:
        """Return paddle's dtype object; raise Unsupported if paddle has none."""
        try:
            return getattr(self._paddle, DTYPES[dtype])
        except (KeyError, AttributeError):
            raise Unsupported(f"paddle has no dtype {dtype}") from None

    def name(self, tensor: Any) -> str:
        """Return the project's name of a tensor's dtype, or paddle's if the project has none."""
        names = {self.dtype(name): name for name in DTYPES}
        return names.get(tensor.dtype, str(tensor.dtype))

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of these patterns, in their memory if that is contiguous."""
        target = self.dtype(dtype)
        # Not by DLPack: paddle releases a program's input in another thread, and releasing DLPack
        # memory there deadlocks with the next import.
        carried = self._paddle.Tensor(
            value=bits.view(CARRIERS[format_named(dtype).storage]),
            place=self._paddle.CPUPlace(),
            zero_copy=True,
        )
        return carried if carried.dtype == target else carried.view(target)

    def bits(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in a tensor's memory; raise TypeError if it has another dtype."""
        found = getattr(tensor, "dtype", None)
        if found != self.dtype(dtype):
            raise TypeError(f"asked for {dtype}, got {found}")
        carried = self.dtype(carrier_out(dtype))
        array = np.from_dlpack(tensor if found == carried else tensor.view(carried))
        codes: Bits = array.view(format_named(dtype).storage)
        return codes


def carrier_out(dtype: str) -> str:
    """Return the dtype in which numpy reads a tensor; paddle views no unsigned integers."""
    storage = format_named(dtype).storage
    return dtype if dtype == storage else CARRIERS[storage]
