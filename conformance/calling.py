"""Answers to a case's call: the bits of the member that is asked about, and what else came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from conformance.form import AnswerError, described
from oracles.protocol import Bits, Oracle, Returned, Tensor, Unsupported, WithCall
from reports.judgement import Fault
from specs.calling import call_of, form_of, member_of, receiver_of
from specs.calls import FORM
from specs.cases import Case
from specs.formats import format_named

OTHER_MEMBERS_HOLD = 3


class DepartedError(Exception):
    """A call gave something of another dtype than its form asks for."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def answer_of(oracle: Oracle, case: Case, bits: Bits) -> Bits:
    """An oracle's answer to a case, by a cast, or by the call that the case stands for."""
    if receiver_of(case.document) is None:
        return oracle.cast(case, bits)
    tensor = _looked_at(case, returned_by(oracle, case, bits))
    if tensor.dtype != case.target:
        nothing = " (nothing was converted)" if tensor.dtype == case.source else ""
        raise DepartedError(_fault(case, f"gives {tensor.dtype} instead of {case.target}{nothing}"))
    return tensor.bits


def call_faults(case: Case, give: Callable[[], Returned]) -> Iterator[Fault]:
    """What is wrong besides values: the device, who comes back, whether a layer runs."""
    receiver = receiver_of(case.document)
    if receiver is None:
        return
    form = form_of(case)
    try:
        returned = give()
    except (Unsupported, AnswerError):
        raise
    except Exception as error:
        yield _fault(case, f"asked once more: {described(error)}", "error")
        return
    device = _looked_at(case, returned).device
    if device != form.device_after:
        yield _fault(case, f"gives a tensor on {device} instead of {form.device_after}")
    if form.returns != "unspecified" and returned.is_receiver != (form.returns == "receiver"):
        given = "the receiver itself" if returned.is_receiver else "something new"
        yield _fault(case, f"gives {given} back")
    if receiver.runs != "unspecified" and isinstance(returned.run, str):
        yield Fault("answer", "layer-runs", form.clause, receiver.runs, returned.run)


def returned_by(oracle: Oracle, case: Case, bits: Bits) -> Returned:
    """What a case's call gives, with the looked-at member holding the bits."""
    if not isinstance(oracle, WithCall):
        raise Unsupported(f"{oracle.name} makes no calls of {case.document}")
    call = call_of(case)
    held = {
        member.name: bits
        if member.name == member_of(case)
        else np.full(bits.shape, OTHER_MEMBERS_HOLD, format_named(member.dtype).storage)
        for member in call.members
    }
    returned = oracle.call(case, call, held)
    if not isinstance(returned, Returned):
        raise AnswerError(f"the answer is {type(returned).__name__}, not a Returned")
    return returned


def _looked_at(case: Case, returned: Returned) -> Tensor:
    name = member_of(case)
    found = returned.tensors
    if name and not found and form_of(case).returns == "unspecified":
        # A layer is changed where it stands if nothing comes back and nothing is promised to.
        found = returned.receiver
    if name not in found:
        raise DepartedError(_fault(case, f"gives no {name or 'tensor'} back"))
    return found[name]


def _fault(case: Case, message: str, kind: str = "answer") -> Fault:
    form = form_of(case)
    return Fault(kind, f"{FORM}:{case.mode[FORM]}", form.clause, form.level, message)
