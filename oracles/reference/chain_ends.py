"""The definition of a chain of casts: what its end may be for one input, one value at a time.

Each pattern that a step allows goes through the next one. Where a step names a set instead, so does
the end: any NaN stays any NaN as far as the next rule distinguishes NaNs, and if a step allows
anything, so does the chain, unless the further steps map every pattern to the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from oracles.reference import expect_by_exact
from oracles.reference.expectations import Allowed
from specs.branches import Ruling
from specs.formats import EXHAUSTIVE_BITS, Format
from specs.model.vocabulary import Level
from specs.outcomes import Anything, Nan, Rejected, Same

LEVELS: tuple[Level, ...] = ("unspecified", "recommended", "required")
"""From the weakest: a chain requires no more than the weakest of its steps."""
OPEN_ENDS_KEPT = 1 << 12


@dataclass(frozen=True)
class Ends:
    """The answers that a chain allows for one input: patterns, NaNs of some signs, or anything.

    The signs in ``nans`` are those of ``Format.nans``. If ``is_open``, any answer is allowed. If
    ``is_rejected``, the chain must raise.
    """

    codes: frozenset[int] = frozenset()
    nans: frozenset[str] = frozenset()
    is_open: bool = False
    is_rejected: bool = False
    level: Level = "required"

    @property
    def is_one(self) -> bool:
        """Whether one pattern alone, or NaNs of one sign alone (or of ``any``), are allowed."""
        return not (self.is_open or self.is_rejected) and len(self.codes) + len(self.nans) == 1


OPEN = Ends(is_open=True, level="unspecified")


def ends(rulings: Sequence[Ruling], code: int) -> Ends:
    """Return what a chain of one or more rulings allows for one pattern of its source."""
    first, *rest = rulings
    allowed = expect_by_exact.allow(first, code)
    here = _ends_of(first, allowed, code)
    if not rest or here.is_rejected:
        return here
    if here.is_open:
        return open_ends(tuple(rest))
    found = [ends(rest, each) for each in sorted(here.codes)]
    found += [nan_ends(first.target, sign, rest) for sign in sorted(here.nans)]
    return joined(found, here.level)


def _ends_of(ruling: Ruling, allowed: Allowed, code: int) -> Ends:
    """Convert the answers that one cast allows into ``Ends``."""
    level = allowed.branch.level
    match allowed.branch.outcome:
        case Anything():
            return OPEN
        case Rejected():
            return Ends(is_rejected=True, level=level)
        case Nan(sign=sign):
            return Ends(nans=frozenset([sign]), level=level)
    return Ends(frozenset(allowed.codes), level=level)


def joined(found: Iterable[Ends], level: Level = "required") -> Ends:
    """Return the union of several allowed answers, at the weakest of their levels and ``level``.

    If one of them is a rejection, so is the union; else if one is open, so is the union.
    """
    every = list(found)
    weakest = min([level, *(each.level for each in every)], key=LEVELS.index)
    if any(each.is_rejected for each in every):
        return Ends(is_rejected=True, level=weakest)
    if any(each.is_open for each in every):
        return OPEN
    return Ends(
        frozenset().union(*(each.codes for each in every)),
        frozenset().union(*(each.nans for each in every)),
        level=weakest,
    )


def nan_ends(middle: Format, sign: str, rest: Sequence[Ruling]) -> Ends:
    """Return what the rest of a chain allows if its input may be any NaN of a sign.

    ``rest`` has the rulings of its steps, and ``middle`` is the format of the NaN. Rules
    distinguish NaNs only by their sign, so one NaN of each sign is tried. A step that keeps its
    input bit by bit gives any NaN of that sign.
    """
    if not rest:
        return Ends(nans=frozenset([sign]))
    first, *further = rest
    found = []
    for nans in middle.nans(sign):
        allowed = expect_by_exact.allow(first, nans[0])
        if isinstance(allowed.branch.outcome, Same):
            own = Ends(nans=frozenset([_sign_of(middle, nans)]), level=allowed.branch.level)
        else:
            own = _ends_of(first, allowed, nans[0])
        if not further or own.is_rejected:
            found.append(own)
        elif own.is_open:
            found.append(open_ends(tuple(further)))
        else:
            each = [ends(further, code) for code in sorted(own.codes)]
            each += [nan_ends(first.target, one, further) for one in sorted(own.nans)]
            found.append(joined(each, own.level))
    return joined(found)


def _sign_of(form: Format, nans: range) -> str:
    if not form.has_signed_nan:
        return "any"
    return "-" if nans[0] & form.sign_bit else "+"


@lru_cache(OPEN_ENDS_KEPT)
def open_ends(rest: tuple[Ruling, ...]) -> Ends:
    """Return what the rest of a chain allows if its input may be any pattern.

    That is anything, unless all patterns lead to the same pattern, or to NaNs of the same sign, at
    the same level; for a dtype of more than ``EXHAUSTIVE_BITS`` bits, always anything.
    """
    if not rest or rest[0].source.bits > EXHAUSTIVE_BITS:
        return OPEN
    found: set[Ends] = set()
    for code in range(1 << rest[0].source.bits):
        found.add(ends(rest, code))
        if len(found) > 1 or not next(iter(found)).is_one:
            return OPEN
    return found.pop()
