"""Other ways of quantizing, which systems take in the place of a document's formula.

A way differs from the formula in one thing, or in two where nothing simpler explains the answers.
It explains them if it gives every one of them, right or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference.quantization_kernels import (
    ANY_NAN,
    Floats,
    codes_of,
    nearest,
    rounded_by,
    values_of,
)
from reports.findings.quantization_mechanisms import JOINT
from reports.grading.allowed_answers import is_nan
from specs.formats import Format, format_named
from specs.outcomes import Exactly
from specs.pair_conditions import value_of
from specs.quantization_ruling import Formula

Rounding = Literal["even", "away", "up", "toward-zero", "down"]
ZeroPoint = Literal["added", "before-rounding", "after-limits", "left-out", "other-sign", "scaled"]
Ends = Literal["limited", "wrapped", "without-lowest", "other-saturate", "by-int32"]
ROUNDINGS: Mapping[Rounding, Callable[[Floats], Floats]] = {
    "even": np.rint,
    "away": lambda values: np.copysign(np.floor(np.abs(values) + 0.5), values),
    "up": lambda values: np.floor(values + 0.5),
    "toward-zero": np.trunc,
    "down": np.floor,
}
PRECISIONS = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Way:
    """What differs from the formula; a field that is None does not.

    ``layout`` names scales and zero points of other elements, which the judge has.
    """

    precision: str | None = None
    is_reciprocal: bool | None = None
    rounding: Rounding | None = None
    zero: ZeroPoint | None = None
    ends: Ends | None = None
    is_flushed: bool | None = None
    layout: str | None = None

    def joined(self, other: Way) -> Way | None:
        """Both differences together; None if they are about the same thing."""
        own = {each.name for each in fields(self) if getattr(self, each.name) is not None}
        more = {
            each.name: getattr(other, each.name)
            for each in fields(other)
            if getattr(other, each.name) is not None
        }
        return None if own & set(more) else replace(self, **more)


Layouts = Mapping[str, tuple[Bits, Bits | None]]
"""Scales and zero points of each element by the names of layouts, the right one under ""."""


def followed_ways(
    rules: Formula,
    x: Bits,
    layouts: Layouts,
    answers: Bits,
    is_wrong: NDArray[np.bool_],
    *,
    names_precision: bool,
) -> tuple[str, ...]:
    """The names of the simplest ways that give these answers; none if no two explain them.

    Of the wrong ones at least half must be settled by a way. Where the case names a precision, one
    that divides in the scale's ignores it.
    """
    singles = dict(_ways(rules, layouts, names_precision))

    def gives(way: Way) -> bool:
        with np.errstate(all="ignore"):
            found = simulate(rules, way, x, *layouts[way.layout or ""])
        settled = found != UNSETTLED
        is_same = _is_same(rules.target, found, answers)
        explained = np.count_nonzero(is_same & settled & is_wrong)
        return bool((is_same | ~settled).all() and 2 * explained >= np.count_nonzero(is_wrong))

    if found := tuple(name for name, way in singles.items() if gives(way)):
        return found
    pairs = combinations(singles.items(), 2)
    for (one, way), (other, more) in pairs:
        both = way.joined(more)
        if both is not None and gives(both):
            return (f"{one}{JOINT}{other}",)
    return ()


def _ways(rules: Formula, layouts: Layouts, names_precision: bool) -> Iterator[tuple[str, Way]]:
    for layout in layouts:
        if layout:
            yield layout, Way(layout=layout)
    is_decoding = rules.operation == "dequantize"
    verb = "multiplies" if is_decoding else "divides"
    for precision in PRECISIONS:
        if names_precision and precision == rules.scale.name:
            yield "ignores-precision", Way(precision=precision)
        elif precision != rules.precision.name:
            yield f"{verb}-in-{precision}", Way(precision=precision)
    yield "treats-subnormal-scales-as-zero", Way(is_flushed=True)
    yield "leaves-out-zero-points", Way(zero="left-out")
    codes = rules.source if is_decoding else rules.target
    if codes.is_integral:
        yield "reads-zero-points-as-another-type", Way(zero="other-sign")
    if is_decoding:
        yield "wraps-differences", Way(ends="wrapped")
        yield "scales-zero-points-alone", Way(zero="scaled")
        yield "truncates-products", Way(rounding="toward-zero")
        return
    yield "multiplies-by-the-reciprocal", Way(is_reciprocal=True)
    if not codes.is_integral:
        yield "ignores-saturate", Way(ends="other-saturate")
        return
    yield "rounds-half-away", Way(rounding="away")
    yield "rounds-half-up", Way(rounding="up")
    yield "truncates-quotients", Way(rounding="toward-zero")
    yield "rounds-quotients-down", Way(rounding="down")
    yield "adds-zero-points-before-rounding", Way(zero="before-rounding")
    yield "limits-before-zero-points", Way(zero="after-limits")
    yield "wraps-codes", Way(ends="wrapped")
    yield "overflows-in-int32", Way(ends="by-int32")
    if codes.is_signed:
        yield "leaves-out-lowest-codes", Way(ends="without-lowest")


UNSETTLED = -3
"""In the place of a pattern: it depends on what a system makes of a NaN, or of an infinity."""


def simulate(
    rules: Formula, way: Way, x: Bits, scale: Bits, zero: Bits | None
) -> NDArray[np.int64]:
    """The patterns that a way gives, with ``ANY_NAN`` for a NaN, and where it settles none."""
    factor = values_of(rules.scale, scale)
    if way.is_flushed:
        smallest = 2.0**rules.scale.lowest_exponent
        factor = np.where(np.abs(factor) < smallest, 0.0, factor)
    codes = rules.source if rules.operation == "dequantize" else rules.target
    offset = np.zeros(x.shape) if zero is None else values_of(codes, zero)
    if way.zero == "left-out":
        offset = np.zeros(x.shape)
    if way.zero == "other-sign":
        size = float(1 << codes.bits)
        is_upper = offset < 0 if codes.is_signed else offset >= size / 2
        offset = np.where(is_upper, offset + (size if codes.is_signed else -size), offset)
    if rules.operation == "dequantize":
        return _dequantized(rules, way, values_of(rules.source, x), factor, offset)
    return _quantized(rules, way, values_of(rules.source, x), factor, offset)


def _quantized(
    rules: Formula, way: Way, x: Floats, scale: Floats, offset: Floats
) -> NDArray[np.int64]:
    target = rules.target
    fmt = format_named(way.precision) if way.precision else rules.precision
    quotient = _in(fmt, x * _in(fmt, 1 / scale) if way.is_reciprocal else x / scale)
    if not target.is_integral:
        return _float_codes(rules, way, quotient)
    low, high = float(value_of(target, target.lowest_code)), _largest(target)
    round_to = ROUNDINGS[way.rounding or "even"]
    if way.zero == "before-rounding":
        total = round_to(_in(fmt, quotient + offset))
    elif way.zero == "after-limits":
        total = np.clip(round_to(quotient), low, high) + offset
    else:
        total = round_to(quotient) + offset
    if way.ends == "by-int32":
        # Processors convert what an int32 lacks to the smallest one; then sums wrap.
        whole = np.where(np.abs(round_to(quotient)) < 2.0**31, round_to(quotient), -(2.0**31))
        total = np.mod(whole + offset + 2.0**31, 2.0**32) - 2.0**31
    if way.ends == "without-lowest":
        low += 1
    if way.ends == "wrapped" or way.zero == "after-limits":
        finite = np.abs(total) < 2.0**62
        codes = np.where(finite, total, 0).astype(np.int64) & target.mask
        return np.where(finite, codes, UNSETTLED)
    codes = codes_of(target, np.clip(np.nan_to_num(total, nan=0.0), low, high), total < 0)
    return np.where(np.isnan(total), UNSETTLED, codes)


def _float_codes(rules: Formula, way: Way, quotient: Floats) -> NDArray[np.int64]:
    """Patterns of small floats; those of values that the target has not follow from the rules."""
    target = rules.target
    rounded = nearest(target, quotient)
    is_out = ~(np.abs(rounded) <= _largest(target))
    is_negative = quotient < 0
    codes = codes_of(target, np.where(is_out, 0.0, rounded), np.signbit(quotient))
    due = rules.outcome("saturation", "out-of-range").best == "saturated"
    saturates = due != (way.ends == "other-saturate")
    if saturates:
        ends = np.where(is_negative, target.lowest_code, target.max_code)
    elif target.entry.infinity:
        ends = target.infinity_code | np.where(is_negative, target.sign_bit, 0)
    else:
        ends = np.full(codes.shape, ANY_NAN)
    codes = np.where(is_out, ends, codes)
    nan = ANY_NAN if target.nan_codes else UNSETTLED
    # What an infinity becomes differs from version to version, and is due where nothing is changed.
    for negative in (False, True) if rules.casts else ():
        special = rules.cast_of("infinite", is_negative=negative)
        code = special.code if isinstance(special, Exactly) else ANY_NAN
        code = code if saturates == due else UNSETTLED
        codes = np.where(np.isinf(quotient) & (is_negative == negative), code, codes)
    return np.where(np.isnan(quotient), nan, codes)


def _dequantized(
    rules: Formula, way: Way, x: Floats, scale: Floats, offset: Floats
) -> NDArray[np.int64]:
    source, target = rules.source, rules.target
    difference = x - offset
    if way.ends == "wrapped" and source.is_integral:
        wrapped = np.nan_to_num(difference).astype(np.int64) & source.mask
        difference = values_of(source, wrapped)
    fmt = format_named(way.precision) if way.precision else target
    if way.zero == "scaled":
        product = _in(fmt, x * scale) - _in(fmt, offset * scale)
    elif way.precision:
        product = _in(fmt, _in(fmt, difference) * _in(fmt, scale))
    else:
        product = difference * scale
    if way.rounding == "toward-zero":
        rounded = rounded_by(np.trunc, target, product)
    else:
        rounded = _in(target, product)
    finite = np.isfinite(rounded)
    codes = codes_of(target, np.where(finite, rounded, 0.0), np.signbit(product))
    infinite = target.infinity_code | np.where(product < 0, target.sign_bit, 0)
    codes = np.where(np.isinf(rounded), infinite, codes)
    return np.where(np.isnan(rounded), ANY_NAN, codes)


def _in(fmt: Format, values: Floats) -> Floats:
    """Values rounded to a format, with infinities beyond its range."""
    if fmt.name == "float64":
        return values
    rounded = nearest(fmt, values)
    return np.where(np.abs(rounded) > _largest(fmt), np.copysign(np.inf, rounded), rounded)


def _largest(fmt: Format) -> float:
    return float(value_of(fmt, fmt.max_code))


def _is_same(target: Format, found: NDArray[np.int64], answers: Bits) -> NDArray[np.bool_]:
    """Where patterns are the answers; zeros may differ in sign, and NaNs in all."""
    given = answers.astype(np.int64)
    same = found == given
    if target.sign_bit and not target.is_integral:
        same |= ((found | given) & ~target.sign_bit == 0) & (target.entry.zero == "signed")
    return np.asarray(same | ((found == ANY_NAN) & is_nan(target, answers)))
