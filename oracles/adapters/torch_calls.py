"""Calls as documents write them, made on torch's tensors, sharded tensors and modules."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from oracles.adapters.call_parts import (
    WORDS,
    Makers,
    argument,
    ones,
    output_for,
    require_method,
)
from oracles.adapters.lazy_import import first_line
from oracles.adapters.torch_tensors import Tensors, shares_memory
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.calls import Call, Member
from specs.formats import format_named

Parts = Mapping[str, Any]
"""The torch tensors of a receiver, or of what a call gave, by their members' names."""


class Calls:
    """Makes receivers and arguments, calls, and reads what came of it."""

    def __init__(self, torch: Any, tensors: Tensors) -> None:
        self._torch = torch
        self._tensors = tensors
        self._arguments: Makers = {
            "dtype-name": str,
            "dtype": tensors.viewable,
            "device-name": self._device_name,
            "device": self._device,
            "tensor": self._other,
            "gpu-tensor": lambda dtype: self._other(dtype).to(self._device("cuda")),
            "memory-format": lambda name: getattr(torch, f"{name}_format"),
            "text": str,
            "word": WORDS.__getitem__,
        }

    def made(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make the call, and look at what it gave and at what it was made on."""
        if call.device != "cpu":
            raise Unsupported(f"torch's receivers are made on the CPU, not on the {call.device}")
        given = {one.name: self._member(one, bits[one.name]) for one in call.members}
        match call.receiver:
            case "tensor":
                return self._called(call, given[""], lambda tensor: {"": tensor})
            case "sharded-tensor":
                with self._group_of_one():
                    return self._called(call, self._sharded(given[""]), _local_shard)
            case "layer":
                return self._called(call, self._layer(call, given), _members(call))
            case "linear":
                return self._called(call, self._linear(given), _members(call))
            case _:
                raise Unsupported(f"torch has no {call.receiver}")

    def _called(self, call: Call, receiver: Any, parts: Callable[[Any], Parts]) -> Returned:
        result = receiver
        if call.method is not None:
            method = require_method("torch", call, receiver)
            args = [argument("torch", self._arguments, one) for one in call.args]
            kwargs = {name: argument("torch", self._arguments, one) for name, one in call.kwargs}
            result = method(*args, **kwargs)
        after = parts(receiver)
        gave = parts(result) if isinstance(result, type(receiver)) else {}
        return Returned(
            is_receiver=result is receiver,
            shares_memory=any(shares_memory(after[name], gave[name]) for name in gave),
            tensors=self._seen(gave),
            receiver=self._seen(after),
            outputs={dtype: self._output(receiver, dtype) for dtype in call.inputs},
        )

    def _other(self, dtype: str) -> Any:
        return self._tensors.tensor(dtype, ones(dtype, (1,)))

    def _member(self, member: Member, bits: Bits) -> Any:
        tensor = self._tensors.tensor(member.dtype, bits.copy())
        if member.kind != "parameter":
            return tensor
        learns = tensor.is_floating_point() or tensor.is_complex()
        return self._torch.nn.Parameter(tensor, requires_grad=learns)

    def _layer(self, call: Call, given: Parts) -> Any:
        """A module with these members; a dotted name belongs to a module inside."""
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
                owner.register_buffer(name, given[member.name])
            else:
                setattr(owner, name, given[member.name])
        return layer

    def _linear(self, given: Parts) -> Any:
        """The framework's own layer, with parameters of these dtypes in place of its own."""
        layer = self._torch.nn.Linear(*reversed(given["weight"].shape))
        for name, parameter in given.items():
            setattr(layer, name, parameter)
        return layer

    def _output(self, layer: Any, dtype: str) -> Tensor | str:
        """What a Linear gives for a row of ones."""
        x = self._tensors.tensor(dtype, ones(dtype, (1, layer.in_features)))
        return output_for(layer, x, lambda y: self._look(y.detach()))

    def _sharded(self, tensor: Any) -> Any:
        sharded = importlib.import_module("torch.distributed._shard.sharded_tensor")
        offsets, sizes = [0] * tensor.ndim, list(tensor.shape)
        metadata = sharded.ShardMetadata(offsets, sizes, placement="rank:0/cpu")
        return sharded.init_from_local_shards([sharded.Shard(tensor, metadata)], *sizes)

    @contextmanager
    def _group_of_one(self) -> Iterator[None]:
        """A process group with nobody else in it, for as long as the call takes.

        Even alone, gloo opens a port for the others; the kind that torch's own tests use does not.
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
        """The name as it stands; that of a GPU only where there is one."""
        if name.startswith("cuda") and not self._torch.cuda.is_available():
            raise Unsupported(f"there is no device {name} here")
        return name

    def _device(self, name: str) -> Any:
        """A device object, if there is such a device here."""
        try:
            return self._torch.empty(0, device=self._torch.device(name)).device
        except Exception as error:
            raise Unsupported(f"there is no device {name} here: {first_line(error)}") from None

    def _seen(self, parts: Parts) -> dict[str, Tensor]:
        return {name: self._look(tensor.detach()) for name, tensor in parts.items()}

    def _look(self, tensor: Any) -> Tensor:
        """A tensor as it is now; one on the device `meta` has no bits."""
        dtype, kind = self._tensors.name(tensor.dtype), tensor.device.type
        device = "gpu" if kind == "cuda" else kind
        if device == "meta":
            return Tensor(dtype, device, np.empty(0, format_named(dtype).storage))
        return Tensor(dtype, device, self._tensors.bits(dtype, tensor.cpu()).copy())


def _members(call: Call) -> Callable[[Any], Parts]:
    """What finds the members of a layer that was made for the call."""
    return lambda layer: {member.name: _found(layer, member.name) for member in call.members}


def _found(layer: Any, name: str) -> Any:
    """A member of a layer, or of a layer inside, by its dotted name."""
    return reduce(getattr, name.split("."), layer)


def _local_shard(sharded: Any) -> Parts:
    (shard,) = sharded.local_shards()
    return {"": shard.tensor}
