"""Describes a pair: the ranges of values on which all agree, and what each does elsewhere.

The same description becomes lines of a terminal, a file in JSON and a page in Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import TextWrapper

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from conformance.extras.portable.survey import Agreement, Parties, home_range, wide_ranges
from conformance.extras.portable.value_ranges import (
    FINITE,
    ValueRange,
    cells_of,
    pattern_of,
    places_in,
    range_words,
)
from oracles.protocol import Bits
from reports.behaviors.explanation import BehaviorExplanation, explain
from reports.behaviors.tally import behavior_search, tally_each
from reports.counterexample.drawing import datum_with_value, value_text
from reports.grading.allowed_answers import is_nan
from reports.grading.divergences import index_of_simplest
from reports.outputs.table import markdown_table
from specs import VERSION
from specs.behaviors import behaviors
from specs.formats import Format, listed
from specs.model.strict_model import StrictModel
from specs.model.vocabulary import Rounding

SAFE, IN_RANGE, NOT_SAFE, ABSENT = "safe", "safe in range", "not safe", "not offered"
"""How portable a pair of dtypes is between two backends, the best first."""
MOST_SHOWN = 3
"""The most ranges of finite values that ``PortablePair.agree`` names."""
MOST_WRITTEN = 1000
"""The most ranges of a pair that are written to a file, the widest."""
MOST_LINES = 3
"""The most behaviors of a backend in a region that are named; if there are more, none is."""
BOTH = {("infinity", "-infinity"): "infinities", ("+NaN", "-NaN"): "NaN"}
"""Common names for two cells that have the same description."""


DOES = TextWrapper(
    width=100,
    initial_indent=" " * 12,
    subsequent_indent=" " * 14,
    break_long_words=False,
    break_on_hyphens=False,
)


class Range(StrictModel):
    """A range of finite values on which all agree: the hex patterns of its ends, and words."""

    low: str
    high: str
    words: str


class PairDifference(StrictModel):
    """Regions of inputs on which backends differ, and what each backend does there, in words.

    ``where`` names the regions. ``does`` describes each backend's answers by its name, and
    ``documents`` tells by document whether it allows them.
    """

    where: tuple[str, ...]
    does: dict[str, str]
    documents: dict[str, str] = Field(default_factory=dict)


class PortablePair(StrictModel):
    """The inputs of a pair on which all backends agree, and all documents allow the answer.

    ``backends`` has the asked case by backend, and ``absent`` by name why a backend or document is
    left out. ``asked`` and ``agreeing`` count inputs. If ``every_input`` is false, the ranges are
    sampled; if ``exact_ends``, the inputs beyond their ends were asked too. ``agree`` names the
    ``shown_ranges`` and the cells in which all that was asked agrees. ``ranges`` are the widest of
    ``range_count``. ``elsewhere`` counts agreeing finite inputs outside of the ranges that
    ``agree`` names.
    """

    source: str
    target: str
    backends: dict[str, str]
    documents: tuple[str, ...] = ()
    absent: dict[str, str] = Field(default_factory=dict)
    every_input: bool
    exact_ends: bool
    asked: int
    agreeing: int
    agree: tuple[str, ...]
    ranges: tuple[Range, ...]
    range_count: int
    differ: tuple[PairDifference, ...] = ()
    elsewhere: int = 0


class PortablePairs(StrictModel):
    """The content of the ``--json`` file: the backends' versions by name, and all pairs."""

    suite: str = VERSION
    versions: dict[str, str]
    pairs: tuple[PortablePair, ...]


NOT_SAMPLED = "another answer to an input that was not sampled"


@dataclass(frozen=True)
class KnownAgreement:
    """The agreement on a pair, with the names of the backends in the order of their answers.

    ``rounding`` is that of the casts, by which the backends' behaviors are recognized.
    """

    found: Agreement
    parties: Parties
    names: tuple[str, ...]
    rounding: Rounding

    def pair(
        self, backends: dict[str, str], absent: dict[str, str], exact_ends: bool
    ) -> PortablePair:
        """Return the agreement as data and words.

        ``backends`` has the id of the asked case by backend, and ``absent`` by name why a backend
        or document is left out. ``exact_ends`` tells whether the inputs beyond the ends of ranges
        were asked.
        """
        found, source = self.found, self.found.source
        finite = found.cells[FINITE]
        shown = shown_ranges(found)
        inside = sum(self._count(each) for each in shown)
        widest = sorted(finite.ranges, key=lambda each: -each.span)[:MOST_WRITTEN]
        return PortablePair(
            source=source.name,
            target=found.target.name,
            backends=backends,
            documents=tuple(self.parties.documents),
            absent=absent,
            every_input=found.is_whole,
            exact_ends=exact_ends,
            asked=found.asked,
            agreeing=found.agreeing,
            agree=tuple(agree_names(found)),
            ranges=tuple(_range(source, each) for each in sorted(widest, key=lambda e: e.first)),
            range_count=finite.count,
            differ=tuple(self._differences(shown)),
            elsewhere=finite.agreeing - inside,
        )

    def _count(self, each: ValueRange) -> int:
        """Return how many inputs of an agreeing range were asked."""
        if self.found.is_whole and self.found.sample.ranks.size != 1 << self.found.source.bits:
            return each.span
        ranks = self.found.sample.ranks
        places = places_in(self.found.source, cells_of(self.found.source)[FINITE], ranks)
        inside = (ranks[places] >= np.uint64(each.first)) & (ranks[places] <= np.uint64(each.last))
        return int(np.count_nonzero(inside))

    def _differences(self, shown: Sequence[ValueRange]) -> Iterator[PairDifference]:
        """Yield what backends do outside of ``shown``; regions with equal words are merged."""
        said: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for words, places in self._outside(shown):
            does = self._deeds(places)
            said.setdefault(tuple(does.items()), []).append(words)
        for items, where in said.items():
            does = {name: words for name, words in items if name in self.names}
            allowed = {name: words for name, words in items if name not in self.names}
            yield PairDifference(where=tuple(_named(where)), does=does, documents=allowed)

    def _outside(self, shown: Sequence[ValueRange]) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """Yield each region outside of ``shown`` in words, with indices of its sampled inputs.

        Cells other than the finite values are left out if all asked inputs agree or none was asked.
        If some agree, the indices are those of the others.
        """
        found, source = self.found, self.found.source
        ranks = found.sample.ranks
        finite = cells_of(source)[FINITE]
        own = places_in(source, finite, ranks)
        ends = (int(ranks[own[0]]), int(ranks[own[-1]])) if own.size else (1, 0)
        for gap in gaps_between(shown, *ends) if own.size else ():
            here = own[(ranks[own] >= np.uint64(gap.first)) & (ranks[own] <= np.uint64(gap.last))]
            yield range_words(source, gap), here
        for name, each in found.cells.items():
            if name == FINITE or each.is_safe or not each.asked:
                continue
            places = places_in(source, each.cell, ranks)
            if each.agreeing:
                yield f"{name}, in part", places[~found.sample.agrees[places]]
            else:
                yield name, places

    def _deeds(self, places: NDArray[np.intp]) -> dict[str, str]:
        """Describe what each backend answers to the sampled inputs at ``places``, by its name.

        Also describe by document whether it allows these answers, or which backends' it does not.
        A sweep of all inputs may find a difference where none was sampled; no answer is known then.
        """
        if not places.size:
            return dict.fromkeys(self.names, NOT_SAMPLED)
        sample = self.found.sample
        inputs = sample.inputs[places]
        answers = [each[places] for each in sample.answers]
        words = dict(zip(self.names, self._answers_words(inputs, answers), strict=True))
        for document, allows in self.parties.documents.items():
            wrong = [
                name
                for name, each in zip(self.names, answers, strict=True)
                if not allows(inputs, each).all()
            ]
            words[document] = (
                f"does not allow {listed(wrong)}" if wrong else "allows all these answers"
            )
        return words

    def _answers_words(self, inputs: Bits, answers: Sequence[Bits]) -> Iterator[str]:
        source, target = self.found.source, self.found.target
        constant = [_only_answer(target, each) for each in answers]
        several = [each for each, one in zip(answers, constant, strict=True) if one is None]
        search = behavior_search(source, target, self.rounding)
        tallies = iter(tally_each(search, inputs, several))
        for each, one in zip(answers, constant, strict=True):
            if one is not None:
                yield one
                continue
            lines = explain(next(tallies))
            if len(lines) <= MOST_LINES and all(each.behavior or each.nearest for each in lines):
                yield "; ".join(_explained(each, len(lines) == 1) for each in lines)
                continue
            at = index_of_simplest(source, inputs, np.ones(inputs.shape, bool))
            given, got = int(inputs[at]), int(each[at])
            yield (
                f"no known behavior; {datum_with_value(source, given)} gives"
                f" {datum_with_value(target, got)}"
            )


def shown_ranges(found: Agreement) -> list[ValueRange]:
    """Return at most ``MOST_SHOWN`` agreeing ranges of finite values, from low to high.

    These are the ``home_range``, if there is one, and the widest others of ``wide_ranges``.
    """
    home = home_range(found)
    kept = [home] if home is not None else []
    kept += [each for each in wide_ranges(found.cells[FINITE]) if each != home]
    return sorted(kept[:MOST_SHOWN], key=lambda each: each.first)


def agree_names(found: Agreement) -> list[str]:
    """Return in words the shown ranges of finite values, then the other cells that are safe."""
    extremes = [each for each in found.cells.values() if each.cell.name != FINITE]
    agree = [range_words(found.source, each) for each in shown_ranges(found)]
    return agree + _named([each.cell.name for each in extremes if each.is_safe])


def gaps_between(shown: Sequence[ValueRange], first: int, last: int) -> Iterator[ValueRange]:
    """Yield the ranges of asked ranks from ``first`` to ``last`` outside of ``shown``.

    ``shown`` are in rising order. The nearest asked ranks beside them begin and end the gaps.
    """
    start, below = first, None
    for each in shown:
        if each.below is not None:
            yield ValueRange(start, each.below, below, each.first)
        if each.above is None:
            return
        start, below = each.above, each.last
    yield ValueRange(start, last, below, None)


def portability_of(found: Agreement) -> str:
    """Return ``ABSENT`` if no input was asked, and ``SAFE`` if every asked input agrees.

    Otherwise return ``IN_RANGE`` if there is a ``home_range``, which contains one and any zero,
    else ``NOT_SAFE``.
    """
    if not found.asked:
        return ABSENT
    if found.asked == found.agreeing:
        return SAFE
    return NOT_SAFE if home_range(found) is None else IN_RANGE


def _range(source: Format, each: ValueRange) -> Range:
    low, high = (source.hexadecimal(pattern_of(source, rank)) for rank in (each.first, each.last))
    return Range(low=low, high=high, words=range_words(source, each))


def _only_answer(target: Format, answers: Bits) -> str | None:
    """Return the value of the answers if all are the same or all are NaN; None if they differ."""
    if target.nan_codes and is_nan(target, answers).all():
        return "NaN"
    if (answers == answers[0]).all():
        return value_text(target, int(answers[0]))
    return None


def _explained(line: BehaviorExplanation, is_alone: bool) -> str:
    """Return the behavior that an explanation names, and how many inputs are exceptions to it.

    Unless it is the only line (``is_alone``), its regions come first.
    """
    name = line.behavior or line.nearest
    assert name is not None
    says = behaviors()[name].says
    if line.exceptions:
        says += f", but not for {line.exceptions:,} of {line.inputs:,} inputs"
    return says if is_alone else f"{listed(line.regions)}: {says}"


def _named(names: Sequence[str]) -> list[str]:
    """Return the names of regions, with a common name for two cells of ``BOTH`` if both occur."""
    left = [*names]
    for pair, word in BOTH.items():
        if all(name in left for name in pair):
            left[left.index(pair[0])] = word
            left.remove(pair[1])
    return left


def pair_lines(pair: PortablePair) -> Iterator[str]:
    """Yield the lines that describe a pair on a terminal."""
    yield f"{pair.source} to {pair.target}: {basis_words(pair)}"
    if pair.asked:
        yield f"  agree   {agree_words(pair)}"
        for each in pair.differ:
            yield f"  differ  {', '.join(each.where)}"
            for line in does_lines(each):
                yield from DOES.wrap(line)
        if pair.elsewhere:
            yield f"  also    {also_words(pair)}"
    for name, reason in pair.absent.items():
        yield f"  absent  {name}: {reason}"


def basis_words(pair: PortablePair) -> str:
    """Return in words how many inputs were asked, and whether the ranges are sampled."""
    if not pair.asked:
        return "nothing to compare, as fewer than two answer it"
    if pair.every_input:
        return f"every input asked, {pair.agreeing:,} of {pair.asked:,} agree"
    ends = "their ends are exact neighbors" if pair.exact_ends else "their ends too"
    return f"asked {pair.asked:,} inputs; ranges are sampled, {ends}"


def also_words(pair: PortablePair) -> str:
    """Return in words how many inputs agree outside of the ranges that are named."""
    return f"{pair.elsewhere:,} of the others agree, by chance or in narrow ranges"


def agree_words(pair: PortablePair) -> str:
    """Return in words the ranges of inputs on which all backends agree."""
    if pair.asked == pair.agreeing:
        return "every input" if pair.every_input else "every input asked"
    return ", ".join(pair.agree) or "nowhere"


def does_lines(difference: PairDifference) -> Iterator[str]:
    """Yield what backends and documents do; those with equal descriptions share a line."""
    doing: dict[str, list[str]] = {}
    for name, words in {**difference.does, **difference.documents}.items():
        doing.setdefault(words, []).append(name)
    for words, names in doing.items():
        yield f"{', '.join(names)}: {words}"


def page(every: PortablePairs, date: str) -> str:
    """Return the results of all pairs as a page in Markdown; ``date`` is the day it is made."""
    return "\n".join(
        [*_head(every, date), *(line for each in every.pairs for line in _section(each))]
    )


def _head(every: PortablePairs, date: str) -> Iterator[str]:
    yield "# Where backends agree"
    yield ""
    versions = ", ".join(f"{name} {version}" for name, version in every.versions.items())
    yield (
        f"Made by `castigate portable … --page FILE` (castigate {VERSION}, {date}): {versions}. "
        "All named backends give the same bits on the inputs below; any NaN equals any NaN."
    )
    yield ""
    rows = [
        [
            f"{each.source} → {each.target}",
            ", ".join(each.backends),
            agree_words(each) if each.asked else "–",
            f"{each.asked:,}" + (", every input" if each.every_input else ", sampled"),
        ]
        for each in every.pairs
    ]
    yield from markdown_table(("pair", "backends", "agree", "asked"), rows)


def _section(pair: PortablePair) -> Iterator[str]:
    yield ""
    yield f"## {pair.source} to {pair.target}"
    yield ""
    words = basis_words(pair)
    yield f"{words[0].upper()}{words[1:]}."
    yield ""
    if pair.asked:
        yield f"- agree: {agree_words(pair)}"
    for each in pair.differ:
        yield f"- differ: {', '.join(each.where)}"
        yield from (f"    - {line}" for line in does_lines(each))
    if pair.elsewhere:
        yield f"- also: {also_words(pair)}"
    for name, reason in pair.absent.items():
        yield f"- absent: {name} ({reason})"
