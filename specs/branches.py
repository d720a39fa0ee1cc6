"""Rulings: what a case allows, by branches that take its inputs and give each an outcome."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from specs.behaviors import behavior_named
from specs.formats import Format, format_named
from specs.model.vocabulary import Atom, Level, Rounding
from specs.outcomes import Anything, Behaves, Either, Outcome, Rejected, Round
from specs.totality import Partition


@dataclass(frozen=True)
class Branch:
    """One branch of a ruling: the inputs that it takes, their outcome, and the rule it comes from.

    ``recommended`` is the part of the outcome that the document recommends, or None.
    """

    input_class: str
    outcome: Outcome
    level: Level
    rule: str
    clause: str
    recommended: Outcome | None = None

    @property
    def strictest(self) -> Outcome:
        """The outcome whose answers break neither a requirement nor a recommendation."""
        return self.recommended or self.outcome


@dataclass(frozen=True)
class AnswerDue:
    """A rule that requires an answer to a case, of any value: an error breaks it."""

    rule: str
    clause: str
    level: Level


class Meaning(tuple[Hashable, ...]):
    """A tuple as a key of caches, which keeps its hash because computing it is slow."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


@cache
def _interned(meaning: Meaning) -> Meaning:
    """Return the first ``Meaning`` that equals this one, so that comparing them takes no time."""
    return meaning


@dataclass(frozen=True)
class Ruling:
    """The resolved rules of a case: its branches, and which branch takes each atom.

    In a worked example of a page, ``worked`` has the pairs of input and output that the page
    prints, with one branch per pair, and ``partition`` is None. ``answer_due`` is the rule that
    requires an answer, or None.
    """

    source: Format
    target: Format
    rounding: Rounding
    branches: tuple[Branch, ...]
    partition: Partition | None = field(repr=False)
    worked: tuple[tuple[int, int], ...] = ()
    answer_due: AnswerDue | None = None

    @property
    def branch_of(self) -> dict[Atom, int]:
        """The index of the branch that takes each atom; empty for a worked example."""
        return self.partition.branch_of if self.partition is not None else {}

    @cached_property
    def open_branches(self) -> tuple[int, ...]:
        """The indices of the branches that leave their inputs open."""
        return self._branches_with(Anything)

    @cached_property
    def refused_branches(self) -> tuple[int, ...]:
        """The indices of the branches whose inputs require an error."""
        return self._branches_with(Rejected)

    def _branches_with(self, outcome: type[Anything | Rejected]) -> tuple[int, ...]:
        found = enumerate(self.branches)
        return tuple(index for index, each in found if isinstance(each.outcome, outcome))

    @cached_property
    def is_rejection(self) -> bool:
        """Whether the document requires an error for every input."""
        return len(self.refused_branches) == len(self.branches)

    @property
    def refuses_some(self) -> bool:
        """Whether the document requires an error for some inputs, but not for all."""
        return bool(self.refused_branches) and not self.is_rejection

    @cached_property
    def is_open(self) -> bool:
        """Whether the document leaves every input open."""
        return len(self.open_branches) == len(self.branches)

    @cached_property
    def is_open_dtype(self) -> bool:
        """Whether the document leaves even the dtype of a call's result open."""
        return self.branches[0].outcome == Anything() and self.is_open

    @cached_property
    def error_class(self) -> str | None:
        """The class of error that the first branch names, if it requires an error; else None."""
        outcome = self.branches[0].outcome
        return outcome.error_class if isinstance(outcome, Rejected) else None

    @cached_property
    def on_the_way(self) -> tuple[Format, ...]:
        """The formats through which values go before the target, by the outcomes' behaviors."""
        names: dict[str, None] = {}
        for branch in self.branches:
            outcome = branch.outcome
            for one in outcome.options if isinstance(outcome, Either) else (outcome,):
                if isinstance(one, Behaves):
                    names |= dict.fromkeys(behavior_named(one.behavior).on_the_way)
        return tuple(map(format_named, names))

    @cached_property
    def meaning(self) -> Hashable:
        """A key of what is allowed: it leaves out rule names, clauses and ``answer_due``.

        Rulings with equal keys judge the values of answers alike.
        """
        branches = tuple(
            (branch.input_class, branch.outcome, branch.level, branch.recommended)
            for branch in self.branches
        )
        return _interned(Meaning((self.source, self.target, self.rounding, branches, self.worked)))

    @cached_property
    def _hash(self) -> int:
        return hash((self.source, self.target, self.rounding, self.branches, self.worked))

    def __hash__(self) -> int:
        return self._hash  # rulings are keys of caches, and their branches are slow to hash


def rounded_otherwise(rules: Ruling, rounding: Rounding) -> Ruling:
    """Return a ruling that rounds by ``rounding``, as a backend does that confuses two roundings.

    This rounding replaces every outcome that rounds, and every outcome with several options of
    which one rounds.
    """

    def other(outcome: Outcome) -> Outcome:
        match outcome:
            case Round():
                return Round(rounding)
            case Either(options) if any(isinstance(each, Round) for each in options):
                return Round(rounding)
        return outcome

    branches = tuple(replace(each, outcome=other(each.outcome)) for each in rules.branches)
    return replace(rules, rounding=rounding, branches=branches)
