"""Wrong answers, and the few mechanisms that explain them: in each case, which runs of inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.findings.cells import Cell, Divergence
from reports.findings.failing_inputs import FailingInputs, Mask, Samples
from reports.findings.mechanism_answers import answered_ruling, explained, predicted_failures
from reports.findings.mechanisms import (
    FOLLOWS_OTHER_RULES,
    ClosedForm,
    Mechanism,
    candidates,
    other_case,
)
from specs.cases import Case
from specs.formats import format_named

FIRST_TRIED = 1024
"""Runs on which a mechanism is tried first; only if it explains some of them, on all."""
MOST_PREDICTED = 4096
"""Inputs for which it is computed whether a mechanism would fail, if it fails on some of them."""
NEARLY_ALL = 0.9
"""The share of inputs that must fail for a mechanism to be consistent; other faults hide some."""
StoredArrays = Callable[[str], NDArray[Any]]
"""Reads the inputs or answers that a run stores under a digest."""


@dataclass
class WrongAnswers:
    """The wrong answers under one broken rule, and the mechanisms that may explain them.

    ``options`` has the runs of inputs that each mechanism explains. It is ``consistent`` if nearly
    all inputs fail on which it would give a wrong answer, so that it also explains where.
    ``others`` has the runs of mechanisms that are options only if they are a cause elsewhere.
    ``explained`` is what was chosen; ``left`` are the runs that nothing explains so far.
    """

    cell: Cell
    case: Case
    broken: Divergence
    failing: FailingInputs
    samples: Samples
    left: Mask
    options: dict[Mechanism, Mask] = field(default_factory=dict)
    others: dict[Mechanism, Mask] = field(default_factory=dict)
    consistent: set[Mechanism] = field(default_factory=set)
    explained: dict[Mechanism, Mask] = field(default_factory=dict)

    @classmethod
    def of(
        cls, cell: Cell, broken: Divergence, failing: FailingInputs, stored: StoredArrays
    ) -> WrongAnswers:
        """The wrong answers of a broken rule, none of them explained."""
        asked, answers = (
            stored(digest) if digest is not None else None for digest in (cell.asked, cell.answers)
        )
        every = np.ones(failing.count.size, bool)
        return cls(cell, cell.as_case, broken, failing, failing.samples(asked, answers), every)

    def share(self, runs: Mask) -> float:
        """The share of the wrong answers that lie in some runs."""
        return float(self.failing.count[runs].sum()) / float(self.failing.count.sum())

    def add_causes(self, chosen: Collection[Mechanism]) -> None:
        """Promote to ``options`` those of ``others`` that were chosen as a cause elsewhere."""
        self.options |= {cause: self.others[cause] for cause in chosen if cause in self.others}

    def take(self, mechanism: Mechanism) -> None:
        """Give a mechanism all runs that it explains and that are still unexplained."""
        runs = self.left & self.options.get(mechanism, False)
        if runs.any():
            self.left &= ~runs
            self.explained[mechanism] = runs


def explain_wrong_answers(wrong: Sequence[WrongAnswers], search: MechanismSearch) -> None:
    """Choose the mechanisms that explain most: first those that also tell where it goes wrong.

    Such a mechanism is a cause, and explains whatever it can in other cases too.
    """
    for each in wrong:
        search.fill_options(each)
    chosen: list[Mechanism] = []
    _choose(wrong, chosen, True)
    for each in wrong:
        each.add_causes(chosen)
    _choose(wrong, chosen, False)
    for each in wrong:
        # Of many runs only some were tried: what is left may have further explanations.
        if each.left.any():
            search.fill_options(each)
            each.add_causes(chosen)
    _choose(wrong, chosen, False)


def _choose(wrong: Sequence[WrongAnswers], chosen: list[Mechanism], is_consistent: bool) -> None:
    """Explain by one mechanism after the other, until none explains more."""
    while best := _best(wrong, is_consistent, chosen):
        chosen.append(best)
        for each in wrong:
            each.take(best)


def _best(
    wrong: Sequence[WrongAnswers], is_consistent: bool, chosen: Collection[Mechanism]
) -> Mechanism | None:
    """The mechanism that explains the largest share of what is left.

    Of equals it is one that explains something else already, or else the simplest. A closed form
    that is consistent with less than half of the answers that it explains is so by chance: a source
    may not reach the values at which another one shows the difference.
    """
    gains: dict[Mechanism, float] = defaultdict(float)
    inconsistent: dict[Mechanism, float] = defaultdict(float)
    ranks: dict[Mechanism, int] = defaultdict(int)
    for each in wrong:
        if not each.left.any():
            continue
        for rank, (mechanism, runs) in enumerate(each.options.items()):
            share = each.share(runs & each.left)
            if is_consistent and mechanism not in each.consistent:
                if isinstance(mechanism, ClosedForm):
                    inconsistent[mechanism] += share
                continue
            ranks[mechanism] = max(rank, ranks[mechanism])
            gains[mechanism] += share

    def merit(mechanism: Mechanism) -> tuple[float, bool, int]:
        return round(gains[mechanism], 6), mechanism in chosen, -ranks[mechanism]

    possible = (each for each, gain in gains.items() if gain and gain >= inconsistent[each])
    return max(possible, key=merit, default=None)


class MechanismSearch:
    """Evaluates mechanisms on wrong answers; cases with equal rules and answers share results."""

    def __init__(self, stored: StoredArrays) -> None:
        self._stored = stored
        self._runs: dict[object, Mask] = {}
        self._is_consistent: dict[object, bool] = {}

    def fill_options(self, wrong: WrongAnswers) -> None:
        """Fill in which of the runs left each mechanism explains, and whether it tells where."""
        source, target = format_named(wrong.case.source), format_named(wrong.case.target)
        wrong.options.clear()
        wrong.others.clear()
        for mechanism in candidates(wrong.case):
            other = other_case(mechanism, wrong.case)
            rules = answered_ruling(other) if other is not None else None
            if other is not None and rules is None:
                continue
            meaning = rules.meaning if rules is not None else (source, target, wrong.broken.rule)
            runs = self._explained_runs(mechanism, wrong, meaning)
            if not runs.any():
                continue
            if self._tells_where(mechanism, wrong, meaning):
                wrong.consistent.add(mechanism)
                wrong.options[mechanism] = runs
            elif isinstance(mechanism, FOLLOWS_OTHER_RULES):
                wrong.others[mechanism] = runs
            else:
                wrong.options[mechanism] = runs

    def _explained_runs(self, mechanism: Mechanism, wrong: WrongAnswers, meaning: object) -> Mask:
        """Which of the runs left a mechanism explains; of many runs, some are tried first."""
        broken, left = wrong.broken, wrong.left
        key = (mechanism, meaning, broken.digest, broken.level, left.tobytes())
        if key not in self._runs:
            few = np.zeros_like(left)
            few[np.random.default_rng(0).permutation(np.flatnonzero(left))[:FIRST_TRIED]] = True
            found = _explained_among(mechanism, wrong, few)
            if found.any() and not np.array_equal(few, left):
                found = _explained_among(mechanism, wrong, left)
            self._runs[key] = found
        return self._runs[key]

    def _tells_where(self, mechanism: Mechanism, wrong: WrongAnswers, meaning: object) -> bool:
        """Whether nearly all inputs fail on which the mechanism would give a wrong answer."""
        rules, cell = answered_ruling(wrong.case), wrong.cell
        if cell.asked is None or rules is None:
            return False
        digests = tuple(each.digest for each in cell.broken)
        key = (mechanism, meaning, rules.meaning, cell.asked, digests)
        if key not in self._is_consistent:
            inputs = self._stored(cell.asked)
            some = inputs[:: -(-inputs.size // MOST_PREDICTED)]
            shares = (_failing_share(mechanism, wrong, part) for part in (some, inputs))
            self._is_consistent[key] = next(filter(None, shares), 0.0) >= NEARLY_ALL
        return self._is_consistent[key]


def _explained_among(mechanism: Mechanism, wrong: WrongAnswers, some: Mask) -> Mask:
    """Which of some runs a mechanism explains: those of which it gives every known answer."""
    samples = wrong.samples.of_runs(some)
    source, target = format_named(wrong.case.source), format_named(wrong.case.target)
    inputs, answers = samples.stored_as(source, target)
    holds = explained(mechanism, wrong.case, inputs, answers, wrong.broken.level)
    found = np.zeros_like(some)
    found[some] = samples.whole_runs(holds)
    return found


def _failing_share(mechanism: Mechanism, wrong: WrongAnswers, inputs: NDArray[Any]) -> float | None:
    """The share of failures among the inputs on which a mechanism is wrong; None without any."""
    predicted = predicted_failures(mechanism, wrong.case, inputs)
    if predicted is None or not predicted.any():
        return None
    wanted = inputs[predicted].astype(np.uint64)
    fails = np.zeros(wanted.shape, bool)
    for broken in wrong.cell.broken:
        if broken.failing is not None and broken.failing.are_words:
            fails |= broken.failing.holds(wanted)
    return float(fails.mean())
