"""Quantization as the pages of ONNX state it, in integers and nothing else.

The model is written from the pages alone, and imports nothing of what it judges. Each answer has
the patterns that a page's words admit, and those that related text of the same project prefers.
Pages: `docs/Changelog.md` (``C``), `technical/float8.md` (``F8``) and `float4.md` (``F4``); the
numbers that follow are lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.page_model.numbers import (
    LAYOUTS,
    WIDE,
    Answer,
    Number,
    around,
    below,
    cast_float4,
    cast_float8,
    cast_wide,
    decode,
    ends,
    finite,
    integer_pattern,
    is_integer,
    merged,
    minus,
    product,
    quotient,
    rounded,
    signed,
    total,
    whole_even,
    zeros,
)

# ONNX QuantizeLinear


@dataclass(frozen=True)
class Quantize:
    """A call of QuantizeLinear: everything but the elements."""

    version: int
    source: str
    target: str
    scale: str
    saturate: bool = True
    precision: str | None = None

    @property
    def type_of_division(self) -> str:
        """C29128-29129: the scale's type, unless the attribute names one."""
        return self.precision or self.scale


def quantize(call: Quantize, x_code: int, scale_code: int, zero_code: int) -> Answer:
    """Answer with an element of QuantizeLinear: ``saturate((x / y_scale) + y_zero_point)``.

    C9901, 17205, 23451, 25411, 29114, 32436.
    """
    x, scale = decode(call.source, x_code), decode(call.scale, scale_code)
    zero = decode(call.target, zero_code)
    if scale.kind != "finite":
        return Answer(why="scale is not finite: silent")
    if not scale.numerator:
        return Answer(why="scale is zero: silent")
    if x.kind == "nan" and is_integer(call.target):
        return Answer(why="NaN to an integer: silent")
    admitted, preferred = quotients(call, x, scale)
    if admitted == preferred and len(admitted) == 1:
        found = finish(call, admitted[0], zero)
    else:
        found = merged(
            [finish(call, each, zero) for each in admitted],
            [finish(call, each, zero) for each in preferred],
        )
    special = _special(call, x, scale, zero, preferred)
    if special and not (x.is_zero and special == "division in int32"):
        return found._replace(why=special, is_implied=found.is_implied or special in IMPLIED)
    return found


IMPLIED = ("division in int32", "division in E8M0", "float zero point")
"""Inputs of which the page says too little for a requirement."""


def _special(
    call: Quantize, x: Number, scale: Number, zero: Number, preferred: list[Number]
) -> str:
    """Name what is unusual about a division; empty if nothing is."""
    kind = call.type_of_division
    if scale.negative:
        return "negative scale"
    if not is_integer(call.target) and not zero.is_zero:
        return "float zero point"
    if kind == "float8e8m0":
        return "division in E8M0"
    if is_integer(kind):
        return "division in int32"
    if x.kind != "finite":
        return ""
    is_beyond = any(each.kind != "finite" for each in preferred)
    if kind != call.source:
        is_beyond |= rounded(kind, x).kind == "inf"
    if kind != call.scale:
        divisor = rounded(kind, scale)
        is_beyond |= divisor.kind == "inf" or divisor.is_zero
    return "beyond the precision" if is_beyond else ""


def quotients(call: Quantize, x: Number, scale: Number) -> tuple[list[Number], list[Number]]:
    """Quotients that the page's words admit, and those that are preferred."""
    kind = call.type_of_division
    exact = quotient(x, scale)
    if kind == "float8e8m0":
        # The division "has the precision" of a type without sign and zero: nothing else to take.
        return [exact], [exact]
    if is_integer(kind):
        return _whole_quotients(call, x, scale, exact)
    admitted = around(kind, exact)
    preferred = admitted[:1]
    if kind not in (call.source, call.scale) or call.source != call.scale:
        of_casts = rounded(kind, quotient(rounded(kind, x), rounded(kind, scale)))
        if of_casts != preferred[0]:
            preferred.append(of_casts)
            admitted.append(of_casts)
    if call.version < 23 and len(admitted) > 1:  # the precision is no word of the page's
        admitted.append(exact)
    return admitted, preferred


def _whole_quotients(
    call: Quantize, x: Number, scale: Number, exact: Number
) -> tuple[list[Number], list[Number]]:
    """Return admitted and preferred quotients of a division in int32.

    C23454 and C29124 round them to the nearest even integer.
    """
    if exact.kind != "finite":
        return [exact], [exact]
    found = [finite(whole_even(exact), zero_negative=exact.negative)]
    if call.source != "int32":
        whole = x.numerator // x.denominator
        cast = finite(-whole if x.negative else whole)
        found.append(finite(whole_even(quotient(cast, scale))))
    if call.version < 23:  # the precision is no word of the page's
        return [exact, *found], [exact]
    return found, found


def finish(call: Quantize, found: Number, zero: Number) -> Answer:
    """Answer with a quotient in the target: add the zero point, and saturate."""
    if is_integer(call.target):
        low, high = ends(call.target)
        if found.kind == "nan":
            return Answer(why="NaN to an integer: silent")
        if found.kind == "inf":
            end = frozenset({integer_pattern(call.target, low if found.negative else high)})
            return Answer(
                end, end, "infinite quotient to an integer: the end, by the formula", True
            )
        whole = min(max(whole_even(found) + signed(zero), low), high)
        pattern = frozenset((integer_pattern(call.target, whole),))
        return Answer(pattern, pattern, "integer")
    sums = [total(found, zero)]
    kind = call.type_of_division
    if sums[0].kind == "finite" and zero.numerator and kind in WIDE:
        in_type = rounded(kind, sums[0])  # the type of the addition is no word of the page's
        sums.append(in_type)
    if sums[0].is_zero and zero.is_zero:  # a zero point of 0 may add nothing
        sums.append(found)
    answers = [_cast(call, each) for each in sums]
    answer = merged(answers, answers)
    # By a sentence of the page a fraction would be rounded away (C23454, C25420, C29124).
    has_fraction = found.kind == "finite" and bool(found.numerator % found.denominator)
    return answer._replace(is_implied=answer.is_implied or has_fraction)


def _cast(call: Quantize, number: Number) -> Answer:
    if call.target == "float4e2m1":
        return cast_float4(number)
    return cast_float8(call.target, number, saturate=call.saturate, version=call.version)


# ONNX DequantizeLinear


@dataclass(frozen=True)
class Dequantize:
    """A call of DequantizeLinear: everything but the elements."""

    version: int
    source: str
    target: str
    scale: str


def dequantize(call: Dequantize, x_code: int, scale_code: int, zero_code: int) -> Answer:
    """Answer with an element of DequantizeLinear: ``(x - x_zero_point) * x_scale``.

    C9432, 15369, 22976, 24806, 28626, 30275, 31948.
    """
    x, zero = decode(call.source, x_code), decode(call.source, zero_code)
    scale = decode(call.scale, scale_code)
    if scale.kind != "finite":
        return Answer(why="scale is not finite: silent")
    found = _dequantized(call, x, scale, zero)
    special = "negative scale" if scale.negative else "scale zero" if scale.is_zero else ""
    if not special and not is_integer(call.source) and not zero.is_zero:
        return found._replace(why="float zero point", is_implied=True)
    return found._replace(why=special) if special else found


def _dequantized(call: Dequantize, x: Number, scale: Number, zero: Number) -> Answer:
    if call.source == "int32" and zero.numerator:
        return Answer(why="zero point of int32: silent")  # C9433
    difference = total(x, minus(zero))
    if difference.kind != "finite":
        if difference.kind == "nan" and "nan" not in (x.kind, zero.kind):
            return Answer(why="infinity minus infinity: silent")
        exact = product(difference, scale)
        if exact.kind == "nan" and difference.kind == "inf":
            return Answer(why="infinity by zero: silent")
        pattern = frozenset({cast_wide(call.target, exact)})
        return Answer(pattern, pattern, f"{difference.kind} among the codes: by the formula", True)
    # Whether the output's type, which multiplies (C28635), has both operands is not said.
    near = rounded(call.target, difference), rounded(call.target, scale)
    factors = [(difference, scale)]
    if not (_is_same(difference, near[0]) and _is_same(scale, near[1])):
        factors.append(near)
    return scaled_answer(call.target, factors)


def _is_same(one: Number, other: Number) -> bool:
    if other.kind != "finite":
        return False
    return one.numerator * other.denominator == other.numerator * one.denominator


def scaled_answer(target: str, factors: list[tuple[Number, Number]]) -> Answer:
    """Answer with the product of two factors, of which each pair in ``factors`` is a reading.

    Any neighbor in the target is admitted, and the nearest even one preferred. A product out of
    range is silent.
    """
    layout = LAYOUTS[target]
    own: set[int] = set()
    better: set[int] = set()
    why = "product"
    for left, right in factors:
        exact = product(left, right)
        nearest = cast_wide(target, exact)
        better.add(nearest)
        if exact.kind != "finite" or nearest & (layout.sign - 1) > layout.largest:
            why = "product out of range: silent"
            continue
        if exact.is_zero:
            own |= zeros(target, negative=exact.negative)
            continue
        sign = layout.sign if exact.negative else 0
        code, rest = below(layout, exact)
        own |= {sign | code, sign | (code + bool(rest))}
        if not code:
            own |= zeros(target, negative=exact.negative)
    if why != "product":
        return Answer(why=why)
    if all(left.is_zero or right.is_zero for left, right in factors):
        why = "zero product"
    elif len(factors) > 1:
        why = "product, an operand has to be rounded"
    return Answer(frozenset(own), frozenset(better), why)


# ONNX DynamicQuantizeLinear


def dynamic_scale(codes: Iterable[int]) -> Answer:
    """Answer with the scale of a tensor of DynamicQuantizeLinear.

    C11011: ``(maximum(0, max(x)) - minimum(0, min(x))) / (qmax - qmin)``.
    """
    numbers = [decode("float32", each) for each in codes]
    if any(each.kind != "finite" for each in numbers):
        return Answer(why="not finite: silent")
    least, most = dynamic_range(numbers)
    width = total(most, minus(least))
    if width.is_zero:
        return Answer(frozenset({0}), frozenset({0}), "all zero: the formula gives 0")
    steps = finite(255)
    ranges = [width, rounded("float32", width)]
    layout = LAYOUTS["float32"]
    own: set[int] = set()
    for each in ranges:
        exact = quotient(each, steps)
        if exact.kind != "finite":
            own.add(layout.infinity or 0)
            continue
        code, rest = below(layout, exact)
        own |= {code, code + bool(rest)}
    better = {
        cast_wide("float32", quotient(width, steps)),
        cast_wide("float32", quotient(rounded("float32", width), steps)),
    }
    return Answer(frozenset(own), frozenset(better), "range / 255")


def dynamic_range(numbers: list[Number]) -> tuple[Number, Number]:
    """The least and the largest number, with 0 between them: C11015."""
    least = most = finite(0)
    for each in numbers:
        if _is_less(each, least):
            least = each
        if _is_less(most, each):
            most = each
    return least, most


def _is_less(left: Number, right: Number) -> bool:
    return signed(left) * right.denominator < signed(right) * left.denominator


def dynamic_zero(codes: Iterable[int], scale_code: int) -> Answer:
    """Answer with the zero point of a tensor of DynamicQuantizeLinear.

    C11019-11025: ``cast(round(saturate(qmin - min(x) / y_scale)))``.
    """
    numbers = [decode("float32", each) for each in codes]
    scale = decode("float32", scale_code)
    if any(each.kind != "finite" for each in numbers) or scale.kind != "finite":
        return Answer(why="not finite: silent")
    if not scale.numerator:
        return Answer(why="scale 0: silent")
    least, _ = dynamic_range(numbers)
    exact = minus(quotient(least, scale))
    own = {_byte(each) for each in [exact, *around("float32", exact)]}
    return Answer(frozenset(own), frozenset({_byte(rounded("float32", exact))}), "zero point")


def _byte(number: Number) -> int:
    if number.kind == "inf":
        return 0 if number.negative else 255
    return min(max(whole_even(number), 0), 255)


DYNAMIC = Quantize(10, "float32", "uint8", "float32")


def dynamic_element(x_code: int, scale_code: int, zero_code: int) -> Answer:
    """Answer with an element of DynamicQuantizeLinear.

    C11030: ``saturate(round(x / y_scale) + y_zero_point)``.
    """
    return quantize(DYNAMIC, x_code, scale_code, zero_code)
