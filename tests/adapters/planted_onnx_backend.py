"""A backend of ONNX with a planted fault: casts to int8 clamp, others do as onnx does."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from onnx.backend.base import Backend, BackendRep
from onnx.reference import ReferenceEvaluator

__version__ = "0.3"


class Rep(BackendRep):
    """A model that clamps."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.evaluator = ReferenceEvaluator(model)

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Return the results for a list of tensors."""
        [x] = inputs
        if self.model.graph.output[0].type.tensor_type.elem_type == TensorProto.INT8:
            x = np.clip(x, -128, 127)
        return tuple(self.evaluator.run(None, {self.model.graph.input[0].name: x}))


class Clamp(Backend):
    """Knows the device CPU, and no bfloat16."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **_: Any) -> BackendRep:
        """Refuse bfloat16, as a backend may that lacks it."""
        types = [each.type.tensor_type.elem_type for each in model.graph.output]
        if TensorProto.BFLOAT16 in types:
            raise RuntimeError("no kernel for bfloat16")
        return Rep(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device is the CPU."""
        return device == "CPU"
