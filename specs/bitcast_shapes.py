"""Shapes and element widths of bitcasts, and the conditions that rules can put on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod

from specs.calls import SHAPE
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.document import BY_BITS, RANKS, BitcastEntry

SCALAR = "scalar"
Shape = tuple[int, ...]
SHAPES_KEPT = 1024


@dataclass(frozen=True)
class Widths:
    """The element widths of a pair in bits, possibly rounded up to bytes as a document counts."""

    source: int
    target: int

    @property
    def ratio(self) -> int:
        """How many narrower elements make one wider, rounded down."""
        return max(self.source, self.target) // min(self.source, self.target)

    @property
    def relation(self) -> str:
        """The target's width compared with the source's: a word of the condition `width`."""
        if self.source == self.target:
            return "same"
        if max(self.source, self.target) % min(self.source, self.target):
            return "undivisible"
        return "narrower" if self.target < self.source else "wider"


def shape_of(case: Case) -> Shape:
    """The shape of a case's input tensor."""
    return parse_shape(case.mode[SHAPE])


@lru_cache(SHAPES_KEPT)
def parse_shape(text: str) -> Shape:
    """Parse a shape as a case id writes it: `scalar`, `0`, `2x3`."""
    return () if text == SCALAR else tuple(map(int, text.split("x")))


def format_shape(shape: Shape) -> str:
    """Format a shape as a case id writes it; the inverse of ``parse_shape``."""
    return "x".join(map(str, shape)) if shape else SCALAR


def widths_of(entry: BitcastEntry, source: Format, target: Format) -> Widths:
    """A pair's widths in bits as the document counts them: of bools, and in whole bytes or not."""
    bits = (entry.bool_bits if each.kind == "boolean" else each.bits for each in (source, target))
    return _widths(entry.ratio_by == "bytes", *bits)


@cache
def _widths(in_bytes: bool, source: int, target: int) -> Widths:
    unit = 8 if in_bytes else 1
    return Widths(*(-(-width // unit) * unit for width in (source, target)))


def shapes_between(texts: list[str], widths: Widths) -> list[Shape]:
    """A document's list of shapes for one pair, with the pair's ratio in place of `r`."""
    return list(dict.fromkeys(_substitute_ratio(text, widths.ratio) for text in texts))


def _substitute_ratio(text: str, ratio: int) -> Shape:
    if text == SCALAR:
        return ()
    lengths = (length.partition("r") for length in text.split("x"))
    return tuple(int(factor or 1) * (ratio if r else 1) for factor, r, _ in lengths)


def condition_words(entry: BitcastEntry, keys: Iterable[str], case: Case) -> tuple[str, ...]:
    """The words that hold for a bitcast under conditions: for `width`, `narrower` and so on."""
    source, target = format_named(case.source), format_named(case.target)
    counted, in_bits = widths_of(entry, source, target), Widths(source.bits, target.bits)
    shape = shape_of(case)
    return tuple(
        _condition_word(key.removesuffix(BY_BITS), shape, in_bits)
        if key.endswith(BY_BITS)
        else _condition_word(key, shape, counted)
        for key in keys
    )


def _condition_word(key: str, shape: Shape, widths: Widths) -> str:
    match key:
        case "width":
            return widths.relation
        case "rank":
            return RANKS[min(len(shape), len(RANKS) - 1)]
        case "elements":
            return "some" if prod(shape) else "none"
    assert key == "last", f"unknown condition `{key}`, which loading a document excludes"
    if not shape:
        return "none"
    last = shape[-1]
    if last == widths.ratio:
        return "ratio"
    if last == 0:
        return "zero"
    return "other" if last % widths.ratio else "multiple"


def output_shape(word: str, shape: Shape, widths: Widths) -> Shape | None:
    """The shape that an outcome word gives for an input shape; None if it gives none."""
    match word:
        case "same-shape":
            return shape
        case "append-ratio":
            return (*shape, widths.ratio)
        case "drop-last" if shape:
            return shape[:-1]
        case "scale-last" if shape:
            return (*shape[:-1], shape[-1] * widths.source // widths.target)
    return None
