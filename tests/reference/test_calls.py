"""How the reference reads calls: by position, by keyword, and the mixtures that it refuses."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.running.selection import case_named
from oracles.protocol import Returned
from oracles.reference.call_dispatch import NAMES, Decision, RefusedError, decide
from oracles.reference.reference_oracle import Reference
from specs.calls import Argument, ArgumentKind, ArgumentWord, Call, Member, ReceiverKind
from specs.case_calls import call_of, linear_call


def argument(text: str) -> Argument:
    kind, _, value = text.partition(" ")
    assert kind in get_args(ArgumentKind)
    return Argument(kind, value)  # type: ignore[arg-type]


def call(receiver: ReceiverKind, method: str, args: list[str], kwargs: dict[str, str]) -> Call:
    member = Member("weight" if receiver == "layer" else "", "tensor", "float32")
    named = tuple((name, argument(text)) for name, text in kwargs.items())
    return Call(receiver, (member,), method, tuple(map(argument, args)), named)


F64 = Decision("float64")
Form = tuple[list[str], dict[str, str], Decision]

TO: list[Form] = [
    (["dtype-name float64"], {}, F64),
    (["dtype float64"], {}, F64),
    (["dtype-name float64", "word true"], {}, F64),
    (["dtype-name float64"], {"blocking": "word none"}, F64),
    ([], {"dtype": "dtype-name float64"}, F64),
    ([], {"dtype": "dtype float64", "blocking": "word false"}, F64),
    (["device-name cpu"], {}, Decision(device="cpu")),
    (["device gpu"], {}, Decision(device="gpu")),
    (["device cpu", "word none"], {}, Decision(device="cpu")),
    (["device-name gpu", "dtype-name float64", "word true"], {}, Decision("float64", "gpu")),
    (["device-name cpu"], {"dtype": "dtype float64"}, Decision("float64", "cpu")),
    ([], {"blocking": "word true", "dtype": "dtype float64", "device": "device cpu"},
     Decision("float64", "cpu")),
    (["tensor float64"], {}, Decision("float64", "cpu")),
    (["gpu-tensor float64"], {}, Decision("float64", "gpu")),
    (["tensor float64", "word false"], {}, Decision("float64", "cpu")),
    ([], {"other": "tensor int8"}, Decision("int8", "cpu")),
    ([], {}, Decision()),
]  # fmt: skip
NOT_TO: list[tuple[list[str], dict[str, str]]] = [
    (["dtype-name flaot64"], {}),
    (["dtype-name uint32"], {}),
    (["dtype-name "], {}),
    (["device-name nowhere"], {}),
    (["device-name nowhere", "dtype-name float64"], {}),
    (["device-name cpu", "dtype-name flaot64"], {}),
    (["device-name cpu", "device-name cpu"], {}),
    (["word number"], {}),
    (["word list"], {}),
    (["word bytes"], {}),
    (["word zero"], {}),
    (["dtype-name float64", "word true", "word true"], {}),
    (["dtype float64", "word true", "word true"], {}),
    (["dtype float64", "word true"], {"blocking": "word true"}),
    (["dtype-name float64"], {"device": "device-name cpu"}),
    (["device-name cuda"], {}),
    (["memory-format preserve"], {}),
    (["device-name cpu", "dtype-name float64", "word true", "word true"], {}),
    (["tensor float64", "word true", "word true"], {}),
    (["dtype float64"], {"device": "device cpu"}),
    (["tensor float64"], {"dtype": "dtype float64"}),
    ([], {"dtpye": "dtype float64"}),
    ([], {"dtype": "dtype-name flaot64"}),
    ([], {"device": "device-name nowhere"}),
    ([], {"device": "dtype float64"}),
    ([], {"dtype": "tensor float64"}),
    ([], {"other": "dtype float64"}),
    ([], {"other": "tensor float64", "dtype": "dtype float64"}),
]
ONE: list[Form] = [
    (["dtype-name float64"], {}, F64),
    (["dtype float64"], {}, F64),
    ([], {"dst_type": "dtype-name float64"}, F64),
]
NOT_ONE: list[tuple[list[str], dict[str, str]]] = [
    ([], {}),
    (["dtype float64", "dtype float64"], {}),
    (["dtype float64"], {"dst_type": "dtype float64"}),
    ([], {"dtype": "dtype float64"}),
    (["dtype float64"], {"blocking": "word true"}),
    (["dtype-name flaot64"], {}),
    (["device-name cpu"], {}),
    (["tensor float64"], {}),
    (["word none"], {}),
]
SHARDED: list[Form] = [
    (["dtype float64"], {}, F64),
    (["tensor float64"], {}, F64),
    (["device cpu"], {}, Decision()),
    (["device-name cpu"], {}, Decision()),
    (["device cuda"], {}, Decision(device="gpu")),
    (["device-name cuda:1"], {}, Decision(device="gpu")),
    (["device cuda", "dtype float64"], {}, Decision("float64", "gpu")),
    # Keywords beside one argument are not looked at, but for `copy`.
    (["device cpu"], {"dtype": "dtype int8"}, Decision()),
    (["dtype float64"], {"dtype": "dtype int8"}, F64),
    (["dtype float32"], {"copy": "word true"}, Decision("float32", copies=True)),
    (["dtype float32"], {"copy": "word false"}, Decision("float32")),
    (["device cpu", "dtype float64"], {}, F64),
    (["device-name cpu", "dtype float64"], {}, F64),
    # Three are as good as none.
    (["device cpu", "dtype float64", "word false"], {}, Decision()),
    ([], {"dtype": "dtype float64"}, F64),
    ([], {"dtype": "word none"}, Decision()),
    ([], {"device": "device cpu", "dtype": "dtype float64"}, F64),
    ([], {}, Decision()),
]
NOT_SHARDED: list[tuple[list[str], dict[str, str]]] = [
    (["dtype-name float64"], {}),
    (["device-name nowhere"], {}),
    (["word number"], {}),
    (["word list"], {}),
    (["word none"], {}),
    ([], {"dtype": "word true"}),
    ([], {"dtype": "dtype-name float64"}),
    ([], {"device": "word none", "dtype": "dtype float64"}),
    # Neither of these has the `type` of a device.
    (["word none", "dtype float64"], {}),
    (["dtype float64", "device cpu"], {}),
]
LISTED: list[Form] = [
    (["dtype float64"], {}, F64),
    (["dtype float64", "word true", "word false", "memory-format preserve"], {}, F64),
    (["dtype float64", "word false", "word true"], {}, Decision("float64", copies=True)),
    ([], {"dtype": "dtype float64", "copy": "word true"}, Decision("float64", copies=True)),
    (["dtype float64"], {"memory_format": "memory-format preserve"}, F64),
    ([], {}, Decision()),
    (["word none"], {}, Decision()),
    (["word none", "dtype float64"], {}, F64),
    (["device cpu"], {}, Decision(device="cpu")),
    (["device cpu", "word none", "word false", "word true"], {},
     Decision(device="cpu", copies=True)),
    (["device-name cpu"], {"dtype": "dtype float64"}, Decision("float64", "cpu")),
    ([], {"device": "word none", "dtype": "dtype float64", "copy": "word false"}, F64),
    (["tensor float64"], {}, Decision("float64", "cpu")),
    (["tensor float64", "word true", "word true"], {}, Decision("float64", "cpu", copies=True)),
    (["gpu-tensor float64"], {}, Decision("float64", "gpu")),
    ([], {"other": "tensor float64", "non_blocking": "word true"}, Decision("float64", "cpu")),
]  # fmt: skip
NOT_LISTED: list[tuple[list[str], dict[str, str]]] = [
    (["dtype-name float64"], {}),
    ([], {"dtype": "dtype-name float64"}),
    (["dtype float64", "word true", "word true", "memory-format preserve", "word true"], {}),
    (["device cpu", "dtype int8", "word true", "word true", "memory-format preserve", "word true"],
     {}),
    (["tensor float64", "word true", "word true", "word true"], {}),
    (["tensor float64"], {"memory_format": "memory-format preserve"}),
    (["dtype float64"], {"device": "device cpu"}),
    (["dtype float64"], {"dtype": "dtype float64"}),
    (["dtype float64"], {"blocking": "word true"}),
    (["word number"], {}),
]  # fmt: skip
CAST: list[Form] = [
    (["input source", "dtype float64"], {}, F64),
    (["input source"], {"dtype": "dtype float64", "name": "text out"}, F64),
    (["input source", "dtype float64", "text out"], {}, F64),
    ([], {"A": "input source", "dtype": "dtype float64"}, F64),
]
NOT_CAST: list[tuple[list[str], dict[str, str]]] = [
    ([], {}),
    (["input source"], {}),
    (["dtype float64"], {}),
    (["word ten", "dtype float64"], {}),
    (["input source", "word number"], {}),
    (["input source", "dtype float64"], {"dtype": "dtype float64"}),
    (["input source", "dtype float64", "text out", "word true"], {}),
]
BITCAST: list[Form] = [
    (["input source", "dtype-name float64"], {}, F64),
    ([], {"A": "input source", "dytpe": "dtype-name float64"}, F64),
]
NOT_BITCAST: list[tuple[list[str], dict[str, str]]] = [
    (["word ten", "dtype-name float64"], {}),
    (["input source", "dtype-name flaot64"], {}),
    (["input source", "dtype-name float64", "text out"], {}),
]

DISPATCHED: dict[str, tuple[ReceiverKind, str, list[Form], list[tuple[Any, Any]]]] = {
    "paddle-tensor-to": ("tensor", "to", TO, NOT_TO),
    "paddle-layer-astype": ("layer", "astype", ONE, NOT_ONE),
    "torch-module-type": ("layer", "type", ONE, NOT_ONE),
    "torch-tensor-to": ("sharded-tensor", "to", SHARDED, NOT_SHARDED),
    "torch-tensor-to, listed": ("tensor", "to", LISTED, NOT_LISTED),
    "cinn-cast-calls": ("net-builder", "cast", CAST, NOT_CAST),
    "cinn-bitcast-calls": ("net-builder", "bitcast_convert", BITCAST, NOT_BITCAST),
}
TAKEN = [(name, *form) for name, (_, _, forms, _) in DISPATCHED.items() for form in forms]
REFUSED = [(name, *form) for name, (_, _, _, forms) in DISPATCHED.items() for form in forms]


def words(value: object) -> str:
    return str(value)


def decided(name: str, args: list[str], kwargs: dict[str, str]) -> Decision:
    receiver, method, *_ = DISPATCHED[name]
    return decide(name.partition(",")[0], call(receiver, method, args, kwargs))


@pytest.mark.parametrize(("name", "args", "kwargs", "decision"), TAKEN, ids=words)
def test_a_form_is_taken(
    name: str, args: list[str], kwargs: dict[str, str], decision: Decision
) -> None:
    assert decided(name, args, kwargs) == decision


@pytest.mark.parametrize(("name", "args", "kwargs"), REFUSED, ids=words)
def test_a_mixture_is_refused_in_one_line(
    name: str, args: list[str], kwargs: dict[str, str]
) -> None:
    with pytest.raises(RefusedError) as caught:
        decided(name, args, kwargs)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


ANY = st.one_of(
    st.builds(Argument, st.sampled_from(["dtype-name"]), st.sampled_from([*NAMES, "half", ""])),
    st.builds(Argument, st.sampled_from(["dtype", "tensor"]), st.sampled_from(NAMES)),
    st.builds(
        Argument,
        st.sampled_from(["device-name", "device"]),
        st.sampled_from(["cpu", "gpu", "cuda"]),
    ),
    st.builds(Argument, st.sampled_from(["input", "memory-format", "text"]), st.just("preserve")),
    st.builds(Argument, st.just("word"), st.sampled_from(get_args(ArgumentWord))),
)
KEYS = st.sampled_from(
    ["dtype", "device", "other", "blocking", "copy", "dst_type", "dtpye", "A", "dytpe", "name"]
)


@given(
    st.sampled_from(list(DISPATCHED)),
    st.lists(ANY, max_size=4),
    st.dictionaries(KEYS, ANY, max_size=3),
)
def test_whatever_is_passed_is_taken_or_refused(
    name: str, args: list[Argument], kwargs: dict[str, Argument]
) -> None:
    receiver, method, *_ = DISPATCHED[name]
    made = Call(
        receiver, (Member("", "tensor", "int8"),), method, tuple(args), tuple(kwargs.items())
    )
    try:
        decision = decide(name.partition(",")[0], made)
    except RefusedError:
        return
    assert decision.dtype in (None, *NAMES)
    assert decision.device in (None, "cpu", "gpu")


ONE_F32, THREE = 0x3F800000, 3


def returned(name: str, **held: list[int]) -> Returned:
    case = case_named(name)
    made = call_of(case)
    bits = {
        member.name: np.array(held.get(member.name.replace(".", "_") or "it", [0, 0]), np.uint32)
        for member in made.members
    }
    return Reference().call(case, made, bits)


class TestWhatComesBack:
    def test_another_dtype_gives_another_tensor(self) -> None:
        gave = returned("torch-tensor-to:2023/float32/float64/form:dtype", it=[ONE_F32, 0])
        assert (gave.is_receiver, gave.shares_memory) == (False, False)
        assert gave.tensors[""].dtype == "float64"
        assert gave.tensors[""].bits.tolist() == [0x3FF0 << 48, 0]
        assert gave.receiver[""].bits.tolist() == [ONE_F32, 0]

    def test_its_own_dtype_gives_the_receiver(self) -> None:
        gave = returned("torch-tensor-to:2023/float32/float32/form:same-dtype", it=[ONE_F32, 5])
        assert (gave.is_receiver, gave.shares_memory) == (True, True)
        assert gave.tensors[""].bits.tolist() == [ONE_F32, 5]

    def test_a_copy_that_is_asked_for_is_made(self) -> None:
        gave = returned("torch-tensor-to:2023/float32/float32/form:copies", it=[ONE_F32, 5])
        assert (gave.is_receiver, gave.shares_memory) == (False, False)

    def test_another_device_gives_another_tensor(self) -> None:
        gave = returned("paddle-tensor-to:1.0/float32/float32/form:to-gpu", it=[ONE_F32, 5])
        assert not gave.is_receiver
        assert (gave.tensors[""].device, gave.receiver[""].device) == ("gpu", "cpu")
        back = returned("paddle-tensor-to:1.0/float32/float32/form:from-gpu", it=[ONE_F32, 5])
        assert (back.tensors[""].device, back.receiver[""].device) == ("cpu", "gpu")
        stays = returned("paddle-tensor-to:1.0/float32/float64/form:on-gpu", it=[ONE_F32, 5])
        assert (stays.tensors[""].device, stays.tensors[""].dtype) == ("gpu", "float64")

    def test_a_layer_is_changed_where_it_stands_with_all_its_members(self) -> None:
        name = "torch-module-type:2023/float32/float64/form:dtype/member:inner.scale"
        gave = returned(name, inner_scale=[ONE_F32, 0])
        assert gave.is_receiver
        assert {tensor.dtype for tensor in gave.tensors.values()} == {"float64"}
        assert gave.tensors["inner.scale"].bits.tolist() == [0x3FF0 << 48, 0]

    def test_a_linear_takes_inputs_of_both_dtypes_and_gives_the_new_one(self) -> None:
        case = case_named("paddle-layer-astype:1.0/float32/float64/form:name/member:weight")
        bits = {"weight": np.zeros((2, 2), np.uint32), "bias": np.zeros(2, np.uint32)}
        gave = Reference().call(case, linear_call(case, "float32", "astype"), bits)
        assert [gave.outputs[dtype].dtype for dtype in ("float32", "float64")] == ["float64"] * 2
        assert {tensor.dtype for tensor in gave.receiver.values()} == {"float64"}
        # One on which nothing is called runs in its own dtype.
        gave = Reference().call(case, linear_call(case, "float32", None), bits)
        assert {name: one.dtype for name, one in gave.outputs.items()} == {"float32": "float32"}

    def test_a_builder_gives_a_new_tensor_even_of_the_same_dtype(self) -> None:
        gave = returned("cinn-cast-calls:1.0/float32/float32/form:dtype", it=[ONE_F32, 5])
        assert (gave.is_receiver, gave.shares_memory) == (False, False)
        assert gave.tensors[""].bits.tolist() == gave.receiver[""].bits.tolist() == [ONE_F32, 5]

    def test_what_is_no_form_is_refused(self) -> None:
        with pytest.raises(RefusedError, match="`flaot64` is neither dtype nor device nor tensor"):
            returned("paddle-tensor-to:1.0/float32/float32/form:no-such-name")
