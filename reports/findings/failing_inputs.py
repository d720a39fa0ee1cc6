"""The failing inputs of a broken rule: runs of patterns, and samples of them with their answers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format

PER_RUN = 64
"""Samples of a long run: both ends, and some between."""


@dataclass(frozen=True)
class FailingInputs:
    """The listed runs of failing inputs of one broken rule, as columns in input order.

    Texts, and patterns of more than 64 bits, are runs of one input each. ``total`` counts all
    failing inputs, also those of runs that are not listed.
    """

    total: int
    first: NDArray[Any]
    last: NDArray[Any]
    count: NDArray[np.uint64]
    answer: NDArray[Any]
    last_answer: NDArray[Any]
    slope: NDArray[np.int64]
    straight: NDArray[np.bool_]

    @property
    def is_complete(self) -> bool:
        """Whether every failing input lies in a listed run."""
        return int(self.count.sum()) == self.total

    def at(self, runs: NDArray[Any]) -> FailingInputs:
        """The runs of a mask or of indices, as if they were all."""
        columns = [getattr(self, each.name)[runs] for each in fields(self)[1:]]
        is_all = columns[0].size == self.count.size
        return FailingInputs(self.total if is_all else int(columns[2].sum()), *columns)

    @cached_property
    def samples(self) -> Samples:
        """Inputs of each run whose answers are known: of short runs all, of long ones some."""
        # Texts in a run are known only where all are the same.
        is_known = self.straight & ((self.answer.dtype != object) | (self.slope == 0))
        most = np.where(is_known, np.uint64(PER_RUN), np.uint64(2))
        sizes = np.minimum(most, self.count).astype(np.int64)
        runs = np.repeat(np.arange(sizes.size), sizes)
        nth = np.arange(runs.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        if self.first.dtype == object:
            return Samples(runs, self.first, self.answer)
        longest = self.count[runs] - np.uint64(1)
        gaps = np.maximum(sizes[runs] - 1, 1).astype(np.uint64)
        is_last = nth == sizes[runs] - 1
        offsets = np.where(is_last, longest, nth.astype(np.uint64) * (longest // gaps))
        inputs = self.first[runs] + offsets
        if self.answer.dtype == object:
            return Samples(
                runs, inputs, np.where(nth == 0, self.answer[runs], self.last_answer[runs])
            )
        rising = self.answer[runs] + self.slope[runs].view(np.uint64) * offsets
        return Samples(runs, inputs, np.where(is_last, self.last_answer[runs], rising))


@dataclass(frozen=True)
class Samples:
    """Failing inputs with their answers, and the run of each, in rising order."""

    runs: NDArray[np.intp]
    inputs: NDArray[Any]
    answers: NDArray[Any]

    def of(self, source: Format, target: Format) -> tuple[NDArray[Any], NDArray[Any]]:
        """Inputs and answers in the storage of their formats."""
        return _stored(self.inputs, source), _stored(self.answers, target)

    def whole_runs(self, holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each run, whether something holds for all of its samples."""
        starts = np.flatnonzero(np.append(True, self.runs[1:] != self.runs[:-1]))
        whole: NDArray[np.bool_] = np.logical_and.reduceat(holds, starts)
        return whole


def _stored(column: NDArray[Any], form: Format) -> NDArray[Any]:
    return column if column.dtype == object else column.astype(form.storage)


def failing_inputs(rows: Any, total: int) -> FailingInputs:
    """The failing inputs in rows of ``divergences.parquet`` that belong to one broken rule."""

    def column(name: str, text: str) -> NDArray[Any]:
        chosen = name if rows[text].null_count == rows.num_rows else text
        values: NDArray[Any] = rows[chosen].to_numpy()
        return values

    is_text = not rows["text"].null_count
    first = column("first", "text")
    return FailingInputs(
        total,
        first,
        first if is_text else rows["last"].to_numpy(),
        rows["count"].to_numpy(),
        column("answer", "answer_text"),
        column("last_answer", "last_answer_text"),
        rows["slope"].to_numpy(),
        rows["straight"].to_numpy(),
    )
