"""Computes by the kernels what a ruling allows, for an array, a word or a traced term."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference import expect_by_exact
from oracles.reference.behavior_steps import pattern_of_behavior
from oracles.reference.expectations import Expected
from oracles.reference.kernels import (
    Converted,
    Select,
    Unpacked,
    convert,
    has_fraction,
    rounded,
    select_arrays,
    unpack,
)
from specs.branches import Ruling
from specs.formats import Format
from specs.model.vocabulary import OTHERWISE
from specs.outcomes import Behaves, Either, Exactly, Outcome, Round, Same, Value, Wrap

BLOCK = 1 << 15
"""How many inputs are computed together: their words stay in a core's own cache."""
FACTS_KEPT = 4
"""How many ``Facts`` a block caches, one for each target and rounding."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that input classes test: decoded inputs, their casts, and traits of the formats.

    ``fraction`` says whether a finite, nonzero input is not an integer.
    """

    parts: Unpacked
    converted: Converted
    fraction: Any
    nan_has_sign: bool
    target_has_zero: bool

    @property
    def finite(self) -> Any:
        """Whether an input is neither NaN nor infinity; zeros are finite."""
        return (self.parts.nan | self.parts.infinity) ^ True

    @property
    def some(self) -> Any:
        """Whether an input is finite and nonzero."""
        return self.finite & (self.parts.zero ^ True)

    @property
    def minus(self) -> Any:
        return self.parts.sign == 1

    @property
    def plus(self) -> Any:
        return self.parts.sign == 0

    @property
    def out(self) -> Any:
        """Whether an input is finite, and out of the target's range before or after rounding."""
        return self.some & (self.converted.beyond | self.converted.overflow)

    @property
    def representable(self) -> Any:
        """Whether an input is finite and the target has exactly its value; False for -0.

        Infinities and NaNs never count, even if the target has them.
        """
        value = self.some & (self.out ^ True) & (self.converted.inexact ^ True)
        return value | (self.parts.zero & self.plus & self.target_has_zero)


CLASSES: dict[str, Callable[[Facts], Any]] = {
    "nan": lambda f: f.parts.nan,
    "+nan": lambda f: f.parts.nan & f.plus & f.nan_has_sign,
    "-nan": lambda f: f.parts.nan & f.minus & f.nan_has_sign,
    "unsigned-nan": lambda f: f.parts.nan & (not f.nan_has_sign),
    "inf": lambda f: f.parts.infinity & f.plus,
    "-inf": lambda f: f.parts.infinity & f.minus,
    "zero": lambda f: f.parts.zero & f.plus,
    "-zero": lambda f: f.parts.zero & f.minus,
    "overflow": lambda f: f.some & f.converted.overflow & f.plus,
    "-overflow": lambda f: f.some & f.converted.overflow & f.minus,
    "above-max": lambda f: f.out & f.plus,
    "rounds-to-max": lambda f: f.out & (f.converted.overflow ^ True) & f.plus,
    "rounds-to-lowest": lambda f: f.out & (f.converted.overflow ^ True) & f.minus,
    "below-smallest": lambda f: f.some & f.converted.tiny & f.plus,
    "-below-smallest": lambda f: f.some & f.converted.tiny & (f.out ^ True) & f.minus,
    "underflow": lambda f: f.some & (f.converted.tiny | f.converted.subnormal) & (f.out ^ True),
    "subnormal-input": lambda f: f.parts.subnormal,
    "negative": lambda f: f.some & f.minus,
    "representable": lambda f: f.representable,
    "representable-normal": lambda f: (
        f.representable & ((f.parts.subnormal | (f.some & f.converted.subnormal)) ^ True)
    ),
    "in-range": lambda f: f.finite & (f.out ^ True),
    "whole": lambda f: f.finite & (f.out ^ True) & ((f.some & f.fraction) ^ True),
    "fraction": lambda f: f.some & (f.out ^ True) & f.fraction,
    "not-whole": lambda f: f.some & f.fraction,
}
"""By input class of documents: a test of facts; ``specs.model.vocabulary`` defines it by atoms."""


def facts_of(ruling: Ruling, pattern: Any, select: Select) -> Facts:
    """Decode inputs, cast them to the ruling's numeric target, and return their facts."""
    return _facts_of_parts(ruling, unpack(ruling.source, pattern, select), select)


def _facts_of_parts(ruling: Ruling, parts: Unpacked, select: Select) -> Facts:
    target = ruling.target
    assert target.is_numeric, f"{target.name} is not numeric"
    converted = convert(target, ruling.rounding, parts, select)
    return Facts(
        parts,
        converted,
        has_fraction(parts, select),
        ruling.source.has_signed_nan,
        target.has_zero,
    )


def decide(ruling: Ruling, pattern: Any, select: Select) -> tuple[Any, Any, Any]:
    """Return the index of the branch that takes each input, and two patterns that it allows.

    Both patterns are equal if only one is allowed, and 0 if the branch names none.
    """
    return _decide_by(ruling, facts_of(ruling, pattern, select), pattern, select)


def _decide_by(ruling: Ruling, facts: Facts, pattern: Any, select: Select) -> tuple[Any, Any, Any]:
    branch_index = code = other = pattern & 0
    remaining = (pattern < 0) ^ True
    ordered = sorted(enumerate(ruling.branches), key=lambda item: item[1].input_class == OTHERWISE)
    for at, branch in ordered:
        if branch.input_class == OTHERWISE:
            applies = remaining
        else:
            applies = CLASSES[branch.input_class](facts)
            remaining = remaining & (applies ^ True)
        if at:
            branch_index = select(applies, at, branch_index)
        patterns = _patterns(ruling, branch.outcome, facts, pattern, select)
        if patterns:
            is_same = code is other and len(patterns) == 1
            code = select(applies, patterns[0], code)
            other = code if is_same else select(applies, patterns[-1], other)
    return branch_index, code, other


def expect(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """Return what a numeric ruling without worked examples allows for each input of an array."""
    return KernelExpectations().expect(ruling, inputs)


def expect_texts(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """Return the branch of each number that is cast to a text, without any patterns.

    The exact definition finds the branch for one number of each kind (by sign, zero, fraction and
    so on): all numbers of a kind have the same.
    """
    parts = unpack(ruling.source, inputs.astype(np.uint64), select_arrays)
    some = (parts.nan | parts.infinity | parts.zero) ^ True
    facts = (
        parts.nan,
        parts.infinity,
        parts.zero,
        parts.sign == 1,
        parts.subnormal,
        some & has_fraction(parts, select_arrays),
    )
    kind_of = sum(fact.astype(np.uint8) << place for place, fact in enumerate(facts))
    _, one_of_each, kinds = np.unique(kind_of, return_index=True, return_inverse=True)
    branches = [
        expect_by_exact.allow(ruling, code).branch_index for code in inputs[one_of_each].tolist()
    ]
    nothing = np.zeros(inputs.size, np.uint8)
    return Expected(np.array(branches, np.uint8)[kinds], nothing, nothing)


class KernelExpectations:
    """Computes what rulings allow for arrays.

    Consecutive calls with the same source and array object, which must not change, decode it once;
    those that also have the same target and rounding cast it once.
    """

    def __init__(self) -> None:
        self._inputs: NDArray[Any] | None = None
        self._source: Format | None = None
        self._blocks: list[_Block] = []

    def expect(self, ruling: Ruling, inputs: NDArray[Any]) -> Expected:
        """Return what a numeric ruling without worked examples allows for each of the inputs."""
        if inputs is not self._inputs or ruling.source is not self._source:
            self._inputs, self._source = inputs, ruling.source
            starts = range(0, max(inputs.size, 1), BLOCK)
            self._blocks = [_Block(ruling.source, inputs[at : at + BLOCK]) for at in starts]
        columns = zip(*(block.expect(ruling) for block in self._blocks), strict=True)
        storage = ruling.target.storage
        return Expected(
            *(
                np.concatenate([part.astype(kind, copy=False) for part in column])
                for column, kind in zip(columns, (np.uint8, storage, storage), strict=True)
            )
        )


class _Block:
    """Decoded inputs, with the facts of their casts to the last targets."""

    def __init__(self, source: Format, inputs: NDArray[Any]) -> None:
        self._patterns = inputs.astype(np.uint64)
        self._parts = unpack(source, self._patterns, select_arrays)
        self._facts: dict[tuple[Format, str], Facts] = {}

    def expect(self, ruling: Ruling) -> tuple[Any, Any, Any]:
        """Return what ``decide`` returns for each of the inputs."""
        key = ruling.target, ruling.rounding
        if key not in self._facts:
            if len(self._facts) >= FACTS_KEPT:
                self._facts.clear()
            self._facts[key] = _facts_of_parts(ruling, self._parts, select_arrays)
        return _decide_by(ruling, self._facts[key], self._patterns, select_arrays)


def _patterns(
    ruling: Ruling, outcome: Outcome, facts: Facts, pattern: Any, select: Select
) -> tuple[Any, ...]:
    match outcome:
        case Either(options=options):
            return tuple(one_pattern(ruling, option, facts, pattern, select) for option in options)
        case Exactly() | Round() | Value() | Wrap() | Same() | Behaves():
            return (one_pattern(ruling, outcome, facts, pattern, select),)
    return ()


def one_pattern(
    ruling: Ruling, outcome: Outcome, facts: Facts, pattern: Any, select: Select
) -> Any:
    """Return the pattern that an outcome names for each input; ``outcome`` names exactly one."""
    match outcome:
        case Exactly(code=code):
            return code
        case Same():
            return pattern
        case Behaves(behavior=name):
            return pattern_of_behavior(name, ruling.source, ruling.target, pattern, select)
        case Round(rounding=rounding) if rounding != ruling.rounding:
            return rounded(ruling.target, facts.parts, rounding, select)
    return rounded(ruling.target, facts.parts, ruling.rounding, select, facts.converted)
