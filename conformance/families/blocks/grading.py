"""Grades the answer to one tensor of blocks: its scales, and its codes by the given scales.

Codes are compared with those that the *given* scales imply. So a wrong scale is one fault, and does
not make all codes of its block wrong too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks.kernels import (
    QUESTIONS,
    Blocks,
    allowed_codes,
    codes,
    decoded,
    in_blocks,
    products,
    scales,
)
from conformance.families.blocks.ruling import BlockRuling
from oracles.protocol import Bits, Floats, Mask
from specs.formats import Format

X, SCALE, GLOBAL, Y = "x", "scale", "global", "y"
"""The names of tensors and results."""
LARGE_BINADES = 2
"""Numbers within this many powers of two below infinity are extreme."""


@dataclass(frozen=True)
class Part:
    """A selection of a result's elements: by rule, by whether they are extreme, and whether zero.

    A field that is None selects all. An element is zero if its code is; for scales, ``is_zero``
    must be None.
    """

    rule: str | None = None
    is_extreme: bool | None = None
    is_zero: bool | None = None


@dataclass(frozen=True)
class GradedBlocks:
    """A library's results for a tensor of blocks, beside what the document allows.

    ``tensors`` are the inputs by name; ``where`` describes how the blocks lie in them.
    """

    ruling: BlockRuling
    tensors: Mapping[str, Bits]
    results: Mapping[str, Bits]
    where: str = ""

    @property
    def x(self) -> Bits:
        """The numbers to quantize, or the codes to decode."""
        return self.tensors[X]

    @property
    def scale(self) -> Bits:
        """The scales of blocks: those that the backend returned, or those given with codes."""
        return self.tensors[SCALE] if self.ruling.is_decoding else self.results[SCALE]

    @cached_property
    def global_scale(self) -> float:
        """The global scale; 1 if there is none."""
        return float(self.tensors[GLOBAL].view(np.float32)) if GLOBAL in self.tensors else 1.0

    @cached_property
    def expected(self) -> dict[str, Blocks]:
        """The expected results by name; codes are those that the library's own scales imply."""
        if self.ruling.is_decoding:
            return {Y: products(self.ruling, self.x, self.scale, self.global_scale)}
        return {
            SCALE: scales(self.ruling, self.x, self.global_scale),
            Y: codes(self.ruling, self.x, self.scale, self.global_scale),
        }

    @cached_property
    def wrong(self) -> dict[str, Mask]:
        """For each result by name, the mask of its elements that are not allowed."""
        return {name: self._wrong(name, expected) for name, expected in self.expected.items()}

    def _wrong(self, name: str, expected: Blocks) -> Mask:
        result = self.results[name]
        every = allowed_codes(self.ruling, expected) if name == Y else (expected.codes,)
        wrong = ~expected.is_open
        for allowed in every:
            wrong &= result != allowed
        if self.ruling.is_decoding:
            wrong &= ~(is_nan(self.ruling.number, result) & is_nan(self.ruling.number, every[0]))
        return wrong

    def graded(self, result: str, part: Part = Part()) -> Mask:
        """Return the mask of a result's elements that are not open and belong to a part."""
        expected = self.expected[result]
        found = ~expected.is_open
        if part.rule is not None:
            answers = self.ruling.answers
            of_rule = [each in answers and answers[each].rule == part.rule for each in QUESTIONS]
            found &= np.array(of_rule)[expected.asked]
        if part.is_extreme is not None:
            extreme = self.extreme_blocks if result == SCALE else self.extreme
            found &= extreme == part.is_extreme
        if part.is_zero is not None:
            found &= self.zero == part.is_zero
        return found

    @cached_property
    def extreme(self) -> Mask:
        """The mask of elements that are very small or large, or whose block is extreme.

        There numbers are flushed, are clamped or overflow, so that faults have causes of their own.
        A block is extreme also if its given scale is the smallest or the largest; if blocks are
        decoded, only this counts.
        """
        blocks = (self.scale == 0) | (self.scale == self.ruling.scale.max_code)
        if not self.ruling.is_decoding:
            blocks |= self.extreme_blocks
        found: Mask = self.unblocked(np.repeat(blocks, self.ruling.size, axis=-1))
        return found if self.ruling.is_decoding else found | self._is_extreme(self.x)

    @cached_property
    def extreme_blocks(self) -> Mask:
        """The mask of blocks whose largest magnitude or expected scale is extreme.

        Extreme scales are subnormal, the smallest or the largest. Raises KeyError if the case
        decodes.
        """
        scale, expected = self.ruling.scale, self.expected[SCALE].codes
        at_ends = (expected < 1 << scale.entry.mantissa) | (expected == scale.max_code)
        rows = in_blocks(self.ruling.size, magnitudes_of(self.ruling.number, self.x))
        found: Mask = at_ends | self._is_extreme(rows.max(axis=-1))
        return found

    def _is_extreme(self, patterns: Bits) -> Mask:
        """Return the mask of numbers that are subnormal, or in the largest binades.

        There are ``LARGE_BINADES`` of these; a NaN or an infinity counts too.
        """
        number = self.ruling.number
        magnitudes = magnitudes_of(number, patterns)
        binade = 1 << number.entry.mantissa
        is_small = (magnitudes > 0) & (magnitudes < binade)
        found: Mask = is_small | (magnitudes >= number.infinity_code - LARGE_BINADES * binade)
        return found

    @cached_property
    def zero(self) -> Mask:
        """The mask of elements whose code is zero of either sign.

        It is the code to decode, or else the expected code.
        """
        codes = self.x if self.ruling.is_decoding else self.expected[Y].codes
        element = self.ruling.element
        magnitude = element.mask if element.is_integral else element.mask ^ element.sign_bit
        found: Mask = codes & np.array(magnitude, codes.dtype) == 0
        return found

    @cached_property
    def shape_fault(self) -> str:
        """The first result whose shape is wrong, in words; empty if every shape is right."""
        *front, last = self.x.shape
        wanted = {Y: self.x.shape, SCALE: (*front, -(-last // self.ruling.size))}
        for name, result in self.results.items():
            if result.shape != wanted[name]:
                return f"`{name}` has shape {result.shape}, not {wanted[name]}"
        return ""

    @cached_property
    def numbers(self) -> Floats:
        """The numbers to quantize, by block; the last block is padded with zeros."""
        return decoded(self.ruling.number, in_blocks(self.ruling.size, self.x))

    @cached_property
    def largest(self) -> Floats:
        """The largest magnitude of each block; NaN for a block that has a NaN."""
        with np.errstate(invalid="ignore"):
            found: Floats = np.abs(self.numbers).max(axis=-1)
        return found

    @cached_property
    def largest_patterns(self) -> Bits:
        """The pattern of the largest magnitude of each block, with its sign."""
        rows = in_blocks(self.ruling.size, self.x)
        places = magnitudes_of(self.ruling.number, rows).argmax(axis=-1)[..., np.newaxis]
        found: Bits = np.take_along_axis(rows, places, axis=-1)[..., 0]
        return found

    def unblocked(self, blocks: NDArray[Any]) -> NDArray[Any]:
        """Return elements by block in the shape of the tensor, without the last block's padding."""
        *rows, last = self.x.shape
        whole = last + -last % self.ruling.size
        return blocks.reshape(*rows, whole)[..., :last]


def magnitudes_of(number: Format, bits: Bits) -> Bits:
    """Return a float's patterns without their signs; they are ordered as the magnitudes are."""
    found: Bits = bits & np.array(number.mask ^ number.sign_bit, bits.dtype)
    return found


def is_nan(number: Format, bits: Bits) -> Mask:
    """Return the mask of the NaNs among patterns of a float that has infinities."""
    found: Mask = magnitudes_of(number, bits) > number.infinity_code
    return found
