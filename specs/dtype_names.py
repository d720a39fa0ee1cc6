"""Reads a dtype as people spell it: ``fp32``, ``torch.float8_e4m3fn``, ``DT_HALF``, ``s32``."""

from __future__ import annotations

import re
from functools import cache

from specs.errors import CastigateError
from specs.formats import FORMATS_FILE, SMALL_FLOATS_FILE, SPELLINGS, every_format, formats
from specs.model.yaml_source import read_yaml
from specs.suggestions import closest

PREFIX = re.compile(r".*[.:](?=.)|^(?i:DT_)|^k(?=[A-Z])")
"""The prefixes that frameworks write before a dtype: a module, an enumeration."""
MODULES = {"numpy": "np", "np": "np", "torch": "torch"}
"""Modules with words of their own: ``np.int`` is not what C calls ``int``."""
BYTE_ORDER = re.compile(r"^[=>|](?=[a-z][0-9])")
ROUNDED_OPERANDS = ("tf32", "tfloat32", "tensorfloat32")
"""Spellings of TF32, to which matrix units round their operands; no tensor holds it."""
LONGEST = 40
"""Characters of a word that an error repeats."""


def dtypes_spelled(word: str) -> list[str]:
    """The dtypes that a word may mean; none if it is not a dtype."""
    known, plain = _spellings(), _plain(word)
    module = MODULES.get(word.partition(".")[0])
    return list(known.get(f"{module}.{plain}") or known.get(plain, ()))


def dtype_spelled(word: str) -> str:
    """The dtype that a word means; raise an error that names the choices if it is not one."""
    if word in every_format():
        return word
    match dtypes_spelled(word):
        case [name]:
            return name
        case []:
            refuse_rounded_operands(word)
            near = closest(_plain(word[:LONGEST]), _spellings())
            meant = f"did you mean `{next(iter(_spellings()[near]))}`?" if near else ""
            hint = meant or f"the dtypes are {', '.join(formats())}"
            raise CastigateError(f"unknown dtype `{word[:LONGEST]}`; {hint}")
        case names:
            raise CastigateError(f"`{word[:LONGEST]}` may be {either(names)}; write one of these")


def refuse_rounded_operands(word: str) -> None:
    """Raise an error if a word means a format of operands, which tensors do not have."""
    if _plain(word[:LONGEST]) in ROUNDED_OPERANDS:
        raise CastigateError(
            f"`{word[:LONGEST]}` is no dtype of a tensor: matrix units round float32 operands to"
            " its 10 bits of mantissa, and their results are float32; no encoded document lists"
            " casts from or to it, so ask about float32"
        )


def _plain(word: str) -> str:
    """A spelling without prefixes, separators and upper case, which do not matter."""
    bare = PREFIX.sub("", PREFIX.sub("", word)).removesuffix("()")
    return BYTE_ORDER.sub("<", re.sub(r"[_-]", "", bare).lower())


@cache
def _spellings() -> dict[str, tuple[str, ...]]:
    """The dtypes of each spelling; the name of a dtype means itself alone."""
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
    """The names as choices: ``a, b or c``."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
