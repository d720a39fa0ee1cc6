"""openvino's tensors made of bit patterns and read as bit patterns, and openvino's types."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from oracles.adapters.dtype_table import names_in
from oracles.adapters.tensor_memory import patterns_in, tensor_content, tensor_memory
from oracles.protocol import Bits, Unsupported
from specs.formats import format_named

DTYPES: Mapping[str, str] = names_in("openvino")
"""The types that Convert takes; openvino has strings, too, but converts none."""


class OpenvinoTensors:
    """Converts between patterns and openvino's tensors."""

    def __init__(self, openvino: Any) -> None:
        self._openvino = openvino

    def of_memory(self, dtype: str, memory: Bits, shape: tuple[int, ...]) -> Any:
        """Return a tensor of a dtype and a shape in this memory, whose size is not checked."""
        # openvino uses this memory, and checks neither its size nor its alignment.
        return self._openvino.Tensor(memory, list(shape), self.type(dtype))

    def of_patterns(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of these patterns, in their own memory where openvino can read it."""
        return self.of_memory(dtype, tensor_content(format_named(dtype), bits), bits.shape)

    def patterns(self, dtype: str, tensor: Any) -> Bits:
        """Copy the patterns out of a tensor; raise TypeError if it has another dtype."""
        if tensor.element_type != self.type(dtype):
            raise TypeError(f"asked for {self.name(dtype)}, got {tensor.element_type}")
        entry, shape = format_named(dtype), tuple(tensor.shape)
        memory = tensor_memory(entry, prod(shape))
        tensor.copy_to(self.of_memory(dtype, memory, shape))
        return patterns_in(memory, entry, prod(shape)).reshape(shape)

    def type(self, dtype: str) -> Any:
        """Return openvino's type of a dtype; raise Unsupported if openvino lacks the dtype."""
        return getattr(self._openvino.Type, self.name(dtype))

    def name(self, dtype: str) -> str:
        """Return the name of openvino's type; raise Unsupported if openvino lacks the dtype."""
        name = DTYPES.get(dtype)
        if name is None or not hasattr(self._openvino.Type, name):
            raise Unsupported(f"openvino has no dtype castable as {dtype}")
        return name
