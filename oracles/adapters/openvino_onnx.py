"""openvino's ONNX front end: it reads a model of one node, and makes several of its own of it.

A QuantizeLinear to integers becomes a FakeQuantize and a Convert, one to an 8-bit float a Divide,
a FakeConvert and a Convert, and a DequantizeLinear a Subtract and a Multiply. What the front end
makes is then evaluated by the reference, or compiled or folded by the CPU plugin, as a Convert is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from oracles.adapters.onnx_models import ModelBuilder
from oracles.adapters.onnx_quantize_models import Node, NodeModels, Ranks
from oracles.adapters.refusals import load
from oracles.protocol import Bits, Unsupported

CACHED_MODELS = 32

MISSING_DTYPES = ("Unsupported data type", "Bad format for f8 conversion type")
"""Signs that the front end lacks a dtype, in one of the many lines of its error."""


class OnnxFrontEnd:
    """Reads models of one ONNX node by openvino."""

    def __init__(self, core: Any) -> None:
        onnx: Any = load("onnx", "openvino")
        self._core = core
        self._nodes = NodeModels(onnx, ModelBuilder(onnx))
        self.model = lru_cache(CACHED_MODELS)(self._read)

    def folded(self, node: Node, ranks: Ranks, tensors: Mapping[str, Bits]) -> Any:
        """Return openvino's model of a node whose inputs are constants."""
        return self._read(node, ranks, tensors)

    def _read(self, node: Node, ranks: Ranks, constants: Mapping[str, Bits] | None = None) -> Any:
        model = self._nodes.model(node, ranks, constants or {})
        try:
            return self._core.read_model(model.SerializeToString())
        except RuntimeError as error:
            for line in str(error).splitlines():
                if any(sign in line for sign in MISSING_DTYPES):
                    raise Unsupported(line) from None
            raise
