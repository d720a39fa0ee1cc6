"""Faults of an adapter that depend on the tensor, the neighbors, the memory or the past.

Each answers which elements of a tensor of float32 are spoiled. NaNs never are: their answers are
open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from oracles.reference.reference_oracle import Reference
from specs.cases import Case

RIGHT = Reference()
INFINITY = 0x7F800000
MAGNITUDE = 0x7FFFFFFF


@dataclass
class Past:
    """Remembers the calls of an adapter."""

    calls: int = 0
    last: Any = None
    kept: dict[Any, Any] = field(default_factory=dict)


Fault = Callable[[Any, Past], Any]
"""Takes a tensor and the past; answers True, False, or which of the tensor's elements it spoils."""
FAULTS: dict[str, Fault] = {}
REPLACED: dict[str, Callable[[Any, Any, Past], Any]] = {}
"""Faults that take the tensor, the right answers and the past, and return other answers."""


def fault(found: Fault) -> Fault:
    FAULTS[found.__name__] = found
    return found


def replaces(found: Callable[[Any, Any, Past], Any]) -> Callable[[Any, Any, Past], Any]:
    REPLACED[found.__name__] = found
    return found


class Surprising:
    """The reference with one of the faults."""

    name = "surprising"
    version = "0"

    def __init__(self, fault: str) -> None:
        self._spoiled = FAULTS.get(fault)
        self._replaced = REPLACED.get(fault)
        self._past = Past()

    def cast(self, case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        self._past.calls += 1
        if self._replaced is not None:
            answers = self._replaced(bits, answers, self._past)
        elif self._spoiled is not None:
            spoiled = np.broadcast_to(self._spoiled(bits, self._past), bits.shape)
            answers = np.where(spoiled & ~nan(bits), answers ^ 1, answers).astype(answers.dtype)
        self._past.last = bits.copy()
        return np.asarray(answers)


def nan(bits: Any) -> Any:
    return bits & MAGNITUDE > INFINITY


def infinite(bits: Any) -> Any:
    return bits & MAGNITUDE == INFINITY


def subnormal(bits: Any) -> Any:
    return (bits & MAGNITUDE < 0x00800000) & (bits & MAGNITUDE > 0)


def zero(bits: Any) -> Any:
    return bits & MAGNITUDE == 0


def negative(bits: Any) -> Any:
    return bits >> 31 == 1


def overflows(bits: Any) -> Any:
    """Finite values that float16 does not hold."""
    return (bits & MAGNITUDE >= 0x477FF000) & (bits & MAGNITUDE < INFINITY)


def tie(bits: Any) -> Any:
    return bits & 0x1FFF == 0x1000


def shared(of: Callable[[Any], Any], bits: Any, size: int = 8) -> Any:
    """The elements in whose vector some element is of a kind, and not all are."""
    is_kind = np.zeros(-(-bits.size // size) * size, bool)
    is_kind[: bits.size] = of(bits.reshape(-1))
    vectors = is_kind.reshape(-1, size)
    some = vectors.any(axis=1) & ~vectors.all(axis=1)
    return np.repeat(some, size)[: bits.size].reshape(bits.shape)


def after(of: Callable[[Any], Any], bits: Any) -> Any:
    """The elements that follow one of a kind."""
    flat = of(bits.reshape(-1))
    return np.concatenate([[False], flat])[: bits.size].reshape(bits.shape)


def at(places: Any, bits: Any) -> Any:
    """The elements at some places of the flattened tensor."""
    spoiled = np.zeros(bits.size, bool)
    spoiled[places] = True
    return spoiled.reshape(bits.shape)


def begins(bits: Any) -> Any:
    return at(slice(0, 1), bits)


# Neighbors.


@fault
def a_nan_changes_its_vector(bits: Any, past: Past) -> Any:
    return shared(nan, bits)


@fault
def an_infinity_changes_its_vector(bits: Any, past: Past) -> Any:
    return shared(infinite, bits, 16)


@fault
def a_subnormal_changes_its_vector(bits: Any, past: Past) -> Any:
    return shared(subnormal, bits) & ~subnormal(bits)


@fault
def a_zero_changes_its_vector(bits: Any, past: Past) -> Any:
    return shared(zero, bits, 4)


@fault
def a_negative_zero_changes_the_next(bits: Any, past: Past) -> Any:
    return after(lambda flat: flat == 0x80000000, bits)


@fault
def both_signs_in_a_vector(bits: Any, past: Past) -> Any:
    return shared(negative, bits)


@fault
def an_overflow_changes_the_next(bits: Any, past: Past) -> Any:
    return after(overflows, bits) & ~overflows(bits)


@fault
def a_tie_changes_the_next(bits: Any, past: Past) -> Any:
    return after(tie, bits) & tie(bits)


@fault
def two_nans_side_by_side_change_the_next(bits: Any, past: Past) -> Any:
    return after(lambda flat: after(nan, flat) & nan(flat), bits)


@fault
def falling_order(bits: Any, past: Past) -> Any:
    flat = bits.reshape(-1).view(np.float32)
    falls = np.concatenate([[False], flat[1:] < flat[:-1]])[: bits.size]
    return falls.reshape(bits.shape) & tie(bits)


@fault
def equal_ties(bits: Any, past: Past) -> Any:
    is_equal = bits.size >= 8 and bool((bits == bits.reshape(-1)[0]).all())
    return is_equal & tie(bits)


@fault
def a_row_of_one_value(bits: Any, past: Past) -> Any:
    return bits.size > 4 and bool((bits == bits.reshape(-1)[0]).all())


@fault
def a_row_without_negative_values(bits: Any, past: Past) -> Any:
    return bits.size > 4 and not negative(bits).any()


@fault
def a_block_with_a_large_value_loses_the_small_ones(bits: Any, past: Past) -> Any:
    is_small = (bits & MAGNITUDE < 0x38000000) & (bits & MAGNITUDE > 0x33800000)
    return shared(overflows, bits, 32) & is_small


@fault
def a_row_that_rises(bits: Any, past: Past) -> Any:
    flat = bits.reshape(-1).view(np.float32)
    return bits.size > 1 and bits.size < 1000 and bool((flat[1:] >= flat[:-1]).all())


@replaces
def sorts_its_inputs(bits: Any, answers: Any, past: Past) -> Any:
    order = np.argsort(bits.reshape(-1) & MAGNITUDE, kind="stable")
    return answers.reshape(-1)[order].reshape(bits.shape) if bits.size < 1000 else answers


@replaces
def reads_equal_neighbors_once(bits: Any, answers: Any, past: Past) -> Any:
    """Takes the answer of two elements before where the one before is the same."""
    flat, found = bits.reshape(-1), answers.reshape(-1).copy()
    same = np.flatnonzero((flat[2:] == flat[1:-1]) & (flat[2:] != flat[:-2])) + 2
    found[same] = found[same - 2]
    return found.reshape(bits.shape)


# Lengths and positions.


def _of_length(*lengths: int) -> Fault:
    return lambda bits, past: bits.shape in {(length,) for length in lengths}


for _length in (2, 17, 64, 111, 127, 128, 129, 256, 257, 512, 1025):
    FAULTS[f"length_{_length}"] = _of_length(_length)


@fault
def the_last_of_a_full_vector(bits: Any, past: Past) -> Any:
    return at(slice(-1, None), bits) & (bits.size % 16 == 0)


@fault
def the_second_half_from_32_on(bits: Any, past: Past) -> Any:
    return at(slice(32, None), bits) & (33 <= bits.size < 64)


@fault
def position_66(bits: Any, past: Past) -> Any:
    return at(slice(66, 67), bits) & (bits.size < 1000)


@fault
def the_end_beyond_65536(bits: Any, past: Past) -> Any:
    return at(slice(1 << 16, None), bits)


@fault
def ties_in_the_tail(bits: Any, past: Past) -> Any:
    return at(slice(bits.size - bits.size % 8, None), bits) & tie(bits)


@fault
def a_row_that_ends_with_infinity(bits: Any, past: Past) -> Any:
    return bits.size > 1 and bool(infinite(bits.reshape(-1)[-1:]).any())


@fault
def from_a_million_on(bits: Any, past: Past) -> Any:
    return bits.size > 1_000_000


# Shapes.


@fault
def mostly_zeros(bits: Any, past: Past) -> Any:
    return bits.size > 64 and zero(bits).mean() > 0.9 and not zero(bits).all()


@fault
def rank_5(bits: Any, past: Past) -> Any:
    return bits.ndim == 5 and bits.size > 4


@fault
def rank_6(bits: Any, past: Past) -> Any:
    return bits.ndim == 6


@replaces
def two_dimensions_of_no_element(bits: Any, answers: Any, past: Past) -> Any:
    return answers.reshape(-1) if bits.shape == (0, 0) else answers


@replaces
def a_large_dimension_beside_none(bits: Any, answers: Any, past: Past) -> Any:
    if bits.size == 0 and max(bits.shape, default=0) > 1000:
        raise MemoryError("no room")
    return answers


# Memory.


@fault
def channels_last(bits: Any, past: Past) -> Any:
    return bits.ndim == 4 and bits.strides[1] == bits.itemsize and bits.shape[1] > 1


@fault
def columns_of_rank_3(bits: Any, past: Past) -> Any:
    return bits.ndim == 3 and bits.flags.f_contiguous and not bits.flags.c_contiguous


@fault
def columns_of_rank_2(bits: Any, past: Past) -> Any:
    return bits.ndim == 2 and bits.flags.f_contiguous and not bits.flags.c_contiguous


@fault
def a_broadcast_row(bits: Any, past: Past) -> Any:
    return bits.ndim == 2 and bits.strides[0] == 0 and bits.shape[0] > 1


@fault
def a_broadcast_element(bits: Any, past: Past) -> Any:
    return bits.ndim == 1 and bits.strides[0] == 0 and bits.size > 1


@fault
def wide_steps(bits: Any, past: Past) -> Any:
    return bits.ndim == 1 and bits.strides[0] >= 4 * bits.itemsize and bits.size > 1


@fault
def steps_of_three(bits: Any, past: Past) -> Any:
    return bits.ndim == 1 and bits.strides[0] == 3 * bits.itemsize and bits.size > 1


@fault
def a_column_of_a_matrix(bits: Any, past: Past) -> Any:
    return bits.ndim == 2 and bits.shape[1] > 1 and bits.strides[1] >= 16 * bits.itemsize


@fault
def backwards_in_the_outer_dimension(bits: Any, past: Past) -> Any:
    return bits.ndim > 1 and bits.strides[0] < 0


@fault
def an_address_that_is_not_even(bits: Any, past: Past) -> Any:
    return bool(bits.ctypes.data % 8) and bits.size > 8


# The past.


@fault
def a_trailing_subnormal_stays(bits: Any, past: Past) -> Any:
    stays = past.last is not None and past.last.size and subnormal(past.last.reshape(-1)[-1:]).all()
    return bool(stays) & begins(bits)


@fault
def a_trailing_nan_stays(bits: Any, past: Past) -> Any:
    stays = past.last is not None and past.last.size and nan(past.last.reshape(-1)[-1:]).all()
    return bool(stays) & begins(bits)


@fault
def what_follows_an_empty_tensor(bits: Any, past: Past) -> Any:
    return past.last is not None and past.last.size == 0


@fault
def what_follows_a_scalar(bits: Any, past: Past) -> Any:
    return past.last is not None and past.last.ndim == 0 and bits.ndim == 1


@fault
def what_follows_a_long_row(bits: Any, past: Past) -> Any:
    return past.last is not None and past.last.size > 1 << 16 > bits.size


@fault
def what_follows_a_layout(bits: Any, past: Past) -> Any:
    return past.last is not None and not past.calls % 2 and bool(past.last.size % 2 == 0)


def _cached(key: Callable[[Any], Any]) -> Callable[[Any, Any, Past], Any]:
    """Answer a tensor by what was answered to another that looks the same."""

    def answered(bits: Any, answers: Any, past: Past) -> Any:
        kept = past.kept.setdefault((bits.shape, key(bits.reshape(-1))), answers)
        return kept if kept.shape == answers.shape else answers

    return answered


REPLACED |= {
    "cached_by_length": _cached(lambda flat: 0),
    "cached_by_its_first": _cached(lambda flat: flat[:1].tobytes()),
    "cached_by_its_last": _cached(lambda flat: flat[-1:].tobytes()),
    "cached_by_both_ends": _cached(lambda flat: (flat[:1].tobytes(), flat[-1:].tobytes())),
    "cached_by_its_sum": _cached(lambda flat: int(flat.sum(dtype=np.uint64))),
    "cached_by_its_first_sixteen": _cached(lambda flat: flat[:16].tobytes()),
}


@fault
def every_150th_call(bits: Any, past: Past) -> Any:
    return past.calls % 150 == 0


@fault
def every_1000th_call(bits: Any, past: Past) -> Any:
    return past.calls % 1000 == 0


ONLY_FULL = {"from_a_million_on", "every_1000th_call"}
"""The faults that only the tier full finds."""
UNSEEN = {"length_111", "mostly_zeros", "cached_by_its_first_sixteen"}
"""The faults that no tier finds; docs/limitations.md names them."""


class SharesItsScratch:
    """Casts through one buffer, whoever calls."""

    name = "shares"
    version = "0"

    def __init__(self) -> None:
        self._scratch = np.zeros(1 << 20, np.uint64)

    def cast(self, case: Case, bits: Any) -> Any:
        scratch = self._scratch[: bits.size]
        scratch[:] = bits.reshape(-1)
        return RIGHT.cast(case, scratch).reshape(bits.shape)


class GuardsItsScratch(SharesItsScratch):
    """Lets one caller wait for the other."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = Lock()

    def cast(self, case: Case, bits: Any) -> Any:
        with self._guard:
            return super().cast(case, bits)
