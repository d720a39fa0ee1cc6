"""An adapter for Castigate in one file: numpy's own ``astype``, judged like any other framework.

Castigate hands over raw bit patterns in unsigned arrays and wants raw bit patterns back. An adapter
reads them as what they mean, runs one cast, and hands the bits of the result back. It does no
arithmetic of its own, so that whatever is wrong is the framework's.
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
    """What Castigate needs of an oracle: a name, a version, and ``cast``."""

    name = "numpy"
    version = np.__version__
    claims = ("onnx-cast",)
    """The documents it means to implement; without this line, all of them."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case in the same shape, or say that there is no such cast."""
        if case.mode:
            raise Unsupported(f"astype takes no {', '.join(case.mode)}")
        values = bits.view(self.dtype(case.source))
        with np.errstate(all="ignore"):
            answers: NDArray[np.generic] = values.astype(self.dtype(case.target))
        return answers.view(f"uint{8 * answers.itemsize}")

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """The way in and out without a cast; optional, it tells a broken adapter from a bug."""
        return bits.view(self.dtype(dtype)).view(bits.dtype)

    def dtype(self, name: str) -> np.dtype[np.generic]:
        """A dtype of the same name; an opt-out is reported as such and is never a pass."""
        if name not in NUMPY:
            raise Unsupported(f"numpy has no {name}")
        return NUMPY[name]
