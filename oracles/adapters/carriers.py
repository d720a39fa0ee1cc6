"""The base class of adapters that carry values: casts whose road is another operation.

An adapter has a table of carriers, or one per document. Each carrier is a Python expression in
``x``, a row, or statements that bind ``y``. ``{source}`` and ``{target}`` in it stand for the
expressions of the case's dtypes. Roads that compile compile expressions; statements, such as those
that set a mode first, are not compiled: such roads decline them.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from typing import ClassVar

from oracles.adapters.script_text import print_statement
from oracles.adapters.scripted import (
    Function,
    Scripted,
    ScriptedOperation,
    Statements,
    call_steps,
    function_of,
)
from oracles.protocol import Bits, Unsupported
from specs.cases import CARRIER, Case

BINDS = "y = "
"""Statements contain this text; an entry without it is an expression."""
CHECK = """\
if y.dtype != {target}:
    raise TypeError(f"the result has dtype {{y.dtype}}")
"""
"""A result of another dtype is no answer: its bits would be read as those of the target."""


class Carrying(Scripted):
    """Carries rows by the expressions and statements of a table."""

    carriers: ClassVar[Mapping[str, str]]
    carriers_of: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """By document, the table that its cases use in place of ``carriers``."""
    maker: tuple[str, str] = ("", "")
    """The function that compiles a carrier, such as ``jax.jit``, and its further arguments."""

    @abstractmethod
    def dtype_text(self, dtype: str) -> str:
        """Return the Python expression of a dtype of the framework."""

    def carry(self, case: Case, bits: Bits) -> Bits:
        """Return the patterns of ``bits`` after the operation that the case names.

        Raises Unsupported as ``require`` does, and TypeError for a result of another dtype.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.answer("carry", case, bits).copy()

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for a carrier that the table lacks, or that cannot be compiled."""
        if operation != "carry":
            super().require_parameters(operation, case)
            return
        carrier, table = case.mode.get(CARRIER, ""), self._table(case)
        if carrier not in table:
            raise Unsupported(f"{self.name} has no carrier {carrier}")
        if self.maker[0] and BINDS in table[carrier]:
            raise Unsupported(f"{self.maker[0]} compiles no statements such as {carrier}")

    def carry_steps(self, case: Case) -> Statements:
        """Return the statements that bind ``y`` to the carried ``x``, and check its dtype."""
        dtypes = {"source": self.dtype_text(case.source), "target": self.dtype_text(case.target)}
        text = self._table(case)[case.mode[CARRIER]].format(**dtypes)
        made = Statements(text) if BINDS in text else call_steps(text, *self.maker)
        return Statements(made.each + CHECK.format(**dtypes), made.once)

    def _table(self, case: Case) -> Mapping[str, str]:
        return self.carriers_of.get(case.document, self.carriers)

    def _make(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Function:
        if operation != "carry":
            return super()._make(operation, case, form)
        self.require(operation, case)
        steps = self.carry_steps(case)
        return function_of(self.prepared(steps.once, form), "x", steps.each, "y")

    def reproduce_carry(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that carries ``bits``; raise Unsupported as ``carry``."""
        self.require("carry", case)
        pair = case.source, case.target
        script = self.script(case, pair, self.carry_steps(case), bits)
        return script + print_statement(case.source, case.target, bits)
