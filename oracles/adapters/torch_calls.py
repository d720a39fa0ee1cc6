"""Make a document's calls on torch's tensors, sharded tensors and modules."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from oracles.adapters.calls import WORD_VALUES, ArgumentBuilders, invoke, layer_output, ones
from oracles.adapters.refusals import first_line
from oracles.adapters.torch_tensors import Tensors, shares_memory
from oracles.memory_layouts import copied
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.calls import Call, Member
from specs.formats import format_named

Members = Mapping[str, Any]
"""The torch tensors of a receiver or of a call's result, by their members' names."""


class Calls:
    """Builds a call's receiver and arguments, makes the call, and reads the result."""

    def __init__(self, torch: Any, tensors: Tensors) -> None:
        self._torch = torch
        self._tensors = tensors
        self._arguments: ArgumentBuilders = {
            "dtype-name": str,
            "dtype": tensors.viewable,
            "device-name": self._device_name,
            "device": self._device,
            "tensor": self._other_tensor,
            "gpu-tensor": lambda dtype: self._other_tensor(dtype).to(self._device("cuda")),
            "memory-format": lambda name: getattr(torch, f"{name}_format"),
            "text": str,
            "word": WORD_VALUES.__getitem__,
        }

    def make(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make the call, and return its result and the receiver's state after it."""
        if call.device != "cpu":
            raise Unsupported(f"torch's receivers are made on the CPU, not on the {call.device}")
        members = {member.name: self._member(member, bits[member.name]) for member in call.members}
        match call.receiver:
            case "tensor":
                return self._call(call, members[""], lambda tensor: {"": tensor})
            case "sharded-tensor":
                with self._single_process_group():
                    return self._call(call, self._sharded(members[""]), _local_shard)
            case "layer":
                return self._call(call, self._layer(call, members), _members_of_layer(call))
            case "linear":
                return self._call(call, self._linear(members), _members_of_layer(call))
            case _:
                raise Unsupported(f"torch has no {call.receiver}")

    def _call(self, call: Call, receiver: Any, members: Callable[[Any], Members]) -> Returned:
        result = receiver
        if call.method is not None:
            result = invoke("torch", self._arguments, call, receiver)
        after = members(receiver)
        returned = members(result) if isinstance(result, type(receiver)) else {}
        return Returned(
            is_receiver=result is receiver,
            shares_memory=any(shares_memory(after[name], returned[name]) for name in returned),
            tensors=self._read_all(returned),
            receiver=self._read_all(after),
            outputs={dtype: self._output(receiver, dtype) for dtype in call.inputs},
        )

    def _other_tensor(self, dtype: str) -> Any:
        return self._tensors.tensor(dtype, ones(dtype, (1,)))

    def _member(self, member: Member, bits: Bits) -> Any:
        tensor = self._tensors.tensor(member.dtype, copied(bits))
        if member.kind != "parameter":
            return tensor
        differentiable = tensor.is_floating_point() or tensor.is_complex()
        return self._torch.nn.Parameter(tensor, requires_grad=differentiable)

    def _layer(self, call: Call, members: Members) -> Any:
        """Build a module of these members; a dotted name belongs to a submodule."""
        nn = self._torch.nn
        layer = nn.Module()
        for member in call.members:
            *path, name = member.name.split(".")
            owner = layer
            for step in path:
                if not hasattr(owner, step):
                    owner.add_module(step, nn.Module())
                owner = getattr(owner, step)
            if member.kind == "buffer":
                owner.register_buffer(name, members[member.name])
            else:
                setattr(owner, name, members[member.name])
        return layer

    def _linear(self, members: Members) -> Any:
        """Build torch's own Linear, with these members in place of its parameters."""
        layer = self._torch.nn.Linear(*reversed(members["weight"].shape))
        for name, parameter in members.items():
            setattr(layer, name, parameter)
        return layer

    def _output(self, layer: Any, dtype: str) -> Tensor | str:
        """Return a Linear's output for a row of ones."""
        x = self._tensors.tensor(dtype, ones(dtype, (1, layer.in_features)))
        return layer_output(layer, x, lambda y: self._read(y.detach()))

    def _sharded(self, tensor: Any) -> Any:
        """Build a sharded tensor of one shard, which torch wants to be contiguous."""
        tensor = tensor.contiguous()
        sharded = importlib.import_module("torch.distributed._shard.sharded_tensor")
        offsets, sizes = [0] * tensor.ndim, list(tensor.shape)
        metadata = sharded.ShardMetadata(offsets, sizes, placement="rank:0/cpu")
        return sharded.init_from_local_shards([sharded.Shard(tensor, metadata)], *sizes)

    @contextmanager
    def _single_process_group(self) -> Iterator[None]:
        """Open a process group of one process for the duration of a call.

        gloo opens a port even for one process; the `fake` group of torch's own tests does not.
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

    def _device_name(self, name: str) -> str:
        """Return the name unchanged; raise Unsupported for a GPU that this machine lacks."""
        if name.startswith("cuda") and not self._torch.cuda.is_available():
            raise Unsupported(f"there is no device {name} here")
        return name

    def _device(self, name: str) -> Any:
        """Return a device object; raise Unsupported for a device that this machine lacks."""
        try:
            return self._torch.empty(0, device=self._torch.device(name)).device
        except Exception as error:
            raise Unsupported(f"there is no device {name} here: {first_line(error)}") from None

    def _read_all(self, members: Members) -> dict[str, Tensor]:
        return {name: self._read(tensor.detach()) for name, tensor in members.items()}

    def _read(self, tensor: Any) -> Tensor:
        """Read a tensor, in its own memory if it has bits on the host; on `meta` it has none."""
        dtype, kind = self._tensors.name(tensor.dtype), tensor.device.type
        device = "gpu" if kind == "cuda" else kind
        if device == "meta":
            return Tensor(dtype, device, np.empty(0, format_named(dtype).storage))
        return Tensor(dtype, device, self._tensors.bits(dtype, tensor.cpu()))


def _members_of_layer(call: Call) -> Callable[[Any], Members]:
    """Return a function that finds a layer's members; a dotted name is one of a submodule."""
    names = [member.name for member in call.members]
    return lambda layer: {name: reduce(getattr, name.split("."), layer) for name in names}


def _local_shard(sharded: Any) -> Members:
    (shard,) = sharded.local_shards()
    return {"": shard.tensor}
