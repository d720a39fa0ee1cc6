"""Quantization of whole arrays, in float64.

Every operand is a float64 without loss. A quotient or product is rounded to odd: to the one of the
two doubles beside it whose last bit is 1, unless it is a double. So a second rounding, to at most
51 bits, gives what a single one would give. This module shares no code with ``exact.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.quantization.ruling import Formula, StepOutcome, formula
from oracles.protocol import Bits, Floats, Mask
from specs.cases import Case
from specs.formats import Format, value_of
from specs.model.step_entry import FormulaStep, Situation, StepWord
from specs.model.vocabulary import AXIS, BLOCK, FORM
from specs.outcomes import Exactly, Nan

Codes = NDArray[np.int64]
NAN_CODES: Mapping[str, int] = {"any": -1, "+": -3, "-": -4}
"""Numbers in the place of a pattern: every NaN of the target, or every one of a sign."""
ANY_NAN = NAN_CODES["any"]


def code_of_outcome(outcome: Exactly | Nan) -> int:
    """Return the pattern of an outcome, or the number of ``NAN_CODES`` that stands for its NaNs."""
    return outcome.code if isinstance(outcome, Exactly) else NAN_CODES[outcome.sign]


NO_CODE = -2
"""The number in the place of a pattern for an element at which a word allows none."""
SPLITTER = float(2**27 + 1)
TABLE_BITS = 8
"""The bits of the widest floats whose values are looked up in a table."""


@dataclass
class ExpectedCodes:
    """The patterns that a formula allows for each element of an array; any where ``is_open``.

    Each array of ``strong`` holds an allowed pattern per element, or ``NO_CODE``; the reference
    answers with the first pattern. Those of ``weaker`` hold patterns that only break a
    recommendation; where ``is_recommended``, so does any other pattern. The numbers of
    ``NAN_CODES`` stand in the place of patterns.
    """

    strong: list[Codes]
    weaker: list[Codes]
    is_open: Mask
    is_recommended: Mask

    def at(self, where: NDArray[np.intp]) -> ExpectedCodes:
        """Return what is expected of the elements at these indices."""
        strong, weaker = ([each[where] for each in codes] for codes in (self.strong, self.weaker))
        return ExpectedCodes(
            [each for each in strong if (each != NO_CODE).any()],
            [each for each in weaker if (each != NO_CODE).any()],
            self.is_open[where],
            self.is_recommended[where],
        )

    @property
    def is_free(self) -> Mask:
        """Where several answers are allowed: the element is open, or has several patterns."""
        free = self.is_open.copy()
        first = np.full(free.shape, NO_CODE, np.int64)
        for codes in self.strong:
            is_code = codes != NO_CODE
            free |= is_code & (codes < 0)  # The numbers of NAN_CODES are negative.
            free |= is_code & (first != NO_CODE) & (codes != first)
            first = np.where(first == NO_CODE, codes, first)
        return free

    def answers(self, target: Format) -> Bits:
        """Return the reference's answers: 0 where the document is open, one NaN for several."""
        codes = self.strong[0].copy() if self.strong else np.zeros(self.is_open.shape, np.int64)
        for more in self.strong[1:]:
            codes = np.where(codes == NO_CODE, more, codes)
        for sign, code in NAN_CODES.items():
            if target.nan_codes:
                codes[codes == code] = target.nans(sign)[0][-1]
        codes[self.is_open] = 0
        return codes.astype(target.storage)


@dataclass
class _Masks:
    """Collects, over the steps, where the formula is open and where it only recommends."""

    formula: Formula
    is_open: Mask
    is_recommended: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.is_recommended = np.zeros_like(self.is_open)

    def take(
        self, step: FormulaStep, situations: Mapping[Situation, Any]
    ) -> Iterator[tuple[StepOutcome, Mask]]:
        """Yield each outcome of a step that applies to some elements, with the mask of these.

        ``situations`` has a mask for each situation. An open outcome is not yielded, but its
        elements are open from then on.
        """
        for situation, where in situations.items():
            here = np.broadcast_to(where, self.is_open.shape) & ~self.is_open
            if not here.any():
                continue
            outcome = self.formula.outcome(step, situation)
            if outcome.is_open:
                self.is_open |= here
                continue
            if outcome.level == "recommended":
                self.is_recommended |= here
            yield outcome, here

    def pass_by(self, step: FormulaStep, situations: Mapping[Situation, Any]) -> None:
        """Record where a step leaves elements open or only recommends; compute nothing."""
        for _ in self.take(step, situations):
            pass


def expect(formula: Formula, x: Bits, scale: Bits, zero: Bits | None) -> ExpectedCodes:
    """Return what a formula allows for the patterns of ``x``.

    Scales and zero points broadcast to these; ``zero`` is None if there are no zero points.
    """
    with np.errstate(all="ignore"):
        if formula.operation == "dequantize":
            return _dequantized(formula, x, scale, zero)
        return _quantized(formula, x, scale, zero)


@dataclass
class _Words:
    """The values that the words of a step allow, each with the mask where its word applies.

    The keys of ``values`` are a word and whether it is weak. ``neighbors`` has, instead of a key,
    whether the word `neighbor` is weak.
    """

    shape: tuple[int, ...]
    values: dict[tuple[StepWord, bool], tuple[Floats, Mask]] = field(default_factory=dict)
    neighbors: list[tuple[bool, Floats, Mask]] = field(default_factory=list)

    def add(self, outcome: StepOutcome, here: Mask, of_word: Mapping[StepWord, Floats]) -> None:
        """Add the values that ``of_word`` has for an outcome's words, where ``here`` holds."""
        for word in outcome.words:
            if word not in of_word:
                continue
            key = word, outcome.is_weak(word)
            values, where = self.values.get(
                key, (np.zeros(self.shape), np.zeros(self.shape, np.bool_))
            )
            self.values[key] = (np.where(here, of_word[word], values), where | here)

    def add_neighbor(self, outcome: StepOutcome, here: Mask, fmt: Format, result: Floats) -> None:
        """Add the second nearest value beside a result where the outcome allows neighbors.

        The nearest is a word of its own. A value beyond the format's largest is left out.
        """
        if "neighbor" in outcome.words:
            both = (rounded_by(way, fmt, result) for way in (np.floor, np.ceil))
            values = sum(both) - nearest(fmt, result)
            where = here & (np.abs(values) <= _largest(fmt))
            self.neighbors.append((outcome.is_weak("neighbor"), values, where))

    def __iter__(self) -> Iterator[tuple[bool, bool, Floats, Mask]]:
        """Yield for each word whether it is `exact`, whether it is weak, its values and mask."""
        for (word, is_weak), (values, where) in self.values.items():
            yield word == "exact", is_weak, values, where
        for is_weak, values, where in self.neighbors:
            yield False, is_weak, values, where


def _quantized(formula: Formula, x: Bits, scale: Bits, zero: Bits | None) -> ExpectedCodes:
    fmt, target = formula.precision, formula.target
    given, divisor = values_of(formula.source, x), values_of(formula.scale, scale)
    masks = _Masks(formula, np.zeros(np.broadcast_shapes(x.shape, scale.shape), np.bool_))
    if "scale" in formula.outcomes:
        masks.pass_by("scale", _kinds_of_scale(divisor))
    quotient, has_double = _odd_quotient(given, divisor)
    fits = _fits(fmt, quotient, formula, given, divisor, _quotient_only)
    special = ~np.isfinite(given)
    situations: dict[Situation, Any] = {
        name: where & ~special for name, where in fits.situations.items()
    }
    settled = _is_within(fmt, divisor)
    situations["nan"] = np.isnan(given)
    situations["infinite"] = np.isinf(given) & settled
    situations["out-of-range"] |= np.isinf(given) & ~settled
    paths = _Words(masks.is_open.shape)
    of_word: dict[StepWord, Floats] = {
        "value": np.where(special, given, quotient),
        "exact": quotient,
        "nearest-even": nearest(fmt, quotient),
        "of-rounded-operands": nearest(fmt, fits.of_operands),
    }
    for outcome, here in masks.take("quotient", situations):
        paths.add(outcome, here, of_word)
        paths.add_neighbor(outcome, here, fmt, quotient)
    offset = np.zeros(()) if zero is None else values_of(target, zero)
    found = ExpectedCodes([], [], masks.is_open, masks.is_recommended)
    sums = []
    for is_exact, is_weak, values, here in paths:
        is_whole = np.rint(values) == values
        if is_exact:  # Beyond 2^53 its odd double hides a fraction.
            is_whole &= has_double
        finite = here & np.isfinite(values)
        masks.pass_by("rounding", {"whole": finite & is_whole, "fraction": finite & ~is_whole})
        whole = np.rint(values) if target.is_integral else values
        total = whole + offset if target.is_integral else whole
        zero_point = None if zero is None else offset
        kinds = _kinds_of_zero_point(formula, "zero-point", zero_point, here, whole, total)
        masks.pass_by("zero-point", kinds)
        sums.append((total, here, is_weak))
    is_minus = x & formula.source.sign_bit != 0
    for total, here, is_weak in sums:
        for codes, weak in _saturated(formula, masks, total, here, is_minus):
            (found.weaker if is_weak or weak else found.strong).append(codes)
    return found


def _kinds_of_zero_point(
    formula: Formula,
    step: FormulaStep,
    offset: Floats | None,
    here: Mask,
    other: Floats,
    result: Floats,
) -> dict[Situation, Any]:
    """Return, for each situation of a zero point, the mask of the elements that are in it.

    ``offset`` is None without zero points. ``result`` is the sum with the ``other`` operand, or
    their difference, in float64. Where float64 rounds it, the precision does not hold it either.
    All zero points but 0 count as `other` if the formula treats `exact` ones alike.
    """
    if offset is None:
        return {"none": here}
    fits = np.zeros(here.shape, np.bool_)
    if formula.outcome(step, "exact") != formula.outcome(step, "other"):
        fits = here & _has(formula.precision, offset)
        is_exact = _rest_of_sum(other, offset if step == "zero-point" else -offset, result) == 0
        for values in (other, result):
            fits &= (_has(formula.precision, values) & is_exact) | ~np.isfinite(other)
    is_other = here & (offset != 0)
    return {"zero": here & (offset == 0), "exact": is_other & fits, "other": is_other & ~fits}


def _saturated(
    formula: Formula, masks: _Masks, total: Floats, here: Mask, is_minus: Mask
) -> Iterator[tuple[Codes, bool]]:
    """Yield arrays of the patterns that saturation makes of one path, and whether they are weak.

    ``total`` has the path's values, and ``here`` is where it applies. ``is_minus`` is where an
    element has its sign bit set, which is the sign of a NaN. The step is recorded in ``masks``.
    """
    target = formula.target
    finite = np.isfinite(total)
    within = finite & _is_within(target, total)
    situations: dict[Situation, Any] = {
        "in-range": here & within,
        "out-of-range": here & finite & ~within,
        "infinite": here & np.isinf(total),
        "nan": here & np.isnan(total),
    }
    negative = np.where(np.isnan(total), is_minus, total < 0)
    codes = np.full(total.shape, NO_CODE)
    zeros = np.full(total.shape, NO_CODE)
    weaker = np.full(total.shape, NO_CODE)
    for situation in formula.outcomes["saturation"]:
        for outcome, found in masks.take("saturation", {situation: situations[situation]}):
            word = outcome.best
            if word in ("saturated", "max"):
                low = target.lowest_code if word == "saturated" else target.max_code
                ends = np.where(negative, low, target.max_code)
            elif word == "cast":
                (low, less_low), (high, less_high) = (
                    _cast(formula, situation, is_negative=each) for each in (True, False)
                )
                ends = np.where(negative, low, high)
                weaker = np.where(found, np.where(negative, less_low, less_high), weaker)
            else:
                ends = codes_of(target, np.where(found, nearest(target, total), 0), negative)
                if target.entry.zero == "signed":
                    zeros = np.where(found & (total == 0), target.sign_bit, zeros)
            codes = np.where(found, ends, codes)
    yield codes, False
    if (zeros != NO_CODE).any():
        yield zeros, False
    if (weaker != NO_CODE).any():
        yield weaker, True


def _cast(formula: Formula, situation: Situation, *, is_negative: bool) -> tuple[int, int]:
    """Return the patterns that Cast prefers and merely allows for a value that does not fit.

    The value is out of range, infinite or NaN, as ``situation`` says, and negative if
    ``is_negative``. The second is ``NO_CODE`` if Cast allows only the first. A number of
    ``NAN_CODES`` stands for NaNs.
    """
    cast = formula.cast_of(situation, is_negative=is_negative)
    strictest, outcome = (code_of_outcome(each) for each in (cast.strictest, cast.outcome))
    return strictest, NO_CODE if outcome == strictest else outcome


def _dequantized(formula: Formula, x: Bits, scale: Bits, zero: Bits | None) -> ExpectedCodes:
    target = formula.target
    given, factor = values_of(formula.source, x), values_of(formula.scale, scale)
    offset = np.zeros(()) if zero is None else values_of(formula.source, zero)
    masks = _Masks(formula, np.zeros(np.broadcast_shapes(x.shape, scale.shape), np.bool_))
    masks.pass_by("scale", _kinds_of_scale(factor))
    masks.pass_by(
        "input",
        {"finite": np.isfinite(given), "infinite": np.isinf(given), "nan": np.isnan(given)},
    )
    # An infinity and a NaN stay what they are, whatever the zero point.
    is_special = ~np.isfinite(given)
    difference = np.where(is_special, given, given - offset)
    zero_point = None if zero is None else offset
    here = np.ones(masks.is_open.shape, np.bool_)
    kinds = _kinds_of_zero_point(formula, "difference", zero_point, here, given, difference)
    masks.pass_by("difference", kinds)
    is_special = is_special & ~masks.is_open
    difference = np.where(masks.is_open | is_special, 0.0, difference)
    product = _odd_product(difference, factor)
    negative = product < 0
    fits = _fits(target, product, formula, difference, factor, _odd_product)
    of_word: dict[StepWord, Floats] = {
        "value": nearest(target, product),
        "nearest-even": nearest(target, product),
        "of-rounded-operands": nearest(target, fits.of_operands),
    }
    found = ExpectedCodes([], [], masks.is_open, masks.is_recommended)
    paths = _Words(masks.is_open.shape)
    situations = {name: where & ~is_special for name, where in fits.situations.items()}
    for outcome, where in masks.take("product", situations):
        paths.add(outcome, where, of_word)
        paths.add_neighbor(outcome, where, target, product)
    for _, is_weak, values, where in paths:
        codes = codes_of(target, np.where(where, values, 0), negative)
        codes = np.where(where, codes, NO_CODE)
        (found.weaker if is_weak else found.strong).append(codes)
    zeros = ~masks.is_open & ~is_special & (product == 0)
    if target.sign_bit and zeros.any():
        found.strong.append(np.where(zeros, target.sign_bit, NO_CODE))
    if is_special.any():
        infinite = target.infinity_code | np.where(given < 0, target.sign_bit, 0)
        kept = np.where(np.isnan(given), ANY_NAN, infinite)
        found.strong.append(np.where(is_special, kept, NO_CODE))
    return found


def values_of(fmt: Format, bits: Bits) -> Floats:
    """Return the values of patterns, as float64.

    A float must be float32, float16, bfloat16, or have at most ``TABLE_BITS`` bits.
    """
    match fmt.name:
        case "float32":
            return bits.astype(np.uint32).view(np.float32).astype(np.float64)
        case "float16":
            return bits.astype(np.uint16).view(np.float16).astype(np.float64)
        case "bfloat16":
            return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if fmt.is_integral:
        unsigned = bits.astype(np.int64)
        return (unsigned - ((unsigned & fmt.sign_bit) << 1)).astype(np.float64)
    assert fmt.bits <= TABLE_BITS, f"{fmt.name} is not a float of quantization"
    return _table(fmt)[bits.astype(np.int64)]


def _table(fmt: Format) -> Floats:
    if fmt.name not in _TABLES:
        special = dict.fromkeys((code for codes in fmt.nan_codes for code in codes), np.nan)
        if fmt.entry.infinity:
            special |= {fmt.infinity_code: np.inf, fmt.infinity_code | fmt.sign_bit: -np.inf}
        codes = range(1 << fmt.bits)
        _TABLES[fmt.name] = np.array(
            [special[code] if code in special else float(value_of(fmt, code)) for code in codes]
        )
    return _TABLES[fmt.name]


_TABLES: dict[str, Floats] = {}


def codes_of(fmt: Format, values: Floats, negative: Mask) -> Codes:
    """Return the patterns of values that a format has; zeros get a sign where ``negative``."""
    if fmt.is_integral:
        return values.astype(np.int64) & fmt.mask
    magnitude = np.abs(values)
    significand, exponent = np.frexp(magnitude)
    leading = exponent.astype(np.int64) - 1
    is_normal = (leading >= fmt.lowest_exponent) & (magnitude > 0)
    normal = (leading + fmt.entry.bias - 1 << fmt.entry.mantissa) + np.ldexp(
        significand, fmt.entry.mantissa + 1
    ).astype(np.int64)
    subnormal = np.where(is_normal, 0.0, magnitude)
    low = np.ldexp(subnormal, fmt.entry.mantissa - fmt.lowest_exponent).astype(np.int64)
    sign = np.where(negative & (fmt.entry.zero == "signed") | (values < 0), fmt.sign_bit, 0)
    return np.asarray(np.where(is_normal, normal, low) | sign, np.int64)


def nearest(fmt: Format, values: Floats) -> Floats:
    """Round values to a format, ties to even, as if the exponent had no upper end."""
    return rounded_by(np.rint, fmt, values)


def rounded_by(way: Any, fmt: Format, values: Floats) -> Floats:
    """Round values to multiples of a format's unit; ``way`` rounds an array to integers."""
    if fmt.is_integral:
        return np.asarray(way(values))
    _, exponent = np.frexp(values)
    unit = np.maximum(exponent - 1, fmt.lowest_exponent) - fmt.entry.mantissa
    return np.asarray(np.ldexp(way(np.ldexp(values, -unit)), unit))


def _odd_quotient(dividend: Floats, divisor: Floats) -> tuple[Floats, Mask]:
    """Return the quotient rounded to odd, and the mask of where the exact one is a double."""
    quotient = np.asarray(dividend / divisor)
    high, low = _two_product(quotient, np.broadcast_to(divisor, quotient.shape))
    rest = (dividend - high) - low
    return _to_odd(quotient, np.where(divisor < 0, -rest, rest)), np.asarray(rest == 0)


def _quotient_only(dividend: Floats, divisor: Floats) -> Floats:
    return _odd_quotient(dividend, divisor)[0]


def _odd_product(one: Floats, other: Floats) -> Floats:
    product, rest = _two_product(one, other)
    return _to_odd(product, rest)


def _two_product(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return a product rounded to nearest, and what rounding has left out (T. J. Dekker, 1971)."""
    product = np.asarray(one * other)
    one_high, other_high = (each * SPLITTER - (each * SPLITTER - each) for each in (one, other))
    one_low, other_low = one - one_high, other - other_high
    rest = one_high * other_high - product
    rest = ((rest + one_high * other_low) + one_low * other_high) + one_low * other_low
    return product, np.asarray(rest)


def _rest_of_sum(one: Floats, other: Floats, total: Floats) -> Floats:
    """Return what rounding has left out of a sum ``total`` (D. E. Knuth, 1969)."""
    added = total - one
    return np.asarray((one - (total - added)) + (other - added))


def _to_odd(values: Floats, rest: Floats) -> Floats:
    """Round to odd: move inexact values whose last bit is 0 by one unit toward their rest."""
    is_even = (np.ascontiguousarray(values).view(np.int64) & 1) == 0
    moves = np.isfinite(values) & (values != 0) & is_even.reshape(values.shape) & (rest != 0)
    return np.where(moves, np.nextafter(values, np.where(rest > 0, np.inf, -np.inf)), values)


def _kinds_of_scale(scale: Floats) -> dict[Situation, Any]:
    finite = np.isfinite(scale)
    return {
        "positive": finite & (scale > 0),
        "negative": finite & (scale < 0),
        "zero": scale == 0,
        "infinite": np.isinf(scale),
        "nan": np.isnan(scale),
    }


def _largest(fmt: Format) -> float:
    return float(value_of(fmt, fmt.max_code))


def _is_within(fmt: Format, values: Floats) -> Mask:
    rounded = nearest(fmt, values)
    lowest = float(value_of(fmt, fmt.lowest_code))
    return np.asarray((rounded >= lowest) & (rounded <= _largest(fmt)))


def _has(fmt: Format, values: Floats) -> Mask:
    found = _is_within(fmt, values) & (nearest(fmt, values) == values)
    return found if fmt.has_zero else np.asarray(found & (values != 0))


class _Fits(NamedTuple):
    """The result of an operation on rounded operands, and a mask for each possible situation."""

    of_operands: Floats
    situations: dict[Situation, Mask]


def _fits(
    fmt: Format,
    result: Floats,
    formula: Formula,
    one: Floats,
    other: Floats,
    operate: Callable[[Floats, Floats], Floats],
) -> _Fits:
    """Return masks of where an operation is exact, inexact or out of range in a format.

    It is exact if the format has the ``result`` and both operands. It is out of range if one of
    these, or the result of the rounded operands, lies beyond the format's range when it is rounded,
    or if ``other`` is not zero but rounds to it. In a format of unsigned floats nothing is out of
    range. ``operate`` computes the result of two operands.
    """
    out = np.zeros(result.shape, np.bool_)
    fits = _has(fmt, result)
    of_operands = result
    is_bounded = fmt.is_signed or fmt.is_integral
    if is_bounded:
        out |= ~_is_within(fmt, result)
    if not formula.source == formula.scale == fmt:  # Then the format has both operands.
        near_other = nearest(fmt, other)
        of_operands = operate(nearest(fmt, one), near_other)
        fits &= _has(fmt, one) & _has(fmt, other)
        if is_bounded:
            out |= (near_other == 0) & (other != 0)
            for values in (of_operands, one, other):
                out |= ~_is_within(fmt, values)
    fits &= ~out
    return _Fits(of_operands, {"exact": fits, "inexact": ~fits & ~out, "out-of-range": out})


def quantize(case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
    """Return the reference's results for a case and its tensors, by name; ``y`` is 0 where open."""
    rules, x = formula(case), tensors["x"]
    if rules.operation == "dynamic-quantize":
        return _quantize_dynamically(rules, x)
    scale = spread(case, x.shape, tensors["scale"])
    zero = spread(case, x.shape, tensors["zero"]) if "zero" in tensors else None
    return {"y": expect(rules, x, scale, zero).answers(rules.target)}


def spread(case: Case, shape: tuple[int, ...], values: Bits) -> Bits:
    """Repeat a case's scales or zero points to one for each element of a tensor of this shape."""
    form = case.mode.get(FORM, "tensor")
    if form == "tensor":
        return np.broadcast_to(values.reshape(()), shape)
    if form == "block":
        wide = np.repeat(values, int(case.mode[BLOCK]), axis=AXIS)
        return wide[:, : shape[AXIS]]
    lengths = [1] * len(shape)
    lengths[AXIS] = shape[AXIS]
    return np.broadcast_to(values.reshape(lengths), shape)


def _quantize_dynamically(rules: Formula, x: Bits) -> dict[str, Bits]:
    """Return ``y``, ``scale`` and ``zero`` by name, the latter two as ONNX's function body does.

    They are computed in float32, and the codes ``y`` by the formula. ``y`` is zeros if an input is
    not finite, or the scale is not positive and finite.
    """
    values = x.view(np.float32)
    largest, codes = np.float32(0), rules.target.max_code
    with np.errstate(all="ignore"):
        smallest = np.minimum(values.min(initial=largest), largest)
        width = np.maximum(values.max(initial=largest), largest) - smallest
        scale = np.float32(width / np.float32(codes))
        found = np.rint(np.clip(-smallest / scale, 0, codes))
    zero = np.full((), 0 if np.isnan(found) else int(found), rules.target.storage)
    patterns = np.full((), scale.view(np.uint32), rules.scale.storage)
    if not np.isfinite(values).all() or not 0 < scale < np.inf:
        return {"y": np.zeros(x.shape, rules.target.storage), "scale": patterns, "zero": zero}
    expected = expect(rules, x, np.broadcast_to(patterns, x.shape), np.broadcast_to(zero, x.shape))
    return {"y": expected.answers(rules.target), "scale": patterns, "zero": zero}
