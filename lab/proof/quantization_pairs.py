"""The proof of quotients and products by exhaustion, where a solver does not end.

Kernels run on arrays of all pairs, and each answer is judged in integers of 64 bits:

- *quotients*: every number by every scale of one binade. The float64 ``k * 2^u`` is the quotient
  of ``m * 2^e`` by ``n * 2^f`` rounded to odd if ``k n 2^(u+f) == m 2^e``, or if ``k`` is odd and
  ``m 2^e`` lies between ``(k - 1) n 2^(u+f)`` and ``(k + 1) n 2^(u+f)``.
- *products*: every odd difference of two codes of 8 bits times every scale of one binade is exact.
- *differences*: every code less every zero point, times one, is the exact difference.
- *dequantized*: every code times every scale of 16 bits is the nearest number, and open beyond.
- *block products*: every code times every scale is what the definition says.

Scales of other binades, even differences and subnormal scales are these times powers of two, by
which a float64 is multiplied without loss: its exponent reaches to 2^-1022, and theirs to 2^-298.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks import exact as exact_blocks
from conformance.families.blocks import kernels as block_kernels
from conformance.families.blocks.ruling import block_ruling
from conformance.families.quantization import kernels as quantization_kernels
from conformance.families.quantization.ruling import formula
from oracles.reference.exact import Number, decode
from specs.cases import Case
from specs.formats import Format, format_named
from specs.selection import case_named

CHUNK = 1 << 14
"""Pairs that are answered at once."""
MANTISSA = 52
Fields = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Significands, with the sign, and powers of two."""


@cache
def fields_of(fmt: Format) -> tuple[NDArray[np.int64], Fields]:
    """Return all finite patterns of a format of at most 16 bits, their significands and powers."""
    data = [(code, decode(fmt, code)) for code in range(fmt.mask + 1)]
    finite = [(code, datum) for code, datum in data if isinstance(datum, Number)]
    signed = [(-one.significand if one.sign else one.significand) for _, one in finite]
    codes, significands, powers = (
        np.array(each, np.int64)
        for each in ([code for code, _ in finite], signed, [one.exponent for _, one in finite])
    )
    return codes, (significands, powers)


def binade(fmt: Format) -> tuple[NDArray[np.int64], int]:
    """The patterns from 1 to 2 of a float format, and the significand of the first.

    Of a format without mantissa it is the one pattern of 1.
    """
    first = fmt.entry.bias << fmt.entry.mantissa
    return np.arange(first, first + (1 << fmt.entry.mantissa)), 1 << fmt.entry.mantissa


@numba.njit(cache=True, nogil=True)
def first_not_odd(
    quotients: Any, exact: Any, significands: Any, powers: Any, divisor: Any, divisor_power: Any
) -> Any:
    """Return the index of the first quotient not rounded to odd, or wrongly called exact.

    If there is none, return the number of quotients. ``quotients`` has the bits of float64.
    """
    for index in range(quotients.size):
        bits = quotients[index]
        is_negative = bits < 0
        field = (bits >> MANTISSA) & 0x7FF
        found = np.uint64(bits & ((1 << MANTISSA) - 1)) | np.uint64(1 << MANTISSA)
        number = significands[index]
        if number == 0:
            if bits & 0x7FFFFFFFFFFFFFFF or not exact[index]:
                return index
            continue
        up = powers[index] - (field - 1075 + divisor_power)
        magnitude = np.uint64(abs(number))
        if field == 0 or field == 0x7FF or is_negative != (number < 0) or up < 0 or up > 63:
            return index
        if (magnitude << np.uint64(up)) >> np.uint64(up) != magnitude:
            return index
        dividend, by = magnitude << np.uint64(up), np.uint64(divisor)
        is_same = found * by == dividend
        low, high = (found - np.uint64(1)) * by, (found + np.uint64(1)) * by
        is_odd = (found & np.uint64(1)) == 1 and low < dividend and dividend < high
        if not (is_same or is_odd) or exact[index] != is_same:
            return index
    return quotients.size


@numba.njit(cache=True, nogil=True)
def first_not_nearest(
    answers: Any, is_open: Any, code: Any, factors: Any, powers: Any, mantissa: Any, bias: Any,
    largest: Any, sign_bit: Any,
) -> Any:  # fmt: skip
    """The index of the first pattern that is not the nearest to an integer times a float.

    If there is none, the number of patterns. A product that is nearer to the next value beyond the
    largest must be open.
    """
    for index in range(answers.size):
        product, power = abs(code) * factors[index], powers[index]
        magnitude = answers[index] & (sign_bit - 1)
        if is_open[index]:
            magnitude = largest + 1
        elif (answers[index] >= sign_bit) != (code < 0 and product != 0):
            return index
        field, low = magnitude >> mantissa, magnitude & ((1 << mantissa) - 1)
        found = low + ((1 << mantissa) if field else 0)
        unit = max(field, 1) - bias - mantissa
        # Count in quarters of the unit, or of the product's power if that is lower.
        down = unit - power
        if down >= 0:
            shift = min(down, 40)
            given, quarter = 4 * product, np.int64(1) << shift
        else:
            shift = min(-down, 40)
            given, quarter = 4 * product << shift, np.int64(1)
        half_below = 1 if low == 0 and field > 1 else 2
        lower = (4 * found - half_below) * quarter
        upper = (4 * found + 2) * quarter
        is_even = found % 2 == 0
        fits_low = given > lower or (given == lower and is_even)
        fits_high = given < upper or (given == upper and is_even)
        if not fits_low or not (fits_high or is_open[index]):
            return index
    return answers.size


def _chunks(size: int) -> Iterator[slice]:
    for start in range(0, size, CHUNK):
        yield slice(start, start + CHUNK)


def wrong_quotient(number: str, scale: str) -> str:
    """Describe a quotient that is not rounded to odd, or return nothing."""
    fmt, divisors = format_named(number), format_named(scale)
    codes, (significands, powers) = fields_of(fmt)
    values = quantization_kernels.values_of(fmt, codes)
    patterns, first = binade(divisors)
    for place, divisor in enumerate(quantization_kernels.values_of(divisors, patterns)):
        for part in _chunks(codes.size):
            quotients, exact = quantization_kernels._odd_quotient(values[part], divisor)
            index = first_not_odd(
                quotients.view(np.int64), exact, significands[part], powers[part],
                first + place, -divisors.entry.mantissa,
            )  # fmt: skip
            if index < quotients.size:
                code = int(codes[part][index])
                return f"{fmt.hexadecimal(code)} by {divisors.hexadecimal(int(patterns[place]))}"
    return ""


def wrong_product(scale: str) -> str:
    """Describe a product of a difference and a scale that is not exact, or return nothing."""
    fmt = format_named(scale)
    patterns, first = binade(fmt)
    factors = quantization_kernels.values_of(fmt, patterns)
    for part in _chunks(patterns.size):
        significands = patterns[part] - patterns[0] + first
        for difference in range(1, 1 << 8, 2):
            for sign in (1, -1) if patterns.size < CHUNK else (1,):
                found = quantization_kernels._odd_product(
                    np.array(float(sign * difference)), factors[part]
                )
                # Both are integers, which a float64 holds as they are.
                wrong = found * float(first) != sign * difference * significands
                if wrong.any():
                    at = int(patterns[part][wrong.argmax()])
                    return f"{sign * difference} times {fmt.hexadecimal(at)}"
    return ""


def _dequantizing(source: str, number: str) -> Case:
    """A case that dequantizes a source by scales of the numbers' own format."""
    return case_named(f"onnx-dequantize-linear:25/{source}/{number}/scale:{number}/form:tensor")


def wrong_difference(source: str) -> str:
    """Describe a difference of two codes that is not exact, or return nothing."""
    fmt, number = format_named(source), format_named("float32")
    rules = formula(_dequantizing(source, number.name))
    codes, (values, _) = fields_of(fmt)
    one = np.full(codes.size, number.entry.bias << number.entry.mantissa)
    for code, value in zip(codes, values, strict=True):
        zero = np.full(codes.size, code)
        expected = quantization_kernels.expect(rules, codes, one, zero)
        found = expected.answers(number).view(np.float32)
        wrong = expected.is_open | (found != values - value)
        if wrong.any():
            return f"{int(codes[wrong.argmax()]):#x} less {int(code):#x}"
    return ""


def wrong_dequantized(source: str, number: str) -> str:
    """Describe a code times a scale that is not the nearest number, or return nothing."""
    fmt, target = format_named(source), format_named(number)
    rules = formula(_dequantizing(source, number))
    patterns, (significands, powers) = fields_of(target)
    positive = significands > 0
    patterns, significands, powers = (each[positive] for each in (patterns, significands, powers))
    codes, (values, code_powers) = fields_of(fmt)
    for code, value, power in zip(codes, values, code_powers, strict=True):
        for part in _chunks(patterns.size):
            scales = patterns[part]
            expected = quantization_kernels.expect(rules, np.full(scales.size, code), scales, None)
            index = first_not_nearest(
                expected.answers(target).astype(np.int64), expected.is_open, value,
                significands[part], powers[part] + power, target.entry.mantissa, target.entry.bias,
                target.max_code, target.sign_bit,
            )  # fmt: skip
            if index < scales.size:
                return (
                    f"{fmt.hexadecimal(int(code))} times {target.hexadecimal(int(scales[index]))}"
                )
    return ""


def wrong_block_product(name: str) -> str:
    """Describe a code times a scale on which kernels and definition differ, or return nothing."""
    ruling = block_ruling(case_named(name))
    codes = np.arange(ruling.element.mask + 1)
    filled = np.resize(codes, (1, max(codes.size, ruling.size)))
    for scale in range(ruling.scale.mask + 1):
        scales = np.full((1, filled.size // ruling.size), scale)
        found = block_kernels.products(ruling, filled, scales)
        for code in codes.tolist():
            due = exact_blocks.product_of(ruling, code, scale)
            answer = int(found.codes[0, code]), block_kernels.QUESTIONS[found.asked[0, code]]
            if due.question != answer[1] or due.allowed[:1] != (
                () if found.is_open[0, code] else answer[:1]
            ):
                return f"{code:#x} times the scale {scale:#x}: {answer}, not {due}"
    return ""
