"""The proof of block kernels: scales and codes lie between bounds that are exact.

A rule for scales that are powers of two is stated by the magnitude from which the scale is one;
scales with a mantissa, and codes, by the bounds between neighbors. Bounds are fractions, taken from
the definitions in ``exact_blocks``, and compared with the largest magnitude of the block, or with
the element, as integers times powers of two. Each statement names one answer for each input, so
that it allows no other. Elements may have any pattern of a finite number, and scales any that is a
positive number; scales with a mantissa are not divided by a global scale.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from types import ModuleType
from typing import Any, NamedTuple

from conformance.families.blocks import kernels as block_kernels
from conformance.families.blocks.exact import Element, element_of, value_of
from conformance.families.blocks.kernels import NUMBER, POWER_LIMIT
from conformance.families.blocks.ruling import BlockRuling, block_ruling
from lab.proof.bit_vectors import Solving, Truth, Vector
from lab.proof.obligations import Obligation, verdict_of
from lab.proof.smt_arrays import Array, Table, Tracing
from lab.proof.smt_values import (
    POWER_BITS,
    POWER_OFFSET,
    DecodedPattern,
    Magnitude,
    compare,
    constant,
)
from specs.formats import format_named
from specs.model.block_entry import BlockQuestion, BlockWord
from specs.selection import case_named

DOUBLE = format_named("float64")
ROOT_BITS = 60
"""The bits after the point of the square root in the rule ``nearest-log``.

A float32 times a power of two that lies near the root has 24 of them at most.
"""
SCALE_BITS = 12
"""The bits in which the answered scale is read, which are more than a scale has."""


class Bound(NamedTuple):
    """A bound, and whether a value equal to it counts as above it."""

    value: Fraction
    is_above: bool


def threshold(element: Element, word: BlockWord) -> Bound:
    """The magnitude from which a rule gives the scale one, by the definition of each rule."""
    largest, leading = element.largest, Fraction(2) ** element.emax
    root = Fraction(isqrt(int(largest**2 * 2 ** (2 * ROOT_BITS - 1))), 2**ROOT_BITS)
    # The largest value with the element's significant bits below a power of two, plus half a unit.
    before = leading * (1 - Fraction(1, 2 ** (element.significant + 1)))
    bounds: dict[str, Bound] = {
        "floor": Bound(leading, True),
        "ceil": Bound(leading / 2, False),
        "round-up": Bound(largest / 2, False),
        "round-down": Bound(largest, True),
        "even": Bound(before, True),
        "nearest": Bound((largest + largest / 2) / 2, True),
        "nearest-log": Bound(root, False),
        "round-up-7.25": Bound(Fraction(29, 8), False),
    }
    return bounds[word]


def between(values: tuple[Fraction, ...], word: BlockWord) -> Iterator[Bound]:
    """The bound between each value and the next one, by how a magnitude is rounded to them."""
    for place, (low, high) in enumerate(pairwise(values)):
        if word == "round-up":
            yield Bound(low, False)
        else:
            yield Bound((low + high) / 2, word == "nearest-away" or place % 2 == 1)


def reaches(given: Magnitude, bound: Bound, unit: Magnitude | None = None) -> Truth:
    """State that a magnitude that is not zero lies above a bound, or above it times ``unit``."""
    solving = given.significand.solving
    power = 1 - bound.value.denominator.bit_length()
    point = constant(solving, int(bound.value * Fraction(2) ** -power), power)
    if unit is not None:
        width = point.size + unit.size
        factors = point.significand.wide(width), unit.significand.wide(width)
        product = Vector(solving, solving.make("BV_MUL", *(one.term for one in factors)), width)
        point = Magnitude(product, point.power + (unit.power - POWER_OFFSET), width)
    found = compare(given, point)
    return found.at_least if bound.is_above else found.more


class Kernels(NamedTuple):
    """The module of the kernels, executed on terms, and the trace of these."""

    trace: Tracing
    module: ModuleType


def kernels_on(solving: Solving) -> Kernels:
    """Execute the kernels on terms of the solver; their tables are constants."""
    trace = Tracing(solving)
    module: Any = trace.execute(block_kernels)
    values_of = module.values_of
    module.values_of = lambda fmt: values_of(fmt).view(Table)
    return Kernels(trace, module)


def prove_decoded(name: str, time_limit: float) -> Obligation:
    """Prove that a pattern of numbers becomes the float64 of the same value."""
    start = time.perf_counter()
    fmt, solving = format_named(name), Solving()
    trace, module = kernels_on(solving)
    pattern = solving.unknown("pattern", fmt.bits)
    value = DecodedPattern(fmt, pattern)
    found = DecodedPattern(DOUBLE, module.decoded(fmt, trace.pattern(pattern)).bits)
    is_same = value.zero.choose(found.zero, compare(value.magnitude, found.magnitude).equal)
    finite = is_same & ~(value.negative ^ found.negative)
    infinite = found.infinite & ~(value.negative ^ found.negative)
    right = value.nan.choose(found.nan, value.infinite.choose(infinite, ~found.infinite & finite))
    answer = solving.find(solving.all_of(trace.facts) & ~right, pattern, time_limit)
    return Obligation(
        half="quantization",
        source=f"numbers of blocks of {name}",
        target=DOUBLE.name,
        mode="decoded exactly",
        rulings="every case of blocks",
        statement="exact integers",
        verdict=verdict_of(answer),
        inputs=f"2^{fmt.bits}",
        seconds=time.perf_counter() - start,
        found=fmt.hexadecimal(answer) if isinstance(answer, int) else "",
    )


def prove_scale(name: str, time_limit: float) -> Obligation:
    """Prove the scale of each largest magnitude of a block, by a case's rule."""
    start = time.perf_counter()
    ruling = block_ruling(case_named(name))
    solving = Solving()
    trace, module = kernels_on(solving)
    pattern = solving.unknown("largest", ruling.number.bits)
    value = DecodedPattern(ruling.number, pattern)
    largest = module.np.abs(module.decoded(ruling.number, trace.pattern(pattern)))
    word = ruling.word("scale")
    has_mantissa = ruling.scale.entry.mantissa > 0
    if has_mantissa:
        code, asked = module._with_mantissa(ruling, largest, word, 1.0)
        statement = _is_scale_with_mantissa(ruling, value, code.vector, asked)
    else:
        code, asked = module._powers(ruling, largest, word)
        statement = _is_power(ruling, value, code.vector, asked)
    wrong = solving.all_of(trace.facts) & _is_ordinary(value) & ~statement
    answer = solving.find(wrong, pattern, time_limit)
    return Obligation(
        half="quantization",
        source=f"largest magnitudes of blocks of {ruling.number.name}",
        target=f"{ruling.scale.name} for {ruling.element.name}",
        mode=word,
        rulings=name,
        statement="exact bounds",
        verdict=verdict_of(answer),
        inputs=f"2^{ruling.number.bits}",
        seconds=time.perf_counter() - start,
        found=ruling.number.hexadecimal(answer) if isinstance(answer, int) else "",
    )


def _is_ordinary(value: DecodedPattern) -> Truth:
    return ~(value.nan | value.infinite | value.zero)


def _is_asked(asked: Array, question: BlockQuestion) -> Truth:
    return asked.vector == NUMBER[question]


def _is_power(ruling: BlockRuling, value: DecodedPattern, code: Vector, asked: Array) -> Truth:
    """State that a scale is ``2**k`` for magnitudes from ``2**k`` times the threshold on."""
    bound = threshold(element_of(ruling.element), ruling.word("scale"))
    exact, bias = value.magnitude, ruling.scale.entry.bias
    power = code.low(SCALE_BITS).wide(POWER_BITS) + (POWER_OFFSET - bias)
    solving = code.solving
    here, above = (
        reaches(exact, bound, Magnitude(solving.vector(1, 1), power + step, 1)) for step in (0, 1)
    )
    beyond = reaches(exact, bound, constant(solving, 1, POWER_LIMIT + 1))
    below = ~reaches(exact, bound, constant(solving, 1, -POWER_LIMIT))
    lowest, highest = bias - POWER_LIMIT, bias + POWER_LIMIT
    within = (code >= lowest) & (code <= highest) & here & ~above
    return below.choose(
        _is_asked(asked, "scale-below-smallest") & (code == lowest),
        beyond.choose(
            _is_asked(asked, "scale-above-largest") & (code == highest),
            _is_asked(asked, "scale") & within,
        ),
    )


def _is_scale_with_mantissa(
    ruling: BlockRuling, value: DecodedPattern, code: Vector, asked: Array
) -> Truth:
    """State that a scale is the magnitude by the largest element, rounded, but not zero."""
    solving, last = code.solving, ruling.scale.max_code
    largest_code = element_of(ruling.element).largest
    values = tuple(value_of(ruling.scale, each) for each in range(last + 1))
    bounds = [
        Bound(bound.value * largest_code, bound.is_above)
        for bound in between(values, ruling.word("scale"))
    ]
    exact = value.magnitude
    # No magnitude is zero, and so each lies above a bound that is zero.
    is_past = [reaches(exact, bound) if bound.value else solving.truth(True) for bound in bounds]
    below, beyond = ~is_past[0], reaches(exact, Bound(values[-1] * largest_code, False))
    rounded = solving.all_of(
        [~((code > place) ^ past) for place, past in enumerate(is_past) if place]
    )
    question = below.choose(
        _is_asked(asked, "scale-below-smallest"),
        beyond.choose(_is_asked(asked, "scale-above-largest"), _is_asked(asked, "scale")),
    )
    return rounded & (code >= 1) & (code <= last) & question


def prove_codes(name: str, time_limit: float) -> Obligation:
    """Prove the code of each element by each scale, which any rule may have given."""
    start = time.perf_counter()
    ruling = block_ruling(case_named(name))
    solving = Solving()
    trace, module = kernels_on(solving)
    pattern = solving.unknown("element", ruling.number.bits)
    scale_pattern = solving.unknown("scale", ruling.scale.bits)
    value, scale = (
        DecodedPattern(fmt, each)
        for fmt, each in ((ruling.number, pattern), (ruling.scale, scale_pattern))
    )
    numbers = module.decoded(ruling.number, trace.pattern(pattern))
    factors = module.decoded(ruling.scale, trace.pattern(scale_pattern))
    found, asked = module._codes_of(ruling, numbers / factors, module.np.signbit(numbers))
    statement = _is_code(ruling, value, scale, found.vector, asked)
    given = ~(value.nan | value.infinite) & ~(scale.nan | scale.zero | scale.negative)
    wrong = solving.all_of(trace.facts) & given & ~statement
    answer = solving.find(wrong, pattern, time_limit)
    shown = ""
    if isinstance(answer, int):
        by = solving.find(wrong & (pattern == answer), scale_pattern, time_limit)
        shown = f"{ruling.number.hexadecimal(answer)} by the scale {by:#x}"
    return Obligation(
        half="quantization",
        source=f"elements of {ruling.number.name}",
        target=ruling.element.name,
        mode=f"by {ruling.scale.name}",
        rulings=name,
        statement="exact bounds",
        verdict=verdict_of(answer),
        inputs=f"2^{ruling.number.bits + ruling.scale.bits} pairs",
        seconds=time.perf_counter() - start,
        found=shown,
    )


def _is_code(
    ruling: BlockRuling, value: DecodedPattern, scale: DecodedPattern, code: Vector, asked: Array
) -> Truth:
    """State that a code is the nearest to an element divided by a scale, clamped to the largest."""
    solving, fmt = code.solving, ruling.element
    values = element_of(fmt).values
    following = 2 * values[-1] - values[-2]
    is_past = [
        ~value.zero & reaches(value.magnitude, bound, scale.magnitude)
        for bound in between((*values, following), "nearest-even")
    ]
    low = code.low(fmt.bits)
    beyond = is_past.pop()
    zero = solving.vector(0, fmt.bits)
    if fmt.is_integral:
        place = value.negative.select(zero - low, low)
        question = beyond.choose(
            value.negative.choose(
                _is_asked(asked, "element-lowest"), _is_asked(asked, "element-above-largest")
            ),
            _is_asked(asked, "element"),
        )
        fits = place <= fmt.max_code
    else:
        place = low & (fmt.mask ^ fmt.sign_bit)
        fits = (place <= fmt.max_code) & ~((low == place) ^ ~value.negative)
        question = (value.negative & (place == 0)).choose(
            _is_asked(asked, "element-negative-zero"),
            beyond.choose(_is_asked(asked, "element-above-largest"), _is_asked(asked, "element")),
        )
    rounded = solving.all_of([~((place > at) ^ past) for at, past in enumerate(is_past)])
    return (code == low) & rounded & fits & question
