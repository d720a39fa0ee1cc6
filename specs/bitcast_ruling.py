"""Resolves a bitcast to its ruling: the shape of the result, a rejection, or a choice of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from specs.bitcast_shapes import Shape, Widths, format_shape, output_shape, shape_of, widths_of
from specs.calls import SHAPE
from specs.cases import Case
from specs.editions import edition
from specs.formats import Format, format_named
from specs.loader import Document, document_named
from specs.model.document import BY_BITS, SHAPE_WORDS, BitcastEntry, outcome_entry

RULINGS_KEPT = 1 << 14
"""More than the listed cases of all documents; other shapes are asked pair by pair."""


@dataclass(frozen=True)
class BitcastRuling:
    """The rule that takes a bitcast and ``result``, the shape it gives; None if rejected or open.

    If the document allows two readings, ``alternative`` is the second one.
    """

    source: Format
    target: Format
    widths: Widths
    shape: Shape
    rule: str
    clause: str
    level: str
    is_rejection: bool
    is_open: bool
    result: Shape | None
    keeps_bits: bool
    bits_level: str
    error_class: str | None
    alternative: BitcastRuling | None = None

    @property
    def readings(self) -> tuple[BitcastRuling, ...]:
        """All readings that the document allows, this one first."""
        return (self, *(self.alternative.readings if self.alternative is not None else ()))

    @property
    def may_refuse(self) -> bool:
        """Whether an error is an allowed answer."""
        return any(reading.is_rejection or reading.is_open for reading in self.readings)


def bitcast_ruling(case: Case) -> BitcastRuling:
    """The ruling of a bitcast of a shipped document; raise DocumentError if it has none."""
    return ruling_if_any(case) or rule_bitcast(document_named(case.document), case)


@lru_cache(RULINGS_KEPT)
def ruling_if_any(case: Case) -> BitcastRuling | None:
    """The ruling of a bitcast of any shape; None if a shipped document has no rule for it."""
    document = document_named(case.document)
    takers = _takers(document, case)
    return _ruling(document, case, takers) if takers else None


def rule_bitcast(document: Document, case: Case) -> BitcastRuling:
    """Resolve a bitcast; raise DocumentError unless exactly one rule takes it."""
    takers = _takers(document, case)
    if not takers:
        raise document.source.error(("rules",), f"gap: no rule applies to {case.id}")
    return _ruling(document, case, takers)


def _takers(document: Document, case: Case) -> tuple[str, ...]:
    assert document.entry.bitcast is not None
    return edition(document, case.version).rules_taking(document.entry.bitcast, case)


def _ruling(document: Document, case: Case, takers: tuple[str, ...]) -> BitcastRuling:
    """The ruling by the only rule that takes a case; raise DocumentError if there are several."""
    entry = document.entry
    assert entry.bitcast is not None
    if len(takers) > 1:
        both = " and ".join(takers)
        raise document.source.error(("rules", takers[1]), f"overlap: {both} both take {case.id}")
    [name] = takers
    rule = entry.rules[name]
    assert rule.then is not None
    assert not isinstance(rule.then, dict)
    outcome = outcome_entry(rule.then)
    level = outcome.level or rule.level
    source, target, shape = format_named(case.source), format_named(case.target), shape_of(case)
    ruling: BitcastRuling | None = None
    for word in reversed(outcome.either or [outcome.is_ or "unspecified"]):
        by_bits = word.endswith(BY_BITS)
        widths = widths_of(entry.bitcast, source, target)
        if by_bits:
            widths = Widths(source.bits, target.bits)
        result = output_shape(word.removesuffix(BY_BITS), shape, widths)
        if word in SHAPE_WORDS and not _keeps_size(shape, result, widths):
            message = f"the outcome `{word}` is impossible for {case.id}"
            message += ": its result would have a different number of bits"
            raise document.source.error(("rules", name), message)
        ruling = BitcastRuling(
            source,
            target,
            widths,
            shape,
            name,
            outcome.clause or rule.clause,
            level,
            is_rejection=word == "error",
            is_open=word == "unspecified",
            result=result,
            # Counted by bits instead, the document does not say which bits make up an element.
            keeps_bits=outcome.bits != "unspecified" and not by_bits,
            bits_level="recommended" if outcome.bits == "recommended" else level,
            error_class=outcome.class_ if word == "error" else None,
            alternative=ruling,
        )
    assert ruling is not None
    return ruling


def _keeps_size(shape: Shape, result: Shape | None, widths: Widths) -> bool:
    """Whether the result has as many bits as the input, as every bitcast must."""
    return result is not None and prod(shape) * widths.source == prod(result) * widths.target


@dataclass(frozen=True)
class BitcastPair:
    """A pair of dtypes in one version of a document."""

    document: str
    version: str
    source: str
    target: str

    @property
    def entry(self) -> BitcastEntry:
        """The document's entry about bitcasts, besides its rules."""
        entry = document_named(self.document).entry.bitcast
        assert entry is not None
        return entry

    @property
    def widths(self) -> Widths:
        """The widths of the pair as the document counts them."""
        return widths_of(self.entry, format_named(self.source), format_named(self.target))

    @property
    def parts(self) -> int:
        """How many elements make one of the result: 1 unless they widen."""
        return self.widths.ratio if self.widths.relation == "wider" else 1

    @property
    def unfit_lengths(self) -> Sequence[int]:
        """Lengths other than ``parts``, which a document may refuse; none unless elements widen."""
        parts = self.parts
        return (
            sorted({1, parts // 2, parts + 1, 2 * parts, 4 * parts} - {parts}) if parts > 1 else ()
        )

    def case(self, shape: Shape) -> Case:
        """The case of a shape, which the document need not list."""
        modes = ((SHAPE, format_shape(shape)),)
        return Case(self.document, self.version, self.source, self.target, modes)

    def widened(self, shape: Shape) -> Shape:
        """The shape whose bitcast has this shape, if elements widen; otherwise this shape."""
        return (*shape, self.parts) if self.parts > 1 else shape
