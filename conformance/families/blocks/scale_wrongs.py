"""Mechanisms by which a library may have given blocks other scales than documented.

A mechanism explains blocks if it gives every scale that they got, as far as it applies to them. The
other scale rules are tried first, then detours on the way to the case's own rule, then a least
scale, and then thresholds that no rule has: the answers show between which magnitudes a scale
doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks.grading import SCALE, GradedBlocks
from conformance.families.blocks.kernels import (
    NUMBER,
    decoded,
    scales_of,
    threshold,
    values_of,
)
from conformance.families.blocks.ruling import BlockRuling
from conformance.families.blocks.wrong import Wrong, rounded_to
from oracles.protocol import Floats, Mask
from specs.formats import Format
from specs.model.block_entry import BlockWord, ScaleRule

STEPS = "doubles-scales-from-"
NEVER_BELOW = "never-gives-a-scale-below-"
OF_POWERS_ONLY = ("floor", "ceil", "even", "nearest", "nearest-log", "round-up-7.25")
OF_MANTISSAS_ONLY = ("nearest-even", "nearest-away")
MOST_BITS = 12
"""The most bits of a threshold that a name states."""


class Scales(NamedTuple):
    """The scale codes that a mechanism gives, by block, and the mask of blocks it applies to."""

    codes: NDArray[Any]
    is_defined: NDArray[np.bool_]


Among = Callable[[GradedBlocks], Mask]
"""Takes the graded blocks of a tensor, and returns the mask of those to explain."""
Largest = Callable[[GradedBlocks], Floats]
ScaleMechanism = Callable[[GradedBlocks], Scales]


def says(name: str) -> str:
    """Return the sentence of the mechanism ``name``; empty if it is no threshold or least scale."""
    if name.startswith(STEPS):
        step = name.removeprefix(STEPS)
        return f"gives the scale 2^k to blocks whose largest magnitude is {step} * 2^k or more"
    if name.startswith(NEVER_BELOW):
        return f"gives no block a scale below {name.removeprefix(NEVER_BELOW)}"
    return ""


def graded_scales(each: GradedBlocks) -> Mask:
    """Return the mask of blocks whose scales the document does not leave open."""
    return ~each.expected[SCALE].is_open


def followed_in_scales(
    answered: Sequence[GradedBlocks], among: Among = graded_scales
) -> tuple[str, ...]:
    """Return the names of the mechanisms that explain the scales of the blocks ``among`` selects.

    Other rules are tried first, then detours, then a least scale, then a threshold. Only those of
    the first kind that has any are returned. A rule or detour must apply to most wrong scales.
    """
    ruling = answered[0].ruling
    asked = ruling.word("scale")
    words = (each for each in get_args(ScaleRule) if each != asked and _may_have(ruling, each))
    rules = [other_rule(word, asked) for word in words]
    for rows in (rules, DETOURS):
        if found := tuple(each.name for each in rows if _gives(answered, each.answers, among)):
            return found
    return tuple(filter(None, [_least_scale(answered, among) or _step(answered, among)]))


def _may_have(ruling: BlockRuling, word: BlockWord) -> bool:
    """Whether a rule can make scales of a ruling's scale dtype for its elements."""
    if ruling.scale.entry.mantissa:
        return word not in OF_POWERS_ONLY
    is_for_element = word != "round-up-7.25" or ruling.element.name == "float4e2m1"
    return word not in OF_MANTISSAS_ONLY and is_for_element


def with_rule(ruling: BlockRuling, word: BlockWord) -> BlockRuling:
    """Return the ruling with ``word`` as its scale rule."""
    scale = replace(ruling.answers["scale"], word=word)
    return replace(ruling, answers={**ruling.answers, "scale": scale})


def other_rule(word: BlockWord, asked: BlockWord) -> Wrong[GradedBlocks, Scales]:
    """Return the row of a library that uses the scale rule ``word`` where ``asked`` is due."""
    return Wrong(
        f"uses-the-scale-rule-{word}-where-{asked}",
        f"uses the scale rule {word}, not {asked}",
        by_rule(word),
    )


def by_rule(word: BlockWord | None = None, largest: Largest | None = None) -> ScaleMechanism:
    """Return the mechanism that applies the scale rule ``word`` to what ``largest`` returns.

    If ``word`` is None, it is the case's own rule; if ``largest`` is None, the blocks' largest
    magnitudes.
    """

    def scales(each: GradedBlocks) -> Scales:
        ruling = each.ruling if word is None else with_rule(each.ruling, word)
        magnitudes = each.largest if largest is None else largest(each)
        blocks = scales_of(ruling, magnitudes, each.global_scale)
        return Scales(blocks.codes, blocks.asked == NUMBER["scale"])

    return scales


def _gives(answered: Sequence[GradedBlocks], mechanism: ScaleMechanism, among: Among) -> bool:
    """Whether a mechanism gives all scales that it applies to, and applies to most wrong ones."""
    wrong = explained = 0
    for each in answered:
        with np.errstate(all="ignore"):
            found, is_defined = mechanism(each)
        asked = among(each)
        if (asked & is_defined & (found != each.scale)).any():
            return False
        wrong += int(np.count_nonzero(each.wrong[SCALE] & asked))
        explained += int(np.count_nonzero(each.wrong[SCALE] & asked & is_defined))
    return 2 * explained > wrong


def _top(each: GradedBlocks) -> float:
    """Return the largest value of the element's dtype."""
    return float(values_of(each.ruling.element)[each.ruling.element.max_code])


def _as(dtype: str) -> Largest:
    return lambda each: rounded_to(dtype, each.largest)


def _quotient_as(dtype: str) -> Largest:
    def largest(each: GradedBlocks) -> Floats:
        divisor = _top(each) * each.global_scale
        return rounded_to(dtype, each.largest / divisor) * divisor

    return largest


def _by_reciprocal(each: GradedBlocks) -> Floats:
    top = _top(each)
    inverse = rounded_to("float32", np.array([1 / top]))
    return rounded_to("float32", each.largest * inverse) * top


def _by_reciprocal_and_division(each: GradedBlocks) -> Floats:
    first = rounded_to("float32", _by_reciprocal(each) / _top(each))
    return rounded_to("float32", first / each.global_scale) * each.global_scale * _top(each)


def _by_two_divisions(each: GradedBlocks) -> Floats:
    first = rounded_to("float32", each.largest / _top(each))
    return rounded_to("float32", first / each.global_scale) * each.global_scale * _top(each)


def _by_inverse_of_global(each: GradedBlocks) -> Floats:
    first = rounded_to("float32", each.largest / _top(each))
    inverse = rounded_to("float32", np.array([1 / each.global_scale]))
    return rounded_to("float32", first * inverse) * each.global_scale * _top(each)


def _by_both_inverses(each: GradedBlocks) -> Floats:
    top = _top(each)
    inverse, of_top = rounded_to("float32", np.array([1 / each.global_scale, 1 / top]))
    first = rounded_to("float32", each.largest * of_top)
    return rounded_to("float32", first * inverse) * each.global_scale * top


def _by_narrow_quotient(each: GradedBlocks) -> Floats:
    first = rounded_to(each.ruling.number.name, each.largest / _top(each))
    inverse = rounded_to("float32", np.array([1 / each.global_scale]))
    return rounded_to("float32", first * inverse) * each.global_scale * _top(each)


def _by_rounded_divisor(each: GradedBlocks) -> Floats:
    divisor = _top(each) * each.global_scale
    narrow = rounded_to("float32", np.array([divisor]))
    return rounded_to("float32", each.largest / narrow) * divisor


LOGARITHMS: Mapping[BlockWord, Callable[[Floats], Floats]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round-up": np.ceil,
    "round-down": np.floor,
    "nearest-log": np.rint,
    "round-up-7.25": np.ceil,
}
"""How each rule rounds the logarithm of a magnitude, or of its quotient, to an integer."""


def _by_logarithm(each: GradedBlocks) -> Scales:
    """Return the scales if the logarithm is rounded to float32 before it becomes an integer.

    None are defined for scales with a mantissa, or rules without a logarithm.
    """
    ruling, word = each.ruling, each.ruling.word("scale")
    is_ordinary = np.isfinite(each.largest) & (each.largest > 0)
    if ruling.scale.entry.mantissa or word not in LOGARITHMS:
        return Scales(np.zeros(each.largest.shape, np.int64), is_ordinary & False)
    numbers = np.where(is_ordinary, each.largest, 1.0)
    if word in ("floor", "ceil"):
        exponent = np.frexp(_top(each))[1] - 1
    else:
        divisor = 7.25 if word == "round-up-7.25" else _top(each)
        numbers, exponent = rounded_to("float32", numbers / divisor), np.intc(0)
    power = LOGARITHMS[word](rounded_to("float32", np.log2(numbers))) - exponent
    codes = (power + ruling.scale.entry.bias).astype(np.int64)
    return Scales(codes, is_ordinary & (codes >= 0) & (codes <= ruling.scale.max_code))


def _over(axis: int | None) -> Largest:
    def largest(each: GradedBlocks) -> Floats:
        ordinary = np.where(np.isfinite(each.largest), each.largest, 0.0)
        return np.broadcast_to(ordinary.max(axis=axis, keepdims=True), each.largest.shape)

    return largest


def _part(part: slice) -> Largest:
    return lambda each: np.abs(each.numbers[..., part]).max(axis=-1)


def _last_of_row(each: GradedBlocks) -> Floats:
    """Return the largest magnitudes, for a short last block that of a whole block's numbers."""
    size, width = each.ruling.size, each.x.shape[-1]
    largest = each.largest.copy()
    if width > size and width % size:
        numbers = decoded(each.ruling.number, each.x[..., -size:])
        largest[..., -1] = np.abs(numbers).max(axis=-1)
    return largest


def _neighbor(step: int) -> ScaleMechanism:
    def scales(each: GradedBlocks) -> Scales:
        own = each.expected[SCALE]
        codes, is_known = (np.roll(part.reshape(-1), step) for part in (own.codes, ~own.is_open))
        return Scales(codes.reshape(own.codes.shape), is_known.reshape(own.codes.shape))

    return scales


DETOURS: tuple[Wrong[GradedBlocks, Scales], ...] = (
    Wrong(
        "rounds-largest-magnitudes-to-bfloat16",
        "rounds the largest magnitude of a block to bfloat16 before it makes the scale",
        by_rule(largest=_as("bfloat16")),
    ),
    Wrong(
        "rounds-largest-magnitudes-to-float16",
        "rounds the largest magnitude of a block to float16 before it makes the scale",
        by_rule(largest=_as("float16")),
    ),
    Wrong(
        "takes-logarithms-in-float32",
        "takes the logarithm for a scale in float32, which rounds it to a whole number",
        _by_logarithm,
    ),
    Wrong(
        "multiplies-by-the-reciprocal-of-the-largest-code",
        "multiplies by the reciprocal of the element's largest value instead of dividing by it",
        by_rule(largest=_by_reciprocal),
    ),
    Wrong(
        "rounds-scales-to-bfloat16-first",
        "rounds the scale of a block to bfloat16 before it rounds it to the scale's dtype",
        by_rule(largest=_quotient_as("bfloat16")),
    ),
    Wrong(
        "rounds-scales-to-float16-first",
        "rounds the scale of a block to float16 before it rounds it to the scale's dtype",
        by_rule(largest=_quotient_as("float16")),
    ),
    Wrong(
        "rounds-scales-to-float32-first",
        "rounds the scale of a block to float32 before it rounds it to the scale's dtype",
        by_rule(largest=_quotient_as("float32")),
    ),
    Wrong(
        "divides-by-the-global-scale-last",
        "divides by the element's largest value and then by the global scale, and rounds twice",
        by_rule(largest=_by_two_divisions),
    ),
    Wrong(
        "multiplies-by-the-reciprocal-of-the-global-scale",
        "multiplies by the rounded reciprocal of the global scale instead of dividing by it",
        by_rule(largest=_by_inverse_of_global),
    ),
    Wrong(
        "multiplies-by-the-reciprocals-of-the-largest-code-and-the-global-scale",
        "multiplies by the reciprocals of the largest value and of the global scale, both rounded",
        by_rule(largest=_by_both_inverses),
    ),
    Wrong(
        "divides-by-the-global-scale-after-a-reciprocal",
        "multiplies by the reciprocal of the element's largest value and then divides by the global"
        " scale, and rounds twice",
        by_rule(largest=_by_reciprocal_and_division),
    ),
    Wrong(
        "divides-by-the-largest-code-in-the-dtype-of-the-numbers",
        "rounds the quotient by the element's largest value to the dtype of the numbers first",
        by_rule(largest=_by_narrow_quotient),
    ),
    Wrong(
        "rounds-the-largest-value-times-the-global-scale",
        "rounds the element's largest value times the global scale before it divides by it",
        by_rule(largest=_by_rounded_divisor),
    ),
    Wrong(
        "ignores-negative-numbers-in-scales",
        "makes the scale of the largest number of a block, not of the largest magnitude",
        by_rule(largest=lambda each: each.numbers.max(axis=-1)),
    ),
    Wrong(
        "leaves-the-last-element-out-of-scales",
        "leaves the last element of a block out of its scale",
        by_rule(largest=_part(slice(None, -1))),
    ),
    Wrong(
        "leaves-the-first-element-out-of-scales",
        "leaves the first element of a block out of its scale",
        by_rule(largest=_part(slice(1, None))),
    ),
    Wrong(
        "makes-scales-of-numbers-before-short-blocks",
        "makes the scale of a short last block of the numbers before it, too",
        by_rule(largest=_last_of_row),
    ),
    Wrong(
        "makes-one-scale-for-a-row",
        "makes one scale for all blocks of a row",
        by_rule(largest=_over(-1)),
    ),
    Wrong(
        "makes-one-scale-for-a-tensor",
        "makes one scale for all blocks of a tensor",
        by_rule(largest=_over(None)),
    ),
    Wrong(
        "gives-the-scale-of-the-block-before",
        "gives a block the scale of the block before it",
        _neighbor(1),
    ),
    Wrong(
        "gives-the-scale-of-the-block-after",
        "gives a block the scale of the block after it",
        _neighbor(-1),
    ),
)
"""The mechanisms that give other scales although they use the rule that is due."""


def _least_scale(answered: Sequence[GradedBlocks], among: Among) -> str:
    """Return the name of the mechanism that raises all smaller scales to the least one given.

    Return an empty text if it does not give all scales.
    """
    given = [each.scale[among(each)] for each in answered]
    least = min((int(codes.min()) for codes in given if codes.size), default=0)
    for each in answered:
        codes = np.maximum(each.expected[SCALE].codes, least)
        if (among(each) & (codes != each.scale)).any():
            return ""
    return f"{NEVER_BELOW}{scale_text(answered[0].ruling.scale, least)}"


def scale_text(scale: Format, code: int) -> str:
    """Return the value of a scale as the names of mechanisms write it."""
    value = float(values_of(scale)[code])
    fraction, exponent = np.frexp(value)
    if fraction == 0.5 and exponent != 1:
        return f"2^{exponent - 1}"
    return "NaN" if np.isnan(value) else f"{value:g}"


def _step(answered: Sequence[GradedBlocks], among: Among) -> str:
    """Return the name of the mechanism that doubles scales from a magnitude on; empty without one.

    A block whose scale is ``2**k`` has its largest magnitude between ``step * 2**k`` and twice
    that. The name states the simplest step that all answers leave possible. There is none if these
    leave the step of the case's own rule possible, or if scales have a mantissa.
    """
    scale = answered[0].ruling.scale
    if scale.entry.mantissa:
        return ""
    lowest, highest = 0.0, np.inf
    for each in answered:
        graded = among(each) & (each.scale > 0) & (each.scale < scale.max_code)
        ratios = each.largest[graded] / decoded(scale, each.scale[graded])
        if ratios.size:
            lowest, highest = max(lowest, ratios.max() / 2), min(highest, ratios.min())
    own = threshold(answered[0].ruling.element, answered[0].ruling.word("scale")).magnitude
    if not 0 < lowest < highest < np.inf or lowest < own <= highest:
        return ""
    leading = 2.0 ** np.floor(np.log2(highest))
    for bits in range(MOST_BITS):
        step = np.floor(highest / leading * 2**bits) / 2**bits * leading
        if step > lowest:
            return f"{STEPS}{step:g}"
    return ""
