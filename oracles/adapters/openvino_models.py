"""openvino's ONNX front end, and how a variant of openvino runs the models that it reads.

The reference evaluates a model, and a plugin compiles it. Scripts do the same by the statements of
this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oracles.adapters.onnx_models import ModelBuilder
from oracles.adapters.openvino_plugin import Plugin
from oracles.adapters.openvino_tensors import OpenvinoTensors
from oracles.adapters.refusals import load
from oracles.protocol import Unsupported

IMPORTS = """\
import numpy as np
import onnx.parser
import openvino as ov

"""

READ = "model = ov.Core().read_model(model.SerializeToString())\n"

EVALUATE = """\
answers = [ov.Tensor(each.element_type, []) for each in model.outputs]
model.evaluate(answers, [{given}])
"""

RUN = """\
request = ov.Core().compile_model(model, "{device}", {settings}).create_infer_request()
request.infer({{{given}}})
"""


class OnnxFrontEnd:
    """Reads models of ONNX; without a variant, openvino's reference runs them, else a plugin."""

    def __init__(
        self, openvino: Any, tensors: OpenvinoTensors, plugin: Plugin, variant: str | None
    ) -> None:
        self._openvino = openvino
        self._tensors = tensors
        self._plugin = plugin
        self._variant = variant
        self._builder = ModelBuilder(load("onnx", "openvino"))

    def _read_onnx(self, model: Any) -> Any:
        """Return openvino's model of a model of ONNX; raise openvino's RuntimeError otherwise."""
        return self._plugin.core.read_model(model.SerializeToString())

    def _evaluate(self, model: Any, inputs: Sequence[Any], operation: str) -> list[Any]:
        """Return the results of a model by openvino's reference.

        Raises Unsupported, which names the ``operation``, if the reference does not evaluate it.
        """
        answers = [self._openvino.Tensor(each.element_type, []) for each in model.outputs]
        if not model.evaluate(answers, inputs):
            raise Unsupported(f"openvino's reference does not evaluate {operation}")
        return answers

    def _run_statements(self, given: Mapping[str, str]) -> str:
        """Return the statements that run a script's ``model`` on tensors.

        ``given`` has the expression of each input by its name, in the order of the model's inputs.
        """
        if self._variant is None:
            return EVALUATE.format(given=", ".join(given.values()))
        return RUN.format(
            settings=self._plugin.settings_text,
            device=self._plugin.device,
            given=", ".join(f'"{name}": {tensor}' for name, tensor in given.items()),
        )

    def _result_text(self, number: int) -> str:
        """Return the expression of a result's elements after the ``_run_statements``."""
        results = "answers" if self._variant is None else "request.output_tensors"
        return f"{results}[{number}].data"
