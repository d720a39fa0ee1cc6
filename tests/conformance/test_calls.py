"""Planted faults in calls: each gets the right verdict, which names rule and clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.meet import Meeting, Settings
from conformance.selection import case_named
from oracles.protocol import Returned, Tensor, Unsupported
from oracles.reference.oracle import Reference
from oracles.registry import Backend
from reports.judgement import Judgement
from specs.calls import Call
from specs.cases import Case
from specs.load import document_named
from specs.ruling import ruling

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


def judged(
    name: str, change: Change, claimed: bool = True, oracle: type[Planted] = Planted
) -> Judgement:
    case = case_named(name)
    made = oracle(change, (case.document,) if claimed else ())
    return Meeting(Backend("planted", made), {}, Settings(max_examples=20)).judge(case)


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


def runs_no_more(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return replace(gave, run="TypeError: no kernel for float64")


def gives_nothing(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return replace(gave, is_receiver=False, tensors={}, receiver={})


def one_bit(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return tensors(gave, lambda tensor: replace(tensor, bits=tensor.bits ^ 1))


TO, ASTYPE = "paddle-tensor-to:1.0", "paddle-layer-astype:1.0"
SHARDED, TYPE = "torch-tensor-to:2023", "torch-module-type:2023"

# What is planted where; the verdict, the rule or form that is named, words of the message.
FAULTS: dict[str, tuple[str, Change, str, str, str]] = {
    "converts nothing": (
        f"{TO}/int8/int16/form:name", converts_nothing, "violates", "form:name",
        "gives int8 instead of int16 (nothing was converted)",
    ),
    "converts nothing of complex numbers": (
        f"{TO}/complex64/complex128/form:name", converts_nothing, "violates", "form:name",
        "gives complex64 instead of complex128 (nothing was converted)",
    ),
    "converts no member": (
        f"{ASTYPE}/float16/int8/form:name/member:weight", converts_nothing, "violates", "form:name",
        "gives float16 instead of int8 (nothing was converted)",
    ),
    "converts nothing of another like it": (
        f"{TO}/bool/int8/form:other", converts_nothing, "violates", "form:other", "gives bool",
    ),
    "on another device": (
        f"{TO}/int8/int16/form:name", elsewhere, "violates", "form:name",
        "gives a tensor on gpu instead of cpu",
    ),
    "goes nowhere": (
        f"{TO}/bool/bool/form:to-gpu", stays, "violates", "form:to-gpu",
        "gives a tensor on cpu instead of gpu",
    ),
    "comes from nowhere": (
        f"{TO}/bool/bool/form:from-gpu", stays, "violates", "form:from-gpu",
        "gives a tensor on gpu instead of cpu",
    ),
    "a copy of what does not change": (
        f"{SHARDED}/bool/bool/form:same-dtype", a_copy, "violates", "form:same-dtype",
        "gives something new back",
    ),
    "a copy of a module": (
        f"{TYPE}/float16/bfloat16/form:dtype/member:weight", a_copy, "violates", "form:dtype",
        "gives something new back",
    ),
    "no copy where one is asked for": (
        f"{SHARDED}/bool/bool/form:copies", the_receiver, "violates", "form:copies",
        "gives the receiver itself back",
    ),
    "nothing comes back": (
        f"{TO}/int8/int16/form:name", gives_nothing, "violates", "form:name",
        "gives no tensor back",
    ),
    "no member comes back": (
        f"{TYPE}/float16/bfloat16/form:dtype/member:weight", gives_nothing, "violates",
        "form:dtype", "gives no weight back",
    ),
    "the layer runs no more": (
        f"{ASTYPE}/float16/float16/form:name/member:weight", runs_no_more, "deviates", "layer-runs",
        "TypeError: no kernel for float64",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_names_the_form_and_its_clause(name: str) -> None:
    case, change, verdict, rule, says = FAULTS[name]
    found = judged(case, change)
    assert (found.verdict, [fault.rule for fault in found.faults]) == (verdict, [rule])
    [fault] = found.faults
    form = document_named(case.partition(":")[0]).entry.forms[case_named(case).mode["form"]]
    assert fault.clause == form.clause
    assert says in fault.message == found.message
    assert judged(case, change, claimed=False).verdict == "differs"


@pytest.mark.parametrize("case", sorted({row[0] for row in FAULTS.values()}))
def test_without_a_fault_nothing_is_found(case: str) -> None:
    found = judged(case, honest)
    assert found.verdict == ("open" if ruling(case_named(case)).is_open else "conforms")
    assert (found.faults, found.divergences) == ((), ())


def test_wrong_bits_break_the_rule_about_values() -> None:
    found = judged(f"{TO}/int8/int16/form:name", one_bit)
    assert found.verdict == "deviates"  # the page implies values only
    [divergence] = found.divergences
    assert (divergence.rule, divergence.clause) == ("kept-value", "2.1, the dtype is converted")
    assert divergence.count == 256
    assert judged(f"{TO}/bool/bool/form:name", one_bit).verdict == "violates"


def test_what_must_be_refused_may_not_be_answered() -> None:
    case = f"{SHARDED}/float32/float32/form:a-list"
    found = judged(case, honest, oracle=Accepting)
    assert found.verdict == "violates"
    [divergence] = found.divergences
    assert (divergence.rule, divergence.allowed) == ("refused", ("error",))
    assert divergence.clause == "3, one argument, anything else"
    assert judged(case, honest, claimed=False, oracle=Accepting).verdict == "differs"
    # The page of paddle only implies it.
    found = judged(f"{TO}/float32/float32/form:no-such-name", honest, oracle=Accepting)
    assert (found.verdict, found.divergences[0].rule) == ("deviates", "not-a-form")


def test_nor_may_it_be_obeyed() -> None:
    def obeys(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        wide = np.zeros(bits[""].shape, np.uint64)
        return Returned(False, False, {"": Tensor("float64", "cpu", wide)}, gave.receiver)

    found = judged(f"{TO}/float32/float32/form:upper-case-name", obeys, oracle=Accepting)
    assert found.verdict == "deviates"
    [fault] = found.faults
    assert (fault.rule, fault.level) == ("not-a-form", "recommended")
    assert fault.clause == "5, the three forms and the 13 names"
    assert fault.message == "is not refused, but gives float64 instead of float32"


def raises(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    raise RuntimeError("out of order\nand more")


def test_what_must_be_answered_may_not_be_refused() -> None:
    found = judged(f"{TO}/int8/int16/form:name", raises)
    assert found.verdict == "error"
    assert found.message.endswith("RuntimeError: out of order")
    # Values alone are open here: an answer of the dtype is due.
    found = judged(f"{TO}/complex64/float32/form:name", raises)
    assert found.verdict == "error"


def test_a_refusal_names_the_expected_and_the_given_class() -> None:
    found = judged(f"{SHARDED}/float32/float32/form:a-list", raises, oracle=Accepting)
    assert found.verdict == "conforms"
    assert found.message == "expected RuntimeError, got RuntimeError: out of order"
    found = judged(f"{SHARDED}/float32/float32/form:a-list", honest)
    assert found.message.startswith("expected RuntimeError, got RefusedError: ")
    # Of the class of these the page says nothing.
    found = judged(f"{SHARDED}/float32/float32/form:no-such-device", raises, oracle=Accepting)
    assert (found.verdict, found.message) == ("conforms", "RuntimeError: out of order")


def test_what_is_open_is_open_whatever_comes() -> None:
    for form, target in (("two-dtypes", "float64"), ("nothing", "float32")):
        for change in (raises, converts_nothing, elsewhere, gives_nothing, a_copy):
            found = judged(f"{TO}/float32/{target}/form:{form}", change, oracle=Accepting)
            assert (found.verdict, found.faults) == ("open", ()), (form, change.__name__)
    for change in (converts_nothing, runs_no_more):
        found = judged(f"{ASTYPE}/bool/float32/form:name/member:scale", change)
        assert (found.verdict, found.faults) == ("open", ())


def test_a_layer_that_is_changed_in_place_need_not_come_back() -> None:
    def in_place(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        return replace(gave, is_receiver=False, tensors={})

    found = judged(f"{ASTYPE}/float16/int8/form:name/member:weight", in_place)
    assert (found.verdict, found.faults) == ("conforms", ())
    # Module.type says that the module comes back.
    found = judged(f"{TYPE}/float16/bfloat16/form:dtype/member:weight", in_place)
    assert (found.verdict, found.message) == ("violates", "gives no weight back")


GARBAGE: dict[str, tuple[Change, str]] = {
    "nothing": (lambda call, bits, gave: None, "the answer is NoneType, not a Returned"),
    "bits": (lambda call, bits, gave: bits[""], "the answer is ndarray, not a Returned"),
    "a list of bits": (
        lambda call, bits, gave: tensors(gave, lambda one: replace(one, bits=one.bits.tolist())),
        "the answer is list, not a numpy array",
    ),
    "other storage": (
        lambda call, bits, gave: tensors(gave, lambda one: replace(one, bits=bits[""])),
        "the answer's storage is uint8, int16 is held in uint16",
    ),
    "too few": (
        lambda call, bits, gave: tensors(gave, lambda one: replace(one, bits=one.bits[:1])),
        "the answer has shape (1,), the input (256,)",
    ),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_an_error_not_a_verdict_on_the_framework(name: str) -> None:
    change, says = GARBAGE[name]
    found = judged(f"{TO}/int8/int16/form:name", change)
    assert (found.verdict, found.message) == ("error", says)


def test_a_call_that_fails_when_it_is_made_again_is_an_error() -> None:
    def few(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        if bits[""].shape == (4,):
            raise SystemExit("four is too few")
        return gave

    found = judged(f"{TO}/int8/int16/form:name", few)
    assert found.verdict == "error"
    assert "asked once more: RuntimeError: it wanted to end the run" in found.message


def test_a_shape_that_is_lost_is_found() -> None:
    def flat(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        return tensors(gave, lambda one: replace(one, bits=one.bits.reshape(-1)))

    found = judged(f"{TO}/int8/int16/form:name", flat)
    assert found.verdict == "deviates"
    assert found.faults[0].rule == "any-tensor"


def test_who_makes_no_calls_or_lacks_a_device_is_unsupported() -> None:
    class Casts:
        name, version = "casts", "0"

        def cast(self, case: Case, bits: Any) -> Any:
            raise AssertionError

    case = case_named(f"{TO}/int8/int16/form:name")
    found = Meeting(Backend("casts", Casts()), {}, Settings()).judge(case)
    assert found.verdict == "unsupported"
    assert found.message == "casts makes no calls of paddle-tensor-to"

    def lacks(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        raise Unsupported("there is no device gpu here")

    found = judged(f"{TO}/bool/bool/form:to-gpu", lacks)
    assert (found.verdict, found.message) == ("unsupported", "there is no device gpu here")


def test_what_is_written_into_the_question_does_not_reach_the_judge() -> None:
    def overwrites(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        bits[""][...] = 0
        return gave

    assert judged(f"{TO}/int8/int16/form:name", overwrites).verdict == "conforms"
