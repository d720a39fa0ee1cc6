"""Blocks with a shared scale as their pages state them, in integers and nothing else.

Pages: `ScaleCalculationMode` in torchao's `mx_formats/config.py` (``T``), `BlockScaling.md` of
cudnn-frontend (``N``), and the page of ONNX Cast (``C``); the numbers that follow are lines. A rule
that only code defines is marked so. The model imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lab.page_model.numbers import (
    LAYOUTS,
    Answer,
    Number,
    Patterns,
    below,
    decode,
    exponent_of,
    finite,
    nearest_code,
    power,
    product,
    quotient,
    whole_even,
    zeros,
)

LAST_EXPONENT = 127
"""The largest exponent of E8M0; the least is -127, and one more pattern is NaN (F8 201-224)."""
LARGEST_ELEMENTS: dict[str, tuple[int, int]] = {
    # numerator and denominator of the largest element, and of its power of two
    "float8e4m3fn": (448, 1),
    "float8e5m2": (57344, 1),
    "float6e2m3": (15, 2),
    "float6e3m2": (28, 1),
    "float4e2m1": (6, 1),
    "int8": (127, 64),
}
MANTISSAS = {
    "float8e4m3fn": 3,
    "float8e5m2": 2,
    "float6e2m3": 3,
    "float6e3m2": 2,
    "float4e2m1": 1,
    "int8": 6,
}


def largest_element(target: str) -> Number:
    top, bottom = LARGEST_ELEMENTS[target]
    return finite(top, bottom)


def greatest(source: str, codes: Iterable[int]) -> Number | None:
    """The greatest magnitude of a block; None if the block has a NaN or an infinity."""
    found = finite(0)
    for code in codes:
        number = decode(source, code)
        if number.kind != "finite":
            return None
        if number.numerator * found.denominator > found.numerator * number.denominator:
            found = number._replace(negative=False)
    return found


# Exponents of the scale: each rule takes the greatest magnitude and the target.


def floor_log(number: Number) -> int:
    return exponent_of(number.numerator, number.denominator)


def ceil_log(number: Number) -> int:
    found = floor_log(number)
    return found + (not _is_power(number, found))


def _is_power(number: Number, exponent: int) -> bool:
    exact = power(1, exponent, negative=False)
    return number.numerator * exact.denominator == exact.numerator * number.denominator


def largest_exponent(target: str) -> int:
    return floor_log(largest_element(target))


def by_floor(most: Number, target: str) -> int:
    """Return the scale's exponent by T46: ``floor(log2(max_abs(v)) - max_exp)``."""
    return floor_log(most) - largest_exponent(target)


def by_ceil(most: Number, target: str) -> int:
    """Return the scale's exponent by T53-54: ``ceil(log2(max_abs(v)) - max_exp)``."""
    return ceil_log(most) - largest_exponent(target)


def by_even(most: Number, target: str) -> int:
    """Return the scale's exponent by T56: ``floor(log2(rounding(max_abs(v))) - max_exp)``.

    The magnitude is rounded to the element's mantissa.
    """
    mantissa = MANTISSAS[target]
    exponent = floor_log(most)
    unit = power(1, exponent - mantissa, negative=False)
    units = whole_even(quotient(most, unit))
    return exponent + (units >> (mantissa + 1)) - largest_exponent(target)


def by_round_up(most: Number, target: str) -> int:
    """Return the scale's exponent by T49 and N18: ``max_abs(v) / max_pos``, rounded up."""
    return ceil_log(quotient(most, largest_element(target)))


def by_round_down(most: Number, target: str) -> int:
    """Return the scale's exponent by C30113: ``max_abs(v) / max_pos``, rounded down."""
    return floor_log(quotient(most, largest_element(target)))


def by_nearest(most: Number, target: str) -> int:
    """Return the scale's exponent by C30113: ``max_abs(v) / max_pos``, to nearest, ties up."""
    ratio = quotient(most, largest_element(target))
    found = floor_log(ratio)
    three_halves = power(3, found - 1, negative=False)
    is_upper = (
        ratio.numerator * three_halves.denominator >= three_halves.numerator * ratio.denominator
    )
    return found + is_upper


def by_nearest_log(most: Number, target: str) -> int:
    """Return the integer nearest to the logarithm of ``max_abs(v) / max_pos``, never a tie.

    Only code defines this rule for the scale's exponent.
    """
    ratio = quotient(most, largest_element(target))
    found = floor_log(ratio)
    square = product(ratio, ratio)
    root = power(1, 2 * found + 1, negative=False)
    return found + (square.numerator * root.denominator > root.numerator * square.denominator)


def by_seven_and_a_quarter(most: Number, target: str) -> int:
    """Return the scale's exponent as by round-up, with 7.25 in place of the largest element.

    Only code defines this rule.
    """
    return ceil_log(quotient(most, finite(29, 4)))


MX_RULES: dict[str, Callable[[Number, str], int]] = {
    "floor": by_floor,
    "ceil": by_ceil,
    "even": by_even,
    "round-up": by_round_up,
    "round-down": by_round_down,
    "nearest": by_nearest,
    "nearest-log": by_nearest_log,
    "round-up-7.25": by_seven_and_a_quarter,
}


def mx_scale(source: str, target: str, rule: str, codes: Iterable[int]) -> Answer:
    """Answer with the scale of an MX block in E8M0; silent if the block is zero or not finite."""
    most = greatest(source, codes)
    if most is None:
        return Answer(why="not finite: silent")
    if not most.numerator:
        return Answer(why="all zero: silent")
    exponent = MX_RULES[rule](most, target)
    if exponent > LAST_EXPONENT:
        return Answer(
            frozenset({2 * LAST_EXPONENT}),
            frozenset({2 * LAST_EXPONENT}),
            "scale above the largest: silent",
            True,
        )
    if exponent < -LAST_EXPONENT:
        return Answer(frozenset({0}), frozenset({0}), "scale below the smallest: silent", True)
    found = frozenset({exponent + LAST_EXPONENT})
    return Answer(found, found, f"scale, {rule}", rule not in DESCRIBED)


DESCRIBED = ("floor", "ceil", "round-up")
"""Rules that a page states in full: `even` does not say to how many bits it rounds."""


# NVFP4


def nvfp4_scale(
    source: str, rule: str, codes: Iterable[int], overall: Number | None = None
) -> Answer:
    """Answer with the scale of an NVFP4 block, a code of E4M3, divided by a global scale if given.

    N18 has the rule round-up: ``quantize_round_up(amax(vals) / vmax_otype)``.
    """
    most = greatest(source, codes)
    if most is None:
        return Answer(why="not finite: silent")
    if not most.numerator:
        return Answer(why="all zero: silent")
    ratio = quotient(most, largest_element("float4e2m1"))
    if overall is not None:
        if overall.kind != "finite" or overall.negative or not overall.numerator:
            return Answer(why="global scale is not positive: silent")
        ratio = quotient(ratio, overall)
    layout = LAYOUTS["float8e4m3fn"]
    code, rest = below(layout, ratio)
    if rule == "round-up":
        code += bool(rest)
    elif rule == "nearest-even":
        code = nearest_code(layout, ratio)
    else:
        code += rest >= 2
    if code > layout.largest:
        return Answer(
            frozenset({layout.largest}),
            frozenset({layout.largest}),
            "scale above the largest: silent",
            True,
        )
    if not code:
        return Answer(
            frozenset({0, 1}), frozenset({0, 1}), "scale below the smallest: silent", True
        )
    is_implied = rule not in DESCRIBED or overall is not None
    return Answer(frozenset({code}), frozenset({code}), f"scale, {rule}", is_implied)


# Elements


def element(source: str, target: str, code: int, scale: Number) -> Answer:
    """Answer with an element of a block by N19: ``quantize_round_to_even(vals / scale)``.

    The largest element for a quotient beyond the end is a guess.
    """
    number = decode(source, code)
    if number.kind != "finite" or scale.kind != "finite" or not scale.numerator:
        return Answer(why="not finite: silent")
    exact = quotient(number, scale)
    if target == "int8":
        return _integer_element(exact)
    layout = LAYOUTS[target]
    magnitude = nearest_code(layout, exact)
    sign = layout.sign if number.negative else 0
    if magnitude > layout.largest:
        return Answer(
            frozenset({layout.largest | sign}),
            frozenset({layout.largest | sign}),
            "element above the largest: silent",
            True,
        )
    found = frozenset({magnitude | sign})
    if not magnitude:
        return Answer(zeros(target, negative=number.negative), found, "zero element")
    return Answer(found, found, "element")


def _integer_element(exact: Number) -> Answer:
    """Answer with an element of MXINT8: the exact quotient in 64ths, rounded to even."""
    whole = whole_even(product(exact, finite(64)))
    if -127 <= whole <= 127:
        found: Patterns = frozenset({whole & 0xFF})
        return Answer(found, found, "element")
    if whole > 127:
        return Answer(frozenset({127}), frozenset({127}), "element above the largest: silent", True)
    lowest = frozenset({0x80, 0x81})
    return Answer(lowest, lowest, "element at or below the lowest: silent", True)


def decoded(target: str, source: str, code: int, scale: Number) -> Answer:
    """Answer with the number that an element of a block decodes to by N53: ``vals * scale``."""
    number = decode(source, code)
    if source == "int8":
        number = in_64ths(number)
    exact = product(number, scale)
    layout = LAYOUTS[target]
    if exact.kind == "nan":
        return Answer(frozenset({-1}), frozenset({-1}), "NaN: by the formula", True)
    if exact.kind == "inf":
        infinite = (layout.infinity or 0) | (layout.sign if exact.negative else 0)
        return Answer(
            frozenset({infinite}), frozenset({infinite}), "infinity: by the formula", True
        )
    sign = layout.sign if exact.negative else 0
    magnitude = nearest_code(layout, exact)
    lower, rest = below(layout, exact)
    if magnitude > layout.largest:
        infinite = (layout.infinity or 0) | sign
        return Answer(
            frozenset({infinite}), frozenset({infinite}), "product above the largest: silent", True
        )
    near = frozenset({magnitude | sign})
    own = frozenset({lower | sign, (lower + bool(rest)) | sign})
    if not lower:
        own |= zeros(target, negative=exact.negative)
    why = "zero product" if exact.is_zero else "inexact product" if rest else "product"
    return Answer(own, near, why, bool(rest))


def in_64ths(number: Number) -> Number:
    """Divide an integer by 64, as elements of MXINT8 count 64ths."""
    return number._replace(denominator=64)


def implied(answer: Answer) -> Answer:
    """Mark an answer as implied, because the page that states it is about other blocks."""
    return answer._replace(is_implied=True)
