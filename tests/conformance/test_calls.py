"""The judge of calls finds each planted fault, and names what is broken and the clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oracles.backend.replies import malformed
from oracles.protocol import Returned, Tensor, Unsupported
from oracles.reference.reference_oracle import Reference
from reports.judgement import Judgement
from reports.problem_words import words
from specs.calls import Call
from specs.cases import Case
from specs.loader import document_named
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance import feeding
from tests.conformance.feeding import answering, planted

RIGHT = Reference()
Change = Callable[[Call, Mapping[str, Any], Returned], Any]
"""Takes a call, the bits of its receiver and what is returned; returns something else."""


def judged(
    name: str, change: Change, claimed: bool = True, is_accepting: bool = False
) -> Judgement:
    """Judge a backend whose calls are changed; an accepting one refuses none, and obeys none."""

    def made(case: Case, call: Call, bits: Mapping[str, Any]) -> Any:
        held = members(call, bits)
        gave = Returned(True, True, held, held) if is_accepting else RIGHT.call(case, call, bits)
        return change(call, bits, gave)

    claims = [case_named(name).document] if claimed else []
    return feeding.judged(name, answering(call=made), planted(claims, max_examples=20))


def members(call: Call, bits: Mapping[str, Any]) -> dict[str, Tensor]:
    """The receiver as it was before the call."""
    return {each.name: Tensor(each.dtype, "cpu", bits[each.name]) for each in call.members}


def returned(**changes: Any) -> Change:
    """Change what a call returns."""
    return lambda call, bits, gave: replace(gave, **changes)


def tensors(gave: Returned, change: Callable[[Tensor], Tensor]) -> Returned:
    return replace(gave, tensors={name: change(each) for name, each in gave.tensors.items()})


def outputs(change: Callable[[str, Any], Any], is_native_changed: bool = False) -> Change:
    """Change the outputs of a converted layer, or also those of one created in its dtype."""

    def changed(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        if call.method is None and not is_native_changed:
            return gave
        found = {dtype: change(dtype, output) for dtype, output in gave.outputs.items()}
        return replace(gave, outputs=found)

    return changed


def raising(error: Exception, when: Callable[[Call, Mapping[str, Any]], bool]) -> Change:
    def changed(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        if when(call, bits):
            raise error
        return gave

    return changed


def leaves_the_bias(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    if "bias" not in bits:
        return gave
    found = {**gave.tensors, "bias": members(call, bits)["bias"]}
    return replace(gave, tensors=found, receiver=found)


def writes_into_the_receiver(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    was = members(call, bits)
    changed = {
        name: replace(one, bits=one.bits ^ 1, device=call.device) for name, one in was.items()
    }
    return replace(gave, receiver=changed)


def honest(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return gave


def converts_nothing(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    held = members(call, bits)
    return Returned(True, True, held, held)


def elsewhere(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return tensors(gave, lambda one: replace(one, device="gpu"))


def stays(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return tensors(gave, lambda one: replace(one, device=call.device))


def one_bit(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return tensors(gave, lambda one: replace(one, bits=one.bits ^ 1))


def flattens(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return tensors(gave, lambda one: replace(one, bits=one.bits.reshape(-1)))


def flattens_the_sample(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return flattens(call, bits, gave) if bits[""].size > 4096 else gave


a_copy = returned(is_receiver=False, shares_memory=False)
the_receiver = returned(is_receiver=True, shares_memory=True)
copies_the_memory = returned(shares_memory=False)
shares_the_memory = returned(shares_memory=True)
nothing_back = returned(is_receiver=False, tensors={}, receiver={})
in_place = returned(is_receiver=False, tensors={})
converts_the_receiver: Change = lambda call, bits, gave: replace(  # noqa: E731
    gave, is_receiver=True, receiver=gave.tensors
)
runs_no_more = outputs(lambda dtype, one: "TypeError: no kernel for these")
takes_no_old_input = outputs(
    lambda dtype, one: one if dtype == one.dtype else f"TypeError: {dtype} is not mine"
)
gives_the_input_s_dtype = outputs(lambda dtype, one: replace(one, dtype=dtype), True)
is_no_layer = raising(
    TypeError("no such layer"),
    lambda call, bits: call.receiver == "linear" and call.method is not None,
)
raises = raising(RuntimeError("out of order\nand more"), lambda call, bits: True)

TO, ASTYPE = "paddle-tensor-to:1.0", "paddle-layer-astype:1.0"
SHARDED, TYPE = "torch-tensor-to:2023", "torch-module-type:2023"
CAST = "cinn-cast-calls:1.0"
RUNS, UNCHANGED = "layer-runs", "receiver-unchanged"

FAULTS: dict[str, tuple[str, Change, str, str, str]] = {
    # The rule that is broken is the promise of the call's form, if none is named.
    "converts nothing": (f"{TO}/int8/int16/form:name", converts_nothing, "violates", "",
                         "gives int8 instead of int16 (nothing was converted)"),
    "converts nothing of complex numbers": (
        f"{TO}/complex64/complex128/form:name", converts_nothing, "violates", "",
        "gives complex64 instead of complex128 (nothing was converted)"),
    "converts no member": (
        f"{ASTYPE}/float16/int8/form:name/member:weight", converts_nothing, "violates", "",
        "gives float16 instead of int8 (nothing was converted)"),
    "converts nothing of another like it": (f"{TO}/bool/int8/form:other", converts_nothing,
                                            "violates", "", "gives bool"),
    "on another device": (f"{TO}/int8/int16/form:name", elsewhere, "violates", "",
                          "gives a tensor on gpu instead of cpu"),
    "goes nowhere": (f"{TO}/bool/bool/form:to-gpu", stays, "violates", "",
                     "gives a tensor on cpu instead of gpu"),
    "comes from nowhere": (f"{TO}/bool/bool/form:from-gpu", stays, "violates", "",
                           "gives a tensor on gpu instead of cpu"),
    "a copy of what does not change": (f"{SHARDED}/bool/bool/form:same-dtype", a_copy, "violates",
                                       "", "gives something new back"),
    "a copy of a module": (f"{TYPE}/float16/bfloat16/form:dtype/member:weight", a_copy, "violates",
                           "", "gives something new back"),
    "no copy where one is asked for": (f"{SHARDED}/bool/bool/form:copies", the_receiver,
                                       "violates", "", "gives the receiver itself back"),
    "nothing comes back": (f"{TO}/int8/int16/form:name", nothing_back, "violates", "",
                           "gives no tensor back"),
    "no member comes back": (f"{TYPE}/float16/bfloat16/form:dtype/member:weight", nothing_back,
                             "violates", "", "gives no weight back"),
    "a module is changed in place": (f"{TYPE}/float16/bfloat16/form:dtype/member:weight",
                                     in_place, "violates", "", "gives no weight back"),
    "the layer runs no more": (
        f"{ASTYPE}/float16/float16/form:name/member:weight", runs_no_more, "deviates", RUNS,
        "a Linear takes no input of float16 afterwards: TypeError: no kernel for these"),
    "the inputs do not convert": (
        f"{ASTYPE}/float16/float32/form:name/member:weight", takes_no_old_input, "deviates", RUNS,
        "a Linear takes no input of float16 afterwards: TypeError: float16 is not"),
    "the output has the old dtype": (
        f"{ASTYPE}/float16/float32/form:name/member:weight", gives_the_input_s_dtype, "deviates",
        RUNS, "a Linear gives float16 instead of float32 for float16"),
    "no real layer converts": (
        f"{ASTYPE}/float16/float32/form:name/member:weight", is_no_layer, "deviates", RUNS,
        "a Linear of float16: TypeError: no such layer"),
    "the inputs of a layer of integers do not convert": (
        f"{ASTYPE}/int64/float32/form:name/member:weight", takes_no_old_input, "deviates", RUNS,
        "a Linear takes no input of int64 afterwards"),
    "the bias of a Linear stays": (
        f"{ASTYPE}/float32/float64/form:name/member:weight", leaves_the_bias, "deviates", RUNS,
        "the bias of a Linear is float32 instead of float64"),
    "the bias stays": (
        f"{ASTYPE}/float32/float64/form:name/member:bias", leaves_the_bias, "violates", "",
        "gives float32 instead of float64 (nothing was converted)"),
    "the parameters of integers stay": (
        f"{ASTYPE}/int64/float32/form:name/member:weight", converts_nothing, "deviates",
        "whole-member", "gives int64 instead of float32 (nothing was converted)"),
    "the receiver is converted": (f"{TO}/int8/int16/form:name", converts_the_receiver, "deviates",
                                  UNCHANGED, "the receiver is int16 on cpu, it was int8 on cpu"),
    "the receiver is written into": (f"{TO}/int8/int16/form:name", writes_into_the_receiver,
                                     "deviates", UNCHANGED, "the receiver holds other bits"),
    "the shards are written into": (f"{SHARDED}/int64/int8/form:other", writes_into_the_receiver,
                                    "violates", UNCHANGED, "the receiver holds other bits"),
    "a copy by name in the old memory": (f"{SHARDED}/bool/bool/form:copies", shares_the_memory,
                                         "violates", "", "gives the receiver's memory, no copy"),
    "a copy that nobody asked for": (
        f"{SHARDED}/bool/bool/form:listed-same-dtype", copies_the_memory, "deviates", "",
        "gives a copy, not the receiver's memory"),
    "no copy though one is listed": (
        f"{SHARDED}/bool/bool/form:listed-dtype-copy", shares_the_memory, "deviates", "",
        "gives the receiver's memory, no copy"),
    "stays where it was": (f"{SHARDED}/bool/bool/form:to-cuda-index", stays, "violates", "",
                           "gives a tensor on cpu instead of gpu"),
    "not where the other is": (f"{TO}/bool/int32/form:other-on-gpu", stays, "deviates", "",
                               "gives a tensor on cpu instead of gpu"),
    "not in the sample's shape": (f"{CAST}/int32/float32/form:sample", flattens_the_sample,
                                  "violates", "", "shape (8, 24, 124) gives shape (23808,)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_names_what_is_broken_and_its_clause(name: str) -> None:
    case, change, verdict, rule, message = FAULTS[name]
    found = judged(case, change)
    assert found.verdict == verdict
    [fault] = found.faults
    entry, form = document_named(case_named(case).document).entry, case_named(case).mode["form"]
    promises = {f"form:{form}": entry.forms[form], **entry.rules, **entry.promises()}
    assert fault.rule == (rule or f"form:{form}")
    assert fault.clause == promises[fault.rule].clause
    assert message in words(fault) == found.message
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


def test_a_call_that_must_be_refused_may_not_return_values() -> None:
    case = f"{SHARDED}/float32/float32/form:a-list"
    found = judged(case, honest, is_accepting=True)
    assert found.verdict == "violates"
    [divergence] = found.divergences
    assert (divergence.rule, divergence.allowed) == ("refused", ("error",))
    assert divergence.clause == "3, one argument, anything else"
    assert judged(case, honest, claimed=False, is_accepting=True).verdict == "differs"
    # The page of paddle only implies it.
    found = judged(f"{TO}/float32/float32/form:no-such-name", honest, is_accepting=True)
    assert (found.verdict, found.divergences[0].rule) == ("deviates", "not-a-form")


def test_a_call_that_must_be_refused_may_not_convert_to_another_dtype() -> None:
    def converts(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        wide = np.zeros(bits[""].shape, np.uint64)
        return replace(gave, tensors={"": Tensor("float64", "cpu", wide)})

    found = judged(f"{TO}/float32/float32/form:upper-case-name", converts, is_accepting=True)
    assert found.verdict == "deviates"
    [fault] = found.faults
    assert (fault.rule, fault.level) == ("not-a-form", "recommended")
    assert fault.clause == "5, the three forms and the 13 names"
    assert found.message == "is not refused, but gives float64 instead of float32"


@pytest.mark.parametrize("form", ["too-many", "name-too-many", "dtype-too-many", "other-too-many"])
def test_too_many_arguments_may_not_be_obeyed(form: str) -> None:
    def obeys(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        fewer = replace(call, args=call.args[: 3 if form == "too-many" else 2])
        return RIGHT.call(case_named(f"{TO}/float32/float64/form:name"), fewer, bits)

    found = judged(f"{TO}/float32/float32/form:{form}", obeys, is_accepting=True)
    assert found.verdict == "deviates"
    assert [fault.rule for fault in found.faults] == ["not-a-form"]


CONFORMING: dict[str, tuple[str, Change]] = {
    # A backend that cannot run a Linear created in a dtype need not run a converted one.
    "no kernel for a Linear of int8": (
        f"{ASTYPE}/float16/int8/form:name/member:weight",
        outputs(lambda dtype, one: "RuntimeError: no kernel for int8", True)),
    "no Linear of int8": (
        f"{ASTYPE}/float16/int8/form:name/member:weight",
        raising(Unsupported("no parameters"), lambda call, bits: call.receiver == "linear")),
    "a layer is run for the case of its weight only": (
        f"{ASTYPE}/float32/float64/form:name/member:bias", runs_no_more),
    "a layer that is changed in place need not come back": (
        f"{ASTYPE}/float16/int8/form:name/member:weight", in_place),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFORMING)
def test_what_the_document_does_not_forbid_conforms(name: str) -> None:
    found = judged(*CONFORMING[name])
    assert (found.verdict, found.faults) == ("conforms", ())


OPEN = [(f"{TO}/float32/{target}/form:{form}", change) for form, target in
        (("two-dtypes", "float64"), ("nothing", "float32"))
        for change in (raises, converts_nothing, elsewhere, nothing_back, a_copy)]  # fmt: skip
OPEN += [
    (f"{ASTYPE}/bool/float32/form:name/member:scale", change)
    for change in (converts_nothing, runs_no_more, nothing_back)
]


@pytest.mark.parametrize(("case", "change"), OPEN)
def test_an_open_call_is_open_whatever_it_returns(case: str, change: Change) -> None:
    found = judged(case, change, is_accepting=case.startswith(TO))
    assert (found.verdict, found.faults) == ("open", ())


def test_a_call_that_must_be_answered_may_not_be_refused() -> None:
    found = judged(f"{TO}/int8/int16/form:name", raises)
    assert found.verdict == "error"
    assert found.message.endswith("RuntimeError: out of order")
    # Only the values are open: an answer of the dtype is due.
    assert judged(f"{TO}/complex64/float32/form:name", raises).verdict == "error"


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        ("a-list", raises, "expected RuntimeError, got RuntimeError: out of order"),
        ("a-list", honest, "expected RuntimeError, got RefusedError: "),
        # The page names no class for this one.
        ("no-such-device", raises, "RuntimeError: out of order"),
    ],
)
def test_a_refusal_names_the_expected_and_the_raised_class(
    form: str, change: Change, message: str
) -> None:
    found = judged(f"{SHARDED}/float32/float32/form:{form}", change, is_accepting=change is raises)
    assert (found.verdict, found.message.startswith(message)) == ("conforms", True)


def replaced(change: Callable[[Mapping[str, Any], Any], Any]) -> Change:
    """Replace the bits of each tensor that is returned."""
    return lambda call, bits, gave: tensors(
        gave, lambda one: replace(one, bits=change(bits, one.bits))
    )


def malforms(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    raise malformed("no Returned")


ERRORS: dict[str, tuple[Change, str]] = {
    "malformed": (malforms, "no Returned"),
    "a list of bits": (replaced(lambda bits, answer: answer.tolist()),
                       "the answer is list, not a numpy array"),
    "other storage": (replaced(lambda bits, answer: bits[""]),
                      "the answer's storage is uint8, int16 is held in uint16"),
    "too few": (replaced(lambda bits, answer: answer[:1]),
                "the answer has shape (1,), the input (256,)"),
    "no receiver": (returned(receiver={}),
                    "the answer does not tell what became of the receiver"),
    "an error in the second call": (
        raising(ValueError("four are too few"), lambda call, bits: bits[""].shape == (4,)),
        "asked once more: ValueError: four are too few"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_a_malformed_answer_is_an_error_not_a_verdict_on_the_framework(name: str) -> None:
    change, message = ERRORS[name]
    found = judged(f"{TO}/int8/int16/form:name", change)
    assert (found.verdict, found.message) == ("error", message)


def test_a_shape_that_is_lost_is_found() -> None:
    found = judged(f"{TO}/int8/int16/form:name", flattens)
    assert (found.verdict, found.faults[0].rule) == ("deviates", "any-tensor")


def test_a_call_that_is_declined_is_unsupported() -> None:
    declines = raising(Unsupported("there is no device gpu here"), lambda call, bits: True)
    found = judged(f"{TO}/bool/bool/form:to-gpu", declines)
    assert (found.verdict, found.message) == ("unsupported", "there is no device gpu here")
