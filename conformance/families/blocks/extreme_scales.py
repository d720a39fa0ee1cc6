"""Scales of extreme blocks, whose faults have reasons of their own.

Each fault covers some blocks: those below or above a magnitude, or those whose scale is at most the
smallest. It is found if all blocks that it covers got the scale that it predicts, and some of these
scales are wrong. Blocks that no fault covers are explained on their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks.grading import SCALE, GradedBlocks
from conformance.families.blocks.kernels import POWER_LIMIT, threshold, values_of
from conformance.families.blocks.scale_wrongs import NEVER_BELOW, Among, graded_scales, scale_text
from conformance.families.blocks.wrong import Wrong, rounded_to
from oracles.protocol import Floats, Mask

SMALLEST = "gives-the-smallest-blocks-the-scale-"
LARGEST = "gives-the-largest-blocks-the-scale-"


class Extreme(NamedTuple):
    """The name of a fault of extreme blocks, and the function that masks the blocks it covers."""

    name: str
    covers: Among


def says(name: str) -> str:
    """Return the sentence of a fault of the smallest or largest blocks; empty for other names."""
    for start, which in ((SMALLEST, "smallest"), (LARGEST, "largest")):
        if name.startswith(start):
            scale = name.removeprefix(start)
            return f"gives blocks of the {which} magnitudes the scale {scale}, whatever they are"
    return ""


def extreme_scales(answered: Sequence[GradedBlocks]) -> Iterator[Extreme]:
    """Yield the faults that explain wrong scales of extreme blocks in all answered tensors."""
    yield from filter(None, [_at_end(answered, is_top=False), _at_end(answered, is_top=True)])
    if answered[0].ruling.scale.entry.mantissa:
        return
    for row in BELOW:
        covered = [(each, _below(each)) for each in answered]
        wrong = any((mask & each.wrong[SCALE]).any() for each, mask in covered)
        if wrong and all((row.answers(each) == each.scale)[mask].all() for each, mask in covered):
            yield Extreme(row.name, _below)


def _at_end(answered: Sequence[GradedBlocks], *, is_top: bool) -> Extreme | None:
    """Return the fault that gives all blocks beyond a magnitude the same scale; None without one.

    The blocks are the largest if ``is_top``, else the smallest.
    """
    found = [_ordered(each, is_top) for each in answered]
    order, given, own = map(np.concatenate, zip(*found, strict=True))
    if not order.size:
        return None
    code = given[order.argmin()]
    bound = order[given != code].min(initial=np.inf)
    if not (own != code)[order < bound].any() or np.isinf(bound):
        return None

    def covers(each: GradedBlocks) -> Mask:
        mask: Mask = graded_scales(each) & each.extreme_blocks & (_order(each, is_top) < bound)
        return mask

    text = scale_text(answered[0].ruling.scale, int(code))
    if (
        not is_top
        and code
        and all((each.scale >= code)[graded_scales(each)].all() for each in answered)
    ):
        return Extreme(f"{NEVER_BELOW}{text}", covers)
    return Extreme(f"{LARGEST if is_top else SMALLEST}{text}", covers)


def _ordered(each: GradedBlocks, is_top: bool) -> tuple[NDArray[Any], ...]:
    """Return arrays over the blocks whose scale is not open: keys, given and right scales.

    The keys order blocks by magnitude, from the largest if ``is_top``, else from the smallest.
    """
    asked = graded_scales(each)
    return _order(each, is_top)[asked], each.scale[asked], each.expected[SCALE].codes[asked]


def _order(each: GradedBlocks, is_top: bool) -> Floats:
    with np.errstate(invalid="ignore"):
        ratios = each.largest / each.global_scale
    return -ratios if is_top else ratios


def _powers(each: GradedBlocks) -> Floats:
    """Return the exponents of scales before clamping, from quotients in the numbers' dtype.

    A quotient that rounds to zero has an infinite exponent.
    """
    ruling = each.ruling
    top = float(values_of(ruling.element)[ruling.element.max_code])
    at = threshold(ruling.element, ruling.word("scale"))
    largest = np.where(np.isfinite(each.largest), each.largest, 0.0)
    fraction, exponent = np.frexp(
        rounded_to(ruling.number.name, largest / top) * top / at.magnitude
    )
    power = exponent - 1 - ((fraction == 0.5) & (not at.includes))
    return np.where(fraction == 0, np.inf, power)


def _below(each: GradedBlocks) -> Mask:
    """Return the mask of blocks whose scale is not open, and at most 2^-127 before clamping.

    Blocks whose quotient rounds to zero are not among them.
    """
    mask: Mask = graded_scales(each) & (_powers(each) <= -POWER_LIMIT)
    return mask


def _wrapped(each: GradedBlocks) -> NDArray[Any]:
    powers = np.where(np.isfinite(_powers(each)), _powers(each), 0).astype(np.int64)
    return (powers + each.ruling.scale.entry.bias) & each.ruling.scale.mask


BELOW: tuple[Wrong[GradedBlocks, NDArray[Any]], ...] = (
    Wrong(
        "wraps-scales-below-2^-127",
        "wraps scales below 2^-127 around to large ones",
        _wrapped,
    ),
    Wrong(
        "gives-2^-126-in-the-place-of-2^-127",
        "gives blocks whose scale is 2^-127 the scale 2^-126",
        lambda each: np.ones(each.scale.shape, np.uint8),
    ),
)
"""The mechanisms that give other scales to blocks whose scale is at most the smallest."""
