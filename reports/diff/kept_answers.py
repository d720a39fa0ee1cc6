"""Answers kept whole: arrays of patterns or texts under the digest of what they hold.

Neighbouring answers differ little and often alike, so that differences are what is packed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specs.formats import format_named

DIGITS = 32
"""Hex digits of a digest."""


@dataclass(frozen=True, eq=False)
class Kept:
    """An array of one dtype's patterns, or of texts."""

    dtype: str
    values: NDArray[Any]

    @cached_property
    def data(self) -> bytes:
        """The values, as bytes that compress well."""
        storage = np.dtype(format_named(self.dtype).storage)
        if storage.kind == "O":
            texts = json.dumps(self.values.tolist(), ensure_ascii=False)
            return texts.encode("utf-8", "surrogatepass")
        if storage.kind == "V":
            return self.values.tobytes()
        steps = np.diff(self.values, prepend=storage.type(0))
        return steps.astype(storage.newbyteorder("<"), copy=False).tobytes()

    @cached_property
    def digest(self) -> str:
        """A name that two arrays share only if they are the same."""
        return sha256(self.dtype.encode() + b" " + self.data).hexdigest()[:DIGITS]


def kept_of(dtype: str, data: bytes) -> Kept:
    """The array whose ``data`` this is."""
    storage = np.dtype(format_named(dtype).storage)
    if storage.kind == "O":
        texts = json.loads(data.decode("utf-8", "surrogatepass"))
        values = np.empty(len(texts), object)
        values[:] = texts
        return Kept(dtype, values)
    if storage.kind == "V":
        return Kept(dtype, np.frombuffer(data, storage))
    steps = np.frombuffer(data, storage.newbyteorder("<")).astype(storage)
    return Kept(dtype, np.cumsum(steps, dtype=storage))


@dataclass(frozen=True)
class Answered:
    """What was asked in one row, and what came back."""

    inputs: Kept
    answers: Kept
