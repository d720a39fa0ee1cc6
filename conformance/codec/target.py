"""The target of ``castigate codec``: a function in a shared library, a C header, or Python."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specs.errors import CastigateError

HEADERS = (".h", ".c", ".hpp", ".hh", ".hxx", ".cpp", ".cc", ".cxx")
CPLUSPLUS = (".hpp", ".hh", ".hxx", ".cpp", ".cc", ".cxx")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
C_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*", re.ASCII)
USE = "py:module:function, path.py:function, c:header.h:function or c:./library.so:function"


@dataclass(frozen=True)
class CodecTarget:
    """A function and where it is: the path of a header or library, or a Python module or path."""

    kind: Literal["header", "library", "python"]
    where: str
    function: str

    @property
    def text(self) -> str:
        """The target as the command takes it."""
        prefix = "py" if self.kind == "python" else "c"
        return f"{prefix}:{self.where}:{self.function}"

    @property
    def is_cplusplus(self) -> bool:
        """Whether a header is for a compiler of C++."""
        return self.kind == "header" and Path(self.where).suffix in CPLUSPLUS


def target_named(text: str) -> CodecTarget:
    """Parse a TARGET; raise CastigateError with what is wrong with it."""
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
        raise CastigateError(f"target `{text}`: there is no file {where}")
    if prefix == "py":
        return CodecTarget("python", where, function)
    return CodecTarget("header" if path.suffix in HEADERS else "library", where, function)
