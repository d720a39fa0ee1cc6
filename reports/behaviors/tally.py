"""Counts open answers: per atom all inputs, and per atom and behavior those it does not explain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.behavior_steps import Evaluation
from oracles.reference.kernels import select_arrays
from reports.behaviors.regions import (
    atoms_by_mark,
    behaviors_between,
    mark_of,
    real_format,
    real_patterns,
)
from reports.grading.allowed_answers import is_nan
from specs.behaviors import Behavior
from specs.formats import Format
from specs.model.vocabulary import Atom, Rounding

BLOCK = 1 << 14
"""Inputs evaluated at a time, so that intermediate arrays stay in the processor's cache."""
MAX_EXAMPLES = 5
"""Examples that are kept per atom, and per atom and behavior."""

InputAndAnswer = tuple[int, int]
"""An input and its answer, as integers."""


@dataclass(frozen=True)
class BehaviorSearch:
    """A pair of dtypes, the rounding by which its atoms are told apart, and behaviors to try."""

    source: Format
    target: Format
    rounding: Rounding
    candidates: tuple[Behavior, ...]


@dataclass(frozen=True)
class CountedInputs:
    """A number of inputs, and the smallest of them with their answers, as examples."""

    count: int
    examples: tuple[InputAndAnswer, ...]

    def merged(self, other: CountedInputs, source: Format) -> CountedInputs:
        """Return the sum of both counts, with the smallest examples of both."""
        examples = smallest_examples(source, self.examples + other.examples)
        return CountedInputs(self.count + other.count, examples)


@dataclass(frozen=True)
class Tally:
    """The inputs of each atom, and the misses: those on which a behavior is wrong or undefined.

    The misses are stored by atom and the behavior's name, and only where there are any.
    """

    search: BehaviorSearch
    inputs: Mapping[Atom, CountedInputs]
    misses: Mapping[tuple[Atom, str], CountedInputs]


def behavior_search(source: Format, target: Format, rounding: Rounding) -> BehaviorSearch:
    """Return the search among all behaviors that apply to a pair."""
    return BehaviorSearch(source, target, rounding, behaviors_between(source, target))


def tally_each(
    search: BehaviorSearch,
    inputs: NDArray[Any],
    answers: Sequence[NDArray[Any]],
    counted: Sequence[NDArray[np.bool_]] = (),
) -> list[Tally]:
    """Return a tally for each array of answers to the same inputs.

    Each behavior is evaluated only once. ``counted`` has a mask of inputs for each array of
    answers: only these are tallied. Without it all are.
    """
    source, target = real_format(search.source), search.target
    patterns = real_patterns(search.source, inputs)
    marks = mark_of(source, target, search.rounding, patterns, select_arrays).astype(np.uint8)
    order = np.argsort(marks, kind="stable")
    inputs, patterns, marks = inputs[order], patterns[order], marks[order]
    answers = [each[order] for each in answers]
    names = [behavior.name for behavior in search.candidates]
    misses = [{name: np.empty(inputs.size, bool) for name in names} for _ in answers]
    for begin in range(0, inputs.size, BLOCK):
        block = slice(begin, begin + BLOCK)
        evaluation = Evaluation(source, target, patterns[block], select_arrays)
        got = [each[block].astype(np.uint64) for each in answers]
        nans = [is_nan(target, each) for each in got]
        for behavior in search.candidates:
            codes, defined = evaluation.answer(behavior)
            is_nan_code = is_nan(target, codes)
            for each, nan, missed in zip(got, nans, misses, strict=True):
                # All NaNs count as equal.
                equal = (codes == each) | (is_nan_code & nan)
                missed[behavior.name][block] = ~(equal & defined)
    masks = counted or [np.ones(inputs.size, bool)] * len(answers)
    return [
        build_tally(
            search,
            inputs[own],
            each[own],
            marks[own],
            {name: is_miss[own] for name, is_miss in missed.items()},
        )
        for each, missed, own in zip(
            answers, misses, (np.flatnonzero(mask[order]) for mask in masks), strict=True
        )
    ]


def build_tally(
    search: BehaviorSearch,
    inputs: NDArray[Any],
    answers: NDArray[Any],
    marks: NDArray[np.uint8],
    misses: Mapping[str, NDArray[np.bool_]],
) -> Tally:
    """Return the tally of inputs that are sorted by their marks.

    ``misses`` has, by a behavior's name, the mask of the inputs on which it is wrong or undefined.
    """
    atoms = atoms_by_mark(real_format(search.source))
    by_atom: dict[Atom, CountedInputs] = {}
    missed: dict[tuple[Atom, str], CountedInputs] = {}
    for mark in np.flatnonzero(np.bincount(marks)).tolist():
        atom = atoms[mark]
        here = slice(*np.searchsorted(marks, [mark, mark + 1]).tolist())
        by_atom[atom] = _counted(search.source, inputs[here], answers[here])
        for name, is_miss in misses.items():
            where = np.flatnonzero(is_miss[here]) + here.start
            if where.size == by_atom[atom].count:
                missed[atom, name] = by_atom[atom]
            elif where.size:
                missed[atom, name] = _counted(search.source, inputs[where], answers[where])
    return Tally(search, by_atom, missed)


def _counted(source: Format, inputs: NDArray[Any], answers: NDArray[Any]) -> CountedInputs:
    """Count some inputs of one atom, and take the smallest of them as examples."""
    candidates = np.arange(inputs.size)
    if inputs.dtype.kind == "u":
        ones = np.bitwise_count(inputs)
        last = min(MAX_EXAMPLES, inputs.size) - 1
        candidates = np.flatnonzero(ones <= np.partition(ones, last)[last])
        codes, got = inputs[candidates], answers[candidates]
        # Inputs of one atom share a sign, so that codes sort like magnitudes.
        candidates = candidates[np.lexsort((got, codes, ones[candidates]))[:MAX_EXAMPLES]]
    examples = [(code_of(inputs[index]), code_of(answers[index])) for index in candidates]
    return CountedInputs(inputs.size, smallest_examples(source, examples))


def smallest_examples(
    source: Format, examples: Iterable[InputAndAnswer]
) -> tuple[InputAndAnswer, ...]:
    """Return the first ``MAX_EXAMPLES`` examples: by set bits of the input, then by its magnitude.

    The magnitude of a float is its code without the sign bit. Of equals, the smaller code comes
    first, then the smaller answer.
    """
    magnitude = source.mask if source.is_integral else source.mask ^ source.sign_bit

    def size(example: InputAndAnswer) -> tuple[int, ...]:
        return example[0].bit_count(), example[0] & magnitude, *example

    return tuple(sorted(examples, key=size)[:MAX_EXAMPLES])


def code_of(element: Any) -> int:
    """Return an element of an array of patterns as an integer."""
    return int.from_bytes(element.tobytes(), "little")
