"""The definition of quantization: one element at a time, in fractions.

An element goes through the steps of its formula. Where a rule allows several words, it goes on
along several paths, each with a value of its own. A path, and a pattern at its end, is weak if a
rule recommends another word than the path's. This module shares no code with ``kernels.py``, so
that an error in one of them shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Literal, NamedTuple

from conformance.families.quantization.ruling import Formula, StepOutcome
from oracles.reference.exact import Infinity, NotANumber, Number, decode, encode
from specs.formats import Format
from specs.model.step_entry import FormulaStep, Situation, StepWord
from specs.outcomes import Exactly, Nan

ExactValue = Fraction | Literal["inf", "-inf", "nan", "-nan"]
"""The value of a pattern; a NaN of a format whose NaNs have no sign is ``nan``."""
AllowedCode = int | Nan


class AllowedResult(NamedTuple):
    """The patterns that a formula allows for one element; any pattern if it ``is_open``.

    ``codes`` break no rule, the reference's answer first; ``weaker`` only break a recommendation.
    ``Nan`` stands for the NaNs of a sign, or for all. ``level`` is the level of the rule that any
    other pattern breaks. ``situations`` are all pairs of a step and a situation that some path went
    through.
    """

    codes: tuple[AllowedCode, ...]
    weaker: tuple[AllowedCode, ...]
    is_open: bool
    level: Literal["required", "recommended"]
    situations: tuple[tuple[FormulaStep, Situation], ...]


class _Path(NamedTuple):
    value: ExactValue
    is_weak: bool


@dataclass
class _Trace:
    """The steps that an element has taken, and the paths that it is on.

    ``situations`` has the outcome of each step taken, by the step and the situation there.
    """

    formula: Formula
    paths: list[_Path] = field(default_factory=list)
    situations: dict[tuple[FormulaStep, Situation], StepOutcome] = field(default_factory=dict)

    def take(self, step: FormulaStep, situation: Situation) -> StepOutcome:
        """Record that the element is in a situation at a step; return the outcome there."""
        outcome = self.formula.outcome(step, situation)
        self.situations[step, situation] = outcome
        return outcome

    @property
    def is_open(self) -> bool:
        return any(outcome.is_open for outcome in self.situations.values())

    def result(self, found: Sequence[tuple[AllowedCode, bool]] = ()) -> AllowedResult:
        """Return what the steps taken allow; ``found`` has patterns and whether each is weak."""
        strong = tuple(dict.fromkeys(code for code, is_weak in found if not is_weak))
        weaker = dict.fromkeys(code for code, is_weak in found if is_weak and code not in strong)
        levels = {outcome.level for outcome in self.situations.values()}
        level: Literal["required", "recommended"]
        level = "recommended" if "recommended" in levels else "required"
        return AllowedResult(strong, tuple(weaker), self.is_open, level, tuple(self.situations))


def quantized(formula: Formula, x: int, scale: int, zero: int | None) -> AllowedResult:
    """Return the codes that a quantization may give for the patterns of x, scale and zero point.

    ``zero`` is None if there is no zero point.
    """
    trace = _Trace(formula)
    divisor = _value(formula.scale, scale)
    if "scale" in formula.outcomes and trace.take("scale", _kind_of_scale(divisor)).is_open:
        return trace.result()
    assert isinstance(divisor, Fraction)
    _divide(trace, _value(formula.source, x), divisor)
    if trace.is_open:
        return trace.result()
    trace.paths = [_Path(_rounded(trace, path.value), path.is_weak) for path in trace.paths]
    _add_zero_point(trace, zero)
    return trace.result() if trace.is_open else trace.result([*_saturated(trace)])


def dequantized(formula: Formula, x: int, scale: int, zero: int | None) -> AllowedResult:
    """Return the numbers, as patterns, that a dequantization may give for a code.

    Its scale and zero point are patterns too; ``zero`` is None if there is no zero point.
    """
    trace = _Trace(formula)
    code, factor = _value(formula.source, x), _value(formula.scale, scale)
    trace.take("scale", _kind_of_scale(factor))
    trace.take("input", "finite" if isinstance(code, Fraction) else _special(code))
    offset = Fraction(0) if zero is None else _value(formula.source, zero)
    difference = _minus(code, offset)
    trace.take("difference", _kind_of_zero_point(formula.target, zero, code, offset, difference))
    if trace.is_open:
        return trace.result()
    assert isinstance(factor, Fraction)
    if not isinstance(difference, Fraction):
        return trace.result([(_kept(formula.target, difference), False)])
    target = formula.target
    product = difference * factor
    rounded = nearest(target, difference) * nearest(target, factor)
    situation = _fits(target, product, rounded, (difference, factor))
    outcome = trace.take("product", situation)
    if trace.is_open:
        return trace.result()
    found: list[tuple[AllowedCode, bool]] = []
    for word in outcome.words:
        for value, is_negative in _words_of_product(target, word, product, rounded):
            codes = [_code(target, value, is_negative)]
            if product == 0 and target.sign_bit:
                codes = [0, target.sign_bit]
            found += [(each, outcome.is_weak(word)) for each in codes]
    return trace.result(found)


def _minus(code: ExactValue, offset: ExactValue) -> ExactValue:
    if isinstance(code, Fraction) and isinstance(offset, Fraction):
        return code - offset
    return code


def _kept(target: Format, value: ExactValue) -> AllowedCode:
    match value:
        case "inf":
            return target.infinity_code
        case "-inf":
            return target.infinity_code | target.sign_bit
    return Nan("any")


def _words_of_product(
    target: Format, word: StepWord, product: Fraction, rounded: Fraction
) -> Iterator[tuple[Fraction, bool]]:
    """Yield the target's values that a word allows for a product, and whether this is negative.

    The sign is that of the exact product, also where it rounds to zero. ``rounded`` is the product
    of the rounded operands.
    """
    is_negative = product < 0
    match word:
        case "value" | "nearest-even":
            yield nearest(target, product), is_negative
        case "of-rounded-operands":
            yield nearest(target, rounded), is_negative
        case "neighbor":
            for value in _neighbors(target, product):
                yield value, is_negative


def _neighbors(fmt: Format, value: Fraction) -> Iterator[Fraction]:
    """Yield a format's values at or next below a value, and at or next above it.

    One beyond the format's largest value is left out.
    """
    exponent = _unit_exponent(fmt, value)
    multiple = _scaled(value, -exponent)
    for whole in (floor(multiple), ceil(multiple)):
        neighbor = _scaled(Fraction(whole), exponent)
        if abs(neighbor) <= _largest(fmt):
            yield neighbor


def dynamic_scale(formula: Formula, xs: Sequence[int]) -> AllowedResult:
    """Return the scales that a dynamic quantization may give for inputs of these patterns.

    There must be at least one.
    """
    trace = _Trace(formula)
    values = [_value(formula.source, x) for x in xs]
    finite = [value for value in values if isinstance(value, Fraction)]
    if len(finite) < len(values):
        has_nan = any(value in ("nan", "-nan") for value in values)
        trace.take("range", "nan" if has_nan else "infinite")
        return trace.result()
    width = max(*finite, Fraction(0)) - min(*finite, Fraction(0))
    if width == 0:
        return trace.result([] if trace.take("range", "zero").is_open else [(0, False)])
    fmt = formula.scale
    of_rounded = nearest(fmt, width)
    if of_rounded > _largest(fmt):
        trace.take("range", "out-of-range")
        return trace.result()
    trace.take("range", "finite")
    steps = Fraction(formula.target.max_code)
    exact, rounded = width / steps, of_rounded / steps
    is_exact = _has(fmt, exact) and width == of_rounded
    outcome = trace.take("dynamic-scale", "exact" if is_exact else "inexact")
    return trace.result(
        [
            (_code(fmt, value, is_negative), outcome.is_weak(word))
            for word in outcome.words
            for value, is_negative in _words_of_product(fmt, word, exact, rounded)
        ]
    )


def dynamic_zero_point(formula: Formula, xs: Sequence[int], scale: int) -> AllowedResult:
    """Return the zero points that are allowed beside the scale that the backend gave.

    ``scale`` must be the pattern of a positive number; ``xs`` are the patterns of the inputs.
    """
    trace = _Trace(formula)
    divisor = _value(formula.scale, scale)
    assert isinstance(divisor, Fraction)
    values = [_value(formula.source, x) for x in xs]
    smallest = min(value for value in (*values, Fraction(0)) if isinstance(value, Fraction))
    found = []
    for quotient in (smallest / divisor, nearest(formula.precision, smallest / divisor)):
        limited = min(max(-quotient, Fraction(0)), Fraction(formula.target.max_code))
        trace.take("dynamic-zero-point", "fraction" if limited.denominator > 1 else "whole")
        found.append((round(limited), False))
    return trace.result(found)


def nearest(fmt: Format, value: Fraction) -> Fraction:
    """Round a value to a format, ties to even, as if the exponent had no upper end."""
    exponent = _unit_exponent(fmt, value)
    return _scaled(Fraction(round(_scaled(value, -exponent))), exponent)


def _unit_exponent(fmt: Format, value: Fraction) -> int:
    """Return the exponent of the spacing of a format's values at a value; 0 for integers and 0."""
    if fmt.is_integral or value == 0:
        return 0
    magnitude, divisor = abs(value.numerator), value.denominator
    exponent = magnitude.bit_length() - divisor.bit_length()
    if magnitude << max(0, -exponent) < divisor << max(0, exponent):
        exponent -= 1
    return max(exponent, fmt.lowest_exponent) - fmt.entry.mantissa


def _scaled(value: Fraction, exponent: int) -> Fraction:
    if exponent < 0:
        return Fraction(value.numerator, value.denominator << -exponent)
    return Fraction(value.numerator << exponent, value.denominator)


@lru_cache(1 << 16)
def _value(fmt: Format, code: int) -> ExactValue:
    match decode(fmt, code):
        case Number(sign, significand, exponent):
            return _scaled(Fraction(-significand if sign else significand), exponent)
        case Infinity(sign):
            return "-inf" if sign else "inf"
        case NotANumber(sign):
            return "-nan" if sign else "nan"


def _special(value: ExactValue) -> Situation:
    return "nan" if value in ("nan", "-nan") else "infinite"


def _kind_of_scale(scale: ExactValue) -> Situation:
    if not isinstance(scale, Fraction):
        return _special(scale)
    return "zero" if scale == 0 else "negative" if scale < 0 else "positive"


def _largest(fmt: Format) -> Fraction:
    return _finite(fmt, fmt.max_code)


def _lowest(fmt: Format) -> Fraction:
    return _finite(fmt, fmt.lowest_code)


def _finite(fmt: Format, code: int) -> Fraction:
    value = _value(fmt, code)
    assert isinstance(value, Fraction)
    return value


def _is_within(fmt: Format, value: Fraction) -> bool:
    return _lowest(fmt) <= nearest(fmt, value) <= _largest(fmt)


def _has(fmt: Format, value: Fraction) -> bool:
    if value == 0:
        return fmt.has_zero
    return _is_within(fmt, value) and nearest(fmt, value) == value


def _fits(
    fmt: Format, result: Fraction, of_rounded: Fraction | None, operands: Sequence[Fraction]
) -> Situation:
    """Return the situation of a result in a format: `exact`, `inexact` or `out-of-range`.

    It is exact if the format has the result and its operands. It is out of range if the result,
    ``of_rounded`` or an operand lies beyond the format's range when it is rounded, or if an operand
    after the first is not zero but rounds to it. ``of_rounded`` is the result of the rounded
    operands; None counts as out of range, too. In a format of unsigned floats nothing is out of
    range.
    """
    if fmt.is_signed or fmt.is_integral:
        shrunk = any(each != 0 and nearest(fmt, each) == 0 for each in operands[1:])
        if (
            shrunk
            or of_rounded is None
            or not all(_is_within(fmt, each) for each in (result, of_rounded, *operands))
        ):
            return "out-of-range"
    return "exact" if all(_has(fmt, each) for each in (result, *operands)) else "inexact"


def _divide(trace: _Trace, x: ExactValue, divisor: Fraction) -> None:
    """Take the step of the quotient: start a path for each value that the outcome's words allow."""
    fmt = trace.formula.precision
    if not isinstance(x, Fraction):
        # By a scale that the precision makes infinite, an infinity may become NaN.
        is_settled = _special(x) == "nan" or _is_within(fmt, divisor)
        outcome = trace.take("quotient", _special(x) if is_settled else "out-of-range")
        trace.paths = [_Path(x, outcome.is_weak(word)) for word in outcome.words]
        return
    quotient, rounded_divisor = x / divisor, nearest(fmt, divisor)
    rounded = nearest(fmt, x) / rounded_divisor if rounded_divisor else None
    outcome = trace.take("quotient", _fits(fmt, quotient, rounded, (x, divisor)))
    for word in outcome.words:
        values = [quotient]
        match word:
            case "nearest-even":
                values = [nearest(fmt, quotient)]
            case "of-rounded-operands":
                assert rounded is not None
                values = [nearest(fmt, rounded)]
            case "neighbor":
                values = [*_neighbors(fmt, quotient)]
        trace.paths += [_Path(value, outcome.is_weak(word)) for value in values]


def _rounded(trace: _Trace, value: ExactValue) -> ExactValue:
    """Take the step of rounding; return the nearest integer, or the value if the rule keeps it.

    An infinity or a NaN takes no step and stays.
    """
    if not isinstance(value, Fraction):
        return value
    outcome = trace.take("rounding", "whole" if value.denominator == 1 else "fraction")
    return Fraction(round(value)) if outcome.best == "nearest-even" else value


def _add_zero_point(trace: _Trace, zero: int | None) -> None:
    """Take the step of the zero point: add it to the finite value of every path; None adds 0."""
    target, fmt = trace.formula.target, trace.formula.precision
    offset = Fraction(0) if zero is None else _value(target, zero)
    sums = []
    for path in trace.paths:
        total: ExactValue = path.value
        if isinstance(total, Fraction) and isinstance(offset, Fraction):
            total += offset
        trace.take("zero-point", _kind_of_zero_point(fmt, zero, path.value, offset, total))
        sums.append(_Path(total, path.is_weak))
    trace.paths = sums


def _kind_of_zero_point(
    fmt: Format, zero: int | None, other: ExactValue, offset: ExactValue, result: ExactValue
) -> Situation:
    """Return the situation of a zero point: `none`, `zero`, `exact` or `other`.

    ``zero`` is its pattern, or None; ``offset`` its value, ``other`` the other operand of the step,
    and ``result`` their sum or difference. It is `exact` if ``offset`` is a number, and the format
    has all of these three that are numbers.
    """
    if zero is None:
        return "none"
    if offset == 0:
        return "zero"
    operands = (offset, other, result)
    numbers = [each for each in operands if isinstance(each, Fraction)]
    return "exact" if isinstance(offset, Fraction) and _all_in(fmt, numbers) else "other"


def _all_in(fmt: Format, values: Sequence[Fraction]) -> bool:
    return all(_has(fmt, value) for value in values)


def _saturated(trace: _Trace) -> Iterator[tuple[AllowedCode, bool]]:
    """Take the step of saturation; yield the target's patterns, each with whether it is weak."""
    target = trace.formula.target
    for path in trace.paths:
        value = path.value
        is_negative = value < 0 if isinstance(value, Fraction) else value in ("-inf", "-nan")
        situation: Situation
        if isinstance(value, Fraction):
            situation = "in-range" if _is_within(target, value) else "out-of-range"
        else:
            situation = _special(value)
        outcome = trace.take("saturation", situation)
        for word in outcome.words:
            is_weak = path.is_weak or outcome.is_weak(word)
            for code, is_weaker in _end(trace.formula, word, value, situation, is_negative):
                yield code, is_weak or is_weaker


def _end(
    formula: Formula, word: StepWord, value: ExactValue, situation: Situation, is_negative: bool
) -> Iterator[tuple[AllowedCode, bool]]:
    """Yield what a word of saturation allows, each with whether Cast recommends another pattern."""
    target = formula.target
    match word:
        case "saturated":
            yield target.lowest_code if is_negative else target.max_code, False
        case "max":
            yield target.max_code, False
        case "cast":
            cast = formula.cast_of(situation, is_negative=is_negative)
            for outcome in dict.fromkeys((cast.strictest, cast.outcome)):
                code = outcome.code if isinstance(outcome, Exactly) else outcome
                yield code, outcome != cast.strictest
        case _:
            assert isinstance(value, Fraction)
            yield _code(target, nearest(target, value), is_negative), False
            if value == 0 and target.entry.zero == "signed":
                yield target.sign_bit, False


def _code(fmt: Format, value: Fraction, is_negative: bool) -> int:
    """Return the pattern of a value's magnitude, which the format must have, with this sign."""
    exponent = _unit_exponent(fmt, value)
    multiple = abs(_scaled(value, -exponent))
    assert multiple.denominator == 1, f"{fmt.name} does not have {value}"
    return encode(fmt, int(is_negative), int(multiple), exponent)
