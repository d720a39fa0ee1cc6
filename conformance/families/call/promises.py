"""Judges what documents promise of calls besides values: device, memory, receiver, other members.

Each call is made again on a few elements in tensors of several ranks. A layer is made with members
of one other dtype, as for its values, and with members of several, some of the target's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

import numpy as np

from conformance.families.call.members import telling_bits, telling_members, wrong_conversion
from conformance.judging.asking import Ask, ask
from conformance.judging.probe import Probe
from conformance.judging.values import (
    DepartedError,
    asked_member,
    form_promise,
    held_by,
    members_after,
    refused,
)
from oracles.backend.replies import (
    Answered,
    Crashed,
    Declined,
    Malformed,
    Raised,
    Reply,
    Unanswered,
    class_name,
    malformed,
    one_line,
)
from oracles.backend.requests import MakeCall
from oracles.protocol import Bits, Returned, Tensor
from reports.problems import BrokenPromise, Fault, Refused, Unoffered, WrongShape
from specs.case_calls import (
    LINEAR_PARAMETERS,
    call_of,
    case_of_member,
    form_of,
    linear_call,
    member_of,
    mixed_call,
    receiver_of,
)
from specs.cases import FORM, Call, Case, parse_shape
from specs.editions import tensor_rule
from specs.model.document import LAYER_RUNS, RECEIVER_UNCHANGED, PromiseEntry, ReceiverEntry
from specs.plain_text import plain_line

FEW = 4
"""Elements of the tensor with which promises besides values are checked first."""
FURTHER_SHAPES: tuple[tuple[int, ...], ...] = ((), (2, 2), (0,), (2, 1, 2))
"""Shapes of other tensors with which promises are checked, if the document keeps the shape."""
LONG = 4099
"""Elements of a longer row, which holds every kind of value."""
UNUSUAL = (
    Probe((2, 3), order=(1, 0)), Probe((3,), steps=(2,)), Probe((2, 2), offset=1),
    Probe((3, 2), steps=(2, 1)), Probe((2, 3), steps=(1, 0)), Probe((3,), steps=(-1,)),
)  # fmt: skip
"""Unusual layouts; the id of each case chooses one of them."""
MIXED = "a layer of several dtypes"


@dataclass(frozen=True)
class _CallTrial:
    """A call on a receiver whose members hold ``held``, in tensors of one shape.

    ``where`` says what is special about these tensors. If the call ``is_mixed``, the members have
    several dtypes.
    """

    call: Call
    held: Mapping[str, Bits]
    shape: tuple[int, ...]
    where: str = ""
    is_mixed: bool = False


def promises(
    case: Case, bits: Bits, telling: Bits, has_right_values: bool
) -> Ask[list[Fault | Unoffered]]:
    """Check what a call promises besides the values of its case; return the faults.

    The call is made on a few of ``bits``, and on a long row that repeats ``telling``. If the case
    ``has_right_values``, the values must be right here too. A promise broken in several tensors is
    one fault. An ``Unoffered`` stands for a promise that is not judged, because the backend
    declines what it needs. Raises ``Unanswered`` if the first call is declined, or one crashes or
    gets a malformed answer, and DepartedError if the first call returns no values.
    """
    receiver = receiver_of(case.document)
    if receiver is None:
        return []
    first, *further = _trials(case, bits[:FEW], telling)
    replies = yield [MakeCall(case, each.call, each.held) for each in (first, *further)]
    match replies[0]:
        case Answered(returned):
            found = [*_faults(case, receiver, first, returned, has_right_values)]
        case Raised(error):
            return [refused(case, error, "asked once more")]
        case missing:
            raise Unanswered(missing)
    for trial, reply in zip(further, replies[1:], strict=True):
        found += _further_faults(case, receiver, trial, reply, has_right_values)
    once: dict[tuple[str, str], Fault | Unoffered] = {
        subject_of(each): each for each in reversed(found)
    }
    faults = [*once.values()][::-1]
    if receiver.runs is not None and member_of(case) == next(iter(receiver.members)):
        faults += yield from run_faults(case, receiver.runs)
    return faults


def _trials(case: Case, few: Bits, telling: Bits) -> Iterator[_CallTrial]:
    """Yield the calls to make: the case's own, and others in which frameworks may differ.

    These are in other shapes, in a longer row that repeats ``telling``, in an unusual layout, and
    for a layer with members of several dtypes.
    """
    form, call = form_of(case), call_of(case)
    row = few if form.shape is None else np.resize(few, parse_shape(form.shape))
    yield _CallTrial(call, held_by(case, row), row.shape)
    for shape in FURTHER_SHAPES:
        if tensor_rule(case.document, case.version, shape).keeps_shape:
            # The last element first, because the first of all inputs is often zero.
            held = held_by(case, np.resize(few[::-1], shape))
            yield _CallTrial(call, held, shape, f"shape {shape}")
    if form.shape is None and tensor_rule(case.document, case.version, (LONG,)).keeps_shape:
        yield _CallTrial(call, held_by(case, np.resize(telling, LONG)), (LONG,), f"length {LONG}")
    laid = UNUSUAL[crc32(case.id.encode()) % len(UNUSUAL)]
    if tensor_rule(case.document, case.version, laid.shape).keeps_shape:
        bits = laid.tensor(few[::-1])
        yield _CallTrial(call, held_by(case, bits), laid.shape, str(laid))
    if member_of(case):
        call = mixed_call(case)
        yield _CallTrial(call, telling_members(call, row.shape), row.shape, MIXED, is_mixed=True)


def subject_of(fault: Fault | Unoffered) -> tuple[str, str]:
    """Return the rule and the promise that a fault breaks; faults are alike if these are equal."""
    promise = fault.promise if isinstance(fault, BrokenPromise) else ""
    return getattr(fault, "rule", ""), promise


def _further_faults(
    case: Case, receiver: ReceiverEntry, trial: _CallTrial, reply: Reply, has_right_values: bool
) -> Iterator[Fault]:
    match reply:
        case Answered(returned):
            pass
        case Crashed() | Malformed():
            raise Unanswered(reply)
        case Raised(error) if trial.is_mixed:
            yield refused(case, error, trial.where)
            return
        case _:
            return  # Values are asked in these shapes, too, and tell of errors.
    try:
        for fault in _faults(case, receiver, trial, returned, has_right_values):
            yield replace(fault, where=trial.where) if isinstance(fault, BrokenPromise) else fault
    except DepartedError as departed:
        yield replace(departed.promise, where=trial.where)


def _faults(
    case: Case,
    receiver: ReceiverEntry,
    trial: _CallTrial,
    returned: Returned,
    has_right_values: bool,
) -> Iterator[Fault]:
    """Yield what is wrong about the result of one call: its form, the receiver, or a member.

    Raises DepartedError if the member that the case judges is missing, and ``Unanswered`` if the
    receiver lacks one.
    """
    yield from form_faults(case, trial.shape, returned)
    if receiver.unchanged is not None:
        yield from receiver_changes(trial.call, trial.held, returned, receiver.unchanged)
    after = members_after(case, returned)
    for member in trial.call.members:
        is_other = member.name != member_of(case)
        own = case_of_member(case, member.name, member.dtype)
        bits = trial.held[member.name]
        if not (is_other or trial.is_mixed):
            if not has_right_values:
                continue  # Its values are judged with all inputs, and found wrong there.
            given = after.get(member.name)
            if given is None or (given.dtype, given.bits.shape) != (own.target, bits.shape):
                continue  # Its dtype and shape are judged in other tensors.
        wrong = wrong_conversion(own, bits, after, member.name, trial.where, is_other)
        if wrong is not None:
            yield wrong


def broken_promises(case: Case, bits: Bits, returned: Returned) -> Iterator[BrokenPromise]:
    """Yield the promises that a call on these bits breaks, besides values, dtype and shape.

    Raises DepartedError if the member that the case judges is missing, and ``Unanswered`` if the
    receiver lacks one.
    """
    receiver = receiver_of(case.document)
    assert receiver is not None
    for fault in form_faults(case, bits.shape, returned):
        if isinstance(fault, BrokenPromise):
            yield fault
    if receiver.unchanged is not None:
        held = held_by(case, bits)
        yield from receiver_changes(call_of(case), held, returned, receiver.unchanged)


def form_faults(
    case: Case, shape: tuple[int, ...], returned: Returned
) -> Iterator[BrokenPromise | WrongShape]:
    """Yield what a result breaks of its form's promises: device, shape, return value and memory.

    ``shape`` is that of the tensor before the call. Raises DepartedError if the member that the
    case judges is missing.
    """
    form, tensor = form_of(case), asked_member(case, returned)
    if tensor.device != form.device_after:
        yield form_promise(case, "device", (tensor.device, form.device_after))
    if form.shape is not None and tensor.bits.shape != shape:
        rule = f"{FORM}:{case.mode[FORM]}"
        yield WrongShape(rule, form.clause, form.level, shape, tensor.bits.shape)
    if form.returns is not None and returned.is_receiver != (form.returns.is_ == "receiver"):
        what = "the receiver itself" if returned.is_receiver else "something new"
        yield form_promise(case, "returned", (what,), form.returns.level)
        return  # Whose memory it has follows from that.
    # A tensor without elements has no memory to share.
    if form.memory is not None and 0 not in shape:
        if returned.shares_memory and form.memory.is_ == "own":
            yield form_promise(case, "own memory", (), form.memory.level)
        if not returned.shares_memory and form.memory.is_ == "shared":
            yield form_promise(case, "shared memory", (), form.memory.level)


def receiver_changes(
    call: Call, held: Mapping[str, Bits], returned: Returned, promise: PromiseEntry
) -> Iterator[BrokenPromise]:
    """Yield each change of a receiver that the call promises to leave as it was.

    ``held`` has the members' bits before the call. Raises ``Unanswered`` if the answer lacks a
    member of the receiver.
    """
    broken = partial(BrokenPromise, RECEIVER_UNCHANGED, promise.clause, promise.level)
    for member in call.members:
        after, bits = returned.receiver.get(member.name), held[member.name]
        if after is None:
            raise malformed("the answer does not tell what became of the receiver")
        before, now = f"{member.dtype} on {call.device}", f"{after.dtype} on {after.device}"
        if before != now:
            yield broken("receiver", (now, before))
        elif after.bits.shape != bits.shape:
            yield broken("receiver's shape", (str(after.bits.shape), str(bits.shape)))
        elif after.bits.tobytes() != bits.tobytes():
            yield broken("receiver's bits")


FEATURES = 2
"""How many inputs and outputs a Linear layer has that is run."""


def run_faults(case: Case, promise: PromiseEntry) -> Ask[list[Fault | Unoffered]]:
    """Check that a converted Linear layer takes inputs of both dtypes, and returns the new one.

    Return the faults. If the backend cannot run a Linear that is created in the target's dtype, or
    declines to run this one, return an ``Unoffered`` with the reason instead: not every framework
    computes in every dtype. Raises ``Unanswered`` if the backend crashes, or if the bits of a
    converted parameter are malformed.
    """

    def run(call: Call) -> Ask[Answered[Returned] | Declined | Raised | Malformed]:
        return _survived((yield from ask(MakeCall(case, call, _linear_parameters(call)))))

    native = yield from run(linear_call(case, case.target, None))
    output = native.value.outputs.get(case.target) if isinstance(native, Answered) else None
    if not isinstance(output, Tensor) or output.dtype != case.target:
        return [_not_run(f"a Linear of {case.target}", native, output)]
    named = {"rule": LAYER_RUNS, "clause": promise.clause, "level": promise.level}
    call = linear_call(case, case.source, call_of(case).method)
    parameters = _linear_parameters(call)
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
    wrong: list[BrokenPromise | None] = []
    for name in LINEAR_PARAMETERS:
        after = found.receiver.get(name)
        if after is None or after.dtype != case.target:
            facts = (name, after.dtype if after is not None else "lost", case.target)
            faults.append(BrokenPromise(**named, promise="layer's parameter", facts=facts))
            continue
        own = case_of_member(case, name, case.source)
        wrong.append(wrong_conversion(own, parameters[name], found.receiver, name, "a Linear"))
    faults += [each for each in wrong if each is not None][:1]
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
    """Return the remark that it is not judged whether ``layer`` runs, with the reason.

    The reason is the layer's ``output``, or the reply that came instead of an answer.
    """
    if isinstance(output, Tensor):
        why = f"gives {output.dtype}"
    else:
        why = (output or "no output") if isinstance(reply, Answered) else reply.text
    return Unoffered(plain_line(f"{layer} does not run: {why}"), f"{LAYER_RUNS} is not judged")


def _layer_error(promise: PromiseEntry, where: str, error: str, line: str) -> Refused:
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
    return {each.name: telling_bits(each.dtype, shapes[each.name]) for each in call.members}


def _survived(reply: Reply) -> Answered[Returned] | Declined | Raised | Malformed:
    if isinstance(reply, Crashed):
        raise Unanswered(reply)
    return reply
