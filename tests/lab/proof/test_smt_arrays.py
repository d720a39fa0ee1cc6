"""Numpy's operations on terms of the solver give the same results as on numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("bitwuzla", reason="the proof needs a solver")

from lab.proof.bit_vectors import Solving, Truth
from lab.proof.smt_arrays import Array, Numpy, Table, Tracing

SECONDS = 3600.0
"""A time limit that no question reaches, on a busy machine either."""
TABLE = np.array([0.0, 0.5, 1.0, 1.0, 448.0])
VALUES = [
    0.0, -0.0, 1.0, -1.5, 2.5, -3.5, 0.3, 1e-40, 5e-324, -2.3e-308, 1e300, 448.0, 0.5, 6.7e19,
    -7.25, 2.0**-1022, float(2**53 - 1), float("inf"), float("-inf"), float("nan"),
]  # fmt: skip
FINITE = [value for value in VALUES if np.isfinite(value)]
SMALL = [value for value in FINITE if abs(value) < 2.0**62]

OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], list[float]]] = {
    "arithmetic": (lambda np_, v: (v + 0.1) * 3 - v / 7, VALUES),
    "comparisons": (lambda np_, v: (v < 1) | ((v >= 2.5) & (v != 448.0)), VALUES),
    "rint": (lambda np_, v: np_.rint(v), VALUES),
    "floor": (lambda np_, v: np_.floor(v), VALUES),
    "ceil": (lambda np_, v: np_.ceil(v), VALUES),
    "abs": (lambda np_, v: np_.abs(v), VALUES),
    "sign": (lambda np_, v: np_.signbit(v), VALUES[:-1]),
    "kinds": (lambda np_, v: np_.where(np_.isnan(v), 1, np_.where(np_.isinf(v), 2, 3)), VALUES),
    "fraction": (lambda np_, v: np_.frexp(v)[0], VALUES),
    "exponent": (lambda np_, v: np_.frexp(v)[1] + 0, FINITE),
    "ldexp": (lambda np_, v: np_.ldexp(v, -30), [v for v in VALUES if not 0 < abs(v) < 1e-290]),
    "ldexp of exponents": (
        lambda np_, v: np_.ldexp(v, 3 - np_.frexp(v)[1]),
        [v for v in FINITE if not 0 < abs(v) < 1e-290],
    ),
    "up": (lambda np_, v: np_.nextafter(v, np.inf), [v for v in FINITE if v]),
    "down": (lambda np_, v: np_.nextafter(v, -np.inf), [v for v in FINITE if v]),
    "bits": (lambda np_, v: (np_.ascontiguousarray(v).view(np.int64) >> 3) & 0xFFFF, FINITE),
    "integers": (lambda np_, v: ((v.astype(np.int64) << 2) - 5) % 8, SMALL),
    "there and back": (lambda np_, v: v.astype(np.int64).astype(np.float64), SMALL),
    "clip": (lambda np_, v: np_.clip(v.astype(np.int64), -3, 3), SMALL),
    "left": (lambda np_, v: np_.searchsorted(TABLE, v), FINITE),
    "right": (lambda np_, v: np_.searchsorted(TABLE, v, side="right"), FINITE),
    "table": (
        lambda np_, v: TABLE.view(Table)[np_.clip(v.astype(np.int64), 0, 4)],
        SMALL,
    ),
}


def is_same(trace: Tracing, found: Array, expected: Any) -> Truth:
    due = trace.constant(np.asarray(expected).item(), found.kind)
    return Truth(trace.solving, trace.solving.make("EQUAL", found.term, due.term))


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_numpy(name: str) -> None:
    operate, values = OPERATIONS[name]
    solving = Solving()
    trace = Tracing(solving)
    unlike = []
    at = solving.unknown("at", 8)
    with np.errstate(all="ignore"):
        for place, value in enumerate(values):
            found = operate(Numpy(trace), trace.constant(value, "float"))
            expected = operate(np, np.array(value))
            unlike.append((at == place) & ~is_same(trace, found, expected))
    place = solving.find(solving.all_of(trace.facts) & solving.any_of(unlike), at, SECONDS)
    assert place == "none", f"{name} of {values[int(place)]}"


def test_bits_of_narrow_floats() -> None:
    solving = Solving()
    trace = Tracing(solving)
    for dtype, code in ((np.float32, 0xC0490FDB), (np.float16, 0x3555), (np.float32, 1)):
        width = np.dtype(dtype).itemsize * 8
        pattern = trace.pattern(solving.vector(code, width))
        unsigned = np.array(code, f"uint{width}")
        wrong = ~is_same(trace, pattern.view(dtype).astype(np.float64), float(unsigned.view(dtype)))
        assert solving.find(wrong, solving.unknown("any", 1), SECONDS) == "none"


def test_an_array_changes_in_place_where_numpys_does() -> None:
    solving = Solving()
    trace = Tracing(solving)
    one = trace.constant(False, "truth")
    other = one
    one |= trace.constant(True, "truth")
    assert other.term == solving.truth(True).term
    numbers = trace.constant(1, "integer")
    numbers[trace.constant(True, "truth")] = 7
    wrong = ~is_same(trace, numbers, 7)
    assert solving.find(wrong, solving.unknown("any", 1), SECONDS) == "none"
