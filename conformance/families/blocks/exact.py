"""The definition of block quantization: one block at a time, in fractions only.

With ``a`` the largest magnitude of a block, ``max`` the element's largest value and ``2**emax`` the
power of two at or below it, a scale that is a power of two is ``2**k``:

- ``floor``: ``k = floor(log2 a) - emax``
- ``ceil``: ``k = ceil(log2 a) - emax``
- ``round-up``: ``k = ceil(log2(a / max))``
- ``round-down``: ``k = floor(log2(a / max))``
- ``even``: as ``floor``, of ``a`` rounded to the element's significant bits, ties to even
- ``nearest``: ``2**k`` is the power of two nearest to ``a / max``; of two, the larger
- ``nearest-log``: ``k`` is the integer nearest to ``log2(a / max)``
- ``round-up-7.25``: ``k = ceil(log2(a / 7.25))``

A scale with a mantissa is ``a / max``, divided by the global scale if there is one, and rounded
to a value of the scale's dtype: ``round-up``, ``nearest-even`` or ``nearest-away``.

A code is the value of the element's dtype that is nearest to the element divided by the scale.
This module shares neither code nor method with ``kernels.py``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from conformance.families.blocks.ruling import BlockRuling
from oracles.reference.exact import Infinity, NotANumber, Number, decode, limits
from specs.formats import Format
from specs.model.block_entry import BlockQuestion, BlockWord

INT8_UNIT = Fraction(1, 64)
"""The value of the code 1 of an int8 element: six of its bits are a fraction."""
POWER_LIMIT = 127
"""The exponents of scales that are powers of two reach from -127 to 127."""


class ScaleAnswer(NamedTuple):
    """The code of a block's scale, None if it is open, and the question that decides it."""

    code: int | None
    question: BlockQuestion


class CodeAnswer(NamedTuple):
    """The patterns that an element may get, empty if it is open, and the question deciding it."""

    allowed: tuple[int, ...]
    question: BlockQuestion


@dataclass(frozen=True)
class Element:
    """An element dtype: its nonnegative values, by code, and properties that scales depend on.

    ``emax`` is the exponent of the largest power of two at or below the largest value, and
    ``significant`` the number of significant bits of values.
    """

    values: tuple[Fraction, ...]
    emax: int
    significant: int

    @property
    def largest(self) -> Fraction:
        """The largest value."""
        return self.values[-1]


@cache
def element_of(fmt: Format) -> Element:
    """Return the ``Element`` of a dtype; an integer has 7 significant bits."""
    codes = range(fmt.max_code + 1)
    values = tuple(abs(value_of(fmt, code)) for code in codes)
    significant = 7 if fmt.is_integral else fmt.precision
    return Element(values, log2_floor(values[-1]), significant)


def value_of(fmt: Format, code: int) -> Fraction:
    """Return the value of a pattern that is a finite number; an integer counts 64ths."""
    datum = decode(fmt, code)
    assert isinstance(datum, Number)
    value = Fraction(datum.significand) * Fraction(2) ** datum.exponent
    unit = INT8_UNIT if fmt.is_integral else Fraction(1)
    return (-value if datum.sign else value) * unit


def log2_floor(value: Fraction) -> int:
    """The largest ``k`` with ``2**k <= value``; the value must be positive."""
    power = value.numerator.bit_length() - value.denominator.bit_length()
    return power if Fraction(2) ** power <= value else power - 1


def log2_ceil(value: Fraction) -> int:
    """The smallest ``k`` with ``2**k >= value``; the value must be positive."""
    return -log2_floor(1 / value)


def _rounded(value: Fraction, significant: int) -> Fraction:
    """A value rounded to ``significant`` bits, ties to even."""
    unit = Fraction(2) ** (log2_floor(value) - significant + 1)
    return round(value / unit) * unit


def _nearest(quotient: Fraction) -> int:
    power = log2_floor(quotient)
    return power + (quotient - Fraction(2) ** power >= Fraction(2) ** (power + 1) - quotient)


def _nearest_log(quotient: Fraction) -> int:
    # The nearest integer to log2(q) is floor(log2(q) + 1/2), and 2 * (log2(q) + 1/2) = log2(2 q²).
    return log2_floor(2 * quotient**2) // 2


POWERS: Mapping[BlockWord, Callable[[Fraction, Element], int]] = {
    "floor": lambda a, element: log2_floor(a) - element.emax,
    "ceil": lambda a, element: log2_ceil(a) - element.emax,
    "round-up": lambda a, element: log2_ceil(a / element.largest),
    "round-down": lambda a, element: log2_floor(a / element.largest),
    "even": lambda a, element: log2_floor(_rounded(a, element.significant)) - element.emax,
    "nearest": lambda a, element: _nearest(a / element.largest),
    "nearest-log": lambda a, element: _nearest_log(a / element.largest),
    "round-up-7.25": lambda a, element: log2_ceil(a / Fraction(29, 4)),
}


def scale_of(
    ruling: BlockRuling, block: Sequence[int], global_scale: Fraction = Fraction(1)
) -> ScaleAnswer:
    """Return the scale of a block of patterns, and the question that decides it.

    A block of zeros, and one with a NaN or an infinity, is open, and so may be one whose scale is
    out of range. The last block of a row may be shorter.
    """
    data = [decode(ruling.number, code) for code in block]
    if any(isinstance(each, NotANumber) for each in data):
        return ScaleAnswer(None, "nan-block")
    if any(isinstance(each, Infinity) for each in data):
        return ScaleAnswer(None, "infinity-block")
    largest = max(abs(value_of(ruling.number, code)) for code in block)
    if largest == 0:
        return ScaleAnswer(None, "zero-block")
    element, word = element_of(ruling.element), ruling.word("scale")
    if ruling.scale.entry.mantissa == 0:
        power = POWERS[word](largest, element)
        lowest, highest = -POWER_LIMIT, POWER_LIMIT
        code = min(max(power, lowest), highest) + ruling.scale.entry.bias
        return _within(ruling, code, power < lowest, power > highest)
    quotient = largest / element.largest / global_scale
    code = _rounded_to_scale(word, quotient, ruling.scale)
    largest_scale = value_of(ruling.scale, ruling.scale.max_code)
    return _within(ruling, max(code, 1), code == 0, quotient > largest_scale)


def _within(ruling: BlockRuling, code: int, is_below: bool, is_above: bool) -> ScaleAnswer:
    """Return the answer for a block by its scale ``code``, which is clamped to the range.

    ``is_below`` and ``is_above`` say that the scale was out of range before. Then another question
    decides the scale, and may leave it open.
    """
    if not is_below and not is_above:
        return ScaleAnswer(code, "scale")
    question: BlockQuestion = "scale-below-smallest" if is_below else "scale-above-largest"
    return ScaleAnswer(None if ruling.answers[question].is_open else code, question)


def _rounded_to_scale(word: BlockWord, quotient: Fraction, scale: Format) -> int:
    """Return the code of a quotient that is rounded as ``word`` says, at most the largest code."""
    values = _scale_values(scale)
    above = min(bisect_left(values, quotient), len(values) - 1)
    if word == "round-up" or values[above] <= quotient:
        return above
    below = above - 1
    if word == "round-down":
        return below
    to_below, to_above = quotient - values[below], values[above] - quotient
    if to_below != to_above:
        return below if to_below < to_above else above
    return above if word == "nearest-away" or above % 2 == 0 else below


@cache
def _scale_values(scale: Format) -> tuple[Fraction, ...]:
    return tuple(value_of(scale, code) for code in range(scale.max_code + 1))


def codes_of(
    ruling: BlockRuling,
    block: Sequence[int],
    scale_code: int,
    global_scale: Fraction = Fraction(1),
) -> list[CodeAnswer]:
    """Return the answers for the elements of a block whose scale has the pattern ``scale_code``.

    All are open if that is no positive number, or if the block has a NaN or an infinity.
    """
    question = scale_of(ruling, block, global_scale).question
    scale = decode(ruling.scale, scale_code)
    if question in ("nan-block", "infinity-block"):
        return [CodeAnswer((), question)] * len(block)
    if not isinstance(scale, Number) or scale.sign or not scale.significand:
        return [CodeAnswer((), "element")] * len(block)
    factor = value_of(ruling.scale, scale_code) * global_scale
    return [_code_of(ruling, code, value_of(ruling.number, code) / factor) for code in block]


def _code_of(ruling: BlockRuling, given: int, quotient: Fraction) -> CodeAnswer:
    """Return the answer for an element of pattern ``given``, from its quotient by the scale."""
    fmt = ruling.element
    values = element_of(fmt).values
    is_negative = bool(given & ruling.number.sign_bit)
    magnitude = abs(quotient)
    code = _nearest_code(values, magnitude)
    if fmt.is_integral:
        return _integer_code(ruling, is_negative, code)
    question: BlockQuestion = "element"
    if code == len(values):
        code, question = code - 1, "element-above-largest"
    if is_negative and code == 0:
        question = "element-negative-zero"
    pattern = code | (fmt.sign_bit if is_negative else 0)
    return CodeAnswer(() if ruling.answers[question].is_open else (pattern,), question)


def _integer_code(ruling: BlockRuling, is_negative: bool, code: int) -> CodeAnswer:
    """Return the answer for an int8 element; ``code`` is its rounded magnitude.

    A negative element beyond the largest code may get the lowest code or the one above it, because
    some documents leave the lowest unused.
    """
    fmt = ruling.element
    beyond = fmt.max_code + 1
    if not is_negative:
        question: BlockQuestion = "element" if code < beyond else "element-above-largest"
        allowed: tuple[int, ...] = (min(code, fmt.max_code),)
    elif code < beyond:
        question, allowed = "element", (-code & fmt.mask,)
    else:
        question, allowed = "element-lowest", (fmt.sign_bit, fmt.sign_bit + 1)
    return CodeAnswer(() if ruling.answers[question].is_open else allowed, question)


def _nearest_code(values: Sequence[Fraction], magnitude: Fraction) -> int:
    """Return the index of the nearest of ascending values, ties to even indices.

    A magnitude beyond the last value is rounded as if one more followed at the same distance. If it
    is nearest to that one, the index is ``len(values)``.
    """
    above = bisect_left(values, magnitude)
    if above == 0:
        return 0
    step = values[-1] - values[-2]
    upper = values[above] if above < len(values) else values[-1] + step
    to_below, to_above = magnitude - values[above - 1], upper - magnitude
    if to_below == to_above:
        return above if above % 2 == 0 else above - 1
    return above - 1 if to_below < to_above else above


def product_of(
    ruling: BlockRuling, code: int, scale_code: int, global_scale: Fraction = Fraction(1)
) -> CodeAnswer:
    """Return the pattern of the product of a code and its scales, rounded to nearest even.

    Other questions decide NaNs, infinities, and products that are inexact or overflow, and may
    leave them open.
    """
    number = ruling.number
    scale, datum = decode(ruling.scale, scale_code), decode(ruling.element, code)
    if not isinstance(scale, Number):
        return _special(ruling, "nan-scale", 0)
    if isinstance(datum, NotANumber):
        return _special(ruling, "nan-code", 0)
    is_negative = bool(code & ruling.element.sign_bit) != bool(scale.sign)
    sign = number.sign_bit if is_negative else 0
    if isinstance(datum, Infinity):
        return _special(ruling, "infinity-code", sign)
    product = value_of(ruling.element, code) * value_of(ruling.scale, scale_code) * global_scale
    magnitude = abs(product)
    rounded = _rounded_to_number(number, magnitude)
    if rounded is None:
        return _special(ruling, "product-above-largest", sign)
    question: BlockQuestion = "product"
    if value_of(number, rounded) != magnitude:
        question = "product-inexact"
    if ruling.answers[question].is_open:
        return CodeAnswer((), question)
    return CodeAnswer((rounded | sign,), question)


def _special(ruling: BlockRuling, question: BlockQuestion, sign: int) -> CodeAnswer:
    """Return the answer to a question about products that are NaN or infinite.

    It has no pattern if it is open. One NaN stands for all of them. ``sign`` is the sign bit of an
    infinity.
    """
    answer = ruling.answers[question]
    if answer.is_open:
        return CodeAnswer((), question)
    if answer.word == "inf":
        return CodeAnswer((ruling.number.infinity_code | sign,), question)
    return CodeAnswer((ruling.number.nan_codes[0][-1],), question)


def _rounded_to_number(number: Format, magnitude: Fraction) -> int | None:
    """Return the pattern of the nearest number, ties to even; None if it is beyond the largest."""
    if magnitude == 0:
        return 0
    power = max(log2_floor(magnitude), number.lowest_exponent) - number.entry.mantissa
    multiple = round(magnitude / Fraction(2) ** power)
    largest = limits(number)[0]
    if multiple * Fraction(2) ** power > largest.significand * Fraction(2) ** largest.exponent:
        return None
    normal = multiple >> number.entry.mantissa
    field = power + number.entry.mantissa + number.entry.bias - 1 if normal else 0
    return (field << number.entry.mantissa) + multiple
