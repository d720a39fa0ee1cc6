"""Ways of quantizing that systems use instead of a document's formula.

A way differs from the formula in one thing, or in two or three where nothing simpler explains the
answers. It explains them if it gives every one of them, right or wrong. The treatment of infinities
and NaNs is independent of this. So it is found from the answers to these alone, and added to any
other way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from conformance.families.quantization.kernels import (
    ANY_NAN,
    NAN_CODES,
    Floats,
    code_of_outcome,
    codes_of,
    nearest,
    rounded_by,
    values_of,
)
from conformance.families.quantization.steps import (
    STEPS,
    Between,
    between_limits,
    carried_twice,
    largest_of,
    product_by_steps,
    rounded_in,
    truncated_subnormals,
)
from oracles.protocol import Bits
from reports.grading.allowed_answers import is_nan
from specs.formats import Format, format_named
from specs.model.quantization_entry import Situation, Step
from specs.pair_conditions import value_of
from specs.quantization_ruling import Formula

Rounding = Literal["even", "away", "up", "toward-zero", "down"]
ZeroPoint = Literal["added", "before-rounding", "after-limits", "left-out", "other-sign", "scaled"]
Ends = Literal[
    "limited", "wrapped", "without-lowest", "other-saturate", "by-int32", "nan", "carried-to-nan",
    "truncated-nan-saturated",
]  # fmt: skip
Infinities = Literal["saturated", "infinite", "nan", "positive-nan"]
Nans = Literal["zero", "max", "max-of-sign", "lowest", "positive", "negative"]
ROUNDINGS: Mapping[Rounding, Callable[[Floats], Floats]] = {
    "even": np.rint,
    "away": lambda values: np.copysign(np.floor(np.abs(values) + 0.5), values),
    "up": lambda values: np.floor(values + 0.5),
    "toward-zero": np.trunc,
    "down": np.floor,
}
FEW = 128
"""The size of each half of the sample on which a way is tried first."""
PRECISIONS = ("float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Way:
    """The differences from the formula; a field that is None does not differ.

    ``layout`` names another assignment of scales and zero points to elements, from the judge.
    """

    precision: str | None = None
    is_reciprocal: bool | None = None
    rounding: Rounding | None = None
    zero: ZeroPoint | None = None
    ends: Ends | None = None
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

    @property
    def differences(self) -> dict[str, Any]:
        """The fields in which it differs."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def joined(self, other: Way) -> Way | None:
        """Both differences together; None if they are about the same thing."""
        more = other.differences
        return None if self.differences.keys() & more.keys() else replace(self, **more)


INFINITIES: Mapping[str, Way] = {
    "saturates-infinities": Way(infinities="saturated"),
    "makes-infinities-nan": Way(infinities="nan"),
    "keeps-infinities": Way(infinities="infinite"),
}
INFINITIES_AS_NANS: Mapping[str, Way] = {
    "saturates-infinities": Way(infinities="saturated"),
    "loses-the-sign-of-infinities": Way(infinities="positive-nan"),
}
"""Where infinities are to become NaNs of their signs."""
NANS: Mapping[str, Way] = {
    "makes-nans-zero": Way(nans="zero"),
    "makes-nans-the-largest": Way(nans="max"),
    "makes-nans-the-largest-of-their-sign": Way(nans="max-of-sign"),
    "makes-nans-the-lowest": Way(nans="lowest"),
    "loses-the-sign-of-nans": Way(nans="positive"),
    "makes-nans-negative": Way(nans="negative"),
}


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
    """The names of the simplest ways that give these answers; empty if none that is tried does.

    A way must settle at least half of the wrong answers. If the case names a precision, a way that
    divides in the scale's precision ignores it.
    """
    singles = dict(_ways(rules, layouts, names_precision))
    plain = [*_allowed_ways(rules)]
    specials = _special_ways(rules, plain, x, layouts[""], answers, is_wrong)
    settled = plain
    for special in specials.values():
        settled = [*_onto(special, settled)]

    few = _few(x, layouts, answers, is_wrong)

    def gives(way: Way, bases: Sequence[Way]) -> bool:
        return any(
            _gives(rules, both, *few, needs_most=False)
            and _gives(rules, both, x, layouts, answers, is_wrong)
            for both in _onto(way, bases)
        )

    are_zeros = _is_same(rules.target, np.zeros(answers.shape, np.int64), answers)
    if gives(Way(), settled) and (specials or are_zeros[is_wrong].all()):
        # Codes are compared without the signs of zeros, so that these alone are wrong.
        return (JOINT.join(specials or ["gives-zeros-of-the-other-sign"]),)
    more = [([*specials], settled)] if specials else []
    for added, bases in (([], plain), *more):
        found = [name for name, way in singles.items() if gives(way, bases)]
        if found:
            return tuple(JOINT.join((name, *added)) for name in found)
    # Small floats have few ways, so that three of them may be tried.
    is_small = rules.operation != "dequantize" and not rules.target.is_integral
    for count in (2, 3) if is_small else (2,):
        for names in combinations(singles, count):
            joined: Way | None = Way()
            for name in names:
                joined = joined and joined.joined(singles[name])
            if joined is not None and gives(joined, settled):
                return (JOINT.join((*names, *specials)),)
    return ()


def _few(
    x: Bits, layouts: Layouts, answers: Bits, is_wrong: NDArray[np.bool_]
) -> tuple[Bits, Layouts, Bits, NDArray[np.bool_]]:
    """A sample of the elements, most of them wrong, on which ways are tried before all elements."""
    wrong = np.flatnonzero(is_wrong)
    chosen = np.append(wrong[:: len(wrong) // FEW + 1], np.arange(0, x.size, x.size // FEW + 1))

    def some(each: Bits) -> Bits:
        return each.reshape(-1)[chosen]

    few = {
        name: (some(scale), None if zero is None else some(zero))
        for name, (scale, zero) in layouts.items()
    }
    return some(x), few, some(answers), some(is_wrong)


def _onto(way: Way, bases: Iterable[Way]) -> Iterator[Way]:
    for base in bases:
        if (both := base.joined(way)) is not None:
            yield both


def _gives(
    rules: Formula,
    way: Way,
    x: Bits,
    layouts: Layouts,
    answers: Bits,
    is_wrong: NDArray[np.bool_],
    needs_most: bool = True,
) -> bool:
    """Whether a way gives all answers and, if it ``needs_most``, settles half of the wrong ones."""
    with np.errstate(all="ignore"):
        found = simulate(rules, way, x, *layouts[way.layout or ""])
    settled = found != UNSETTLED
    is_same = _is_same(rules.target, found, answers)
    if not (is_same | ~settled).all():
        return False
    explained = np.count_nonzero(is_same & settled & is_wrong)
    return not needs_most or bool(2 * explained >= np.count_nonzero(is_wrong))


def _allowed_ways(rules: Formula) -> Iterator[Way]:
    """Yield the ways that the formula allows: as it is, and with rounded operands if it says so."""
    yield Way()
    step: Step = "product" if rules.operation == "dequantize" else "quotient"
    if any("of-rounded-operands" in each.words for each in rules.outcomes[step].values()):
        yield Way(rounds_operands=True)


def _special_ways(
    rules: Formula,
    bases: Sequence[Way],
    x: Bits,
    own: tuple[Bits, Bits | None],
    answers: Bits,
    is_wrong: NDArray[np.bool_],
) -> dict[str, Way]:
    """The ways, by name, that explain wrong answers to infinities and to NaNs."""
    if rules.operation == "dequantize" or rules.target.is_integral:
        return {}
    with np.errstate(invalid="ignore"):
        values = values_of(rules.source, x)
    become_nans = bool(rules.casts) and _code_of_cast(rules, "infinite", True) == NAN_CODES["-"]
    infinities = INFINITIES_AS_NANS if become_nans else INFINITIES
    regions = (np.isinf(values), infinities), (np.isnan(values), NANS)
    found: dict[str, Way] = {}
    for here, ways in regions:
        if not is_wrong[here].any():
            continue
        scale, zero = (None if each is None else each[here] for each in own)
        assert scale is not None
        given = x[here], {"": (scale, zero)}, answers[here], is_wrong[here]
        for name, way in {"": Way(), **ways}.items():
            if any(_gives(rules, both, *given) for both in _onto(way, bases)):
                found |= {name: way} if name else {}
                break
    return found


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
        yield "makes-subnormal-products-zero", Way(flushes_products=True)
        if not rules.target.is_integral:
            yield from ((name, Way(steps=name)) for name in STEPS)
        return
    yield "multiplies-by-the-reciprocal", Way(is_reciprocal=True)
    if not codes.is_integral:
        yield "ignores-saturate", Way(ends="other-saturate")
        yield "makes-carries-nan", Way(ends="carried-to-nan")
        yield "makes-overflows-nan", Way(ends="nan")
        yield "saturates-truncated-nans", Way(ends="truncated-nan-saturated")
        yield "truncates-subnormals", Way(truncates_subnormals=True)
        yield "rounds-quotients-to-float16", Way(narrows_quotients=True)
        yield "carries-twice-in-float16", Way(precision="float16", carries_twice=True)
        if rules.source.is_integral:  # An x is never infinite, but a quotient may be.
            yield from INFINITIES.items()
        return
    yield "treats-subnormals-as-zero", Way(is_flushed=True, nans="zero")
    yield "treats-subnormals-as-zero-with-largest-nans", Way(is_flushed=True, nans="max")
    yield "rounds-half-away", Way(rounding="away")
    yield "rounds-half-up", Way(rounding="up")
    yield "truncates-quotients", Way(rounding="toward-zero")
    yield "rounds-quotients-down", Way(rounding="down")
    yield "adds-zero-points-before-rounding", Way(zero="before-rounding")
    yield "limits-before-zero-points", Way(zero="after-limits")
    yield "wraps-codes", Way(ends="wrapped")
    yield "overflows-in-int32", Way(ends="by-int32")
    yield "divides-between-scaled-limits", Way(between="divided")
    yield "multiplies-between-scaled-limits", Way(between="multiplied")
    yield "overflows-in-scaled-limits", Way(overflows_limits=True)
    if codes.is_signed:
        yield "leaves-out-lowest-codes", Way(ends="without-lowest")


UNSETTLED = -5
"""Stands for a pattern that depends on how a system treats a NaN or an infinity."""


def simulate(
    rules: Formula, way: Way, x: Bits, scale: Bits, zero: Bits | None
) -> NDArray[np.int64]:
    """The patterns that a way gives; ``ANY_NAN`` for a NaN, ``UNSETTLED`` where it defines none."""
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
    rules: Formula, way: Way, x: Floats, scale: Floats, offset: Floats
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
    round_to = ROUNDINGS[way.rounding or "even"]
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


def _float_codes(rules: Formula, way: Way, quotient: Floats) -> NDArray[np.int64]:
    """Patterns of small floats; values out of the target's range become what the rules require."""
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
    # The result for an infinity differs between versions; it holds unless the way changes it.
    for negative in (False, True) if rules.casts else ():
        code = _code_of_cast(rules, "infinite", negative) if saturates == due else UNSETTLED
        codes = np.where(np.isinf(quotient) & (is_negative == negative), code, codes)
    if way.infinities:
        kept = {"saturated": largest, "infinite": infinite}
        nan = NAN_CODES["+" if way.infinities == "positive-nan" else "any"]
        ends = kept.get(way.infinities, np.full(codes.shape, nan))
        codes = np.where(np.isinf(quotient), ends, codes)
    return np.where(np.isnan(quotient), _nans(rules, way, np.signbit(quotient)), codes)


def _code_of_cast(rules: Formula, situation: Situation, is_negative: bool) -> int:
    return code_of_outcome(rules.cast_of(situation, is_negative=is_negative).strictest)


def _nans(rules: Formula, way: Way, is_negative: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The patterns that NaNs of each sign become."""
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
        positive, negative = (_code_of_cast(rules, "nan", each) for each in (False, True))
    return np.where(is_negative, negative, positive)


def _beyond(target: Format) -> float:
    """The power of two above all values of a target."""
    return 2.0 ** (math.frexp(largest_of(target))[1])


def _infinite(target: Format, is_negative: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The patterns of infinities; of NaNs in a target without them."""
    if not target.entry.infinity:
        return np.full(is_negative.shape, ANY_NAN)
    return target.infinity_code | np.where(is_negative, target.sign_bit, 0)


def _dequantized(
    rules: Formula, way: Way, x: Floats, scale: Floats, offset: Floats
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


def _is_same(target: Format, found: NDArray[np.int64], answers: Bits) -> NDArray[np.bool_]:
    """Where patterns equal the answers; zeros may differ in sign."""
    given = answers.astype(np.int64)
    same = found == given
    if target.sign_bit and not target.is_integral:
        same |= ((found | given) & ~target.sign_bit == 0) & (target.entry.zero == "signed")
    for sign, code in NAN_CODES.items():
        if (here := found == code).any():
            same |= here & is_nan(target, answers, sign)
    return np.asarray(same)


SAYS: Mapping[str, str] = {
    "multiplies-by-the-reciprocal": "multiplies by 1/scale instead of dividing by the scale",
    "rounds-half-away": "rounds ties away from zero when it quantizes",
    "rounds-half-up": "rounds ties up when it quantizes",
    "truncates-quotients": "truncates the quotient when it quantizes",
    "rounds-quotients-down": "rounds the quotient down when it quantizes",
    "adds-zero-points-before-rounding": "adds the zero point before it rounds, not afterwards",
    "limits-before-zero-points": "limits codes to their range before it adds the zero point",
    "wraps-codes": "wraps codes that are out of range when it quantizes",
    "overflows-in-int32": "converts quotients to int32, and those beyond its range to the smallest",
    "leaves-out-lowest-codes": "never gives the lowest code when it quantizes",
    "leaves-out-zero-points": "leaves out the zero point",
    "reads-zero-points-as-another-type": "reads a zero point as one of the other signedness",
    "ignores-saturate": "ignores `saturate` when it quantizes",
    "makes-overflows-nan": "turns quotients that are out of range into NaN, not into infinities",
    "makes-carries-nan": "turns quotients into NaN that only rounding puts out of range",
    "saturates-truncated-nans": "saturates quotients whose bits before rounding are those of a NaN",
    "gives-zeros-of-the-other-sign": "gives zeros of the wrong sign when it quantizes",
    "saturates-infinities": "turns infinities into the largest values when it quantizes",
    "keeps-infinities": "keeps infinities when it quantizes",
    "makes-infinities-nan": "turns infinities into NaN when it quantizes",
    "loses-the-sign-of-infinities": "gives one NaN for infinities of both signs when it quantizes",
    "loses-the-sign-of-nans": "gives one NaN for NaNs of both signs when it quantizes",
    "makes-nans-negative": "gives a negative NaN for NaNs of both signs when it quantizes",
    "makes-nans-zero": "turns NaN into zero when it quantizes",
    "makes-nans-the-largest": "turns NaN into the largest value when it quantizes",
    "makes-nans-the-largest-of-their-sign": "turns NaN into the largest value of its sign when it"
    " quantizes",
    "makes-nans-the-lowest": "turns NaN into the lowest value when it quantizes",
    "truncates-subnormals": "rounds quotients to the bits of normal codes, then truncates"
    " subnormal ones",
    "rounds-quotients-to-float16": "rounds quotients to float16 before it rounds them to codes",
    "carries-twice-in-float16": "divides in float16, and doubles subnormals that round up to a"
    " power of two",
    "divides-between-scaled-limits": "divides x by the width of the scaled range in float32, as"
    " fake quantization does",
    "multiplies-between-scaled-limits": "multiplies x by the reciprocal width of the scaled range"
    " in float32, as fake quantization does",
    "overflows-in-scaled-limits": "overflows where a limit times the scale exceeds the scale's"
    " dtype",
    "makes-subnormal-products-zero": "makes zero of subnormal products when it dequantizes",
    "rounds-each-step": "rounds code, zero point, scale and difference to the dtype of the result"
    " before it multiplies",
    "rounds-each-step-up-from-odd": "rounds each step to the dtype of the result, and up only"
    " where the truncated pattern is odd",
    "rounds-operands": "rounds code, zero point and scale to the dtype of the result before it"
    " subtracts and multiplies",
    "rounds-operands-up-from-odd": "rounds operands and product to the dtype of the result, and"
    " up only where the truncated pattern is odd",
    "rounds-codes-up-from-odd": "rounds codes to the dtype of the result first, and up only where"
    " the truncated pattern is odd",
    "ignores-precision": "ignores `precision` when it quantizes",
    "treats-subnormal-scales-as-zero": "treats subnormal scales as zero",
    "treats-subnormals-as-zero": "treats subnormals as zero when it quantizes, and gives 0 for 0/0",
    "treats-subnormals-as-zero-with-largest-nans": (
        "treats subnormals as zero when it quantizes, and gives the largest code for 0/0"
    ),
    "wraps-differences": "wraps the difference of code and zero point when it dequantizes",
    "scales-zero-points-alone": "multiplies code and zero point by the scale before it subtracts",
    "truncates-products": "truncates the product when it dequantizes",
    "takes-another-axis": "takes the scales along another axis",
    "takes-one-scale": "takes the first scale for all elements",
    "takes-blocks-of-another-size": "takes blocks of another size",
    "repeats-scales-in-turn": "repeats the row of scales instead of each scale in its block",
    **{
        f"{verb}-in-{precision}": f"{verb} in {precision}, not in the precision that is due"
        for verb in ("divides", "multiplies")
        for precision in ("float64", "float32", "float16", "bfloat16")
    },
}
IN_OTHER_TENSORS = "changes-with-layout"
"""Stands for what is wrong in long tensors, or in those that lie otherwise, and in no short row."""
JOINT = "+"
"""Joins the names of two mechanisms that explain answers together."""


def says(name: str) -> str:
    """The sentence of a finding."""
    return ", and ".join(SAYS[each] for each in name.split(JOINT))
