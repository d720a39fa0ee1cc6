"""Quantization in other steps than the formula's, each rounded to a narrow float.

Fake quantization multiplies the limits of codes by the scale and finds where x lies between them.
Dequantization may round codes, scales and their difference to the dtype of the result before it
multiplies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np

from conformance.families.quantization.kernels import Floats, nearest, rounded_by
from specs.formats import Format, format_named
from specs.pair_conditions import value_of

Rounded = Callable[[Format, Floats], Floats]
Between = Literal["divided", "multiplied"]
"""How fake quantization turns x into steps: by a division, or by a product and an offset."""


def largest_of(fmt: Format) -> float:
    """The largest value of a dtype."""
    return float(value_of(fmt, fmt.max_code))


def rounded_in(fmt: Format, values: Floats) -> Floats:
    """Values rounded to a format, with infinities beyond its range."""
    return values if fmt.name == "float64" else _limited(fmt, nearest(fmt, values))


def up_from_odd(fmt: Format, values: Floats) -> Floats:
    """Values rounded to a format: to the nearest from odd patterns, else toward zero."""

    def rounded(units: Floats) -> Floats:
        lower = np.trunc(units)
        return lower + np.where(lower % 2 == 1, np.trunc(2 * (units - lower)), 0.0)

    magnitudes = np.abs(rounded_in(format_named("float32"), values))
    return _limited(fmt, np.copysign(rounded_by(rounded, fmt, magnitudes), values))


def truncated_subnormals(fmt: Format, values: Floats) -> Floats:
    """Values rounded to the bits of normal ones; subnormals are then truncated to their bits."""
    unit = 2.0 ** (fmt.lowest_exponent - fmt.entry.mantissa)
    significand, exponent = np.frexp(values)
    bits = fmt.entry.mantissa + 1
    rounded = np.ldexp(np.rint(np.ldexp(significand, bits)), exponent - bits)
    whole = np.where(np.abs(values) < unit, 0.0, np.trunc(rounded / unit) * unit)
    is_subnormal = np.abs(values) < 2.0**fmt.lowest_exponent
    return np.where(is_subnormal, np.copysign(whole, values), nearest(fmt, values))


def carried_twice(fmt: Format, exact: Floats, rounded: Floats) -> Floats:
    """Rounded values; subnormals that rounded up to a power of two are doubled."""
    is_power = np.frexp(np.abs(rounded))[0] == 0.5
    is_carried = is_power & (np.abs(rounded) > np.abs(exact))
    return np.where(is_carried & (np.abs(rounded) < 2.0**fmt.lowest_exponent), 2, 1) * rounded


def _limited(fmt: Format, rounded: Floats) -> Floats:
    return np.where(np.abs(rounded) > largest_of(fmt), np.copysign(np.inf, rounded), rounded)


def _kept(_: Format, values: Floats) -> Floats:
    return values


class Steps(NamedTuple):
    """How dequantization rounds codes and zero points, scales, differences, and products."""

    codes: Rounded
    scale: Rounded
    difference: Rounded
    product: Rounded


STEPS: Mapping[str, Steps] = {
    "rounds-each-step": Steps(rounded_in, rounded_in, rounded_in, rounded_in),
    "rounds-each-step-up-from-odd": Steps(up_from_odd, up_from_odd, up_from_odd, up_from_odd),
    "rounds-operands": Steps(rounded_in, rounded_in, _kept, rounded_in),
    "rounds-operands-up-from-odd": Steps(up_from_odd, up_from_odd, _kept, up_from_odd),
    "rounds-codes-up-from-odd": Steps(up_from_odd, rounded_in, _kept, rounded_in),
}
"""Ways to dequantize by what they round to the dtype of the result."""


def product_by_steps(
    steps: Steps, fmt: Format, codes: Floats, scale: Floats, zero: Floats
) -> Floats:
    """The products of differences and scales in a format."""
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
    """Codes by fake quantization in float32; results that are not finite become 0.

    A limit times the scale becomes infinite if it is beyond ``largest``.
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
