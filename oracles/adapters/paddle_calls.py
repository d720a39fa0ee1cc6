"""Calls on paddle's tensors and layers, made as a document writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oracles.adapters.call_parts import WORDS, ones
from oracles.adapters.framework import first_line
from oracles.adapters.paddle_tensors import Tensors
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.calls import ArgumentKind, Call, Member

PLACES: Mapping[str, str] = {"cpu": "CPUPlace", "gpu": "CUDAPlace", "xpu": "XPUPlace"}


class Calls:
    """Makes receivers and arguments, calls, and reads what came of it."""

    def __init__(self, paddle: Any, tensors: Tensors) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._arguments: Mapping[ArgumentKind, Callable[[str], Any]] = {
            "dtype-name": str,
            "dtype": tensors.dtype,
            "device-name": self._device_name,
            "device": self._place,
            "tensor": self._other,
            "word": WORDS.__getitem__,
        }

    def made(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """What a call gives back, and what becomes of its receiver."""
        receiver = self._receiver(call, bits)
        method = getattr(receiver, call.method, None)
        if method is None:
            raise Unsupported(f"paddle's {call.receiver} has no method {call.method}")
        args = [self._arguments[one.kind](one.value) for one in call.args]
        kwargs = {name: self._arguments[one.kind](one.value) for name, one in call.kwargs}
        returned = method(*args, **kwargs)
        left, right = self._members(returned), self._members(receiver)
        return Returned(
            is_receiver=returned is receiver,
            shares_memory=any(self._share(left[name], right[name]) for name in left.keys() & right),
            tensors=self._found(left),
            receiver=self._found(right),
            run=self._run(receiver, call, bits) if call.receiver == "layer" else None,
        )

    def _receiver(self, call: Call, bits: Mapping[str, Bits]) -> Any:
        match call.receiver:
            case "tensor":
                tensor = self._tensor(call.members[0], bits)
                return tensor.to(self._device_name(call.device)) if call.device != "cpu" else tensor
            case "layer":
                return self._layer(call.members, bits)
            case _:
                raise Unsupported(f"paddle has no {call.receiver} in one process")

    def _tensor(self, member: Member, bits: Mapping[str, Bits]) -> Any:
        # A call may write into its receiver: the question stays as it is.
        return self._tensors.tensor(member.dtype, bits[member.name].copy())

    def _layer(self, members: tuple[Member, ...], bits: Mapping[str, Bits]) -> Any:
        parameters = [member.name for member in members if member.kind == "parameter"]
        added = (parameters or [members[0].name])[0]

        def forward(layer: Any, x: Any) -> Any:
            return x + self._members(layer)[added]

        layer = type("Sum", (self._paddle.nn.Layer,), {"forward": forward})()
        for member in members:
            tensor, (*path, name) = self._tensor(member, bits), member.name.split(".")
            holder = layer
            for part in path:
                inner = dict(holder.named_children())
                holder = inner[part] if part in inner else self._sublayer(holder, part)
            if member.kind == "parameter":
                holder.add_parameter(name, self._parameter(member.dtype, tensor))
            else:
                holder.register_buffer(name, tensor)
        return layer

    def _sublayer(self, holder: Any, name: str) -> Any:
        return holder.add_sublayer(name, self._paddle.nn.Layer())

    def _parameter(self, dtype: str, tensor: Any) -> Any:
        try:
            return self._paddle.nn.Parameter(tensor)
        except KeyError:
            raise Unsupported(f"paddle has no parameters of dtype {dtype}") from None

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

    def _share(self, left: Any, right: Any) -> bool:
        return bool(left.data_ptr() == right.data_ptr() != 0)

    def _run(self, layer: Any, call: Call, bits: Mapping[str, Bits]) -> Tensor | str:
        first = call.members[0]
        x = self._tensors.tensor(first.dtype, ones(first.dtype, bits[first.name].shape))
        try:
            return self._read(layer(x))
        except Exception as error:
            return f"{type(error).__name__}: {first_line(error)}"
