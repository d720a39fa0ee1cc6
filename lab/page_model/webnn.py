"""Quantization and casts as WebNN's page states them, in integers and nothing else.

Page: `index.bs` (``W``); the numbers that follow are lines.
"""

from __future__ import annotations

from lab.page_model.numbers import (
    LAYOUTS,
    NOTHING,
    Answer,
    Number,
    Patterns,
    around,
    below,
    cast_wide,
    decode,
    ends,
    finite,
    integer_pattern,
    is_integer,
    minus,
    nan_patterns,
    nearest_code,
    product,
    quotient,
    rounded,
    signed,
    total,
    whole_even,
    zeros,
)
from lab.page_model.onnx import scaled_answer


def quantize(source: str, target: str, x_code: int, scale_code: int, zero_code: int) -> Answer:
    """Answer with an element of quantizeLinear().

    W4557, W4660-4674: ``clamp(roundEven(input / scale) + zeroPoint, 0, 255)`` "for uint8".
    """
    x, scale = decode(source, x_code), decode(source, scale_code)
    zero = decode(target, zero_code)
    if scale.kind != "finite" or scale.negative or not scale.numerator:
        return Answer(why="scale is not positive: silent")  # W4575
    if x.kind == "nan":
        return Answer(why="NaN: silent")
    exact = quotient(x, scale)
    low, high = ends(target)
    found = [exact, *around(source, exact)]
    values = {_formula(each, zero, low, high) for each in found}
    own = frozenset(integer_pattern(target, each) for each in values)
    near = rounded(source, exact)
    better = frozenset({integer_pattern(target, _formula(near, zero, low, high))})
    emulated = _emulated(source, target, near, zero)
    if x.kind == "inf":
        return Answer(better | emulated, better, "infinity: the end, by the formula", True)
    if target == "uint8":
        is_infinite = near.kind == "inf"
        return Answer(own | emulated, better, "uint8", is_infinite)
    if better == emulated:
        return Answer(own, better, "formula by analogy and emulation agree", True)
    return Answer(own | emulated, better, "formula by analogy and emulation differ", True)


def _formula(number: Number, zero: Number, low: int, high: int) -> int:
    if number.kind == "inf":
        return low if number.negative else high
    return min(max(whole_even(number) + signed(zero), low), high)


def _emulated(source: str, target: str, near: Number, zero: Number) -> Patterns:
    """Return the pattern that the note's code gives, if a cast of it to the target is defined.

    The code adds a float zero point, and clamps to 0 to 255 for every target.
    """
    if near.kind == "finite":
        near = finite(whole_even(near), zero_negative=near.negative)
    found = total(rounded(source, near), rounded(source, zero))
    found = rounded(source, found)
    if found.kind == "nan":
        return NOTHING
    if found.kind == "inf":
        whole = 0 if found.negative else 255
    else:
        whole = min(max(whole_even(found), 0), 255)
    if whole > ends(target)[1]:
        return NOTHING  # a cast out of range is implementation-defined: W2627
    return frozenset({integer_pattern(target, whole)})


def dequantize(source: str, target: str, x_code: int, scale_code: int, zero_code: int) -> Answer:
    """Answer with an element of dequantizeLinear(): ``(input - zeroPoint) * scale``.

    W4365, W4486-4494.
    """
    x, zero = decode(source, x_code), decode(source, zero_code)
    scale = decode(target, scale_code)
    if scale.kind != "finite" or scale.negative or not scale.numerator:
        return Answer(why="scale is not positive: silent")  # W4390
    exact = total(x, minus(zero))
    formula = scaled_answer(target, [(exact, scale)])
    casts = total(rounded(target, x), minus(rounded(target, zero)))
    emulated = cast_wide(target, product(rounded(target, casts), scale))
    nearest = cast_wide(target, product(exact, scale))
    if formula.admitted is None or exact.is_zero:
        return formula
    if emulated == nearest:
        return Answer(formula.admitted, formula.preferred, "formula and emulation agree")
    better = frozenset({nearest, emulated})
    return Answer(formula.admitted | {emulated}, better, "formula and emulation differ")


def cast(source: str, target: str, code: int) -> Answer:
    """Answer with an element of cast(), by its table: W2618-2647."""
    number = decode(source, code)
    if is_integer(source) and is_integer(target):
        pattern = frozenset({integer_pattern(target, signed(number))})
        return Answer(pattern, pattern, "integer to integer")
    if number.kind == "nan":
        if is_integer(target):
            return Answer(why="NaN to an integer: silent")
        return Answer(nan_patterns(target), nan_patterns(target), "NaN", True)  # W11059
    if is_integer(target):
        return _truncated(target, number)
    layout = LAYOUTS[target]
    assert layout.infinity is not None
    sign = layout.sign if number.negative else 0
    infinite = frozenset({layout.infinity | sign})
    lower, rest = below(layout, number) if number.kind == "finite" else (layout.infinity, 0)
    if lower > layout.largest:
        return Answer(infinite, infinite, "out of range")
    near = frozenset({nearest_code(layout, number) | sign})
    # Both numbers are nearest to a tie; the even one is preferred, as in W11073.
    own = frozenset({(lower + (rest == 3)) | sign, (lower + (rest >= 2)) | sign})
    if lower == layout.largest and rest:
        own |= infinite  # whether the range is that of the rounded number is not said
    if near & {0, layout.sign}:
        own |= zeros(target, negative=number.negative)
    return Answer(own, near, "to float")


def _truncated(target: str, number: Number) -> Answer:
    if number.kind == "inf":
        return Answer(why="infinity to an integer: silent")
    low, high = ends(target)
    top, bottom = signed(number), number.denominator
    if not low * bottom <= top <= high * bottom:
        return Answer(why="out of range to an integer: silent")
    whole = number.numerator // bottom
    pattern = frozenset({integer_pattern(target, -whole if number.negative else whole)})
    return Answer(pattern, pattern, "truncated")
