"""Casts by integer arithmetic on bit patterns, written from the formats' fields.

The same functions run on numpy arrays, Python integers (``Word``) and traced terms
(``kernel_terms``), so they branch on formats only, never on data: where data decides, they call the
``select`` that belongs to the kind of operand. Beside it they use only and, or, xor, shift, add,
subtract and compare, on words of 64 bits. Arithmetic is modulo 2**64, and a shift by 64 or more
gives 0, as in numpy and in SMT-LIB.

Exponents are biased by ``OFFSET`` to stay non-negative. A significand is normalized: its leading
one is bit 63.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specs.formats import Format
from specs.model.vocabulary import Rounding

WIDTH = 64
MASK = (1 << WIDTH) - 1
OFFSET = 4096
"""Bias of every exponent in this module: a value in [1, 2) has the exponent ``OFFSET``."""
TOP = WIDTH - 1
"""The index of the highest bit of a word, where a normalized significand has its leading one."""
MORE_THAN_ALL = WIDTH + 1
"""A shift that drops a whole word and its guard bit, so that only the sticky bit is left."""

Select = Callable[[Any, Any, Any], Any]
"""The type of ``select(condition, then, otherwise)`` for one kind of operand."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A decoded source pattern: ``|x| = significand * 2**(exponent - OFFSET - TOP)`` if finite.

    ``sign`` is 0 or 1; ``nan``, ``infinity``, ``zero`` and ``subnormal`` are conditions.
    """

    sign: Any
    nan: Any
    infinity: Any
    zero: Any
    subnormal: Any
    significand: Any
    exponent: Any


@dataclass(frozen=True, slots=True)
class Converted:
    """A rounded value as a target pattern, and where it lies; valid for finite, nonzero inputs.

    ``code`` of a float keeps counting past the largest finite pattern, so that overflow is a
    comparison; ``code`` of an integer is wrapped. ``overflow``: the rounded value is out of range,
    or a negative one is cast to an unsigned float. ``beyond``: the value before rounding is out of
    range. ``tiny``: that value is below the smallest positive one. ``subnormal``: that value is
    below the smallest normal one, but not tiny. ``inexact``: rounding dropped a bit that was set.
    """

    code: Any
    overflow: Any
    beyond: Any
    tiny: Any
    subnormal: Any
    inexact: Any


def unpack(source: Format, pattern: Any, select: Select) -> Unpacked:
    """Decode patterns of a numeric source; ``select`` is that of the patterns' kind of operand."""
    if source.is_integral:
        return _unpack_integer(source, pattern, select)
    entry = source.entry
    top_field = (1 << entry.exponent) - 1
    field = (pattern >> entry.mantissa) & top_field
    mantissa = pattern & ((1 << entry.mantissa) - 1)
    magnitude = pattern & (source.mask ^ source.sign_bit)
    sign = (pattern >> (source.bits - 1)) & entry.sign
    never = pattern < 0
    nan, infinity = never, never
    match entry.nan:
        case "ieee":
            nan = magnitude > source.infinity_code
        case "all-ones":
            nan = magnitude == (1 << (entry.exponent + entry.mantissa)) - 1
        case "negative-zero":
            nan = pattern == source.sign_bit
    if entry.infinity:
        infinity = magnitude == source.infinity_code
    hidden = 1 << entry.mantissa
    if entry.zero == "none":
        zero, subnormal, significand = never, never, mantissa | hidden
    else:
        zero = (magnitude == 0) & (nan ^ True)
        subnormal = (magnitude > 0) & (magnitude < hidden)
        significand = mantissa | select(field == 0, 0, hidden)
        field = select(field == 0, 1, field)
    significand, leading_zeros = _normalize(significand, source.precision, select)
    exponent = field + (OFFSET - entry.bias) - leading_zeros
    return Unpacked(sign, nan, infinity, zero, subnormal, significand, exponent)


def _unpack_integer(source: Format, pattern: Any, select: Select) -> Unpacked:
    never = pattern < 0
    if source.is_signed:
        sign = (pattern >> (source.bits - 1)) & 1
        magnitude = select(sign == 1, (0 - pattern) & source.mask, pattern)
    else:
        sign, magnitude = pattern & 0, pattern
    significand, leading_zeros = _normalize(magnitude, source.bits, select)
    exponent = (OFFSET + source.bits - 1) - leading_zeros
    return Unpacked(sign, never, never, magnitude == 0, never, significand, exponent)


def _normalize(value: Any, width: int, select: Select) -> tuple[Any, Any]:
    """Shift a value of at most ``width`` bits until its leading one is bit 63.

    Returns the shifted value, and how many of the ``width`` bits were leading zeros. Each step of
    this binary search halves the number of leading zeros that may be left.
    """
    value = value << (WIDTH - width)
    count = value & 0
    step = 1 << (width - 1).bit_length()
    while step := step >> 1:
        small = value < (1 << (WIDTH - step))
        value = select(small, value << step, value)
        count = count + select(small, step, 0)
    return value, count


def convert(target: Format, rounding: Rounding, parts: Unpacked, select: Select) -> Converted:
    """Round a finite, nonzero value to a code of a target, with flags such as overflow.

    The codes of non-negative floats count their values in order. So a float's code is
    ``2**mantissa`` for each binade above the lowest one, plus the rounded significand with its
    leading one. If rounding carries into the next binade, or past the largest value, this sum is
    still right.
    """
    if target.is_integral:
        return _to_integer(target, rounding, parts, select)
    lowest = target.lowest_exponent + OFFSET
    low = parts.exponent < lowest
    # Binades above the lowest one, and bits that gradual underflow drops below it.
    above = select(low, 0, parts.exponent - lowest)
    below = select(low, lowest - parts.exponent, 0)
    kept, rounded, inexact = _round(parts, (WIDTH - target.precision) + below, rounding, select)
    base = above << target.entry.mantissa
    if target.entry.zero == "none":
        base = base - (1 << target.entry.mantissa)
    tiny = kept == 0
    code, truncated = base + rounded, base + kept
    largest = target.max_code
    overflow = (code > largest) & (tiny ^ True)
    beyond = ((truncated > largest) | ((truncated == largest) & inexact)) & (tiny ^ True)
    if target.is_signed:
        signed = parts.sign == 1
        if target.entry.zero == "unsigned":
            signed = signed & ((code == 0) ^ True)
        code = code | select(signed, target.sign_bit, 0)
    else:
        overflow = overflow | (parts.sign == 1)
        beyond = beyond | (parts.sign == 1)
    return Converted(code, overflow, beyond, tiny, low & (tiny ^ True), inexact)


def _to_integer(target: Format, rounding: Rounding, parts: Unpacked, select: Select) -> Converted:
    units = OFFSET + TOP  # the exponent at which the lowest bit of a significand counts one
    large = parts.exponent > units
    drop = select(large, 0, units - parts.exponent)
    kept, rounded, inexact = _round(parts, drop, rounding, select)
    shift = select(large, parts.exponent - units, 0)
    rounded = rounded << shift
    bound = select(parts.sign == 1, target.sign_bit, target.max_code)
    overflow = large | (rounded > bound)
    beyond = large | (kept > bound) | ((kept == bound) & inexact)
    code = select(parts.sign == 1, 0 - rounded, rounded) & target.mask
    never = parts.exponent < 0
    return Converted(code, overflow, beyond, kept == 0, never, inexact)


def _round(parts: Unpacked, drop: Any, rounding: Rounding, select: Select) -> tuple[Any, Any, Any]:
    """Drop the ``drop`` lowest bits of a significand, and round what is left.

    Returns the truncated significand, the rounded one, and whether a bit that was set is dropped.
    With ``lsb`` the lowest kept bit, ``guard`` the highest dropped bit, ``sticky`` the OR of all
    lower ones, ``some = guard | sticky`` and ``sign`` 0 or 1, the truncated significand rises by:

    - ``nearest-even``: ``guard & (sticky | lsb)``
    - ``nearest-away``: ``guard``
    - ``toward-zero``: ``0``
    - ``floor``: ``sign & some``
    - ``ceil``: ``(1 - sign) & some``
    - ``odd``: ``(1 - lsb) & some``
    """
    drop = select(drop > MORE_THAN_ALL, MORE_THAN_ALL, drop)
    truncated = parts.significand >> drop
    any_bit = select(parts.significand == 0, 0, 1)
    dropped = select(drop == MORE_THAN_ALL, any_bit, parts.significand << (WIDTH - drop))
    guard = dropped >> TOP
    sticky = select((dropped << 1) == 0, 0, 1)
    some = guard | sticky
    lsb = truncated & 1
    match rounding:
        case "nearest-even":
            increment = guard & (sticky | lsb)
        case "nearest-away":
            increment = guard
        case "toward-zero":
            increment = truncated & 0
        case "floor":
            increment = parts.sign & some
        case "ceil":
            increment = (parts.sign ^ 1) & some
        case "odd":
            increment = (lsb ^ 1) & some
    return truncated, truncated + increment, some == 1


def has_fraction(parts: Unpacked, select: Select) -> Any:
    """Return whether a finite, nonzero value is not an integer."""
    below_one = parts.exponent < OFFSET
    shift = select(below_one, 0, parts.exponent - (OFFSET - 1))
    return (parts.significand << shift) > 0


def zero_code(target: Format, parts: Unpacked, select: Select) -> Any:
    """Return the target's pattern of a zero, with the input's sign if the target's zero has one."""
    if target.is_integral or target.entry.zero != "signed":
        return parts.sign & 0
    return select(parts.sign == 1, target.sign_bit, 0)


def rounded(
    target: Format,
    parts: Unpacked,
    rounding: Rounding,
    select: Select,
    converted: Converted | None = None,
) -> Any:
    """Return the target's pattern of a finite value; out of range, floats count on, integers wrap.

    ``converted`` is the conversion of this value in this rounding, if the caller has it already.
    """
    converted = converted or convert(target, rounding, parts, select)
    return select(parts.zero, zero_code(target, parts, select), converted.code)


def select_arrays(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return, per element, ``then`` where the condition holds and ``otherwise`` elsewhere."""
    # From two Python integers numpy would make signed ones, which words from 2**63 on do not fit.
    return np.where(condition, np.asarray(then, np.uint64), np.asarray(otherwise, np.uint64))


def select_words(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return ``then`` as a word if the condition holds, else ``otherwise``."""
    return Word(int(then)) if condition else Word(int(otherwise))


class Word:
    """A 64-bit word, held in a Python integer."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: int) -> None:
        self.value = value & MASK

    def __int__(self) -> int:
        return self.value

    def __and__(self, other: Word | int) -> Word:
        return Word(self.value & int(other))

    def __or__(self, other: Word | int) -> Word:
        return Word(self.value | int(other))

    def __xor__(self, other: Word | int) -> Word:
        return Word(self.value ^ int(other))

    def __add__(self, other: Word | int) -> Word:
        return Word(self.value + int(other))

    __radd__ = __add__

    def __sub__(self, other: Word | int) -> Word:
        return Word(self.value - int(other))

    def __rsub__(self, other: int) -> Word:
        return Word(other - self.value)

    def __lshift__(self, other: Word | int) -> Word:
        return Word(self.value << int(other)) if int(other) < WIDTH else Word(0)

    def __rshift__(self, other: Word | int) -> Word:
        return Word(self.value >> int(other)) if int(other) < WIDTH else Word(0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word | int) and self.value == int(other)

    def __lt__(self, other: Word | int) -> bool:
        return self.value < int(other)

    def __gt__(self, other: Word | int) -> bool:
        return self.value > int(other)
