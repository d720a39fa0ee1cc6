"""The order of dtypes on pages: those that most people use come first."""

from __future__ import annotations

from functools import cache

from specs.formats import Format, formats

USUAL = (
    "float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool",
)  # fmt: skip
BYTE = 8
"""The bits of the widest of the small floats; small integers have fewer."""


@cache
def usual_first() -> dict[str, int]:
    """Return the place of each dtype: ``USUAL``, small floats, small integers, then all others."""
    others = [each for each in formats().values() if each.name not in USUAL]
    names = [*USUAL, *(each.name for each in sorted(others, key=_group))]
    return {name: place for place, name in enumerate(names)}


def _group(dtype: Format) -> int:
    """Return a key by which floats of 8 bits come before narrower ones and small integers."""
    match dtype.kind:
        case "float" if dtype.bits <= BYTE:
            return BYTE - dtype.bits
        case "integer" if dtype.bits < BYTE:
            return BYTE
    return BYTE + 1
