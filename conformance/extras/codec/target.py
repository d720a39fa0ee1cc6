"""What ``castigate codec`` asks: a function, its type in C, and the case by which it is judged.

The function is in a shared library, a C header, or Python. It takes one number at a time, or an
array of them. The case is one of ``small-floats``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import EXHAUSTIVE_BITS, Format, format_named
from specs.loader import document_named
from specs.selection import cases_of_pair

HEADERS = (".h", ".c", ".hpp", ".hh", ".hxx", ".cpp", ".cc", ".cxx")
CPLUSPLUS = (".hpp", ".hh", ".hxx", ".cpp", ".cc", ".cxx")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
C_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*", re.ASCII)
USE = "py:module:function, path.py:function, c:header.h:function or c:./library.so:function"
NUMBERS = {"float32": ("float", "double"), "float16": ("_Float16",), "bfloat16": ("float",)}
"""The C types that pass numbers of a format as numbers instead of as patterns."""
FLOATING = {"float": 32, "double": 64, "_Float16": 16, "__fp16": 16, "__bf16": 16}
"""The floating types, and their bits."""
INTEGERS = re.compile(
    r"(u?int(8|16|32|64)(_fast|_least)?_t|s?size_t|_?[bB]ool"
    r"|(signed|unsigned)?( ?(char|short|int|long|long long))?( int)?)",
    re.ASCII,
)
SHOWN = "'uint8_t(float)', or 'void(const float *, uint8_t *, size_t)' for arrays"
YARDSTICK, VERSION = "small-floats", "1"
WIDE = ("float32", "float16", "bfloat16")
"""The formats that codecs encode from, and decode to."""


@dataclass(frozen=True)
class CodecTarget:
    """A codec's function, and where it is: a C file or library, or a Python module or file.

    The kind ``header`` stands for headers and source files of C and C++.
    """

    kind: Literal["header", "library", "python"]
    where: str
    function: str

    @property
    def text(self) -> str:
        """The target as error messages show it: ``c:PATH:FUNCTION`` or ``py:WHERE:FUNCTION``.

        PATH is a header, a source file or a library, WHERE a Python module or file. The prefix is
        there even if the user left it out.
        """
        prefix = "py" if self.kind == "python" else "c"
        return f"{prefix}:{self.where}:{self.function}"

    @property
    def is_cplusplus(self) -> bool:
        """Whether the target is a header or source file of C++."""
        return self.kind == "header" and Path(self.where).suffix in CPLUSPLUS


def target_named(text: str) -> CodecTarget:
    """Parse the TARGET of the command line.

    Raise CastigateError if it is malformed, or names a file that does not exist.
    """
    prefix, _, rest = text.partition(":")
    if prefix not in ("py", "c"):
        prefix, rest = ("py" if prefix.endswith(".py") else ""), text
    # A C++ function may have a namespace, which has colons too.
    where, colon, function = rest.partition(":")
    if not (prefix and colon and where and function):
        raise CastigateError(f"target `{text}` is no function; write {USE}")
    if not (IDENTIFIER if prefix == "py" else C_IDENTIFIER).fullmatch(function):
        raise CastigateError(f"target `{text}`: `{function}` is no name of a function")
    if prefix == "py" and not where.endswith(".py"):
        return CodecTarget("python", where, function)
    path = Path(where)
    if not path.is_file():
        raise CastigateError(f"target `{text}`: there is no file {where}; give its path")
    if prefix == "py":
        return CodecTarget("python", where, function)
    return CodecTarget("header" if path.suffix in HEADERS else "library", where, function)


@dataclass(frozen=True)
class Signature:
    """The C type of a codec: ``answer(given)``, or for arrays ``void(given *, answer *, count)``.

    ``count`` is the type of the number of elements, and empty if the function takes one number.
    """

    given: str
    answer: str
    count: str = ""

    @property
    def text(self) -> str:
        """The signature as a C type, such as ``uint8_t(float)``."""
        if not self.count:
            return f"{self.answer}({self.given})"
        return f"void(const {self.given} *, {self.answer} *, {self.count})"

    @property
    def pointer(self) -> str:
        """The C declaration of a pointer to such a function, with `NAME` in place of its name."""
        returned, _, arguments = self.text.partition("(")
        return f"{returned} (*NAME)({arguments}"


def signatures(source: Format, target: Format) -> Iterator[Signature]:
    """Yield the C types to try for a codec, those of functions of one number first.

    After them come functions on arrays. Within both, types that pass numbers come before types that
    pass bit patterns.
    """
    for count in ("", "size_t"):
        for answer in _types(target, is_exact=True):
            for given in _types(source, is_exact=bool(count)):
                yield Signature(given, answer, count)


def signature_named(text: str) -> Signature:
    """Parse the C type of --signature; raise CastigateError if it cannot be the type of a codec."""
    match = re.fullmatch(r"\s*([\w ]+?)\s*\(([^()]*)\)\s*", text)
    if match is None:
        raise CastigateError(f"--signature `{text}` is no type of a function; write {SHOWN}")
    returned = match[1]
    spaced = [" ".join(each.replace("*", " * ").split()) for each in match[2].split(",")]
    arguments = [re.sub(r"\* \w+$", "*", each) for each in spaced]
    found: Signature | None = None
    match arguments:
        case [given] if "*" not in given:
            found = Signature(_type(given, text), _type(returned, text))
        case [given, answer, count] if returned == "void" and "*" not in count:
            if given.endswith(" *") and answer.endswith(" *"):
                pair = _type(given.removesuffix(" *"), text), _type(answer[:-2], text)
                found = Signature(*pair, _type(count, text))
    if found is None:
        raise CastigateError(f"--signature `{text}`: a codec takes one number; write {SHOWN}")
    return found


def is_floating(name: str) -> bool:
    """Whether a C type passes numbers instead of bit patterns."""
    return name in FLOATING


def _type(words: str, text: str) -> str:
    """Return the C type in ``words`` without `const` and a parameter's name.

    Raise CastigateError, which quotes the whole ``text``, if the type is unknown.
    """
    name = words.removeprefix("const ").removesuffix(" const")
    for known in (name, name.rpartition(" ")[0]):
        if known and (known in FLOATING or INTEGERS.fullmatch(known)):
            return known
    types = "float, double, _Float16, uint8_t, uint16_t, uint32_t, int"
    raise CastigateError(f"--signature `{text}`: `{words}` is no type of a codec; use {types}")


def _types(form: Format, *, is_exact: bool) -> list[str]:
    """Return the C types that can pass a format: floating types, then that of its bit patterns.

    If ``is_exact``, a floating type must have the format's own width.
    """
    numbers = NUMBERS.get(form.name, ())
    fitting = [each for each in numbers if not is_exact or FLOATING[each] == form.bits]
    return [*fitting, f"{form.storage}_t"]


def small_formats() -> list[str]:
    """Return the names of the formats that a codec may encode to and decode from."""
    dtypes = document_named(YARDSTICK).entry.versions[VERSION].to or ()
    return [name for name in dtypes if format_named(name).bits <= EXHAUSTIVE_BITS]


def codec_case(
    name: str, wide: str, encodes: bool, rounding: str | None, overflow: str | None
) -> Case:
    """Return the case of ``small-floats`` by which a codec of the format ``name`` is judged.

    ``wide`` is the format that is encoded, or decoded to. Where ``rounding`` or ``overflow`` is
    None, the default applies. Raise CastigateError if both formats are equal or one is not offered,
    for an unknown option value, for an option that has no effect on the pair, and for an overflow
    to a value that the target lacks.
    """
    if name not in small_formats():
        raise CastigateError(
            f"--format `{name}` is no small float; the formats are {', '.join(small_formats())}"
        )
    if wide not in WIDE or wide == name:
        others = [each for each in WIDE if each != name]
        raise CastigateError(f"--from `{wide}` has no codec for {name}; use {' or '.join(others)}")
    form = format_named(name)
    source, target = (wide, name) if encodes else (name, wide)
    cases = cases_of_pair(YARDSTICK, VERSION, source, target)
    given = {"round": rounding, "overflow": overflow}
    for option, value in given.items():
        known = document_named(YARDSTICK).entry.parameters[option].values
        if value is not None and value not in known:
            raise CastigateError(f"--{option} `{value}` is unknown; use {', '.join(known)}")
        if value is not None and not cases[0].modes:
            raise CastigateError(
                f"--{option}: nothing is rounded from {source} to {target}; leave it out"
            )
    check_overflow(form if encodes else format_named(wide), overflow)
    for case in cases:
        if all(value in (None, case.mode.get(option)) for option, value in given.items()):
            return case
    raise AssertionError(given)


def check_overflow(target: Format, overflow: str | None) -> None:
    """Raise CastigateError if ``overflow`` wants NaN or infinity and the target format has none."""
    offered = ["saturate"]
    if target.nan_codes:
        offered.append("nan")
    if target.entry.infinity:
        offered.append("inf")
    if overflow is not None and overflow not in offered:
        lacks = {"nan": "NaN", "inf": "infinity"}[overflow]
        raise CastigateError(
            f"--overflow {overflow}: {target.name} has no {lacks}; use {' or '.join(offered)}"
        )
