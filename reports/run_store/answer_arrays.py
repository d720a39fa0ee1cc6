"""Arrays of inputs and answers as a run stores them, each under a digest of its content.

Neighboring patterns often differ by the same step, so that an array is encoded as its differences,
which compress better than the patterns themselves.
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
class DatumArray:
    """An array of the patterns of one dtype, or of texts."""

    dtype: str
    values: NDArray[Any]

    @cached_property
    def data(self) -> bytes:
        """The values encoded as bytes that compress well; ``decode_array`` reads them."""
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
        """A name that two arrays share only if dtype and values are the same."""
        return sha256(self.dtype.encode() + b" " + self.data).hexdigest()[:DIGITS]


def decode_array(dtype: str, data: bytes) -> DatumArray:
    """Decode the ``data`` of an array."""
    storage = np.dtype(format_named(dtype).storage)
    if storage.kind == "O":
        texts = json.loads(data.decode("utf-8", "surrogatepass"))
        values = np.empty(len(texts), object)
        values[:] = texts
        return DatumArray(dtype, values)
    if storage.kind == "V":
        return DatumArray(dtype, np.frombuffer(data, storage))
    steps = np.frombuffer(data, storage.newbyteorder("<")).astype(storage)
    return DatumArray(dtype, np.cumsum(steps, dtype=storage))


class SharedArrays:
    """Makes one ``DatumArray`` of each array, so that its digest is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], DatumArray] = {}

    def of(self, dtype: str, values: NDArray[Any]) -> DatumArray:
        """The array of these values; the same one for the same object."""
        return self._known.setdefault((dtype, id(values)), DatumArray(dtype, values))


@dataclass(frozen=True)
class InputsAndAnswers:
    """The inputs of one call of a backend, and its answers to them."""

    inputs: DatumArray
    answers: DatumArray
