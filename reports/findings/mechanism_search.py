"""Tries mechanisms, the rows of ``cast_wrongs``, on wrong answers, and measures their worth.

A mechanism must explain failures better than chance does. By chance, any of the inputs asked may
fail, and each that fails may get any wrong answer. A mechanism predicts both: the less likely its
predictions are by chance, the more bits it is worth. Describing it costs bits: which mechanism, in
which cases, on which inputs. A cause must be worth more than it costs, so that random answers have
none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, partial
from hashlib import blake2b
from math import lgamma, log, log2
from typing import Literal, NamedTuple

import numpy as np

from oracles.protocol import Mask
from reports.behaviors.regions import classify, region_phrase
from reports.findings.cast_wrongs import wrongs_of, wrongs_tried_last
from reports.findings.cells import Samples, StoredArrays, WrongAnswers, is_exhaustive
from reports.findings.intervals import count_regions
from reports.findings.wrong import (
    AskedInputs,
    GivenAnswers,
    Wrong,
    answered_ruling,
    known_ruling,
    predicted_failures,
)
from specs.branches import Ruling
from specs.formats import Format, format_named

FIRST_TRIED = 1024
"""The most runs on which a mechanism is tried first; if it explains one, it is tried on all."""
NEARLY_ALL = 0.9
"""The least share of the answers that a mechanism must predict where it predicts failures.

It is less than 1, because another fault may change a few of the answers.
"""
BITS_OF_PHRASE = 4.0
"""The cost in bits of naming a region by one of some twenty phrases."""
MOST_REGIONS = 4
"""The most single values, phrases and intervals that may describe the inputs of a forecast."""


class Reach(IntEnum):
    """How far a mechanism is right about which inputs fail: on which of those that it predicts.

    ``EVERYWHERE`` means on all inputs for which it predicts a failure.
    """

    EVERYWHERE = 0
    REGION = 1
    """On all inputs of a region that has a name."""
    INTERVALS = 2
    """On the inputs of a few intervals, which are chosen because they fail."""


@dataclass(frozen=True)
class Forecast:
    """On which inputs a mechanism predicts failures rightly, and how many bits that saves.

    ``region`` is the name of a region. ``elsewhere`` has the classes of inputs outside it, for
    which the mechanism predicts failures and is wrong.
    """

    reach: Reach
    bits: float
    region: str = ""
    elsewhere: frozenset[Hashable] = frozenset()
    isolated: int = 0
    """How many single values between right answers fail; 0 if every pattern was asked."""


Extent = Literal["few", "all"]
"""Whether a sample of the inputs asked is examined, or all of them."""


class Placed(NamedTuple):
    """The runs of failing inputs that a mechanism explains and also predicts, and its forecast."""

    runs: Mask
    forecast: Forecast


@dataclass(frozen=True, eq=False)
class ExplainedRuns:
    """The runs of failing inputs that a mechanism explains in one case, as the mask ``explained``.

    ``place`` computes, from a sample or all inputs, which of these runs the mechanism also
    predicts; None if it predicts none. It takes long, so it is called only for likely choices.
    """

    explained: Mask
    place: Callable[[Extent], Placed | None]

    @cached_property
    def likely(self) -> Placed | None:
        """What a sample shows of ``placed``, perhaps with more runs; None only if that is None."""
        return self.place("few")

    @cached_property
    def placed(self) -> Placed | None:
        """The runs that the mechanism explains and predicts; None if it predicts none."""
        return self.place("all") if self.likely is not None else None


class _Trial:
    """A selection of the runs of failing inputs, on which mechanisms are tried."""

    def __init__(self, wrong: WrongAnswers, runs: Mask) -> None:
        self._wrong = wrong
        self.runs = runs

    @cached_property
    def _samples(self) -> tuple[Samples, GivenAnswers]:
        samples, case = self._wrong.samples.of_runs(self.runs), self._wrong.case
        stored = samples.stored_as(format_named(case.source), format_named(case.target))
        return samples, GivenAnswers(case, *stored)

    def explained_by(self, mechanism: Wrong) -> Mask:
        """Mark the selected runs in which a mechanism explains every sampled answer."""
        samples, given = self._samples
        holds = mechanism.explains(given, self._wrong.broken.level)
        found = np.zeros_like(self.runs)
        found[self.runs] = samples.whole_runs(holds)
        return found


class _Trials:
    """The runs of failing inputs that are left to explain, and a few of them to try first.

    ``key`` stands for the runs left in the keys of caches.
    """

    def __init__(self, wrong: WrongAnswers) -> None:
        self._wrong = wrong
        self.key = (wrong.broken.digest, wrong.broken.level, _digest(wrong.left))

    @cached_property
    def left(self) -> _Trial:
        """A trial of all runs that are left to explain."""
        return _Trial(self._wrong, self._wrong.left.copy())

    @cached_property
    def few(self) -> _Trial:
        """A trial of at most ``FIRST_TRIED`` of the runs left, in a fixed random choice."""
        chosen = np.random.default_rng(0).permutation(np.flatnonzero(self._wrong.left))
        some = np.zeros_like(self._wrong.left)
        some[chosen[:FIRST_TRIED]] = True
        return _Trial(self._wrong, some)


class MechanismSearch:
    """Evaluates mechanisms on wrong answers; cases with equal rules and answers share results."""

    def __init__(self, stored: StoredArrays) -> None:
        self._stored = stored
        self._runs: dict[object, Mask | None] = {}
        """The runs that each mechanism explains; None, the usual value, if it explains none."""
        self._forecasts: dict[object, Forecast | None] = {}
        self._few: dict[object, AskedInputs] = {}
        self._last_asked: tuple[object, AskedInputs] | None = None

    def forget(self) -> None:
        """Drop the cached results, hundreds of megabytes, but not the inputs asked last."""
        self._runs.clear()
        self._forecasts.clear()
        self._few.clear()

    def claims(
        self,
        wrong: WrongAnswers,
        *,
        costly: bool = False,
        among: Collection[Wrong] | None = None,
    ) -> Iterator[tuple[Wrong, ExplainedRuns]]:
        """Yield each mechanism that explains some of the runs left, and which of them it explains.

        With ``costly``, only the rows of ``TRIED_LAST`` are tried, otherwise only the others. With
        ``among``, rows that are not in it are skipped.
        """
        source, target = format_named(wrong.case.source), format_named(wrong.case.target)
        trials = _Trials(wrong)
        for mechanism in (wrongs_tried_last if costly else wrongs_of)(wrong.case):
            if among is not None and mechanism not in among:
                continue
            other = mechanism.follows(wrong.case) if mechanism.follows else None
            rules = answered_ruling(other) if other is not None else None
            if other is not None and rules is None:
                continue
            meaning = rules.meaning if rules is not None else (source, target, wrong.broken.rule)
            runs = self._explained_runs(mechanism, trials, meaning)
            if runs is not None:
                yield (
                    mechanism,
                    ExplainedRuns(runs, partial(self._placed, mechanism, wrong, meaning, runs)),
                )

    def _placed(
        self, mechanism: Wrong, wrong: WrongAnswers, meaning: object, runs: Mask, extent: Extent
    ) -> Placed | None:
        found = self._forecast(mechanism, wrong, meaning, "few")
        if found is not None and extent == "few":
            return Placed(runs, found)
        if found is not None:
            found = self._forecast(mechanism, wrong, meaning, "all")
        if found is None and mechanism.tells != "where":
            found = self._forecast_intervals(wrong, runs)
            # Of two roundings of a value each is given by many behaviors, so that single values
            # tell nothing of why. A constant says only what comes out.
            if found is not None and found.isolated and mechanism.tells != "constant":
                found = None
        elif found is not None and found.reach == Reach.REGION:
            runs = runs & ~_runs_with(wrong, found.elsewhere)
        if found is None or not runs.any():
            return None
        is_evident = found.reach == Reach.EVERYWHERE or found.bits > 0
        return Placed(runs, found) if is_evident else None

    def _explained_runs(self, mechanism: Wrong, trials: _Trials, meaning: object) -> Mask | None:
        """Mark the runs left that a mechanism explains; return None if there are none.

        All runs are tried only if it explains some of a sample.
        """
        key = (mechanism, meaning, *trials.key)
        if key not in self._runs:
            found = trials.few.explained_by(mechanism)
            if found.any() and not np.array_equal(trials.few.runs, trials.left.runs):
                found = trials.left.explained_by(mechanism)
            self._runs[key] = found if found.any() else None
        return self._runs[key]

    def _forecast(
        self, mechanism: Wrong, wrong: WrongAnswers, meaning: object, extent: Extent
    ) -> Forecast | None:
        """Return the cached forecast of a mechanism; None if no failure is rightly predicted.

        It is also None if no ruling requires answers, or if the run does not store inputs and
        answers.
        """
        rules, level, cell = answered_ruling(wrong.case), wrong.broken.level, wrong.cell
        if rules is None or cell.asked is None or cell.answers is None:
            return None
        key = (mechanism, meaning, rules.meaning, cell.asked, _digests(wrong), level, extent)
        if key not in self._forecasts:
            asked = self._asked(wrong, rules, extent)
            self._forecasts[key] = forecast(mechanism, wrong, asked)
        return self._forecasts[key]

    def _forecast_intervals(self, wrong: WrongAnswers, runs: Mask) -> Forecast | None:
        """Return the forecast that exactly these runs fail; None if it takes too many regions.

        More than ``MOST_REGIONS`` are too many. It is also None without a ruling, or without stored
        inputs and answers.
        """
        rules = known_ruling(wrong.case)
        if rules is None or wrong.cell.asked is None or wrong.cell.answers is None:
            return None
        key = (
            rules.meaning, wrong.cell.asked, _digests(wrong), wrong.broken.digest, _digest(runs)
        )  # fmt: skip
        if key not in self._forecasts:
            source, target = format_named(wrong.case.source), format_named(wrong.case.target)
            asked, failing = self._asked(wrong, rules, "all"), wrong.failing.at(runs)
            regions = count_regions(source, failing, asked.inputs)
            self._forecasts[key] = None
            if sum(regions) <= MOST_REGIONS:
                here = int(failing.holds(asked.inputs).sum())
                size, fails = asked.inputs.size, int(asked.fails.sum())
                bits = worth(target, size, fails, here, here)
                bits -= (sum(regions) + regions.intervals) * log2(size)
                isolated = 0 if is_exhaustive(source) else regions.single
                self._forecasts[key] = Forecast(Reach.INTERVALS, bits, isolated=isolated)
        return self._forecasts[key]

    def _asked(self, wrong: WrongAnswers, rules: Ruling, extent: Extent) -> AskedInputs:
        """Return the inputs of a case that were asked, with their answers: all, or a sample.

        A sample of each case is cached, with what is computed from it. All inputs are cached only
        for the last case, because they are many.
        """
        cell = wrong.cell
        assert cell.asked is not None
        assert cell.answers is not None
        key = (rules.meaning, cell.asked, cell.answers, _digests(wrong))
        if extent == "few" and key in self._few:
            return self._few[key]
        if self._last_asked is None or self._last_asked[0] != key:
            inputs = self._stored(cell.asked)
            fails = np.zeros(inputs.shape, bool)
            for broken in cell.broken:
                if broken.failing is not None:
                    fails |= broken.failing.holds(inputs)
            self._last_asked = key, AskedInputs(rules, inputs, self._stored(cell.answers), fails)
        asked = self._last_asked[1]
        return self._few.setdefault(key, asked.few) if extent == "few" else asked


def forecast(mechanism: Wrong, wrong: WrongAnswers, asked: AskedInputs) -> Forecast | None:
    """Return where a mechanism is right about which of the inputs asked fail; None if nowhere.

    It is right in a region if all inputs fail that it predicts there, and if it gives nearly all of
    their answers. An input that fails with another answer has another fault as well. Return None
    too if no phrases name the region.
    """
    case, level, target = wrong.case, wrong.broken.level, asked.rules.target
    predicted = predicted_failures(mechanism, case, asked)
    if predicted is None or not predicted.any():
        return None
    inputs, answers = asked.inputs[predicted], asked.answers[predicted]
    hits = mechanism.explains(GivenAnswers(case, inputs, answers), level)
    # Not every run of failing inputs is listed.
    fails = asked.fails[predicted] | hits
    size, failing = asked.inputs.size, int(asked.fails.sum() + fails.sum())
    failing -= int(asked.fails[predicted].sum())
    if fails.all() and hits.mean() >= NEARLY_ALL:
        return Forecast(Reach.EVERYWHERE, worth(target, size, failing, hits.size, int(hits.sum())))
    numbers, by_number = asked.classes.numbers[predicted], asked.classes.by_number
    among = np.unique(numbers)
    count, failed, hit = (
        np.bincount(numbers, weights, minlength=among[-1] + 1)[among]
        for weights in (None, fails, hits)
    )
    good = among[(failed == count) & (hit >= NEARLY_ALL * count)]
    some = frozenset(by_number[number] for number in good.tolist())
    every = [by_number[number] for number in among.tolist()]
    region = region_phrase(asked.rules.source, some, every) if some else None
    if not region:
        return None
    here = np.isin(numbers, good)
    bits = worth(target, size, failing, int(here.sum()), int(hits[here].sum()))
    bits -= BITS_OF_PHRASE * (1 + region.count(" and "))
    return Forecast(Reach.REGION, bits, region, frozenset(every) - some)


def _digest(runs: Mask) -> bytes:
    """Return a digest to replace a mask of runs in a key: many masks would take gigabytes."""
    return blake2b(np.packbits(runs).tobytes(), digest_size=16).digest()


def _digests(wrong: WrongAnswers) -> tuple[str, ...]:
    return tuple(each.digest for each in wrong.cell.broken)


def _runs_with(wrong: WrongAnswers, some: Collection[Hashable]) -> Mask:
    """Mark the runs of failing inputs that have a sample in one of the classes ``some``."""
    source, target = format_named(wrong.case.source), format_named(wrong.case.target)
    inputs, _ = wrong.samples.stored_as(source, target)
    classes = classify(source, target, inputs)
    these = [number for number, each in classes.by_number.items() if each in some]
    return ~wrong.samples.whole_runs(~np.isin(classes.numbers, these))


MOST_BITS_OF_ANSWER = 8.0
"""The most bits for one predicted answer: some wrong answers, zero or a NaN, are frequent."""


def bits_of_choice(some: float, among: float) -> float:
    """Return the bits that it takes to name ``some`` of ``among`` things; 0 for none or all."""
    if not 0 < some < among:
        return 0.0
    return (lgamma(among + 1) - lgamma(some + 1) - lgamma(among - some + 1)) / log(2)


def bits_of_answer(target: Format) -> float:
    """Return the bits that one rightly predicted wrong answer is worth.

    These are about as many as the target has, at most ``MOST_BITS_OF_ANSWER``. A target without
    numbers gives this maximum.
    """
    if not target.is_numeric:
        return MOST_BITS_OF_ANSWER
    return min(MOST_BITS_OF_ANSWER, log2((1 << target.bits) - 1))


def worth(target: Format, asked: int, failing: int, predicted: int, hits: int) -> float:
    """Return how many bits a mechanism saves in describing which inputs of a case fail, and how.

    Of the inputs ``asked``, ``failing`` fail. The mechanism rightly predicts that ``predicted`` of
    these fail, and gives the answer to ``hits`` of them.
    """
    where = bits_of_choice(failing, asked)
    where -= bits_of_choice(failing - predicted, asked - predicted)
    return where + hits * bits_of_answer(target) - bits_of_choice(hits, predicted)
