"""The proof of quantization kernels: every step but the division and the product themselves.

The kernels round a quotient or product to odd, to a float64, and go on with that. Three statements
are proved, each for every float64 that is zero or whose magnitude is from 2^-500 to 2^500, a range
that contains all quotients and products of floats of 32 bits:

- *the steps after the quotient*: the code is the quotient rounded to an integer, plus the zero
  point, clamped to the target, for every zero point; for a float target it is the nearest pattern,
  or what the document says beyond its range
- *rounded once*: the pattern that a value gets in the format of the precision is the nearest
- *odd, then nearest*: for every real number, to round it to odd and then to nearest is to round it
  to nearest once. This is a statement of arithmetic, without kernels.

That the quotient is rounded to odd is proved by exhaustion (``quantization_pairs``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from conformance.families.quantization import kernels as quantization_kernels
from conformance.families.quantization.kernels import NO_CODE, code_of_outcome
from conformance.families.quantization.ruling import Formula, StepOutcome, formula
from lab.proof.bit_vectors import Solving, Truth, Vector
from lab.proof.obligations import Obligation, verdict_of
from lab.proof.smt_arrays import Tracing
from lab.proof.smt_rounding import Zones, is_rounding, rounded_integer
from lab.proof.smt_values import POWER_BITS, POWER_OFFSET, DecodedPattern, Magnitude
from specs.editions import editions
from specs.formats import Format, format_named
from specs.loader import documents
from specs.model.step_entry import Situation

DOUBLE, SINGLE = format_named("float64"), format_named("float32")
FARTHEST = 500
"""Statements are about zero, and about magnitudes from 2^-500 to 2^500."""
REAL_BITS = 64
"""The significant bits of a real number, of which the last stands for all that follow."""
AFTER = ("rounding", "zero-point", "saturation")
"""The steps after the quotient."""
OPERATIONS = ("quantize", "dynamic-quantize")
USED = StepOutcome(("value",), (), "required", "", "")


class Ending(NamedTuple):
    """A formula whose quotient is used as it is, and the first case that ends in its steps."""

    name: str
    formula: Formula
    others: int

    @property
    def rulings(self) -> str:
        """The id of the first case, and how many others have the same steps."""
        return f"{self.name} and {self.others} more" if self.others else self.name


@cache
def endings() -> tuple[Ending, ...]:
    """The distinct steps after the quotient, of all cases of all documents."""
    found: dict[Any, list[tuple[str, Formula]]] = {}
    for document in documents().values():
        if document.entry.operation in OPERATIONS:
            for edition in editions(document):
                for case in edition.cases():
                    rules = formula(case)
                    ending = tuple(each for each in rules.steps if each[0] in AFTER)
                    key = rules.target, ending, rules.casts
                    found.setdefault(key, []).append((case.id, rules))
    return tuple(
        Ending(name, _without_division(rules), len(others))
        for (name, rules), *others in found.values()
    )


def _without_division(rules: Formula) -> Formula:
    """A formula of float32 that passes its quotient on, in whichever situation it is.

    Where a zero point is added only if floats hold it and the sum, it is always added: whether they
    do is compared with the definition, not proved.
    """
    situations: tuple[Situation, ...] = ("exact", "inexact", "out-of-range", "infinite", "nan")
    quotient = tuple((each, USED) for each in situations)
    ending = {step: dict(each) for step, each in rules.steps if step in AFTER}
    zero_point = ending["zero-point"]
    if not zero_point["exact"].is_open:
        zero_point["other"] = zero_point["exact"]
    steps = (
        ("quotient", quotient),
        *((step, tuple(each.items())) for step, each in ending.items()),
    )
    return replace(rules, source=SINGLE, scale=SINGLE, precision=SINGLE, steps=steps)


@dataclass(frozen=True)
class Real(DecodedPattern):
    """A real number: a significand of 64 bits, the first of which is set, and any power of two."""

    power: Vector

    @cached_property
    def negative(self) -> Truth:
        return self.solving.truth(False)

    @cached_property
    def magnitude(self) -> Magnitude:
        return Magnitude(self.pattern, self.power, REAL_BITS)

    @cached_property
    def is_ordinary(self) -> Truth:
        """Whether it lies in the range of the statements, or slightly beyond."""
        low, high = (POWER_OFFSET + sign * FARTHEST for sign in (-1, 1))
        first = self.pattern.bits(REAL_BITS - 1, REAL_BITS - 1) == 1
        return first & (self.power >= low) & (self.power <= high)


def prove_ending(index: int, time_limit: float) -> Obligation:
    """Prove the steps after the quotient, with and without a zero point."""
    start = time.perf_counter()
    ending = endings()[index]
    rules, target = ending.formula, ending.formula.target
    found, verdict = "", verdict_of("none")
    for has_zero in (False, True):
        solving = Solving()
        trace = Tracing(solving)
        module: Any = trace.execute(quantization_kernels)
        bits, zero = solving.unknown("quotient", DOUBLE.bits), solving.unknown("zero", target.bits)
        quotient, has_double = trace.of_bits(bits), trace.unknown("truth")
        module._odd_quotient = lambda *_, q=quotient, d=has_double: (q, d)
        x, scale = (solving.unknown(name, SINGLE.bits) for name in ("x", "divisor"))
        given = DecodedPattern(SINGLE, x)
        offset = trace.pattern(zero) if has_zero else None
        allowed = module._quantized(rules, trace.pattern(x), trace.pattern(scale), offset)
        statement = _ends_right(rules, DecodedPattern(DOUBLE, bits), allowed, zero, has_zero)
        domain = _is_of_domain(DecodedPattern(DOUBLE, bits)) & ~(given.nan | given.infinite)
        wrong = solving.all_of(trace.facts) & domain & ~statement
        left = time_limit - (time.perf_counter() - start)
        answer = solving.find(wrong, bits, max(left, 0.001))
        verdict = verdict_of(answer)
        if isinstance(answer, int):
            by = solving.find(wrong & (bits == answer), zero, time_limit)
            found = f"the quotient {answer:#018x}" + (f", zero point {by}" if has_zero else "")
        if verdict != "proved":
            break
    return _obligation(
        start,
        source="quotients",
        target=target.name,
        mode="steps after the quotient",
        rulings=ending.rulings,
        inputs=f"2^-{FARTHEST} to 2^{FARTHEST}, every zero point",
        verdict=verdict,
        found=found,
    )


def _obligation(start: float, **fields: Any) -> Obligation:
    seconds = time.perf_counter() - start
    return Obligation(half="quantization", statement="exact integers", seconds=seconds, **fields)


def _is_of_domain(value: DecodedPattern) -> Truth:
    """State that a float64 is zero, or lies in the range of the statements."""
    bias = DOUBLE.entry.bias
    return value.zero | ((value.field >= bias - FARTHEST) & (value.field < bias + FARTHEST))


def _ends_right(
    rules: Formula, value: DecodedPattern, allowed: Any, zero: Vector, has_zero: bool
) -> Truth:
    """State that the kernels allow what the steps after the quotient allow."""
    solving, target = value.solving, rules.target
    first, *others = allowed.strong
    is_zero = DecodedPattern(target, zero).zero if has_zero else solving.truth(True)
    is_open = solving.truth(False)
    if rules.outcome("zero-point", "other").is_open:
        is_open = ~is_zero
    if target.is_integral:
        offset = zero if has_zero else solving.vector(0, target.bits)
        right = first.vector == _limited_sum(target, value, offset)
    else:
        right = _is_nearest(rules, value, first.vector)
    has_both_zeros = target.entry.zero == "signed" and not target.is_integral
    for more in others:
        alone = more.vector == _code(solving, NO_CODE)
        both = more.vector == _code(solving, target.sign_bit)
        right = right & (value.zero.choose(both, alone) if has_both_zeros else alone)
    return (~is_open).choose(~allowed.is_open.truth & right, allowed.is_open.truth)


def _limited_sum(target: Format, value: DecodedPattern, offset: Vector) -> Vector:
    """A value rounded to an integer, plus a zero point, clamped to the target's range."""
    solving = value.solving
    magnitude = rounded_integer(value, target, "nearest-even")
    width = magnitude.width + 2
    middle = solving.vector(1 << (width - 1), width)
    wide = offset.wide_signed(width) if target.is_signed else offset.wide(width)
    start = middle + wide
    total = value.negative.select(start - magnitude.wide(width), start + magnitude.wide(width))
    sign = target.sign_bit if target.is_signed else 0
    low, high = middle - sign, middle + target.max_code
    limited = (total < low).select(low, (total > high).select(high, total))
    return limited.low(target.bits)


def _is_nearest(rules: Formula, value: DecodedPattern, code: Vector) -> Truth:
    """State that a code is the nearest pattern of a float, or the one for values out of range."""
    target, solving = rules.target, value.solving
    pattern = code.low(target.bits)
    fits = code == pattern
    rounded = fits & is_rounding(value, DecodedPattern(target, pattern), "nearest-even")
    beyond = value.negative.choose(
        code == _code(solving, _end(rules, True)), code == _code(solving, _end(rules, False))
    )
    is_beyond = Zones(value, target, "nearest-even").overflow
    return value.zero.choose(code == 0, is_beyond.choose(beyond, rounded))


def _code(solving: Solving, code: int) -> Vector:
    return solving.vector(code, 64)


def _end(rules: Formula, is_negative: bool) -> int:
    """The pattern for values beyond an end of the target's range."""
    if rules.outcome("saturation", "out-of-range").best == "saturated":
        return rules.target.lowest_code if is_negative else rules.target.max_code
    return code_of_outcome(rules.cast_of("out-of-range", is_negative=is_negative).strictest)


def prove_rounded_once(name: str, time_limit: float) -> Obligation:
    """Prove that a value gets the nearest pattern of a format, unless it is beyond the end."""
    start = time.perf_counter()
    fmt, solving = format_named(name), Solving()
    trace = Tracing(solving)
    module: Any = trace.execute(quantization_kernels)
    bits = solving.unknown("value", DOUBLE.bits)
    number, value = trace.of_bits(bits), DecodedPattern(DOUBLE, bits)
    rounded = module.nearest(fmt, number)
    code = module.codes_of(fmt, rounded, number < 0).vector
    is_within = module._is_within(fmt, number).truth
    overflow = Zones(value, fmt, "nearest-even").overflow
    nearest = is_rounding(value, DecodedPattern(fmt, code.low(fmt.bits)), "nearest-even")
    right = value.zero.choose(
        is_within & (code == 0), overflow.choose(~is_within, is_within & nearest)
    )
    wrong = solving.all_of(trace.facts) & _is_of_domain(value) & ~right
    answer = solving.find(wrong, bits, time_limit)
    return _obligation(
        start,
        source="quotients and products",
        target=name,
        mode="rounded once",
        rulings="every case of this precision",
        inputs=f"2^-{FARTHEST} to 2^{FARTHEST}",
        verdict=verdict_of(answer),
        found=f"{answer:#018x}" if isinstance(answer, int) else "",
    )


def prove_odd_then_nearest(name: str, time_limit: float) -> Obligation:
    """Prove that a real number may be rounded to odd in float64 before it is rounded to nearest."""
    start = time.perf_counter()
    fmt, solving = format_named(name), Solving()
    significand = solving.unknown("significand", REAL_BITS)
    bits = solving.unknown("odd", DOUBLE.bits)
    real = Real(DOUBLE, significand, solving.unknown("power", POWER_BITS))
    odd = DecodedPattern(DOUBLE, bits)
    given = real.is_ordinary & is_rounding(real, odd, "odd")
    if fmt.is_integral:
        one, other = (_limited_sum(fmt, each, solving.vector(0, 1)) for each in (real, odd))
        wrong = given & (one != other)
    else:
        code = DecodedPattern(fmt, solving.unknown("code", fmt.bits))
        once, twice = (is_rounding(each, code, "nearest-even") for each in (real, odd))
        overflows = (Zones(each, fmt, "nearest-even").overflow for each in (real, odd))
        is_beyond, becomes_beyond = overflows
        wrong = given & ((is_beyond ^ becomes_beyond) | (~is_beyond & (once ^ twice)))
    answer = solving.find(wrong, bits, time_limit)
    return _obligation(
        start,
        source="real numbers",
        target=name,
        mode="odd, then nearest",
        rulings="arithmetic",
        inputs=f"2^-{FARTHEST} to 2^{FARTHEST}",
        verdict=verdict_of(answer),
        found=f"{answer:#018x}" if isinstance(answer, int) else "",
    )
