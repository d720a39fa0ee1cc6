"""An adapter for Castigate in one file: numpy's own ``astype``, judged like any other framework.

Castigate passes raw bit patterns in unsigned arrays and expects raw bit patterns back. An adapter
views them as values, runs one cast, and returns the bits of the result. It does no arithmetic of
its own, so that every wrong answer is the framework's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits, Unsupported
from specs.cases import Case

NUMPY = {
    name: np.dtype(name)
    for name in (
        "float64", "float32", "float16", "bool",
        "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
    )
}  # fmt: skip


class NumpyCast:
    """An oracle: a name, a version, and ``cast``."""

    name = "numpy"
    version = np.__version__
    claims = ("onnx-cast",)
    """The documents that it implements; without this line, all of them."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case in the same shape, or raise Unsupported if numpy lacks the cast."""
        if case.mode:
            raise Unsupported(f"astype takes no {', '.join(case.mode)}")
        values = bits.view(self.dtype(case.source))
        with np.errstate(all="ignore"):
            answers: NDArray[np.generic] = values.astype(self.dtype(case.target))
        return answers.view(f"uint{8 * answers.itemsize}")

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Send bits through an array without a cast; optional, it distinguishes adapter bugs."""
        return bits.view(self.dtype(dtype)).view(bits.dtype)

    def dtype(self, name: str) -> np.dtype[np.generic]:
        """Return numpy's dtype; Unsupported is reported as such and never counts as a pass."""
        if name not in NUMPY:
            raise Unsupported(f"numpy has no {name}")
        return NUMPY[name]
