"""Shapes and widths of bitcasts, and what a rule may ask about them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from specs.calls import SHAPE
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.document import BY_BITS, BitcastEntry

SCALAR = "scalar"
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Widths:
    """How wide the elements of a pair are, by the measure that a document takes."""

    source: int
    target: int

    @property
    def ratio(self) -> int:
        """How many of the narrower make one of the wider, as far as they divide."""
        return max(self.source, self.target) // min(self.source, self.target)

    @property
    def relation(self) -> str:
        """The target beside the source."""
        if self.source == self.target:
            return "same"
        if max(self.source, self.target) % min(self.source, self.target):
            return "undivisible"
        return "narrower" if self.target < self.source else "wider"


def shape_of(case: Case) -> Shape:
    """The shape that a case's tensor has."""
    return read_shape(case.mode[SHAPE])


def read_shape(text: str) -> Shape:
    """A shape as a case id writes it: `scalar`, `0`, `2x3`."""
    return () if text == SCALAR else tuple(map(int, text.split("x")))


def written_shape(shape: Shape) -> str:
    """The same, written."""
    return "x".join(map(str, shape)) if shape else SCALAR


def widths_of(entry: BitcastEntry, source: Format, target: Format) -> Widths:
    """A pair's widths: bits as they are counted, or whole bytes."""

    def width(form: Format) -> int:
        return form.bits if entry.ratio_by == "bits" else -(-form.bits // 8) * 8

    return Widths(width(source), width(target))


def shapes_between(texts: list[str], widths: Widths) -> list[Shape]:
    """The shapes that a pair is asked in, where `r` in a document's list is the pair's ratio."""
    return list(dict.fromkeys(_shape_with(text, widths.ratio) for text in texts))


def _shape_with(text: str, ratio: int) -> Shape:
    if text == SCALAR:
        return ()
    lengths = (length.partition("r") for length in text.split("x"))
    return tuple(int(count or 1) * (ratio if unit else 1) for count, unit, _ in lengths)


def condition(entry: BitcastEntry, key: str, case: Case) -> str:
    """What a bitcast is, as far as a rule's condition asks."""
    source, target = format_named(case.source), format_named(case.target)
    widths = widths_of(entry, source, target)
    if key.endswith(BY_BITS):
        key, widths = key.removesuffix(BY_BITS), Widths(source.bits, target.bits)
    shape = shape_of(case)
    match key:
        case "width":
            return widths.relation
        case "rank":
            return str(len(shape))
        case "elements":
            return "some" if prod(shape) else "none"
    assert key == "last", f"the condition `{key}` is checked when a document is read"
    if not shape:
        return "none"
    last = shape[-1]
    if last == widths.ratio:
        return "ratio"
    if last == 0:
        return "zero"
    return "other" if last % widths.ratio else "multiple"


def resulting(word: str, shape: Shape, widths: Widths) -> Shape | None:
    """The shape that an outcome word gives; None where it gives none."""
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
