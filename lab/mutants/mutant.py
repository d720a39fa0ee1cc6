"""A mutant: the reference with one deliberate fault, in one case or in all cases of a pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from conformance.families.bitcast.ruling import is_bitcast
from conformance.families.reference import Reference
from lab.mutants import (
    arithmetic,
    bitcasts,
    conditions,
    special_values,
    storage,
    tensors,
    texts,
)
from lab.mutants.fault import (
    EVERYWHERE,
    REFERENCE,
    Condition,
    Fault,
    Past,
    Row,
    TensorFault,
)
from oracles.protocol import Bits, Returned
from oracles.reference.reference_oracle import RejectedError
from specs.cases import Call, Case
from specs.errors import CastigateError, did_you_mean
from specs.formats import format_named
from specs.selection import case_named

UNTOLD = "one-input"
"""Stands for the name of a finding that one input shows, which is not enough to tell its cause."""
OF_ALL = (UNTOLD, "the-receiver-holds-other-bits")
"""Causes that are right for any fault: it shows on one input, or in the receiver of a call."""
CHANGES_WITH_LAYOUT = "changes-with-layout"
ALONE = "!"
"""At the end of a mutant's name: only that case is wrong, and no other case of its pair."""


@cache
def faults() -> Mapping[str, Fault]:
    """All faults of single answers by name."""
    found = chain(arithmetic.faults(), special_values.faults(), storage.faults(), texts.faults())
    return {each.name: each for each in found}


@cache
def tensor_faults() -> Mapping[str, TensorFault]:
    """All faults of whole tensors of casts by name."""
    return {each.name: each for each in tensors.faults()}


@cache
def bitcast_faults() -> Mapping[str, TensorFault]:
    """All faults of bitcasts by name."""
    return {each.name: each for each in bitcasts.faults()}


@cache
def all_conditions() -> Mapping[str, Condition]:
    """All conditions by name."""
    return {each.name: each for each in conditions.conditions()}


@dataclass(frozen=True)
class Mutant:
    """One wrong backend: a fault, a condition, and the case in which both are planted."""

    fault: Fault | TensorFault
    condition: Condition
    case: Case
    is_alone: bool = False
    """Whether the other cases of the pair are answered rightly."""

    @property
    def name(self) -> str:
        """The name by which it can be loaded as a backend."""
        fault = self.fault.name
        if self.condition.name != EVERYWHERE:
            fault = f"{fault}+{self.condition.name}"
        return f"{fault}@{self.case.id}{ALONE if self.is_alone else ''}"

    @property
    def causes(self) -> tuple[str, ...]:
        """The names of findings that name its cause rightly, as shell patterns."""
        if self.condition.on in ("nothing", "inputs"):
            return (*self.fault.causes, *OF_ALL)
        return (*self.fault.causes, *OF_ALL, CHANGES_WITH_LAYOUT)

    def is_at(self, case: Case) -> bool:
        """Whether the fault is planted in a case."""
        if self.is_alone:
            return case == self.case
        return (case.source, case.target) == (self.case.source, self.case.target)


def mutant_named(name: str) -> Mutant:
    """Return the mutant of a name; raise CastigateError if a part of it is unknown."""
    planted, _, case_id = name.partition("@")
    fault_name, _, condition_name = planted.partition("+")
    case = case_named(case_id.removesuffix(ALONE))
    known: Mapping[str, Fault | TensorFault] = (
        bitcast_faults() if is_bitcast(case) else {**faults(), **tensor_faults()}
    )
    condition = _known(all_conditions(), condition_name or EVERYWHERE, "condition")
    return Mutant(_known(known, fault_name, "fault"), condition, case, case_id.endswith(ALONE))


def _known(known: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in known:
        hint = did_you_mean(name, known) or f"known are {', '.join(sorted(known))}"
        raise CastigateError(f"unknown {what} `{name}` of a mutant; {hint}")
    return known[name]


class MutantOracle:
    """Answers as the reference does, except where its mutant's fault is planted."""

    version = "0"

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = mutant.name
        self._past = Past()
        self._calls = _WithFault(self.cast)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a cast as the reference does, but for the fault where it is planted."""
        has_refused, self._past.has_refused = self._past.has_refused, True
        right = REFERENCE.cast(case, bits)
        self._past.has_refused = has_refused
        is_here = self.mutant.is_at(case)
        self._past.calls += is_here
        answers = self._spoiled(case, bits, right) if is_here else right
        self._past.last, self._past.last_case, self._past.has_refused = bits.copy(), case, False
        return answers

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a bitcast as the reference does, but for the fault where it is planted.

        RejectedError is raised for a tensor that must be refused, unless the fault accepts it.
        """
        fault, target = self.mutant.fault, format_named(case.target)
        planted = fault if isinstance(fault, TensorFault) and self.mutant.is_at(case) else None
        try:
            right = REFERENCE.bitcast(case, bits)
        except RejectedError:
            if planted is None or not planted.accepts(bits):
                raise
            return np.zeros(bits.shape[:-1], target.storage)
        self._past.calls += 1
        if planted is None:
            return right
        answers: Bits = np.asarray(planted.replaces(bits, right, self._past))
        if answers.dtype.kind != "u" or target.bits == 8 * answers.dtype.itemsize:
            return answers  # Complex patterns of 128 bits are raw bytes.
        kept: Bits = np.asarray(answers & right.dtype.type(target.mask))
        return kept

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call, whose tensors are converted by ``cast``."""
        return self._calls.call(case, call, bits)

    def _spoiled(self, case: Case, bits: Bits, right: Bits) -> Bits:
        match self.mutant.fault:
            case TensorFault() as fault:
                return np.asarray(fault.replaces(bits, right, self._past))
            case fault:
                row = Row(replace(case, example=None), bits.reshape(-1))
                spoiled = self.mutant.condition.spoils(row, bits, self._past)
                if not np.any(spoiled):
                    return right
                wrong = np.asarray(fault.answers(row)).reshape(bits.shape)
                return np.where(np.broadcast_to(spoiled, bits.shape), wrong, right)


class _WithFault(Reference):
    """The reference's calls, with the casts of a mutant."""

    def __init__(self, cast: Callable[[Case, Bits], Bits]) -> None:
        super().__init__()
        self._cast = cast

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a cast by the mutant."""
        return self._cast(case, bits)
