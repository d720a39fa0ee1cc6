"""Dtypes: one ``Format`` for each entry of ``formats.yaml``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from specs.errors import CastigateError
from specs.model.strict_model import StrictModel
from specs.model.yaml_source import read_yaml

FORMATS_FILE = Path(__file__).with_name("formats.yaml")
SMALL_FLOATS_FILE = Path(__file__).with_name("small_floats.yaml")
SPELLINGS = "spellings"
"""The key of the file that lists further spellings; ``dtype_names.py`` reads them."""
EXHAUSTIVE_BITS = 16
"""The widest sources of which every tier asks every input."""

Kind = Literal["float", "integer", "boolean", "complex", "text"]
NanEncoding = Literal["ieee", "all-ones", "negative-zero", "none"]
ZeroKind = Literal["signed", "unsigned", "none"]


class FormatEntry(StrictModel):
    """One entry of ``formats.yaml``, which explains the fields."""

    kind: Kind
    sign: int = 0
    exponent: int = 0
    mantissa: int = 0
    bias: int = 0
    infinity: bool = False
    nan: NanEncoding = "none"
    zero: ZeroKind = "unsigned"
    bits: int = 0
    signed: bool = False
    part: str = ""


@dataclass(frozen=True)
class Format:
    """A dtype described by its fields; formats with equal names are equal."""

    name: str
    entry: FormatEntry = field(compare=False)
    bits: int = field(compare=False)

    @cached_property
    def kind(self) -> Kind:
        return self.entry.kind

    @cached_property
    def is_numeric(self) -> bool:
        """Whether a pattern is one real number: a float, integer or boolean format."""
        return self.entry.kind in ("float", "integer", "boolean")

    @cached_property
    def is_integral(self) -> bool:
        """Whether every value is whole: an integer or boolean format."""
        return self.entry.kind in ("integer", "boolean")

    @cached_property
    def is_signed(self) -> bool:
        """Whether the format has negative values."""
        return bool(self.entry.sign) or self.entry.signed

    @cached_property
    def has_signed_nan(self) -> bool:
        """Whether a NaN of this format carries a sign."""
        return bool(self.entry.sign) and self.entry.nan in ("ieee", "all-ones")

    @cached_property
    def has_zero(self) -> bool:
        """Whether some pattern is zero."""
        return self.entry.zero != "none"

    @cached_property
    def mask(self) -> int:
        """The pattern with all bits set."""
        return (1 << self.bits) - 1

    @cached_property
    def hex_digits(self) -> int:
        """The number of hex digits of a pattern."""
        return -(-self.bits // 4)

    @cached_property
    def sign_bit(self) -> int:
        """The pattern with only the sign bit set; 0 if the format is unsigned."""
        return 1 << (self.bits - 1) if self.is_signed else 0

    @cached_property
    def storage(self) -> str:
        """The name of the numpy dtype for patterns: the smallest unsigned one, or raw bytes."""
        if self.entry.kind == "text":
            return "O"
        if self.bits > 64:
            return f"V{self.bits // 8}"
        return f"uint{next(width for width in (8, 16, 32, 64) if self.bits <= width)}"

    @cached_property
    def precision(self) -> int:
        """The number of significant bits of a normal number, the hidden bit included."""
        return self.entry.mantissa + 1

    @cached_property
    def lowest_exponent(self) -> int:
        """The exponent of the leading bit of the smallest normal number."""
        return (0 if self.entry.zero == "none" else 1) - self.entry.bias

    @cached_property
    def infinity_code(self) -> int:
        """The pattern of +infinity; meaningless if the format has none."""
        return ((1 << self.entry.exponent) - 1) << self.entry.mantissa

    @cached_property
    def max_code(self) -> int:
        """The pattern of the largest finite value."""
        if self.is_integral:
            return self.mask >> 1 if self.is_signed else self.mask
        if self.entry.infinity or self.entry.nan == "ieee":
            return self.infinity_code - 1
        magnitude = (1 << (self.entry.exponent + self.entry.mantissa)) - 1
        return magnitude - 1 if self.entry.nan == "all-ones" else magnitude

    @cached_property
    def lowest_code(self) -> int:
        """The pattern of the lowest finite value."""
        if self.is_integral:
            return self.sign_bit
        return self.max_code | self.sign_bit if self.is_signed else 0

    @cached_property
    def one_code(self) -> int:
        """The pattern of the value one."""
        return 1 if self.is_integral else self.entry.bias << self.entry.mantissa

    @cached_property
    def nan_codes(self) -> tuple[range, ...]:
        """The ranges of NaN patterns, positive (or unsigned) ones first."""
        match self.entry.nan:
            case "none":
                return ()
            case "negative-zero":
                return (range(self.sign_bit, self.sign_bit + 1),)
            case "ieee":
                positive = range(
                    self.infinity_code + 1, 1 << (self.entry.exponent + self.entry.mantissa)
                )
            case "all-ones":
                ones = (1 << (self.entry.exponent + self.entry.mantissa)) - 1
                positive = range(ones, ones + 1)
        if not self.entry.sign:
            return (positive,)
        return (positive, range(positive.start + self.sign_bit, positive.stop + self.sign_bit))

    def nans(self, sign: str) -> tuple[range, ...]:
        """The NaN patterns of a sign (`+`, `-`, or `any`); unsigned NaNs count as any sign."""
        if self.has_signed_nan and sign != "any":
            return (self.nan_codes[1 if sign == "-" else 0],)
        return self.nan_codes

    def hexadecimal(self, code: int) -> str:
        """Format a pattern as `0x` and all its hex digits."""
        return f"0x{code:0{self.hex_digits}x}"


@cache
def formats() -> dict[str, Format]:
    """The dtypes of documents by name, in the order of the file."""
    return _read(FORMATS_FILE)


@cache
def every_format() -> dict[str, Format]:
    """The dtypes of documents, and the small floats of codecs, which no framework has."""
    return formats() | _read(SMALL_FLOATS_FILE)


def _read(path: Path) -> dict[str, Format]:
    file = read_yaml(path)
    result: dict[str, Format] = {}
    for name, fields in file.data.items():
        if name == SPELLINGS:
            continue
        try:
            entry = FormatEntry.model_validate(fields)
        except ValidationError as error:
            raise file.error((name,), f"dtype `{name}`: {error.errors()[0]['msg']}") from None
        result[name] = Format(name, entry, _width(entry, result))
    return result


def format_named(name: str) -> Format:
    """The format of this name; raise CastigateError with the list of dtypes if unknown."""
    try:
        return every_format()[name]
    except KeyError:
        known = ", ".join(formats())
        raise CastigateError(f"unknown dtype `{name}`; the dtypes are {known}") from None


def _width(entry: FormatEntry, known: dict[str, Format]) -> int:
    match entry.kind:
        case "float":
            return entry.sign + entry.exponent + entry.mantissa
        case "complex":
            return 2 * known[entry.part].bits
        case _:
            return entry.bits
