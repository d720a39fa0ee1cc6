"""Refused calls: whether a call is refused in every tensor, and leaves nothing behind.

A refused call may leave behind state that changes the next one. So calls that are answered, one
that converts and one to the dtype that the receiver has, are made before and right after refused
ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from conformance.families.call.members import telling_members, wrong_conversion
from conformance.families.call.promises import form_faults, receiver_changes
from conformance.families.cast.refusals import (
    alive,
    answered_again,
    answered_tensors,
    other_tensors,
)
from conformance.families.cast.shapes import FaultyTensor
from conformance.judging.asking import Ask
from conformance.judging.values import members_after, refused, value_request
from oracles.backend.replies import Answered, Raised, Reply
from oracles.backend.requests import MakeCall
from oracles.protocol import Bits
from reports.problems import BrokenPromise, Fault
from specs.case_calls import call_of, form_of, member_of, receiver_of
from specs.cases import Case, ReceiverKind
from specs.editions import edition
from specs.loader import document_named
from specs.ruling import ruling

SHAPE = (2,)
"""The shape of the tensors of calls that are answered."""
AFTERWARDS = "right after this call is refused"


def refusal_faults(case: Case, inputs: Bits) -> Ask[list[FaultyTensor]]:
    """Repeat a refused call in other tensors; return a fault of it and one of later calls, if any.

    Raises ``Unanswered`` if the backend crashes, or if the answer to a later call lacks a member of
    the receiver or has malformed bits.
    """
    if not (answered := _answered_cases(case)):
        return (yield from answered_again(case, inputs))
    tensors = dict(other_tensors(case, inputs))
    asked = [value_request(case, bits) for bits in tensors.values()]
    # The refusal in one row may affect the first of these; nothing affects the others.
    before = [answered[0], *answered]
    after = [answered[place % len(answered)] for place in range(len(asked))]
    # Each request is an object of its own, because the same object is sent only once.
    turns = zip(asked, map(_answered_call, after), strict=True)
    requests = [*map(_answered_call, before), *(each for turn in turns for each in turn)]
    replies = alive((yield requests))
    first, *usual = map(_wrong, before, replies)
    refusals, others = replies[len(before) :: 2], replies[len(before) + 1 :: 2]
    wrong_anyway = {each for each, wrong in zip(answered, usual, strict=True) if wrong is not None}
    left = [(answered[0], first), *zip(after, map(_wrong, after, others), strict=True)]
    found = [wrong for each, wrong in left if wrong is not None and each not in wrong_anyway]
    faults = [*answered_tensors(case, tensors, refusals)]
    return faults + [FaultyTensor(each, inputs[:1]) for each in found[:1]]


def _answered_cases(case: Case) -> tuple[Case, ...]:
    """Return a case that converts and one that does not, of the same source, receiver and member.

    Each is the first such case of the version on the CPU that must be answered; it is left out if
    there is none.
    """
    receiver, member = call_of(case).receiver, member_of(case)
    both = (
        _first_answered(case.document, case.version, case.source, receiver, member, converts)
        for converts in (True, False)
    )
    return tuple(each for each in both if each is not None)


@cache
def _first_answered(
    document: str, version: str, source: str, receiver: ReceiverKind, member: str, converts: bool
) -> Case | None:
    for case in edition(document_named(document), version).cases():
        if (
            case.source == source
            and (case.target != source) == converts
            and member_of(case) == member
            and call_of(case).receiver == receiver
            and (form_of(case).device_before, form_of(case).device_after) == ("cpu", "cpu")
            and not (ruling(case).is_rejection or ruling(case).is_open)
        ):
            return case
    return None


def _answered_call(case: Case) -> MakeCall:
    call = call_of(case)
    return MakeCall(case, call, telling_members(call, SHAPE))


def _wrong(case: Case, reply: Reply) -> Fault | None:
    """Return the fault of the reply to a call that should be answered.

    It is one in the values, the form or the receiver, or an error. Return None if there is no
    fault, if the backend declines the call, or if the reply is malformed.
    """
    receiver, name = receiver_of(case.document), member_of(case)
    assert receiver is not None
    match reply:
        case Answered(returned):
            pass
        case Raised(error):
            return refused(case, error, AFTERWARDS)
        case _:
            return None
    held = _answered_call(case).members
    wrong: Fault | None = wrong_conversion(
        case, held[name], members_after(case, returned), name, AFTERWARDS, is_other=False
    )
    if wrong is not None:
        return wrong
    broken: list[Fault] = [*form_faults(case, SHAPE, returned)]
    if receiver.unchanged is not None:
        broken += receiver_changes(call_of(case), held, returned, receiver.unchanged)
    for each in broken:
        return replace(each, where=AFTERWARDS) if isinstance(each, BrokenPromise) else each
    return None
