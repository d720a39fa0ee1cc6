"""Chooses the few mechanisms that explain the wrong answers of a backend.

A run of inputs is left as long as no chosen mechanism explains it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, get_args
from zlib import crc32

from oracles.protocol import Mask
from reports.findings.cast_wrongs import every_wrong
from reports.findings.cells import FailureKind, WrongAnswers, is_exhaustive
from reports.findings.mechanism_search import (
    ExplainedRuns,
    Extent,
    MechanismSearch,
    Placed,
    Reach,
    bits_of_choice,
)
from reports.findings.wrong import Wrong
from specs.formats import format_named

MOST_KINDS = 160
"""The most ways to fail by which mechanisms are chosen; of more, a sample is taken.

Real backends have up to 110. One that is wrong in all cases of all documents has 1,268, and the
choice among these takes minutes for each 100.
"""
MOST_SENTENCES = 3
"""The most mechanisms that a sentence names; of more, the others are counted."""
ONE_INPUT = "gives one input a wrong value"
"""How the sentence begins of a finding of which a single input is not enough to tell the cause."""
BITS_OF_MECHANISM = 6.0
"""The bits that it takes to name one of about 64 mechanisms."""


@dataclass(frozen=True)
class Undecided:
    """The cause of a wrong answer to a single input that several mechanisms explain equally well.

    ``name`` is that of the first of them, and ``sentences`` are those of all.
    """

    name: str
    sentences: tuple[str, ...]

    @property
    def says(self) -> str:
        """The sentence of the finding."""
        others = len(self.sentences) - MOST_SENTENCES
        counted = [f"{others} more"] if others > 0 else []
        *most, last = (*self.sentences[:MOST_SENTENCES], *counted)
        words = f"{', '.join(most)}, or {last}"
        return f"{ONE_INPUT}, which is not enough to tell the cause: {words}"


class Share(NamedTuple):
    """The runs of a case that a cause explains, and the words for its region, or empty ones."""

    runs: Mask
    region: str


@dataclass
class RuleExplanation:
    """The mechanisms that explain the wrong answers under one broken rule.

    ``claims`` has the runs that each mechanism explains, ``shares`` those that each chosen cause
    gets.
    """

    wrong: WrongAnswers
    claims: dict[Wrong, ExplainedRuns] = field(default_factory=dict)
    shares: dict[Wrong | Undecided, Share] = field(default_factory=dict)
    _outranked: dict[Wrong, bool] = field(default_factory=dict)

    @cached_property
    def possible(self) -> dict[Wrong, float]:
        """Maps each mechanism to the share of wrong answers that it explains and that are left."""
        left = self.wrong.left
        if not left.any():
            return {}
        shares = {
            mechanism: self.wrong.share(claim.explained & left)
            for mechanism, claim in self.claims.items()
        }
        return {mechanism: share for mechanism, share in shares.items() if share}

    def placed(self, mechanism: Wrong, reach: Reach, extent: Extent = "all") -> Placed | None:
        """Return the runs that a mechanism explains and predicts, with its forecast.

        With the extent ``few`` they come from a sample of the inputs. Return None if the forecast
        reaches less far than ``reach``, if none of the runs is left, or if it is a behavior and
        another mechanism is the cause of its answers.
        """
        placed = self.predicted(mechanism, reach, extent)
        return None if placed is None or self._is_outranked(mechanism) else placed

    def predicted(self, mechanism: Wrong, reach: Reach, extent: Extent = "all") -> Placed | None:
        """Return what ``placed`` does, whatever else is the cause of the mechanism's answers."""
        if mechanism not in self.possible:
            return None
        claim = self.claims[mechanism]
        placed = claim.placed if extent == "all" else claim.likely
        if placed is None or placed.forecast.reach > reach:
            return None
        return placed if (placed.runs & self.wrong.left).any() else None

    def _is_outranked(self, mechanism: Wrong) -> bool:
        """Whether a behavior gives only answers of which another mechanism is the cause.

        That depends on this case alone. Of integers and booleans, constants tell little.
        """
        if not mechanism.is_behavior:
            return False
        if mechanism not in self._outranked:
            explained = self.claims[mechanism].explained
            self._outranked[mechanism] = any(
                self._outranks(other, mechanism)
                for other, claim in self.claims.items()
                if other.outranks_behaviors and not (explained & ~claim.explained).any()
            )
        return self._outranked[mechanism]

    def _outranks(self, other: Wrong, behavior: Wrong) -> bool:
        placed = self.claims[other].placed
        if placed is None or (self.claims[behavior].explained & ~placed.runs).any():
            return False
        match other.tells:
            case "what":
                return True
            case "constant" if behavior.tells == "form" and other.name == "zero":
                own = self.claims[behavior].placed
                return own is not None and own.forecast.reach != Reach.EVERYWHERE
            case "constant":
                target = format_named(self.wrong.case.target)
                return behavior.tells == "form" and target.kind == "float"
            case _:
                return placed.forecast.reach == Reach.EVERYWHERE

    def take(self, mechanism: Wrong, reach: Reach, cause: Wrong | Undecided) -> None:
        """Assign to ``cause`` the runs left that ``mechanism`` explains and predicts.

        It gets none if the mechanism reaches less far than ``reach``. The runs are no longer left.
        """
        if placed := self.placed(mechanism, reach):
            runs = placed.runs & self.wrong.left
            self.wrong.left &= ~runs
            self._forget()
            if known := self.shares.get(cause):
                runs = runs | known.runs
            self.shares[cause] = Share(runs, placed.forecast.region)

    def reset(self) -> None:
        """Forget the chosen causes, so that all wrong answers are left again."""
        self.shares.clear()
        self.wrong.left[:] = True
        self._forget()

    def learn(self, claims: Mapping[Wrong, ExplainedRuns]) -> None:
        """Replace the claims of all mechanisms by these."""
        self.claims = dict(claims)
        self._outranked.clear()
        self._forget()

    def _forget(self) -> None:
        vars(self).pop("possible", None)


class Choice(NamedTuple):
    """One step of the choice: a mechanism, and the cause that gets the runs which it explains.

    In each case, these are the runs that no earlier step has assigned, if the mechanism's forecast
    there is ``reach`` or a smaller ``Reach``. ``cause`` is the mechanism itself, or ``Undecided``
    if others explain the same single input equally well.
    """

    mechanism: Wrong
    reach: Reach
    cause: Wrong | Undecided


def explain_wrong_answers(
    wrong: Sequence[WrongAnswers], search: MechanismSearch
) -> Iterator[RuleExplanation]:
    """Choose the mechanisms that explain most; yield an explanation of each item of ``wrong``.

    The ``left`` of its ``wrong`` marks the runs that no chosen mechanism explains. Mechanisms that
    hold everywhere in a case are chosen first, and then explain what they can in other cases. If
    cases fail in more than ``MOST_KINDS`` ways, mechanisms are chosen by a sample of these. Others
    are explained only when it is their turn, and are not kept: their masks of runs would take
    hundreds of megabytes.
    """
    sample = sampled_kinds(wrong)
    found = [
        RuleExplanation(each, dict(search.claims(each))) for each in wrong if each.kind in sample
    ]
    _choose_all(found)
    unexplained = {each.wrong.cell.case for each in found if each.wrong.left.any()}
    for each in found:
        each.reset()
        if each.wrong.cell.case in unexplained:
            each.learn(each.claims | dict(search.claims(each.wrong, costly=True)))
    steps = _choose_all(found)
    for each in found:
        # Of many runs only some were tried: what is left may have further explanations.
        if each.wrong.left.any():
            each.learn(dict(search.claims(each.wrong)))
    _choose(found, steps, Reach.INTERVALS)
    for each in found:
        each.learn({})
    in_turn = iter(found)
    pair = None
    for one in wrong:
        if one.kind in sample:
            yield next(in_turn)
            continue
        if pair != (pair := (one.cell.source, one.cell.target)):
            search.forget()  # What it knows of one pair of dtypes is of no use for another.
        # A copy, because what is left of its answers is kept with it.
        yield _explain_by(steps, replace(one), search)


def sampled_kinds(wrong: Sequence[WrongAnswers]) -> set[FailureKind]:
    """Return the ways to fail by which mechanisms are chosen: all, or ``MOST_KINDS`` of them."""
    kinds = {each.kind for each in wrong}
    if len(kinds) <= MOST_KINDS:
        return kinds
    return set(sorted(kinds, key=lambda kind: crc32(" ".join(kind).encode()))[:MOST_KINDS])


def _explain_by(
    steps: Sequence[Choice], wrong: WrongAnswers, search: MechanismSearch
) -> RuleExplanation:
    """Explain answers outside the sample by ``steps``, the choices made for the sample."""
    among = {step.mechanism for step in steps}
    some, others = (search.claims(wrong, costly=costly, among=among) for costly in (False, True))
    found = RuleExplanation(wrong, dict(some) | dict(others))
    for step in steps:
        found.take(*step)
    found.learn({})
    return found


def _choose_all(found: Sequence[RuleExplanation]) -> list[Choice]:
    """Choose mechanisms that hold everywhere, then others; return the choices in order.

    Those that hold everywhere in a case take named regions of other cases before others are chosen.
    The items of ``found`` are changed: each chosen cause takes its runs, which are no longer left.
    """
    steps: list[Choice] = []
    _choose(found, steps, Reach.EVERYWHERE)
    for chosen in [*steps]:
        _take(found, steps, Choice(chosen.mechanism, Reach.REGION, chosen.mechanism))
    _choose(found, steps, Reach.INTERVALS)
    return steps


def _choose(found: Sequence[RuleExplanation], steps: list[Choice], reach: Reach) -> None:
    """Choose one mechanism after the other until none explains more; append to ``steps``.

    A mechanism explains a case only if its forecast there reaches as far as ``reach``. The items of
    ``found`` are changed: each chosen cause takes its runs.
    """
    chosen = {step.mechanism for step in steps}
    while best := _best(found, reach, chosen):
        rivals = _rivals(found, best, reach) if best not in chosen else []
        chosen.add(best)
        _take(
            found,
            steps,
            Choice(best, reach, Undecided(best.name, (best.says, *rivals)) if rivals else best),
        )


def _take(found: Sequence[RuleExplanation], steps: list[Choice], step: Choice) -> None:
    steps.append(step)
    for each in found:
        each.take(*step)


def _rivals(found: Sequence[RuleExplanation], best: Wrong, reach: Reach) -> list[str]:
    """Return the sentences of other mechanisms that explain the one input that ``best`` explains.

    There are none if ``best`` explains several inputs, or cases that fail in different ways. A
    constant has no rivals either: it only says what comes out. If all inputs were asked, a rival
    must reach as far as ``best``; if not, further inputs may refute ``best``. A mechanism that
    predicts the input only as an interval is a rival only if it is a constant, because many forms
    agree on one input. Rows with an equal ``Wrong.alike`` are not rivals.
    """
    if best.tells == "constant":
        return []
    own = {each.wrong.kind: each for each in found if each.placed(best, reach) is not None}
    [first, *more] = own.values()
    placed = first.placed(best, reach)
    assert placed is not None
    runs = placed.runs & first.wrong.left
    if more or first.wrong.failing.count[runs].sum() != 1:
        return []
    asks_all = is_exhaustive(format_named(first.wrong.cell.source))
    farthest = placed.forecast.reach if asks_all else Reach.INTERVALS
    others = (
        mechanism
        for mechanism in first.claims
        if (other := first.predicted(mechanism, farthest)) is not None
        and (other.runs & runs).any()
        and (other.forecast.reach < Reach.INTERVALS or mechanism.tells == "constant")
        and not (best.alike and mechanism.alike == best.alike)
    )
    return list(dict.fromkeys(each.says for each in others if each.says != best.says))


def _best(
    found: Sequence[RuleExplanation], reach: Reach, chosen: Collection[Wrong]
) -> Wrong | None:
    """Return the mechanism that explains most of the answers left; None if none is worth its cost.

    Of equals, it is one that was chosen before, or else the simplest.
    """
    at_most: dict[Wrong, float] = defaultdict(float)
    for each in found:
        for mechanism, share in each.possible.items():
            at_most[mechanism] += share
    best: Wrong | None = None
    most = (0.0, False, 0)
    for mechanism, share in sorted(at_most.items(), key=lambda item: -item[1]):
        if round(share, 6) < most[0] or not share:
            break
        # A sample of the inputs shows in less time which others cannot be better.
        for extent in get_args(Extent):
            gain, rank = _gain(found, mechanism, reach, extent, most[0])
            merit = round(gain, 6), mechanism in chosen, -rank
            if not gain or (best is not None and merit <= most):
                break
        else:
            if is_worth_its_cost(found, mechanism, reach, chosen):
                best, most = mechanism, merit
    return best


def _gain(
    found: Sequence[RuleExplanation],
    mechanism: Wrong,
    reach: Reach,
    extent: Extent,
    needed: float,
) -> tuple[float, int]:
    """Return the share of the answers left that a mechanism explains, and its rank.

    The share is summed over all cases. The rank is how many simpler mechanisms explain answers in a
    case, the highest number of any case. The share is 0 if it turns out to be less than ``needed``.
    It is also 0 for a behavior that holds everywhere for less than half of the answers that it
    gives. Such a behavior holds by chance: a source may not reach the values at which another
    source shows the difference.
    """
    gain, elsewhere, rank = 0.0, 0.0, 0
    explained = [each for each in found if mechanism in each.possible]
    at_most = sum(each.possible[mechanism] for each in explained)
    for each in explained:
        at_most -= each.possible[mechanism]
        if placed := each.placed(mechanism, reach, extent):
            gain += each.wrong.share(placed.runs & each.wrong.left)
            rank = max(rank, list(each.claims).index(mechanism))
        elif mechanism.tells in ("form", "constant"):
            elsewhere += each.possible[mechanism]
        by_chance = reach == Reach.EVERYWHERE and round(gain + at_most - elsewhere, 6) < 0
        if by_chance or round(gain + at_most, 6) < needed:
            return 0.0, rank
    return gain, rank


def is_worth_its_cost(
    found: Sequence[RuleExplanation], mechanism: Wrong, reach: Reach, chosen: Collection[Wrong]
) -> bool:
    """Whether a mechanism's bits exceed the cost of naming its cases, and itself if not chosen."""
    worth = {
        each.wrong.kind: placed.forecast.bits
        for each in found
        if (placed := each.placed(mechanism, reach)) is not None
    }
    kinds = {each.wrong.kind: each.wrong.case for each in found}
    possible = sum(mechanism in every_wrong(case) for case in kinds.values())
    cost = bits_of_choice(len(worth), possible)
    if mechanism not in chosen:
        cost += BITS_OF_MECHANISM
    return sum(worth.values()) > cost
