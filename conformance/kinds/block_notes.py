"""Notes on what a library answers where the document leaves the scale of a block open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from oracles.protocol import Bits
from oracles.reference.block_kernels import NUMBER, in_blocks
from reports.counterexample.drawing import datum_with_value
from reports.grading.graded_blocks import SCALE, GradedBlocks, Y, magnitudes_of
from specs.block_ruling import BlockRuling
from specs.formats import Format
from specs.model.block_entry import BlockQuestion

WHAT: Mapping[BlockQuestion, str] = {
    "zero-block": "blocks of zeros",
    "nan-block": "blocks with a NaN",
    "infinity-block": "blocks with an infinity",
    "scale-below-smallest": "blocks whose scale would be below the smallest",
    "scale-above-largest": "blocks whose scale would be above the largest",
}
MOST_NAMED = 3


def notes_on_open(ruling: BlockRuling, answered: Sequence[GradedBlocks]) -> Iterator[str]:
    """Yield a note for each kind of block whose scale is open and that some tensor has."""
    if ruling.is_decoding:
        return
    for question, what in WHAT.items():
        if not ruling.answers[question].is_open:
            continue
        scales, codes = [], []
        for each in answered:
            here = each.expected[SCALE].asked == NUMBER[question]
            scales.append(each.scale[here])
            codes.append(in_blocks(ruling.size, each.results[Y])[here].reshape(-1))
        given = np.concatenate(scales)
        if given.size:
            note = f"{what} get {_named(ruling.scale, given, 'the scale', 'scales')}"
            if question in ("nan-block", "infinity-block"):
                note += f", and {_special_codes(ruling, answered, question)}"
            yield note


def _special_codes(
    ruling: BlockRuling, answered: Sequence[GradedBlocks], question: BlockQuestion
) -> str:
    """Which codes the NaNs or infinities themselves get."""
    number = ruling.number
    found = []
    for each in answered:
        magnitude = magnitudes_of(number, each.x)
        is_special = magnitude > number.infinity_code
        if question == "infinity-block":
            is_special = magnitude == number.infinity_code
        here = each.expected[Y].asked == NUMBER[question]
        found.append(each.results[Y][is_special & here])
    return _named(ruling.element, np.concatenate(found), "the code", "codes")


def _named(fmt: Format, codes: Bits, one: str, many: str) -> str:
    """The different codes, or how many there are."""
    different = np.unique(codes).tolist()
    if len(different) == 1:
        return f"{one} {datum_with_value(fmt, different[0])}"
    if len(different) <= MOST_NAMED:
        return f"{many} {', '.join(datum_with_value(fmt, each) for each in different)}"
    return f"{len(different)} different {many}"
