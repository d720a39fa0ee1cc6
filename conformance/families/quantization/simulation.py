"""Computes, on whole arrays, the codes of a backend that quantizes otherwise than by the formula.

A ``Deviation`` says in what it differs. Fake quantization multiplies the limits of codes by the
scale and finds where x lies between them. Dequantization may round codes, scales and their
difference to the dtype of the result before it multiplies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.quantization.kernels import (
    ANY_NAN,
    NAN_CODES,
    code_of_outcome,
    codes_of,
    nearest,
    rounded_by,
    values_of,
)
from conformance.families.quantization.ruling import Formula
from oracles.protocol import Bits, Floats
from specs.formats import Format, format_named, value_of
from specs.model.step_entry import Situation

QuotientRounding = Literal[
    "even", "away", "up", "toward-zero", "down", "floor-of-sum", "truncated-sum",
]  # fmt: skip
"""How quotients become whole; the last two add 0.5, round the sum to the precision of the quotient,
and take its floor or truncate it."""
ZeroPoint = Literal["added", "before-rounding", "after-limits", "left-out", "other-sign", "scaled"]
RangeEnds = Literal[
    "limited", "wrapped", "without-lowest", "other-saturate", "by-int32", "nan", "carried-to-nan",
    "truncated-nan-saturated",
]  # fmt: skip
Infinities = Literal["saturated", "infinite", "nan", "positive-nan"]
Nans = Literal["zero", "max", "max-of-sign", "lowest", "positive", "negative"]
Between = Literal["divided", "multiplied"]
"""How fake quantization turns x into steps: by a division, or by a product and an offset."""
ROUNDINGS: Mapping[QuotientRounding, Callable[[Floats], Floats]] = {
    "even": np.rint,
    "away": lambda values: np.copysign(np.floor(np.abs(values) + 0.5), values),
    "up": lambda values: np.floor(values + 0.5),
    "toward-zero": np.trunc,
    "down": np.floor,
    "floor-of-sum": np.floor,
    "truncated-sum": np.trunc,
}


@dataclass(frozen=True)
class Deviation:
    """A way to quantize: in what it differs from the formula; a field of None does not differ.

    The rows of ``wrongs.py`` say in words what the values of fields mean. ``layout`` is a name from
    ``inputs.layouts``: another assignment of scales and zero points to elements.
    """

    precision: str | None = None
    is_reciprocal: bool | None = None
    rounding: QuotientRounding | None = None
    zero: ZeroPoint | None = None
    ends: RangeEnds | None = None
    is_flushed: bool | None = None
    layout: str | None = None
    infinities: Infinities | None = None
    nans: Nans | None = None
    rounds_operands: bool | None = None
    between: Between | None = None
    overflows_limits: bool | None = None
    steps: str | None = None
    flushes_products: bool | None = None
    truncates_subnormals: bool | None = None
    carries_twice: bool | None = None
    narrows_quotients: bool | None = None

    @cached_property
    def differences(self) -> dict[str, Any]:
        """The fields that are not None, with their values."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def joined(self, other: Deviation) -> Deviation | None:
        """Return both deviations in one; None if they set the same field."""
        own, more = self.differences, other.differences
        return None if own.keys() & more.keys() else Deviation(**own, **more)


UNSETTLED = -5
"""Stands for a pattern that depends on how a system treats a NaN or an infinity."""


def simulate(
    rules: Formula, way: Deviation, x: Bits, scale: Bits, zero: Bits | None
) -> NDArray[np.int64]:
    """Return the patterns that a way gives for elements with their scales and zero points.

    ``zero`` is None if there are no zero points. A number of ``NAN_CODES`` stands for NaNs, and
    ``UNSETTLED`` for what the way does not determine.
    """
    factor = values_of(rules.scale, scale)
    if way.is_flushed:
        smallest = 2.0**rules.scale.lowest_exponent
        factor = np.where(np.abs(factor) < smallest, 0.0, factor)
    values = values_of(rules.source, x)
    if way.is_flushed and way.nans:
        values = np.where(np.abs(values) < 2.0**rules.source.lowest_exponent, 0.0, values)
    codes = rules.source if rules.operation == "dequantize" else rules.target
    offset = np.zeros(x.shape) if zero is None else values_of(codes, zero)
    if way.zero == "left-out":
        offset = np.zeros(x.shape)
    if way.zero == "other-sign":
        size = float(1 << codes.bits)
        is_upper = offset < 0 if codes.is_signed else offset >= size / 2
        offset = np.where(is_upper, offset + (size if codes.is_signed else -size), offset)
    if rules.operation == "dequantize":
        return _dequantized(rules, way, values, factor, offset)
    found = _quantized(rules, way, values, factor, offset)
    if way.nans != "max-of-sign":
        return found
    is_negative = x & rules.source.sign_bit != 0
    largest = np.where(is_negative, rules.target.lowest_code, rules.target.max_code)
    return np.where(np.isnan(values), largest, found)


def _quantized(
    rules: Formula, way: Deviation, x: Floats, scale: Floats, offset: Floats
) -> NDArray[np.int64]:
    target = rules.target
    fmt = format_named(way.precision) if way.precision else rules.precision
    if way.rounds_operands:
        x, scale = rounded_in(fmt, x), rounded_in(fmt, scale)
    quotient = rounded_in(fmt, x * rounded_in(fmt, 1 / scale) if way.is_reciprocal else x / scale)
    if way.narrows_quotients:
        quotient = rounded_in(format_named("float16"), quotient)
    if way.carries_twice:
        quotient = carried_twice(fmt, x / scale, quotient)
    if not target.is_integral:
        return _float_codes(rules, way, quotient)
    low, high = float(value_of(target, target.lowest_code)), largest_of(target)

    def round_to(values: Floats) -> Floats:
        if way.rounding == "floor-of-sum":
            values = rounded_in(fmt, values + 0.5)
        if way.rounding == "truncated-sum":
            values = rounded_in(fmt, values + np.copysign(0.5, values))
        return ROUNDINGS[way.rounding or "even"](values)

    if way.between:
        largest = largest_of(rules.scale) if way.overflows_limits else np.inf
        total = between_limits(way.between, largest, x, scale, offset, (low, high))
    elif way.zero == "before-rounding":
        total = round_to(rounded_in(fmt, quotient + offset))
    elif way.zero == "after-limits":
        total = np.clip(round_to(quotient), low, high) + offset
    else:
        total = round_to(quotient) + offset
    if way.ends == "by-int32":
        # Processors convert values beyond int32 to the smallest int32; then sums wrap.
        whole = np.where(np.abs(round_to(quotient)) < 2.0**31, round_to(quotient), -(2.0**31))
        total = np.mod(whole + offset + 2.0**31, 2.0**32) - 2.0**31
    if way.ends == "without-lowest":
        low += 1
    if way.ends == "wrapped" or way.zero == "after-limits":
        finite = np.abs(total) < 2.0**62
        codes = np.where(finite, total, 0).astype(np.int64) & target.mask
        return np.where(finite, codes, UNSETTLED)
    codes = codes_of(target, np.clip(np.nan_to_num(total, nan=0.0), low, high), total < 0)
    nan = {"zero": 0, "max": target.max_code}.get(way.nans or "", UNSETTLED)
    return np.where(np.isnan(total), nan, codes)


def _float_codes(rules: Formula, way: Deviation, quotient: Floats) -> NDArray[np.int64]:
    """Return the patterns of quotients in a small float target by the formula and the way.

    Beyond the target's range, the formula's rule on saturation decides unless the way differs in
    it.
    """
    target = rules.target
    rounded = (truncated_subnormals if way.truncates_subnormals else nearest)(target, quotient)
    is_out = ~(np.abs(rounded) <= largest_of(target))
    is_negative = quotient < 0
    codes = codes_of(target, np.where(is_out, 0.0, rounded), np.signbit(quotient))
    due = rules.outcome("saturation", "out-of-range").best == "saturated"
    saturates = due != (way.ends == "other-saturate")
    largest = np.where(is_negative, target.lowest_code, target.max_code)
    infinite = _infinite(target, is_negative)
    ends = largest if saturates else infinite
    magnitude = np.abs(quotient)
    match way.ends:
        case "nan":
            ends = np.full(codes.shape, ANY_NAN)
        case "carried-to-nan":  # Only rounding puts them out of range.
            ends = np.where(magnitude < _beyond(target), ANY_NAN, ends)
        case "truncated-nan-saturated":  # Truncated, they have the bits of a NaN.
            is_beside = (magnitude >= np.abs(rounded)) & (np.abs(rounded) < _beyond(target))
            ends = np.where(is_beside, largest, ends)
    codes = np.where(is_out, ends, codes)
    # Cast's result for an infinity depends on the document's version; a way may replace it.
    for negative in (False, True) if rules.casts else ():
        code = code_of_cast(rules, "infinite", negative) if saturates == due else UNSETTLED
        codes = np.where(np.isinf(quotient) & (is_negative == negative), code, codes)
    if way.infinities:
        kept = {"saturated": largest, "infinite": infinite}
        nan = NAN_CODES["+" if way.infinities == "positive-nan" else "any"]
        ends = kept.get(way.infinities, np.full(codes.shape, nan))
        codes = np.where(np.isinf(quotient), ends, codes)
    return np.where(np.isnan(quotient), _nans(rules, way, np.signbit(quotient)), codes)


def code_of_cast(rules: Formula, situation: Situation, is_negative: bool) -> int:
    """Return the pattern, or number of ``NAN_CODES``, that Cast recommends, or else allows."""
    return code_of_outcome(rules.cast_of(situation, is_negative=is_negative).strictest)


def _nans(rules: Formula, way: Deviation, is_negative: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each element what a NaN of its sign becomes; ``UNSETTLED`` if not known.

    ``is_negative`` has the signs.
    """
    target = rules.target
    codes = {
        "zero": 0,
        "max": target.max_code,
        "lowest": target.lowest_code,
        "positive": NAN_CODES["+"],
        "negative": NAN_CODES["-"],
    }
    positive = negative = codes.get(way.nans or "", UNSETTLED)
    if way.nans is None and way.ends == "other-saturate":
        positive = negative = ANY_NAN  # Only one of the two tables has a sign.
    elif way.nans is None and rules.casts:
        positive, negative = (code_of_cast(rules, "nan", each) for each in (False, True))
    return np.where(is_negative, negative, positive)


def _beyond(target: Format) -> float:
    """Return the least power of two above all values of a target."""
    return 2.0 ** (math.frexp(largest_of(target))[1])


def _infinite(target: Format, is_negative: NDArray[np.bool_]) -> NDArray[np.int64]:
    if not target.entry.infinity:
        return np.full(is_negative.shape, ANY_NAN)
    return target.infinity_code | np.where(is_negative, target.sign_bit, 0)


def _dequantized(
    rules: Formula, way: Deviation, x: Floats, scale: Floats, offset: Floats
) -> NDArray[np.int64]:
    source, target = rules.source, rules.target
    difference = x - offset
    if way.ends == "wrapped" and source.is_integral:
        wrapped = np.nan_to_num(difference).astype(np.int64) & source.mask
        difference = values_of(source, wrapped)
    fmt = format_named(way.precision) if way.precision else target
    if way.steps:
        product = product_by_steps(STEPS[way.steps], target, x, scale, offset)
    elif way.zero == "scaled":
        product = rounded_in(fmt, x * scale) - rounded_in(fmt, offset * scale)
    elif way.precision or way.rounds_operands:
        product = rounded_in(fmt, rounded_in(fmt, difference) * rounded_in(fmt, scale))
    else:
        product = difference * scale
    if way.rounding == "toward-zero":
        rounded = rounded_by(np.trunc, target, product)
    else:
        rounded = rounded_in(target, product)
    if way.flushes_products:
        rounded = np.where(np.abs(rounded) < 2.0**target.lowest_exponent, 0.0, rounded)
    finite = np.isfinite(rounded)
    codes = codes_of(target, np.where(finite, rounded, 0.0), np.signbit(product))
    codes = np.where(np.isinf(rounded), _infinite(target, product < 0), codes)
    return np.where(np.isnan(rounded), ANY_NAN, codes)


Rounded = Callable[[Format, Floats], Floats]


def largest_of(fmt: Format) -> float:
    """Return the largest value of a format."""
    return float(value_of(fmt, fmt.max_code))


def rounded_in(fmt: Format, values: Floats) -> Floats:
    """Round values to a format, and to infinity beyond its range; float64 changes nothing."""
    return values if fmt.name == "float64" else _limited(fmt, nearest(fmt, values))


def up_from_odd(fmt: Format, values: Floats) -> Floats:
    """Round values to float32, then to a format by a faulty rule for ties.

    The second rounding truncates, and then adds one unit if half a unit or more was cut off and the
    truncated pattern is odd.
    """

    def rounded(units: Floats) -> Floats:
        lower = np.trunc(units)
        return lower + np.where(lower % 2 == 1, np.trunc(2 * (units - lower)), 0.0)

    magnitudes = np.abs(rounded_in(format_named("float32"), values))
    return _limited(fmt, np.copysign(rounded_by(rounded, fmt, magnitudes), values))


def truncated_subnormals(fmt: Format, values: Floats) -> Floats:
    """Round values to a format's normal precision, then truncate those in its subnormal range."""
    unit = 2.0 ** (fmt.lowest_exponent - fmt.entry.mantissa)
    significand, exponent = np.frexp(values)
    bits = fmt.entry.mantissa + 1
    rounded = np.ldexp(np.rint(np.ldexp(significand, bits)), exponent - bits)
    whole = np.where(np.abs(values) < unit, 0.0, np.trunc(rounded / unit) * unit)
    is_subnormal = np.abs(values) < 2.0**fmt.lowest_exponent
    return np.where(is_subnormal, np.copysign(whole, values), nearest(fmt, values))


def carried_twice(fmt: Format, exact: Floats, rounded: Floats) -> Floats:
    """Return ``rounded`` with those subnormals doubled that rounding raised to a power of two.

    ``exact`` has the values before they were rounded.
    """
    is_power = np.frexp(np.abs(rounded))[0] == 0.5
    is_carried = is_power & (np.abs(rounded) > np.abs(exact))
    return np.where(is_carried & (np.abs(rounded) < 2.0**fmt.lowest_exponent), 2, 1) * rounded


def _limited(fmt: Format, rounded: Floats) -> Floats:
    return np.where(np.abs(rounded) > largest_of(fmt), np.copysign(np.inf, rounded), rounded)


def _kept(_: Format, values: Floats) -> Floats:
    return values


class RoundedSteps(NamedTuple):
    """The rounding of codes and zero points, of scales, of differences, and of products.

    Each field takes a format and values, and returns these rounded to the format, or unchanged.
    """

    codes: Rounded
    scale: Rounded
    difference: Rounded
    product: Rounded


STEPS: Mapping[str, RoundedSteps] = {
    "rounds-each-step": RoundedSteps(rounded_in, rounded_in, rounded_in, rounded_in),
    "rounds-each-step-up-from-odd": RoundedSteps(
        up_from_odd, up_from_odd, up_from_odd, up_from_odd
    ),
    "rounds-operands": RoundedSteps(rounded_in, rounded_in, _kept, rounded_in),
    "rounds-operands-up-from-odd": RoundedSteps(up_from_odd, up_from_odd, _kept, up_from_odd),
    "rounds-codes-up-from-odd": RoundedSteps(up_from_odd, rounded_in, _kept, rounded_in),
}
"""Ways to dequantize, by the names that ``Deviation.steps`` has: what each rounds to the dtype of
the result."""


def product_by_steps(
    steps: RoundedSteps, fmt: Format, codes: Floats, scale: Floats, zero: Floats
) -> Floats:
    """Return codes minus zero points, times scales, each rounded to a format as ``steps`` says."""
    difference = steps.difference(fmt, steps.codes(fmt, codes) - steps.codes(fmt, zero))
    return steps.product(fmt, difference * steps.scale(fmt, scale))


def between_limits(
    how: Between,
    largest: float,
    x: Floats,
    scale: Floats,
    zero: Floats,
    limits: tuple[float, float],
) -> Floats:
    """Return the codes, as floats, that fake quantization gives in float32.

    ``how`` says whether it divides by the width of the scaled range or multiplies by its
    reciprocal. ``limits`` are the lowest and the largest code. Minus the zero point and times the
    scale, a limit becomes infinite if it is beyond ``largest``. Codes that are not finite become 0.
    """
    fmt = format_named("float32")
    low, high = limits
    count = high - low
    x, scale = rounded_in(fmt, x), rounded_in(fmt, scale)
    first, last = (rounded_in(fmt, scale * rounded_in(fmt, end - zero)) for end in limits)
    first, last = (
        np.where(np.abs(end) > largest, np.copysign(np.inf, end), end) for end in (first, last)
    )
    span = rounded_in(fmt, last - first)
    if how == "multiplied":
        factor = rounded_in(fmt, count / span)
        inside = rounded_in(fmt, np.minimum(np.maximum(x, first), last) * factor)
        steps = rounded_in(fmt, inside - rounded_in(fmt, first * factor))
        found = np.rint(steps) + low
        return np.where(np.isfinite(found), found, 0.0)
    place = rounded_in(fmt, rounded_in(fmt, x - first) / span)
    steps = np.rint(rounded_in(fmt, place * count))
    inside = rounded_in(fmt, rounded_in(fmt, rounded_in(fmt, steps / count) * count) + low)
    is_low, is_high = x <= np.minimum(first, last), x > np.maximum(first, last)
    found = np.where(is_low, low, np.where(is_high, high, inside))
    return np.where(np.isfinite(found), np.trunc(found), 0.0)
