"""``Tensor.to``, ``ShardedTensor.to`` and ``Module.type``, called as documents write them."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pytest

from oracles.adapters.torch_tensors import DTYPES
from oracles.protocol import Bits, Returned, Unsupported, WithCall
from specs.cases import Argument, Call, Case, Member, ReceiverKind
from tests.adapters.common import assert_same, bits_of, patterns_of, some_patterns
from tests.adapters.contract import make

CASE = Case("any", "1", "float32", "float16", (("form", "positional"),))
FLOATS = [0x3FC00000, 0xC0000000, 0x7F800001]  # 1.5, -2, a signaling NaN
HALVES = [0x3E00, 0xC000]
DOUBLES = [0x3FF8 << 48, 0xC000 << 48]


@pytest.fixture(scope="module")
def oracle() -> Any:
    return make("torch")


def dtype(name: str) -> Argument:
    return Argument("dtype", name)


def to(
    oracle: Any,
    *args: Argument,
    receiver: ReceiverKind = "tensor",
    bits: Bits | None = None,
    source: str = "float32",
    **kwargs: Argument,
) -> Returned:
    """Call ``x.to(*args, **kwargs)`` on 1.5 and -2, which must not change."""
    held = bits_of("float32", FLOATS[:2]) if bits is None else bits
    before = held.copy()
    call = Call(receiver, (Member("", "tensor", source),), "to", args, tuple(kwargs.items()))
    returned: Returned = oracle.call(CASE, call, {"": held})
    assert_same(held, before)
    assert (returned.receiver[""].dtype, returned.receiver[""].device) == (source, "cpu")
    assert_same(returned.receiver[""].bits, before)
    assert returned.outputs == {}
    return returned


def answer(returned: Returned) -> tuple[str, str, list[int]]:
    tensor = returned.tensors[""]
    return tensor.dtype, tensor.device, patterns_of(tensor.bits)


BOTH: list[ReceiverKind] = ["tensor", "sharded-tensor"]
CPU = Argument("device-name", "cpu")
CPU_OBJECT = Argument("device", "cpu")
TRUE, NONE = Argument("word", "true"), Argument("word", "none")


@pytest.mark.parametrize("receiver", BOTH)
class TestEveryTensor:
    @pytest.mark.parametrize("name", DTYPES)
    def test_bits_come_out_unchanged(self, oracle: Any, receiver: ReceiverKind, name: str) -> None:
        bits = some_patterns(name, 16)
        returned = to(oracle, CPU, receiver=receiver, bits=bits, source=name)
        assert returned.tensors[""].dtype == name
        assert_same(returned.tensors[""].bits, bits)

    @pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 3)])
    def test_the_result_has_the_receivers_shape(
        self, oracle: Any, receiver: ReceiverKind, shape: tuple[int, ...]
    ) -> None:
        bits = np.zeros(shape, np.uint32)
        bits.flags.writeable = False
        returned = to(oracle, dtype("float64"), receiver=receiver, bits=bits)
        assert returned.tensors[""].bits.shape == shape

    @pytest.mark.parametrize(
        "args",
        [
            (dtype("float16"),),
            (CPU, dtype("float16")),
            (CPU_OBJECT, dtype("float16")),
            (Argument("tensor", "float16"),),
        ],
        ids=["dtype", "name-dtype", "device-dtype", "other"],
    )
    def test_another_dtype_returns_another_tensor(
        self, oracle: Any, receiver: ReceiverKind, args: tuple[Argument, ...]
    ) -> None:
        returned = to(oracle, *args, receiver=receiver)
        assert answer(returned) == ("float16", "cpu", HALVES)
        assert not returned.is_receiver
        assert not returned.shares_memory

    @pytest.mark.parametrize(
        "args",
        [(dtype("float32"),), (CPU,), (CPU_OBJECT,), (Argument("tensor", "float32"),)],
        ids=["dtype", "name", "device", "other"],
    )
    def test_the_same_dtype_returns_the_receiver(
        self, oracle: Any, receiver: ReceiverKind, args: tuple[Argument, ...]
    ) -> None:
        returned = to(oracle, *args, receiver=receiver)
        assert answer(returned) == ("float32", "cpu", FLOATS[:2])
        assert returned.is_receiver
        assert returned.shares_memory

    def test_copy_returns_another_tensor(self, oracle: Any, receiver: ReceiverKind) -> None:
        returned = to(oracle, receiver=receiver, dtype=dtype("float32"), copy=TRUE)
        assert answer(returned) == ("float32", "cpu", FLOATS[:2])
        assert not returned.is_receiver
        assert not returned.shares_memory

    def test_keywords_are_passed_as_keywords(self, oracle: Any, receiver: ReceiverKind) -> None:
        returned = to(oracle, receiver=receiver, dtype=dtype("float64"), device=CPU)
        assert answer(returned) == ("float64", "cpu", DOUBLES)

    @pytest.mark.parametrize("name", ["float64", "flaot64", "gpu", "gpu:0", ""])
    def test_a_string_is_a_device(self, oracle: Any, receiver: ReceiverKind, name: str) -> None:
        for kind in ("dtype-name", "device-name"):
            with pytest.raises(RuntimeError, match=r"(?i)device"):
                to(oracle, Argument(kind, name), receiver=receiver)

    def test_a_tensor_without_memory_has_no_bits(self, oracle: Any, receiver: ReceiverKind) -> None:
        returned = to(oracle, Argument("device", "meta"), receiver=receiver)
        assert answer(returned) == ("float32", "meta", [])
        assert not returned.shares_memory

    @pytest.mark.parametrize("name", ["nonsense", "hpu", "xpu:7"])
    def test_a_device_that_the_machine_lacks_is_unsupported(
        self, oracle: Any, receiver: ReceiverKind, name: str
    ) -> None:
        with pytest.raises(Unsupported, match=f"no device {name} here"):
            to(oracle, Argument("device", name), receiver=receiver)

    @pytest.mark.parametrize("kind", ["dtype", "tensor"])
    def test_a_dtype_that_torch_lacks_is_unsupported(
        self, oracle: Any, receiver: ReceiverKind, kind: Any
    ) -> None:
        with pytest.raises(Unsupported, match="float6e2m3"):
            to(oracle, Argument(kind, "float6e2m3"), receiver=receiver)


class TestTensor:
    def test_the_oracle_makes_calls(self, oracle: Any) -> None:
        assert isinstance(oracle, WithCall)

    @pytest.mark.parametrize("method", ["to", None])
    def test_the_receiver_lies_in_memory_as_it_was_given(
        self, oracle: Any, method: str | None
    ) -> None:
        columns = bits_of("float32", [*FLOATS, 0x3F000000]).reshape(2, 2).T
        call = Call("tensor", (Member("", "tensor", "float32"),), method, (dtype("float16"),))
        receiver = oracle.call(CASE, call, {"": columns}).receiver[""].bits
        assert receiver.strides == columns.strides == (4, 8)
        assert receiver.tolist() == columns.tolist()

    def test_a_shard_is_contiguous_because_torch_takes_no_other(self, oracle: Any) -> None:
        columns = bits_of("float32", [*FLOATS, 0x3F000000]).reshape(2, 2).T
        member = Member("", "tensor", "float32")
        call = Call("sharded-tensor", (member,), "to", (dtype("float16"),))
        returned = oracle.call(CASE, call, {"": columns})
        assert returned.receiver[""].bits.tolist() == columns.tolist()
        assert returned.tensors[""].bits.shape == (2, 2)

    def test_a_device_and_a_keyword_are_passed_together(self, oracle: Any) -> None:
        assert answer(to(oracle, CPU, dtype=dtype("float16"))) == ("float16", "cpu", HALVES)

    @pytest.mark.parametrize(
        ("word", "error"), [("list", TypeError), ("zero", RuntimeError), ("bytes", RuntimeError)]
    )
    def test_an_argument_of_another_type_is_torchs_own_error(
        self, oracle: Any, word: str, error: type[Exception]
    ) -> None:
        with pytest.raises(error, match=r"to\(\)|device|driver"):
            to(oracle, Argument("word", word))

    def test_an_unknown_keyword_is_torchs_own_error(self, oracle: Any) -> None:
        with pytest.raises(TypeError, match="blocking"):
            to(oracle, dtype("float16"), blocking=TRUE)

    def test_a_method_that_torch_lacks_is_unsupported(self, oracle: Any) -> None:
        call = Call("tensor", (Member("", "tensor", "float32"),), "astype", (dtype("float16"),))
        with pytest.raises(Unsupported, match="torch's tensor has no method astype"):
            oracle.call(CASE, call, {"": bits_of("float32", FLOATS)})

    @pytest.mark.parametrize("variant", ["view", "compile"])
    def test_variants_make_no_calls(self, variant: str) -> None:
        with pytest.raises(Unsupported, match=f"torch:{variant} makes no calls"):
            to(make("torch", variant), CPU)

    def test_warnings_are_not_errors(self, oracle: Any) -> None:
        bits = bits_of("complex64", [0xC0000000_3FC00000])
        returned = to(oracle, dtype("float32"), bits=bits, source="complex64")
        assert answer(returned) == ("float32", "cpu", [0x3FC00000])


class TestOtherArguments:
    """The arguments `memory_format`, and `non_blocking` and `copy` by position."""

    def test_copy_by_position_returns_another_tensor(self, oracle: Any) -> None:
        false = Argument("word", "false")
        returned = to(oracle, dtype("float32"), false, TRUE)
        assert answer(returned) == ("float32", "cpu", FLOATS[:2])
        assert not returned.shares_memory

    def test_a_memory_format_is_passed_as_torchs_object(self, oracle: Any) -> None:
        preserve = Argument("memory-format", "preserve")
        returned = to(oracle, dtype("float16"), memory_format=preserve)
        assert answer(returned) == ("float16", "cpu", HALVES)

    @pytest.mark.parametrize("given", ["input ", "text out"])
    def test_an_argument_that_only_builders_take_is_refused(self, oracle: Any, given: str) -> None:
        kind, _, value = given.partition(" ")
        error = Unsupported if kind == "input" else RuntimeError
        with pytest.raises(error):
            to(oracle, Argument(kind, value))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "given",
        [Argument("device-name", "cuda:1"), Argument("device", "cuda"),
         Argument("gpu-tensor", "float32")],
    )  # fmt: skip
    def test_a_gpu_is_unsupported_where_there_is_none(self, oracle: Any, given: Argument) -> None:
        if oracle._torch.cuda.is_available():
            pytest.skip("this torch has one")
        with pytest.raises(Unsupported, match="there is no device cuda"):
            to(oracle, given)


class TestShardedTensor:
    """Its dispatch: a positional argument hides every keyword, a third one hides all."""

    @pytest.mark.parametrize(
        ("args", "kwargs"),
        [
            ((CPU,), {"dtype": dtype("float16")}),
            ((CPU, dtype("float16"), TRUE), {}),
            ((), {}),
        ],
        ids=["positional-keyword", "three", "none"],
    )
    def test_arguments_that_torch_ignores(
        self, oracle: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]
    ) -> None:
        returned = to(oracle, *args, receiver="sharded-tensor", **kwargs)
        assert answer(returned) == ("float32", "cpu", FLOATS[:2])
        assert returned.is_receiver

    def test_an_unknown_keyword_is_ignored(self, oracle: Any) -> None:
        returned = to(oracle, dtype("float16"), receiver="sharded-tensor", blocking=TRUE)
        assert answer(returned) == ("float16", "cpu", HALVES)

    @pytest.mark.parametrize(
        ("word", "given"),
        [("none", "None"), ("number", "3.5"), ("list", "[]"), ("bytes", "b'float32'")],
    )
    def test_an_argument_of_another_type_is_torchs_own_error(
        self, oracle: Any, word: str, given: str
    ) -> None:
        with pytest.raises(RuntimeError, match=re.escape(f"wrong arguments: ({given},)")):
            to(oracle, Argument("word", word), receiver="sharded-tensor")

    def test_the_process_group_is_closed(self, oracle: Any) -> None:
        distributed = importlib.import_module("torch.distributed")
        to(oracle, CPU, receiver="sharded-tensor")
        assert not distributed.is_initialized()
        with pytest.raises(RuntimeError, match="wrong arguments"):
            to(oracle, NONE, receiver="sharded-tensor")
        assert not distributed.is_initialized()


MEMBERS = {
    "weight": Member("weight", "parameter", "float32"),
    "inner.deep.bias": Member("inner.deep.bias", "parameter", "float16"),
    "inner.mean": Member("inner.mean", "buffer", "float32"),
    "count": Member("count", "buffer", "int64"),
    "mask": Member("mask", "buffer", "bool"),
    "steps": Member("steps", "parameter", "int32"),
    "plain": Member("plain", "tensor", "float32"),
}
HELD = {
    "weight": bits_of("float32", FLOATS[:2]),
    "inner.deep.bias": bits_of("float16", HALVES),
    "inner.mean": bits_of("float32", FLOATS[:2]),
    "count": bits_of("int64", [7]),
    "mask": bits_of("bool", [1, 0]),
    "steps": bits_of("int32", [3]),
    "plain": bits_of("float32", FLOATS[:2]),
}


def layer(oracle: Any, *names: str, method: str = "type", args: tuple[Argument, ...]) -> Returned:
    """Call a method of a module with these members."""
    members = tuple(MEMBERS[name] for name in names)
    held = {name: HELD[name] for name in names}
    returned: Returned = oracle.call(CASE, Call("layer", members, method, args), held)
    assert held.keys() == returned.receiver.keys()
    return returned


class TestModule:
    def test_every_parameter_and_buffer_is_converted_in_place(self, oracle: Any) -> None:
        returned = layer(oracle, *MEMBERS, args=(dtype("float64"),))
        expected = {
            "weight": DOUBLES,
            "inner.deep.bias": DOUBLES,
            "inner.mean": DOUBLES,
            "count": [0x401C << 48],
            "mask": [0x3FF0 << 48, 0],
            "steps": [0x4008 << 48],
        }
        for seen in (returned.tensors, returned.receiver):
            found = {name: patterns_of(tensor.bits) for name, tensor in seen.items()}
            assert found == expected | {"plain": FLOATS[:2]}
            assert {seen[name].dtype for name in expected} == {"float64"}
            assert seen["plain"].dtype == "float32"
            assert {tensor.device for tensor in seen.values()} == {"cpu"}
        assert returned.is_receiver
        assert returned.shares_memory
        assert HELD["weight"].tolist() == FLOATS[:2]

    def test_a_name_of_a_dtype_is_torchs_own_error(self, oracle: Any) -> None:
        for name in ("float64", "flaot64"):
            with pytest.raises(ValueError, match=f"invalid type: '{name}'"):
                layer(oracle, "weight", args=(Argument("dtype-name", name),))

    def test_a_word_is_torchs_own_error(self, oracle: Any) -> None:
        with pytest.raises(TypeError):
            layer(oracle, "weight", args=(Argument("word", "number"),))

    def test_a_method_that_modules_lack_is_unsupported(self, oracle: Any) -> None:
        with pytest.raises(Unsupported, match="has no method astype"):
            layer(oracle, "weight", method="astype", args=(dtype("float64"),))

    def test_another_method_of_modules_is_called(self, oracle: Any) -> None:
        returned = layer(oracle, "weight", "count", method="to", args=(dtype("float64"),))
        assert patterns_of(returned.tensors["weight"].bits) == DOUBLES
        assert returned.tensors["count"].dtype == "int64"


class TestLinear:
    def test_a_linear_is_run_on_each_input_after_the_call(self, oracle: Any) -> None:
        members = (Member("weight", "parameter", "float32"), Member("bias", "parameter", "float32"))
        one = 0x3F800000
        held = {
            "weight": bits_of("float32", [one] * 4).reshape(2, 2),
            "bias": bits_of("float32", [one] * 2),
        }
        call = Call("linear", members, "type", (dtype("float64"),), inputs=("float32", "float64"))
        returned: Returned = oracle.call(CASE, call, held)
        assert {one.dtype for one in returned.receiver.values()} == {"float64"}
        refused, output = returned.outputs["float32"], returned.outputs["float64"]
        assert isinstance(refused, str)
        assert refused.startswith("RuntimeError: ")
        assert not isinstance(output, str)
        # 1 + 1 of the weight's rows, and 1 of the bias
        assert (output.dtype, output.bits.tolist()) == ("float64", [[0x4008 << 48] * 2])
        untouched = Call("linear", members, None, inputs=("float32",))
        assert not isinstance(oracle.call(CASE, untouched, held).outputs["float32"], str)
