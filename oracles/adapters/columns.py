"""The base class of adapters of tables: their columns have no shape, and may hold nulls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from oracles.adapters.scripted import Function, Scripted, ScriptedOperation, Statements
from oracles.protocol import Bits, Unsupported
from specs.cases import Case


class Columns(Scripted):
    """Casts of columns: a tensor goes in and comes out as one row of its elements.

    An option of a cast is a parameter of the library's own document.
    """

    title: ClassVar[str]
    """The library's name in messages."""
    dtypes: ClassVar[Mapping[str, str]]
    """By dtype, the library's name for it."""
    options: ClassVar[Mapping[str, str]]
    """By option, its value for the cases of all other documents."""

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that the library has no columns of."""
        if dtype not in self.dtypes:
            raise Unsupported(f"{self.title} has no dtype {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that are neither options nor what a plain cast can answer."""
        if not case.mode.keys() <= self.options.keys():
            super().require_parameters(operation, case)

    def chosen(self, case: Case) -> dict[str, str]:
        """Return the value of each option in a case."""
        return {name: case.mode.get(name, value) for name, value in self.options.items()}

    def run(self, make: Function, case: Case, bits: Bits) -> Bits:
        """Return the patterns of what ``make`` returns for a column, in the shape of ``bits``.

        A cast that changes nothing may return its input.
        """
        answers = super().run(make, case, bits).reshape(bits.shape)
        return answers.copy() if np.may_share_memory(answers, bits) else answers

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a round trip through a column, in their shape.

        Raises Unsupported if the library lacks the dtype.
        """
        return super().identity(dtype, bits).reshape(bits.shape)

    def script(self, asked: object, pair: tuple[str, str], steps: Statements, bits: Bits) -> str:
        """Return a script that ends with the statement that binds ``answers``, in their shape."""
        shape = "" if bits.ndim == 1 else "answers = answers.reshape(bits.shape)\n"
        return super().script(asked, pair, steps, bits) + shape
