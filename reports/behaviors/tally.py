"""What is counted of open answers: per atom how many, per atom and form how many differ.

Tallies of any parts of the inputs, in any order, merge to the tally of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.machine_words import select_arrays
from reports.behaviors.closed_forms import forms_between, real_format, real_patterns
from reports.behaviors.regions import atoms_by_mark, mark_text
from reports.behaviors.steps import Evaluation
from specs.behaviors import Behaviour
from specs.formats import Format
from specs.model.vocabulary import Atom, Rounding

AT_ONCE = 1 << 14
"""Inputs that forms are asked of at a time: what lies between their steps stays in a cache."""
KEPT = 5
"""Examples that are kept of one atom, and of one form's mismatches in it."""

Example = tuple[int, int]
"""An input and its answer."""


@dataclass(frozen=True)
class Question:
    """A pair, the rounding by which its atoms are told apart, and the forms to be tried."""

    source: Format
    target: Format
    rounding: Rounding
    forms: tuple[Behaviour, ...]


@dataclass(frozen=True)
class Met:
    """How many inputs, and the smallest of them with their answers."""

    count: int
    examples: tuple[Example, ...]

    def merged(self, other: Met, source: Format) -> Met:
        """These inputs and others."""
        return Met(self.count + other.count, smallest(source, self.examples + other.examples))


@dataclass(frozen=True)
class Tally:
    """Inputs per atom, and per atom and form those on which the form is wrong or says nothing."""

    question: Question
    inputs: Mapping[Atom, Met] = field(default_factory=dict)
    misses: Mapping[tuple[Atom, str], Met] = field(default_factory=dict)

    def merged(self, other: Tally) -> Tally:
        """The tally of these inputs and of others."""
        source = self.question.source
        return Tally(
            self.question,
            _joined(self.inputs, other.inputs, source),
            _joined(self.misses, other.misses, source),
        )


def _joined(one: Mapping[Any, Met], other: Mapping[Any, Met], source: Format) -> dict[Any, Met]:
    result = dict(one)
    for key, met in other.items():
        result[key] = result[key].merged(met, source) if key in result else met
    return result


def question(source: Format, target: Format, rounding: Rounding) -> Question:
    """A pair with all forms that speak of it."""
    return Question(source, target, rounding, forms_between(source, target))


def look(asked: Question, inputs: NDArray[Any], answers: NDArray[Any]) -> Tally:
    """The tally of some open inputs and their answers, in whatever order."""
    [found] = look_at_each(asked, inputs, [answers])
    return found


def look_at_each(
    asked: Question, inputs: NDArray[Any], answers: Sequence[NDArray[Any]]
) -> list[Tally]:
    """The tallies of what several answered to the same open inputs: a form answers once for all."""
    source, target = real_format(asked.source), asked.target
    patterns = real_patterns(asked.source, inputs)
    marks = mark_text(source, target, asked.rounding, patterns, select_arrays).astype(np.uint8)
    order = np.argsort(marks, kind="stable")
    inputs, patterns, marks = inputs[order], patterns[order], marks[order]
    answers = [each[order] for each in answers]
    wrong = [{form.name: np.empty(inputs.size, bool) for form in asked.forms} for _ in answers]
    for begin in range(0, inputs.size, AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        told = Evaluation(source, target, patterns[part], select_arrays)
        for form in asked.forms:
            codes = told.answer(form)
            for each, misses in zip(answers, wrong, strict=True):
                misses[form.name][part] = _differs(target, *codes, each[part].astype(np.uint64))
    return [
        tally(asked, inputs, each, marks, misses)
        for each, misses in zip(answers, wrong, strict=True)
    ]


def tally(
    asked: Question,
    inputs: NDArray[Any],
    answers: NDArray[Any],
    marks: NDArray[np.uint8],
    wrong: Mapping[str, NDArray[np.bool_]],
) -> Tally:
    """The tally of inputs in the order of their marks, where it is known who is wrong."""
    atoms = atoms_by_mark(real_format(asked.source))
    met: dict[Atom, Met] = {}
    misses: dict[tuple[Atom, str], Met] = {}
    for mark in np.flatnonzero(np.bincount(marks)).tolist():
        atom = atoms[mark]
        here = slice(*np.searchsorted(marks, [mark, mark + 1]).tolist())
        met[atom] = _met(asked.source, inputs[here], answers[here])
        for name, differs in wrong.items():
            places = np.flatnonzero(differs[here]) + here.start
            if places.size == met[atom].count:
                misses[atom, name] = met[atom]
            elif places.size:
                misses[atom, name] = _met(asked.source, inputs[places], answers[places])
    return Tally(asked, met, misses)


def _met(source: Format, inputs: NDArray[Any], answers: NDArray[Any]) -> Met:
    """How many these are, and the smallest of them."""
    few = np.arange(inputs.size)
    if inputs.dtype.kind == "u":
        ones = np.bitwise_count(inputs)
        last = min(KEPT, inputs.size) - 1
        few = np.flatnonzero(ones <= np.partition(ones, last)[last])
        codes, got = inputs[few], answers[few]
        # In one atom all have one sign: the codes are in the order of the magnitudes.
        few = few[np.lexsort((got, codes, ones[few]))[:KEPT]]
    examples = [(code_of(inputs[place]), code_of(answers[place])) for place in few]
    return Met(inputs.size, smallest(source, examples))


def smallest(source: Format, examples: Iterable[Example]) -> tuple[Example, ...]:
    """The few smallest: few set bits, then a small magnitude; then that of the smallest answer."""
    magnitude = _magnitude(source)
    return tuple(
        sorted(examples, key=lambda each: (each[0].bit_count(), each[0] & magnitude, *each))[:KEPT]
    )


def _magnitude(source: Format) -> int:
    """The bits that make an input small or large."""
    return source.mask if source.is_integral else source.mask ^ source.sign_bit


def code_of(given: Any) -> int:
    """An element of an array of patterns as a number."""
    return int.from_bytes(given.tobytes(), "little")


def _differs(
    target: Format, code: NDArray[Any], told: NDArray[Any], answers: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Where a form's answer is another, or is none; one NaN is as good as another."""
    alike = code == answers
    if target.nan_codes:
        alike = alike | (_is_nan(target, code) & _is_nan(target, answers))
    different: NDArray[np.bool_] = ~(alike & told)
    return different


def _is_nan(target: Format, codes: NDArray[Any]) -> NDArray[np.bool_]:
    here = np.zeros(codes.shape, bool)
    for nans in target.nan_codes:
        here |= (codes >= nans.start) & (codes < nans.stop)
    return here
