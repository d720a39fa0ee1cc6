"""Lists the bitcasts of a document, and resolves each to its ruling.

A ruling gives the shape of the result, or rejects or opens the case, or has two such readings.
Rules take a bitcast by its pair of dtypes, and by conditions on its shape and on the widths of
elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod

from specs.cases import SCALAR, SHAPE, Case, Shape, format_shape, shape_of
from specs.editions import SHAPE_CONDITIONS, Edition, edition
from specs.formats import Format, format_named
from specs.loader import Document, document_named
from specs.model.document import BY_BITS, RANKS, SHAPE_WORDS, BitcastEntry, outcome_entry
from specs.ruling import EVERY_INPUT, CaseRule

RULINGS_KEPT = 1 << 14
"""The most rulings in the cache: more than documents list cases, as other shapes have rulings
too."""


@dataclass(frozen=True)
class Widths:
    """The element widths of a pair in bits, rounded up to bytes if the document counts these."""

    source: int
    target: int

    @property
    def ratio(self) -> int:
        """How many narrow elements fit into one wide element."""
        return max(self.source, self.target) // min(self.source, self.target)

    @property
    def relation(self) -> str:
        """The target's width compared with the source's: a word of the condition `width`."""
        if self.source == self.target:
            return "same"
        if max(self.source, self.target) % min(self.source, self.target):
            return "undivisible"
        return "narrower" if self.target < self.source else "wider"


@dataclass(frozen=True)
class BitcastRuling:
    """The rule by which a document decides a bitcast, and the outcome that the rule wants.

    ``result`` is the shape of the result; it is None if the bitcast is rejected or open.
    ``keeps_bits`` says whether the result must have the input's bits, and ``bits_level`` at which
    level. ``error_class`` is the class of the error that a rejection names, or None.
    ``alternative`` is the second reading if the document allows two, else None.
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
    """Return a shipped document's ruling of a bitcast.

    Raise DocumentError unless exactly one rule takes the bitcast and its outcome is possible.
    """
    return ruling_if_any(case) or rule_bitcast(document_named(case.document), case)


@lru_cache(RULINGS_KEPT)
def ruling_if_any(case: Case) -> BitcastRuling | None:
    """Return a shipped document's ruling of a bitcast; None if no rule takes it.

    Raise DocumentError if several rules take it, or the outcome is impossible for its shape.
    """
    document = document_named(case.document)
    takers = _takers(document, case)
    return _ruling(document, case, takers) if takers else None


def rule_bitcast(document: Document, case: Case) -> BitcastRuling:
    """Return a document's ruling of a bitcast; raise DocumentError as ``bitcast_ruling`` does."""
    takers = _takers(document, case)
    if not takers:
        raise document.source.error(("rules",), f"gap: no rule applies to {case.id}")
    return _ruling(document, case, takers)


def _takers(document: Document, case: Case) -> tuple[str, ...]:
    """Return the names of the rules that take a bitcast; none if no rule has its pair and shape.

    A shape matters only by the words of the conditions that it meets, which many shapes share.
    """
    version = edition(document, case.version)
    assert document.entry.bitcast is not None
    words = condition_words(document.entry.bitcast, SHAPE_CONDITIONS, case)
    return _takers_of_words(version, case.source, case.target, words)


@cache
def _takers_of_words(
    version: Edition, source: str, target: str, words: tuple[str, ...]
) -> tuple[str, ...]:
    pair = Case(version.document.name, version.version, source, target)
    rules, word_of = version.document.entry.rules, dict(zip(SHAPE_CONDITIONS, words, strict=True))
    return tuple(
        name
        for name in version.rules_between(source, target)
        if all(word in rules[name].when.get(key, [word]) for key, word in word_of.items())
        and version.matches(
            {key: rules[name].when[key] for key in rules[name].when if key not in word_of}, pair
        )
    )


def _ruling(document: Document, case: Case, takers: tuple[str, ...]) -> BitcastRuling:
    """Return the ruling of a case by the only rule in ``takers``.

    Raises DocumentError if there are several, or if the rule's outcome gives the case no shape with
    the same number of bits.
    """
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
        """How many source elements make one target element; 1 unless the target is wider."""
        return self.widths.ratio if self.widths.relation == "wider" else 1

    @property
    def unfit_lengths(self) -> Sequence[int]:
        """Lengths of a last dimension, other than ``parts``, that a document may refuse.

        There are none unless the target is wider.
        """
        parts = self.parts
        return (
            sorted({1, parts // 2, parts + 1, 2 * parts, 4 * parts} - {parts}) if parts > 1 else ()
        )

    def case(self, shape: Shape) -> Case:
        """Return the pair's case for a shape, which the document need not list."""
        modes = ((SHAPE, format_shape(shape)),)
        return Case(self.document, self.version, self.source, self.target, modes)

    def widened(self, shape: Shape) -> Shape:
        """Return ``shape`` with a last dimension of ``parts``, which make one target element.

        If the target is not wider, return ``shape`` itself.
        """
        return (*shape, self.parts) if self.parts > 1 else shape


def widths_of(entry: BitcastEntry, source: Format, target: Format) -> Widths:
    """Return a pair's widths as the document counts them: in bits or whole bytes.

    The document also says how many bits a bool has.
    """
    bits = (entry.bool_bits if each.kind == "boolean" else each.bits for each in (source, target))
    return _widths(entry.ratio_by == "bytes", *bits)


@cache
def _widths(in_bytes: bool, source: int, target: int) -> Widths:
    unit = 8 if in_bytes else 1
    return Widths(*(-(-width // unit) * unit for width in (source, target)))


def shapes_between(texts: list[str], widths: Widths) -> list[Shape]:
    """Return the shapes that a document's texts spell, with a pair's ratio for each `r`."""
    return list(dict.fromkeys(_substitute_ratio(text, widths.ratio) for text in texts))


def _substitute_ratio(text: str, ratio: int) -> Shape:
    if text == SCALAR:
        return ()
    lengths = (length.partition("r") for length in text.split("x"))
    return tuple(int(factor or 1) * (ratio if r else 1) for factor, r, _ in lengths)


def condition_words(entry: BitcastEntry, keys: Iterable[str], case: Case) -> tuple[str, ...]:
    """Return, for each condition in ``keys``, the word that holds for a bitcast.

    Under ``width``, for example, it is ``narrower``, ``wider``, ``same`` or ``undivisible``.
    """
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
    """Return the shape that an outcome word gives for an input shape; None if it gives none.

    ``word`` has no suffix ``BY_BITS``; the caller counts ``widths`` accordingly.
    """
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


def cases(version: Edition) -> Iterator[Case]:
    """Yield a case for every pair of a version in every listed shape, then the page's own tests."""
    name, entry = version.document.name, version.document.entry.bitcast
    assert entry is not None

    def in_shapes(
        source: str, target: str, texts: list[str], example: str | None
    ) -> Iterator[Case]:
        widths = widths_of(entry, format_named(source), format_named(target))
        for shape in shapes_between(texts, widths):
            modes = ((SHAPE, format_shape(shape)),)
            yield Case(name, version.version, source, target, modes, example)

    for source, target in version.pairs():
        more = entry.more.shapes if target in entry.more.pairs.get(source, ()) else []
        yield from in_shapes(source, target, [*entry.shapes, *more], None)
    for example, tests in entry.demanded.items():
        for source, targets in tests.pairs.items():
            for target in targets:
                yield from in_shapes(source, target, tests.shapes, example)


def rules(document: Document, case: Case) -> Iterator[CaseRule]:
    """Yield the only rule that takes a bitcast; raise DocumentError unless there is exactly one."""
    found = rule_bitcast(document, case)
    yield CaseRule(
        found.rule, found.level, found.clause, EVERY_INPUT, found.is_open, found.is_rejection
    )


def is_bitcast(case: Case) -> bool:
    """Whether a case is of a shipped document about bitcasts."""
    return document_named(case.document).entry.bitcast is not None
