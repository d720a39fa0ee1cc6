"""Faults of storage: integers, booleans, packed bits, and kernels of other dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lab.mutants.arithmetic import converted, detour
from lab.mutants.fault import Applies, Fault, Row
from oracles.protocol import Bits
from oracles.reference.kernels import OFFSET, TOP
from specs.formats import Format, format_named, formats

UNEXPLAINED = "unexplained"
AS_C = (
    "*via-*", "as-c-on-x86", "wrap", "saturate", "clamp-*", "minimum", "maximum", "zero",
    "rounds-nearest-*",
    "as-*", "clamps-*",
)  # fmt: skip
"""The causes that name a conversion of numbers to integers."""

ANOTHER_KERNEL = ("reads-*-as-*", "converts-to-*", *AS_C)


def faults() -> Iterator[Fault]:
    """Yield the faults of storage."""
    for name, (answers, applies, causes) in INTEGERS.items():
        yield Fault(name, "integers", answers, causes, applies)
    for name, (answers, applies, causes) in BOOLEANS.items():
        yield Fault(name, "booleans", answers, causes, applies)
    for name, (answers, applies) in PACKED.items():
        causes = ("changes-with-layout", "*nibble*", "*order*", UNEXPLAINED)
        yield Fault(name, "packed bits", answers, causes, applies)
    for name in formats():
        if format_named(name).is_numeric:
            yield Fault(
                f"reads-{name}",
                "another kernel",
                partial(_read, name),
                ANOTHER_KERNEL,
                partial(_can_read, name),
            )
            yield Fault(
                f"writes-{name}",
                "another kernel",
                partial(_written, name),
                ANOTHER_KERNEL,
                partial(_can_write, name),
            )


def _can_read(name: str, source: Format, target: Format) -> bool:
    is_other = name != source.name and format_named(name).bits == source.bits
    return is_other and detour(name, target.name) is not None and source.is_numeric


def _read(name: str, row: Row) -> Bits:
    """Return the answers of the kernel for another source of the same width."""
    return converted(row.bits, name, row.target.name)


def _can_write(name: str, source: Format, target: Format) -> bool:
    is_other = name != target.name and format_named(name).bits == target.bits
    return is_other and detour(source.name, name) is not None and target.is_numeric


def _written(name: str, row: Row) -> Bits:
    """Return the answers of the kernel for another target of the same width."""
    return converted(row.bits, row.source.name, name)


Floats = NDArray[np.float64]
EXACT_BITS = 53
"""Wider integers are not exact as float64, in which these faults compute."""


def _magnitudes(row: Row) -> Floats:
    """The magnitudes of inputs as float64; NaNs count as zero."""
    shift = np.broadcast_to(row.parts.exponent, row.bits.shape).astype(np.int64) - (OFFSET + TOP)
    found: Floats = np.ldexp(row.parts.significand.astype(np.float64), shift.astype(np.int32))
    found = np.where(row.is_a("zero") | row.is_a("nan"), 0.0, found)
    return np.where(row.is_a("infinity"), np.inf, found)


def _signed(row: Row, magnitudes: Floats) -> Floats:
    return np.where(row.negative, -magnitudes, magnitudes)


def _whole(row: Row) -> Floats:
    """The values of inputs, truncated."""
    return np.trunc(_signed(row, _magnitudes(row)))


def _low_bits(whole: Floats) -> NDArray[np.uint64]:
    """The low 64 bits of whole numbers; zero for infinities."""
    rest = np.fmod(np.where(np.isfinite(whole), whole, 0), 2.0**64)
    magnitude = np.abs(rest).astype(np.uint64)
    return np.where(rest < 0, np.uint64(0) - magnitude, magnitude)


def _wrapped(row: Row, whole: Floats) -> Bits:
    return row.stored(_low_bits(whole))


def _clamped(row: Row) -> Bits:
    values, target = _whole(row), row.target
    high = values >= 2.0 ** (target.bits - target.is_signed)
    low = values < (-(2.0 ** (target.bits - 1)) if target.is_signed else 0)
    codes = _wrapped(row, values)
    ends = np.where(high, np.uint64(target.max_code), np.uint64(target.lowest_code))
    return np.where((high | low) & ~row.is_a("nan"), row.stored(ends), codes)


def _indefinite(row: Row) -> Bits:
    """Truncate as x86 does, which answers NaNs and overflow with the lowest integer."""
    values, target = _whole(row), row.target
    beyond = np.abs(values) >= 2.0 ** (target.bits - 1)
    codes = row.stored(np.full(row.bits.shape, 1 << (target.bits - 1), np.uint64))
    return np.where(beyond | row.is_a("nan"), codes, _wrapped(row, values))


def _by_narrower(bits: int, row: Row) -> Bits:
    """Convert to a narrower signed integer first, and extend its sign."""
    low = _low_bits(_whole(row)) & np.uint64((1 << bits) - 1)
    sign = np.uint64(1 << (bits - 1))
    return row.stored((low ^ sign) - sign)


def _to_integers(source: Format, target: Format) -> bool:
    is_exact = source.kind == "float" or source.bits <= EXACT_BITS
    return source.is_numeric and is_exact and target.kind == "integer"


def _narrow_to_wider(bits: int, source: Format, target: Format) -> bool:
    return _to_integers(source, target) and target.bits > bits


INTEGERS: dict[str, tuple[Callable[[Row], Bits], Applies, tuple[str, ...]]] = {
    "clamps": (_clamped, _to_integers, AS_C),
    "wraps": (lambda row: _wrapped(row, _whole(row)), _to_integers, AS_C),
    "gives-the-indefinite-integer": (_indefinite, _to_integers, AS_C),
    **{
        f"keeps-{bits}-bits": (
            partial(_by_narrower, bits),
            partial(_narrow_to_wider, bits),
            (*AS_C, f"through-int{bits}", UNEXPLAINED),
        )
        for bits in (2, 4, 8, 16, 31, 32)
    },
    "takes-the-magnitude": (
        lambda row: _wrapped(row, np.abs(_whole(row))),
        _to_integers,
        ("magnitude*", "wrong-sign", UNEXPLAINED),
    ),
    "rounds-up-halves": (
        lambda row: _wrapped(row, _signed(row, np.floor(_magnitudes(row) + 0.5))),
        lambda source, target: source.kind == "float" and _to_integers(source, target),
        ("rounds-nearest-*", UNEXPLAINED),
    ),
}


def _to_booleans(source: Format, target: Format) -> bool:
    return source.is_numeric and target.kind == "boolean"


def _from_booleans(source: Format, target: Format) -> bool:
    return source.kind == "boolean" and target.is_numeric and target.bits > 2


BOOLEANS: dict[str, tuple[Callable[[Row], Bits], Applies, tuple[str, ...]]] = {
    "true-and-false-are-exchanged": (
        lambda row: row.stored(row.answers ^ np.uint64(1)),
        _to_booleans,
        ("*zero*", "one", "*false*", UNEXPLAINED),
    ),
    "fractions-are-false": (
        lambda row: row.stored(_whole(row) != 0),
        _to_booleans,
        ("truncated-nonzero", "truncate*", *AS_C),
    ),
    "halves-are-rounded": (
        lambda row: row.stored(_magnitudes(row) >= 0.5),
        _to_booleans,
        ("rounds-nearest-*", "truncated-*", "zero", UNEXPLAINED),
    ),
    "negative-zero-is-true": (
        lambda row: row.stored(row.words != 0),
        lambda source, target: _to_booleans(source, target) and source.kind == "float",
        ("any-bit", "one"),
    ),
    "the-lowest-bit-decides": (
        lambda row: row.stored(row.words & np.uint64(1)),
        _to_booleans,
        ("lowest-bit", "one", *AS_C),
    ),
    "the-low-byte-decides": (
        lambda row: row.stored((_low_bits(_whole(row)) & np.uint64(255)) != 0),
        _to_booleans,
        ("wrap", "lowest-*", "zero", "via-*", UNEXPLAINED),
    ),
    "positive-is-true": (
        lambda row: row.stored((row.answers != 0) & ~row.negative),
        _to_booleans,
        ("zero", "*false*", UNEXPLAINED),
    ),
    "true-is-255": (
        lambda row: converted(row.bits.astype(np.uint8) * np.uint8(255), "uint8", row.target.name),
        lambda source, target: (
            _from_booleans(source, target) and detour("uint8", target.name) is not None
        ),
        # As an int8 it is -1.
        ("*255*", UNEXPLAINED, "maximum", "infinity", "nan", "wrong-sign"),
    ),
    "true-is-minus-one": (
        lambda row: converted(row.bits.astype(np.uint8) * np.uint8(255), "int8", row.target.name),
        lambda source, target: (
            _from_booleans(source, target) and detour("int8", target.name) is not None
        ),
        ("wrong-sign", UNEXPLAINED, "maximum", "*signed*"),
    ),
    "true-is-every-bit": (
        lambda row: row.stored(np.where(row.words != 0, np.uint64(row.target.mask), np.uint64(0))),
        _from_booleans,
        ("maximum", "nan", UNEXPLAINED),
    ),
}


def _in_pairs(bits: Bits) -> Bits:
    """Exchange the two elements of each pair; the last of an odd number stays."""
    swapped, whole = bits.copy(), bits.size // 2 * 2
    swapped[:whole] = bits[:whole].reshape(-1, 2)[:, ::-1].reshape(-1)
    return swapped


def _reversed_fours(bits: Bits) -> Bits:
    reversed_, whole = bits.copy(), bits.size // 4 * 4
    reversed_[:whole] = bits[:whole].reshape(-1, 4)[:, ::-1].reshape(-1)
    return reversed_


def _without_odd_last(bits: Bits) -> Bits:
    lost = bits.copy()
    if bits.size % 2:
        lost[-1:] = 0
    return lost


def _packs(source: Format, target: Format) -> bool:
    return source.is_numeric and target.is_numeric and min(source.bits, target.bits) in (2, 4)


def _unpacks(source: Format, target: Format) -> bool:
    return source.is_numeric and target.is_numeric and source.bits in (2, 4)


PACKED: dict[str, tuple[Callable[[Row], Bits], Applies]] = {
    "exchanges-nibbles": (lambda row: _in_pairs(row.right), _packs),
    "reads-the-high-nibble-first": (lambda row: row.answered(_in_pairs(row.bits)), _unpacks),
    "reverses-four-elements": (lambda row: _reversed_fours(row.right), _packs),
    "loses-the-last-of-an-odd-number": (lambda row: _without_odd_last(row.right), _packs),
    "repeats-the-low-nibble": (lambda row: np.repeat(row.right[::2], 2)[: row.right.size], _packs),
}
