"""The signatures that a C codec can have: one number at a time, or an array of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from specs.errors import CastigateError
from specs.formats import Format

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


@dataclass(frozen=True)
class Signature:
    """The types of a function: ``answer(given)``, or for arrays ``void(in, out, count)``.

    ``count`` is empty where the function takes one number at a time.
    """

    given: str
    answer: str
    count: str = ""

    @property
    def text(self) -> str:
        """The signature as C's type of a function."""
        if not self.count:
            return f"{self.answer}({self.given})"
        return f"void(const {self.given} *, {self.answer} *, {self.count})"

    @property
    def pointer(self) -> str:
        """The declaration of a pointer to such a function, with `NAME` for its name."""
        returned, _, arguments = self.text.partition("(")
        return f"{returned} (*NAME)({arguments}"


def signatures(source: Format, target: Format) -> Iterator[Signature]:
    """The signatures to try, numbers before bit patterns and single ones before arrays."""
    for count in ("", "size_t"):
        for answer in _types(target, is_exact=True):
            for given in _types(source, is_exact=bool(count)):
                yield Signature(given, answer, count)


def signature_named(text: str) -> Signature:
    """Parse the option --signature; raise CastigateError if it cannot be a codec's."""
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
    """Whether a type holds numbers instead of patterns."""
    return name in FLOATING


def _type(words: str, text: str) -> str:
    """A type without `const` and without the parameter's name."""
    name = words.removeprefix("const ").removesuffix(" const")
    for known in (name, name.rpartition(" ")[0]):
        if known and (known in FLOATING or INTEGERS.fullmatch(known)):
            return known
    types = "float, double, _Float16, uint8_t, uint16_t, uint32_t, int"
    raise CastigateError(f"--signature `{text}`: `{words}` is no type of a codec; use {types}")


def _types(form: Format, *, is_exact: bool) -> list[str]:
    """The types of a format's numbers and patterns; if exact, only those of its width."""
    numbers = NUMBERS.get(form.name, ())
    fitting = [each for each in numbers if not is_exact or FLOATING[each] == form.bits]
    return [*fitting, f"{form.storage}_t"]
