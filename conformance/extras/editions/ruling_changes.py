"""Compares two rulings of a pair of dtypes on all inputs, by their staircases.

Both staircases get the same stretches. Between two steps of either, both allow answers that rise
evenly from period to period, so that one comparison decides as many inputs as there are periods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from conformance.extras.editions.input_set import Grid, InputSet, periodic_grids
from oracles.reference.staircase import Staircase, Step, staircase, stretches
from specs.branches import Branch, Ruling
from specs.formats import Format
from specs.model.vocabulary import Level
from specs.outcomes import Anything, Either, Exactly, Nan, Outcome, ParsesTo, PlainText, Rejected

Strictness = Literal["stricter", "looser", "other"]
"""Whether the new ruling allows a part of the answers, more than before, or neither."""
FIRMNESS: dict[Level, int] = {"unspecified": 0, "recommended": 1, "required": 2}

Period = tuple[int, int]
"""A residue and a power: the periods whose number is the residue modulo two to this power."""
EVERY: Period = (0, 0)
CodeRanges = list[tuple[int, int]]
"""Ranges of codes in rising order, each with its first and last code."""


class RuleAtLevel(NamedTuple):
    """The name of a rule, its clause, and the level at which it binds."""

    rule: str
    clause: str
    level: Level


def key_of(branch: Branch) -> RuleAtLevel:
    """Return the key of the rule from which a branch comes."""
    return RuleAtLevel(branch.rule, branch.clause, branch.level)


class RisingRanges(NamedTuple):
    """Two ranges of codes, from ``low`` to ``low + width``, that rise from period to period.

    If one range is allowed, both are equal.
    """

    low: int
    width: int
    rise: int
    other_low: int
    other_width: int
    other_rise: int

    def at(self, period: int, mask: int) -> CodeRanges:
        """Return the allowed ranges of codes in a period, in order; of two equal ones, one."""
        ends = (
            ((self.low + period * self.rise) & mask, self.width),
            ((self.other_low + period * self.other_rise) & mask, self.other_width),
        )
        (low, high), (start, end) = sorted((low, low + width) for low, width in ends)
        return [(low, max(high, end))] if start <= high else [(low, high), (start, end)]

    @property
    def rises(self) -> set[int]:
        """The rises of the ranges."""
        return {self.rise, self.other_rise}

    @property
    def codes(self) -> list[tuple[int, int]]:
        """The codes of the ranges that have only one, each with its rise."""
        ranges = (
            (self.low, self.width, self.rise),
            (self.other_low, self.other_width, self.other_rise),
        )
        return [(low, rise) for low, width, rise in ranges if not width]


NO_CODES = RisingRanges(0, 0, 0, 0, 0, 0)
"""The answers of a branch that names no codes."""


class Allowance(NamedTuple):
    """A branch with the answers that it allows, and those that it allows and recommends."""

    branch: Branch
    allowed: RisingRanges
    recommended: RisingRanges


@dataclass(frozen=True)
class EditionSide:
    """A ruling with its staircase, which is None if one branch takes every input alike."""

    ruling: Ruling
    stairs: Staircase | None

    def allowances(self, number: int) -> dict[int, Allowance]:
        """Return what the ruling allows from each offset of a stretch on, in their order."""
        if self.stairs is None:
            return {0: Allowance(self.ruling.branches[0], NO_CODES, NO_CODES)}
        found = {}
        for step in map(Step._make, self.stairs.steps_of(number).tolist()):
            branch = self.ruling.branches[step.branch_index]
            best = _answers(step)
            is_whole = branch.recommended is None
            allowed = best if is_whole else constant_answers(self.ruling.target, branch.outcome)
            found[step.offset] = Allowance(branch, allowed, best)
        return found


def constant_answers(target: Format, outcome: Outcome) -> RisingRanges:
    """Return the answers of an outcome that is the same for all inputs.

    It is one pattern, one of two patterns, or the NaNs of a sign.
    """
    match outcome:
        case Nan(sign=sign):
            ranges = [(each[0], len(each) - 1) for each in target.nans(sign)]
        case Exactly(code=code):
            ranges = [(code, 0)]
        case Either(options=options):
            ranges = [(each.code, 0) for each in options if isinstance(each, Exactly)]
        case _:
            raise AssertionError(f"{outcome} is not the same for all inputs")
    return RisingRanges(*ranges[0], 0, *ranges[-1], 0)


def _answers(step: Step) -> RisingRanges:
    return RisingRanges(
        step.low,
        step.high - step.low,
        step.rise,
        step.other_low,
        step.other_high - step.other_low,
        step.other_rise,
    )


def _side(ruling: Ruling, on_other_ways: tuple[Format, ...]) -> EditionSide:
    if len(ruling.branches) == 1 and not names_codes(ruling.branches[0]):
        return EditionSide(ruling, None)
    # Without names and clauses, so that editions which allow the same share a staircase.
    branches = tuple(replace(each, rule="", clause="") for each in ruling.branches)
    plain = replace(ruling, branches=branches, answer_due=None)
    return EditionSide(ruling, staircase(plain, on_other_ways))


@dataclass(frozen=True)
class RuleChange:
    """A rule before and one after that take the same inputs, and the direction of the change."""

    old: RuleAtLevel
    new: RuleAtLevel
    direction: Strictness


def ruling_changes(old: Ruling, new: Ruling) -> dict[RuleChange, InputSet]:
    """Return the inputs of which two numeric rulings of a pair allow other answers.

    Neither has worked examples.
    """
    sides = _side(old, new.on_the_way), _side(new, old.on_the_way)
    found: dict[RuleChange, list[Grid]] = {}
    for number, (first, last, shift) in enumerate(_stretches(sides)):
        one, other = (each.allowances(number) for each in sides)
        periods = (last - first >> shift) + 1
        end = min(1 << shift, last - first + 1)
        for key, period, offsets in _joined(_changed(one, other, end, periods, old.target.mask)):
            grids = periodic_grids(first, last, shift, offsets, period)
            found.setdefault(key, []).extend(grids)
    # The last period of a stretch may end before an offset at which answers change in it alone.
    return {key: InputSet(old.source, tuple(grids)) for key, grids in found.items() if grids}


def _stretches(sides: tuple[EditionSide, EditionSide]) -> list[tuple[int, int, int]]:
    """Return the first and the last pattern and the shift of each stretch of two sides."""
    for side in sides:
        if side.stairs is not None:
            return [tuple(row[:3]) for row in side.stairs.stretches.tolist()]
    source, target = sides[0].ruling.source, sides[0].ruling.target
    return [(each.first, each.last, each.shift) for each in stretches(source, target)]


Changed = tuple[RuleChange, Period, tuple[int, int]]
"""The rules before and after with the direction, the periods, and the offsets in these."""


def _changed(
    old: dict[int, Allowance], new: dict[int, Allowance], end: int, periods: int, mask: int
) -> Iterator[Changed]:
    """Yield the offsets below ``end`` of a stretch where the allowed answers change."""
    before, after = old[0], new[0]
    for offset, following in pairwise([*sorted(old | new), end]):
        before, after = old.get(offset, before), new.get(offset, after)
        for period in _alike_periods(before, after, periods, mask):
            direction = _direction(before, after, period[0], mask)
            if direction is not None:
                key = RuleChange(key_of(before.branch), key_of(after.branch), direction)
                yield key, period, (offset, following - 1)


def _joined(changed: Iterable[Changed]) -> Iterator[Changed]:
    """Yield changes; those of every period whose offsets follow each other are joined."""
    current: Changed | None = None
    for each in changed:
        key, period, (first, last) = each
        if current is not None and current[:2] == (key, EVERY) and period == EVERY:
            begin, end = current[2]
            if end + 1 == first:
                current = key, EVERY, (begin, last)
                continue
        if current is not None:
            yield current
        current = each
    if current is not None:
        yield current


def _alike_periods(
    before: Allowance, after: Allowance, periods: int, mask: int
) -> Iterable[Period]:
    """Return parts of the periods such that in all periods of a part the same codes are equal.

    Two codes that rise differently are equal in the periods of one residue modulo a power of two.
    """
    parts = [EVERY]
    is_fixed = periods == 1 or not (names_codes(before.branch) and names_codes(after.branch))
    if is_fixed or len(before.allowed.rises | after.allowed.rises) == 1:
        return parts
    for code, rise in before.allowed.codes:
        for other, other_rise in after.allowed.codes:
            meeting = _meeting(other - code, rise - other_rise, mask)
            if meeting is not None:
                parts = [part for each in parts for part in _split(each, meeting, periods)]
    return parts


def _meeting(distance: int, speed: int, mask: int) -> Period | None:
    """Return the ``n`` with ``n * speed == distance`` modulo ``mask + 1``; None if never or always.

    ``mask`` has all bits of a pattern.
    """
    distance, speed = distance & mask, speed & mask
    if not speed:
        return None
    twos = (speed & -speed).bit_length() - 1
    if distance & ((1 << twos) - 1):
        return None
    modulus = (mask + 1) >> twos
    return (distance >> twos) * pow(speed >> twos, -1, modulus) % modulus, modulus.bit_length() - 1


def _split(part: Period, meeting: Period, periods: int) -> Iterator[Period]:
    """Yield the periods of ``part`` that belong to ``meeting``, and the others, if any exist."""
    (residue, power), (met, finer) = part, meeting
    if power >= finer or (met ^ residue) & ((1 << power) - 1):
        yield part
        return
    others = ((met & ((2 << bit) - 1)) ^ (1 << bit) for bit in range(power, finer))
    found = [meeting, *zip(others, range(power + 1, finer + 1), strict=True)]
    yield from (each for each in found if each[0] < periods)


def names_codes(branch: Branch) -> bool:
    """Return whether a branch allows patterns, so that it takes codes to compare it."""
    return not isinstance(branch.outcome, Anything | Rejected | PlainText | ParsesTo)


def _direction(before: Allowance, after: Allowance, period: int, mask: int) -> Strictness | None:
    """Return the direction of a change in a period; None if nothing changes."""
    if not (names_codes(before.branch) and names_codes(after.branch)):
        return direction_of_branches(before.branch, after.branch)
    allowed, best = (
        tuple(answers.at(period, mask) for answers in each)
        for each in (
            (before.allowed, after.allowed),
            (before.recommended, after.recommended),
        )
    )
    return direction_of_codes(before.branch, after.branch, allowed, best)


def direction_of_codes(
    old: Branch, new: Branch, allowed: Sequence[CodeRanges], best: Sequence[CodeRanges]
) -> Strictness | None:
    """Return the direction between what two branches allow for an input; None if it is the same.

    ``allowed`` are the ranges of codes that the old and the new branch allow, and ``best`` those
    that they recommend.
    """
    return _overall(
        {_of_sets(*allowed) or _of_sets(*best), direction_of_levels(old.level, new.level)}
    )


def direction_of_branches(old: Branch, new: Branch) -> Strictness | None:
    """Return the direction between two branches, of which one at least names no codes.

    The result is None if they allow the same.
    """
    found: Strictness | None = None
    match old.outcome, new.outcome:
        case before, after if before == after:
            found = _of_recommended(old.recommended, new.recommended)
        case Anything(converts=converts), Anything():
            found = "looser" if converts else "stricter"
        case Anything(), _:
            return "stricter"
        case _, Anything():
            return "looser"
        case (Rejected(None), Rejected()) | (PlainText(), PlainText(reads_back=True)):
            found = "stricter"
        case (Rejected(), Rejected(None)) | (PlainText(), PlainText()):
            found = "looser"
        case _:
            found = "other"
    return _overall({found, direction_of_levels(old.level, new.level)})


def _of_recommended(old: Outcome | None, new: Outcome | None) -> Strictness | None:
    if old == new:
        return None
    if old is None:
        return "stricter"
    return "looser" if new is None else "other"


def direction_of_levels(old: Level, new: Level) -> Strictness | None:
    """Return the direction between two levels; None if they are the same."""
    before, after = FIRMNESS[old], FIRMNESS[new]
    if before == after:
        return None
    return "stricter" if before < after else "looser"


def _overall(found: set[Strictness | None]) -> Strictness | None:
    """Return the one direction in a set, `other` if there are several, and None if none is."""
    directions = found - {None}
    return next(iter(directions), None) if len(directions) < 2 else "other"


def _of_sets(old: CodeRanges, new: CodeRanges) -> Strictness | None:
    if old == new:
        return None
    if _covers(old, new):
        return "stricter"
    return "looser" if _covers(new, old) else "other"


def _covers(whole: CodeRanges, part: CodeRanges) -> bool:
    return all(any(low <= start and end <= high for low, high in whole) for start, end in part)
