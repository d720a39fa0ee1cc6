"""The base class of adapters whose casts are loops in C or C++, a library for each pair."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.bound_sweep import BoundLoop
from oracles.memory_layouts import in_huge_pages
from oracles.protocol import Bits, Bound
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# {name} {{version}}: {{case}}
import ctypes
import subprocess
import tempfile
{imports}import numpy as np

"""
LOOP = '''\
code = """
{before}void cast(long n, const {source} *__restrict x, {target} *__restrict y) {{
    for (long i = 0; i < n; i++) y[i] = {answer};
}}
"""
with tempfile.TemporaryDirectory() as folder:
    library = folder + "/cast.so"
    command = {command}
    command += ["-shared", "-fPIC", "-x", "{language}", "-", "-o", library]
    subprocess.run(command, input=code.encode(), check=True)
    cast = ctypes.CDLL(library).cast
cast.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
'''
CALL = "y = np.empty(x.shape, np.{storage})\ncast(x.size, x.ctypes.data, y.ctypes.data)\n"


@dataclass(frozen=True)
class Loop:
    """The types of a loop's elements, and the expression of an answer to ``x[i]``."""

    source: str
    target: str
    answer: str
    before: str = "#include <stdint.h>\n"
    """The lines of C before the function."""


class CompiledLoops(Scripted):
    """Casts by loops that a compiler makes libraries of; a subclass writes their expressions."""

    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "a compiled cast"}
    language: ClassVar[str] = "c"

    def __init__(self, imports: str = "", **imported: Any) -> None:
        super().__init__(ctypes=ctypes, subprocess=subprocess, tempfile=tempfile, **imported)
        self.header = HEADER.format(name=self.name, imports=imports)

    @abstractmethod
    def loop(self, case: Case) -> Loop:
        """Return the loop of a case, which ``require`` does not refuse."""

    @abstractmethod
    def command_text(self) -> str:
        """Return the Python expression of the compiler's command and its flags."""

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a contiguous copy of ``bits``: C reads plain memory."""
        return "bits.copy()"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns, into which the loop writes."""
        return "y"

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that compile the loop of a pair once, and call it."""
        loop = self.loop(case)
        once = LOOP.format(
            before=loop.before,
            source=loop.source,
            target=loop.target,
            answer=loop.answer,
            command=self.command_text(),
            language=self.language,
        )
        return Statements(CALL.format(storage=format_named(case.target).storage), once)

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call of the loop from ``bits`` into an array that calls reuse.

        Raises Unsupported as ``cast`` does.
        """
        self.require("cast", case)
        if not bits.flags.c_contiguous:
            return partial(self.cast, case, bits)
        loop = self.prepared(self.steps("cast", case, None).once, None)["cast"]
        answers = in_huge_pages(len(bits), format_named(case.target).storage)
        return BoundLoop(loop, bits, answers)
