"""Calls on paddle's tensors and layers, as documents write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.adapters.calls import WORD_VALUES, ones
from oracles.adapters.paddle import Paddle
from oracles.adapters.paddle_calls import shares_memory
from oracles.protocol import Returned, Unsupported, WithCall
from oracles.registry import Backend
from specs.cases import Argument, Call, Case, Member
from specs.formats import format_named
from specs.selection import case_named
from tests.adapters.contract import make

CASE = Case("paddle-to", "1.0", "float32", "float64")
ONE = {"float32": 0x3F800000, "float64": 0x3FF0 << 48, "int8": 1, "float16": 0x3C00}


@pytest.fixture(scope="module")
def paddle() -> Any:
    return make("paddle")


def argument(text: str) -> Argument:
    """Parse ``kind value`` as an argument."""
    kind, _, value = text.partition(" ")
    return Argument(kind, value)  # type: ignore[arg-type]


def on_tensor(
    paddle: Paddle, *args: str, held: str = "float32", method: str = "to", **kwargs: str
) -> Returned:
    call = Call(
        "tensor",
        (Member("", "tensor", held),),
        method,
        tuple(map(argument, args)),
        tuple((name, argument(text)) for name, text in kwargs.items()),
    )
    return paddle.call(CASE, call, {"": ones(held, (3,))})


MEMBERS = (
    Member("weight", "parameter", "float32"),
    Member("inner.bias", "parameter", "float32"),
    Member("steps", "buffer", "int64"),
    Member("inner.mask", "buffer", "bool"),
)


def on_layer(
    paddle: Paddle,
    *args: str,
    members: tuple[Member, ...] = MEMBERS,
    method: str = "astype",
    shape: tuple[int, ...] = (2,),
    **kwargs: str,
) -> Returned:
    call = Call(
        "layer",
        members,
        method,
        tuple(map(argument, args)),
        tuple((name, argument(text)) for name, text in kwargs.items()),
    )
    held = {member.name: ones(member.dtype, shape) for member in members}
    return paddle.call(CASE, call, held)


class TestValues:
    @pytest.mark.parametrize(
        ("dtype", "one"),
        [
            ("float32", 0x3F800000),
            ("float8e8m0", 0x7F),
            ("int4", 1),
            ("bool", 1),
            ("complex64", 0x3F800000),
        ],
    )
    def test_ones(self, dtype: str, one: int) -> None:
        assert ones(dtype, (2, 1)).tolist() == [[one], [one]]
        assert ones(dtype, ()).tolist() == one
        assert ones(dtype, (0,)).dtype == np.dtype(format_named(dtype).storage)

    def test_a_complex_one_has_its_real_part_first(self) -> None:
        assert ones("complex128", (1,)).tobytes() == (0x3FF0 << 48).to_bytes(16, "little")

    def test_words(self) -> None:
        assert list(WORD_VALUES.values()) == [None, True, False, 0, 3.5, [], [10], b"float32"]


# The forms of a call that paddle's design of `Tensor.to` names, each with the target dtype.
FORMS: list[tuple[tuple[str, ...], dict[str, str], str]] = [
    (("dtype-name float64",), {}, "float64"),
    (("dtype float64",), {}, "float64"),
    (("dtype-name float64", "word true"), {}, "float64"),
    (("dtype-name float64",), {"blocking": "word false"}, "float64"),
    ((), {"dtype": "dtype-name int8"}, "int8"),
    (("device-name cpu",), {}, "float32"),
    (("device cpu",), {}, "float32"),
    (("device-name cpu", "dtype-name float16"), {}, "float16"),
    (("device cpu", "dtype float16", "word none"), {}, "float16"),
    ((), {"device": "device-name cpu", "dtype": "dtype float16"}, "float16"),
    (("tensor float64",), {}, "float64"),
    (("tensor float64", "word true"), {}, "float64"),
    ((), {"other": "tensor float16"}, "float16"),
]


class TestTensors:
    @pytest.mark.parametrize(("args", "kwargs", "dtype"), FORMS)
    def test_every_form_of_to_converts(
        self, paddle: Paddle, args: tuple[str, ...], kwargs: dict[str, str], dtype: str
    ) -> None:
        returned = on_tensor(paddle, *args, **kwargs)
        tensor = returned.tensors[""]
        assert (tensor.dtype, tensor.device) == (dtype, "cpu")
        assert tensor.bits.dtype == np.dtype(format_named(dtype).storage)
        assert tensor.bits.tolist() == [ONE[dtype]] * 3
        receiver = returned.receiver[""]
        assert (receiver.dtype, receiver.bits.tolist()) == ("float32", [ONE["float32"]] * 3)
        assert returned.outputs == {}

    @pytest.mark.parametrize("form", ["dtype float32", "device-name cpu", "tensor float32"])
    def test_to_the_same_dtype_returns_the_receiver(self, paddle: Paddle, form: str) -> None:
        returned = on_tensor(paddle, form)
        assert (returned.is_receiver, returned.shares_memory) == (True, True)

    @pytest.mark.parametrize("form", ["dtype float64", "tensor int8"])
    def test_to_another_dtype_returns_another_tensor(self, paddle: Paddle, form: str) -> None:
        returned = on_tensor(paddle, form)
        assert (returned.is_receiver, returned.shares_memory) == (False, False)

    def test_a_view_is_another_tensor_in_the_same_memory(self, paddle: Paddle) -> None:
        returned = on_tensor(paddle, "dtype int32", method="view")
        assert (returned.is_receiver, returned.shares_memory) == (False, True)
        assert returned.tensors[""].bits.tolist() == [ONE["float32"]] * 3

    def test_a_method_that_works_in_place_shows_on_the_receiver(self, paddle: Paddle) -> None:
        bits = np.full(3, ONE["float32"], np.uint32)
        call = Call("tensor", (Member("", "tensor", "float32"),), "zero_")
        returned = paddle.call(CASE, call, {"": bits})
        assert returned.is_receiver
        assert returned.receiver[""].bits.tolist() == [0, 0, 0]
        assert bits.tolist() == [ONE["float32"]] * 3

    @pytest.mark.parametrize("dtype", ["uint16", "bfloat16", "float8e5m2", "complex128", "bool"])
    def test_every_dtype_is_read_by_its_own_name(self, paddle: Paddle, dtype: str) -> None:
        returned = on_tensor(paddle, f"dtype {dtype}", held=dtype)
        assert returned.tensors[""].dtype == dtype
        assert returned.tensors[""].bits.tobytes() == ones(dtype, (3,)).tobytes()

    def test_the_string_uint16_means_bfloat16(self, paddle: Paddle) -> None:
        returned = on_tensor(paddle, "dtype-name uint16", method="astype")
        assert returned.tensors[""].dtype == "bfloat16"
        assert returned.tensors[""].bits.tolist() == [0x3F80] * 3

    @pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
    def test_a_tensor_of_any_shape_is_converted(
        self, paddle: Paddle, shape: tuple[int, ...]
    ) -> None:
        call = Call("tensor", (Member("", "tensor", "float32"),), "to", (argument("dtype int8"),))
        returned = paddle.call(CASE, call, {"": ones("float32", shape)})
        assert returned.tensors[""].bits.tolist() == np.ones(shape, np.uint8).tolist()
        assert not returned.shares_memory


def on_receiver(paddle: Paddle, receiver: Any, device: str = "cpu") -> Returned:
    call = Call(receiver, (Member("", "tensor", "float32"),), "to", device=device)
    return paddle.call(CASE, call, {"": ones("float32", (3,))})


NO_GPU = "^there is no device {} here$"


class TestErrors:
    @pytest.mark.parametrize("device", ["gpu", "gpu:0"])
    def test_a_gpu_is_unsupported_where_there_is_none(self, paddle: Paddle, device: str) -> None:
        if paddle._paddle.is_compiled_with_cuda():
            pytest.skip("this paddle has a GPU")
        with pytest.raises(Unsupported, match=NO_GPU.format(device)):
            on_tensor(paddle, f"device-name {device}")
        for name in (device, "nonsense", "gpu:x"):
            with pytest.raises(Unsupported, match=NO_GPU.format(f"object {name}")):
                on_tensor(paddle, f"device {name}")
        with pytest.raises(Unsupported, match=NO_GPU.format("gpu")):
            on_receiver(paddle, "tensor", device="gpu")
        with pytest.raises(Unsupported, match=NO_GPU.format("gpu")):
            on_tensor(paddle, "gpu-tensor float32")

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"flaot": "dtype-name float64"}, TypeError, "unexpected keyword argument"),
            ({"method": "frobnicate"}, Unsupported, "^paddle's tensor has no method frobnicate$"),
        ],
    )
    def test_a_wrong_call_is_an_error(
        self, paddle: Paddle, arguments: Any, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            on_tensor(paddle, **arguments)

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("device-name nonsense", ValueError, "^The device "),
            ("device-name xpu", ValueError, "^The device "),
            ("dtype-name flaot64", ValueError, None),
            ("word list", ValueError, None),
            ("word bytes", ValueError, None),
            ("word true", ValueError, None),
            ("dtype int4", Unsupported, "^paddle has no dtype "),
            ("tensor float4e2m1", Unsupported, "^paddle has no dtype "),
            ("memory-format preserve", Unsupported, "^paddle has no argument of the kind `"),
            ("input ", Unsupported, "^paddle has no argument of the kind `"),
        ],
    )
    def test_a_wrong_argument_is_paddles_own_error_and_an_unknown_one_is_unsupported(
        self, paddle: Paddle, text: str, error: type[Exception], message: str | None
    ) -> None:
        with pytest.raises(error, match=message):
            on_tensor(paddle, text)

    def test_a_receiver_that_paddle_lacks_is_unsupported(self, paddle: Paddle) -> None:
        with pytest.raises(Unsupported, match=r"no sharded-tensor"):
            on_receiver(paddle, "sharded-tensor")
        with pytest.raises(Unsupported, match=r"no parameters of dtype uint32$"):
            on_layer(paddle, "dtype float64", members=(Member("w", "parameter", "uint32"),))

    def test_a_static_program_makes_no_calls(self, paddle: Paddle) -> None:
        static = Paddle("static")
        assert isinstance(static, WithCall)
        with pytest.raises(Unsupported, match=r"^a static program has no calls"):
            on_tensor(static, "dtype float64")


class TestLayers:
    def test_a_layer_has_the_members_of_the_call(self, paddle: Paddle) -> None:
        returned = on_layer(paddle, "dtype float32")
        found = {name: tensor.dtype for name, tensor in returned.receiver.items()}
        assert found == {member.name: member.dtype for member in MEMBERS}
        assert returned.receiver["inner.mask"].bits.tolist() == [1, 1]
        assert returned.receiver["steps"].bits.tolist() == [1, 1]
        assert returned.receiver["inner.bias"].device == "cpu"

    def test_to_converts_a_layer_in_place_and_returns_it(self, paddle: Paddle) -> None:
        returned = on_layer(paddle, method="to", dtype="dtype-name float64")
        assert (returned.is_receiver, returned.shares_memory) == (True, True)
        found = {name: tensor.dtype for name, tensor in returned.tensors.items()}
        assert found == {member.name: "float64" for member in MEMBERS}
        assert returned.tensors["inner.mask"].bits.tolist() == [ONE["float64"]] * 2

    def test_astype_returns_the_layer_itself(self, paddle: Paddle) -> None:
        returned = on_layer(paddle, "dtype-name float64")
        assert returned.is_receiver
        assert returned.tensors.keys() == {member.name for member in MEMBERS}
        # Found in 3.3.1: not one member is converted. A later paddle may well convert them.
        assert returned.tensors["weight"].dtype in ("float32", "float64")

    def test_astype_takes_one_argument(self, paddle: Paddle) -> None:
        for args in ((), ("dtype-name flaot64",), ("word none",)):
            with pytest.raises(ValueError, match=r"^dtype value error"):
                on_layer(paddle, *args)


FEATURES = 2


def on_linear(
    paddle: Paddle, held: str, *inputs: str, method: str | None = None, **kwargs: str
) -> Returned:
    """Make a call on a Linear of ones, and run the layer on inputs of these dtypes."""
    members = (Member("weight", "parameter", held), Member("bias", "parameter", held))
    named = tuple((name, argument(text)) for name, text in kwargs.items())
    call = Call("linear", members, method, (), named, inputs=inputs)
    shapes = {"weight": (FEATURES, FEATURES), "bias": (FEATURES,)}
    return paddle.call(CASE, call, {name: ones(held, shape) for name, shape in shapes.items()})


class TestLinear:
    def test_a_linear_has_its_weight_and_its_bias(self, paddle: Paddle) -> None:
        returned = on_linear(paddle, "float64", "float64")
        assert {name: one.bits.shape for name, one in returned.receiver.items()} == {
            "weight": (2, 2),
            "bias": (2,),
        }
        assert {one.dtype for one in returned.receiver.values()} == {"float64"}
        output = returned.outputs["float64"]
        assert not isinstance(output, str)
        # 1 + 1 of the weight's columns, and 1 of the bias
        assert (output.dtype, output.bits.tolist()) == ("float64", [[0x4008 << 48] * 2])

    def test_a_refused_input_is_answered_by_its_error_in_one_line(self, paddle: Paddle) -> None:
        returned = on_linear(paddle, "float64", "float64", "float32")
        assert list(returned.outputs) == ["float64", "float32"]
        refused = returned.outputs["float32"]
        assert isinstance(refused, str)
        assert refused.startswith("ValueError: ")
        assert "\n" not in refused

    def test_the_layer_runs_after_the_call(self, paddle: Paddle) -> None:
        returned = on_linear(paddle, "float32", "float64", method="to", dtype="dtype float64")
        assert {one.dtype for one in returned.receiver.values()} == {"float64"}
        output = returned.outputs["float64"]
        assert not isinstance(output, str)
        assert output.dtype == "float64"


class TestBitcastMemory:
    @pytest.mark.parametrize("target", ["int32", "float16", "float32"])
    def test_a_view_shares_its_tensors_memory(self, paddle: Paddle, target: str) -> None:
        case = Case("torch-view", "2", "float32", target, (("shape", "2x2"),))
        assert paddle.bitcast_shares_memory(case, ones("float32", (2, 2)))

    def test_a_copy_does_not(self, paddle: Paddle) -> None:
        x = paddle._tensors.tensor("float32", ones("float32", (2,)))
        assert not shares_memory(x, x.clone())
        assert shares_memory(x, x.view(paddle._tensors.dtype("int32")))


def astype(paddle: Any, *, converts: tuple[str, ...], inputs: bool) -> Any:
    """Return a `Layer.astype` that converts these parameters and, if asked, the inputs."""

    def method(layer: Any, dst_type: Any) -> Any:
        def convert_inputs(layer: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(x.astype(dst_type) for x in inputs)

        for sublayer in layer.sublayers(include_self=True):
            for name, parameter in list(sublayer.named_parameters(include_sublayers=False)):
                if name in converts:
                    setattr(
                        sublayer, name, paddle.nn.Parameter(parameter.detach().astype(dst_type))
                    )
        if inputs:
            layer.register_forward_pre_hook(convert_inputs)
        return layer

    return method


ALL = ("weight", "bias")
ASTYPES: list[tuple[tuple[str, ...], bool, str, str, list[str]]] = [
    (ALL, True, "weight", "conforms", []),
    (ALL, True, "bias", "conforms", []),
    (ALL, False, "weight", "deviates", ["layer-runs"]),
    # Such a layer still runs, as paddle adds a bias of another dtype; but its bias is a member too.
    (("weight",), True, "weight", "violates", ["form:name", "layer-runs"]),
    (("weight",), True, "bias", "violates", ["form:name"]),
    ((), True, "weight", "violates", ["form:name"]),
]


@pytest.mark.parametrize(("converts", "inputs", "member", "verdict", "rules"), ASTYPES)
def test_what_astype_does_to_a_real_layer_is_judged(
    paddle: Paddle,
    monkeypatch: pytest.MonkeyPatch,
    converts: tuple[str, ...],
    inputs: bool,
    member: str,
    verdict: str,
    rules: list[str],
) -> None:
    method = astype(paddle._paddle, converts=converts, inputs=inputs)
    monkeypatch.setattr(paddle._paddle.nn.Layer, "astype", method)
    backend_judge = BackendJudge(Backend("paddle", paddle), {}, Settings(max_examples=10))
    case = case_named(f"paddle-layer-astype:1.0/float32/float64/form:name/member:{member}")
    found = backend_judge.judge(case)
    assert (found.verdict, [fault.rule for fault in found.faults]) == (verdict, rules)


def to_that_zeroes_its_receiver(x: Any, dtype: Any) -> Any:
    y = x.astype(dtype)
    x.zero_()
    return y


def test_a_to_that_writes_into_its_receiver_is_found(
    paddle: Paddle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paddle._paddle.Tensor, "to", to_that_zeroes_its_receiver)
    backend_judge = BackendJudge(Backend("paddle", paddle), {}, Settings(max_examples=10))
    found = backend_judge.judge(case_named("paddle-tensor-to:1.0/float32/float64/form:name"))
    assert found.verdict == "deviates"
    assert {fault.rule for fault in found.faults} == {"receiver-unchanged"}
