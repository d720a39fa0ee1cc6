"""paddle, and the way of bits into its tensors and out again."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from oracles.adapters.lazy_import import load
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
"""paddle's objects; of its names not all mean them: the string `uint16` is bfloat16."""

CARRIERS: Mapping[str, str] = {
    "uint8": "uint8",
    "uint16": "int16",
    "uint32": "int32",
    "uint64": "int64",
    "V16": "complex128",
}
"""By storage: what numpy and paddle both have, and what paddle views as any dtype of the size."""

ONLY_FATAL = "3"


def load_paddle() -> Any:
    """The module, on the CPU, with one thread and in silence."""
    # The log's level is read once, at the import, which warns of a C++ compiler's missing cache.
    os.environ.setdefault("GLOG_minloglevel", ONLY_FATAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paddle = load("paddle", "paddle")
    # Its handlers write pages of traces, and of whatever ends the process only the signal counts.
    paddle.disable_signal_handler()
    paddle.set_device("cpu")
    paddle.set_flags({"FLAGS_new_executor_serial_run": True})
    return paddle


class Tensors:
    """Tensors that hold given bits."""

    def __init__(self, paddle: Any) -> None:
        self._paddle = paddle

    def dtype(self, dtype: str) -> Any:
        """The dtype object of that name."""
        try:
            return getattr(self._paddle, DTYPES[dtype])
        except (KeyError, AttributeError):
            raise Unsupported(f"paddle has no dtype {dtype}") from None

    def name(self, tensor: Any) -> str:
        """The name of a tensor's dtype: paddle's own where the project has none."""
        named = {self.dtype(name): name for name in DTYPES}
        return named.get(tensor.dtype, str(tensor.dtype))

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """A tensor of these patterns, in their own memory where that is contiguous."""
        wanted = self.dtype(dtype)
        # Not by DLPack: a program lets go of its input in a thread of its own, and for memory that
        # came by DLPack that thread and the next import wait for each other for ever.
        carried = self._paddle.Tensor(
            value=bits.view(CARRIERS[format_named(dtype).storage]),
            place=self._paddle.CPUPlace(),
            zero_copy=True,
        )
        return carried if carried.dtype == wanted else carried.view(wanted)

    def bits(self, dtype: str, tensor: Any) -> Bits:
        """The patterns in a tensor's own memory; anything but a tensor of the dtype is an error."""
        found = getattr(tensor, "dtype", None)
        if found != self.dtype(dtype):
            raise TypeError(f"asked for {dtype}, got {found}")
        carried = self.dtype(way_out(dtype))
        array = np.from_dlpack(tensor if found == carried else tensor.view(carried))
        codes: Bits = array.view(format_named(dtype).storage)
        return codes


def way_out(dtype: str) -> str:
    """What a tensor is viewed as for numpy: unsigned integers as themselves, nothing views them."""
    storage = format_named(dtype).storage
    return dtype if dtype == storage else CARRIERS[storage]
