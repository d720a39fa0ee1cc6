"""Dtypes: one ``Format`` for each entry of ``formats.yaml``, their values, and people's names.

Such names are ``fp32``, ``torch.float8_e4m3fn``, ``DT_HALF`` and ``s32``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from specs.errors import CastigateError, closest
from specs.model.yaml_file import read_yaml

FORMATS_FILE = Path(__file__).with_name("formats.yaml")
SMALL_FLOATS_FILE = Path(__file__).with_name("small_floats.yaml")
SPELLINGS = "spellings"
"""The key of the file that lists further spellings; ``dtype_spelled`` reads them."""
EXHAUSTIVE_BITS = 16
"""The bits of the widest sources of which every tier has all inputs."""

Kind = Literal["float", "integer", "boolean", "complex", "text"]
NanEncoding = Literal["ieee", "all-ones", "negative-zero", "none"]
ZeroKind = Literal["signed", "unsigned", "none"]


@dataclass(frozen=True)
class FormatEntry:
    """One entry of ``formats.yaml``, where comments explain the fields.

    A test validates the file: every process reads it, and pydantic takes a fifth of the start of a
    backend's.
    """

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
        """The name of the numpy dtype of patterns: the smallest unsigned one, raw bytes or objects.

        Raw bytes hold patterns of more than 64 bits, and objects hold texts.
        """
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
        """Return the ranges of NaN patterns of a sign: `+`, `-` or `any`.

        NaNs without a sign count as of any sign.
        """
        if self.has_signed_nan and sign != "any":
            return (self.nan_codes[1 if sign == "-" else 0],)
        return self.nan_codes

    def hexadecimal(self, code: int) -> str:
        """Format a pattern as `0x` and all its hex digits."""
        return f"0x{code:0{self.hex_digits}x}"


@cache
def formats() -> dict[str, Format]:
    """Return the dtypes of documents by name, in the order of ``formats.yaml``."""
    return _read(FORMATS_FILE)


@cache
def every_format() -> dict[str, Format]:
    """Return the dtypes of documents, and the small floats of codecs, which no framework has."""
    return formats() | _read(SMALL_FLOATS_FILE)


def _read(path: Path) -> dict[str, Format]:
    result: dict[str, Format] = {}
    for name, fields in read_yaml(path).data.items():
        if name != SPELLINGS:
            entry = FormatEntry(**fields)
            result[name] = Format(name, entry, _width(entry, result))
    return result


def format_named(name: str) -> Format:
    """Return the format of this name; raise CastigateError with the list of dtypes if unknown."""
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


@cache
def value_of(fmt: Format, code: int) -> Fraction:
    """Return the value of a finite pattern of a numeric format."""
    if fmt.is_integral:
        return Fraction(code - (fmt.mask + 1) if code & fmt.sign_bit else code)
    magnitude = code & ~fmt.sign_bit
    exponent, mantissa = divmod(magnitude, 1 << fmt.entry.mantissa)
    hidden = exponent > 0 or fmt.entry.zero == "none"
    significand = mantissa + (1 << fmt.entry.mantissa if hidden else 0)
    power = max(exponent - fmt.entry.bias, fmt.lowest_exponent) - fmt.entry.mantissa
    value = significand * Fraction(2) ** power
    return -value if code & fmt.sign_bit else value


@cache
def is_exact(source: Format, target: Format) -> bool:
    """Return whether the target has every finite value of the source.

    If one of them is not numeric, return whether they are the same format.
    """
    if not (source.is_numeric and target.is_numeric):
        return source == target
    return (
        not rounds(source, target)
        and value_of(source, source.max_code) <= value_of(target, target.max_code)
        and value_of(source, source.lowest_code) >= value_of(target, target.lowest_code)
    )


@cache
def rounds(source: Format, target: Format) -> bool:
    """Return whether the target's range has some value of the source that the target lacks.

    Return False if one of the formats is not numeric.
    """
    if not (source.is_numeric and target.is_numeric):
        return False
    if _quantum(source) < _quantum(target):
        return True
    if target.is_integral:
        return False
    digits = source.bits - source.is_signed if source.is_integral else source.precision
    # A value in the target's range has no more bits than its largest one, in units of the source.
    in_range = int(value_of(target, target.max_code) / Fraction(2) ** _quantum(source)).bit_length()
    return min(digits, in_range) > target.precision


def _quantum(fmt: Format) -> int:
    """Return the exponent of the power of two that is the smallest distance between two values."""
    return 0 if fmt.is_integral else fmt.lowest_exponent - fmt.entry.mantissa


PREFIX = re.compile(r".*[.:](?=.)|^(?i:DT_)|^k(?=[A-Z])")
"""The prefixes that frameworks write before a dtype: a module, an enumeration."""
MODULES = {"numpy": "np", "np": "np", "torch": "torch"}
"""Modules with words of their own: ``np.int`` is not what C calls ``int``."""
BYTE_ORDER = re.compile(r"^[=>|](?=[a-z][0-9])")
ROUNDED_OPERANDS = ("tf32", "tfloat32", "tensorfloat32")
"""Spellings of TF32, to which matrix units round their operands; no tensor holds it."""
LONGEST = 40
"""The most characters of a word that an error repeats."""
LONGEST_SPELLING = 100
"""No dtype is spelled longer, with all prefixes; what is longer takes long to search."""


def dtypes_spelled(word: str) -> list[str]:
    """Return the dtypes that a word may mean; none if it is not a dtype."""
    if len(word) > LONGEST_SPELLING:
        return []
    known, plain = spellings(), _plain(word)
    module = MODULES.get(word.partition(".")[0])
    return list(known.get(f"{module}.{plain}") or known.get(plain, ()))


def dtype_spelled(word: str) -> str:
    """Return the dtype that a word means.

    Raise CastigateError with a suggestion if it means none, and with the choices if it means
    several.
    """
    if word in every_format():
        return word
    match dtypes_spelled(word):
        case [name]:
            return name
        case []:
            refuse_rounded_operands(word)
            near = closest(_plain(word[:LONGEST]), spellings())
            meant = f"did you mean `{next(iter(spellings()[near]))}`?" if near else ""
            hint = meant or f"the dtypes are {', '.join(formats())}"
            raise CastigateError(f"unknown dtype `{word[:LONGEST]}`; {hint}")
        case names:
            raise CastigateError(f"`{word[:LONGEST]}` may be {either(names)}; write one of these")


def refuse_rounded_operands(word: str) -> None:
    """Raise CastigateError if a word is a spelling of TF32, which no tensor holds."""
    if _plain(word[:LONGEST]) in ROUNDED_OPERANDS:
        raise CastigateError(
            f"`{word[:LONGEST]}` is no dtype of a tensor: matrix units round float32 operands to"
            " its 10 bits of mantissa, and their results are float32; no encoded document lists"
            " casts from or to it, so ask about float32"
        )


def _plain(word: str) -> str:
    """Return a spelling without prefixes, separators and upper case, which do not matter."""
    bare = PREFIX.sub("", PREFIX.sub("", word)).removesuffix("()")
    return BYTE_ORDER.sub("<", re.sub(r"[_-]", "", bare).lower())


@cache
def spellings() -> dict[str, tuple[str, ...]]:
    """Map each spelling to its dtypes; the name of a dtype means itself alone."""
    files = (FORMATS_FILE, SMALL_FLOATS_FILE)
    table = {
        name: words for file in files for name, words in read_yaml(file).data[SPELLINGS].items()
    }
    found: dict[str, tuple[str, ...]] = {}
    for name in every_format():
        for spelling in table.get(name, ()):
            found[spelling] = (*found.get(spelling, ()), name)
    return found | {name: (name,) for name in every_format()}


def either(names: list[str]) -> str:
    """Return names as choices: ``a, b or c``; raise ValueError if there are none."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def listed(names: Sequence[str]) -> str:
    """Return names as a list: ``a, b and c``; empty if there are none."""
    *most, last = names or [""]
    return f"{', '.join(most)} and {last}" if most else last
