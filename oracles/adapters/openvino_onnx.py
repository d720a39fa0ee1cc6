"""openvino's ONNX front end: it reads a model of one node, and translates it to several nodes.

A QuantizeLinear to integers becomes a FakeQuantize and a Convert, one to an 8-bit float a Divide,
a FakeConvert and a Convert, and a DequantizeLinear a Subtract and a Multiply. The reference then
evaluates these nodes, or the CPU plugin compiles or folds them, as it does a Convert.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from oracles.adapters.onnx_quantize_models import (
    NodeModels,
    OpsetNode,
    Shapes,
    initializers,
    patterns_expression,
    plain_node,
    print_patterns,
    shapes_of,
    tensor_statements,
    usual_node,
    without_lengths,
)
from oracles.adapters.openvino_models import IMPORTS, READ, OnnxFrontEnd
from oracles.adapters.openvino_plugin import Plugin, nothing
from oracles.adapters.openvino_tensors import OpenvinoTensors
from oracles.adapters.refusals import is_lacking
from oracles.adapters.tensor_memory import tensor_content
from oracles.protocol import Bits, Unsupported

CACHED_MODELS = 32


class OnnxNodes(OnnxFrontEnd):
    """Runs models of one ONNX node by openvino, in the way that the adapter's variant names."""

    def __init__(
        self, openvino: Any, tensors: OpenvinoTensors, plugin: Plugin, variant: str | None
    ) -> None:
        super().__init__(openvino, tensors, plugin, variant)
        self._nodes = NodeModels(self._builder)
        self._model = lru_cache(CACHED_MODELS)(self._read)
        self._compiled = lru_cache(CACHED_MODELS)(self._compile)

    def quantize(self, node: OpsetNode, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return the patterns of a node's results by name.

        ``tensors`` has the node's inputs by name. Raises Unsupported for a dtype or an operator
        that openvino lacks in this variant, and for a node that `cpu-folded` does not fold.
        """
        inputs = {
            name: self._tensors.of_patterns(dtype, tensors[name]) for name, dtype in node.inputs
        }
        for _, dtype in node.outputs:
            self._tensors.type(dtype)
        answers = zip(node.outputs, self._run(node, tensors, inputs), strict=True)
        return {name: self._tensors.patterns(dtype, answer) for (name, dtype), answer in answers}

    def _run(
        self, node: OpsetNode, tensors: Mapping[str, Bits], inputs: Mapping[str, Any]
    ) -> list[Any]:
        if self._variant == "cpu-folded":
            model = self._read(node, shapes_of(node, tensors), tensors)
            request = self._plugin.request_to_folded(model, partial(self._lacking, node))
            self._plugin.run(request, partial(self._lacking, node))
            return list(request.output_tensors)
        shapes = self._shapes(node, tensors)
        if self._variant is None:
            model = self._model(node, shapes)
            given = [inputs[name] for name in _names(model)]
            return self._evaluate(model, given, f"this {node.operator}")
        compiled = self._compiled(node, shapes)
        request = compiled.create_infer_request()
        for name in _names(compiled):
            request.set_tensor(name, inputs[name])
        self._plugin.run(request, partial(self._lacking, node))
        return list(request.output_tensors)

    def _shapes(self, node: OpsetNode, tensors: Mapping[str, Bits]) -> Shapes:
        """Return the shapes that a node's model declares; lengths are open in `cpu-dynamic` only.

        With open lengths openvino's reference would write beyond its memory where tensors do not
        fit together. The number of scales is never open: the front end needs to know it.
        """
        shapes = shapes_of(node, tensors)
        return without_lengths(node, shapes) if self._variant == "cpu-dynamic" else shapes

    def _compile(self, node: OpsetNode, shapes: Shapes) -> Any:
        return self._plugin.compile(self._model(node, shapes), partial(self._lacking, node))

    def _read(
        self, node: OpsetNode, shapes: Shapes, constants: Mapping[str, Bits] | None = None
    ) -> Any:
        """Return the model into which the front end translates a node.

        Inputs among the ``constants`` are constants of the model. Raises Unsupported if the front
        end lacks a dtype.
        """
        try:
            return self._read_plainly(node, shapes, constants)
        except RuntimeError:
            if not self._is_lacking(node, self._read_plainly):
                raise
            raise Unsupported(f"openvino's front end reads no {_words(node)}") from None

    def _read_plainly(
        self, node: OpsetNode, shapes: Shapes, constants: Mapping[str, Bits] | None = None
    ) -> Any:
        return self._read_onnx(self._nodes.model(node, shapes, constants or {}))

    def _lacking(self, node: OpsetNode) -> str:
        """Return the reason if the CPU plugin lacks a node of these dtypes, else an empty text."""

        def run(plain: OpsetNode, shapes: Shapes) -> None:
            compiled = self._plugin.compile(self._read_plainly(plain, shapes), nothing)
            self._plugin.run(compiled.create_infer_request(), nothing)

        words = f"openvino's {self._plugin.device} plugin runs no {_words(node)}"
        return words if self._is_lacking(node, run) else ""

    def _is_lacking(self, node: OpsetNode, call: Callable[[OpsetNode, Shapes], Any]) -> bool:
        """Return whether openvino refuses a node of one element, but not one of usual dtypes."""
        pairs = (plain_node(node), usual_node(node))
        return is_lacking((RuntimeError,), *(partial(call, *pair) for pair in pairs))

    def script(self, node: OpsetNode, tensors: Mapping[str, Bits]) -> str:
        """Return a script, without its first line, that runs a node and prints its results."""
        is_folded, shapes = self._variant == "cpu-folded", self._shapes(node, tensors)
        dtypes = dict(node.inputs)
        constants = tuple(dtypes) if is_folded else ()
        script = IMPORTS + tensor_statements(node, tensors, tensor_content)
        script += self._nodes.statement(node, shapes, constants)
        given = {}
        if is_folded:
            script += initializers(node, tensors, self._builder.element_type)
        else:
            for name in _names(self._model(node, shapes)):
                shape, type_name = list(tensors[name].shape), self._tensors.name(dtypes[name])
                given[name] = f"ov.Tensor({name}, {shape}, ov.Type.{type_name})"
        script += READ + self._run_statements(given)
        for number, (name, dtype) in enumerate(node.outputs):
            count = tensors["x"].size if name == "y" else 1
            patterns = patterns_expression(dtype, self._result_text(number), count)
            script += print_patterns(name, patterns)
        return script


def _words(node: OpsetNode) -> str:
    dtypes = dict.fromkeys(dtype for _, dtype in (*node.inputs, *node.outputs))
    return f"{node.operator} of {', '.join(dtypes)}"


def _names(model: Any) -> list[str]:
    """Return the names of a model's inputs; the front end drops those that it does not use."""
    return [str(each.get_any_name()) for each in model.inputs]
