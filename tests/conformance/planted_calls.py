"""Oracles whose calls are right but for one planted fault, and the faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings

from oracles.protocol import Returned, Tensor
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from reports.judgement import Judgement
from specs.calls import Call
from specs.cases import Case
from specs.selection import case_named

RIGHT = Reference()
Change = Callable[[Call, Mapping[str, Any], Returned], Any]


class Planted:
    """The reference with a change of what its calls give."""

    name = "planted"
    version = "0"

    def __init__(self, change: Change, claims: tuple[str, ...]) -> None:
        self.change = change
        self.claims = claims

    def cast(self, case: Case, bits: Any) -> Any:
        raise AssertionError("a call is no cast")

    def call(self, case: Case, call: Call, bits: Mapping[str, Any]) -> Any:
        return self.change(call, bits, RIGHT.call(case, call, bits))


class Accepting(Planted):
    """One that refuses nothing: what it cannot read it does not obey."""

    def call(self, case: Case, call: Call, bits: Mapping[str, Any]) -> Any:
        held = {
            member.name: Tensor(member.dtype, "cpu", bits[member.name]) for member in call.members
        }
        return self.change(call, bits, Returned(True, True, held, held))


class Bitcasting(Planted):
    """A bitcast whose bits are right, and which says where they lie."""

    shared = True

    def bitcast(self, case: Case, bits: Any) -> Any:
        return RIGHT.bitcast(case, bits)

    def bitcast_shares_memory(self, case: Case, bits: Any) -> bool:
        assert bits.size
        return self.shared


class Copying(Bitcasting):
    shared = False


class Silent(Planted):
    """A bitcast whose bits are right, and which does not say where they lie."""

    def bitcast(self, case: Case, bits: Any) -> Any:
        return RIGHT.bitcast(case, bits)


def judged(
    name: str, change: Change, claimed: bool = True, oracle: type[Planted] = Planted
) -> Judgement:
    case = case_named(name)
    made = oracle(change, (case.document,) if claimed else ())
    return BackendJudge(Backend("planted", made), {}, Settings(max_examples=20)).judge(case)


def honest(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return gave


def tensors(gave: Returned, change: Callable[[Tensor], Tensor]) -> Returned:
    changed = {name: change(tensor) for name, tensor in gave.tensors.items()}
    return replace(gave, tensors=changed)


def converts_nothing(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    held = {member.name: Tensor(member.dtype, "cpu", bits[member.name]) for member in call.members}
    return Returned(True, True, held, held)


def elsewhere(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return tensors(gave, lambda tensor: replace(tensor, device="gpu"))


def stays(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return tensors(gave, lambda tensor: replace(tensor, device=call.device))


def a_copy(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return replace(gave, is_receiver=False, shares_memory=False)


def the_receiver(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return replace(gave, is_receiver=True, shares_memory=True)


def outputs(gave: Returned, change: Callable[[str, Any], Any]) -> Returned:
    return replace(gave, outputs={dtype: change(dtype, one) for dtype, one in gave.outputs.items()})


def runs_no_more(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    if call.method is None:
        return gave
    return outputs(gave, lambda dtype, one: "TypeError: no kernel for these")


def takes_no_old_input(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    """As a layer does whose inputs nobody converts."""
    if call.method is None:
        return gave
    return outputs(
        gave, lambda dtype, one: one if dtype == one.dtype else f"TypeError: {dtype} is not mine"
    )


def gives_the_input_s_dtype(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return outputs(gave, lambda dtype, one: replace(one, dtype=dtype))


def cannot_be_called_on_a_linear(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    if call.receiver == "linear" and call.method is not None:
        raise TypeError("no such layer")
    return gave


def leaves_the_bias(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    if "bias" not in bits:
        return gave
    dtypes = {member.name: member.dtype for member in call.members}
    left = Tensor(dtypes["bias"], "cpu", bits["bias"])
    found = {**gave.tensors, "bias": left}
    return replace(gave, tensors=found, receiver=found)


def writes_into_the_receiver(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    changed = {
        member.name: Tensor(member.dtype, call.device, bits[member.name] ^ 1)
        for member in call.members
    }
    return replace(gave, receiver=changed)


def converts_the_receiver(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return replace(gave, is_receiver=True, receiver=gave.tensors)


def copies_the_memory(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return replace(gave, shares_memory=False)


def shares_the_memory(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return replace(gave, shares_memory=True)


def flattens_tensors_of_three_dimensions(
    call: Call, bits: Mapping[str, Any], gave: Returned
) -> Returned:
    return tensors(
        gave,
        lambda one: replace(one, bits=one.bits.reshape(-1) if one.bits.size > 4096 else one.bits),
    )


def gives_nothing(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return replace(gave, is_receiver=False, tensors={}, receiver={})


def one_bit(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return tensors(gave, lambda tensor: replace(tensor, bits=tensor.bits ^ 1))
