"""Planted faults in calls: each gets the right verdict, which names rule and clause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings

from oracles.protocol import Returned, Tensor, Unsupported
from oracles.registry import Backend
from specs.calls import Call
from specs.cases import Case
from specs.loader import document_named
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance.planted_calls import (
    RIGHT,
    Accepting,
    Bitcasting,
    Change,
    Copying,
    Planted,
    Silent,
    a_copy,
    cannot_be_called_on_a_linear,
    converts_nothing,
    converts_the_receiver,
    copies_the_memory,
    elsewhere,
    flattens_tensors_of_three_dimensions,
    gives_nothing,
    gives_the_input_s_dtype,
    honest,
    judged,
    leaves_the_bias,
    one_bit,
    outputs,
    runs_no_more,
    shares_the_memory,
    stays,
    takes_no_old_input,
    tensors,
    the_receiver,
    writes_into_the_receiver,
)

TO, ASTYPE = "paddle-tensor-to:1.0", "paddle-layer-astype:1.0"
SHARDED, TYPE = "torch-tensor-to:2023", "torch-module-type:2023"
CAST = "cinn-cast-calls:1.0"

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
        "a Linear takes no input of float16 afterwards: TypeError: no kernel for these",
    ),
    "the inputs do not convert": (
        f"{ASTYPE}/float16/float32/form:name/member:weight", takes_no_old_input, "deviates",
        "layer-runs", "a Linear takes no input of float16 afterwards: TypeError: float16 is not",
    ),
    "the output has the old dtype": (
        f"{ASTYPE}/float16/float32/form:name/member:weight", gives_the_input_s_dtype, "deviates",
        "layer-runs", "a Linear gives float16 instead of float32 for float16",
    ),
    "no real layer converts": (
        f"{ASTYPE}/float16/float32/form:name/member:weight", cannot_be_called_on_a_linear,
        "deviates", "layer-runs", "a Linear of float16: TypeError: no such layer",
    ),
    "the inputs of a layer of integers do not convert": (
        f"{ASTYPE}/int64/float32/form:name/member:weight", takes_no_old_input, "deviates",
        "layer-runs", "a Linear takes no input of int64 afterwards",
    ),
    "the bias of a Linear stays": (
        f"{ASTYPE}/float32/float64/form:name/member:weight", leaves_the_bias, "deviates",
        "layer-runs", "the bias of a Linear is float32 instead of float64",
    ),
    "the bias stays": (
        f"{ASTYPE}/float32/float64/form:name/member:bias", leaves_the_bias, "violates",
        "form:name", "gives float32 instead of float64 (nothing was converted)",
    ),
    "the parameters of integers stay": (
        f"{ASTYPE}/int64/float32/form:name/member:weight", converts_nothing, "deviates",
        "whole-member", "gives int64 instead of float32 (nothing was converted)",
    ),
    "the receiver is converted": (
        f"{TO}/int8/int16/form:name", converts_the_receiver, "deviates", "receiver-unchanged",
        "the receiver is int16 on cpu, it was int8 on cpu",
    ),
    "the receiver is written into": (
        f"{TO}/int8/int16/form:name", writes_into_the_receiver, "deviates", "receiver-unchanged",
        "the receiver holds other bits",
    ),
    "the shards are written into": (
        f"{SHARDED}/int64/int8/form:other", writes_into_the_receiver, "violates",
        "receiver-unchanged", "the receiver holds other bits",
    ),
    "a copy by name in the old memory": (
        f"{SHARDED}/bool/bool/form:copies", shares_the_memory, "violates", "form:copies",
        "gives the receiver's memory, no copy",
    ),
    "a copy that nobody asked for": (
        f"{SHARDED}/bool/bool/form:listed-same-dtype", copies_the_memory, "deviates",
        "form:listed-same-dtype", "gives a copy, not the receiver's memory",
    ),
    "no copy though one is listed": (
        f"{SHARDED}/bool/bool/form:listed-dtype-copy", shares_the_memory, "deviates",
        "form:listed-dtype-copy", "gives the receiver's memory, no copy",
    ),
    "stays where it was": (
        f"{SHARDED}/bool/bool/form:to-cuda-index", stays, "violates", "form:to-cuda-index",
        "gives a tensor on cpu instead of gpu",
    ),
    "not where the other is": (
        f"{TO}/bool/int32/form:other-on-gpu", stays, "deviates", "form:other-on-gpu",
        "gives a tensor on cpu instead of gpu",
    ),
    "not in the sample's shape": (
        f"{CAST}/int32/float32/form:sample", flattens_tensors_of_three_dimensions, "violates",
        "form:sample", "shape (8, 24, 124) gives shape (23808,)",
    ),
}  # fmt: skip


def clause_of(case: Case, rule: str) -> str:
    """The clause of the promise that is broken."""
    entry = document_named(case.document).entry
    if rule.startswith("form:"):
        return entry.forms[case.mode["form"]].clause
    return {**entry.rules, **entry.promises()}[rule].clause


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_names_what_is_broken_and_its_clause(name: str) -> None:
    case, change, verdict, rule, says = FAULTS[name]
    found = judged(case, change)
    assert (found.verdict, [fault.rule for fault in found.faults]) == (verdict, [rule])
    [fault] = found.faults
    assert fault.clause == clause_of(case_named(case), rule)
    assert says in fault.message == found.message
    assert judged(case, change, claimed=False).verdict == "differs"


@pytest.mark.parametrize("case", sorted({row[0] for row in FAULTS.values()}))
def test_without_a_fault_nothing_is_found(case: str) -> None:
    found = judged(case, honest)
    assert found.verdict == ("open" if ruling(case_named(case)).is_open else "conforms")
    assert (found.faults, found.divergences) == ((), ())


def test_wrong_bits_break_the_rule_about_values() -> None:
    found = judged(f"{TO}/int8/int16/form:name", one_bit)
    assert found.verdict == "violates"
    [divergence] = found.divergences
    assert (divergence.rule, divergence.clause) == ("kept-value", "1.2, the dtype is converted")
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


@pytest.mark.parametrize("form", ["too-many", "name-too-many", "dtype-too-many", "other-too-many"])
def test_nor_may_too_many_arguments_be_obeyed(form: str) -> None:
    def obeys(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        fewer = replace(call, args=call.args[: 3 if form == "too-many" else 2])
        return RIGHT.call(case_named(f"{TO}/float32/float64/form:name"), fewer, bits)

    found = judged(f"{TO}/float32/float32/form:{form}", obeys, oracle=Accepting)
    assert found.verdict == "deviates"
    assert [fault.rule for fault in found.faults] == ["not-a-form"]


def test_a_linear_that_the_framework_cannot_run_itself_is_not_judged() -> None:
    def has_no_kernel(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        return outputs(gave, lambda dtype, one: "RuntimeError: no kernel for int8")

    def has_no_layer(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        if call.receiver == "linear":
            raise Unsupported("no parameters of dtype int8")
        return gave

    for change in (has_no_kernel, has_no_layer):
        found = judged(f"{ASTYPE}/float16/int8/form:name/member:weight", change)
        assert (found.verdict, found.faults) == ("conforms", ())


def test_a_layer_is_run_with_its_weight_only() -> None:
    found = judged(f"{ASTYPE}/float32/float64/form:name/member:bias", runs_no_more)
    assert (found.verdict, found.faults) == ("conforms", ())


BITCASTS: dict[str, tuple[type[Planted], str]] = {
    "torch-view:2/float32/int32/shape:2x1": (Copying, "violates"),
    "cinn-bitcast-convert:1.0/float32/float16/shape:3": (Copying, "deviates"),
    "cinn-bitcast-convert:1.0/float32/float16/shape:10/example:worked-example": (
        Copying, "deviates",
    ),
    "tensorflow-bitcast:2023/float32/int32/shape:scalar": (Copying, "deviates"),
    # XLA's code promises no such thing, and a tensor without elements has no memory.
    "xla-bitcast-convert:2023/float32/int32/shape:3": (Copying, "conforms"),
    "tensorflow-bitcast:2023/float32/int32/shape:0x1": (Copying, "conforms"),
    "torch-view:2/int32/float32/shape:3": (Bitcasting, "conforms"),
}  # fmt: skip


@pytest.mark.parametrize("name", BITCASTS)
def test_a_bitcast_that_copies_breaks_what_the_page_promises(name: str) -> None:
    oracle, verdict = BITCASTS[name]
    found = judged(name, honest, oracle=oracle)
    assert found.verdict == verdict
    if verdict == "conforms":
        assert found.faults == ()
        return
    [fault] = found.faults
    assert (fault.rule, fault.message) == ("not-copied", "the result is a copy")
    assert fault.clause == clause_of(case_named(name), "not-copied")
    assert judged(name, honest, claimed=False, oracle=oracle).verdict == "differs"


class Unsure(Bitcasting):
    """Has the method, but cannot tell on this road."""

    def bitcast_shares_memory(self, case: Case, bits: Any) -> bool:
        raise Unsupported("a constant has no memory")


@pytest.mark.parametrize("oracle", [Silent, Unsure])
def test_who_cannot_tell_where_bits_lie_is_not_judged_by_it(oracle: type[Planted]) -> None:
    found = judged("torch-view:2/float32/int32/shape:3", honest, oracle=oracle)
    assert (found.verdict, found.faults) == ("conforms", ())


def test_an_answer_without_its_receiver_is_an_error() -> None:
    def forgets(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        return replace(gave, receiver={})

    found = judged(f"{TO}/int8/int16/form:name", forgets)
    assert found.verdict == "error"
    assert found.message == "the answer does not tell what became of the receiver"


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
    for change in (converts_nothing, runs_no_more, gives_nothing):
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
    found = BackendJudge(Backend("casts", Casts()), {}, Settings()).judge(case)
    assert found.verdict == "unsupported"
    assert found.message == "casts makes no calls of paddle-tensor-to"

    def lacks(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        raise Unsupported("there is no device gpu here")

    found = judged(f"{TO}/bool/bool/form:to-gpu", lacks)
    assert (found.verdict, found.message) == ("unsupported", "there is no device gpu here")


def test_what_is_written_into_the_question_does_not_reach_the_judge() -> None:
    def overwrites(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        held = {"": replace(gave.receiver[""], bits=bits[""].copy())}
        bits[""][...] = 0
        return replace(gave, receiver=held)

    assert judged(f"{TO}/int8/int16/form:name", overwrites).verdict == "conforms"
