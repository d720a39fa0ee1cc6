"""What ``castigate codec`` asks: a function, its type in C, and the case by which it is judged.

The function is in a shared library, a C header, or Python; it takes one number or text at a time,
or an array of numbers. Or a program stands in its place. The case is one of ``small-floats``.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
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
USE = (
    "py:module:function, path.py:function, c:header.h:function, c:./library.so:function or"
    " 'exec:./program ARGUMENTS'"
)
NUMBERS = {
    "float64": ("double",),
    "float32": ("float", "double"),
    "float16": ("_Float16",),
    "bfloat16": ("float",),
}
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
TEXT = "string"
FLOATS = ("float64", "float32", "float16", "bfloat16")
INTEGER_SOURCES = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
WIDE_FORMAT = "float32"
"""A format wider than small floats, to which codecs of float64, integers and texts encode too."""
ROUNDINGS: Mapping[str, str] = {
    **dict.fromkeys(("rne", "rn"), "nearest-even"),
    **dict.fromkeys(("rna", "rmm"), "nearest-away"),
    **dict.fromkeys(("rtz", "rz", "truncate"), "toward-zero"),
    **dict.fromkeys(("rtn", "rdn", "rd"), "floor"),
    **dict.fromkeys(("rtp", "rup", "ru"), "ceil"),
    **dict.fromkeys(("rto", "rod", "ro"), "odd"),
}
"""Further spellings of --round: those of IEEE 754's texts, of RISC-V and of PTX."""


@dataclass(frozen=True)
class CodecTarget:
    """A codec's function, and where it is: a C file or library, or a Python module or file.

    The kind ``header`` stands for headers and source files of C and C++. A ``program`` has no
    function, and its command line in ``where``.
    """

    kind: Literal["header", "library", "python", "program"]
    where: str
    function: str

    @property
    def text(self) -> str:
        """The target as error messages show it, as ``c:PATH:FUNCTION`` or ``py:WHERE:FUNCTION``.

        A program is ``exec:COMMAND``. PATH is a header, a source file or a library, WHERE a Python
        module or file. The prefix is there even if the user left it out.
        """
        if self.kind == "program":
            return f"exec:{self.where}"
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
    if prefix == "exec":
        return _program(text, rest)
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


def _program(text: str, command: str) -> CodecTarget:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CastigateError(f"target `{text}` is no command line: {error}") from None
    if not words:
        raise CastigateError(f"target `{text}` names no program; write 'exec:./program ARGUMENTS'")
    if shutil.which(words[0]) is None:
        if Path(words[0]).is_file() and "/" in words[0]:
            advice = f"{words[0]} cannot be executed; name its interpreter, or use chmod +x"
        else:
            path = words[0] if "/" in words[0] else f"./{words[0]}"
            advice = f"there is no program {words[0]}; give its path, such as {path}"
        raise CastigateError(f"target `{text}`: {advice}")
    return CodecTarget("program", command, "")


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


@dataclass(frozen=True)
class TextSignature:
    """The C type of a codec that takes or gives a text, and a C expression that calls it.

    ``given`` is the type of its first argument, and ``answer`` that of the answer. In ``call``,
    which has the type of the answer, CODEC stands for the function, ``given`` for the argument,
    and ``buffer`` for room for a text.
    """

    text: str
    given: str
    answer: str
    call: str

    @property
    def pointer(self) -> str:
        """The C declaration of a pointer to such a function, with `NAME` in place of its name."""
        returned, _, arguments = self.text.partition("(")
        return f"{returned} (*NAME)({arguments}"


CSTRING = "const char *"
AnySignature = Signature | TextSignature


def signatures(source: Format, target: Format) -> Iterator[AnySignature]:
    """Yield the C types to try for a codec, those of functions of one number first.

    After them come functions on arrays. Within both, types that pass numbers come before types that
    pass bit patterns.
    """
    if source.kind == "text":
        for answer in _types(target, is_exact=True):
            for arguments, call in TEXT_ARGUMENTS.items():
                text = f"{answer}({CSTRING}{arguments})"
                yield TextSignature(text, CSTRING, answer, call)
        return
    if target.kind == "text":
        for returned, (arguments, call) in TEXT_RETURNS.items():
            for given in _types(source, is_exact=False):
                text = f"{returned}({given}{arguments})"
                yield TextSignature(text, given, CSTRING, call)
        return
    for count in ("", "size_t"):
        for answer in _types(target, is_exact=True):
            for given in _types(source, is_exact=bool(count)):
                yield Signature(given, answer, count)


TEXT_ARGUMENTS = {
    "": "CODEC(given)",
    ", char **": "CODEC(given, &end)",
    ", size_t": "CODEC(given, strlen(given))",
}
"""The further arguments of C functions that read a text, and their calls: ``end`` is a pointer."""
TEXT_RETURNS = {
    CSTRING: ("", "CODEC(given)"),
    "void": (", char *", "(CODEC(given, buffer), buffer)"),
    "int": (", char *, size_t", "(CODEC(given, buffer, sizeof buffer), buffer)"),
}
"""The C types that functions which write a text return, their further arguments, and calls."""


def signature_for(text: str, source: Format, target: Format) -> AnySignature:
    """Parse the C type of --signature for a codec between two formats.

    Raise CastigateError if it cannot be the type of such a codec.
    """
    if "text" not in (source.kind, target.kind):
        return signature_named(text)
    plain = _without_spaces(text)
    known = [*signatures(source, target)]
    for each in known:
        if _without_spaces(each.text) == plain:
            return each
    raise CastigateError(
        f"--signature `{text}` is no type of a codec of texts; use"
        f" {', '.join(each.text for each in known)}"
    )


def _without_spaces(text: str) -> str:
    return re.sub(r"\s+(?=\W|$)|(?<=\W)\s+", "", text)


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

    If ``is_exact``, a floating type must have the format's own width. An integer format has the C
    type of its numbers alone.
    """
    if form.is_integral:
        return [f"{form.name}_t"]
    numbers = NUMBERS.get(form.name, ())
    fitting = [each for each in numbers if not is_exact or FLOATING[each] == form.bits]
    return [*fitting, f"{form.storage}_t"]


def small_formats() -> list[str]:
    """Return the names of the formats of at most 16 bits that codecs encode to and decode from."""
    dtypes = document_named(YARDSTICK).entry.versions[VERSION].to or ()
    known = (format_named(name) for name in dtypes)
    return [each.name for each in known if each.kind == "float" and each.bits <= EXHAUSTIVE_BITS]


def sources_of(name: str, encodes: bool) -> list[str]:
    """Return what codecs of a format encode, or decode to; a narrower float only from float16."""
    floats = [FLOATS[0]] if name == WIDE_FORMAT else [each for each in FLOATS if each != name]
    return [*floats, *(INTEGER_SOURCES if encodes else ()), TEXT]


def codec_case(
    name: str, wide: str, encodes: bool, rounding: str | None, overflow: str | None
) -> Case:
    """Return the case of ``small-floats`` by which a codec of the format ``name`` is judged.

    ``wide`` is what is encoded, or decoded to. Where ``rounding`` or ``overflow`` is None, the
    default applies. Raise CastigateError if both formats are equal or one is not offered, for an
    unknown option value, for an option that has no effect on the pair, and for an overflow to a
    value that the target lacks.
    """
    if name not in (known := [*small_formats(), WIDE_FORMAT]):
        raise CastigateError(
            f"--format `{name}` is no small float; the formats are {', '.join(known)}"
        )
    if wide not in (others := sources_of(name, encodes)):
        what = "codec" if encodes else "decoder"
        words = ", ".join("text" if each == TEXT else each for each in others)
        raise CastigateError(f"--from `{wide}` has no {what} for {name}; use {words}")
    form = format_named(name)
    source, target = (wide, name) if encodes else (name, wide)
    cases = cases_of_pair(YARDSTICK, VERSION, source, target)
    if rounding is not None:
        rounding = ROUNDINGS.get(rounding.lower(), rounding)
    given = {"round": rounding, "overflow": overflow}
    for option, value in given.items():
        values = document_named(YARDSTICK).entry.parameters[option].values
        if value is not None and value not in values:
            raise CastigateError(f"--{option} `{value}` is unknown; use {', '.join(values)}")
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
