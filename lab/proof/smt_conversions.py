"""SMT-LIB's own conversions between floats, and the answers of behaviors that are made of them."""

from __future__ import annotations

from typing import Any

from lab.proof.bit_vectors import Solving, Truth, Vector
from specs.behaviors import Behavior, Via
from specs.formats import Format, format_named

Shape = tuple[int, int]
"""The numbers of exponent bits and of significant bits, the hidden one included."""


def shape_of(fmt: Format) -> Shape:
    """The shape of a float format, as SMT-LIB counts it."""
    return fmt.entry.exponent, fmt.precision


def float_of(fmt: Format, pattern: Vector) -> Any:
    """The float that a pattern of a format of IEEE 754's kind stands for."""
    return pattern.solving.make("FP_TO_FP_FROM_BV", pattern.term, indices=shape_of(fmt))


def converted(solving: Solving, mode: Any, value: Any, source: Shape, target: Shape) -> Any:
    """Convert a float from one shape to another, rounded by ``mode``.

    Bitwuzla errs where one conversion widens the exponent and narrows the significand or the other
    way round, even on float8e4m3's 1 to float8e5m2. It is right if two conversions do so.
    """
    exponents, precisions = source[0] - target[0], source[1] - target[1]
    if exponents * precisions < 0:
        wide = (max(source[0], target[0]), max(source[1], target[1]))
        value = solving.make("FP_TO_FP_FROM_FP", mode, value, indices=wide)
    return solving.make("FP_TO_FP_FROM_FP", mode, value, indices=target)


def is_answer(
    behavior: Behavior, source: Format, target: Format, pattern: Vector, code: Vector
) -> Truth:
    """State that ``code`` is the answer of a behavior that goes through another float and back."""
    way, *rest = behavior.steps
    assert isinstance(way, Via), behavior.name
    assert rest == ["round-half-even", "to-infinity"], behavior.name
    solving, middle = pattern.solving, format_named(way.via)
    mode = solving.manager.mk_rm_value(solving.api.RoundingMode.RNE)
    value = float_of(source, pattern)
    there = converted(solving, mode, value, shape_of(source), shape_of(middle))
    back = converted(solving, mode, there, shape_of(middle), shape_of(target))
    answer = float_of(target, code.low(target.bits))
    fits = code <= target.mask
    is_back = fits & Truth(solving, solving.make("EQUAL", answer, back))
    if way.subnormals == "kept":
        return is_back
    sign = (pattern >> (source.bits - 1)) == 1
    zero = sign.select(*(solving.vector(each, code.width) for each in (target.sign_bit, 0)))
    return _is_tiny(solving, mode, value, source, middle).choose(code == zero, is_back)


def _is_tiny(solving: Solving, mode: Any, value: Any, source: Format, middle: Format) -> Truth:
    """State that a value, rounded with unlimited exponents, is below a float's smallest normal."""
    exponent = max(source.entry.exponent, middle.entry.exponent) + 1
    shape = (exponent, middle.precision)
    rounded = converted(solving, mode, value, shape_of(source), shape)
    bias = (1 << (exponent - 1)) - 1
    smallest_normal = (middle.lowest_exponent + bias) << (middle.precision - 1)
    pattern = solving.vector(smallest_normal, exponent + middle.precision)
    bound = solving.make("FP_TO_FP_FROM_BV", pattern.term, indices=shape)
    return Truth(solving, solving.make("FP_LT", solving.make("FP_ABS", rounded), bound))
