"""Numpy's operations on terms of the solver, so that the text of kernels in float64 can be proved.

A module of kernels is executed once more with another ``np``: an array of one element stands for
any element, and its value is a term. The operations are those of SMT-LIB's theory of floats, in
float64 and to nearest even, as the hardware has them. Operations on arrays without terms, such as
tables of constants, stay numpy's own.

An operation that is not modeled returns an unconstrained value, so that no proof relies on it:
``ldexp`` from or to a subnormal float64. ``any`` is true of every mask that is not constantly
false, so that the kernels take every path that an element may take.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any, Literal

import numpy as np

from lab.proof.bit_vectors import Solving, Truth, Vector

Kind = Literal["float", "narrow", "integer", "truth"]
"""The kinds of elements: a float64, a float of fewer bits, an integer of 64 bits, a boolean."""
WIDEST_FIRST: tuple[Kind, ...] = ("float", "integer", "truth")
"""The kinds that operands of different kinds are converted to."""
EXPONENT, PRECISION, MANTISSA, WIDTH = 11, 53, 52, 64
BIAS = 1022
"""The exponent field of the fractions that ``frexp`` returns, which lie from 1/2 to 1."""
SCALE_UP = 54
"""The power of two that makes every subnormal float64 a normal one."""
ARITHMETIC = {
    "add": ("FP_ADD", "BV_ADD"),
    "sub": ("FP_SUB", "BV_SUB"),
    "mul": ("FP_MUL", "BV_MUL"),
    "truediv": ("FP_DIV", ""),
}
COMPARISONS = {
    "lt": ("FP_LT", "BV_SLT"),
    "le": ("FP_LEQ", "BV_SLE"),
    "gt": ("FP_GT", "BV_SGT"),
    "ge": ("FP_GEQ", "BV_SGE"),
    "eq": ("FP_EQUAL", "EQUAL"),
}
LOGIC = {"and": ("BV_AND", "AND"), "or": ("BV_OR", "OR")}


class Tracing:
    """One execution of kernels on terms, and the facts that define its auxiliary unknowns."""

    def __init__(self, solving: Solving) -> None:
        self.solving = solving
        self.facts: list[Truth] = []
        self.nearest_even = solving.manager.mk_rm_value(solving.api.RoundingMode.RNE)
        self.unknowns = 0

    def unknown(self, kind: Kind) -> Array:
        """Make an unconstrained element of a kind."""
        self.unknowns += 1
        if kind == "truth":
            sort = self.solving.manager.mk_bool_sort()
            return Array(self, kind, self.solving.manager.mk_const(sort, f"any{self.unknowns}"))
        vector = self.solving.unknown(f"any{self.unknowns}", WIDTH)
        return self.of_bits(vector) if kind == "float" else Array(self, kind, vector.term)

    def of_bits(self, bits: Vector) -> Array:
        """The float64 of a pattern."""
        term = self.solving.make("FP_TO_FP_FROM_BV", bits.term, indices=(EXPONENT, PRECISION))
        return Array(self, "float", term, bits)

    def pattern(self, vector: Vector) -> Array:
        """A pattern of fewer bits, as arrays of unsigned integers hold it."""
        return Array(self, "integer", vector.wide(WIDTH).term)

    def constant(self, value: Any, kind: Kind) -> Array:
        """A constant as an element of a kind."""
        match kind:
            case "truth":
                return Array(self, kind, self.solving.truth(bool(value)).term)
            case "integer":
                return Array(self, kind, self.solving.vector(int(value), WIDTH).term)
        bits = int(np.float64(value).view(np.uint64))
        return self.of_bits(self.solving.vector(bits, WIDTH))

    def execute(self, module: ModuleType) -> ModuleType:
        """Execute the text of a module once more; return the copy, whose ``np`` works on terms."""
        traced = ModuleType(f"traced_{module.__name__.rpartition('.')[2]}")
        sys.modules[traced.__name__] = traced  # where dataclasses look for it
        exec(compile(text_of(module), traced.__name__, "exec"), traced.__dict__)
        traced.np = Numpy(self)  # type: ignore[attr-defined]
        return traced


def text_of(module: ModuleType) -> str:
    """The text of a module of kernels."""
    return inspect.getsource(module)


class Array:
    """An array of one element whose value is a term."""

    __array_ufunc__ = None
    shape: tuple[int, ...] = ()

    def __init__(self, trace: Tracing, kind: Kind, term: Any, bits: Vector | None = None) -> None:
        self.trace, self.kind, self.term, self._bits = trace, kind, term, bits

    @property
    def truth(self) -> Truth:
        """A boolean as a statement."""
        assert self.kind == "truth"
        return Truth(self.trace.solving, self.term)

    @property
    def vector(self) -> Vector:
        """An integer as a vector of 64 bits."""
        assert self.kind == "integer"
        return Vector(self.trace.solving, self.term, WIDTH)

    @property
    def bits(self) -> Vector:
        """The pattern of a float64; some pattern of a NaN."""
        assert self.kind == "float"
        if self._bits is None:
            self.trace.unknowns += 1
            bits = self.trace.solving.unknown(f"bits{self.trace.unknowns}", WIDTH)
            again = self.trace.of_bits(bits)
            self.trace.facts.append(
                Truth(self.trace.solving, self.trace.solving.make("EQUAL", again.term, self.term))
            )
            self._bits = bits
        return self._bits

    def make(self, kind: Kind, name: str, *terms: Any, indices: tuple[int, ...] = ()) -> Array:
        """An array of the term that an operation makes of other terms."""
        return Array(self.trace, kind, self.trace.solving.make(name, *terms, indices=indices))

    def as_kind(self, kind: Kind) -> Array:
        """The same element, converted as numpy converts it."""
        match self.kind, kind:
            case "truth", "integer" | "float":
                one, zero = (self.trace.constant(each, "integer") for each in (1, 0))
                return self.make("integer", "ITE", self.term, one.term, zero.term).as_kind(kind)
            case "integer", "float":
                shape, mode = (EXPONENT, PRECISION), self.trace.nearest_even
                return self.make(kind, "FP_TO_FP_FROM_SBV", mode, self.term, indices=shape)
            case "narrow", "float":
                shape, mode = (EXPONENT, PRECISION), self.trace.nearest_even
                return self.make(kind, "FP_TO_FP_FROM_FP", mode, self.term, indices=shape)
            case "float", "integer":
                mode = self.trace.solving.manager.mk_rm_value(
                    self.trace.solving.api.RoundingMode.RTZ
                )
                return self.make(kind, "FP_TO_SBV", mode, self.term, indices=(WIDTH,))
        assert self.kind == kind, f"{self.kind} as {kind}"
        return self

    def astype(self, dtype: Any) -> Array:
        """Convert to a dtype; an integer is wide enough for what the kernels hold in it."""
        wanted = np.dtype(dtype)
        return self.as_kind("float" if wanted.kind == "f" else "integer")

    def view(self, dtype: Any) -> Array:
        """The bits of a float64, or the narrower float of a pattern."""
        wanted = np.dtype(dtype)
        if wanted.kind != "f":
            return Array(self.trace, "integer", self.bits.term)
        exponent = {32: 8, 16: 5}[wanted.itemsize * 8]
        low = self.vector.low(wanted.itemsize * 8)
        shape = (exponent, low.width - exponent)
        return self.make("narrow", "FP_TO_FP_FROM_BV", low.term, indices=shape)

    def copy(self) -> Array:
        return Array(self.trace, self.kind, self.term, self._bits)

    def reshape(self, *shape: Any) -> Array:
        return self

    def any(self) -> bool:
        return bool(self.term != self.trace.solving.truth(False).term)

    def __setitem__(self, mask: Array, value: Any) -> None:
        chosen = where(mask, value, self).as_kind(self.kind)
        self.term, self._bits = chosen.term, chosen._bits

    def __add__(self, other: Any) -> Array:
        return _arithmetic("add", self, other)

    def __radd__(self, other: Any) -> Array:
        return _arithmetic("add", other, self)

    def __sub__(self, other: Any) -> Array:
        return _arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> Array:
        return _arithmetic("sub", other, self)

    def __mul__(self, other: Any) -> Array:
        return _arithmetic("mul", self, other)

    def __rmul__(self, other: Any) -> Array:
        return _arithmetic("mul", other, self)

    def __truediv__(self, other: Any) -> Array:
        return _arithmetic("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Array:
        return _arithmetic("truediv", other, self)

    def __and__(self, other: Any) -> Array:
        return _logic("and", self, other)

    def __rand__(self, other: Any) -> Array:
        return _logic("and", other, self)

    def __or__(self, other: Any) -> Array:
        return _logic("or", self, other)

    def __ror__(self, other: Any) -> Array:
        return _logic("or", other, self)

    def __lshift__(self, other: Any) -> Array:
        return _shift("BV_SHL", self, other)

    def __rlshift__(self, other: Any) -> Array:
        return _shift("BV_SHL", other, self)

    def __rshift__(self, other: Any) -> Array:
        return _shift("BV_ASHR", self, other)

    def __lt__(self, other: Any) -> Array:
        return _comparison("lt", self, other)

    def __le__(self, other: Any) -> Array:
        return _comparison("le", self, other)

    def __gt__(self, other: Any) -> Array:
        return _comparison("gt", self, other)

    def __ge__(self, other: Any) -> Array:
        return _comparison("ge", self, other)

    def __eq__(self, other: Any) -> Array:  # type: ignore[override]
        return _comparison("eq", self, other)

    def __ne__(self, other: Any) -> Array:  # type: ignore[override]
        return ~_comparison("eq", self, other)

    def __ior__(self, other: Any) -> Array:
        # In place, as numpy has it: what refers to the same array sees the change.
        self.term = (self | other).term
        return self

    def __invert__(self) -> Array:
        return Array(self.trace, "truth", (~self.truth).term)

    def __neg__(self) -> Array:
        if self.kind == "float":
            return self.make("float", "FP_NEG", self.term)
        return self.trace.constant(0, "integer") - self

    def __mod__(self, divisor: int) -> Array:
        assert divisor & (divisor - 1) == 0, "a power of two"
        return self & (divisor - 1)

    def __hash__(self) -> int:
        return id(self)


def _kind_of(value: Any) -> Kind:
    if isinstance(value, Array):
        return value.kind
    kinds: dict[str, Kind] = {"b": "truth", "f": "float"}
    return kinds.get(np.asarray(value).dtype.kind, "integer")


def _lifted(trace: Tracing, value: Any, kind: Kind) -> Array:
    return value.as_kind(kind) if isinstance(value, Array) else trace.constant(value, kind)


def _common(*values: Any) -> tuple[Kind, list[Array]]:
    """Return the common kind of some values, and the values converted to it."""
    trace = next(value.trace for value in values if isinstance(value, Array))
    kinds = [_kind_of(value) for value in values]
    kind = next(each for each in WIDEST_FIRST if each in kinds)
    return kind, [_lifted(trace, value, kind) for value in values]


def where(condition: Any, then: Any, otherwise: Any) -> Array:
    """Choose as ``numpy.where`` does, with a term among the three values."""
    trace = next(each.trace for each in (condition, then, otherwise) if isinstance(each, Array))
    mask = _lifted(trace, condition, _kind_of(condition))
    if mask.kind == "integer":
        mask = mask != 0
    kind = next(each for each in WIDEST_FIRST if each in map(_kind_of, (then, otherwise)))
    one, other = (_lifted(mask.trace, each, kind) for each in (then, otherwise))
    chosen = mask.make(kind, "ITE", mask.term, one.term, other.term)
    if kind == "float" and one._bits is not None and other._bits is not None:
        chosen._bits = mask.truth.select(one._bits, other._bits)
    return chosen


def _arithmetic(name: str, left: Any, right: Any) -> Array:
    kind, (one, other) = _common(left, right)
    if kind == "truth" or name == "truediv":
        kind = "float" if name == "truediv" else "integer"
        one, other = one.as_kind(kind), other.as_kind(kind)
    of_floats, of_integers = ARITHMETIC[name]
    if kind == "float":
        return one.make(kind, of_floats, one.trace.nearest_even, one.term, other.term)
    return one.make(kind, of_integers, one.term, other.term)


def _comparison(name: str, left: Any, right: Any) -> Array:
    kind, (one, other) = _common(left, right)
    if kind == "truth":
        kind, one, other = "integer", one.as_kind("integer"), other.as_kind("integer")
    return one.make("truth", COMPARISONS[name][kind != "float"], one.term, other.term)


def _logic(name: str, left: Any, right: Any) -> Array:
    kind, (one, other) = _common(left, right)
    if kind == "truth":
        # Simplify constants, so that ``any`` recognizes a path that no element takes.
        unit = one.trace.constant(name == "and", "truth").term
        null = one.trace.constant(name != "and", "truth").term
        if one.term == unit or other.term == null:
            return other
        if other.term == unit or one.term == null:
            return one
    return one.make(kind, LOGIC[name][kind == "truth"], one.term, other.term)


def _shift(name: str, left: Any, right: Any) -> Array:
    kind, (one, other) = _common(left, right)
    return one.make(kind, name, one.term, other.term)


class Table(np.ndarray[Any, Any]):
    """Constants that an element's value may select from."""

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, Array):
            return super().__getitem__(index)
        found: Any = self.item(0)
        for place in range(1, self.size):
            found = where(index == place, self.item(place), found)
        return found


def _is_plain(values: tuple[Any, ...]) -> bool:
    return not any(isinstance(value, Array) for value in values)


class Numpy:
    """Stands for the module ``numpy`` in kernels that run on terms."""

    def __init__(self, trace: Tracing) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        plain = getattr(np, name)
        own = getattr(type(self), f"_{name}", None)
        if own is None:
            return plain
        return lambda *values, **options: (
            plain(*values, **options) if _is_plain(values) else own(self, *values, **options)
        )

    def array(self, values: Any) -> Table:
        return np.array(values).view(Table)

    def full(self, shape: Any, value: Any, dtype: Any = np.int64) -> Array:
        assert shape == ()
        kind: Kind = {"b": "truth", "f": "float"}.get(np.dtype(dtype).kind, "integer")  # type: ignore[assignment]
        return self._trace.constant(value, kind)

    def zeros(self, shape: Any, dtype: Any = np.float64) -> Array:
        return self.full(shape, 0, dtype)

    def zeros_like(self, like: Array) -> Array:
        return self._trace.constant(0, like.kind)

    def _asarray(self, value: Array, dtype: Any = None) -> Array:
        return value

    def _ascontiguousarray(self, value: Array) -> Array:
        return value

    def _broadcast_to(self, value: Array, shape: Any) -> Array:
        return value

    def _where(self, mask: Any, then: Any, otherwise: Any) -> Array:
        return where(mask, then, otherwise)

    def _logical_not(self, value: Array) -> Array:
        return ~value

    def _isnan(self, value: Array) -> Array:
        return value.make("truth", "FP_IS_NAN", value.term)

    def _isinf(self, value: Array) -> Array:
        return value.make("truth", "FP_IS_INF", value.term)

    def _isfinite(self, value: Array) -> Array:
        return ~(self._isnan(value) | self._isinf(value))

    def _signbit(self, value: Array) -> Array:
        return value.make("truth", "FP_IS_NEG", value.term)

    def _abs(self, value: Array) -> Array:
        return value.make("float", "FP_ABS", value.term)

    def _rint(self, value: Array) -> Array:
        return self._whole(value, "RNE")

    def _floor(self, value: Array) -> Array:
        return self._whole(value, "RTN")

    def _ceil(self, value: Array) -> Array:
        return self._whole(value, "RTP")

    def _whole(self, value: Array, mode: str) -> Array:
        solving = self._trace.solving
        way = solving.manager.mk_rm_value(getattr(solving.api.RoundingMode, mode))
        return value.make("float", "FP_RTI", way, value.term)

    def _minimum(self, one: Any, other: Any) -> Array:
        return where(_comparison("lt", one, other), one, other)

    def _maximum(self, one: Any, other: Any) -> Array:
        return where(_comparison("gt", one, other), one, other)

    def _clip(self, value: Array, low: Any, high: Any) -> Array:
        return self._minimum(self._maximum(value, low), high)

    def _searchsorted(self, table: Any, value: Array, side: str = "left") -> Array:
        places = self._trace.constant(0, "integer")
        for entry in table.tolist():
            places = places + (value > entry if side == "left" else value >= entry)
        return places

    def _frexp(self, value: Array) -> tuple[Array, Array]:
        trace = self._trace
        is_low = value.make("truth", "FP_IS_SUBNORMAL", value.term)
        scaled = where(is_low, value * 2.0**SCALE_UP, value)
        bits = Array(trace, "integer", scaled.bits.term)
        mask = (1 << EXPONENT) - 1
        field = (bits >> MANTISSA) & mask
        fraction = trace.of_bits(((bits & ~(mask << MANTISSA)) | (BIAS << MANTISSA)).vector)
        exponent = field - where(is_low, BIAS + SCALE_UP, BIAS)
        is_special = (field == 0) | (field == mask)
        return where(is_special, value, fraction), where(is_special, 0, exponent)

    def _ldexp(self, value: Any, power: Any) -> Array:
        number = _lifted(self._trace, value, "float")
        bits = Array(self._trace, "integer", number.bits.term)
        mask = (1 << EXPONENT) - 1
        field = (bits >> MANTISSA) & mask
        after = field + power
        scaled = self._trace.of_bits(
            (bits + (_lifted(self._trace, power, "integer") << MANTISSA)).vector
        )
        is_same = (number == 0) | ~self._isfinite(number)
        is_normal = (field > 0) & (after > 0) & (after < mask)
        unknown = self._trace.unknown("float")
        return where(is_same, number, where(is_normal, scaled, unknown))

    def _nextafter(self, value: Array, toward: Any) -> Array:
        bits = Array(self._trace, "integer", value.bits.term)
        is_up = _comparison("gt", toward, value) == (value > 0)
        moved = self._trace.of_bits(where(is_up, bits + 1, bits - 1).vector)
        unknown = self._trace.unknown("float")
        return where(value == 0, unknown, moved)
