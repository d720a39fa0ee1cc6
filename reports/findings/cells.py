"""The result of one case on one backend, as a run's tables hold it, with the inputs that fail."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from reports.grading.failure_runs import Runs
from reports.judgement import NO_ANSWER, NOT_RUN, AnswerDigest
from reports.known_failures import KnownFailure
from reports.problems import Died, Origin, Problem, Unoffered
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format


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


class Samples(NamedTuple):
    """Failing inputs with their answers, and for each the index of its run, in rising order."""

    numbers: NDArray[np.intp]
    inputs: NDArray[Any]
    answers: NDArray[Any]

    def merged(self, others: Samples) -> Samples:
        """Return these samples and others, sorted so that those of a run lie together."""
        order = np.argsort(np.concatenate([self.numbers, others.numbers]), kind="stable")
        columns = zip(self, others, strict=True)
        return Samples(*(np.concatenate(column)[order] for column in columns))

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


CellKey = tuple[str, str]
"""A backend's name, and the id of a case or the name of a check."""


class ShownRun(NamedTuple):
    """A run of consecutive failing inputs as text: bit patterns in hex, or the texts themselves.

    ``inputs`` counts them. ``slope`` and ``straight`` are those of ``failure_runs.Runs``, but
    answers stored as texts are straight only if all are equal.
    """

    first: str
    last: str
    inputs: int
    answer: str
    last_answer: str
    slope: int
    straight: bool


@dataclass(frozen=True, slots=True)
class Divergence:
    """A rule that a backend breaks in one case.

    ``wrong`` counts the failing inputs and ``runs`` their runs. ``smallest`` is the simplest of
    them, with its ``answer``. ``digest`` covers each with its answer, so that equal digests mean
    equal failures. If no wrong value of a cast breaks the rule, ``smallest`` and ``answer`` are
    None, and ``digest`` is empty. Pages draw ``segments`` and list ``shown_runs``. ``failing`` has
    the listed runs, if the case fails.
    """

    rule: str
    clause: str
    level: str
    wrong: int
    runs: int
    digest: str
    smallest: str | None
    answer: str | None
    allowed: tuple[str, ...]
    segments: tuple[int, ...]
    shown_runs: tuple[ShownRun, ...]
    failing: FailingInputs | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """Rule, clause and level; the same divergence has the same key in another run."""
        return self.rule, self.clause, self.level


@dataclass(frozen=True, slots=True)
class Cell:
    """One backend's result for one case; most fields are columns of ``cases.parquet``.

    ``check`` names a check on a dtype pair; ``case`` is then the case that the backend was asked.
    ``asked`` and ``answers`` are the digests of the stored inputs and answers. ``answer_digest``
    stands for answers that are not stored, and has no examples.
    """

    backend: str
    case: str
    document: str
    version: str
    source: str
    target: str
    mode: str
    verdict: str
    message: str
    inputs: int
    open: int
    wrong: int
    runs: int
    reaches_ends: bool
    broken: tuple[Divergence, ...]
    reproduction: str
    asked: str | None
    answers: str | None
    check: str = ""
    problems: tuple[Problem, ...] = ()
    """A failing cell has all its problems here but wrong values and notes, any other its limits."""
    answer_digest: AnswerDigest | None = None

    @property
    def name(self) -> str:
        """The name of the cell in policies and ledgers: that of its check, or the case id."""
        return self.check or self.case

    @property
    def limits(self) -> tuple[Problem, ...]:
        """The problems that say what the backend declined or how it died; empty without answers."""
        if not self.is_answered:
            return ()
        return tuple(each for each in self.problems if isinstance(each, Unoffered | Died))

    @property
    def as_case(self) -> Case:
        """The case, with its mode parsed from the last segments of its id."""
        modes, example = [], None
        for segment in filter(None, self.mode.split("/")):
            name, _, value = segment.partition(":")
            if name == "example":
                example = value
            else:
                modes.append((name, value))
        return Case(self.document, self.version, self.source, self.target, tuple(modes), example)

    def failure_by(self, broken: Divergence | None) -> KnownFailure:
        """Return the known failure by ``broken``; if that is None, by the verdict in any region."""
        if broken is None:
            return KnownFailure(self.verdict)
        return KnownFailure(broken.rule, broken.wrong, broken.digest)

    @property
    def origin(self) -> Origin | None:
        """The problem that says where wrong values come from, or None if there is no such."""
        return next((each for each in self.problems if isinstance(each, Origin)), None)

    @property
    def is_answered(self) -> bool:
        """Whether the backend gave answers that can be compared with those of others."""
        return self.verdict not in (*NOT_RUN, *NO_ANSWER)

    @property
    def is_judged(self) -> bool:
        """Whether the case was run on the backend, and the backend supports it."""
        return self.verdict not in NOT_RUN

    @property
    def failure_fingerprint(self) -> tuple[str, ...]:
        """The broken rules, or else the verdict if no answer came; equal if cells fail alike."""
        if not self.is_answered and not self.broken:
            return (self.verdict,)
        return tuple(f"{each.rule} {each.level} {each.digest}" for each in self.broken)


StoredArrays = Callable[[str], NDArray[Any]]
"""Reads the inputs or answers that a run stores under a digest."""
FailureKind = tuple[str, str, str]
"""A way to fail: the pair of dtypes, and the digest of the failing inputs with their answers."""
SAMPLES_KEPT = 32
"""The most samples that are cached: a search returns to the same few cases again and again."""


class StoredSamples:
    """Reads samples of failing inputs when they are needed, and caches the last ones.

    Where every answer of every case is wrong, all of them together take gigabytes.
    """

    def __init__(self, stored: StoredArrays) -> None:
        self._stored = stored
        self._kept: dict[Hashable, Samples] = {}

    def of(self, cell: Cell, broken: Divergence, failing: FailingInputs) -> Samples:
        """Return the samples of a broken rule; cases with equal inputs and answers share them."""
        key = (cell.source, cell.target, cell.asked, cell.answers, broken.digest, broken.level)
        found = self._kept.pop(key, None)
        if found is None:
            found = failing.samples(*map(self._values, (cell.asked, cell.answers)))
        self._kept[key] = found
        if len(self._kept) > SAMPLES_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _values(self, digest: str | None) -> NDArray[Any] | None:
        return self._stored(digest) if digest is not None else None


@dataclass
class WrongAnswers:
    """The wrong answers under one broken rule."""

    cell: Cell
    broken: Divergence
    failing: FailingInputs
    stored: StoredSamples

    @cached_property
    def case(self) -> Case:
        """The case of the cell."""
        return self.cell.as_case

    @cached_property
    def left(self) -> Mask:
        """Marks the runs that nothing explains yet: at first all, made when they are asked for."""
        return np.ones(self.failing.count.size, bool)

    @property
    def samples(self) -> Samples:
        """Failing inputs with their answers, as far as a run stores them."""
        return self.stored.of(self.cell, self.broken, self.failing)

    @property
    def kind(self) -> FailureKind:
        """A key that cases of one pair with the same failing inputs and answers share."""
        return self.cell.source, self.cell.target, self.broken.digest

    def share(self, runs: Mask) -> float:
        """Return the share of the wrong answers in listed runs that lie in the marked runs."""
        return float(self.failing.count[runs].sum()) / float(self.failing.count.sum())


def is_exhaustive(source: Format) -> bool:
    """Whether every tier asks all inputs of a source: numbers of at most 16 bits."""
    return source.is_numeric and source.bits <= EXHAUSTIVE_BITS
