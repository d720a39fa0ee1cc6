"""Makes the calls of the array API standard, which are functions of a library's namespace.

A document writes every call as a method of its receiver; here the receiver is the first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.adapters.calls import PLAIN_ARGUMENTS, ArgumentTexts, arguments_text
from oracles.adapters.script_text import bits_statement
from oracles.adapters.scripted import function_of
from oracles.memory_layouts import copied
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.cases import Call, Case
from specs.formats import format_named
from specs.loader import document_named

CASTS, CALLS = "array-api-astype", "array-api-astype-calls"
"""The documents of the standard's ``astype``."""


def standard_claims(version: str, documents: Sequence[str] = (CASTS, CALLS)) -> tuple[str, ...]:
    """Return the claims of a library that declares this version of the array API standard.

    It claims no document that does not describe this version.
    """
    return tuple(
        f"{document}:{version}"
        for document in documents
        if version in document_named(document).entry.versions
    )


@dataclass(frozen=True)
class Namespace:
    """How a library that has the standard's functions writes them, and what refusals call it.

    ``framework`` is its name in refusals, ``name`` that of its module in scripts, and ``header`` a
    script's first lines, with places for ``version`` and ``case``. ``array`` is the expression of
    an array made from ``bits``, with a place for the dtype. ``read`` is that of a numpy view in an
    array's own memory, with a place for the array.
    """

    framework: str
    header: str
    name: str
    array: str
    read: str

    def make(
        self,
        names: Mapping[str, Any],
        call: Call,
        bits: Mapping[str, Bits],
        require_dtype: Callable[[str], Any],
        context: AbstractContextManager[Any],
    ) -> Returned:
        """Make a call of ``astype`` within ``context``; return its result and the array after it.

        The library's expressions use the variables ``names``. ``bits`` has the array's patterns
        under its member's name. ``require_dtype`` raises Unsupported for a dtype that the library
        lacks. This method does so for kinds of arguments that the library lacks, and for any call
        but an ``astype`` of a tensor on the CPU.
        """
        self._require_astype(self.framework, call)
        [member] = call.members
        for argument in (*call.args, *(each for _, each in call.kwargs)):
            if argument.kind == "dtype":
                require_dtype(argument.value)
        require_dtype(member.dtype)
        x_text, y_text = self._texts(call, member.dtype)
        x = function_of({**names}, "bits", "", x_text)(copied(bits[member.name]))
        with context:
            y = function_of({**names}, "x", "", y_text)(x)
        read = function_of({**names}, "x", "", self.read.format("x"))
        before, after = read(x), read(y)
        return Returned(
            is_receiver=y is x,
            shares_memory=np.shares_memory(before, after),
            tensors={"": _tensor(after)},
            receiver={"": _tensor(before)},
        )

    def call_script(self, version: str, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes a call and prints its result and whether memory is shared.

        Raises Unsupported unless it is an ``astype`` of a tensor on the CPU, with kinds of
        arguments that the library has.
        """
        self._require_astype(self.framework, call)
        [member] = call.members
        x_text, y_text = self._texts(call, member.dtype)
        read_x, read_y = self.read.format("x"), self.read.format("y")
        return (
            self.header.format(version=version, case=case)
            + f"{bits_statement(member.dtype, bits[member.name])}\n"
            + f"x = {x_text}\n"
            + f"y = {y_text}\n"
            + 'print("the array itself:", y is x)\n'
            + f'print("its memory:", np.shares_memory({read_x}, {read_y}))\n'
            + "print(y.dtype, y)\n"
        )

    def _texts(self, call: Call, dtype: str) -> tuple[str, str]:
        """Return the expression of the array, and that of the call on it under the name x.

        Raises Unsupported for a kind of argument that the library lacks.
        """
        texts: ArgumentTexts = {**PLAIN_ARGUMENTS, "dtype": lambda dtype: f"{self.name}.{dtype}"}
        refusal = f"{self.framework} has no argument of the kind `{{}}`"
        arguments = ", ".join(filter(None, ["x", arguments_text(call, texts, refusal)]))
        return self.array.format(dtype), f"{self.name}.astype({arguments})"

    @staticmethod
    def _require_astype(framework: str, call: Call) -> None:
        if (call.receiver, call.method, call.device) != ("tensor", "astype", "cpu"):
            raise Unsupported(f"{framework} has no {call.receiver} with a method {call.method}")


def _tensor(array: Any) -> Tensor:
    dtype = array.dtype.name
    return Tensor(dtype, "cpu", np.asarray(array).view(format_named(dtype).storage))
