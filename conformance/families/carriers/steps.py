"""Finds which step of a carrier is at fault: its load, its operation or its store.

An operation loads its operand, perhaps into a wider dtype, computes, and stores the result. A wrong
answer alone does not tell where it comes from. So the inputs that are answered wrongly are asked of
*second carriers*, which share a single step: those that store another dtype share the load, those
that load another dtype share the store. What both get right is the fault of the operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from conformance.families.carriers.bias import mean_error
from conformance.families.carriers.faulty_step import CarrierStep, FaultyStep
from conformance.families.carriers.request import Carry
from conformance.families.cast.baseline import GradedAnswers
from conformance.judging.asking import Ask, Subject
from oracles.backend.replies import Answered, Reply
from oracles.backend.requests import Cast, MethodRequest
from oracles.protocol import Bits
from oracles.reference import exact
from reports.grading.allowed_answers import ALLOWED
from specs.cases import CARRIER, Case
from specs.editions import edition
from specs.formats import Format, format_named, is_exact
from specs.loader import document_named
from specs.outcomes import Anything, Outcome, Round, Same, Value
from specs.ruling import ruling
from specs.selection import cases_of_pair

MOST_INPUTS = 64
"""The most wrong inputs that second carriers are asked."""
MOST_CARRIERS = 16
"""The most second carriers that share a load, and as many that share a store."""
PLAIN = "a plain cast"
CONVERTS = (Value, Same, Round)
"""The outcomes by which a plain cast can be judged, too: others are of the operation alone."""

CarrierInputs = tuple[Case, Bits]
"""A second carrier, and the inputs that it is asked."""


def faulty_step(subject: Subject, case: Case, graded: GradedAnswers) -> Ask[FaultyStep]:
    """Ask second carriers what a case answers wrongly; return the step at fault.

    Some of the answers in ``graded`` must be wrong.
    """
    wrong = np.flatnonzero(graded.fails)
    picked = np.linspace(0, wrong.size - 1, min(wrong.size, MOST_INPUTS)).astype(np.intp)
    inputs = graded.inputs[wrong[picked]]
    beside = [(each, inputs) for each in _carriers(case, case.source, case.target) if each != case]
    load = [*_sharing_load(case, inputs)][:MOST_CARRIERS]
    store = [*_sharing_store(case, inputs)][:MOST_CARRIERS]
    requests: list[MethodRequest] = [
        Cast(replace(case, modes=()), inputs),
        *(Carry(*each) for each in (*beside, *load, *store)),
    ]
    replies = iter((yield requests))
    of_pair = {PLAIN: _is_wrong(subject, (case, inputs), next(replies), CONVERTS)}
    for each in beside:
        of_pair[each[0].mode[CARRIER]] = _is_wrong(subject, each, next(replies))
    loads, stores = (
        [_is_wrong(subject, each, next(replies)) for each in some] for some in (load, store)
    )
    bias = yield from mean_error(case, graded)
    return FaultyStep(
        _step([*of_pair.values()][1:], loads, stores),
        tuple(name for name, is_wrong in of_pair.items() if is_wrong),
        tuple(name for name, is_wrong in of_pair.items() if is_wrong is False),
        *bias,
    )


def _step(
    pair: Sequence[bool | None], loads: Sequence[bool | None], stores: Sequence[bool | None]
) -> CarrierStep:
    """Return the step to which the answers of second carriers point; empty if they do not tell.

    True stands for a wrong answer, False for a right one, None for none. ``pair`` are the carriers
    that share both load and store: where one of them is right, neither is at fault.
    """
    if False in pair:
        return "operation"
    is_shared = True in pair
    match _verdict(loads), _verdict(stores):
        case (True, False | None) | (None, False) if is_shared or True in loads:
            return "load"
        case (False | None, True) | (False, None) if is_shared or True in stores:
            return "store"
        case False, False if not is_shared:
            return "operation"
    return "load or store" if is_shared else ""


def _verdict(answers: Sequence[bool | None]) -> bool | None:
    """Return whether any answer is wrong; None if there is none."""
    told = [each for each in answers if each is not None]
    return any(told) if told else None


def _carriers(case: Case, source: str, target: str) -> list[Case]:
    return cases_of_pair(case.document, case.version, source, target)


def _dtypes(case: Case) -> Sequence[str]:
    return edition(document_named(case.document), case.version).sources


def _sharing_load(case: Case, inputs: Bits) -> Iterator[CarrierInputs]:
    """Yield other carriers that load the same dtype, and store one that has all of its values."""
    source = format_named(case.source)
    for dtype in _dtypes(case):
        if dtype != case.target and is_exact(source, format_named(dtype)):
            for each in _carriers(case, case.source, dtype):
                if each.modes != case.modes:
                    yield each, inputs


def _sharing_store(case: Case, inputs: Bits) -> Iterator[CarrierInputs]:
    """Yield carriers that load another dtype and store the same, for the values that it has."""
    source = format_named(case.source)
    if not source.is_numeric:
        return
    for dtype in _dtypes(case):
        found, other = _carriers(case, dtype, case.target), format_named(dtype)
        if found and dtype != case.source and other.is_numeric:
            codes = [_code_in(other, source, code) for code in inputs.tolist()]
            there = np.array([code for code in codes if code is not None], other.storage)
            if there.size:
                yield from ((each, there) for each in found if each.modes != case.modes)


def _code_in(other: Format, source: Format, code: int) -> int | None:
    """Return the pattern of another format that has the value of a pattern; None without one."""
    match exact.decode(source, code):
        case exact.Number(sign, 0, _) if not sign or other.kind == "float":
            return other.sign_bit * sign if other.has_zero else None
        case exact.Number() as number:
            if not exact.atom_of(source, other, "nearest-even", number).representable:
                return None
            unit = exact.unit_of(other, number)
            return exact.encode(
                other, number.sign, exact.round_magnitude(number, unit, "floor"), unit
            )
        case exact.Infinity(sign) if other.kind == "float" and other.entry.infinity:
            return other.infinity_code | other.sign_bit * sign
    return None


def _is_wrong(
    subject: Subject, asked: CarrierInputs, reply: Reply, outcomes: tuple[type[Outcome], ...] = ()
) -> bool | None:
    """Return whether any answer of a second carrier is wrong; None if there is none to judge.

    Open inputs are not judged, and of ``outcomes``, if they are given, no others.
    """
    case, inputs = asked
    rules = ruling(case)
    if not isinstance(reply, Answered) or rules.is_open or rules.is_rejection:
        return None
    expected = subject.expectations.of(rules, inputs)
    is_judged = [
        not isinstance(each.outcome, Anything)
        and (not outcomes or isinstance(each.outcome, outcomes))
        for each in rules.branches
    ]
    judged = np.array(is_judged)[expected.branch_indices]
    if not judged.any():
        return None
    grades = subject.expectations.grades(rules, inputs, expected, reply.value)
    return bool((grades[judged] != ALLOWED).any())
