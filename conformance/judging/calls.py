"""Calls of the documents: the bits of the member that a case asks about, and other promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

import numpy as np

from conformance.judging.answers import (
    Answered,
    Crashed,
    Declined,
    Malformed,
    NoAnswer,
    Raised,
    Unanswered,
    malformed,
)
from oracles.protocol import Bits, Oracle, Returned, Tensor, Unsupported, WithCall
from reports.diff.judgement import Fault
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
from specs.ruling import ruling

OTHER_MEMBERS_HOLD = 3
OTHER_MEMBERS_KEPT = 64
FEW = 4
"""Elements of the tensor with which promises besides values are checked."""
FEATURES = 2
"""How many inputs and outputs a Linear layer has that is run."""

MakeCall = Callable[[Call, Mapping[str, Bits]], Answered[Returned] | NoAnswer]
"""Makes a call on a receiver whose members hold the given bits."""


def answer_of(oracle: Oracle, case: Case, bits: Bits) -> Bits:
    """Ask for a cast, or make the call that the case stands for, and return the answer's bits."""
    if receiver_of(case.document) is None:
        return oracle.cast(case, bits)
    tensor = _asked_member(case, call_by(oracle, case, call_of(case), held_by(case, bits)))
    if tensor.dtype != case.target:
        nothing = " (nothing was converted)" if tensor.dtype == case.source else ""
        message = f"gives {tensor.dtype} instead of {case.target}{nothing}"
        raise malformed(message, _fault_of_dtype(case, message))
    return tensor.bits


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


def requested_calls(
    case: Case, inputs: Bits, tensors: Iterable[Bits]
) -> Iterator[tuple[Call, dict[str, Bits]]]:
    """The calls that judging a case makes, on its inputs, on other tensors, and on a layer."""
    call, receiver = call_of(case), receiver_of(case.document)
    yield call, held_by(case, inputs)
    yield from ((call, held_by(case, tensor)) for tensor in tensors)
    yield call, held_by(case, _few(case, inputs))
    if receiver is not None and receiver.runs is not None and _is_first_member(case):
        for linear in (linear_call(case, case.target, None), _converted_linear(case)):
            yield linear, _linear_parameters(linear)


def call_by(oracle: Oracle, case: Case, call: Call, held: Mapping[str, Bits]) -> Returned:
    """Make a call on a receiver that holds those bits."""
    if not isinstance(oracle, WithCall):
        raise Unsupported(f"{oracle.name} makes no calls of {case.document}")
    returned = oracle.call(case, call, held)
    if not isinstance(returned, Returned):
        raise malformed(f"the answer is {type(returned).__name__}, not a Returned")
    return returned


def call_faults(case: Case, bits: Bits, make: MakeCall) -> Iterator[Fault]:
    """Check what a call promises besides values: device, memory, what it returns, a layer's run."""
    receiver = receiver_of(case.document)
    if receiver is None:
        return
    bits = _few(case, bits)
    held = held_by(case, bits)
    match make(call_of(case), {name: each.copy() for name, each in held.items()}):
        case Answered(returned):
            pass
        case Raised() as raised:
            yield _fault(case, f"asked once more: {raised.text}", kind="error")
            return
        case missing:
            raise Unanswered(missing)
    yield from _form_faults(case, bits, returned)
    if receiver.unchanged is not None:
        yield from _changes(case, held, returned, receiver.unchanged)
    if receiver.runs is not None and _is_first_member(case):
        yield from _run_faults(case, make, receiver.runs)


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
        yield _fault(case, f"gives a tensor on {tensor.device} instead of {form.device_after}")
    if form.shape is not None and tensor.bits.shape != bits.shape:
        yield _fault(case, f"shape {bits.shape} gives shape {tensor.bits.shape}")
    if form.returns is not None and returned.is_receiver != (form.returns.is_ == "receiver"):
        what = "the receiver itself" if returned.is_receiver else "something new"
        yield _fault(case, f"gives {what} back", level=form.returns.level)
        return  # Whose memory it has follows from that.
    # A tensor without elements has no memory to share.
    if form.memory is not None and bits.size:
        if returned.shares_memory and form.memory.is_ == "own":
            yield _fault(case, "gives the receiver's memory, no copy", level=form.memory.level)
        if not returned.shares_memory and form.memory.is_ == "shared":
            message = "gives a copy, not the receiver's memory"
            yield _fault(case, message, level=form.memory.level)


def _changes(
    case: Case, held: Mapping[str, Bits], returned: Returned, promise: PromiseEntry
) -> Iterator[Fault]:
    """Check that the call left its receiver as it was."""
    call = call_of(case)
    for member in call.members:
        after = returned.receiver.get(member.name)
        if after is None:
            raise malformed("the answer does not tell what became of the receiver")
        before, now = f"{member.dtype} on {call.device}", f"{after.dtype} on {after.device}"
        if before != now:
            message = f"the receiver is {now}, it was {before}"
            yield _promise_fault(RECEIVER_UNCHANGED, promise, message)
        elif after.bits.tobytes() != held[member.name].tobytes():
            yield _promise_fault(RECEIVER_UNCHANGED, promise, "the receiver holds other bits")


def _run_faults(case: Case, make: MakeCall, promise: PromiseEntry) -> Iterator[Fault]:
    """Check that a Linear layer is converted, takes inputs of both dtypes, and returns the new one.

    Not every framework computes in every dtype. A backend that cannot run a Linear created in the
    target's dtype is not asked to run one that was converted to it.
    """

    def run(call: Call) -> Answered[Returned] | NoAnswer:
        return make(call, _linear_parameters(call))

    native = _survived(run(linear_call(case, case.target, None)))
    output = native.value.outputs.get(case.target) if isinstance(native, Answered) else None
    if not isinstance(output, Tensor) or output.dtype != case.target:
        return
    call = _converted_linear(case)
    match _survived(run(call)):
        case Answered(found):
            pass
        case Declined():
            return
        case Raised(text=text) | Malformed(text=text):
            yield _promise_fault(LAYER_RUNS, promise, f"a Linear of {case.source}: {text}")
            return
    for name in LINEAR_PARAMETERS:
        after = found.receiver.get(name)
        if after is None or after.dtype != case.target:
            has = after.dtype if after is not None else "lost"
            message = f"the {name} of a Linear is {has} instead of {case.target}"
            yield _promise_fault(LAYER_RUNS, promise, message)
    for dtype in call.inputs:
        result = found.outputs.get(dtype, "no output")
        if isinstance(result, str):
            message = f"a Linear takes no input of {dtype} afterwards: {result}"
        elif result.dtype != case.target:
            message = f"a Linear gives {result.dtype} instead of {case.target} for {dtype}"
        else:
            continue
        yield _promise_fault(LAYER_RUNS, promise, message)


def _converted_linear(case: Case) -> Call:
    return linear_call(case, case.source, call_of(case).method)


def _linear_parameters(call: Call) -> dict[str, Bits]:
    shapes = {"weight": (FEATURES, FEATURES), "bias": (FEATURES,)}
    storage = format_named(call.members[0].dtype).storage
    return {name: np.zeros(shapes[name], storage) for name in LINEAR_PARAMETERS}


def _survived(
    answer: Answered[Returned] | NoAnswer,
) -> Answered[Returned] | Declined | Raised | Malformed:
    """The answer of a process that is still alive."""
    if isinstance(answer, Crashed):
        raise Unanswered(answer)
    return answer


def _asked_member(case: Case, returned: Returned) -> Tensor:
    """The tensor of the member that the case asks about."""
    name = member_of(case)
    found = returned.tensors
    if name and not found and form_of(case).returns is None:
        # Where nothing is returned and no return value is promised, the layer changed in place.
        found = returned.receiver
    if name not in found:
        message = f"gives no {name or 'tensor'} back"
        raise malformed(message, _fault(case, message))
    return found[name]


def _fault(case: Case, message: str, kind: str = "answer", level: str | None = None) -> Fault:
    form = form_of(case)
    rule = f"{FORM}:{case.mode[FORM]}"
    return Fault(kind, rule, form.clause, level or form.level, message)


def _fault_of_dtype(case: Case, message: str) -> Fault:
    """A wrong dtype breaks the form's promise, or the rule that leaves the values open."""
    [*_, branch] = ruling(case).branches
    if isinstance(branch.outcome, Anything) and branch.outcome.level is not None:
        return Fault("answer", branch.rule, branch.clause, branch.outcome.level, message)
    return _fault(case, message)


def _promise_fault(rule: str, promise: PromiseEntry, message: str) -> Fault:
    return Fault("answer", rule, promise.clause, promise.level, message)
