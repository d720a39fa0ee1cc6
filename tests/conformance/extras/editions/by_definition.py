"""What changes between two rulings, input by input and by sets of codes: slow and plain."""

from __future__ import annotations

from oracles.reference import exact_rulings
from specs.branches import Branch, Ruling
from specs.formats import Format
from specs.outcomes import Anything, Exactly, Nan, Outcome, Rejected

RANK = {"unspecified": 0, "recommended": 1, "required": 2}
ERROR = "error"
"""Stands for an error among the answers that are allowed."""

OPEN: frozenset[object] = frozenset(["anything"])
"""Stands for all answers, of which every other set is a part."""
Answers = frozenset[object]


def answers(ruling: Ruling, code: int) -> tuple[Branch, Answers, Answers]:
    """Return the branch of an input, all answers that it allows, and all that it recommends."""
    allowed = exact_rulings.allow(ruling, code)
    every = _set(ruling.target, allowed.branch.outcome, allowed.codes)
    best = allowed.branch.recommended
    return allowed.branch, every, every if best is None else _set(ruling.target, best, ())


def _set(target: Format, outcome: Outcome, codes: tuple[int, ...]) -> Answers:
    match outcome:
        case Anything():
            return OPEN
        case Rejected(error_class=None):
            return frozenset([ERROR, "any class"])
        case Rejected():
            return frozenset([ERROR])
        case Nan(sign=sign):
            return frozenset(code for nans in target.nans(sign) for code in nans)
        case Exactly(code=code):
            return frozenset([code])
    return frozenset(codes)


def direction(old: Ruling, new: Ruling, code: int) -> str | None:
    """Return how an input's ruling changes: `stricter`, `looser`, `other`, or None."""
    (one, before, better), (two, after, best) = answers(old, code), answers(new, code)
    found = {_of_sets(before, after) or _of_sets(better, best)}
    if OPEN not in (before, after) and RANK[one.level] != RANK[two.level]:
        found.add("stricter" if RANK[one.level] < RANK[two.level] else "looser")
    found.discard(None)
    return next(iter(found), None) if len(found) < 2 else "other"


def _of_sets(before: Answers, after: Answers) -> str | None:
    if before == after:
        return None
    if OPEN in (before, after):
        return "stricter" if before == OPEN else "looser"
    return "stricter" if after < before else "looser" if before < after else "other"
