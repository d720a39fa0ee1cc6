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
        """Return a tensor of this dtype and shape in this memory, whose size is not checked.

        Raises Unsupported if openvino lacks the dtype.
        """
        # openvino uses this memory, and checks neither its size nor its alignment.
        return self._openvino.Tensor(memory, list(shape), self.type(dtype))

    def of_patterns(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of this dtype that holds these patterns.

        It is in their own memory where openvino can read that. Raises Unsupported if openvino lacks
        the dtype.
        """
        return self.of_memory(dtype, tensor_content(format_named(dtype), bits), bits.shape)

    def patterns(self, dtype: str, tensor: Any) -> Bits:
        """Return a copy of the patterns in a tensor; raise TypeError unless it has this dtype.

        Raises Unsupported if openvino lacks the dtype.
        """
        if tensor.element_type != self.type(dtype):
            raise TypeError(f"asked for {self.name(dtype)}, got {tensor.element_type}")
        entry, shape = format_named(dtype), tuple(tensor.shape)
        memory = tensor_memory(entry, prod(shape))
        tensor.copy_to(self.of_memory(dtype, memory, shape))
        return patterns_in(memory, entry, prod(shape)).reshape(shape)

    def type(self, dtype: str) -> Any:
        """Return openvino's type object of a dtype; raise Unsupported if openvino has none."""
        return getattr(self._openvino.Type, self.name(dtype))

    def name(self, dtype: str) -> str:
        """Return the name of openvino's type of a dtype; raise Unsupported if openvino lacks it."""
        name = DTYPES.get(dtype)
        if name is None or not hasattr(self._openvino.Type, name):
            raise Unsupported(f"openvino has no dtype castable as {dtype}")
        return name
