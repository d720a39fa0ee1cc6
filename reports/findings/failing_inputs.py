"""The inputs asked in a case, and those that fail by a broken rule, with the answers to them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from oracles.reference import expect_by_exact
from oracles.reference.expect_by_kernels import KernelExpectations
from oracles.reference.expectations import Expected
from reports.behaviors.regions import Classes, classify
from reports.grading.failure_runs import Runs
from specs.branches import Ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format
from specs.ruling import ruling

COLUMNS = ("numbers", "inputs", "answers")


@dataclass(frozen=True)
class FailingInputs:
    """The listed runs of inputs that fail by one broken rule, and the number of inputs in each.

    Texts, and patterns of more than 64 bits, are runs of one input each. ``total`` counts all
    failing inputs, also those of runs that are not listed.
    """

    total: int
    runs: Runs
    count: NDArray[np.uint64]

    @property
    def is_complete(self) -> bool:
        """Whether every failing input lies in a listed run."""
        return int(self.count.sum()) == self.total

    @property
    def are_words(self) -> bool:
        """Whether the inputs are patterns of at most 64 bits, which have an order."""
        return self.runs.first.dtype != object

    def at(self, some: Mask) -> FailingInputs:
        """Return the marked runs as if they were all runs; if all are marked, ``total`` stays."""
        count = self.count[some]
        total = self.total if some.all() else int(count.sum())
        return FailingInputs(total, self.runs.at(some), count)

    def holds(self, inputs: NDArray[Any]) -> Mask:
        """Mark the inputs that lie in one of the runs."""
        if not self.are_words:
            texts = set(self.runs.first.tolist())
            return np.array([each in texts for each in inputs.tolist()], bool)
        nearest = self._nearest(inputs)
        inside: Mask = (nearest >= 0) & (inputs <= self.runs.last[nearest])
        return inside

    def samples(self, asked: NDArray[Any] | None, answers: NDArray[Any] | None) -> Samples:
        """Return the failing inputs among those asked, with their answers.

        Of a run without any asked input, return its two ends: a sweep stores no other answers.
        Without stored arrays, and for texts and wide patterns, return the ends of all runs.
        """
        runs = self.runs
        if asked is None or answers is None or not self.are_words:
            return self._ends(np.arange(runs.first.size))
        inputs = asked.astype(np.uint64)
        inside = self.holds(inputs)
        stored = Samples(self._nearest(inputs[inside]), inputs[inside], answers[inside])
        ends = self._ends(np.setdiff1d(np.arange(runs.first.size), stored.numbers))
        return stored.merged(ends) if ends.numbers.size else stored

    def _ends(self, numbers: NDArray[np.intp]) -> Samples:
        """Return the first input of each of the runs ``numbers``, and the last if it is another."""
        runs, several = self.runs, numbers[self.count[numbers] > 1]
        first = Samples(numbers, runs.first[numbers], runs.answer[numbers])
        return first.merged(Samples(several, runs.last[several], runs.last_answer[several]))

    def _nearest(self, inputs: NDArray[Any]) -> NDArray[np.intp]:
        """Return the index of the last run that begins at or before each input; -1 if none does."""
        nearest: NDArray[np.intp] = np.searchsorted(self.runs.first, inputs, "right") - 1
        return nearest


@dataclass(frozen=True)
class Samples:
    """Failing inputs with their answers, and for each the index of its run, in rising order."""

    numbers: NDArray[np.intp]
    inputs: NDArray[Any]
    answers: NDArray[Any]

    def merged(self, others: Samples) -> Samples:
        """Return these samples and others, sorted so that those of a run lie together."""
        order = np.argsort(np.concatenate([self.numbers, others.numbers]), kind="stable")
        columns = ((getattr(each, name) for each in (self, others)) for name in COLUMNS)
        return Samples(*(np.concatenate(list(column))[order] for column in columns))

    def of_runs(self, some: Mask) -> Samples:
        """Return the samples of the marked runs; they keep the numbers of their runs."""
        here = some[self.numbers]
        return Samples(self.numbers[here], self.inputs[here], self.answers[here])

    def stored_as(self, source: Format, target: Format) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return inputs and answers as arrays of the formats' storage; objects stay as they are."""
        return _stored(self.inputs, source), _stored(self.answers, target)

    def whole_runs(self, holds: Mask) -> Mask:
        """Return, for each run that has samples, whether ``holds`` is true of all of them."""
        starts = np.flatnonzero(np.append(True, self.numbers[1:] != self.numbers[:-1]))
        whole: Mask = np.logical_and.reduceat(holds, starts)
        return whole


def _stored(column: NDArray[Any], form: Format) -> NDArray[Any]:
    return column if column.dtype == object else column.astype(form.storage)


class KnownColumns:
    """Has one array for equal columns of failing inputs, as long as one of them is in use.

    Where every answer is wrong, cases of one source often fail on the same inputs, many of which
    are runs of their own, so that a third of the memory is saved. None may be written to.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, NDArray[Any]] = WeakValueDictionary()

    def same_as(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return the array that is equal to a column of numbers; it may be the column itself."""
        if column.dtype == object:
            return column
        key = column.dtype, blake2b(column.tobytes(), digest_size=16).digest()
        return self._known.setdefault(key, column)


def failing_inputs(rows: Any, total: int, runs: int, known: KnownColumns) -> FailingInputs:
    """Read the failing inputs of a broken rule from an Arrow table of its divergence rows.

    ``rows`` has the columns of ``divergences.parquet`` from ``first`` on. ``total`` counts the
    failing inputs, and ``runs`` their runs, also those without a row. Columns that are ``known``
    already are not stored again.
    """

    def column(name: str) -> NDArray[Any]:
        # A copy, as a view would keep the table's other columns and other rows in memory.
        return known.same_as(np.array(rows[name].to_numpy()))

    def datum(name: str, text: str) -> NDArray[Any]:
        return column(name if rows[text].null_count == rows.num_rows else text)

    first = datum("first", "text")
    listed = Runs(
        runs,
        first,
        column("last") if rows["text"].null_count else first,
        datum("answer", "answer_text"),
        datum("last_answer", "last_answer_text"),
        column("slope"),
        column("straight"),
    )
    return FailingInputs(total, listed, column("count"))


KEPT = 64
"""The most arrays of expectations that are cached: many mechanisms are tried on the same inputs."""
DECODED = 2
FEW = 1024
"""The most failing inputs, and the most others, of a sample on which mechanisms are tried."""


@dataclass(frozen=True, eq=False)
class AskedInputs:
    """The inputs of a case that were asked, their answers, and which of them fail."""

    rules: Ruling
    inputs: NDArray[Any]
    answers: NDArray[Any]
    fails: Mask

    @cached_property
    def few(self) -> AskedInputs:
        """A sample of at most ``FEW`` failing inputs and ``FEW`` others."""
        chosen = [
            places[:: max(1, -(-places.size // FEW))]
            for places in (np.flatnonzero(self.fails), np.flatnonzero(~self.fails))
        ]
        some = np.sort(np.concatenate(chosen))
        return AskedInputs(self.rules, self.inputs[some], self.answers[some], self.fails[some])

    @cached_property
    def classes(self) -> Classes:
        """The class of each input, as ``regions.classify`` defines it."""
        return classify(self.rules.source, self.rules.target, self.inputs)

    @cached_property
    def expected(self) -> Expected:
        """The answers that the case's rules allow to each input."""
        return expected_of(self.rules, self.inputs)


@lru_cache(1 << 14)
def known_ruling(case: Case) -> Ruling | None:
    """Return the ruling of a case; None if it has none, or its document no longer has the case."""
    try:
        return ruling(case)
    except (CastigateError, KeyError):
        return None


def answered_ruling(case: Case) -> Ruling | None:
    """Return the ruling of a case; None if there is none, or it rejects or opens the whole case."""
    rules = known_ruling(case)
    return None if rules is None or rules.is_rejection or rules.is_open else rules


def expected_of(rules: Ruling, inputs: NDArray[Any]) -> Expected:
    """Compute what a ruling allows for each input: by the kernels if they can, else by exact."""
    is_numeric = rules.source.is_numeric and rules.target.is_numeric and not rules.worked
    if not is_numeric:
        return expect_by_exact.expect(rules, inputs)
    return _expected_by_kernels(rules, inputs.tobytes())


@lru_cache(KEPT)
def _expected_by_kernels(rules: Ruling, inputs: bytes) -> Expected:
    patterns, kernels = _decoded(rules.source, inputs)
    return kernels.expect(rules, patterns)


@lru_cache(DECODED)
def _decoded(source: Format, inputs: bytes) -> tuple[NDArray[Any], KernelExpectations]:
    """Return the patterns in ``inputs``, and an object that decodes them once for all rulings."""
    return np.frombuffer(inputs, source.storage), KernelExpectations()
