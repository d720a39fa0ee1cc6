"""How a library may have made codes of the elements of blocks in place of what the document says.

A mechanism explains a case if it gives every code, by the scales that the library gave itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.block_kernels import Floats, decoded, nearest_codes, values_of
from reports.findings.narrow_floats import rounded_to
from reports.grading.graded_blocks import SCALE, GradedBlocks, Part, Y
from specs.formats import Format

Ints = NDArray[Any]


@dataclass(frozen=True)
class Elements:
    """The elements of a tensor of blocks, and what codes are made of them."""

    blocks: GradedBlocks

    @cached_property
    def factors(self) -> Floats:
        """The given scale of each block, with the global one."""
        scale = decoded(self.blocks.ruling.scale, self.blocks.scale)[..., np.newaxis]
        return scale * self.blocks.global_scale

    @cached_property
    def quotients(self) -> Floats:
        """The elements divided by the scales, zero where that is no number."""
        with np.errstate(all="ignore"):
            quotients = self.blocks.numbers / self.factors
        return np.where(np.isfinite(quotients), quotients, 0.0)

    @cached_property
    def is_negative(self) -> NDArray[np.bool_]:
        """Which elements have a sign."""
        return np.signbit(self.blocks.numbers)

    @property
    def format(self) -> Format:
        """The dtype of the codes."""
        return self.blocks.ruling.element

    @cached_property
    def values(self) -> Floats:
        """The values of codes without sign."""
        return values_of(self.format)[: self.format.max_code + 1]

    def nearest(self, quotients: Floats | None = None) -> Ints:
        """The places of the nearest values, ties to even."""
        return nearest_codes(
            self.values, np.abs(self.quotients if quotients is None else quotients)
        )

    def signed(self, places: Ints, is_negative: NDArray[np.bool_] | None = None) -> Ints:
        """The codes at places, the largest at most, with their signs."""
        negative = self.is_negative if is_negative is None else is_negative
        places = np.minimum(places, self.format.max_code)
        if self.format.is_integral:
            return np.where(negative, -places, places) & self.format.mask
        return places | np.where(negative, self.format.sign_bit, 0)


Mechanism = Callable[[Elements], Ints]


def followed_in_codes(answered: Sequence[GradedBlocks], part: Part) -> tuple[str, ...]:
    """The names of the mechanisms that give all codes, as far as they belong to a part."""
    made = [Elements(each) for each in answered]
    return tuple(
        name
        for name, (_, mechanism) in MECHANISMS.items()
        if all(_gives(each, mechanism, part) for each in made)
    )


def _gives(each: Elements, mechanism: Mechanism, part: Part) -> bool:
    blocks = each.blocks
    with np.errstate(all="ignore"):
        codes = blocks.unblocked(mechanism(each))
    # An answer that the document allows needs no explanation where integers leave a choice.
    differs = blocks.graded(Y, part) & (codes != blocks.results[Y])
    chosen = blocks.ruling.element.is_integral & ~blocks.wrong[Y]
    return not (differs & ~chosen).any()


def _ties(goes_up: Callable[[Ints], Any]) -> Mechanism:
    """The codes if a tie goes up from the places for which this holds."""

    def codes(each: Elements) -> Ints:
        middles = np.append(
            each.values[1:] + each.values[:-1], 3 * each.values[-1] - each.values[-2]
        )
        doubled = 2 * np.abs(each.quotients)
        places = np.searchsorted(middles, doubled)
        is_tie = middles[np.minimum(places, middles.size - 1)] == doubled
        return each.signed(places + (is_tie & goes_up(places)))

    return codes


def _without_subnormals(each: Elements) -> Ints:
    places = each.nearest()
    return each.signed(np.where(places < 1 << each.format.entry.mantissa, 0, places))


def _beyond(code: Callable[[Format, Ints], Any]) -> Mechanism:
    """The codes if what is beyond the largest value becomes this code."""

    def codes(each: Elements) -> Ints:
        places = each.nearest()
        sign = np.where(each.is_negative, each.format.sign_bit, 0)
        other = (code(each.format, places) & each.format.mask) | sign
        return np.where(places > each.format.max_code, other, each.signed(places))

    return codes


def _as(dtype: str) -> Mechanism:
    return lambda each: each.signed(each.nearest(rounded_to(dtype, each.quotients)))


def _by_reciprocal(each: Elements) -> Ints:
    inverse = rounded_to("float32", 1 / each.factors)
    return each.signed(each.nearest(rounded_to("float32", each.blocks.numbers * inverse)))


def _by(divide: Callable[[Elements], Floats]) -> Mechanism:
    """The codes of quotients that are made in another way."""
    return lambda each: each.signed(each.nearest(divide(each)))


def _narrow(numbers: Floats) -> Floats:
    return rounded_to("float32", numbers)


def _by_rounded_product(each: Elements) -> Floats:
    return _narrow(each.blocks.numbers / _narrow(each.factors))


def _one_after_the_other(each: Elements) -> Floats:
    scale = each.factors / each.blocks.global_scale
    return _narrow(_narrow(each.blocks.numbers / scale) / each.blocks.global_scale)


def _by_reciprocal_of_global(each: Elements) -> Floats:
    scale = each.factors / each.blocks.global_scale
    inverse = _narrow(_narrow(np.array(1 / each.blocks.global_scale)) / scale)
    return _narrow(each.blocks.numbers * inverse)


def _without_subnormal_numbers(each: Elements) -> Floats:
    number = each.blocks.ruling.number
    smallest = 2.0**number.lowest_exponent
    return np.where(np.abs(each.blocks.numbers) < smallest, 0.0, each.quotients)


def _with_least_scale(each: Elements) -> Floats:
    return each.blocks.numbers / np.maximum(each.factors, 2.0**-126)


def _smallest_scale_as_one(each: Elements) -> Floats:
    is_smallest = (each.blocks.scale == 0)[..., np.newaxis]
    return np.where(is_smallest, each.blocks.numbers, each.quotients)


def _negative_zeros(each: Elements) -> Ints:
    is_zero = _narrow(each.quotients) == 0
    return each.signed(each.nearest(), each.is_negative | is_zero)


def _without_negative_zero(each: Elements) -> Ints:
    return each.signed(each.nearest(), each.is_negative & (each.blocks.numbers != 0))


def _by_unrounded_scale(each: Elements) -> Ints:
    factors = each.blocks.largest[..., np.newaxis] / each.values[-1]
    return each.signed(each.nearest(each.blocks.numbers / factors))


def _by_own_scale(each: Elements) -> Ints:
    scale = decoded(each.blocks.ruling.scale, each.blocks.expected[SCALE].codes)[..., np.newaxis]
    return each.signed(each.nearest(each.blocks.numbers / scale / each.blocks.global_scale))


def _of_neighbor(step: int) -> Mechanism:
    def codes(each: Elements) -> Ints:
        factors = np.roll(each.factors.reshape(-1), step).reshape(each.factors.shape)
        return each.signed(each.nearest(each.blocks.numbers / factors))

    return codes


def _without_sign_of_zeros(each: Elements) -> Ints:
    places = each.nearest()
    return each.signed(places, each.is_negative & (places > 0))


def _moved(order: Callable[[Ints], Ints]) -> Mechanism:
    return lambda each: order(each.signed(each.nearest()))


def swap_neighbors(codes: Ints) -> Ints:
    """Exchange the two codes of each pair of a block."""
    return codes.reshape(*codes.shape[:-1], -1, 2)[..., ::-1].reshape(codes.shape)


def interleave_halves(codes: Ints) -> Ints:
    """Put an element of the second half of a block behind each one of the first."""
    halves = codes.reshape(*codes.shape[:-1], 2, -1)
    return halves.swapaxes(-1, -2).reshape(codes.shape)


def part_pairs(codes: Ints) -> Ints:
    """Put the first elements of all pairs of a block before the second ones."""
    pairs = codes.reshape(*codes.shape[:-1], -1, 2)
    return pairs.swapaxes(-1, -2).reshape(codes.shape)


MECHANISMS: Mapping[str, tuple[str, Mechanism]] = {
    "rounds-elements-half-away": (
        "rounds ties of elements away from zero",
        _ties(lambda places: True),
    ),
    "rounds-elements-half-toward-zero": (
        "rounds ties of elements toward zero",
        _ties(lambda places: False),
    ),
    "rounds-elements-half-to-odd": (
        "rounds ties of elements to odd codes",
        _ties(lambda places: places % 2 == 0),
    ),
    "truncates-elements": (
        "truncates elements of blocks instead of rounding them",
        lambda each: each.signed(
            np.searchsorted(each.values, np.abs(each.quotients), side="right") - 1
        ),
    ),
    "rounds-elements-away-from-zero": (
        "rounds elements of blocks away from zero",
        lambda each: each.signed(np.searchsorted(each.values, np.abs(each.quotients))),
    ),
    "makes-small-elements-zero": (
        "makes zero of elements of blocks whose codes are subnormal",
        _without_subnormals,
    ),
    "makes-large-elements-nan": (
        "makes NaN of elements beyond the largest value",
        _beyond(lambda fmt, _: fmt.nan_codes[0][-1] if fmt.nan_codes else 0),
    ),
    "makes-large-elements-infinite": (
        "makes infinity of elements beyond the largest value",
        _beyond(lambda fmt, _: fmt.infinity_code),
    ),
    "makes-large-elements-zero": (
        "makes zero of elements beyond the largest value",
        _beyond(lambda fmt, _: 0),
    ),
    "wraps-large-elements": (
        "wraps elements beyond the largest value to small codes",
        _beyond(lambda fmt, places: places & ~fmt.sign_bit),
    ),
    "saturates-below-the-largest-code": (
        "saturates elements at the code below the largest",
        _beyond(lambda fmt, _: fmt.max_code - 1),
    ),
    "drops-the-sign-of-zero-elements": (
        "drops the sign of elements that become zero",
        _without_sign_of_zeros,
    ),
    "makes-zero-negative": (
        "gives every element that becomes zero the code of -0",
        _negative_zeros,
    ),
    "drops-the-signs-of-elements": (
        "drops the signs of elements",
        lambda each: each.signed(each.nearest(), np.zeros(each.is_negative.shape, np.bool_)),
    ),
    "reads-negative-zero-as-zero": (
        "makes zero of -0, and keeps the sign of other elements that become zero",
        _without_negative_zero,
    ),
    "reads-subnormal-numbers-as-zero": (
        "reads subnormal numbers as zero when it divides them by the scale",
        _by(_without_subnormal_numbers),
    ),
    "divides-by-no-scale-below-2^-126": (
        "divides elements by 2^-126 where it gives the scale 2^-127",
        _by(_with_least_scale),
    ),
    "divides-by-one-for-the-smallest-scale": (
        "divides elements by 1 where it gives the scale 2^-127",
        _by(_smallest_scale_as_one),
    ),
    "rounds-the-product-of-the-scales": (
        "rounds the product of scale and global scale before it divides by it",
        _by(_by_rounded_product),
    ),
    "divides-elements-by-one-scale-after-the-other": (
        "divides elements by the scale and then by the global scale, and rounds twice",
        _by(_one_after_the_other),
    ),
    "multiplies-elements-by-the-reciprocal-of-the-global-scale": (
        "multiplies elements by the rounded reciprocal of the global scale over the scale",
        _by(_by_reciprocal_of_global),
    ),
    "multiplies-elements-by-the-reciprocal": (
        "multiplies elements by the rounded reciprocal of the scale instead of dividing by it",
        _by_reciprocal,
    ),
    "rounds-elements-to-bfloat16-first": (
        "rounds elements of blocks to bfloat16 before it rounds them to the code's dtype",
        _as("bfloat16"),
    ),
    "rounds-elements-to-float16-first": (
        "rounds elements of blocks to float16 before it rounds them to the code's dtype",
        _as("float16"),
    ),
    "rounds-elements-to-float32-first": (
        "rounds elements of blocks to float32 before it rounds them to the code's dtype",
        _as("float32"),
    ),
    "divides-elements-by-the-unrounded-scale": (
        "divides elements by the scale that is not rounded yet",
        _by_unrounded_scale,
    ),
    "divides-elements-by-another-scale-than-it-gives": (
        "divides elements by the scale of the rule that is asked, and gives another one",
        _by_own_scale,
    ),
    "divides-elements-by-the-scale-of-the-block-before": (
        "divides elements by the scale of the block before",
        _of_neighbor(1),
    ),
    "divides-elements-by-the-scale-of-the-block-after": (
        "divides elements by the scale of the block after",
        _of_neighbor(-1),
    ),
    "swaps-the-codes-of-a-byte": ("swaps the two codes of a byte", _moved(swap_neighbors)),
    "interleaves-the-halves-of-a-block": (
        "gives the codes of a block in another order: the halves are interleaved",
        _moved(interleave_halves),
    ),
    "parts-the-pairs-of-a-block": (
        "gives the codes of a block in another order: first all even places, then the odd ones",
        _moved(part_pairs),
    ),
    "reverses-blocks": (
        "gives the codes of a block in reverse order",
        _moved(lambda codes: codes[..., ::-1]),
    ),
}
"""The sentence of each mechanism, and the codes by block that it gives."""


def says(name: str) -> str:
    """The sentence of a finding; empty if the name is no mechanism of codes."""
    return MECHANISMS[name][0] if name in MECHANISMS else ""
