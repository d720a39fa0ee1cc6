"""The judge of calls finds each planted fault, and names what is broken and the clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from conformance.families.reference import Reference
from oracles.backend.replies import malformed
from oracles.protocol import Returned, Tensor, Unsupported
from reports.judgement import Judgement
from reports.problem_words import words
from specs.cases import Call, Case
from specs.loader import document_named
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance import feeding
from tests.conformance.feeding import answering, planted

RIGHT = Reference()
Change = Callable[[Call, Mapping[str, Any], Returned], Any]
"""Takes a call, the bits of its receiver and what is returned; returns something else."""


@dataclass(frozen=True)
class Accepting:
    """Returns the receiver from each call, never refusing; ``change`` changes the result."""

    change: Change


@dataclass(frozen=True)
class Scalars(Accepting):
    """Accepts calls on tensors without dimensions only; others are answered by the reference."""


def judged(name: str, change: Change | Accepting, claimed: bool = True) -> Judgement:
    """Judge a backend that changes the results of the reference's calls."""

    def made(case: Case, call: Call, bits: Mapping[str, Any]) -> Any:
        if isinstance(change, Scalars) and any(each.shape for each in bits.values()):
            return RIGHT.call(case, call, bits)
        if isinstance(change, Accepting):
            held = members(call, bits)
            return change.change(call, bits, Returned(True, True, held, held))
        return change(call, bits, RIGHT.call(case, call, bits))

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


def raising(error: BaseException, when: Callable[[Call, Mapping[str, Any]], bool]) -> Change:
    def changed(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        if when(call, bits):
            raise error
        return gave

    return changed


def leaves_the_bias_of_a_linear(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return leaves_the_bias(call, bits, gave) if call.receiver == "linear" else gave


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


def converts_to_float64(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    wide = np.zeros(bits[""].shape, np.uint64)
    return replace(gave, tensors={"": Tensor("float64", "cpu", wide)})


def replaced(change: Callable[[Mapping[str, Any], Any], Any]) -> Change:
    """Replace the bits of each tensor that is returned."""
    return lambda call, bits, gave: tensors(
        gave, lambda one: replace(one, bits=change(bits, one.bits))
    )


def flattens_the_sample(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    return flattens(call, bits, gave) if bits[""].size > 4096 else gave


def of_columns(change: Change) -> Change:
    """Change what a call returns for non-contiguous tensors only."""
    return lambda call, bits, gave: (
        gave if all(each.flags.c_contiguous for each in bits.values()) else change(call, bits, gave)
    )


def of_rank(rank: int, change: Change) -> Change:
    """Change what a call returns for tensors of one rank only."""
    return lambda call, bits, gave: (
        change(call, bits, gave)
        if {each.ndim for each in bits.values()} == {rank} and call.receiver != "linear"
        else gave
    )


def where_mixed(change: Callable[[Tensor], Tensor]) -> Change:
    """Change the weight of a layer whose members had several dtypes."""

    def changed(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        if len({each.dtype for each in call.members}) == 1:
            return gave
        found = {**gave.tensors, "weight": change(gave.tensors["weight"])}
        return replace(gave, tensors=found, receiver=found)

    return changed


def stops_at_the_first_member(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    """Convert nothing if the first member has the target's dtype already."""
    held = members(call, bits)
    first = call.members[0].name
    if held[first].dtype != gave.tensors[first].dtype:
        return gave
    return replace(gave, tensors=held, receiver=held)


def zeroes_those_of_float32(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    own = {each.name for each in call.members if each.dtype == "float32"}
    if call.receiver != "layer" or len(own) == len(call.members):
        return gave
    found = {
        name: replace(one, bits=np.zeros_like(one.bits)) if name in own else one
        for name, one in gave.tensors.items()
    }
    return replace(gave, tensors=found, receiver=found)


def zeroes_a_linear(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    if call.receiver != "linear" or call.method is None:
        return gave
    return replace(
        gave, receiver=tensors(gave, lambda one: replace(one, bits=np.zeros_like(one.bits))).tensors
    )


def flattens_the_receiver(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
    flat = {name: replace(one, bits=one.bits.reshape(-1)) for name, one in gave.receiver.items()}
    return replace(gave, receiver=flat)


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
SHARDED, TYPE = "torch-sharded-tensor-to:2023", "torch-module-type:2023"
CAST = "cinn-cast-calls:1.0"
SIMPLE = f"{TO}/int8/int16/form:name"
RUNS, UNCHANGED, FORM = "layer-runs", "receiver-unchanged", "form"
"""The promises that faults break; ``form`` stands for the rule ``form:NAME`` of the call's form."""

FAULTS: dict[str, tuple[str, Change | Accepting, str, str, str]] = {
    "converts nothing": (SIMPLE, converts_nothing, "violates", FORM,
                         "gives int8 instead of int16 (nothing was converted)"),
    "converts nothing of complex numbers": (
        f"{TO}/complex64/complex128/form:name", converts_nothing, "violates", FORM,
        "gives complex64 instead of complex128 (nothing was converted)"),
    "converts no member": (
        f"{ASTYPE}/float16/int8/form:name/member:weight", converts_nothing, "violates", FORM,
        "gives float16 instead of int8 (nothing was converted)"),
    "converts nothing of another like it": (f"{TO}/bool/int8/form:other", converts_nothing,
                                            "violates", FORM, "gives bool"),
    "on another device": (SIMPLE, elsewhere, "violates", FORM,
                          "gives a tensor on gpu instead of cpu"),
    "goes nowhere": (f"{TO}/bool/bool/form:to-gpu", stays, "violates", FORM,
                     "gives a tensor on cpu instead of gpu"),
    "comes from nowhere": (f"{TO}/bool/bool/form:from-gpu", stays, "violates", FORM,
                           "gives a tensor on gpu instead of cpu"),
    "a copy of what does not change": (f"{SHARDED}/bool/bool/form:same-dtype", a_copy, "violates",
                                       FORM, "gives something new back"),
    "a copy of a module": (f"{TYPE}/float16/bfloat16/form:dtype/member:weight", a_copy, "violates",
                           FORM, "gives something new back"),
    "no copy where one is asked for": (f"{SHARDED}/bool/bool/form:copies", the_receiver,
                                       "violates", FORM, "gives the receiver itself back"),
    "nothing comes back": (SIMPLE, nothing_back, "violates", FORM,
                           "gives no tensor back"),
    "no member comes back": (f"{TYPE}/float16/bfloat16/form:dtype/member:weight", nothing_back,
                             "violates", FORM, "gives no weight back"),
    "a module is changed in place": (f"{TYPE}/float16/bfloat16/form:dtype/member:weight",
                                     in_place, "violates", FORM, "gives no weight back"),
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
        f"{ASTYPE}/float32/float64/form:name/member:weight", leaves_the_bias_of_a_linear,
        "deviates", RUNS,
        "the bias of a Linear is float32 instead of float64"),
    "the bias stays": (
        f"{ASTYPE}/float32/float64/form:name/member:bias", leaves_the_bias, "violates", FORM,
        "gives float32 instead of float64 (nothing was converted)"),
    "the parameters of integers stay": (
        f"{ASTYPE}/int64/float32/form:name/member:weight", converts_nothing, "deviates",
        "whole-member", "gives int64 instead of float32 (nothing was converted)"),
    "the receiver is converted": (SIMPLE, converts_the_receiver, "deviates",
                                  UNCHANGED, "the receiver is int16 on cpu, it was int8 on cpu"),
    "the receiver is written into": (SIMPLE, writes_into_the_receiver,
                                     "deviates", UNCHANGED, "the receiver holds other bits"),
    "the shards are written into": (f"{SHARDED}/int64/int8/form:other", writes_into_the_receiver,
                                    "violates", UNCHANGED, "the receiver holds other bits"),
    "a copy by name in the old memory": (f"{SHARDED}/bool/bool/form:copies", shares_the_memory,
                                         "violates", FORM, "gives the receiver's memory, no copy"),
    "a copy that nobody asked for": (
        f"{SHARDED}/bool/bool/form:listed-same-dtype", copies_the_memory, "deviates", FORM,
        "gives a copy, not the receiver's memory"),
    "no copy though one is listed": (
        f"{SHARDED}/bool/bool/form:listed-dtype-copy", shares_the_memory, "deviates", FORM,
        "gives the receiver's memory, no copy"),
    "stays where it was": (f"{SHARDED}/bool/bool/form:to-cuda-index", stays, "violates", FORM,
                           "gives a tensor on cpu instead of gpu"),
    "not where the other is": (f"{TO}/bool/int32/form:other-on-gpu", stays, "deviates", FORM,
                               "gives a tensor on cpu instead of gpu"),
    "not in the sample's shape": (f"{CAST}/int32/float32/form:sample", flattens_the_sample,
                                  "violates", FORM, "shape (8, 24, 124) gives shape (23808,)"),
    "no copy of a scalar": (
        f"{SHARDED}/float32/float32/form:copies", of_rank(0, the_receiver), "violates", FORM,
        "shape (): gives the receiver itself back"),
    "a scalar's memory": (
        f"{SHARDED}/float32/float32/form:listed-dtype-keyword-copy", of_rank(0, shares_the_memory),
        "deviates", FORM, "shape (): gives the receiver's memory, no copy"),
    "no copy of a matrix": (
        f"{SHARDED}/float32/float32/form:copies", of_rank(2, the_receiver), "violates", FORM,
        "shape (2, 2): gives the receiver itself back"),
    "the receiver of rank 2 holds other bits": (
        SIMPLE, of_rank(2, writes_into_the_receiver), "deviates", UNCHANGED,
        "shape (2, 2): the receiver holds other bits"),
    "no copy of what lies by columns": (
        f"{SHARDED}/bool/bool/form:listed-dtype-copy", of_columns(shares_the_memory), "deviates",
        FORM, "length 3, steps (2,): gives the receiver's memory, no copy"),
    "the receiver loses its shape": (
        SIMPLE, flattens_the_receiver, "deviates", UNCHANGED,
        "shape (): the receiver has shape (1,), it had ()"),
    "no other member converts if the first has the dtype": (
        f"{TYPE}/float16/float16/form:dtype/member:weight", stops_at_the_first_member,
        "violates", FORM, "the inner.weight is float32 instead of float16"),
    "members of one dtype are lost where there are several": (
        f"{TYPE}/float16/float32/form:dtype/member:scale", zeroes_those_of_float32, "violates",
        "same-dtype", "the weight: 0x00000003 gives 0x00000000 instead of 0x00000003"),
    "a layer of several dtypes has other values": (
        f"{TYPE}/float32/float16/form:dtype/member:weight",
        where_mixed(lambda one: replace(one, bits=one.bits ^ 1)), "violates",
        "to-rounding-float",
        "a layer of several dtypes: the weight: 0x3f800000 gives 0x3c01 instead of 0x3c00"),
    "a layer of several dtypes loses a shape": (
        f"{TYPE}/float32/float32/form:dtype/member:weight",
        where_mixed(lambda one: replace(one, bits=one.bits[:1])), "violates", FORM,
        "a layer of several dtypes: the weight has shape (1,) instead of (4,)"),
    "a Linear becomes zero": (
        f"{ASTYPE}/float32/float16/form:name/member:weight", zeroes_a_linear, "violates",
        "to-rounding-float", "a Linear: the weight: 0x3f800000 gives 0x0000 instead of 0x3c00"),
    "obeys a call with a scalar that must be refused": (
        f"{TO}/float32/float32/form:no-such-name", Scalars(converts_nothing), "deviates",
        "not-a-form", "is not refused, but shape () gives float32"),
    "obeys a call with a scalar, and converts": (
        f"{TO}/float32/float32/form:upper-case-name", Scalars(converts_to_float64), "deviates",
        "not-a-form", "is not refused, but shape () gives float64 instead of float32"),
    "obeys a call that must be refused": (
        f"{TO}/float32/float32/form:upper-case-name", Accepting(converts_to_float64), "deviates",
        "not-a-form", "is not refused, but gives float64 instead of float32"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_names_what_is_broken_and_its_clause(name: str) -> None:
    case, change, verdict, rule, message = FAULTS[name]
    found = judged(case, change)
    assert found.verdict == verdict
    [fault] = found.faults
    entry, form = document_named(case_named(case).document).entry, case_named(case).mode["form"]
    promises = {f"form:{form}": entry.forms[form], **entry.rules, **entry.promises()}
    assert fault.rule == (f"form:{form}" if rule == FORM else rule)
    assert fault.clause == promises[fault.rule].clause
    assert message in words(fault) == found.message
    assert judged(case, change, claimed=False).verdict == "differs"


@pytest.mark.parametrize("case", sorted({row[0] for row in FAULTS.values()}))
def test_without_a_fault_nothing_is_found(case: str) -> None:
    found = judged(case, honest)
    is_open = ruling(case_named(case)).is_open
    assert (found.verdict, found.broken_rules) == ("open" if is_open else "conforms", ())


@pytest.mark.parametrize("form", ["too-many", "name-too-many", "dtype-too-many", "other-too-many"])
def test_too_many_arguments_may_not_be_obeyed(form: str) -> None:
    def obeys(call: Call, bits: Mapping[str, Any], gave: Returned) -> Returned:
        fewer = replace(call, args=call.args[: 3 if form == "too-many" else 2])
        return RIGHT.call(case_named(f"{TO}/float32/float64/form:name"), fewer, bits)

    found = judged(f"{TO}/float32/float32/form:{form}", Accepting(obeys))
    assert found.verdict == "deviates"
    assert [fault.rule for fault in found.faults] == ["not-a-form"]


WRONG_VALUES: list[tuple[str, Change | Accepting, str, str, int, tuple[str, ...]]] = [
    (SIMPLE, one_bit, "violates", "kept-value", 256, ("0x0000",)),
    (f"{TO}/bool/bool/form:name", one_bit, "violates", "same-dtype", 2, ("0x0",)),
    (f"{SHARDED}/float32/float32/form:a-list", Accepting(honest), "violates", "refused", 2,
     ("error",)),
    # The page of paddle only implies that a call is refused.
    (f"{TO}/float32/float32/form:no-such-name", Accepting(honest), "deviates", "not-a-form", 2,
     ("error",)),
]  # fmt: skip


@pytest.mark.parametrize(("case", "change", "verdict", "rule", "count", "allowed"), WRONG_VALUES)
def test_wrong_values_break_the_rule_about_values(
    case: str,
    change: Change | Accepting,
    verdict: str,
    rule: str,
    count: int,
    allowed: tuple[str, ...],
) -> None:
    found = judged(case, change)
    assert found.verdict == verdict
    [divergence] = found.divergences
    assert (divergence.rule, divergence.count, divergence.allowed) == (rule, count, allowed)
    rules = document_named(case_named(case).document).entry.rules
    assert divergence.clause == rules[rule].clause
    assert found.faults == ()
    assert judged(case, change, claimed=False).verdict == "differs"


def test_a_shape_that_is_lost_is_found() -> None:
    found = judged(SIMPLE, flattens)
    assert (found.verdict, found.faults[0].rule) == ("deviates", "any-tensor")


REFUSED, DECLINES = f"{SHARDED}/float32/float32/form:", Unsupported("there is no device gpu here")
WITHOUT_FAULT: list[tuple[str, Change | Accepting, str, str | None]] = [
    # A backend that cannot run a Linear created in a dtype need not run a converted one.
    (f"{ASTYPE}/float16/int8/form:name/member:weight",
     outputs(lambda dtype, one: "RuntimeError: no kernel for int8", True), "conforms",
     "layer-runs is not judged: a Linear of int8 does not run: RuntimeError: no kernel for int8"),
    (f"{ASTYPE}/float16/int8/form:name/member:weight",
     raising(Unsupported("no parameters"), lambda call, bits: call.receiver == "linear"),
     "conforms", "layer-runs is not judged: a Linear of int8 does not run: no parameters"),
    # A layer is run only in the case about its weight.
    (f"{ASTYPE}/float32/float64/form:name/member:bias", runs_no_more, "conforms", ""),
    # A layer that is changed in place need not be returned.
    (f"{ASTYPE}/float16/int8/form:name/member:weight", in_place, "conforms", ""),
    # The note on a refusal has the class that the page names, if any, and the class raised.
    (f"{REFUSED}a-list", Accepting(raises), "conforms",
     "expected RuntimeError, got RuntimeError: out of order"),
    (f"{REFUSED}a-list", honest, "conforms", "expected RuntimeError, got RefusedError: "),
    (f"{REFUSED}no-such-device", Accepting(raises), "conforms", "RuntimeError: out of order"),
    # An open call is open whatever it returns.
    *((f"{TO}/float32/{target}/form:{form}", Accepting(change), "open", None)
      for form, target in (("two-dtypes", "float64"), ("nothing", "float32"))
      for change in (raises, converts_nothing, elsewhere, nothing_back, a_copy)),
    *((f"{ASTYPE}/bool/float32/form:name/member:scale", change, "open", None)
      for change in (converts_nothing, runs_no_more, nothing_back)),
    # A call that must be answered may not be refused, even if only its values are open.
    (SIMPLE, raises, "error", "RuntimeError: out of order"),
    (f"{TO}/complex64/float32/form:name", raises, "error", "RuntimeError: out of order"),
    (SIMPLE, raising(ValueError("too few"), lambda call, bits: bits[""].shape == (4,)), "error",
     "asked once more: ValueError: too few"),
    (f"{TYPE}/float32/float16/form:dtype/member:weight",
     raising(TypeError("mixed"), lambda call, bits: len({m.dtype for m in call.members}) > 1),
     "error", "a layer of several dtypes: TypeError: mixed"),
    (f"{TYPE}/float32/float16/form:dtype/member:weight",
     raising(Unsupported("mixed"), lambda call, bits: len({m.dtype for m in call.members}) > 1),
     "conforms", ""),
    # Malformed answers are no verdict on the framework.
    (SIMPLE, raising(malformed("no Returned"), lambda call, bits: True), "error", "no Returned"),
    (SIMPLE, replaced(lambda bits, answer: answer.tolist()), "error",
     "the answer is list, not a numpy array"),
    (SIMPLE, replaced(lambda bits, answer: bits[""]), "error",
     "the answer's storage is uint8, int16 is held in uint16"),
    (SIMPLE, replaced(lambda bits, answer: answer[:1]), "error",
     "the answer has shape (1,), the input (256,)"),
    (SIMPLE, returned(receiver={}), "error",
     "the answer does not tell what became of the receiver"),
    (f"{TO}/bool/bool/form:to-gpu", raising(DECLINES, lambda call, bits: True), "unsupported",
     "there is no device gpu here"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "change", "verdict", "message"), WITHOUT_FAULT)
def test_other_verdicts(
    case: str, change: Change | Accepting, verdict: str, message: str | None
) -> None:
    found = judged(case, change)
    assert (found.verdict, found.broken_rules) == (verdict, ())
    if message is not None:
        assert (message in found.message, bool(message)) == (True, bool(found.message))
