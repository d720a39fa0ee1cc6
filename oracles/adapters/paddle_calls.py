"""Make a document's calls on paddle's tensors and layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles.adapters.calls import WORD_VALUES, ArgumentBuilders, invoke, layer_output, ones
from oracles.adapters.paddle_tensors import Tensors
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.calls import Call, Member

PLACES: Mapping[str, str] = {"cpu": "CPUPlace", "gpu": "CUDAPlace", "xpu": "XPUPlace"}


class Calls:
    """Builds a call's receiver and arguments, makes the call, and reads the result."""

    def __init__(self, paddle: Any, tensors: Tensors) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._arguments: ArgumentBuilders = {
            "dtype-name": str,
            "dtype": tensors.dtype,
            "device-name": self._device_name,
            "device": self._place,
            "tensor": self._other_tensor,
            "gpu-tensor": self._other_tensor_on_gpu,
            "text": str,
            "word": WORD_VALUES.__getitem__,
        }

    def make(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make the call, and return its result and the receiver's state after it."""
        receiver = self._receiver(call, bits)
        result = receiver
        if call.method is not None:
            result = invoke("paddle", self._arguments, call, receiver)
        returned, after = self._members(result), self._members(receiver)
        return Returned(
            is_receiver=result is receiver,
            shares_memory=any(
                shares_memory(returned[name], after[name]) for name in returned.keys() & after
            ),
            tensors=self._read_all(returned),
            receiver=self._read_all(after),
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
        # A call may write into its receiver, so copy the bits.
        return self._tensors.tensor(member.dtype, bits[member.name].copy())

    def _layer(self, members: tuple[Member, ...], bits: Mapping[str, Bits]) -> Any:
        """Build a layer of these members; a dotted name belongs to a sublayer."""
        layer = self._paddle.nn.Layer()
        for member in members:
            *path, name = member.name.split(".")
            owner = layer
            for step in path:
                children = dict(owner.named_children())
                owner = children[step] if step in children else self._sublayer(owner, step)
            if member.kind == "parameter":
                owner.add_parameter(name, self._parameter(member, bits))
            else:
                owner.register_buffer(name, self._tensor(member, bits))
        return layer

    def _linear(self, members: tuple[Member, ...], bits: Mapping[str, Bits]) -> Any:
        """Build paddle's own Linear, with these members in place of its parameters."""
        layer = self._paddle.nn.Linear(*bits["weight"].shape)
        for member in members:
            setattr(layer, member.name, self._parameter(member, bits))
        return layer

    def _sublayer(self, owner: Any, name: str) -> Any:
        return owner.add_sublayer(name, self._paddle.nn.Layer())

    def _parameter(self, member: Member, bits: Mapping[str, Bits]) -> Any:
        try:
            return self._paddle.nn.Parameter(self._tensor(member, bits))
        except KeyError:
            raise Unsupported(f"paddle has no parameters of dtype {member.dtype}") from None

    def _device_name(self, device: str) -> str:
        """Return the name unchanged; raise Unsupported for a GPU that this machine lacks."""
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

    def _other_tensor(self, dtype: str) -> Any:
        return self._tensors.tensor(dtype, ones(dtype, (1,)))

    def _other_tensor_on_gpu(self, dtype: str) -> Any:
        return self._other_tensor(dtype).to(self._device_name("gpu"))

    def _members(self, value: Any) -> dict[str, Any]:
        """Return the tensors of a tensor or a layer by name; empty for anything else."""
        if isinstance(value, self._paddle.Tensor):
            return {"": value}
        if isinstance(value, self._paddle.nn.Layer):
            return dict(value.named_parameters()) | dict(value.named_buffers())
        return {}

    def _read_all(self, members: Mapping[str, Any]) -> dict[str, Tensor]:
        return {name: self._read(tensor) for name, tensor in members.items()}

    def _read(self, tensor: Any) -> Tensor:
        device = str(tensor.place).removeprefix("Place(").removesuffix(")").partition(":")[0]
        return Tensor(self._tensors.name(tensor), device, self._bits(tensor.cpu()).copy())

    def _bits(self, tensor: Any) -> Bits:
        # paddle does not export a tensor that requires a gradient.
        return self._tensors.bits(self._tensors.name(tensor), tensor.detach())

    def _output(self, layer: Any, dtype: str) -> Tensor | str:
        """Return a Linear's output for a row of ones."""
        features = int(layer.weight.shape[0])
        x = self._tensors.tensor(dtype, ones(dtype, (1, features)))
        return layer_output(layer, x, self._read)


def shares_memory(left: Any, right: Any) -> bool:
    """Whether two tensors begin at the same address; empty ones have none."""
    return bool(left.data_ptr() == right.data_ptr() != 0)
