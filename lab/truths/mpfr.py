"""GNU MPFR, the library in the wheel of gmpy2, called from compiled loops.

Floats are rounded as MPFR's manual emulates a format: to its precision and smallest exponent, then
by ``mpfr_subnormalize``. The exponent has no upper end, so that overflow shows.
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from importlib.metadata import distribution, version
from typing import Any

import numpy as np

from lab.truths.questions import Answers, Patterns, Question
from lab.truths.values import Values, as_integers, bounded, values_of
from specs.formats import Format
from specs.model.vocabulary import Rounding

MODES: dict[Rounding, int] = {"nearest-even": 0, "toward-zero": 1, "ceil": 2, "floor": 3}
"""MPFR's rounding modes; it has nearest with ties away for integers only."""
ADDRESS, DOUBLE, LONG, UNSIGNED, INT = (
    ctypes.c_size_t, ctypes.c_double, ctypes.c_long, ctypes.c_ulong, ctypes.c_int
)  # fmt: skip
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "mpfr_init2": (None, [ADDRESS, LONG]),
    "mpfr_set_emin": (INT, [LONG]),
    "mpfr_get_emin": (LONG, []),
    "mpfr_get_emin_min": (LONG, []),
    "mpfr_set_d": (INT, [ADDRESS, DOUBLE, INT]),
    "mpfr_set_si": (INT, [ADDRESS, LONG, INT]),
    "mpfr_set_ui": (INT, [ADDRESS, UNSIGNED, INT]),
    "mpfr_subnormalize": (INT, [ADDRESS, INT, INT]),
    "mpfr_get_d": (DOUBLE, [ADDRESS, INT]),
    "mpfr_add": (INT, [ADDRESS, ADDRESS, ADDRESS, INT]),
    "mpfr_div_2ui": (INT, [ADDRESS, ADDRESS, UNSIGNED, INT]),
    "mpfr_cmpabs": (INT, [ADDRESS, ADDRESS]),
    "mpfr_rint": (INT, [ADDRESS, ADDRESS, INT]),
    "mpfr_round": (INT, [ADDRESS, ADDRESS]),
}
SIZE_OF_NUMBER = 32
"""Bytes of an ``mpfr_t``: precision, sign, exponent and a pointer, on 64-bit machines."""
WIDE = 128
"""Bits that hold every input, and every sum of two results, exactly."""


class Mpfr:
    """Round by MPFR. What it shows to be out of range is clamped, wrapped or made infinite here.

    It has the nearest with ties away for integers only. For floats, it compares the value with the
    midpoint of the neighbors to which it rounds toward zero and away from zero.
    """

    name = "MPFR"
    package = "gmpy2"
    most_inputs: int | None = None

    def version(self) -> str:
        found = importlib.import_module("gmpy2").mpfr_version().removeprefix("MPFR ")
        return f"{found} (gmpy2 {version('gmpy2')})"

    def can_answer(self, question: Question) -> bool:
        if question.rounding == "odd" or not question.target.is_numeric:
            return False
        if question.target.kind == "float":
            return question.overflow != "wrap"
        return question.target.kind == "integer" and question.source.kind == "float"

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        values = values_of(question.source, patterns)
        rounded = np.empty(values.size)
        if question.target.is_integral:
            _loops()["to_integer"](values, rounded, *_numbers(WIDE), _mode(question))
            return as_integers(question, rounded)
        _round_to_float(question, values, rounded)
        infinite = np.isinf(values)
        return bounded(question, rounded, infinite)


def _mode(question: Question) -> int:
    return MODES.get(question.rounding, -1)


def _round_to_float(question: Question, values: Values, rounded: Values) -> None:
    library, loops = _library(), _loops()
    numbers = _numbers(question.target.precision)
    setter = {"f": "set_d", "i": "set_si", "u": "set_ui"}[values.dtype.kind]
    least, before = _least_exponent(question.target), library.mpfr_get_emin()
    try:
        if question.rounding == "nearest-away":
            loops["away", setter](values, rounded, *numbers, least, library.mpfr_get_emin_min())
        else:
            library.mpfr_set_emin(least)
            loops["round", setter](values, rounded, numbers[0], _mode(question))
    finally:
        library.mpfr_set_emin(before)


def _least_exponent(target: Format) -> int:
    """The exponent of the smallest value, plus one because MPFR's significands are below one.

    A format without zero gets no least exponent, so that values below its smallest one show.
    """
    if target.entry.zero == "none":
        return int(_library().mpfr_get_emin_min())
    return target.lowest_exponent - target.entry.mantissa + 1


@cache
def _library() -> Any:
    """The libmpfr that gmpy2 itself has loaded."""
    importlib.import_module("gmpy2")
    files = distribution("gmpy2").files or []
    [path] = [file.locate() for file in files if file.name.startswith("libmpfr")]
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@cache
def _numbers(precision: int) -> tuple[int, int, int, int]:
    """Addresses of numbers to compute with: two of a precision, two that hold inputs exactly."""
    addresses = []
    for bits in (precision, precision, WIDE, WIDE):
        memory = ctypes.create_string_buffer(SIZE_OF_NUMBER)
        _KEPT.append(memory)
        addresses.append(ctypes.addressof(memory))
        _library().mpfr_init2(addresses[-1], bits)
    first, second, third, fourth = addresses
    return first, second, third, fourth


_KEPT: list[Any] = []
"""The memory of numbers, which must outlive their addresses."""


@cache
def _loops() -> dict[Any, Any]:
    """Compile loops over arrays: ``to_integer``, and two for each way to set a number.

    The keys of these are pairs, such as ``("round", "set_d")``: ``round`` rounds in a mode of MPFR,
    and ``away`` to nearest with ties away from zero.
    """
    numba: Any = importlib.import_module("numba")
    library = _library()
    set_d, subnormalize, get_d = library.mpfr_set_d, library.mpfr_subnormalize, library.mpfr_get_d
    set_emin, add, halve = library.mpfr_set_emin, library.mpfr_add, library.mpfr_div_2ui
    compare, rint, to_nearest = library.mpfr_cmpabs, library.mpfr_rint, library.mpfr_round
    nearest, zero, away_from_zero = 0, 1, 4

    def round_with(assign: Any) -> Any:
        @numba.njit  # type: ignore[untyped-decorator]
        def loop(values: Any, rounded: Any, number: Any, mode: Any) -> None:
            for at in range(values.size):
                inexact = assign(number, values[at], mode)
                subnormalize(number, inexact, mode)
                rounded[at] = get_d(number, nearest)

        return loop

    def away_with(assign: Any) -> Any:
        """Return a loop that rounds to the nearest value, and midpoints away from zero."""

        @numba.njit  # type: ignore[untyped-decorator]
        def loop(
            values: Any, rounded: Any, low: Any, high: Any, exact: Any, middle: Any,
            least: Any, least_of_all: Any,
        ) -> None:  # fmt: skip
            for at in range(values.size):
                set_emin(least)
                subnormalize(low, assign(low, values[at], zero), zero)
                subnormalize(high, assign(high, values[at], away_from_zero), away_from_zero)
                set_emin(least_of_all)
                assign(exact, values[at], nearest)
                add(middle, low, high, nearest)
                halve(middle, middle, 1, nearest)
                if compare(exact, middle) >= 0:
                    rounded[at] = get_d(high, nearest)
                else:
                    rounded[at] = get_d(low, nearest)

        return loop

    @numba.njit  # type: ignore[untyped-decorator]
    def to_integer(
        values: Any, rounded: Any, number: Any, unused: Any, exact: Any, other: Any, mode: Any
    ) -> None:
        for at in range(values.size):
            set_d(exact, values[at], nearest)
            if mode < 0:
                to_nearest(number, exact)
            else:
                rint(number, exact, mode)
            rounded[at] = get_d(number, nearest)

    setters = {"set_d": set_d, "set_si": library.mpfr_set_si, "set_ui": library.mpfr_set_ui}
    loops: dict[Any, Any] = {"to_integer": to_integer}
    for name, assign in setters.items():
        loops["round", name] = round_with(assign)
        loops["away", name] = away_with(assign)
    return loops
