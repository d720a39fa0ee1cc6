"""Calls on paddle's tensors and layers, made as a document writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles.adapters.call_parts import (
    WORDS,
    Makers,
    argument,
    ones,
    output_for,
    require_method,
)
from oracles.adapters.paddle_tensors import Tensors
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.calls import Call, Member

PLACES: Mapping[str, str] = {"cpu": "CPUPlace", "gpu": "CUDAPlace", "xpu": "XPUPlace"}


class Calls:
    """Makes receivers and arguments, calls, and reads what came of it."""

    def __init__(self, paddle: Any, tensors: Tensors) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._arguments: Makers = {
            "dtype-name": str,
            "dtype": tensors.dtype,
            "device-name": self._device_name,
            "device": self._place,
            "tensor": self._other,
            "gpu-tensor": self._other_on_gpu,
            "text": str,
            "word": WORDS.__getitem__,
        }

    def made(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """What a call gives back, and what becomes of its receiver."""
        receiver = self._receiver(call, bits)
        returned = receiver
        if call.method is not None:
            method = require_method("paddle", call, receiver)
            args = [argument("paddle", self._arguments, one) for one in call.args]
            kwargs = {name: argument("paddle", self._arguments, one) for name, one in call.kwargs}
            returned = method(*args, **kwargs)
        left, right = self._members(returned), self._members(receiver)
        return Returned(
            is_receiver=returned is receiver,
            shares_memory=any(
                shares_memory(left[name], right[name]) for name in left.keys() & right
            ),
            tensors=self._found(left),
            receiver=self._found(right),
            outputs={dtype: self._output(receiver, dtype) for dtype in call.inputs},
        )

    def _receiver(self, call: Call, bits: Mapping[str, Bits]) -> Any:
        match call.receiver:
            case "tensor":
                tensor = self._tensor(call.members[0], bits)
                return tensor.to(self._device_name(call.device)) if call.device != "cpu" else tensor
            case "layer":
                return self._layer(call.members, bits)
            case "linear":
                return self._linear(call.members, bits)
            case _:
                raise Unsupported(f"paddle has no {call.receiver} in one process")

    def _tensor(self, member: Member, bits: Mapping[str, Bits]) -> Any:
        # A call may write into its receiver: the question stays as it is.
        return self._tensors.tensor(member.dtype, bits[member.name].copy())

    def _layer(self, members: tuple[Member, ...], bits: Mapping[str, Bits]) -> Any:
        layer = self._paddle.nn.Layer()
        for member in members:
            *path, name = member.name.split(".")
            holder = layer
            for part in path:
                inner = dict(holder.named_children())
                holder = inner[part] if part in inner else self._sublayer(holder, part)
            if member.kind == "parameter":
                holder.add_parameter(name, self._parameter(member, bits))
            else:
                holder.register_buffer(name, self._tensor(member, bits))
        return layer

    def _linear(self, members: tuple[Member, ...], bits: Mapping[str, Bits]) -> Any:
        """The framework's own layer, with parameters of these dtypes in place of its own."""
        layer = self._paddle.nn.Linear(*bits["weight"].shape)
        for member in members:
            setattr(layer, member.name, self._parameter(member, bits))
        return layer

    def _sublayer(self, holder: Any, name: str) -> Any:
        return holder.add_sublayer(name, self._paddle.nn.Layer())

    def _parameter(self, member: Member, bits: Mapping[str, Bits]) -> Any:
        try:
            return self._paddle.nn.Parameter(self._tensor(member, bits))
        except KeyError:
            raise Unsupported(f"paddle has no parameters of dtype {member.dtype}") from None

    def _device_name(self, device: str) -> str:
        """The name as it stands; that of a GPU only where there is one."""
        cuda = self._paddle.is_compiled_with_cuda
        if device.startswith("gpu") and not (cuda() and self._paddle.device.cuda.device_count()):
            raise Unsupported(f"there is no device {device} here")
        return device

    def _place(self, device: str) -> Any:
        kind, _, index = device.partition(":")
        try:
            return getattr(self._paddle, PLACES[kind])(
                *([] if kind == "cpu" else [int(index or 0)])
            )
        except (KeyError, ValueError):
            raise Unsupported(f"there is no device object {device} here") from None

    def _other(self, dtype: str) -> Any:
        return self._tensors.tensor(dtype, ones(dtype, (1,)))

    def _other_on_gpu(self, dtype: str) -> Any:
        return self._other(dtype).to(self._device_name("gpu"))

    def _members(self, thing: Any) -> dict[str, Any]:
        if isinstance(thing, self._paddle.Tensor):
            return {"": thing}
        if isinstance(thing, self._paddle.nn.Layer):
            return dict(thing.named_parameters()) | dict(thing.named_buffers())
        return {}

    def _found(self, members: Mapping[str, Any]) -> dict[str, Tensor]:
        return {name: self._read(tensor) for name, tensor in members.items()}

    def _read(self, tensor: Any) -> Tensor:
        device = str(tensor.place).removeprefix("Place(").removesuffix(")").partition(":")[0]
        return Tensor(self._tensors.name(tensor), device, self._bits(tensor.cpu()).copy())

    def _bits(self, tensor: Any) -> Bits:
        # A tensor that wants a gradient is not handed out.
        return self._tensors.bits(self._tensors.name(tensor), tensor.detach())

    def _output(self, layer: Any, dtype: str) -> Tensor | str:
        """What a Linear gives for a row of ones."""
        features = int(layer.weight.shape[0])
        x = self._tensors.tensor(dtype, ones(dtype, (1, features)))
        return output_for(layer, x, self._read)


def shares_memory(left: Any, right: Any) -> bool:
    """Whether two tensors begin at one address; those without elements have none."""
    return bool(left.data_ptr() == right.data_ptr() != 0)
