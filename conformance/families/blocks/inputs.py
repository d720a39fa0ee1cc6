"""The input tensors of cases of blocks: around every threshold of scales and elements.

The rows of the first tensor are blocks. Their largest magnitudes lie at the thresholds of all scale
rules, not of the case's own alone, and beside them; their elements lie at the ties between codes,
by the block's scale, and beside them. Blocks of zeros, NaNs and infinities stand among ordinary
ones, so that one block that changes another shows. Further tensors have several blocks in a row,
and a last block that is shorter; others are drawn from the space of tensors, and hold such blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks.grading import GLOBAL, SCALE, X
from conformance.families.blocks.kernels import (
    decoded,
    scales_of,
    threshold,
    values_of,
)
from conformance.families.blocks.ruling import BlockRuling
from conformance.judging.space import drawn_memory, drawn_shape, log_uniform
from oracles.protocol import Bits, Floats
from specs.cases import Case
from specs.formats import Format
from specs.model.block_entry import BlockWord

POWER_RULES: tuple[BlockWord, ...] = (
    "floor", "ceil", "round-up", "round-down", "even", "nearest", "nearest-log",
)  # fmt: skip
POWERS = (-160, -133, -127, -126, -100, -60, -24, -14, -8, -2, -1, 0, 1, 2, 3, 7, 8, 14, 40, 90)
"""Powers of two near which largest magnitudes lie, as far as the number's dtype has them."""
ENDS = (119, 125, 126, 127)
TOPS = (1.0, 1.5, 1.75, 1.9)
"""Significands of the largest magnitude of blocks whose elements are ties."""
TIE_POWERS = (0, -9, 6)
RANDOM_BLOCKS = 256
GLOBALS = (0x3A800000, 0x3F800000, 0x3A83126F)
"""Global scales: 2^-10, 1 and about 0.001."""
DRAWS = 2
"""Drawn tensors of a case, at the tier quick."""
MORE_BLOCKS = 16
"""The most by which the drawn number of blocks in a row is multiplied."""
SHORT = 0.5
"""The share of drawn tensors in which the last block of a row is shorter."""

Words64 = NDArray[np.int64]


class BlockInput(NamedTuple):
    """Tensors by name, and words for how blocks lie in them; empty for one block in each row."""

    where: str
    tensors: Mapping[str, Bits]
    is_drawn: bool = False


def block_inputs(ruling: BlockRuling, seed: int) -> list[BlockInput]:
    """Return the input tensors of a case of blocks, once for each global scale.

    A case without a global scale has each tensor once.
    """
    make = _codes_and_scales if ruling.is_decoding else _numbers
    if not ruling.has_global:
        return [BlockInput(*each) for each in make(ruling, 1.0, seed)]
    return [
        BlockInput(where, {**tensors, GLOBAL: np.array(word, np.uint32)})
        for word in GLOBALS
        for where, tensors in make(ruling, float(np.array(word, np.uint32).view(np.float32)), seed)
    ]


def drawn_inputs(
    case: Case, ruling: BlockRuling, listed: Sequence[BlockInput], seed: int, number: int
) -> Iterator[BlockInput]:
    """Draw a ``number`` of tensors of any shape and layout, filled with blocks of those ``listed``.

    Only listed tensors with one block in each row are used.
    """
    chance = Random(f"{case.id}/{seed}")
    single = [each.tensors for each in listed if not each.where]
    for _ in range(number):
        yield _drawn(ruling, chance.choice(single), chance)


def _drawn(ruling: BlockRuling, given: Mapping[str, Bits], chance: Random) -> BlockInput:
    """Return a drawn tensor that holds some of the blocks in ``given``, which has one in each row.

    Its rows have one block or more. The last block may be shorter; then in every other row its
    largest element comes last.
    """
    size = ruling.size
    *front, blocks = drawn_shape(chance, 1, unit=size, may_be_empty=False)
    blocks *= log_uniform(chance, 1, MORE_BLOCKS)
    missing = chance.randrange(1, size) if chance.random() < SHORT else 0
    draw = np.random.default_rng(chance.randrange(1 << 32))
    picked = draw.integers(0, len(given[X]), (*front, blocks))
    x = given[X][picked]
    if missing:
        _end_with_largest(ruling, x, size - missing)
    x = x.reshape(*front, blocks * size)[..., : blocks * size - missing]
    probe = drawn_memory(chance, x.shape)
    # A repeated dimension of numbers would want its scales repeated too.
    probe = replace(probe, steps=tuple(step or 1 for step in probe.steps))
    tensors = {**given, X: probe.laid(x)}
    if ruling.is_decoding:
        tensors[SCALE] = given[SCALE][picked][..., 0]
    return BlockInput(f"in a tensor of {probe}", tensors, is_drawn=True)


def _end_with_largest(ruling: BlockRuling, x: Bits, length: int) -> None:
    """Exchange the largest and the last kept element of the last block, in every other row.

    ``x`` is changed in place. The last block keeps its first ``length`` elements.
    """
    last = x[..., -1, :].reshape(-1, ruling.size)
    source = ruling.element if ruling.is_decoding else ruling.number
    at = (last[:, :length] & source.max_code).argmax(axis=-1)
    rows = np.arange(0, len(last), 2)
    last[rows, at[::2]], last[rows, length - 1] = last[rows, length - 1], last[rows, at[::2]]
    x[..., -1, :] = last.reshape(x[..., -1, :].shape)


def _numbers(
    ruling: BlockRuling, global_scale: float, seed: int
) -> Iterator[tuple[str, dict[str, Bits]]]:
    chance = np.random.default_rng([seed, ruling.number.bits, ruling.element.bits])
    finite = np.concatenate([*_finite_blocks(ruling, global_scale, chance)])
    special = _special_blocks(ruling, finite)
    # Every third block is a special one, as long as there are some.
    first, rest = np.split(finite, [2 * len(special)])
    mixed = np.concatenate([first.reshape(len(special), 2, -1), special[:, None]], axis=1)
    blocks = np.concatenate([mixed.reshape(-1, ruling.size), rest])
    yield "", {X: blocks}
    yield "in rows of four blocks", {X: blocks[: len(blocks) // 4 * 4].reshape(-1, 4 * ruling.size)}
    ragged = finite[:12].reshape(3, -1)[:, : 3 * ruling.size + ruling.size // 4 + 1]
    yield "in rows whose last block is shorter", {X: np.ascontiguousarray(ragged)}


def _finite_blocks(
    ruling: BlockRuling, global_scale: float, chance: np.random.Generator
) -> Iterator[Bits]:
    """Yield arrays of blocks without NaN and infinity, each with a number that is not zero."""
    number = ruling.number
    yield _with_largest(ruling, _beside(number, _thresholds(ruling, global_scale)), chance)
    yield _with_ties(ruling, global_scale, chance)
    yield _positions(ruling)
    yield _with_largest(ruling, _smallest_numbers(number), chance)
    drawn = chance.integers(0, number.max_code + 1, (RANDOM_BLOCKS, ruling.size))
    near = chance.integers(0, number.max_code + 1, (RANDOM_BLOCKS, 1)) - drawn % (
        5 << number.entry.mantissa
    )
    drawn[::2] = np.maximum(near, 1)[::2]
    drawn[:, 0] = np.maximum(drawn[:, 0], 1)
    yield (drawn | _signs(number, drawn.shape, chance)).astype(number.storage)


def _thresholds(ruling: BlockRuling, global_scale: float) -> Floats:
    """Return largest magnitudes of blocks at which a scale rule changes the scale, and others."""
    if ruling.scale.entry.mantissa:
        largest = values_of(ruling.element)[ruling.element.max_code]
        values = values_of(ruling.scale)[: ruling.scale.max_code + 1]
        beyond = np.array([480.0, 512.0, 1e4])
        bounds = np.concatenate([values[1:], (values[1:] + values[:-1]) / 2, beyond])
        scaled: Floats = bounds * largest * global_scale
        return scaled
    at = [threshold(ruling.element, word).magnitude for word in POWER_RULES]
    significands = {np.frexp(each)[0] * 2 for each in at} | {1.0, 1.5, 1.75, 1.8125, 1.875, 1.9375}
    powers = np.array([*POWERS, *ENDS], np.int32)
    found: Floats = np.ldexp(np.array(sorted(significands))[:, None], powers).reshape(-1)
    return found


def _beside(number: Format, values: Floats) -> Bits:
    """Return the patterns of the numbers at or just below ``values``, and of both their neighbors.

    Only positive finite numbers are returned.
    """
    codes = below(number, values)
    near = np.concatenate([codes - 1, codes, codes + 1])
    found: Bits = np.unique(near[(near > 0) & (near <= number.max_code)]).astype(number.storage)
    return found


def below(number: Format, values: Floats) -> Words64:
    """Return for each positive value the pattern of the largest number that is not above it."""
    magnitudes = np.minimum(values, decoded(number, np.array([number.max_code]))[0])
    power = np.maximum(np.frexp(magnitudes)[1] - 1, number.lowest_exponent) - number.entry.mantissa
    multiple = np.floor(np.ldexp(magnitudes, -power)).astype(np.int64)
    field = np.where(
        multiple >> number.entry.mantissa, power + number.entry.mantissa + number.entry.bias - 1, 0
    )
    codes: Words64 = (field.astype(np.int64) << number.entry.mantissa) + multiple
    return codes


def _smallest_numbers(number: Format) -> Bits:
    """Return small patterns at and just below powers of two, and patterns of large numbers."""
    powers = 1 << np.arange(number.entry.mantissa + 2)
    ends = [number.max_code, number.max_code - 1, number.max_code // 2]
    return np.unique(np.concatenate([powers, powers - 1, ends]))[1:].astype(number.storage)


def _with_largest(ruling: BlockRuling, largest: Bits, chance: np.random.Generator) -> Bits:
    """Return a block for each largest magnitude, which has changing places and signs."""
    number, size = ruling.number, ruling.size
    top = largest.astype(np.int64)[:, None]
    # The others are at most as large, and most of them within a few powers of two.
    steps = chance.integers(0, 5 << number.entry.mantissa, (len(largest), size))
    blocks = np.maximum(top - steps, 0) | _signs(number, steps.shape, chance)
    rows = np.arange(len(largest))
    negative = np.where(rows % 3 == 1, number.sign_bit, 0)
    blocks[rows, rows % size] = top[:, 0] | negative
    found: Bits = blocks.astype(number.storage)
    return found


def _signs(number: Format, shape: tuple[int, ...], chance: np.random.Generator) -> Words64:
    signs: Words64 = np.where(chance.integers(0, 2, shape) == 1, number.sign_bit, 0)
    return signs


def _with_ties(ruling: BlockRuling, global_scale: float, chance: np.random.Generator) -> Bits:
    """Return blocks of ties between two codes, of values of codes, and of numbers beside these."""
    values = values_of(ruling.element)[: ruling.element.max_code + 1]
    step = values[-1] - values[-2]
    beyond = values[-1] + step * np.array([0.25, 0.5, 0.75])
    grid = np.concatenate([(values[1:] + values[:-1]) / 2, beyond, values[1:]])
    found = []
    for power in TIE_POWERS:
        for top in TOPS:
            largest = np.ldexp(top * values[-1], power) * global_scale
            [code] = below(ruling.number, np.array([largest]))
            exact = decoded(ruling.number, np.array([code]))
            scale = scales_of(ruling, exact, global_scale)
            factor = decoded(ruling.scale, scale.codes)[0] * global_scale
            near = _beside(ruling.number, grid * factor)
            found.append(_filled(ruling, int(code), near[near < code], chance))
    return np.concatenate(found)


def _filled(ruling: BlockRuling, top: int, elements: Bits, chance: np.random.Generator) -> Bits:
    """Return blocks of these elements with random signs, each with ``top`` at one place."""
    width = ruling.size - 1
    elements = np.resize(elements, -(-max(elements.size, 1) // width) * width)
    rows = elements.reshape(-1, width).astype(np.int64)
    rows |= _signs(ruling.number, rows.shape, chance)
    rows = np.concatenate([rows, np.full((len(rows), 1), top)], axis=1)
    return np.stack([np.roll(row, place) for place, row in enumerate(rows)]).astype(
        ruling.number.storage
    )


def _positions(ruling: BlockRuling) -> Bits:
    """Return a block for each place of the largest magnitude; its other elements all differ."""
    one = ruling.number.one_code
    steps = np.arange(ruling.size) << max(ruling.number.entry.mantissa - 3, 0)
    top = one + (6 << ruling.number.entry.mantissa)
    places = np.eye(ruling.size, dtype=np.bool_)
    return np.where(places, top, one + steps).astype(ruling.number.storage)


def _special_blocks(ruling: BlockRuling, ordinary: Bits) -> Bits:
    """Return blocks of zeros, or nearly, and blocks in which some element is NaN or infinite."""
    number, size = ruling.number, ruling.size
    minus = number.sign_bit
    zeros = np.zeros((4, size), np.int64)
    zeros[1] = minus
    zeros[2, ::2] = minus
    zeros[3, 0] = 1  # all but one
    nan = number.nan_codes[0].start
    found = [zeros]
    nans, infinity = (nan, nan | minus, number.nan_codes[0][-1]), number.infinity_code
    for word in (*nans, infinity, infinity | minus):
        for place in (0, size // 2 - 1, size - 1):
            block = ordinary[place].astype(np.int64)
            block[place] = word
            found.append(block[None])
    both = ordinary[:1].astype(np.int64)
    both[0, :2] = nan, number.infinity_code
    alone = np.zeros((2, size), np.int64)
    alone[0, 3], alone[1, 3] = nan, number.infinity_code
    return np.concatenate([*found, both, alone]).astype(number.storage)


def _codes_and_scales(
    ruling: BlockRuling, _global_scale: float, _seed: int
) -> Iterator[tuple[str, dict[str, Bits]]]:
    """Yield words for a layout and tensors by name; the first have every code with every scale.

    Scales have no sign. Further tensors have some of these blocks in longer rows.
    """
    x, scale = _all_pairs(ruling.element, ruling.scale, ruling.size)
    yield "", {X: x, SCALE: scale}
    rows = len(x) // 4 * 4
    together = x[:rows].reshape(-1, 4 * ruling.size), scale[:rows].reshape(-1, 4)
    yield "in rows of four blocks", {X: together[0], SCALE: together[1]}
    width = ruling.size + ruling.size // 4 + 1
    ragged = np.ascontiguousarray(x[:6].reshape(3, -1)[:, :width])
    middle = scale[len(scale) // 2 : len(scale) // 2 + 6].reshape(3, 2)
    yield "in rows whose last block is shorter", {X: ragged, SCALE: middle}


@lru_cache(16)
def _all_pairs(element: Format, scale: Format, size: int) -> tuple[Bits, Bits]:
    codes = np.arange(1 << element.bits)
    rows = np.resize(codes, -(-codes.size // size) * size).reshape(-1, size)
    scales = np.arange(scale.max_code + 2)  # with the NaN that follows
    x = np.tile(rows, (scales.size, 1)).astype(element.storage)
    return x, np.repeat(scales, len(rows))[:, None].astype(scale.storage)
