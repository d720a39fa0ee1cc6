"""Requests the values of a case: by a cast, or by the call that the case stands for.

What a call returns holds the answer's bits, and also what else the document promises of a call;
``families/call/promises.py`` checks that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from conformance.judging.asking import Ask, ask
from oracles.backend.replies import (
    Answer,
    Answered,
    BatchReply,
    Crashed,
    Declined,
    Malformed,
    NoAnswer,
    Raised,
    Reply,
    attempt,
    checked,
    class_name,
    one_line,
    value_of,
)
from oracles.backend.requests import AboutTensor, Cast, CastBatch, MakeCall, Request
from oracles.memory_layouts import TensorBatch
from oracles.protocol import Bits, Returned, Tensor
from reports.problem_words import words
from reports.problems import BrokenPromise, Refused
from specs.case_calls import call_of, form_of, member_of, receiver_of
from specs.cases import FORM, Case
from specs.formats import format_named
from specs.operations import of_family, operation_of
from specs.outcomes import Anything
from specs.ruling import ruling

OTHER_MEMBERS_HOLD = 3
OTHER_MEMBERS_KEPT = 64


@dataclass(frozen=True)
class Departed:
    """The answer if a call returns something else than the document promises, and so no values."""

    promise: BrokenPromise


ValueAnswer = Answer | Departed
"""The answer to a request for values, by a cast or by a call."""


class DepartedError(Exception):
    """Carries a broken promise to the handler that reports it as a problem."""

    def __init__(self, promise: BrokenPromise) -> None:
        super().__init__(promise.promise)
        self.promise = promise


def values_of(answer: ValueAnswer) -> Bits:
    """Return the values of an answer; raise ``Unanswered`` or DepartedError if there are none.

    DepartedError is that of a call which returned something else than values.
    """
    if isinstance(answer, Departed):
        raise DepartedError(answer.promise)
    return value_of(answer)


def value_request(case: Case, bits: Bits, is_kept: bool = False) -> AboutTensor | MakeCall:
    """Return the request for the values of a case: a cast, or what its family asks instead.

    If ``is_kept``, the result of a call is read only after later calls of the same message; others
    ignore it.
    """
    if receiver_of(case.document) is None:
        return request_kind(case)(case, bits)
    return MakeCall(case, call_of(case), held_by(case, bits), is_kept)


def request_kind(case: Case) -> type[AboutTensor]:
    """Return the kind of request by which a case's values are asked, unless it is a call."""
    return of_family(operation_of(case), "request") or Cast


def value_answer(case: Case, bits: Bits, reply: Reply) -> ValueAnswer:
    """Turn the reply to ``value_request`` into an answer: the target's bits, or a failure."""
    if receiver_of(case.document) is None or not isinstance(reply, Answered):
        return reply
    try:
        tensor = asked_member(case, reply.value)
        if tensor.dtype != case.target:
            return Departed(departure(case, *wrong_dtype(case, tensor)))
    except DepartedError as departed:
        return Departed(departed.promise)
    return attempt(partial(checked, format_named(case.target), bits, tensor.bits))


def ask_values(case: Case, bits: Bits) -> Ask[ValueAnswer]:
    """Request the values of one tensor, and return the answer."""
    return value_answer(case, bits, (yield from ask(value_request(case, bits))))


def batch_requests(case: Case, batch: TensorBatch) -> list[Request]:
    """Return the requests for the values of many tensors; none if there are no tensors.

    Casts need one request for all tensors, others one per tensor.
    """
    if not batch.shapes:
        return []
    if _is_batched(case):
        return [CastBatch(case, batch)]
    return [value_request(case, tensor, is_kept=True) for tensor in batch.tensors()]


def batch_answers(
    case: Case, batch: TensorBatch, replies: Sequence[Reply]
) -> Iterator[ValueAnswer]:
    """Yield the answer to each tensor from the replies to ``batch_requests``.

    Those to casts end after the first tensor that was neither answered nor declined; if the batch
    as a whole failed, they are that one failure. Others have an answer for every tensor.
    """
    if not _is_batched(case):
        for tensor, reply in zip(batch.tensors(), replies, strict=True):
            yield value_answer(case, tensor, reply)
        return
    for reply in replies:
        if isinstance(reply, Answered):
            whole: BatchReply = reply.value
            yield from whole.each()
        else:
            yield reply


def _is_batched(case: Case) -> bool:
    return receiver_of(case.document) is None and request_kind(case) is Cast


def held_by(case: Case, bits: Bits) -> dict[str, Bits]:
    """Return the bits of each member of a case's receiver, by name.

    The member that the case judges holds ``bits``, each other member 3 in every element.
    """
    return {
        member.name: bits
        if member.name == member_of(case)
        else _other_member(bits.shape, format_named(member.dtype).storage)
        for member in call_of(case).members
    }


@lru_cache(OTHER_MEMBERS_KEPT)
def _other_member(shape: tuple[int, ...], storage: str) -> Bits:
    """Return read-only bits, 3 in each element: one array for all cases, to be sent once."""
    filled: Bits = np.full(shape, OTHER_MEMBERS_HOLD, storage)
    filled.flags.writeable = False
    return filled


def asked_member(case: Case, returned: Returned) -> Tensor:
    """Return the tensor of the member that a case judges; raise DepartedError if it is missing."""
    name, found = member_of(case), members_after(case, returned)
    if name not in found:
        raise DepartedError(form_promise(case, "member", (name or "tensor",)))
    return found[name]


def members_after(case: Case, returned: Returned) -> Mapping[str, Tensor]:
    """Return the members of what a call returns, or of the layer that it changes in place.

    They are the layer's if the case is about a member, the call returns nothing, and its form
    promises no return value.
    """
    if member_of(case) and not returned.tensors and form_of(case).returns is None:
        return returned.receiver
    return returned.tensors


def form_promise(
    case: Case, promise: str, facts: tuple[str, ...], level: str | None = None, where: str = ""
) -> BrokenPromise:
    """Make the problem that a call breaks ``promise`` of its form.

    ``facts`` are filled into the words of the promise, ``where`` names the tensor, and ``level``
    replaces the form's level if given.
    """
    form = form_of(case)
    rule = f"{FORM}:{case.mode[FORM]}"
    return BrokenPromise(rule, form.clause, level or form.level, promise, facts, where)


def refused(case: Case, error: Exception, where: str) -> Refused:
    """Make the problem of a call that raises ``error`` although it should return.

    ``where`` names the tensor.
    """
    form = form_of(case)
    return Refused(
        class_name(error),
        one_line(error),
        where=where,
        rule=f"{FORM}:{case.mode[FORM]}",
        clause=form.clause,
        level=form.level,
    )


def departure(case: Case, promise: str, facts: tuple[str, ...], where: str = "") -> BrokenPromise:
    """Make the problem that a call breaks ``promise``, and so returns no values.

    It breaks the rule that leaves the values open, if that has a level for what it still requires,
    and else the call's form.
    """
    [*_, branch] = ruling(case).branches
    if isinstance(branch.outcome, Anything) and branch.outcome.level is not None:
        level = branch.outcome.level
        return BrokenPromise(branch.rule, branch.clause, level, promise, facts, where)
    return form_promise(case, promise, facts, where=where)


def wrong_dtype(case: Case, tensor: Tensor) -> tuple[str, tuple[str, str]]:
    """Return the name of the promise that a tensor of a wrong dtype breaks, and its facts.

    The promise is ``converted`` if the tensor still has the source's dtype, else ``dtype``. The
    facts are the tensor's dtype and the target.
    """
    what = "converted" if tensor.dtype == case.source else "dtype"
    return what, (tensor.dtype, case.target)


def no_answer(missing: NoAnswer | Departed) -> dict[str, str]:
    """Describe a missing answer by a dict of one item: its kind, such as ``error``, and why."""
    match missing:
        case Declined():
            kind = "unsupported"
        case Crashed():
            kind = "crashed"
        case Departed(promise):
            return {"departed": words(promise)}
        case Raised() | Malformed():
            kind = "error"
    return {kind: missing.text}
