"""What a document says about one bitcast: the shape that comes out, the refusal, or a choice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from specs.bitcast_shapes import Shape, Widths, resulting, shape_of, widths_of
from specs.cases import Case
from specs.editions import edition
from specs.formats import Format, format_named
from specs.loader import Document, document_named
from specs.model.document import BY_BITS, SHAPE_WORDS, OutcomeEntry


@dataclass(frozen=True)
class BitcastRuling:
    """The rule that takes a bitcast, and the shape that it gives; None where refused or open.

    Where two readings of the document both stand, ``alternative`` is the second one.
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
        """The readings of the document that stand, this one first."""
        return (self, *(self.alternative.readings if self.alternative is not None else ()))

    @property
    def may_refuse(self) -> bool:
        """Whether an error is an allowed answer."""
        return any(reading.is_rejection or reading.is_open for reading in self.readings)


@cache
def bitcast_ruling(case: Case) -> BitcastRuling:
    """The ruling of a bitcast of a shipped document."""
    return rule_bitcast(document_named(case.document), case)


def rule_bitcast(document: Document, case: Case) -> BitcastRuling:
    """Find the one rule that takes a bitcast, or raise an error that names the gap or overlap."""
    entry, where = document.entry, edition(document, case.version)
    assert entry.bitcast is not None
    takers = [name for name in where.rules if where.matches(entry.rules[name].when, case)]
    if not takers:
        raise document.source.error(("rules",), f"gap: no rule applies to {case.id}")
    if len(takers) > 1:
        both = " and ".join(takers)
        raise document.source.error(("rules", takers[1]), f"overlap: {both} both take {case.id}")
    [name] = takers
    rule = entry.rules[name]
    assert not isinstance(rule.then, dict)
    then = rule.then
    given = then if isinstance(then, OutcomeEntry) else OutcomeEntry.model_validate({"is": then})
    level = given.level or rule.level
    source, target, shape = format_named(case.source), format_named(case.target), shape_of(case)
    found: BitcastRuling | None = None
    for word in reversed(given.either or [given.is_ or "unspecified"]):
        by_bits = word.endswith(BY_BITS)
        widths = widths_of(entry.bitcast, source, target)
        if by_bits:
            widths = Widths(source.bits, target.bits)
        result = resulting(word.removesuffix(BY_BITS), shape, widths)
        if word in SHAPE_WORDS and not _holds_as_much(shape, result, widths):
            message = f"the outcome `{word}` cannot be had of {case.id}: it holds other bits"
            raise document.source.error(("rules", name), message)
        found = BitcastRuling(
            source,
            target,
            widths,
            shape,
            name,
            given.clause or rule.clause,
            level,
            is_rejection=word == "error",
            is_open=word == "unspecified",
            result=result,
            # Which bits make a pattern is only known where widths are those of the document.
            keeps_bits=given.bits != "unspecified" and not by_bits,
            bits_level="recommended" if given.bits == "recommended" else level,
            error_class=given.class_ if word == "error" else None,
            alternative=found,
        )
    assert found is not None
    return found


def _holds_as_much(shape: Shape, result: Shape | None, widths: Widths) -> bool:
    """Whether as many bits come out as go in: a bitcast neither makes nor drops any."""
    return result is not None and prod(shape) * widths.source == prod(result) * widths.target
