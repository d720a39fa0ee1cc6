"""The reference binds calls by position and by keyword, and refuses mixtures of both."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.families.call.dispatch import DTYPE_NAMES, Decision, RefusedError, decide
from conformance.families.reference import Reference
from oracles.protocol import Returned
from specs.case_calls import call_of, linear_call
from specs.cases import Argument, ArgumentKind, ArgumentWord, Call, Member, ReceiverKind
from specs.selection import case_named


def argument(text: str) -> Argument:
    kind, _, value = text.partition(" ")
    assert kind in get_args(ArgumentKind)
    return Argument(kind, value)  # type: ignore[arg-type]


def call(receiver: ReceiverKind, method: str, args: list[str], kwargs: dict[str, str]) -> Call:
    member = Member("weight" if receiver == "layer" else "", "tensor", "float32")
    named = tuple((name, argument(text)) for name, text in kwargs.items())
    return Call(receiver, (member,), method, tuple(map(argument, args)), named)


F64 = Decision("float64")
Accepted = tuple[list[str], dict[str, str], Decision]
Refused = tuple[list[str], dict[str, str]]

TO: list[Accepted] = [
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
NOT_TO: list[Refused] = [
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
ONE: list[Accepted] = [
    (["dtype-name float64"], {}, F64),
    (["dtype float64"], {}, F64),
    ([], {"dst_type": "dtype-name float64"}, F64),
]
NOT_ONE: list[Refused] = [
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
SHARDED: list[Accepted] = [
    (["dtype float64"], {}, F64),
    (["tensor float64"], {}, F64),
    (["device cpu"], {}, Decision()),
    (["device-name cpu"], {}, Decision()),
    (["device cuda"], {}, Decision(device="gpu")),
    (["device-name cuda:1"], {}, Decision(device="gpu")),
    (["device cuda", "dtype float64"], {}, Decision("float64", "gpu")),
    # Beside positional arguments, all keywords but `copy` are ignored.
    (["device cpu"], {"dtype": "dtype int8"}, Decision()),
    (["dtype float64"], {"dtype": "dtype int8"}, F64),
    (["dtype float32"], {"copy": "word true"}, Decision("float32", copies=True)),
    (["dtype float32"], {"copy": "word false"}, Decision("float32")),
    (["device cpu", "dtype float64"], {}, F64),
    (["device-name cpu", "dtype float64"], {}, F64),
    # Three positional arguments are ignored.
    (["device cpu", "dtype float64", "word false"], {}, Decision()),
    ([], {"dtype": "dtype float64"}, F64),
    ([], {"dtype": "word none"}, Decision()),
    ([], {"device": "device cpu", "dtype": "dtype float64"}, F64),
    ([], {}, Decision()),
]
NOT_SHARDED: list[Refused] = [
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
LISTED: list[Accepted] = [
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
NOT_LISTED: list[Refused] = [
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
CAST: list[Accepted] = [
    (["input source", "dtype float64"], {}, F64),
    (["input source"], {"dtype": "dtype float64", "name": "text out"}, F64),
    (["input source", "dtype float64", "text out"], {}, F64),
    ([], {"A": "input source", "dtype": "dtype float64"}, F64),
]
NOT_CAST: list[Refused] = [
    ([], {}),
    (["input source"], {}),
    (["dtype float64"], {}),
    (["word ten", "dtype float64"], {}),
    (["input source", "word number"], {}),
    (["input source", "dtype float64"], {"dtype": "dtype float64"}),
    (["input source", "dtype float64", "text out", "word true"], {}),
]
BITCAST: list[Accepted] = [
    (["input source", "dtype-name float64"], {}, F64),
    ([], {"A": "input source", "dytpe": "dtype-name float64"}, F64),
]
NOT_BITCAST: list[Refused] = [
    (["word ten", "dtype-name float64"], {}),
    (["input source", "dtype-name flaot64"], {}),
    (["input source", "dtype-name float64", "text out"], {}),
]

DISPATCHED: dict[str, tuple[ReceiverKind, str, list[Accepted], list[Refused]]] = {
    "paddle-tensor-to": ("tensor", "to", TO, NOT_TO),
    "paddle-layer-astype": ("layer", "astype", ONE, NOT_ONE),
    "torch-module-type": ("layer", "type", ONE, NOT_ONE),
    "torch-sharded-tensor-to": ("sharded-tensor", "to", SHARDED, NOT_SHARDED),
    "torch-sharded-tensor-to, listed": ("tensor", "to", LISTED, NOT_LISTED),
    "torch-tensor-to": ("tensor", "to", LISTED, NOT_LISTED),
    "cinn-cast-calls": ("net-builder", "cast", CAST, NOT_CAST),
    "cinn-bitcast-calls": ("net-builder", "bitcast_convert", BITCAST, NOT_BITCAST),
}
ACCEPTED = [(name, *entry) for name, (_, _, calls, _) in DISPATCHED.items() for entry in calls]
REFUSED = [(name, *entry) for name, (_, _, _, calls) in DISPATCHED.items() for entry in calls]


def decided(name: str, args: list[str], kwargs: dict[str, str]) -> Decision:
    receiver, method, *_ = DISPATCHED[name]
    return decide(name.partition(",")[0], call(receiver, method, args, kwargs))


@pytest.mark.parametrize(("name", "args", "kwargs", "decision"), ACCEPTED, ids=str)
def test_a_valid_call_is_dispatched(
    name: str, args: list[str], kwargs: dict[str, str], decision: Decision
) -> None:
    assert decided(name, args, kwargs) == decision


@pytest.mark.parametrize(("name", "args", "kwargs"), REFUSED, ids=str)
def test_an_invalid_call_is_refused_in_one_line(
    name: str, args: list[str], kwargs: dict[str, str]
) -> None:
    with pytest.raises(RefusedError) as caught:
        decided(name, args, kwargs)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


ARGUMENTS = st.one_of(
    st.builds(
        Argument, st.sampled_from(["dtype-name"]), st.sampled_from([*DTYPE_NAMES, "half", ""])
    ),
    st.builds(Argument, st.sampled_from(["dtype", "tensor"]), st.sampled_from(DTYPE_NAMES)),
    st.builds(
        Argument,
        st.sampled_from(["device-name", "device"]),
        st.sampled_from(["cpu", "gpu", "cuda"]),
    ),
    st.builds(Argument, st.sampled_from(["input", "memory-format", "text"]), st.just("preserve")),
    st.builds(Argument, st.just("word"), st.sampled_from(get_args(ArgumentWord))),
)
KEYWORDS = st.sampled_from(
    ["dtype", "device", "other", "blocking", "copy", "dst_type", "dtpye", "A", "dytpe", "name"]
)


@given(
    st.sampled_from(list(DISPATCHED)),
    st.lists(ARGUMENTS, max_size=4),
    st.dictionaries(KEYWORDS, ARGUMENTS, max_size=3),
)
def test_any_call_is_dispatched_or_refused(
    name: str, args: list[Argument], kwargs: dict[str, Argument]
) -> None:
    receiver, method, *_ = DISPATCHED[name]
    random_call = Call(
        receiver, (Member("", "tensor", "int8"),), method, tuple(args), tuple(kwargs.items())
    )
    try:
        decision = decide(name.partition(",")[0], random_call)
    except RefusedError:
        return
    assert decision.dtype in (None, *DTYPE_NAMES)
    assert decision.device in (None, "cpu", "gpu")


ONE_F32, THREE = 0x3F800000, 3


def returned(name: str, **members: list[int]) -> Returned:
    """The reference's result of a case; ``tensor`` are the bits of a receiver that is a tensor."""
    case = case_named(name)
    case_call = call_of(case)
    bits = {
        member.name: np.array(
            members.get(member.name.replace(".", "_") or "tensor", [0, 0]), np.uint32
        )
        for member in case_call.members
    }
    return Reference().call(case, case_call, bits)


class TestResultsOfCalls:
    def test_another_dtype_returns_a_new_tensor(self) -> None:
        result = returned(
            "torch-sharded-tensor-to:2023/float32/float64/form:dtype", tensor=[ONE_F32, 0]
        )
        assert (result.is_receiver, result.shares_memory) == (False, False)
        assert result.tensors[""].dtype == "float64"
        assert result.tensors[""].bits.tolist() == [0x3FF0 << 48, 0]
        assert result.receiver[""].bits.tolist() == [ONE_F32, 0]

    def test_its_own_dtype_returns_the_receiver(self) -> None:
        result = returned(
            "torch-sharded-tensor-to:2023/float32/float32/form:same-dtype", tensor=[ONE_F32, 5]
        )
        assert (result.is_receiver, result.shares_memory) == (True, True)
        assert result.tensors[""].bits.tolist() == [ONE_F32, 5]

    def test_copy_true_returns_a_new_tensor(self) -> None:
        result = returned(
            "torch-sharded-tensor-to:2023/float32/float32/form:copies", tensor=[ONE_F32, 5]
        )
        assert (result.is_receiver, result.shares_memory) == (False, False)

    def test_another_device_returns_a_new_tensor(self) -> None:
        result = returned("paddle-tensor-to:1.0/float32/float32/form:to-gpu", tensor=[ONE_F32, 5])
        assert not result.is_receiver
        assert (result.tensors[""].device, result.receiver[""].device) == ("gpu", "cpu")
        back = returned("paddle-tensor-to:1.0/float32/float32/form:from-gpu", tensor=[ONE_F32, 5])
        assert (back.tensors[""].device, back.receiver[""].device) == ("cpu", "gpu")
        stays = returned("paddle-tensor-to:1.0/float32/float64/form:on-gpu", tensor=[ONE_F32, 5])
        assert (stays.tensors[""].device, stays.tensors[""].dtype) == ("gpu", "float64")

    def test_a_layer_is_changed_in_place_with_all_its_members(self) -> None:
        name = "torch-module-type:2023/float32/float64/form:dtype/member:inner.scale"
        result = returned(name, inner_scale=[ONE_F32, 0])
        assert result.is_receiver
        assert {tensor.dtype for tensor in result.tensors.values()} == {"float64"}
        assert result.tensors["inner.scale"].bits.tolist() == [0x3FF0 << 48, 0]

    def test_a_converted_linear_takes_inputs_of_both_dtypes_and_returns_the_new_one(self) -> None:
        case = case_named("paddle-layer-astype:1.0/float32/float64/form:name/member:weight")
        bits = {"weight": np.zeros((2, 2), np.uint32), "bias": np.zeros(2, np.uint32)}
        result = Reference().call(case, linear_call(case, "float32", "astype"), bits)
        assert [result.outputs[dtype].dtype for dtype in ("float32", "float64")] == ["float64"] * 2
        assert {tensor.dtype for tensor in result.receiver.values()} == {"float64"}
        # A layer on which no method is called runs in its own dtype.
        result = Reference().call(case, linear_call(case, "float32", None), bits)
        assert {name: one.dtype for name, one in result.outputs.items()} == {"float32": "float32"}

    def test_the_other_members_of_a_layer_keep_their_values(self) -> None:
        name = "torch-module-type:2023/float16/float32/form:dtype/member:scale"
        result = returned(name, scale=[0x3C00, 0xC000], weight=[ONE_F32, 0xC0000000])
        assert result.tensors["scale"].bits.tolist() == [ONE_F32, 0xC0000000]
        assert result.tensors["weight"].bits.tolist() == [ONE_F32, 0xC0000000]

    def test_the_other_members_of_a_layer_are_converted(self) -> None:
        name = "torch-module-type:2023/float16/float16/form:dtype/member:scale"
        result = returned(name, scale=[0x3C00, 1], inner_scale=[ONE_F32, 0xC0000000])
        assert result.tensors["scale"].bits.tolist() == [0x3C00, 1]
        assert result.tensors["inner.scale"].bits.tolist() == [0x3C00, 0xC000]

    def test_the_weight_and_the_bias_of_a_linear_are_converted(self) -> None:
        case = case_named("paddle-layer-astype:1.0/float32/float16/form:name/member:weight")
        bits = {"weight": np.full((2, 2), ONE_F32), "bias": np.array([ONE_F32, 0xC0000000])}
        bits = {name: each.astype(np.uint32) for name, each in bits.items()}
        result = Reference().call(case, linear_call(case, "float32", "astype"), bits)
        assert result.receiver["weight"].bits.tolist() == [[0x3C00, 0x3C00]] * 2
        assert result.receiver["bias"].bits.tolist() == [0x3C00, 0xC000]

    def test_a_builder_returns_a_new_tensor_even_of_the_same_dtype(self) -> None:
        result = returned("cinn-cast-calls:1.0/float32/float32/form:dtype", tensor=[ONE_F32, 5])
        assert (result.is_receiver, result.shares_memory) == (False, False)
        assert result.tensors[""].bits.tolist() == result.receiver[""].bits.tolist() == [ONE_F32, 5]

    def test_an_unknown_name_is_refused(self) -> None:
        message = "`flaot64` is neither dtype nor device nor tensor"
        with pytest.raises(RefusedError, match=message):
            returned("paddle-tensor-to:1.0/float32/float32/form:no-such-name")
