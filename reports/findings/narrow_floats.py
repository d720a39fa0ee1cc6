"""Numbers that pass through a narrower float, as in a detour of a library."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def rounded_to(dtype: str, numbers: Floats) -> Floats:
    """Numbers as float32, and then as ``bfloat16`` or ``float16`` if that is the dtype."""
    narrow = numbers.astype(np.float32)
    match dtype:
        case "float16":
            return narrow.astype(np.float16).astype(np.float64)
        case "bfloat16":
            bits = narrow.view(np.uint32)
            odd = bits >> np.uint32(16) & np.uint32(1)
            bits = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
            return bits.view(np.float32).astype(np.float64)
    return narrow.astype(np.float64)
