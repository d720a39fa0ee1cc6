"""How users spell values: hex patterns, integers, decimals, nan, inf, true, false, and tensors.

A hexadecimal float such as ``0x1.8p3`` has a power, a pattern such as ``0x3f800000`` has none.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from math import prod
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    RootModel,
    StrictBool,
)

from oracles.memory_layouts import codes_of, elements
from oracles.protocol import Bits
from oracles.reference import exact
from oracles.reference.exact import Number
from oracles.reference.exact_text import FAR, MOST_DIGITS, read_literal
from reports.counterexample.drawing import datum_with_value, value_text
from specs.cases import Shape, format_shape
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.model.strict_model import StrictModel

ENCODER = json.JSONEncoder(ensure_ascii=False)
HEX = re.compile(r"0[xX][0-9a-fA-F]+")
BYTE = re.compile(r"0[xX][0-9a-fA-F]{1,2}")
INTEGER = re.compile(r"([+-]?[0-9]+)(?:[eE][+]?([0-9]{1,3}))?", re.ASCII)
DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
REAL = r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)"
COMPLEX = re.compile(rf"(?:({REAL})(?=[+-]|\Z))?(?:({REAL})[ij])?", re.ASCII | re.IGNORECASE)
"""Matches the parts of a complex number; without both parts also an empty text."""
SPECIAL = re.compile(r"([+-]?)(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
TRUTH = {"true": 1, "false": 0}
LONGEST = 1_200
"""The most characters of a number; the smallest float64, written out, has 1,076."""
MOST_DIMENSIONS = 64
"""The most dimensions that numpy supports."""
ADVICE = {
    "float": "write a number such as 1.5, -inf or nan, or 0x and {} hex digits",
    "integer": "write an integer such as 5, or 0x and {} hex digits",
    "boolean": "write true, false, 1, 0, 0x1 or 0x0",
    "complex": "write a number such as 1.5-2j, or 0x and {} hex digits",
}


INPUTS = (
    '"0x3f", 1.5, {"text": "…"}; for a bitcast {"shape": [2], "bits": ["0x3f", 1.5]};'
    ' for a quantization {"x": [1.5], "scale": 0.5}'
)
"""Examples of a line's input, as an error message shows them."""


class JsonNumber:
    """A number of a JSON line, kept as the line spells it: as a float it would be rounded."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _number(given: object) -> JsonNumber:
    if not isinstance(given, JsonNumber):
        raise ValueError("not a number that was read as text")
    return given


def _length(given: object) -> object:
    return int(given.text) if isinstance(given, JsonNumber) else given


Length = Annotated[int, BeforeValidator(_length), Field(strict=True, ge=0)]


Spelled = str | StrictBool | Annotated[JsonNumber, PlainValidator(_number)]
"""One value of a numeric dtype, as a line spells it."""


class TextDatum(StrictModel):
    """A value of the string dtype."""

    text: str


class ErrorDatum(StrictModel):
    """A recorded error in the place of an answer."""

    error: str


class NestedDatum(RootModel[list["Spelled | NestedDatum"]]):
    """A tensor as lists in lists; its shape follows from the nesting."""

    model_config = ConfigDict(strict=True)


class TensorDatum(StrictModel):
    """A tensor as its shape and its elements in row-major order."""

    shape: Annotated[list[Length], Field(max_length=MOST_DIMENSIONS)]
    bits: list[Spelled]


TensorSpelling = Annotated[
    str | TensorDatum | NestedDatum | Spelled, Field(union_mode="left_to_right")
]


class NamedTensors(StrictModel):
    """The tensors by name that an operation takes or returns, as a line spells them.

    ``whole`` is the tensor `global`; Python reserves that word.
    """

    x: TensorSpelling = ""
    scale: TensorSpelling = ""
    zero: TensorSpelling = ""
    whole: Annotated[TensorSpelling, Field(alias="global")] = ""
    y: TensorSpelling = ""

    @property
    def by_name(self) -> dict[str, Any]:
        """The spelled tensors by name, without those that the line leaves out."""
        fields = type(self).model_fields
        return {
            fields[each].alias or each: getattr(self, each)
            for each in fields
            if each in self.model_fields_set
        }


InputDatum = str | TextDatum | TensorDatum | NestedDatum | NamedTensors | Spelled
"""The input of a line."""
OutputDatum = str | TextDatum | ErrorDatum | TensorDatum | NestedDatum | NamedTensors | Spelled
"""The output of a line."""


def datum(form: Format, given: InputDatum, what: str) -> int | str:
    """Return the pattern of the value that ``given`` spells, or its text if the dtype is string.

    Raise CastigateError, in which ``what`` names the spelling, if it spells no value of the format.
    """
    if form.kind == "text":
        if not isinstance(given, TextDatum):
            raise CastigateError(f'`{what}` of a string case is written {{"text": "…"}}')
        return given.text
    match given:
        case str():
            return _code(form, given, what)
        case bool():
            return _code(form, str(given).lower(), what)
        case JsonNumber():
            return _code(form, given.text, what)
        case TextDatum():
            raise CastigateError(f"`{what}` of {form.name} is a number or hex pattern, not a text")
        case NamedTensors():
            raise CastigateError(f"`{what}` names tensors, as of a quantization; give one value")
    raise CastigateError(f"`{what}` is a list or tensor; a cast takes one value of {form.name}")


def is_full_pattern(form: Format, given: OutputDatum) -> bool:
    """Whether a value, or each element of a tensor, is spelled as a pattern with all its digits.

    Also true of a text; false of an error or of named tensors.
    """
    if isinstance(given, str):
        return len(given) == form.hex_digits + 2 and HEX.fullmatch(given) is not None
    if isinstance(given, TensorDatum | NestedDatum):
        return all(is_full_pattern(form, each) for each in _elements(given, "")[1])
    return isinstance(given, TextDatum)


def as_pattern(
    form: Format, given: InputDatum, what: str, shape: Shape | None = None
) -> dict[str, Any] | str:
    """Return a spelled value as a hex pattern, or a spelled tensor as data: its shape and patterns.

    Raise CastigateError if it spells no value of the format, or a tensor of another shape than
    ``shape``, unless that is None. Bools in a tensor may be any byte.
    """
    if isinstance(given, TensorDatum | NestedDatum):
        return tensor_words(form, tensor(form, given, what, shape, any_byte=True))
    return form.hexadecimal(int(datum(form, given, what)))


def _code(form: Format, text: str, what: str) -> int:
    if HEX.fullmatch(text):
        return _pattern(form, text, what)
    if len(text) > LONGEST:
        raise CastigateError(f"`{what}` has {len(text)} characters; a number has {LONGEST} at most")
    match form.kind:
        case "boolean" if text.lower() in TRUTH:
            return TRUTH[text.lower()]
        case "boolean" | "integer" if found := INTEGER.fullmatch(text):
            return _integer(form, text, int(found[1]) * 10 ** int(found[2] or 0), what)
        case "float" if found := SPECIAL.fullmatch(text):
            return _special(form, found[1], found[2].lower() == "nan", what)
        case "boolean" | "integer" if (number := hexadecimal_float(text)) and exact.is_whole(
            number
        ):
            return _integer(form, text, int(signed_value(number)), what)
        case "float" if number := hexadecimal_float(text):
            return _float(form, text, number, what)
        case "float" if (found := DECIMAL.fullmatch(text)) and (found[2] or found[3]):
            return _decimal(form, text, found, what)
        case "complex" if text and (found := COMPLEX.fullmatch(text)):
            part = format_named(form.entry.part)
            real, imaginary = (_code(part, each or "0", what) for each in found.groups())
            return real | imaginary << part.bits
    advice = ADVICE[form.kind].format(form.hex_digits)
    raise CastigateError(f"`{what}` `{text[:40]}` is not a value of {form.name}; {advice}")


def _pattern(form: Format, text: str, what: str) -> int:
    """Return the code of a hex pattern; raise CastigateError for too few, many or large digits.

    Only a bool or an integer that is not negative may lack or add leading zeros.
    """
    code = int(text, 16)
    if form.kind == "boolean" and code > form.max_code and len(text) <= len("0x00"):
        raise CastigateError(f"`{what}` {text} is no bool; {ADVICE[form.kind]}")
    if len(text) != form.hex_digits + 2 and not (form.is_integral and code <= form.max_code):
        raise CastigateError(
            f"`{what}` {text[:40]} has {len(text) - 2} digits,"
            f" a pattern of {form.name} has {form.hex_digits}; write them all, or a number"
        )
    if code > form.mask:
        raise CastigateError(
            f"`{what}` {text} is wider than the {form.bits} bits of {form.name};"
            f" write {form.hexadecimal(form.mask)} or less"
        )
    return code


def _integer(form: Format, text: str, number: int, what: str) -> int:
    if not -form.sign_bit <= number <= form.max_code:
        raise _out_of_range(form, text, what)
    return number & form.mask


def _special(form: Format, sign: str, is_nan: bool, what: str) -> int:
    minus = form.sign_bit if sign == "-" else 0
    if not is_nan:
        if not form.entry.infinity:
            raise CastigateError(f"`{what}`: {form.name} has no infinity; write a number or nan")
        return form.infinity_code | minus
    if not form.nan_codes:
        raise CastigateError(f"`{what}`: {form.name} has no NaN; write a number")
    if sign and not form.has_signed_nan:
        raise CastigateError(f"`{what}`: the NaN of {form.name} has no sign; write nan")
    # The middle one has no payload but the quiet bit; elsewhere there is only one.
    positive = form.nan_codes[0]
    return positive[len(positive) // 2] | minus


def _decimal(form: Format, text: str, found: re.Match[str], what: str) -> int:
    """Return the pattern of the value that a decimal denotes; raise CastigateError if it has none.

    ``found`` is the match of ``DECIMAL``. A decimal denotes the format's nearest value if this,
    rounded to the decimal's last digit, equals the decimal. Below a power of two, values lie closer
    than above, so that the rounded value may be nearer to another value of the format. Then the
    decimal on the other side of the nearest value denotes it too, as in what Python prints of
    2^-1007. A decimal halfway between two values denotes neither.
    """
    sign, whole, fraction, power = found[1], found[2], found[3] or "", found[4] or "0"
    number = read_literal(f"{sign}{whole or '0'}.{fraction or '0'}e{power}").number
    assert number is not None
    if number.significand == 0:
        return _zero(form, sign == "-", text, what)
    multiple, unit = _rounded(form, number, text, what)
    if multiple:  # else the exponent may be too large to be written out
        last_digit = Fraction(10) ** (int(power) - len(fraction))
        value = multiple * Fraction(2) ** unit
        gap = abs(value - int(whole + fraction) * last_digit)
        is_rounded = 2 * gap <= last_digit
        if not is_rounded and gap < last_digit:
            rounded = f"{round(value / last_digit)}e{int(power) - len(fraction)}"
            is_rounded = not _is_nearest(form, value, rounded)
        if is_rounded and 2 * gap != Fraction(2) ** unit:
            return exact.encode(form, number.sign, multiple, unit)
    raise _between_values(form, number, unit, text, what)


def _is_nearest(form: Format, value: Fraction, decimal: str) -> bool:
    """Whether a positive decimal, rounded to the nearest value of a format, gives ``value``."""
    number = read_literal(decimal).number
    assert number is not None
    unit = exact.unit_of(form, number)
    return exact.round_magnitude(number, unit, "nearest-even") * Fraction(2) ** unit == value


def _float(form: Format, text: str, number: exact.Number, what: str) -> int:
    """Return the pattern of exactly this number; raise CastigateError if the format lacks it."""
    if number.significand == 0:
        return _zero(form, bool(number.sign), text, what)
    multiple, unit = _rounded(form, number, text, what)
    if multiple * Fraction(2) ** unit != abs(signed_value(number)):
        raise _between_values(form, number, unit, text, what)
    return exact.encode(form, number.sign, multiple, unit)


def _rounded(form: Format, number: exact.Number, text: str, what: str) -> tuple[int, int]:
    """Round a number's magnitude to a format; return integers ``multiple`` and ``unit``.

    The rounded magnitude is ``multiple * 2**unit``, where ``2**unit`` is the spacing of the
    format's values there. Raise CastigateError if it is out of the format's range.
    """
    unit = exact.unit_of(form, number)
    multiple = exact.round_magnitude(number, unit, "nearest-even")
    if exact.zone_of(form, number, multiple, unit) == "overflow":
        raise _out_of_range(form, text, what)
    return multiple, unit


def _between_values(
    form: Format, number: exact.Number, unit: int, text: str, what: str
) -> CastigateError:
    below = exact.round_magnitude(number, unit, "toward-zero")
    near = [
        datum_with_value(form, exact.encode(form, number.sign, each, unit))
        for each in (below, below + 1)
        if (each or form.entry.zero != "none")
        and not exact.exceeds(each, unit, exact.limits(form)[number.sign])
    ]
    return CastigateError(
        f"`{what}` `{text[:40]}` is not a value of {form.name}; write {' or '.join(near)}"
    )


def _zero(form: Format, is_negative: bool, text: str, what: str) -> int:
    if form.entry.zero == "none":
        raise CastigateError(
            f"`{what}`: {form.name} has no zero; its smallest is {datum_with_value(form, 0)}"
        )
    if is_negative and form.entry.zero != "signed":
        raise CastigateError(f"`{what}` `{text[:40]}`: {form.name} has no -0; write 0")
    return form.sign_bit if is_negative else 0


def _out_of_range(form: Format, text: str, what: str) -> CastigateError:
    lowest, highest = value_text(form, form.lowest_code), value_text(form, form.max_code)
    return CastigateError(
        f"`{what}` `{text[:40]}` is outside the range of {form.name}, {lowest} to {highest};"
        " write a number within it"
    )


def tensor(
    form: Format,
    given: InputDatum,
    what: str,
    shape: Shape | None = None,
    *,
    any_byte: bool = False,
) -> Bits:
    """Return the array of patterns that a spelling stands for; raise CastigateError if it has none.

    A flat list takes ``shape``, if that is given; any other spelling must have it. With
    ``any_byte`` a bool may hold any byte, and its pattern has one digit or two. ``what`` names the
    spelling in errors.
    """
    found, spelled = _elements(given, what)
    if shape is not None and len(found) == 1 and isinstance(given, NestedDatum):
        if len(spelled) != prod(shape):
            raise _miscounted(len(spelled), shape, what)
        found = shape
    if shape is not None and found != shape:
        raise CastigateError(
            f"`{what}` has shape {_shown(found)}, the case has {format_shape(shape)}"
        )
    codes = [
        int(each, 16)
        if any_byte and form.kind == "boolean" and isinstance(each, str) and BYTE.fullmatch(each)
        else int(datum(form, each, f"{what}[{place}]"))
        for place, each in enumerate(spelled)
    ]
    try:
        return elements(form, codes).reshape(found)
    except (OverflowError, ValueError):
        raise CastigateError(f"`{what}`: no array has the shape {_shown(found)}") from None


def tensor_words(form: Format, bits: Bits) -> dict[str, Any]:
    """Return a tensor as JSON: its ``shape``, and as ``bits`` its elements in hex, row-major."""
    return {"shape": list(bits.shape), "bits": [form.hexadecimal(code) for code in codes_of(bits)]}


def _elements(given: InputDatum, what: str) -> tuple[Shape, list[Any]]:
    """Return the shape of a spelled tensor and its elements, still as spelled, in row-major order.

    A single value has no dimensions. Raise CastigateError if nested lists are ragged, or elements
    do not fill the shape that is given.
    """
    if isinstance(given, TensorDatum):
        shape = tuple(given.shape)
        if len(given.bits) != prod(shape):
            raise _miscounted(len(given.bits), shape, what)
        return shape, list(given.bits)
    values: list[Any] = [given]
    lengths: list[int] = []
    while any(isinstance(each, NestedDatum) for each in values):
        if len({len(each.root) if isinstance(each, NestedDatum) else None for each in values}) > 1:
            raise CastigateError(f"`{what}` is ragged: its lists differ in length or in depth")
        lengths.append(len(values[0].root))
        values = [each for part in values for each in part.root]
    return tuple(lengths), values


def _miscounted(count: int, shape: Shape, what: str) -> CastigateError:
    return CastigateError(
        f"`{what}` has {count} elements, but shape {_shown(shape)} holds {prod(shape)}"
    )


def _shown(shape: Shape) -> str:
    return format_shape(shape)[:60]


def json_text(found: Any) -> str:
    """Return a value as JSON text, in which each ``JsonNumber`` stays as its line spelled it."""
    if isinstance(found, JsonNumber):
        return found.text
    try:
        return ENCODER.encode(found)
    except TypeError:  # there is a number in it
        if isinstance(found, list):
            return f"[{', '.join(map(json_text, found))}]"
        members = (f"{json_text(key)}: {json_text(member)}" for key, member in found.items())
        return f"{{{', '.join(members)}}}"


HEXADECIMAL_FLOAT = re.compile(
    r"([+-]?)0[xX](?=\.?[0-9a-fA-F])([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]+)", re.ASCII
)
"""The power is not optional: without it the digits are a bit pattern."""
DIGIT_BITS = 4


def hexadecimal_float(text: str) -> Number | None:
    """Return the exact value of a hexadecimal float; None if the text is not one.

    A magnitude far above or below the range of every format is replaced by a power of two that is
    out of these ranges too.
    """
    found = HEXADECIMAL_FLOAT.fullmatch(text)
    if found is None:
        return None
    sign, digits, fraction = int(found[1] == "-"), found[2] + (found[3] or ""), found[3] or ""
    significand = int(digits, 16)
    if significand == 0:
        return Number(sign, 0, 0)
    is_small = found[4].startswith("-")
    power_digits = found[4].lstrip("+-").lstrip("0") or "0"
    power = int(power_digits) if len(power_digits) < MOST_DIGITS else FAR * MOST_DIGITS
    exponent = (-power if is_small else power) - DIGIT_BITS * len(fraction)
    magnitude = exponent + significand.bit_length()
    if abs(magnitude) > FAR:
        return Number(sign, 1, FAR if magnitude > 0 else -FAR)
    return Number(sign, significand, exponent)


def signed_value(number: Number) -> Fraction:
    """Return the value of a number as a fraction, in which a zero has no sign."""
    magnitude = number.significand * Fraction(2) ** number.exponent
    return -magnitude if number.sign else magnitude


def patterns_of_line(
    given: tuple[Format, InputDatum], output: tuple[Format, OutputDatum], shape: Shape | None = None
) -> dict[str, Any]:
    """Return the full patterns that a line lacks, as ``input_pattern`` and ``output_pattern``.

    ``given`` and ``output`` each have the format and the spelling of the line's input or output; an
    error has no pattern. ``shape`` is that of the input, or None if any will do. Raise
    CastigateError for a spelling that stands for no value of its format.
    """
    found: dict[str, Any] = {}
    if not is_full_pattern(*given):
        found["input_pattern"] = as_pattern(*given, "input", shape)
    form, answer = output
    if not is_full_pattern(form, answer) and not isinstance(answer, ErrorDatum):
        found["output_pattern"] = as_pattern(form, answer, "output")
    return found
