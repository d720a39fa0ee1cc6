"""Answers to a case's call: the bits of the member that is asked about, and what else came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from conformance.judging.answer_form import AnswerError, described
from oracles.protocol import Bits, Oracle, Returned, Tensor, Unsupported, WithCall
from reports.diff.judgement import Fault
from specs.bitcast_shapes import read_shape
from specs.calls import FORM, Call
from specs.case_calls import LINEAR, call_of, form_of, linear_call, member_of, receiver_of
from specs.cases import Case
from specs.formats import format_named
from specs.model.document import LAYER_RUNS, RECEIVER_UNCHANGED, PromiseEntry
from specs.outcomes import Anything
from specs.ruling import ruling

OTHER_MEMBERS_HOLD = 3
FEATURES = 2
"""How many inputs and outputs a Linear layer has that is run."""

Made = Callable[[Call, Mapping[str, Bits]], Returned]
"""Makes a call on a receiver that holds those bits."""


class DepartedError(Exception):
    """A call gave something of another dtype than its form asks for."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def answer_of(oracle: Oracle, case: Case, bits: Bits) -> Bits:
    """An oracle's answer to a case, by a cast, or by the call that the case stands for."""
    if receiver_of(case.document) is None:
        return oracle.cast(case, bits)
    tensor = _looked_at(case, call_by(oracle, case, call_of(case), held_by(case, bits)))
    if tensor.dtype != case.target:
        nothing = " (nothing was converted)" if tensor.dtype == case.source else ""
        message = f"gives {tensor.dtype} instead of {case.target}{nothing}"
        raise DepartedError(_fault_of_dtype(case, message))
    return tensor.bits


def held_by(case: Case, bits: Bits) -> dict[str, Bits]:
    """What the members of a case's receiver hold: the bits, and threes in all others."""
    return {
        member.name: bits
        if member.name == member_of(case)
        else np.full(bits.shape, OTHER_MEMBERS_HOLD, format_named(member.dtype).storage)
        for member in call_of(case).members
    }


def call_by(oracle: Oracle, case: Case, call: Call, held: Mapping[str, Bits]) -> Returned:
    """What a call gives on a receiver that holds those bits."""
    if not isinstance(oracle, WithCall):
        raise Unsupported(f"{oracle.name} makes no calls of {case.document}")
    returned = oracle.call(case, call, held)
    if not isinstance(returned, Returned):
        raise AnswerError(f"the answer is {type(returned).__name__}, not a Returned")
    return returned


def call_faults(case: Case, bits: Bits, make: Made) -> Iterator[Fault]:
    """What is wrong besides values: the device, who comes back, whether a layer runs."""
    receiver = receiver_of(case.document)
    if receiver is None:
        return
    shape = form_of(case).shape
    if shape is not None:
        bits = np.resize(bits, read_shape(shape))
    held = held_by(case, bits)
    try:
        returned = make(call_of(case), {name: each.copy() for name, each in held.items()})
    except (Unsupported, AnswerError):
        raise
    except Exception as error:
        yield _fault(case, f"asked once more: {described(error)}", kind="error")
        return
    yield from _form_faults(case, bits, returned)
    if receiver.unchanged is not None:
        yield from _changes(case, held, returned, receiver.unchanged)
    if receiver.runs is not None and member_of(case) == next(iter(receiver.members)):
        yield from _run_faults(case, make, receiver.runs)


def _form_faults(case: Case, bits: Bits, returned: Returned) -> Iterator[Fault]:
    """What the form of a call promises beside the dtype."""
    form, tensor = form_of(case), _looked_at(case, returned)
    if tensor.device != form.device_after:
        yield _fault(case, f"gives a tensor on {tensor.device} instead of {form.device_after}")
    if form.shape is not None and tensor.bits.shape != bits.shape:
        yield _fault(case, f"shape {bits.shape} gives shape {tensor.bits.shape}")
    if form.returns is not None and returned.is_receiver != (form.returns.is_ == "receiver"):
        given = "the receiver itself" if returned.is_receiver else "something new"
        yield _fault(case, f"gives {given} back", level=form.returns.level)
        return  # its memory follows from that
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
    """What the call did to the tensor that it was made on, which is to stay as it was."""
    call = call_of(case)
    for member in call.members:
        after = returned.receiver.get(member.name)
        if after is None:
            raise AnswerError("the answer does not tell what became of the receiver")
        was, now = (member.dtype, call.device), (after.dtype, after.device)
        if was != now:
            yield _promise_fault(
                RECEIVER_UNCHANGED, promise, f"the receiver is {_on(*now)}, it was {_on(*was)}"
            )
        elif after.bits.tobytes() != held[member.name].tobytes():
            yield _promise_fault(RECEIVER_UNCHANGED, promise, "the receiver holds other bits")


def _on(dtype: str, device: str) -> str:
    return f"{dtype} on {device}"


def _run_faults(case: Case, make: Made, promise: PromiseEntry) -> Iterator[Fault]:
    """Whether a Linear layer has converted, takes inputs of both dtypes, and what it gives.

    Not every framework computes in every dtype. So one that cannot run a Linear that was made in
    the target's dtype is not asked to run one that was converted to it.
    """

    def made(call: Call) -> Returned:
        shapes = {"weight": (FEATURES, FEATURES), "bias": (FEATURES,)}
        storage = format_named(call.members[0].dtype).storage
        return make(call, {name: np.zeros(shapes[name], storage) for name in LINEAR})

    try:
        native = made(linear_call(case, case.target, None)).outputs.get(case.target)
    except Exception:
        return
    if not isinstance(native, Tensor) or native.dtype != case.target:
        return
    call = linear_call(case, case.source, call_of(case).method)
    try:
        found = made(call)
    except Unsupported:
        return
    except Exception as error:
        yield _promise_fault(LAYER_RUNS, promise, f"a Linear of {case.source}: {described(error)}")
        return
    for name in LINEAR:
        after = found.receiver.get(name)
        if after is None or after.dtype != case.target:
            has = after.dtype if after is not None else "lost"
            message = f"the {name} of a Linear is {has} instead of {case.target}"
            yield _promise_fault(LAYER_RUNS, promise, message)
    for dtype in call.inputs:
        output = found.outputs.get(dtype, "no output")
        if isinstance(output, str):
            message = f"a Linear takes no input of {dtype} afterwards: {output}"
        elif output.dtype != case.target:
            message = f"a Linear gives {output.dtype} instead of {case.target} for {dtype}"
        else:
            continue
        yield _promise_fault(LAYER_RUNS, promise, message)


def _looked_at(case: Case, returned: Returned) -> Tensor:
    name = member_of(case)
    found = returned.tensors
    if name and not found and form_of(case).returns is None:
        # A layer is changed where it stands if nothing comes back and nothing is promised to.
        found = returned.receiver
    if name not in found:
        raise DepartedError(_fault(case, f"gives no {name or 'tensor'} back"))
    return found[name]


def _fault(case: Case, message: str, kind: str = "answer", level: str | None = None) -> Fault:
    form = form_of(case)
    rule = f"{FORM}:{case.mode[FORM]}"
    return Fault(kind, rule, form.clause, level or form.level, message)


def _fault_of_dtype(case: Case, message: str) -> Fault:
    """The form promises the dtype, unless the rule that leaves the values open says it itself."""
    [*_, branch] = ruling(case).branches
    if isinstance(branch.outcome, Anything) and branch.outcome.level is not None:
        return Fault("answer", branch.rule, branch.clause, branch.outcome.level, message)
    return _fault(case, message)


def _promise_fault(rule: str, promise: PromiseEntry, message: str) -> Fault:
    return Fault("answer", rule, promise.clause, promise.level, message)
