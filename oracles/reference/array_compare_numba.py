"""A comparison compiled by numba, in the arrays' own width so that it vectorizes."""

from __future__ import annotations

from typing import Any

import numba


@numba.njit(cache=True, nogil=True)
def differs(array: Any, value: Any) -> Any:
    """Return whether any element of a one-dimensional array of integers differs from a value."""
    width = array.dtype.type
    wrong_bits = width(0)
    for at in range(array.size):
        wrong_bits = width(wrong_bits | (array[at] ^ value))
    return wrong_bits != 0
