"""Mechanisms by which a library may have encoded elements of blocks other than documented.

A mechanism explains a case if it gives every code, computed with the library's own scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks.divisions import DIVISIONS, Division, exact, scale_is_far_off
from conformance.families.blocks.grading import SCALE, GradedBlocks, Part, X, Y
from conformance.families.blocks.kernels import (
    NUMBER,
    decoded,
    in_blocks,
    nearest_codes,
    values_of,
)
from conformance.families.blocks.wrong import Wrong, rounded_to
from oracles.protocol import Floats
from specs.formats import Format

BlockCodes = NDArray[Any]


@dataclass(frozen=True)
class BlockElements:
    """The elements of a tensor of blocks, divided by their scales in one way, and their codes."""

    blocks: GradedBlocks
    way: Division = exact

    @cached_property
    def quotients(self) -> Floats:
        """The elements divided by the scales; zero where the quotient is not finite."""
        with np.errstate(all="ignore"):
            quotients = self.way(self.blocks)
        return np.where(np.isfinite(quotients), quotients, 0.0)

    @cached_property
    def is_negative(self) -> NDArray[np.bool_]:
        """The mask of elements whose sign bit is set."""
        return np.signbit(self.blocks.numbers)

    @property
    def format(self) -> Format:
        """The dtype of the codes."""
        return self.blocks.ruling.element

    @cached_property
    def values(self) -> Floats:
        """The values of the codes from 0 to the largest finite one, in the order of the codes."""
        return values_of(self.format)[: self.format.max_code + 1]

    @cached_property
    def nearest(self) -> BlockCodes:
        """The index of the value nearest to each magnitude of ``quotients``, ties to even indices.

        Quotients nearer to a value beyond the last have the index after it.
        """
        return nearest_codes(self.values, np.abs(self.quotients))

    def signed(
        self, places: BlockCodes, is_negative: NDArray[np.bool_] | None = None
    ) -> BlockCodes:
        """Turn indices of values into codes with signs, clamped to the largest code.

        The signs are those of the elements, unless ``is_negative`` marks the negative ones.
        """
        negative = self.is_negative if is_negative is None else is_negative
        places = np.minimum(places, self.format.max_code)
        if self.format.is_integral:
            return np.where(negative, -places, places) & self.format.mask
        return places | np.where(negative, self.format.sign_bit, 0)


FEW_BLOCKS = 16
"""The most wrong blocks of a tensor on which a mechanism is tried before it is tried on all."""
AND = "-and-"
"""Joins the names of a mechanism and a way to divide that explain codes together."""
CodeMechanism = Callable[[BlockElements], BlockCodes]


def followed_in_codes(answered: Sequence[GradedBlocks], part: Part) -> tuple[str, ...]:
    """Return the names of the mechanisms that give all codes of a part; empty if none does.

    Where the document allows two codes, a right one need not be given. The mechanisms are tried
    with exact division, and the ways to divide with the nearest codes. If none of them gives all
    codes, pairs of a way and a mechanism are tried, and then the same pairs with quotients that are
    also rounded to the dtype of the numbers. ``AND`` joins the names.
    """
    few = [
        wrong
        for each in answered
        if each.x.shape[-1] % each.ruling.size == 0 and (wrong := _few_wrong(each, part)).x.size
    ]

    def giving(way: Division) -> Iterator[str]:
        """Yield the names of the mechanisms that give all codes if ``way`` divides the elements."""
        sample, every = (
            [BlockElements(each, way) for each in tensors] for tensors in (few, answered)
        )
        for row in WRONGS:
            if all(_gives(each, row.answers, part) for each in chain(sample, every)):
                yield row.name

    if found := (
        *giving(exact),
        # In a sample of blocks a block has other neighbors, and some ways use a neighbor's scale.
        *(
            row.name
            for row in DIVISIONS
            if all(_gives(BlockElements(each, row.answers), _nearest, part) for each in answered)
        ),
    ):
        return found
    rounding = f"rounds-elements-to-{answered[0].ruling.number.name}-first"
    for after in ("", rounding):
        if found := tuple(
            AND.join(filter(None, (name, division.name, after)))
            for division in DIVISIONS
            if division.name != after
            for name in giving(_then(division.answers, after))
        ):
            return found
    return ()


def _then(way: Division, after: str) -> Division:
    """Return ``way`` with its quotients then rounded as the division named ``after`` rounds them.

    If ``after`` is empty, return ``way`` itself.
    """
    if not after:
        return way
    dtype = after.removeprefix("rounds-elements-to-").removesuffix("-first")
    return lambda each: rounded_to(dtype, way(each))


def _few_wrong(blocks: GradedBlocks, part: Part) -> GradedBlocks:
    """Return a tensor of up to ``FEW_BLOCKS`` of the blocks in which a code of a part is wrong."""
    size = blocks.ruling.size
    wrong = in_blocks(size, blocks.wrong[Y] & blocks.graded(Y, part)).any(axis=-1)
    chosen = np.flatnonzero(wrong.reshape(-1))
    chosen = chosen[:: len(chosen) // FEW_BLOCKS + 1]
    x, y = (
        in_blocks(size, each).reshape(-1, size)[chosen] for each in (blocks.x, blocks.results[Y])
    )
    scale = blocks.scale.reshape(-1, 1)[chosen]
    return replace(blocks, tensors={**blocks.tensors, X: x}, results={Y: y, SCALE: scale})


def _nearest(each: BlockElements) -> BlockCodes:
    return each.signed(each.nearest)


def _gives(each: BlockElements, mechanism: CodeMechanism, part: Part) -> bool:
    blocks = each.blocks
    with np.errstate(all="ignore"):
        codes = blocks.unblocked(mechanism(each))
    # An answer that the document allows needs no explanation where it leaves a choice.
    differs = blocks.graded(Y, part) & (codes != blocks.results[Y])
    is_free = (blocks.expected[Y].asked == NUMBER["element-lowest"]) & ~blocks.wrong[Y]
    return not (differs & ~is_free).any()


def _ties(goes_up: Callable[[BlockCodes], Any]) -> CodeMechanism:
    """Return the mechanism that rounds a tie up if ``goes_up`` holds for the lower value's index.

    Other quotients get the nearest code. ``goes_up`` takes an array of indices.
    """

    def codes(each: BlockElements) -> BlockCodes:
        middles = np.append(
            each.values[1:] + each.values[:-1], 3 * each.values[-1] - each.values[-2]
        )
        doubled = 2 * np.abs(each.quotients)
        places = np.searchsorted(middles, doubled)
        is_tie = middles[np.minimum(places, middles.size - 1)] == doubled
        return each.signed(places + (is_tie & goes_up(places)))

    return codes


def _first_of_the_nearest(each: BlockElements) -> BlockCodes:
    """Return the codes of the values at the least distance, in float32, from the quotients.

    Of codes at the same distance, one without sign comes first, and then the one nearer to zero.
    """
    quotients = rounded_to("float32", each.quotients)
    found = []
    for numbers in (quotients, -quotients):
        least, places = np.full(numbers.shape, np.inf), np.zeros(numbers.shape, np.int64)
        for place, value in enumerate(each.values.tolist()):
            distance = np.abs(rounded_to("float32", numbers - value))
            places = np.where(distance < least, place, places)
            least = np.minimum(distance, least)
        found.append((least, places))
    (least, places), (other_least, other_places) = found
    is_negative = other_least < least
    return each.signed(np.where(is_negative, other_places, places), is_negative)


def _without_subnormals(each: BlockElements) -> BlockCodes:
    places = each.nearest
    return each.signed(np.where(places < 1 << each.format.entry.mantissa, 0, places))


def _beyond(code: Callable[[Format, BlockCodes], Any]) -> CodeMechanism:
    """Return the mechanism that gives elements beyond the largest value what ``code`` returns.

    ``code`` takes the codes' format and the indices of the nearest values; each element keeps its
    sign. Elements whose scale is wrong by more than one step get the largest code, because the
    scale explains them.
    """

    def codes(each: BlockElements) -> BlockCodes:
        places = each.nearest
        sign = np.where(each.is_negative, each.format.sign_bit, 0)
        other = (code(each.format, places) & each.format.mask) | sign
        is_beyond = (places > each.format.max_code) & ~scale_is_far_off(each.blocks)
        return np.where(is_beyond, other, each.signed(places))

    return codes


def _negative_zeros(each: BlockElements) -> BlockCodes:
    is_zero = rounded_to("float32", each.quotients) == 0
    return each.signed(each.nearest, each.is_negative | is_zero)


def _without_negative_zero(each: BlockElements) -> BlockCodes:
    is_zero = rounded_to("float32", each.quotients) == 0
    return each.signed(each.nearest, each.is_negative & ~is_zero)


def _products(each: BlockElements, places: BlockCodes) -> Floats:
    scale = decoded(each.blocks.ruling.scale, each.blocks.scale)[..., np.newaxis]
    return each.values[np.minimum(places, each.format.max_code)] * scale


def _overflowing(each: BlockElements) -> BlockCodes:
    """Return the nearest codes, but infinity for elements whose code times the scale overflows.

    The largest NaN takes the place of infinity in a format without infinities, the largest code in
    one without NaNs too, and 0 in an integer format.
    """
    places = each.nearest
    number, fmt = each.blocks.ruling.number, each.format
    end = 2.0 ** (np.frexp(decoded(number, np.array([number.max_code]))[0])[1])
    is_beyond = _products(each, places) >= end * (1 - 2.0 ** -(number.entry.mantissa + 2))
    if fmt.is_integral:
        return np.where(is_beyond, 0, each.signed(places))
    code = fmt.max_code
    if fmt.entry.infinity:
        code = fmt.infinity_code
    elif fmt.nan_codes:
        code = fmt.nan_codes[0][-1]
    sign = np.where(each.is_negative, fmt.sign_bit, 0)
    return np.where(is_beyond, code | sign, each.signed(places))


def _below_overflow(each: BlockElements) -> BlockCodes:
    """Return the nearest codes, lowered by one or two where code times scale would overflow."""
    places = np.minimum(each.nearest, each.format.max_code)
    limit = 2.0 ** (each.blocks.ruling.number.entry.bias + 1)
    for _ in range(2):
        places = np.where(_products(each, places) >= limit, places - 1, places)
    return each.signed(places)


def _without_sign_of_zeros(each: BlockElements) -> BlockCodes:
    places = each.nearest
    return each.signed(places, each.is_negative & (places > 0))


def _moved(order: Callable[[BlockCodes], BlockCodes]) -> CodeMechanism:
    return lambda each: order(each.signed(each.nearest))


def swap_neighbors(codes: BlockCodes) -> BlockCodes:
    """Exchange the two codes of each pair of neighbors in a block."""
    return codes.reshape(*codes.shape[:-1], -1, 2)[..., ::-1].reshape(codes.shape)


def interleave_halves(codes: BlockCodes) -> BlockCodes:
    """Put the codes of a block's second half alternately behind those of its first half."""
    halves = codes.reshape(*codes.shape[:-1], 2, -1)
    return halves.swapaxes(-1, -2).reshape(codes.shape)


def part_pairs(codes: BlockCodes) -> BlockCodes:
    """Put the codes at even places of a block before those at odd places."""
    pairs = codes.reshape(*codes.shape[:-1], -1, 2)
    return pairs.swapaxes(-1, -2).reshape(codes.shape)


WRONGS: tuple[Wrong[BlockElements, BlockCodes], ...] = (
    Wrong(
        "rounds-elements-half-away",
        "rounds ties of elements away from zero",
        _ties(lambda places: True),
    ),
    Wrong(
        "rounds-elements-half-toward-zero",
        "rounds ties of elements toward zero",
        _ties(lambda places: False),
    ),
    Wrong(
        "rounds-elements-half-to-odd",
        "rounds ties of elements to odd codes",
        _ties(lambda places: places % 2 == 0),
    ),
    Wrong(
        "truncates-elements",
        "truncates elements of blocks instead of rounding them",
        lambda each: each.signed(
            np.searchsorted(each.values, np.abs(each.quotients), side="right") - 1
        ),
    ),
    Wrong(
        "rounds-elements-away-from-zero",
        "rounds elements of blocks away from zero",
        lambda each: each.signed(np.searchsorted(each.values, np.abs(each.quotients))),
    ),
    Wrong(
        "makes-small-elements-zero",
        "makes zero of elements of blocks whose codes are subnormal",
        _without_subnormals,
    ),
    Wrong(
        "makes-large-elements-nan",
        "makes NaN of elements beyond the largest value",
        _beyond(lambda fmt, _: fmt.nan_codes[0][-1] if fmt.nan_codes else fmt.max_code),
    ),
    Wrong(
        "makes-large-elements-infinite",
        "makes infinity of elements beyond the largest value",
        _beyond(lambda fmt, _: fmt.infinity_code if fmt.entry.infinity else fmt.max_code),
    ),
    Wrong(
        "makes-large-elements-zero",
        "makes zero of elements beyond the largest value",
        _beyond(lambda fmt, _: 0),
    ),
    Wrong(
        "wraps-large-elements",
        "wraps elements beyond the largest value to small codes",
        _beyond(lambda fmt, places: places & ~fmt.sign_bit),
    ),
    Wrong(
        "saturates-below-the-largest-code",
        "saturates elements at the code below the largest",
        _beyond(lambda fmt, _: fmt.max_code - 1),
    ),
    Wrong(
        "drops-the-sign-of-zero-elements",
        "drops the sign of elements that become zero",
        _without_sign_of_zeros,
    ),
    Wrong(
        "makes-zero-negative",
        "gives every element that becomes zero the code of -0",
        _negative_zeros,
    ),
    Wrong(
        "drops-the-signs-of-elements",
        "drops the signs of elements",
        lambda each: each.signed(each.nearest, np.zeros(each.is_negative.shape, np.bool_)),
    ),
    Wrong(
        "reads-negative-zero-as-zero",
        "makes zero of -0, and keeps the sign of other elements that become zero",
        _without_negative_zero,
    ),
    Wrong(
        "makes-infinity-of-products-that-overflow",
        "makes infinity of elements whose code times the scale overflows",
        _overflowing,
    ),
    Wrong(
        "gives-no-code-whose-product-overflows",
        "gives no code that overflows when it is multiplied by the scale",
        _below_overflow,
    ),
    Wrong("swaps-the-codes-of-a-byte", "swaps the two codes of a byte", _moved(swap_neighbors)),
    Wrong(
        "interleaves-the-halves-of-a-block",
        "gives the codes of a block in another order: the halves are interleaved",
        _moved(interleave_halves),
    ),
    Wrong(
        "parts-the-pairs-of-a-block",
        "gives the codes of a block in another order: first all even places, then the odd ones",
        _moved(part_pairs),
    ),
    Wrong(
        "reverses-blocks",
        "gives the codes of a block in reverse order",
        _moved(lambda codes: codes[..., ::-1]),
    ),
    Wrong(
        "takes-the-first-of-the-nearest-codes",
        "takes the first code at the least float32 distance: ties go toward zero, -0 becomes 0",
        _first_of_the_nearest,
    ),
)
"""The mechanisms by which elements may get other codes than documented."""
