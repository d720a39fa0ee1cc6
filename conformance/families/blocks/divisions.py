"""The ways in which a library may divide the elements of blocks by their scales."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks.grading import GLOBAL, SCALE, GradedBlocks
from conformance.families.blocks.kernels import NUMBER, decoded, values_of
from conformance.families.blocks.wrong import Wrong, rounded_to
from oracles.protocol import Floats, Mask

Division = Callable[[GradedBlocks], Floats]
"""Takes the graded blocks of a tensor, and returns the quotients of its elements, by block."""


def exact(each: GradedBlocks) -> Floats:
    """Return the elements, by block, divided exactly by the given scale times the global scale."""
    return each.numbers / _factors(each)


def _scales(each: GradedBlocks) -> Floats:
    return decoded(each.ruling.scale, each.scale)[..., np.newaxis]


def _factors(each: GradedBlocks) -> Floats:
    return _scales(each) * each.global_scale


def _narrow(numbers: Floats) -> Floats:
    return rounded_to("float32", numbers)


def _rounded(dtype: str) -> Division:
    return lambda each: rounded_to(dtype, exact(each))


def _by_reciprocal(each: GradedBlocks) -> Floats:
    return _narrow(each.numbers * _narrow(1 / _factors(each)))


def _by_rounded_product(each: GradedBlocks) -> Floats:
    return _narrow(each.numbers / _narrow(_factors(each)))


def _one_after_the_other(each: GradedBlocks) -> Floats:
    return _narrow(_narrow(each.numbers / _scales(each)) / each.global_scale)


def _by_reciprocal_of_global(each: GradedBlocks) -> Floats:
    inverse = _narrow(_narrow(np.array(1 / each.global_scale)) / _scales(each))
    return _narrow(each.numbers * inverse)


def _by_quotient_of_scales(each: GradedBlocks) -> Floats:
    inverse = _narrow(np.array(1 / each.global_scale))
    return _narrow(each.numbers / _narrow(_scales(each) / inverse))


def _by_reciprocal_of_product(each: GradedBlocks) -> Floats:
    inverse = _narrow(np.array(1 / each.global_scale))
    product = _narrow(_scales(each) * _narrow(1 / inverse))
    return _narrow(each.numbers * _narrow(1 / product))


def _by_scale_then_reciprocal(each: GradedBlocks) -> Floats:
    """Divide by the block's scale, round, and multiply by the global scale's rounded reciprocal.

    The quotient is rounded to the dtype of the numbers. Without a global scale, quotients are
    exact.
    """
    if GLOBAL not in each.tensors:
        return exact(each)
    inverse = _narrow(np.array(1 / each.global_scale))
    return _narrow(rounded_to(each.ruling.number.name, each.numbers / _scales(each)) * inverse)


def _without_subnormal_numbers(each: GradedBlocks) -> Floats:
    smallest = 2.0**each.ruling.number.lowest_exponent
    return np.where(np.abs(each.numbers) < smallest, 0.0, exact(each))


def _with_least_scale(each: GradedBlocks) -> Floats:
    return each.numbers / np.maximum(_factors(each), 2.0**-126)


def _smallest_scale_as_one(each: GradedBlocks) -> Floats:
    return np.where((each.scale == 0)[..., np.newaxis], each.numbers, exact(each))


def _by_unrounded_scale(each: GradedBlocks) -> Floats:
    top = values_of(each.ruling.element)[each.ruling.element.max_code]
    found: Floats = each.numbers / (each.largest[..., np.newaxis] / top)
    return found


def _by_own_scale(each: GradedBlocks) -> Floats:
    scale = decoded(each.ruling.scale, each.expected[SCALE].codes)[..., np.newaxis]
    return each.numbers / scale / each.global_scale


def _before_it_wraps(each: GradedBlocks) -> Floats:
    """Divide by 2^(k-256) where the due scale is below the smallest and the library gave 2^k > 1.

    There the library divides by a small scale before that wraps around. Elsewhere quotients are
    exact.
    """
    is_wrapped = each.expected[SCALE].asked == NUMBER["scale-below-smallest"]
    is_wrapped &= each.scale > each.ruling.scale.one_code
    return exact(each) * np.where(is_wrapped, 2.0**256, 1.0)[..., np.newaxis]


def scale_is_far_off(each: GradedBlocks) -> Mask:
    """Return the mask of elements, by block, whose scale is more than one code from the due one."""
    return np.abs(_steps_off(each)) > 1


def _steps_off(each: GradedBlocks) -> NDArray[np.int64]:
    """Return by how many codes the scales of elements, by block, exceed those that are due.

    It is 0 where the document leaves the scale open.
    """
    expected = each.expected[SCALE]
    steps = np.where(expected.is_open, 0, each.scale.astype(np.int64) - expected.codes)
    return np.broadcast_to(steps[..., np.newaxis], each.numbers.shape)


def _zero_where_scale_is_far_too_small(each: GradedBlocks) -> Floats:
    return np.where(_steps_off(each) < -1, np.copysign(0.0, each.numbers), exact(each))


def _adding_half(each: GradedBlocks) -> Floats:
    """Return quotients in float32; one just below half the smallest value becomes that value."""
    unit = values_of(each.ruling.element)[1]
    quotients = _narrow(exact(each))
    is_raised = np.abs(quotients) == (0.5 - 2.0**-25) * unit
    return np.where(is_raised, np.copysign(unit, quotients), quotients)


def _of_neighbor(step: int) -> Division:
    def quotients(each: GradedBlocks) -> Floats:
        factors = _factors(each)
        other = np.roll(factors.reshape(-1), step).reshape(factors.shape)
        found: Floats = each.numbers / other
        return found

    return quotients


DIVISIONS: tuple[Wrong[GradedBlocks, Floats], ...] = (
    Wrong(
        "reads-subnormal-numbers-as-zero",
        "reads subnormal numbers as zero when it divides them by the scale",
        _without_subnormal_numbers,
    ),
    Wrong(
        "divides-by-no-scale-below-2^-126",
        "divides elements by 2^-126 where it gives the scale 2^-127",
        _with_least_scale,
    ),
    Wrong(
        "divides-by-one-for-the-smallest-scale",
        "divides elements by 1 where it gives the scale 2^-127",
        _smallest_scale_as_one,
    ),
    Wrong(
        "divides-by-scales-before-they-wrap",
        "divides elements by the small scale and gives the large one to which that wraps around",
        _before_it_wraps,
    ),
    Wrong(
        "makes-blocks-zero-whose-scale-is-far-too-small",
        "makes zero of all elements of a block whose scale is too small by more than one step",
        _zero_where_scale_is_far_too_small,
    ),
    Wrong(
        "rounds-the-product-of-the-scales",
        "rounds the product of scale and global scale before it divides by it",
        _by_rounded_product,
    ),
    Wrong(
        "divides-elements-by-one-scale-after-the-other",
        "divides elements by the scale and then by the global scale, and rounds twice",
        _one_after_the_other,
    ),
    Wrong(
        "divides-elements-by-the-scale-over-the-reciprocal",
        "divides elements by the scale over the rounded reciprocal of the global scale",
        _by_quotient_of_scales,
    ),
    Wrong(
        "multiplies-elements-by-the-reciprocal-of-the-product",
        "multiplies elements by the rounded reciprocal of the rounded product of the scales",
        _by_reciprocal_of_product,
    ),
    Wrong(
        "multiplies-elements-by-the-reciprocal-of-the-global-scale",
        "multiplies elements by the rounded reciprocal of the global scale over the scale",
        _by_reciprocal_of_global,
    ),
    Wrong(
        "multiplies-quotients-by-the-reciprocal-of-the-global-scale",
        "divides elements by the scale, rounds, and multiplies by the reciprocal of the global one",
        _by_scale_then_reciprocal,
    ),
    Wrong(
        "multiplies-elements-by-the-reciprocal",
        "multiplies elements by the rounded reciprocal of the scale instead of dividing by it",
        _by_reciprocal,
    ),
    Wrong(
        "rounds-elements-to-bfloat16-first",
        "rounds elements of blocks to bfloat16 before it rounds them to the code's dtype",
        _rounded("bfloat16"),
    ),
    Wrong(
        "rounds-elements-to-float16-first",
        "rounds elements of blocks to float16 before it rounds them to the code's dtype",
        _rounded("float16"),
    ),
    Wrong(
        "rounds-elements-to-float32-first",
        "rounds elements of blocks to float32 before it rounds them to the code's dtype",
        _rounded("float32"),
    ),
    Wrong(
        "adds-half-to-elements-in-float32",
        "rounds up elements just below half the smallest value, as adding 1/2 in float32 does",
        _adding_half,
    ),
    Wrong(
        "divides-elements-by-the-unrounded-scale",
        "divides elements by the scale that is not rounded yet",
        _by_unrounded_scale,
    ),
    Wrong(
        "divides-elements-by-another-scale-than-it-gives",
        "divides elements by the scale of the rule that is asked, and gives another one",
        _by_own_scale,
    ),
    Wrong(
        "divides-elements-by-the-scale-of-the-block-before",
        "divides elements by the scale of the block before",
        _of_neighbor(1),
    ),
    Wrong(
        "divides-elements-by-the-scale-of-the-block-after",
        "divides elements by the scale of the block after",
        _of_neighbor(-1),
    ),
)
"""The ways to divide elements other than exactly by the given scales."""
