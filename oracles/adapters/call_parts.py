"""What calls are made of in every framework alike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oracles.protocol import Bits
from specs.formats import format_named

WORDS: Mapping[str, object] = {
    "none": None,
    "true": True,
    "false": False,
    "zero": 0,
    "number": 3.5,
    "list": [],
    "bytes": b"float32",
}


def ones(dtype: str, shape: tuple[int, ...]) -> Bits:
    """The patterns of ones; a complex one has its real part in the low bits."""
    entry = format_named(dtype)
    code = format_named(entry.entry.part or dtype).one_code
    storage = np.dtype(entry.storage)
    one = np.frombuffer(code.to_bytes(storage.itemsize, "little"), storage)[0]
    return np.full(shape, one)
