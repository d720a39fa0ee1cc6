"""Refusals: whether a cast or call is refused whatever the tensor, and leaves nothing behind.

A refusal in one row says nothing of a tensor without dimensions, which may be answered before the
arguments are read, nor of one in another layout, nor of a second attempt. And a refused call may
leave behind state that changes the next one: so calls that are answered, one that converts and one
of the dtype that the receiver has, are made before and right after refused ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from conformance.families.call.members import telling_members, wrong_conversion
from conformance.families.call.promises import form_faults, receiver_changes
from conformance.families.cast.shapes import FaultyTensor
from conformance.judging.asking import Ask
from conformance.judging.probe import Probe
from conformance.judging.values import (
    Departed,
    members_after,
    refused,
    value_answer,
    value_request,
)
from oracles.backend.replies import Answered, Crashed, Raised, Reply, Unanswered
from oracles.backend.requests import MakeCall
from oracles.protocol import Bits
from reports.problem_words import words
from reports.problems import BrokenPromise, Fault, NotRefused
from specs.calls import ReceiverKind
from specs.case_calls import call_of, form_of, member_of, receiver_of
from specs.cases import Case
from specs.editions import edition
from specs.formats import format_named
from specs.loader import document_named
from specs.ruling import ruling
from specs.tensor_rules import tensor_rule

AGAIN = (
    Probe(()), Probe((1,)), Probe((1, 1)), Probe((20, 17)), Probe((0,)), Probe((2, 1, 2, 2)),
    Probe((2, 3), order=(1, 0)),
    Probe((5,), steps=(2,)), Probe((5,), steps=(-1,)), Probe((5, 3), steps=(2, 1)),
    Probe((5,), offset=1), Probe((2, 3, 4, 5), order=(0, 2, 3, 1)), Probe((1027,)),
)  # fmt: skip
"""Tensors in which a refusal is asked again, if the document keeps their shapes."""
FEW = 2
"""Elements of the row that is asked a second time."""
SHAPE = (2,)
"""The shape of the tensors of calls that are answered."""
AFTERWARDS = "right after this call is refused"


def refusal_faults(case: Case, inputs: Bits) -> Ask[list[FaultyTensor]]:
    """Ask again what was refused in one row, in other tensors, and check what it leaves behind.

    Raises ``Unanswered`` if the backend crashes.
    """
    tensors = dict(_other_tensors(case, inputs))
    answered = _answered_cases(case) if receiver_of(case.document) is not None else ()
    asked = [value_request(case, bits) for bits in tensors.values()]
    if not answered:
        return [*_answered(case, tensors, _alive((yield asked)))]
    # The refusal in one row may affect the first of these; nothing affects the others.
    before = [answered[0], *answered]
    after = [answered[place % len(answered)] for place in range(len(asked))]
    # Each request is an object of its own, because the same object is sent only once.
    turns = zip(asked, map(_answered_call, after), strict=True)
    requests = [*map(_answered_call, before), *(each for turn in turns for each in turn)]
    replies = _alive((yield requests))
    first, *usual = map(_wrong, before, replies)
    refusals, others = replies[len(before) :: 2], replies[len(before) + 1 :: 2]
    wrong_anyway = {each for each, wrong in zip(answered, usual, strict=True) if wrong is not None}
    left = [(answered[0], first), *zip(after, map(_wrong, after, others), strict=True)]
    found = [wrong for each, wrong in left if wrong is not None and each not in wrong_anyway]
    faults = [*_answered(case, tensors, refusals)]
    return faults + [FaultyTensor(each, inputs[:1]) for each in found[:1]]


def _other_tensors(case: Case, inputs: Bits) -> Iterator[tuple[str, Bits]]:
    """A part of the row again, in words and as it is; then other tensors, where they may be asked.

    Texts lie in a row.
    """
    yield f"shape ({FEW},)", inputs[:FEW]
    for probe in AGAIN:
        can_lie = probe.layout is None or format_named(case.source).kind != "text"
        if can_lie and tensor_rule(case.document, case.version, probe.shape).keeps_shape:
            yield str(probe), probe.tensor(inputs)


def _alive(replies: Sequence[Reply]) -> Sequence[Reply]:
    """Return the replies; raise ``Unanswered`` if the process crashed."""
    for reply in replies:
        if isinstance(reply, Crashed):
            raise Unanswered(reply)
    return replies


def _answered(
    case: Case, tensors: Mapping[str, Bits], replies: Sequence[Reply]
) -> Iterator[FaultyTensor]:
    """The first tensor in which the call is not refused."""
    [*_, branch] = ruling(case).branches
    for (where, bits), reply in zip(tensors.items(), replies, strict=True):
        match value_answer(case, bits, reply):
            case Answered():
                but = f"{where} gives {case.target}"
            case Departed(promise):
                but = f"{where} {words(promise)}"
            case _:
                continue
        yield FaultyTensor(NotRefused(branch.rule, branch.clause, branch.level, but), bits)
        return


def _answered_cases(case: Case) -> tuple[Case, ...]:
    """A case that converts and one that does not, of the same member of the same receiver.

    Each is the first such case of the document, if it has one.
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
    """Return the fault of a call that should be answered: in its values, form or receiver.

    Return None if it has no fault, or is declined, which is no fault here.
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
