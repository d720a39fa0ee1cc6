"""Make a document's calls on torch's tensors, sharded tensors and modules."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from oracles.adapters.calls import CallSyntax, layer_output, ones
from oracles.adapters.refusals import first_line
from oracles.adapters.torch_tensors import DTYPES, VIEWED, TorchTensors, shares_memory, tensor_text
from oracles.memory_layouts import copied
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.cases import Argument, Call, Member
from specs.formats import format_named

Members = Mapping[str, Any]
"""The torch tensors of a receiver or of a call's result, by their members' names."""


def _ones(dtype: str) -> str:
    return f"torch.ones(1, dtype=torch.{DTYPES[dtype]})"


def _parameter(dtype: str, tensor: str) -> str:
    is_differentiable = format_named(dtype).kind in ("float", "complex")
    gradient = "" if is_differentiable else ", requires_grad=False"
    return f"torch.nn.Parameter({tensor}{gradient})"


SYNTAX = CallSyntax(
    "torch",
    {
        "dtype": lambda dtype: f"torch.{VIEWED[dtype]}",
        "device": lambda device: f'torch.device("{device}")',
        "gpu-tensor": lambda dtype: f'{_ones(dtype)}.to("cuda")',
        "memory-format": lambda name: f"torch.{name}_format",
    },
    tensor_text,
    _ones,
    "torch.nn.Module()",
    _parameter,
)


class TorchCalls:
    """Builds a call's receiver, makes the call, and reads the result, all by torch."""

    def __init__(self, torch: Any, tensors: TorchTensors) -> None:
        self._torch = torch
        self._tensors = tensors
        self._names = {"torch": torch}

    def make(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make the call, and return its result and the receiver's state after it.

        ``bits`` has the patterns of the receiver's members by name. Raises Unsupported for a
        receiver that is not on the CPU, and if torch lacks the receiver, the method or an argument.
        """
        if call.device != "cpu":
            raise Unsupported(f"torch's receivers are made on the CPU, not on the {call.device}")
        members = {member.name: self._tensor(member, bits[member.name]) for member in call.members}
        match call.receiver:
            case "tensor":
                return self._call(call, members[""], lambda tensor: {"": tensor})
            case "sharded-tensor":
                with self._single_process_group():
                    return self._call(call, self._sharded(members[""]), _local_shard)
            case "layer":
                layer = SYNTAX.layer(self._names, call, members)
                return self._call(call, layer, _members_of_layer(call))
            case "linear":
                # torch's own Linear, with these members in place of its parameters.
                features = tuple(reversed(members["weight"].shape))
                layer = SYNTAX.layer(self._names, call, members, f"torch.nn.Linear{features}")
                return self._call(call, layer, _members_of_layer(call))
            case _:
                raise Unsupported(f"torch has no {call.receiver}")

    def _call(self, call: Call, receiver: Any, members: Callable[[Any], Members]) -> Returned:
        result = receiver
        if call.method is not None:
            result = SYNTAX.invoke(self._names, call, receiver, self._require)
        after = members(receiver)
        returned = members(result) if isinstance(result, type(receiver)) else {}
        return Returned(
            is_receiver=result is receiver,
            shares_memory=any(shares_memory(after[name], returned[name]) for name in returned),
            tensors=self._read_all(returned),
            receiver=self._read_all(after),
            outputs={dtype: self._output(receiver, dtype) for dtype in call.inputs},
        )

    def _tensor(self, member: Member, bits: Bits) -> Any:
        return self._tensors.tensor(member.dtype, copied(bits))

    def _output(self, layer: Any, dtype: str) -> Tensor | str:
        x = self._tensors.tensor(dtype, ones(dtype, (1, layer.in_features)))
        return layer_output(layer, x, lambda y: self._read(y.detach()))

    def _sharded(self, tensor: Any) -> Any:
        tensor = tensor.contiguous()
        sharded = importlib.import_module("torch.distributed._shard.sharded_tensor")
        offsets, sizes = [0] * tensor.ndim, list(tensor.shape)
        metadata = sharded.ShardMetadata(offsets, sizes, placement="rank:0/cpu")
        return sharded.init_from_local_shards([sharded.Shard(tensor, metadata)], *sizes)

    @contextmanager
    def _single_process_group(self) -> Iterator[None]:
        """Within the context, torch has a process group of one process.

        It is the `fake` group of torch's own tests: gloo opens a port even for one process. Raises
        Unsupported if torch is built without ``torch.distributed``.
        """
        distributed = self._torch.distributed
        if not distributed.is_available():
            raise Unsupported("this torch is built without torch.distributed")
        importlib.import_module("torch.testing._internal.distributed.fake_pg")
        store = distributed.HashStore()
        distributed.init_process_group("fake", store=store, rank=0, world_size=1)
        try:
            yield
        finally:
            distributed.destroy_process_group()

    def _require(self, argument: Argument) -> None:
        """Raise Unsupported for a dtype that torch does not view, or a device that is not here.

        Of devices that are named by a text, only CUDA's are looked for.
        """
        match argument.kind:
            case "dtype" | "tensor":
                self._tensors.viewable(argument.value)
            case "device-name" if argument.value.startswith("cuda"):
                if not self._torch.cuda.is_available():
                    raise Unsupported(f"there is no device {argument.value} here")
            case "device" | "gpu-tensor":
                name = argument.value if argument.kind == "device" else "cuda"
                try:
                    self._torch.empty(0, device=self._torch.device(name))
                except Exception as error:
                    reason = f"there is no device {name} here: {first_line(error)}"
                    raise Unsupported(reason) from None

    def _read_all(self, members: Members) -> dict[str, Tensor]:
        return {name: self._read(tensor.detach()) for name, tensor in members.items()}

    def _read(self, tensor: Any) -> Tensor:
        """Return a tensor's dtype, kind of device and bits; on the device `meta` it has no bits.

        The bits of a tensor on the CPU are in its own memory.
        """
        dtype, kind = self._tensors.name(tensor.dtype), tensor.device.type
        device = "gpu" if kind == "cuda" else kind
        if device == "meta":
            return Tensor(dtype, device, np.empty(0, format_named(dtype).storage))
        return Tensor(dtype, device, self._tensors.bits(dtype, tensor.cpu()))


def _members_of_layer(call: Call) -> Callable[[Any], Members]:
    """Return a function from a layer to its members, by the names that a call lists.

    A dotted name is one of a submodule.
    """
    names = [member.name for member in call.members]
    return lambda layer: {name: reduce(getattr, name.split("."), layer) for name in names}


def _local_shard(sharded: Any) -> Members:
    (shard,) = sharded.local_shards()
    return {"": shard.tensor}
