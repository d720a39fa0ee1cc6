"""Makes the calls of the array API standard, which are functions of a library's namespace.

A document writes every call as a method of its receiver; here the receiver is the first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.adapters.calls import WORD_VALUES, ArgumentBuilders, arguments
from oracles.adapters.script_text import bits_statement
from oracles.memory_layouts import copied
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.calls import Argument, Call
from specs.cases import Case
from specs.formats import format_named
from specs.loader import document_named

CASTS, CALLS = "array-api-astype", "array-api-astype-calls"
"""The documents of the standard."""


def standard_claims(version: str) -> tuple[str, ...]:
    """Return the claims of a library that declares a version of the array API standard."""
    known = document_named(CASTS).entry.versions
    return tuple(f"{document}:{version}" for document in (CASTS, CALLS)) if version in known else ()


@dataclass(frozen=True)
class Namespace:
    """A library that has the standard's functions, and how its arrays are made and read.

    ``array`` makes an array of a dtype from bits. ``read`` returns a numpy view in the array's own
    memory, so that the adapter can tell whether two arrays share memory.
    """

    framework: str
    astype: Callable[..., Any]
    dtype: Callable[[str], Any]
    array: Callable[[str, Bits], Any]
    read: Callable[[Any], Any]

    def make(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call of ``astype``, and return its result and the array after it."""
        require_astype(self.framework, call)
        [member] = call.members
        x = self.array(member.dtype, copied(bits[member.name]))
        builders: ArgumentBuilders = {"dtype": self.dtype, "word": WORD_VALUES.__getitem__}
        args, kwargs = arguments(self.framework, builders, call)
        y = self.astype(x, *args, **kwargs)
        before, after = self.read(x), self.read(y)
        return Returned(
            is_receiver=y is x,
            shares_memory=np.shares_memory(before, after),
            tensors={"": _tensor(after)},
            receiver={"": _tensor(before)},
        )


def require_astype(framework: str, call: Call) -> None:
    """Raise Unsupported unless a call is ``astype`` of a tensor on the CPU."""
    if (call.receiver, call.method, call.device) != ("tensor", "astype", "cpu"):
        raise Unsupported(f"{framework} has no {call.receiver} with a method {call.method}")


def _tensor(array: Any) -> Tensor:
    dtype = array.dtype.name
    return Tensor(dtype, "cpu", np.asarray(array).view(format_named(dtype).storage))


@dataclass(frozen=True)
class NamespaceSyntax:
    """How a script imports a library, and how it writes an array, a dtype and numpy's view."""

    header: str
    namespace: str
    array: str
    read: str

    def call_script(self, version: str, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes a call and prints its result and whether memory is shared."""
        require_astype(self.namespace, call)
        [member] = call.members
        written = [self._argument(each) for each in call.args]
        written += [f"{name}={self._argument(each)}" for name, each in call.kwargs]
        read_x, read_y = self.read.format("x"), self.read.format("y")
        return (
            self.header.format(version=version, case=case)
            + f"{bits_statement(member.dtype, bits[member.name])}\n"
            + f"x = {self.array.format(member.dtype)}\n"
            + f"y = {self.namespace}.astype({', '.join(['x', *written])})\n"
            + 'print("the array itself:", y is x)\n'
            + f'print("its memory:", np.shares_memory({read_x}, {read_y}))\n'
            + "print(y.dtype, y)\n"
        )

    def _argument(self, argument: Argument) -> str:
        if argument.kind == "dtype":
            return f"{self.namespace}.{argument.value}"
        return repr(WORD_VALUES[argument.value])
