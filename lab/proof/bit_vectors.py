"""The solver's bit vectors with Python's operators, so that statements read like arithmetic."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal

NoAnswer = Literal["none", "out of time"]
"""Why the solver returns no value: none exists, or the time limit was reached."""


class Solving:
    """A solver session: makes terms, and looks for a value for which a statement holds."""

    def __init__(self) -> None:
        self.api: Any = importlib.import_module("bitwuzla")
        self.manager: Any = self.api.TermManager()

    def make(self, kind: str, *terms: Any, indices: tuple[int, ...] = ()) -> Any:
        """Make a term from other terms, by the name of its kind in the solver."""
        return self.manager.mk_term(getattr(self.api.Kind, kind), list(terms), list(indices))

    def unknown(self, name: str, width: int) -> Vector:
        """Make a vector of ``width`` bits that may have any value."""
        return Vector(self, self.manager.mk_const(self.manager.mk_bv_sort(width), name), width)

    def vector(self, value: int, width: int) -> Vector:
        """Make the constant ``value``, modulo ``2**width``."""
        sort = self.manager.mk_bv_sort(width)
        return Vector(self, self.manager.mk_bv_value(sort, value % (1 << width)), width)

    def truth(self, value: bool) -> Truth:
        """Make a statement that always holds, or never."""
        return Truth(self, self.manager.mk_true() if value else self.manager.mk_false())

    def any_of(self, truths: list[Truth]) -> Truth:
        """State that at least one of several statements holds."""
        result = self.truth(False)
        for truth in truths:
            result = result | truth
        return result

    def all_of(self, truths: list[Truth]) -> Truth:
        """State that all of several statements hold."""
        result = self.truth(True)
        for truth in truths:
            result = result & truth
        return result

    def find(self, statement: Truth, unknown: Vector, seconds: float) -> int | NoAnswer:
        """Return a value of ``unknown`` for which a statement holds, or why none was found."""
        options = self.api.Options()
        options.set(self.api.Option.PRODUCE_MODELS, True)
        options.set(self.api.Option.TIME_LIMIT_PER, max(1, int(seconds * 1000)))
        solver = self.api.Bitwuzla(self.manager, options)
        solver.assert_formula(statement.term)
        match solver.check_sat():
            case self.api.Result.SAT:
                return int(solver.get_value(unknown.term).value(10))
            case self.api.Result.UNSAT:
                return "none"
        return "out of time"


@dataclass(frozen=True, eq=False)
class Truth:
    """A statement about unknown vectors."""

    solving: Solving
    term: Any

    def __and__(self, other: Truth | bool) -> Truth:
        return self._with("AND", other)

    def __or__(self, other: Truth | bool) -> Truth:
        return self._with("OR", other)

    def __xor__(self, other: Truth | bool) -> Truth:
        return self._with("XOR", other)

    def __invert__(self) -> Truth:
        return Truth(self.solving, self.solving.make("NOT", self.term))

    def implies(self, other: Truth) -> Truth:
        """The statement that the other one holds wherever this one does."""
        return ~self | other

    def select(self, then: Vector, otherwise: Vector) -> Vector:
        """The vector ``then`` where this holds, else ``otherwise``."""
        term = self.solving.make("ITE", self.term, then.term, otherwise.term)
        return Vector(self.solving, term, then.width)

    def choose(self, then: Truth, otherwise: Truth) -> Truth:
        """The statement ``then`` where this holds, else ``otherwise``."""
        return Truth(self.solving, self.solving.make("ITE", self.term, then.term, otherwise.term))

    def _with(self, kind: str, other: Truth | bool) -> Truth:
        right = self.solving.truth(other) if isinstance(other, bool) else other
        return Truth(self.solving, self.solving.make(kind, self.term, right.term))


@dataclass(frozen=True, eq=False)
class Vector:
    """A bit vector, read as an unsigned number; operators widen the narrower operand."""

    solving: Solving
    term: Any
    width: int

    def wide(self, width: int) -> Vector:
        """The same number in at least ``width`` bits."""
        if width <= self.width:
            return self
        extra = (width - self.width,)
        term = self.solving.make("BV_ZERO_EXTEND", self.term, indices=extra)
        return Vector(self.solving, term, width)

    def wide_signed(self, width: int) -> Vector:
        """Sign-extend to ``width`` bits."""
        extra = (width - self.width,)
        term = self.solving.make("BV_SIGN_EXTEND", self.term, indices=extra)
        return Vector(self.solving, term, width)

    def low(self, width: int) -> Vector:
        """The lowest ``width`` bits."""
        return self.bits(width - 1, 0)

    def bits(self, last: int, first: int) -> Vector:
        """The bits from index ``first`` to index ``last``, both included."""
        term = self.solving.make("BV_EXTRACT", self.term, indices=(last, first))
        return Vector(self.solving, term, last - first + 1)

    def __and__(self, other: Vector | int) -> Vector:
        return self._with("BV_AND", other)

    def __or__(self, other: Vector | int) -> Vector:
        return self._with("BV_OR", other)

    def __xor__(self, other: Vector | int) -> Vector:
        return self._with("BV_XOR", other)

    def __add__(self, other: Vector | int) -> Vector:
        return self._with("BV_ADD", other)

    def __sub__(self, other: Vector | int) -> Vector:
        return self._with("BV_SUB", other)

    def __lshift__(self, other: Vector | int) -> Vector:
        return self._with("BV_SHL", other)

    def __rshift__(self, other: Vector | int) -> Vector:
        return self._with("BV_SHR", other)

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        assert isinstance(other, Vector | int)
        return self._compare("EQUAL", other)

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return ~(self == other)

    def __lt__(self, other: Vector | int) -> Truth:
        return self._compare("BV_ULT", other)

    def __gt__(self, other: Vector | int) -> Truth:
        return self._compare("BV_UGT", other)

    def __le__(self, other: Vector | int) -> Truth:
        return self._compare("BV_ULE", other)

    def __ge__(self, other: Vector | int) -> Truth:
        return self._compare("BV_UGE", other)

    def _pair(self, other: Vector | int) -> tuple[Vector, Vector]:
        right = self.solving.vector(other, self.width) if isinstance(other, int) else other
        width = max(self.width, right.width)
        return self.wide(width), right.wide(width)

    def _with(self, kind: str, other: Vector | int) -> Vector:
        left, right = self._pair(other)
        return Vector(self.solving, self.solving.make(kind, left.term, right.term), left.width)

    def _compare(self, kind: str, other: Vector | int) -> Truth:
        left, right = self._pair(other)
        return Truth(self.solving, self.solving.make(kind, left.term, right.term))
