"""Make a document's calls on paddle's tensors and layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracles.adapters.calls import CallSyntax, layer_output, ones
from oracles.adapters.dtype_table import carrier_in
from oracles.adapters.paddle_tensors import DTYPES, PaddleTensors, tensor_text
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.cases import Argument, Call, Member

UNFILLED = ("uint16", "uint32", "uint64")
"""The dtypes of which paddle fills no tensors."""
PLACES: Mapping[str, str] = {"cpu": "CPUPlace", "gpu": "CUDAPlace", "xpu": "XPUPlace"}


def _ones(dtype: str) -> str:
    carrier = carrier_in("paddle", dtype)
    if dtype in UNFILLED:
        return f"paddle.ones([1], paddle.{carrier}).view(paddle.{dtype})"
    return f"paddle.ones([1], paddle.{DTYPES[dtype]})"


def _place(device: str) -> str:
    kind, _, index = device.partition(":")
    return f"paddle.{PLACES[kind]}({'' if kind == 'cpu' else index or 0})"


SYNTAX = CallSyntax(
    "paddle",
    {
        "dtype": lambda dtype: f"paddle.{DTYPES[dtype]}",
        "device": _place,
        "gpu-tensor": lambda dtype: f'{_ones(dtype)}.to("gpu")',
    },
    tensor_text,
    _ones,
    "paddle.nn.Layer()",
    lambda dtype, tensor: f"paddle.nn.Parameter({tensor})",
)


class PaddleCalls:
    """Builds a call's receiver, makes the call, and reads the result, all by paddle."""

    def __init__(self, paddle: Any, tensors: PaddleTensors) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._names = {"paddle": paddle, "np": np}

    def make(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make the call, and return its result and the receiver's state after it.

        ``bits`` has the patterns of the receiver's members by name. Raises Unsupported if paddle
        lacks the receiver, the method or an argument.
        """
        receiver = self._receiver(call, bits)
        result = receiver
        if call.method is not None:
            result = SYNTAX.invoke(self._names, call, receiver, self._require)
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
                return self._layer(call, bits)
            case "linear":
                # paddle's own Linear, with these members in place of its parameters.
                return self._layer(call, bits, f"paddle.nn.Linear{bits['weight'].shape}")
            case _:
                raise Unsupported(f"paddle has no {call.receiver} in one process")

    def _tensor(self, member: Member, bits: Mapping[str, Bits]) -> Any:
        # A call may write into its receiver, so copy the bits.
        return self._tensors.tensor(member.dtype, bits[member.name].copy())

    def _layer(self, call: Call, bits: Mapping[str, Bits], module: str = "") -> Any:
        """Return a layer with a call's members; raise Unsupported if paddle has no such parameter.

        ``module`` is the expression that makes the layer; without it the layer is empty at first.
        """
        tensors = {member.name: self._tensor(member, bits) for member in call.members}
        try:
            return SYNTAX.layer(self._names, call, tensors, module)
        except KeyError as error:
            dtype = self._tensors.named(error.args[0])
            raise Unsupported(f"paddle has no parameters of dtype {dtype}") from None

    def _require(self, argument: Argument) -> None:
        """Raise Unsupported for a dtype paddle lacks, a missing GPU, or a refused device object."""
        match argument.kind:
            case "dtype" | "tensor":
                self._tensors.dtype(argument.value)
            case "device-name":
                self._device_name(argument.value)
            case "gpu-tensor":
                self._device_name("gpu")
            case "device":
                kind, _, index = argument.value.partition(":")
                try:
                    getattr(self._paddle, PLACES[kind])(
                        *([] if kind == "cpu" else [int(index or 0)])
                    )
                except (KeyError, ValueError):
                    reason = f"there is no device object {argument.value} here"
                    raise Unsupported(reason) from None

    def _device_name(self, device: str) -> str:
        cuda = self._paddle.is_compiled_with_cuda
        if device.startswith("gpu") and not (cuda() and self._paddle.device.cuda.device_count()):
            raise Unsupported(f"there is no device {device} here")
        return device

    def _members(self, value: Any) -> dict[str, Any]:
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
        features = int(layer.weight.shape[0])
        x = self._tensors.tensor(dtype, ones(dtype, (1, features)))
        return layer_output(layer, x, self._read)


def shares_memory(left: Any, right: Any) -> bool:
    """Return whether two tensors begin at the same address; empty ones have none."""
    return bool(left.data_ptr() == right.data_ptr() != 0)
