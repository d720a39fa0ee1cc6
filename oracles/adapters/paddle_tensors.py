"""Load paddle, and convert between bit patterns and its tensors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from oracles.adapters.dtype_table import carrier_in, names_in
from oracles.adapters.refusals import load
from oracles.adapters.scripted import function_of
from oracles.protocol import Bits, Unsupported
from specs.formats import format_named

DTYPES: Mapping[str, str] = names_in("paddle")
"""The names of paddle's dtype objects. As strings some mean another dtype: `uint16` is bfloat16."""

ONLY_FATAL = "3"


def load_paddle() -> Any:
    """Import paddle, set it to the CPU and to a serial executor, silence it, and return it.

    It sets GLOG_minloglevel unless that is set. Raises NotInstalled if paddle is missing.
    """
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


def tensor_text(dtype: str) -> str:
    """Return the Python expression of a tensor of this dtype, made from the array ``bits``.

    The tensor is in the array's memory if that is contiguous. The expression avoids DLPack: paddle
    releases a program's input in another thread, where releasing DLPack memory deadlocks with the
    next import.
    """
    carrier = carrier_in("paddle", dtype)
    carried = f"paddle.Tensor(value=bits.view(np.{carrier}), zero_copy=True)"
    return carried + _viewed(carrier, DTYPES[dtype])


def patterns_text(dtype: str) -> str:
    """Return the Python expression of the patterns in ``y``, a tensor of this dtype.

    The expression views y as signed integers where the storage is unsigned, wider than a byte, and
    not y's own dtype.
    """
    storage = format_named(dtype).storage
    carrier = dtype if dtype == storage else carrier_in("paddle", dtype)
    return f'np.from_dlpack(y{_viewed(dtype, carrier)}).view("{storage}")'


def _viewed(held: str, name: str) -> str:
    return "" if held == name else f".view(paddle.{name})"


class PaddleTensors:
    """Converts between patterns and the tensors of a paddle module."""

    def __init__(self, paddle: Any) -> None:
        self._paddle = paddle
        names = {"paddle": paddle, "np": np}
        self._into = lru_cache(None)(
            lambda dtype: function_of(names, "bits", "", tensor_text(dtype))
        )
        self._out_of = lru_cache(None)(
            lambda dtype: function_of(names, "y", "", patterns_text(dtype))
        )

    def dtype(self, dtype: str) -> Any:
        """Return paddle's dtype object of a dtype; raise Unsupported if paddle has none."""
        try:
            return getattr(self._paddle, DTYPES[dtype])
        except (KeyError, AttributeError):
            raise Unsupported(f"paddle has no dtype {dtype}") from None

    def name(self, tensor: Any) -> str:
        """Return Castigate's name of a tensor's dtype, or paddle's if Castigate has none."""
        return self.named(tensor.dtype)

    def named(self, found: Any) -> str:
        """Return Castigate's name of a paddle dtype object, or paddle's if Castigate has none."""
        names = {self.dtype(name): name for name in DTYPES}
        return names.get(found, str(found))

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of this dtype that holds these patterns.

        It is in their memory if that is contiguous. Raises Unsupported if paddle lacks the dtype.
        """
        self.dtype(dtype)
        return self._into(dtype)(bits)

    def bits(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in a tensor's memory; raise TypeError unless it has this dtype.

        Raises Unsupported if paddle lacks the dtype.
        """
        found = getattr(tensor, "dtype", None)
        if found != self.dtype(dtype):
            raise TypeError(f"asked for {dtype}, got {found}")
        codes: Bits = self._out_of(dtype)(tensor)
        return codes
