"""Refusals: whether a cast or call is refused whatever the tensor, and leaves nothing behind.

A refusal in one row says nothing of a tensor without dimensions, which may be answered before the
arguments are read, nor of one that lies otherwise, nor of a second attempt. And what a call has set
up before it is refused may be met by the next one: so a call that converts is made before and right
after each refused one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from conformance.kinds.asking import Ask
from conformance.kinds.call import (
    Departed,
    members_after,
    refused,
    value_answer,
    value_request,
)
from conformance.kinds.call_members import telling_members, wrong_conversion
from conformance.kinds.shapes import FaultyTensor
from oracles.backend.replies import Answered, Crashed, Raised, Reply, Unanswered
from oracles.backend.requests import MakeCall
from oracles.protocol import Bits
from reports.problem_words import words
from reports.problems import BrokenPromise, NotRefused, Refused
from specs.calls import ReceiverKind
from specs.case_calls import call_of, form_of, member_of, receiver_of
from specs.cases import Case
from specs.editions import edition
from specs.loader import document_named
from specs.ruling import ruling
from specs.tensor_rules import tensor_rule

SHAPES: tuple[tuple[int, ...], ...] = ((), (20, 17), (0,), (2, 1, 2, 2))
"""Tensors in which a refusal is asked again, as far as the document says anything of these."""
COLUMNS = (2, 3)
"""One more, whose columns come first in memory."""
FEW = 2
"""Elements of the row that is asked a second time."""
AFTERWARDS = "right after this call is refused"


def refusal_faults(case: Case, inputs: Bits) -> Ask[list[FaultyTensor]]:
    """Check what was refused in one row: in other tensors, once more, and what is left behind.

    Raises ``Unanswered`` if the backend dies.
    """
    tensors = [*_other_tensors(case, inputs)]
    is_call = receiver_of(case.document) is not None
    converting = _converting_case(case) if is_call else None
    asked = [value_request(case, bits) for bits in tensors]
    if converting is None:
        return [*_answered(case, tensors, _alive((yield asked)))]
    # Each request is an object of its own, because one object is sent once. The first conversion
    # may meet what the refusal in one row has left, the second meets nothing.
    conversions = [_conversion(converting) for _ in range(len(asked) + 2)]
    turns = zip(asked, conversions[2:], strict=True)
    replies = _alive((yield [*conversions[:2], *(each for turn in turns for each in turn)]))
    faults = [*_answered(case, tensors, replies[2::2])]
    first, usual, *others = (_wrong(converting, each) for each in (replies[0], *replies[1::2]))
    if usual is None:
        left = [each for each in (first, *others) if each is not None]
        faults += [FaultyTensor(each, inputs[:1]) for each in left[:1]]
    return faults


def _other_tensors(case: Case, inputs: Bits) -> Iterator[Bits]:
    """A part of the row again; then other shapes and another layout, if the document keeps them."""
    yield inputs[:FEW]
    for shape in (*SHAPES, COLUMNS):
        if tensor_rule(case.document, case.version, shape).keeps_shape:
            bits = np.resize(inputs, shape)
            yield bits.copy("F") if shape == COLUMNS else bits


def _alive(replies: Sequence[Reply]) -> Sequence[Reply]:
    """The replies of a process that is still alive; raise ``Unanswered`` if it died."""
    for reply in replies:
        if isinstance(reply, Crashed):
            raise Unanswered(reply)
    return replies


def _answered(
    case: Case, tensors: Sequence[Bits], replies: Sequence[Reply]
) -> Iterator[FaultyTensor]:
    """The first tensor in which the call is not refused."""
    [*_, branch] = ruling(case).branches
    for bits, reply in zip(tensors, replies, strict=True):
        match value_answer(case, bits, reply):
            case Answered():
                but = f"{_tensor_words(bits)} gives {case.target}"
            case Departed(promise):
                but = f"{_tensor_words(bits)} {words(promise)}"
            case _:
                continue
        yield FaultyTensor(NotRefused(branch.rule, branch.clause, branch.level, but), bits)
        return


def _tensor_words(bits: Bits) -> str:
    by_columns = "" if bits.flags.c_contiguous else ", columns first,"
    return f"shape {bits.shape}{by_columns}"


def _converting_case(case: Case) -> Case | None:
    """The first case that converts the same member of the same receiver; None if there is none."""
    return _first_conversion(
        case.document, case.version, case.source, call_of(case).receiver, member_of(case)
    )


@cache
def _first_conversion(
    document: str, version: str, source: str, receiver: ReceiverKind, member: str
) -> Case | None:
    for case in edition(document_named(document), version).cases():
        if (
            case.source == source != case.target
            and member_of(case) == member
            and call_of(case).receiver == receiver
            and (form_of(case).device_before, form_of(case).device_after) == ("cpu", "cpu")
            and not (ruling(case).is_rejection or ruling(case).is_open)
        ):
            return case
    return None


def _conversion(case: Case) -> MakeCall:
    call = call_of(case)
    return MakeCall(case, call, telling_members(call, (2,)))


def _wrong(case: Case, reply: Reply) -> BrokenPromise | Refused | None:
    """What is wrong about a conversion; None also where it is declined, which is no fault here."""
    name = member_of(case)
    match reply:
        case Answered(returned):
            pass
        case Raised(error):
            return refused(case, error, AFTERWARDS)
        case _:
            return None
    held = _conversion(case).members[name]
    after = members_after(case, returned)
    return wrong_conversion(case, held, after, name, AFTERWARDS, is_other=False)
