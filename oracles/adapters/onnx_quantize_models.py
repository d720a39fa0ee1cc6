"""ONNX models of one QuantizeLinear, DequantizeLinear or DynamicQuantizeLinear.

A model depends on the case and on how its tensors are shaped: whether there is a zero point, and
along which axis the scales lie. The values of the tensors are no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oracles.adapters.onnx_models import PARSED_NAMES, ModelBuilder
from oracles.adapters.tensor_memory import initializer_content
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named

OPERATORS: Mapping[str, str] = {
    "onnx-quantize-linear": "QuantizeLinear",
    "onnx-dequantize-linear": "DequantizeLinear",
    "onnx-dynamic-quantize-linear": "DynamicQuantizeLinear",
}
FIRST_OUTPUT_DTYPE = {"QuantizeLinear": 21, "DequantizeLinear": 23}
"""By operator, the first opset that has the attribute `output_dtype`."""

DEFAULT_CODES = "uint8"
"""The dtype of QuantizeLinear's codes if neither a zero point nor `output_dtype` names one."""

Typed = tuple[tuple[str, str], ...]
"""Names of tensors, each with its dtype."""

Ranks = tuple[tuple[str, int], ...]
"""Names of tensors, each with its rank."""


@dataclass(frozen=True)
class Node:
    """One node of an opset: its operator, its attributes, and its tensors by name.

    The value of an attribute that is a dtype is the dtype's name.
    """

    opset: int
    operator: str
    inputs: Typed
    outputs: Typed
    attributes: tuple[tuple[str, int | str], ...] = ()


def quantize_node(case: Case, tensors: Mapping[str, Bits]) -> Node:
    """Return the node of a case on tensors of these shapes."""
    operator = OPERATORS.get(case.document)
    if operator is None:
        raise Unsupported(f"ONNX has no operator for {case.document}")
    opset, modes = int(case.version), dict(case.modes)
    if operator == "DynamicQuantizeLinear":
        outputs = (("y", case.target), ("scale", case.source), ("zero", case.target))
        return Node(opset, operator, (("x", case.source),), outputs)
    codes, floats = case.source, case.target
    if operator == "QuantizeLinear":
        codes, floats = floats, codes
    dtypes = {"x": case.source, "scale": modes.get("scale", floats), "zero": codes}
    attributes: dict[str, int | str] = {}
    if "saturate" in modes:
        attributes["saturate"] = int(modes["saturate"])
    if "precision" in modes:
        attributes["precision"] = modes["precision"]
    given = dtypes["scale"] if operator == "DequantizeLinear" else DEFAULT_CODES
    if operator == "QuantizeLinear" and "zero" in tensors:
        given = codes
    if case.target != given:
        if opset < FIRST_OUTPUT_DTYPE[operator]:
            raise Unsupported(f"{operator} of opset {opset} has no output_dtype")
        attributes["output_dtype"] = case.target
    attributes |= axis_attributes(modes, tensors["x"].shape, tensors["scale"].shape)
    inputs = tuple((name, dtype) for name, dtype in dtypes.items() if name in tensors)
    return Node(opset, operator, inputs, (("y", case.target),), tuple(attributes.items()))


def axis_attributes(
    modes: Mapping[str, str], of_x: tuple[int, ...], of_scale: tuple[int, ...]
) -> dict[str, int | str]:
    """Return the attributes that say how scales lie along x: `axis`, and `block_size`."""
    match modes.get("form", "tensor"):
        case "axis":
            # Where several axes have this length, the default one is meant.
            fitting = [axis for axis, length in enumerate(of_x) if (length,) == of_scale]
            return {"axis": 1 if 1 in fitting else fitting[0]}
        case "block":
            pairs = enumerate(zip(of_x, of_scale, strict=True))
            axis, (length, count) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
            size = int(modes["block"]) if "block" in modes else -(-length // count)
            return {"axis": axis, "block_size": size}
    return {}


def ranks_of(node: Node, tensors: Mapping[str, Bits]) -> Ranks:
    """Return the ranks of a node's tensors: y has that of x, other outputs are scalars."""
    ranks = {name: tensors["x"].ndim if name == "y" else 0 for name, _ in node.outputs}
    return tuple((ranks | {name: tensors[name].ndim for name, _ in node.inputs}).items())


class NodeModels:
    """Builds the models of nodes with an onnx package, by the builder of casts."""

    def __init__(self, onnx: Any, models: ModelBuilder) -> None:
        self._helper = onnx.helper
        self._models = models

    def model(self, node: Node, ranks: Ranks, constants: Mapping[str, Bits]) -> Any:
        """Return a node's model, whose inputs among the ``constants`` are initializers.

        The tensors have the ranks, or any shape if there are none.
        """
        helper, rank_of = self._helper, dict(ranks)

        def values(tensors: Typed) -> list[Any]:
            return [
                helper.make_tensor_value_info(
                    name,
                    self._models.element_type(dtype),
                    [None] * rank_of[name] if ranks else None,
                )
                for name, dtype in tensors
            ]

        attributes = {
            name: self._models.element_type(value) if isinstance(value, str) else value
            for name, value in node.attributes
        }
        inputs, outputs = ([name for name, _ in each] for each in (node.inputs, node.outputs))
        made = helper.make_node(node.operator, inputs, outputs, **attributes)
        content = [
            self._models.tensor(
                name,
                dtype,
                constants[name].shape,
                initializer_content(format_named(dtype), constants[name]),
            )
            for name, dtype in node.inputs
            if name in constants
        ]
        free = tuple(each for each in node.inputs if each[0] not in constants)
        body = helper.make_graph([made], "one_node", values(free), values(node.outputs), content)
        opsets = [helper.make_opsetid("", node.opset)]
        version = self._models.ir_version(node.opset)
        return helper.make_model(body, opset_imports=opsets, ir_version=version)
