"""Conditions under which a fault shows: certain inputs, tensors, layouts, or earlier calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from threading import get_ident
from time import monotonic
from typing import Any
from zlib import crc32

import numpy as np

from lab.mutants.arithmetic import ties
from lab.mutants.fault import EVERYWHERE, Condition, Mask, Past, Row, Spoils, between_numbers
from oracles.protocol import Bits
from oracles.reference.kernels import OFFSET, TOP
from specs.cases import Case
from specs.formats import Format, format_named

MANY = 1 << 16
MIXING = np.uint64(0x9E3779B97F4A7C15)
"""The odd number nearest to 2^64 over the golden ratio: products with it look random."""


def conditions() -> Iterator[Condition]:
    """Yield all conditions, the one without any first."""
    yield Condition(EVERYWHERE, "nothing", lambda row, bits, past: True)
    for name, selects in OF_INPUTS.items():
        yield Condition(name, "inputs", partial(_by_input, selects), between_numbers)
    for name, selects in OF_FLOATS.items():
        yield Condition(name, "inputs", partial(_by_input, selects), _from_floats)
    for name, selects in OF_WIDE.items():
        yield Condition(name, "inputs", partial(_by_input, selects), _from_wide)
    for name, spoils in OF_CONTENTS.items():
        yield Condition(name, "contents", spoils, _from_signed_floats)
    for on, table in OF_TENSORS.items():
        for name, spoils in table.items():
            yield Condition(name, on, spoils)


def _by_input(selects: Callable[[Row], Mask], row: Row, bits: Bits, past: Past) -> Any:
    return selects(row).reshape(bits.shape)


def _from_floats(source: Format, target: Format) -> bool:
    return source.kind == "float" and target.is_numeric and source.entry.mantissa > 0


def _from_signed_floats(source: Format, target: Format) -> bool:
    return _from_floats(source, target) and source.entry.nan == "ieee"


def _from_wide(source: Format, target: Format) -> bool:
    return source.is_numeric and target.is_numeric and source.bits >= 32


def own_pattern(case: Case) -> int:
    """A pattern of a finite value, chosen by the case's id."""
    return _number(case) * int(MIXING) % (format_named(case.source).max_code + 1)


def _number(case: Case) -> int:
    return crc32(case.id.encode())


def _pattern(row: Row) -> np.uint64:
    return np.uint64(own_pattern(row.case))


def _range(row: Row) -> Mask:
    """Select a 256th of the patterns, at a place chosen by the case's id."""
    size = max(row.source.max_code >> 8, 1)
    first = np.uint64(int(_pattern(row)) // size * size)
    return (row.words >= first) & (row.words < first + np.uint64(size))


def _binade(row: Row) -> Mask:
    """Select the binade of values from two to four, of both signs."""
    is_two: Mask = np.asarray(row.parts.exponent == OFFSET + 1)
    return is_two & ~row.is_a("nan") & ~row.is_a("infinity")


def _scattered(share: int, row: Row) -> Mask:
    """Select one of ``share`` patterns, as a hash scatters them."""
    mixed = (row.words + np.uint64(_number(row.case))) * MIXING >> np.uint64(40)
    is_chosen: Mask = mixed % np.uint64(share) == 0
    return is_chosen


def _power_of_two(row: Row) -> Mask:
    significand = np.broadcast_to(row.parts.significand, row.bits.shape)
    is_power: Mask = significand == np.uint64(1 << TOP)
    return is_power


def _low_zeros(bits: int, row: Row) -> Mask:
    has_zeros: Mask = (row.words & np.uint64((1 << bits) - 1)) == 0
    return has_zeros


OF_INPUTS: dict[str, Callable[[Row], Mask]] = {
    "of-negative-values": lambda row: row.negative,
    "of-positive-values": lambda row: ~row.negative,
    "of-one-pattern": lambda row: row.words == _pattern(row),
    "of-a-256th-of-the-patterns": _range,
    "of-values-from-two-to-four": _binade,
    "of-one-pattern-in-seven": partial(_scattered, 7),
    "of-one-pattern-in-a-thousand": partial(_scattered, 1000),
    "of-odd-patterns": lambda row: row.words & np.uint64(1) == 1,
    "of-powers-of-two": _power_of_two,
    "of-the-largest-256th": lambda row: (
        (row.words >= row.source.max_code - (row.source.max_code >> 8))
        & (row.words <= row.source.max_code)
    ),
}
OF_FLOATS: dict[str, Callable[[Row], Mask]] = {
    "of-ties": ties,
    "of-subnormal-inputs": lambda row: row.is_a("subnormal"),
    "of-values-below-one": lambda row: (
        (row.words & np.uint64(row.source.mask ^ row.source.sign_bit)) < row.source.one_code
    ),
    "of-subnormal-results": lambda row: row.gives_a("subnormal"),
}
OF_WIDE: dict[str, Callable[[Row], Mask]] = {
    "of-16-low-zeros": partial(_low_zeros, 16),
    "of-8-low-zeros": partial(_low_zeros, 8),
    "of-patterns-with-low-bits": lambda row: ~_low_zeros(16, row),
    "of-one-pattern-in-a-million": partial(_scattered, 1_000_000),
}


def _vectors(of: Mask, size: int, shape: tuple[int, ...]) -> Any:
    """Select vectors of ``size`` elements in which ``of`` is true of some elements, not of all."""
    padded = np.zeros(-(-of.size // size) * size, bool)
    padded[: of.size] = of
    vectors = padded.reshape(-1, size)
    some = vectors.any(axis=1) & ~vectors.all(axis=1)
    return np.repeat(some, size)[: of.size].reshape(shape)


def _after(of: Mask, shape: tuple[int, ...]) -> Any:
    """Select the elements that follow one of which ``of`` is true."""
    return np.concatenate([[False], of])[: of.size].reshape(shape)


def _is_constant(bits: Bits) -> bool:
    return bits.size > 4 and bool((bits == bits.reshape(-1)[0]).all())


def _mostly_zeros(row: Row, bits: Bits, past: Past) -> bool:
    zero = row.is_a("zero")
    return bits.size > 64 and 0.8 < zero.mean() < 1


def _rises(row: Row) -> bool:
    words = row.words
    order = np.where(
        row.negative,
        np.uint64(1 << 63) - (words & np.uint64(row.source.max_code)),
        words + np.uint64(1 << 63),
    )
    return 1 < words.size < 1000 and bool((order[1:] >= order[:-1]).all())


OF_CONTENTS: dict[str, Spoils] = {
    "beside-a-nan": lambda row, bits, past: _vectors(row.is_a("nan"), 8, bits.shape),
    "beside-an-infinity": lambda row, bits, past: _vectors(row.is_a("infinity"), 16, bits.shape),
    "beside-a-subnormal": lambda row, bits, past: _vectors(row.is_a("subnormal"), 8, bits.shape),
    "beside-a-zero": lambda row, bits, past: _vectors(row.is_a("zero"), 4, bits.shape),
    "beside-both-signs": lambda row, bits, past: _vectors(row.negative, 8, bits.shape),
    "after-a-negative-zero": lambda row, bits, past: _after(
        row.is_a("zero") & row.negative, bits.shape
    ),
    "after-two-nans": lambda row, bits, past: _after(
        row.is_a("nan") & _after(row.is_a("nan"), row.bits.shape), bits.shape
    ),
    "in-rows-of-one-value": lambda row, bits, past: _is_constant(bits),
    "in-rows-of-two-values": lambda row, bits, past: bits.size > 4 and np.unique(bits).size == 2,
    "in-rows-of-positive-values": lambda row, bits, past: bits.size > 4 and not row.negative.any(),
    "in-rows-of-mostly-zeros": _mostly_zeros,
    "in-rows-that-rise": lambda row, bits, past: _rises(row),
}


def _at(places: slice, bits: Bits) -> Any:
    spoiled = np.zeros(bits.size, bool)
    spoiled[places] = True
    return spoiled.reshape(bits.shape)


def _of_length(first: int, last: int, row: Row, bits: Bits, past: Past) -> bool:
    return bits.ndim == 1 and first <= bits.size <= last


def _of_rank(rank: int, row: Row, bits: Bits, past: Past) -> bool:
    return bits.ndim == rank


def _turned(bits: Bits) -> bool:
    return bits.flags.f_contiguous and not bits.flags.c_contiguous


def _lies(order: tuple[int, ...], bits: Bits) -> bool:
    """Whether a tensor is contiguous with its dimensions in this order, but not in its own."""
    moved = bits.transpose(order) if bits.ndim == len(order) else bits
    return bits.ndim == len(order) and moved.flags.c_contiguous and not bits.flags.c_contiguous


def _steps(bits: Bits) -> tuple[int, ...]:
    return tuple(step // bits.itemsize for step in bits.strides)


def _is_part_of_batches(bits: Bits) -> bool:
    """Whether the matrices of a batch are contiguous, with gaps between them."""
    is_batch = bits.ndim == 3 and bits.size > 0
    return is_batch and bits[0].flags.c_contiguous and _steps(bits)[0] > bits[0].size > 1


def _overlaps(bits: Bits) -> bool:
    """Whether the rows are windows that overlap."""
    return bits.ndim == 2 and _steps(bits)[1] == 1 and 0 < _steps(bits)[0] < bits.shape[1]


def _step(bits: Bits) -> int:
    """The stride of the first dimension, in elements."""
    return int(bits.strides[0] // bits.itemsize) if bits.ndim else 1


def _calls_each(count: int, row: Row, bits: Bits, past: Past) -> bool:
    return past.calls % count == 0


def _last(holds: Callable[[Bits, Bits], bool]) -> Spoils:
    """Return a condition on the previous tensor and the present one."""
    return lambda row, bits, past: past.last is not None and holds(past.last, bits)


def _is_after_another_dtype(row: Row, bits: Bits, past: Past) -> bool:
    last = past.last_case
    return last is not None and (last.source, last.target) != (row.case.source, row.case.target)


OF_TENSORS: dict[str, dict[str, Spoils]] = {
    "lengths and places": {
        **{
            f"of-{first}-to-{last}-elements": partial(_of_length, first, last)
            for first, last in (
                (1, 1),
                (2, 2),
                (3, 7),
                (17, 17),
                (17, 31),
                (32, 63),
                (64, 64),
                (65, 127),
                (111, 111),
                (128, 128),
                (129, 255),
                (257, 511),
                (384, 384),
                (512, 512),
                (1025, 4096),
                (65_537, 1 << 40),
            )
        },
        "at-the-first-place": lambda row, bits, past: _at(slice(0, 1), bits),
        "at-the-last-place": lambda row, bits, past: _at(slice(-1, None), bits),
        "behind-the-last-full-eight": lambda row, bits, past: _at(
            slice(bits.size - bits.size % 8, None), bits
        ),
        "behind-the-last-full-32": lambda row, bits, past: _at(
            slice(bits.size - bits.size % 32, None), bits
        ),
        "at-place-66": lambda row, bits, past: _at(slice(66, 67), bits),
        "at-odd-places": lambda row, bits, past: _at(slice(1, None, 2), bits),
        "behind-65536": lambda row, bits, past: _at(slice(MANY, None), bits),
        "behind-a-million": lambda row, bits, past: bits.size > 1_000_000,
    },
    "shapes": {
        **{f"of-rank-{rank}": partial(_of_rank, rank) for rank in (0, 2, 3, 4, 5, 6, 7, 8)},
        "with-more-than-16-columns": lambda row, bits, past: bits.ndim > 1 and bits.shape[-1] > 16,
        "with-more-than-1000-columns": lambda row, bits, past: (
            bits.ndim > 1 and bits.shape[-1] > 1000
        ),
        "with-more-than-65536-rows": lambda row, bits, past: bits.ndim > 1 and bits.shape[0] > MANY,
        "with-more-than-1000-rows": lambda row, bits, past: bits.ndim > 1 and bits.shape[0] > 1000,
        "in-matrices-of-7000-elements": lambda row, bits, past: bits.ndim > 1 and bits.size > 7000,
        "in-batches-of-wide-rows": lambda row, bits, past: bits.ndim > 2 and bits.shape[-1] > 16,
    },
    "layouts": {
        "columns-first": lambda row, bits, past: bits.ndim == 2 and _turned(bits),
        "columns-first-of-rank-3": lambda row, bits, past: bits.ndim == 3 and _turned(bits),
        "channels-last": lambda row, bits, past: (
            bits.ndim == 4 and bits.shape[1] > 1 and bits.strides[1] == bits.itemsize
        ),
        "rows-apart": lambda row, bits, past: bits.ndim == 2 and _step(bits) > bits.shape[1] > 1,
        "wide-rows-apart": lambda row, bits, past: (
            bits.ndim == 2 and _step(bits) > bits.shape[1] > 16
        ),
        "a-broadcast-row": lambda row, bits, past: (
            bits.ndim == 2 and bits.strides[0] == 0 and bits.shape[0] > 1
        ),
        "a-broadcast-element": lambda row, bits, past: (
            bits.ndim == 1 < bits.size and _step(bits) == 0
        ),
        "backwards": lambda row, bits, past: bits.ndim == 1 and _step(bits) < 0,
        "steps-of-two": lambda row, bits, past: bits.ndim == 1 < bits.size and _step(bits) == 2,
        "steps-of-three": lambda row, bits, past: bits.ndim == 1 < bits.size and _step(bits) == 3,
        "wide-steps": lambda row, bits, past: bits.ndim == 1 < bits.size and _step(bits) >= 4,
        "steps-beyond-a-byte": lambda row, bits, past: bits.ndim == 1 and _step(bits) > 255,
        "rows-backwards": lambda row, bits, past: (
            bits.ndim == 2 and _steps(bits)[0] < 0 and _steps(bits)[1] == 1
        ),
        "heads-exchanged": lambda row, bits, past: _lies((0, 2, 1, 3), bits),
        "channels-last-of-rank-5": lambda row, bits, past: _lies((0, 2, 3, 4, 1), bits),
        "many-channels-last": lambda row, bits, past: (
            bits.ndim == 4 and bits.shape[1] > 16 and _lies((0, 2, 3, 1), bits)
        ),
        "a-part-of-each-batch": lambda row, bits, past: _is_part_of_batches(bits),
        "windows-that-overlap": lambda row, bits, past: _overlaps(bits),
        "a-column-with-steps-of-0": lambda row, bits, past: (
            bits.ndim == 2 and bits.size > 1 == bits.shape[1] and _steps(bits)[1] == 0
        ),
        "columns-first-of-32768-elements": lambda row, bits, past: (
            bits.size >= MANY // 2 and _turned(bits)
        ),
        "not-aligned-to-16": lambda row, bits, past: bits.size > 8 and bool(bits.ctypes.data % 16),
    },
    "earlier calls": {
        "after-an-empty-tensor": _last(lambda last, bits: last.size == 0),
        "after-a-scalar": _last(lambda last, bits: last.ndim == 0 and bits.ndim == 1),
        "after-a-long-row": _last(lambda last, bits: last.size > MANY > bits.size),
        "after-another-layout": _last(
            lambda last, bits: last.shape == bits.shape and last.strides != bits.strides
        ),
        "after-a-refusal": lambda row, bits, past: past.has_refused,
        "after-a-wider-source": lambda row, bits, past: (
            past.last_case is not None
            and format_named(past.last_case.source).bits > row.source.bits
        ),
        "after-the-same-size": _last(lambda last, bits: last.shape == bits.shape),
        "after-another-dtype": _is_after_another_dtype,
        "after-another-case": lambda row, bits, past: past.last_case not in (None, row.case),
        "at-every-second-call": partial(_calls_each, 2),
        "at-every-150th-call": partial(_calls_each, 150),
        "at-every-1000th-call": partial(_calls_each, 1000),
        "from-the-second-call-on": lambda row, bits, past: past.calls > 1,
        "in-the-first-call": lambda row, bits, past: past.calls == 1,
    },
    "threads and time": {
        "in-another-thread": lambda row, bits, past: past.thread != get_ident(),
        "after-a-minute": lambda row, bits, past: monotonic() - past.begun > 60,
    },
}
"""The conditions that do not depend on the values of elements, by what they depend on."""
