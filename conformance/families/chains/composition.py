"""Composes what a chain of casts allows from the kernels, for arrays of inputs or a traced term.

``chain_ends`` defines the same for one value. Here every result that a step may give is a *way*: a
condition on the input, and the pattern that goes on where it holds. As in the kernels themselves,
conditions and patterns are arrays, or terms for a solver or a compiler, so that one composition
serves for judging, for exhaustion and for proof.

If a step names no pattern, the chain's result no longer depends on the input: ``chain_ends``
computes it once.

Below stand the inputs at which such results change: those near the breakpoints of every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.breakpoints import breakpoints, distinct
from conformance.families.cast.quick_inputs import every_pattern, few_patterns
from oracles.protocol import Bits
from oracles.reference import expect_by_kernels
from oracles.reference.chain_ends import Ends, nan_ends, open_ends
from oracles.reference.expectations import Expected
from oracles.reference.kernels import Select, select_arrays
from specs.branches import Ruling
from specs.formats import EXHAUSTIVE_BITS, Format, format_named
from specs.outcomes import Anything, Either, Nan

Decide = Callable[[Ruling, Any, Select], tuple[Any, Any, Any]]
TABLES_KEPT = 1 << 7


@dataclass
class Composed:
    """The answers that a chain allows, each with the condition on the input under which it does.

    ``ways`` are pairs of a condition and a pattern, ``nans`` has a condition for each sign of NaNs,
    and where ``is_open`` holds, anything is allowed. Where ``is_recommended`` holds, some step is
    only recommended. ``never`` is the condition that no input meets. Conditions and patterns are
    arrays over the inputs, or terms.
    """

    target: Format
    never: Any
    ways: list[tuple[Any, Any]] = field(default_factory=list)
    nans: dict[str, Any] = field(default_factory=dict)
    is_open: Any = None
    is_recommended: Any = None

    def __post_init__(self) -> None:
        self.is_open = self.is_recommended = self.never

    @property
    def is_required(self) -> Any:
        """The condition on the input where the answers are neither open nor only recommended."""
        return (self.is_recommended | self.is_open) ^ True

    def add(self, condition: Any, end: Ends) -> None:
        """Also allow the answers in ``end``, the same for every input, where a condition holds."""
        if end.level == "recommended":
            self.is_recommended = self.is_recommended | condition
        if end.is_open:
            self.is_open = self.is_open | condition
        for code in sorted(end.codes):
            self.ways.append((condition, code))
        for sign in sorted(end.nans):
            self.nans[sign] = self.nans.get(sign, self.never) | condition

    def allows(self, pattern: Any) -> Any:
        """Return the condition on the input under which a pattern is an allowed answer."""
        allowed = self.is_open
        for condition, own in self.ways:
            allowed = allowed | (condition & (pattern == own))
        for sign, condition in self.nans.items():
            allowed = allowed | (condition & is_nan(self.target, sign, pattern))
        return allowed

    def allows_all_of(self, other: Composed) -> Any:
        """Return the condition under which all answers that another chain allows are allowed here.

        The other chain must have the same target. NaNs of a sign that it allows count as allowed
        here only if anything is, or ``nans`` has that sign or ``any``.
        """
        holds = self.is_open | (other.is_open ^ True)
        for condition, pattern in other.ways:
            holds = holds & (self.allows(pattern) | (condition ^ True))
        for sign, condition in other.nans.items():
            has = self.is_open | self.nans.get("any", self.never) | self.nans.get(sign, self.never)
            holds = holds & (has | (condition ^ True))
        return holds


def is_nan(form: Format, sign: str, pattern: Any) -> Any:
    """Return the condition that a pattern is a NaN of a sign: ``+``, ``-`` or ``any``."""
    found = pattern < 0
    for codes in form.nans(sign):
        found = found | ((pattern < codes[0]) ^ True) & ((pattern > codes[-1]) ^ True)
    return found


def compose(
    rulings: Sequence[Ruling],
    pattern: Any,
    select: Select,
    decide: Decide = expect_by_kernels.decide,
) -> Composed:
    """Return what a chain allows for a pattern; none of its rulings may be a rejection.

    ``rulings`` are those of its steps. ``pattern`` is an array or a term, and ``select`` chooses
    between two arrays or terms by a condition. ``decide`` takes a ruling, a pattern and ``select``;
    it returns the index of the branch, the allowed pattern, and the second one if there are two.
    """
    never = pattern < 0
    end = Composed(rulings[-1].target, never)
    ways = [(never ^ True, pattern)]
    for number, ruling in enumerate(rulings, 1):
        rest = tuple(rulings[number:])
        later: list[tuple[Any, Any]] = []
        for condition, own in ways:
            index, code, other = decide(ruling, own, select)
            goes_on, has_two = condition, never
            for at, branch in enumerate(ruling.branches):
                here = condition & (index == at)
                if branch.level == "recommended":
                    end.is_recommended = end.is_recommended | here
                match branch.outcome:
                    case Anything():
                        end.add(here, open_ends(rest))
                    case Nan(sign=sign):
                        end.add(here, nan_ends(ruling.target, sign, rest))
                    case Either():
                        has_two = has_two | here
                        continue
                    case _:
                        continue
                goes_on = goes_on & (here ^ True)
            later.append((goes_on, code))
            if any(isinstance(each.outcome, Either) for each in ruling.branches):
                later.append((has_two, other))
        ways = later
    end.ways += ways
    return end


def unchanged(form: Format, pattern: Any) -> Composed:
    """Return the answer of a chain that has no casts left: the input's own pattern."""
    never = pattern < 0
    return Composed(form, never, [(never ^ True, pattern)])


def compose_arrays(rulings: Sequence[Ruling], inputs: NDArray[Any]) -> Composed:
    """Return what a chain with these rulings allows for each input of an array."""
    return compose(rulings, inputs.astype(np.uint64), select_arrays, decide_by_table)


def decide_by_table(ruling: Ruling, pattern: Any, select: Select) -> tuple[Any, Any, Any]:
    """Return branch index, pattern and second pattern of each input, as ``decide`` does.

    For a source of up to 16 bits they are looked up in a table.
    """
    if ruling.source.bits > EXHAUSTIVE_BITS:
        return expect_by_kernels.decide(ruling, pattern, select)
    table = _table(ruling)
    columns = table.branch_indices, table.codes, table.others
    index, code, other = (column[pattern] for column in columns)
    return index, code.astype(np.uint64), other.astype(np.uint64)


@lru_cache(TABLES_KEPT)
def _table(ruling: Ruling) -> Expected:
    patterns = np.arange(1 << ruling.source.bits, dtype=ruling.source.storage)
    return expect_by_kernels.expect(ruling, patterns)


PER_PAIR = 1500
"""About how many inputs of a wide source are chosen for each pair of dtypes on a path."""
SOURCES_KEPT = 64


def chain_inputs(dtypes: tuple[str, ...], most: int = PER_PAIR) -> Bits:
    """Return the inputs of a path of dtypes, in the order of their patterns.

    These are all patterns of a source of up to 16 bits. Of a wider one they are chosen, about
    ``most`` for each pair of dtypes on the path.
    """
    source = format_named(dtypes[0])
    if source.bits <= EXHAUSTIVE_BITS:
        return every_pattern(source)
    return _of_wide_source(dtypes, most)


@lru_cache(SOURCES_KEPT)
def _of_wide_source(dtypes: tuple[str, ...], most: int) -> Bits:
    source = format_named(dtypes[0])
    parts = [_few(source.name, each, most) for each in dict.fromkeys(dtypes[1:])]
    for middle, target in pairwise(dtypes[1:]):
        parts.append(_becoming(source, format_named(middle), target, most))
    inputs = distinct(np.concatenate(parts)).astype(source.storage)
    inputs.flags.writeable = False
    return inputs


def _few(source: str, target: str, most: int) -> NDArray[np.uint64]:
    return few_patterns(source, target, most).astype(np.uint64)


def _becoming(source: Format, middle: Format, target: str, most: int) -> NDArray[np.uint64]:
    """Return source patterns at and beside values of ``middle`` at which the next cast changes.

    That is the cast from ``middle`` to ``target``; every value of a narrow ``middle`` counts. If
    there are too many values, an even sample of them is taken.
    """
    if middle.bits <= EXHAUSTIVE_BITS:
        codes = every_pattern(middle).astype(np.uint64)
    else:
        codes = _few(middle.name, target, most)
    values = codes[codes <= middle.max_code]
    # Each value of the middle dtype has up to a dozen patterns of the source around it.
    room = max(2, most // 12)
    if values.size > room:
        values = values[np.linspace(0, values.size - 1, room).astype(np.intp)]
    return breakpoints(source, middle, values)
