"""Values of a case, by a cast or by the calls of its document, and what calls promise besides.

A document of calls is asked by making its calls: what a call returns contains the answer's bits,
and everything else that the document promises (device, memory, the receiver afterwards).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from conformance.kinds.asking import Ask, ask
from oracles.backend.replies import (
    Answer,
    Answered,
    BatchReply,
    Crashed,
    Declined,
    Malformed,
    Raised,
    Reply,
    Unanswered,
    attempt,
    checked,
    class_name,
    malformed,
    one_line,
    value_of,
)
from oracles.backend.requests import Cast, CastBatch, MakeCall, Request
from oracles.protocol import Bits, Returned, Tensor
from oracles.tensor_batch import TensorBatch
from reports.problems import BrokenPromise, Fault, Refused, Unoffered, WrongShape
from specs.bitcast_shapes import parse_shape
from specs.calls import FORM, Call
from specs.case_calls import (
    LINEAR_PARAMETERS,
    call_of,
    form_of,
    linear_call,
    member_of,
    receiver_of,
)
from specs.cases import Case
from specs.formats import format_named
from specs.model.document import LAYER_RUNS, RECEIVER_UNCHANGED, PromiseEntry
from specs.outcomes import Anything
from specs.plain_text import plain_line
from specs.ruling import ruling

OTHER_MEMBERS_HOLD = 3
OTHER_MEMBERS_KEPT = 64
FEW = 4
"""Elements of the tensor with which promises besides values are checked."""
FEATURES = 2
"""How many inputs and outputs a Linear layer has that is run."""


@dataclass(frozen=True)
class Departed:
    """A call returned something else than the document promises, so that no values came."""

    promise: BrokenPromise


ValueAnswer = Answer | Departed
"""The answer to a request for values, by a cast or by a call."""


class DepartedError(Exception):
    """Carries a broken promise to where it becomes a problem."""

    def __init__(self, promise: BrokenPromise) -> None:
        super().__init__(promise.promise)
        self.promise = promise


def values_of(answer: ValueAnswer) -> Bits:
    """The values of an answer; raise ``Unanswered`` or DepartedError if there are none."""
    if isinstance(answer, Departed):
        raise DepartedError(answer.promise)
    return value_of(answer)


def value_request(case: Case, bits: Bits) -> Cast | MakeCall:
    """The request for the values of a case: a cast, or the call that the case stands for."""
    if receiver_of(case.document) is None:
        return Cast(case, bits)
    return MakeCall(case, call_of(case), held_by(case, bits))


def value_answer(case: Case, bits: Bits, reply: Reply) -> ValueAnswer:
    """The answer that a reply to ``value_request`` contains."""
    if receiver_of(case.document) is None or not isinstance(reply, Answered):
        return reply
    try:
        tensor = _asked_member(case, reply.value)
        if tensor.dtype != case.target:
            is_same = tensor.dtype == case.source
            what, facts = "converted" if is_same else "dtype", (tensor.dtype, case.target)
            return Departed(_departure(case, what, facts))
    except DepartedError as departed:
        return Departed(departed.promise)
    return attempt(partial(checked, format_named(case.target), bits, tensor.bits))


def ask_values(case: Case, bits: Bits) -> Ask[ValueAnswer]:
    """Request the values of one tensor."""
    return value_answer(case, bits, (yield from ask(value_request(case, bits))))


def batch_requests(case: Case, batch: TensorBatch) -> list[Request]:
    """The requests for the values of many tensors; none if there are no tensors."""
    if not batch.shapes:
        return []
    if receiver_of(case.document) is None:
        return [CastBatch(case, batch)]
    return [value_request(case, tensor) for tensor in batch.tensors()]


def batch_answers(
    case: Case, batch: TensorBatch, replies: Sequence[Reply]
) -> Iterator[ValueAnswer]:
    """Yield the answer to each tensor from the replies to ``batch_requests``.

    They end after the first tensor of a cast that was neither answered nor declined.
    """
    if receiver_of(case.document) is not None:
        for tensor, reply in zip(batch.tensors(), replies, strict=True):
            yield value_answer(case, tensor, reply)
        return
    for reply in replies:
        if isinstance(reply, Answered):
            whole: BatchReply = reply.value
            yield from whole.each()
        else:
            yield reply


def held_by(case: Case, bits: Bits) -> dict[str, Bits]:
    """Fill the members of a case's receiver: the bits in the one asked about, 3 elsewhere."""
    return {
        member.name: bits
        if member.name == member_of(case)
        else _other_member(bits.shape, format_named(member.dtype).storage)
        for member in call_of(case).members
    }


@lru_cache(OTHER_MEMBERS_KEPT)
def _other_member(shape: tuple[int, ...], storage: str) -> Bits:
    """The bits of a member that is not asked about; one array for all cases, sent once."""
    filled: Bits = np.full(shape, OTHER_MEMBERS_HOLD, storage)
    filled.flags.writeable = False
    return filled


def promises(case: Case, bits: Bits) -> Ask[list[Fault | Unoffered]]:
    """Check what a call promises besides values: device, memory, what it returns, a layer's run.

    What the backend declines is said, because that promise is not judged. Raises ``Unanswered`` if
    an answer is missing that is no fault.
    """
    receiver = receiver_of(case.document)
    if receiver is None:
        return []
    bits = _few(case, bits)
    held = held_by(case, bits)
    match (yield from ask(MakeCall(case, call_of(case), held))):
        case Answered(returned):
            pass
        case Raised(error):
            return [_once_more(case, error)]
        case missing:
            raise Unanswered(missing)
    faults: list[Fault | Unoffered] = [*_form_faults(case, bits, returned)]
    if receiver.unchanged is not None:
        faults += _changes(case, held, returned, receiver.unchanged)
    if receiver.runs is not None and _is_first_member(case):
        faults += yield from _run_faults(case, receiver.runs)
    return faults


def _once_more(case: Case, error: Exception) -> Refused:
    """The fault of a call that raises an error although it returned before."""
    form = form_of(case)
    return Refused(
        class_name(error),
        one_line(error),
        where="asked once more",
        rule=f"{FORM}:{case.mode[FORM]}",
        clause=form.clause,
        level=form.level,
    )


def _few(case: Case, bits: Bits) -> Bits:
    """A few bits for what a call promises besides values, in the shape that its form names."""
    shape = form_of(case).shape
    few = bits[:FEW]
    return few if shape is None else np.resize(few, parse_shape(shape))


def _is_first_member(case: Case) -> bool:
    receiver = receiver_of(case.document)
    return receiver is not None and member_of(case) == next(iter(receiver.members))


def _form_faults(case: Case, bits: Bits, returned: Returned) -> Iterator[Fault]:
    """Check what the form of a call promises besides the dtype."""
    form, tensor = form_of(case), _asked_member(case, returned)
    if tensor.device != form.device_after:
        yield _promise(case, "device", (tensor.device, form.device_after))
    if form.shape is not None and tensor.bits.shape != bits.shape:
        rule = f"{FORM}:{case.mode[FORM]}"
        yield WrongShape(rule, form.clause, form.level, bits.shape, tensor.bits.shape)
    if form.returns is not None and returned.is_receiver != (form.returns.is_ == "receiver"):
        what = "the receiver itself" if returned.is_receiver else "something new"
        yield _promise(case, "returned", (what,), form.returns.level)
        return  # Whose memory it has follows from that.
    # A tensor without elements has no memory to share.
    if form.memory is not None and bits.size:
        if returned.shares_memory and form.memory.is_ == "own":
            yield _promise(case, "own memory", (), form.memory.level)
        if not returned.shares_memory and form.memory.is_ == "shared":
            yield _promise(case, "shared memory", (), form.memory.level)


def _changes(
    case: Case, held: Mapping[str, Bits], returned: Returned, promise: PromiseEntry
) -> Iterator[Fault]:
    """Check that the call left its receiver as it was."""
    call = call_of(case)
    broken = partial(BrokenPromise, RECEIVER_UNCHANGED, promise.clause, promise.level)
    for member in call.members:
        after = returned.receiver.get(member.name)
        if after is None:
            raise malformed("the answer does not tell what became of the receiver")
        before, now = f"{member.dtype} on {call.device}", f"{after.dtype} on {after.device}"
        if before != now:
            yield broken("receiver", (now, before))
        elif after.bits.tobytes() != held[member.name].tobytes():
            yield broken("receiver's bits")


def _run_faults(case: Case, promise: PromiseEntry) -> Ask[list[Fault | Unoffered]]:
    """Check that a Linear layer is converted, takes inputs of both dtypes, and returns the new one.

    Not every framework computes in every dtype. A backend that cannot run a Linear created in the
    target's dtype is not asked to run one that was converted to it.
    """

    def run(call: Call) -> Ask[Answered[Returned] | Declined | Raised | Malformed]:
        return _survived((yield from ask(MakeCall(case, call, _linear_parameters(call)))))

    native = yield from run(linear_call(case, case.target, None))
    output = native.value.outputs.get(case.target) if isinstance(native, Answered) else None
    if not isinstance(output, Tensor) or output.dtype != case.target:
        return [_not_run(f"a Linear of {case.target}", native, output)]
    named = {"rule": LAYER_RUNS, "clause": promise.clause, "level": promise.level}
    call = linear_call(case, case.source, call_of(case).method)
    match (yield from run(call)):
        case Answered(found):
            pass
        case Declined() as declined:
            return [_not_run(f"a Linear of {case.source}", declined)]
        case Raised(error):
            where = f"a Linear of {case.source}"
            return [_layer_error(promise, where, class_name(error), one_line(error))]
        case Malformed(text):
            return [BrokenPromise(**named, promise="layer", facts=(case.source, text))]
    faults: list[Fault | Unoffered] = []
    for name in LINEAR_PARAMETERS:
        after = found.receiver.get(name)
        if after is None or after.dtype != case.target:
            facts = (name, after.dtype if after is not None else "lost", case.target)
            faults.append(BrokenPromise(**named, promise="layer's parameter", facts=facts))
    for dtype in call.inputs:
        result = found.outputs.get(dtype, "no output")
        if isinstance(result, str):
            where = f"a Linear takes no input of {dtype} afterwards"
            kind, _, line = result.partition(": ")
            if line and kind.isidentifier():
                faults.append(_layer_error(promise, where, kind, line))
            else:
                faults.append(
                    BrokenPromise(**named, promise="layer's input", facts=(dtype, result))
                )
        elif result.dtype != case.target:
            facts = (result.dtype, case.target, dtype)
            faults.append(BrokenPromise(**named, promise="layer's output", facts=facts))
    return faults


def _not_run(layer: str, reply: Reply, output: Tensor | str | None = None) -> Unoffered:
    """Why the promise that a layer runs is not judged."""
    if isinstance(output, Tensor):
        why = f"gives {output.dtype}"
    else:
        why = (output or "no output") if isinstance(reply, Answered) else reply.text
    return Unoffered(plain_line(f"{layer} does not run: {why}"), f"{LAYER_RUNS} is not judged")


def _layer_error(promise: PromiseEntry, where: str, error: str, line: str) -> Refused:
    """The fault of an error that a layer raises when it is run."""
    return Refused(
        error,
        line,
        where=where,
        rule=LAYER_RUNS,
        clause=promise.clause,
        level=promise.level,
        kind="answer",
    )


def _linear_parameters(call: Call) -> dict[str, Bits]:
    shapes = {"weight": (FEATURES, FEATURES), "bias": (FEATURES,)}
    storage = format_named(call.members[0].dtype).storage
    return {name: np.zeros(shapes[name], storage) for name in LINEAR_PARAMETERS}


def _survived(reply: Reply) -> Answered[Returned] | Declined | Raised | Malformed:
    """The reply of a process that is still alive."""
    if isinstance(reply, Crashed):
        raise Unanswered(reply)
    return reply


def _asked_member(case: Case, returned: Returned) -> Tensor:
    """The tensor of the member that the case is about; raise DepartedError if there is none."""
    name = member_of(case)
    found = returned.tensors
    if name and not found and form_of(case).returns is None:
        # Where nothing is returned and no return value is promised, the layer changed in place.
        found = returned.receiver
    if name not in found:
        raise DepartedError(_promise(case, "member", (name or "tensor",)))
    return found[name]


def _promise(
    case: Case, promise: str, facts: tuple[str, ...], level: str | None = None
) -> BrokenPromise:
    """A broken promise of a call's form."""
    form = form_of(case)
    rule = f"{FORM}:{case.mode[FORM]}"
    return BrokenPromise(rule, form.clause, level or form.level, promise, facts)


def _departure(case: Case, promise: str, facts: tuple[str, ...]) -> BrokenPromise:
    """A wrong dtype breaks the form's promise, or the rule that leaves the values open."""
    [*_, branch] = ruling(case).branches
    if isinstance(branch.outcome, Anything) and branch.outcome.level is not None:
        return BrokenPromise(branch.rule, branch.clause, branch.outcome.level, promise, facts)
    return _promise(case, promise, facts)
