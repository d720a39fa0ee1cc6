"""ONNX models of one QuantizeLinear, DequantizeLinear or DynamicQuantizeLinear.

A model depends on the case and on how its tensors are shaped: whether there is a zero point, and
along which axis the scales lie. The values of the tensors are no part of it. Below are the
statements of scripts that the runtimes of ONNX share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracles.adapters.onnx_models import (
    LATEST,
    ModelBuilder,
    attributes_text,
    parse_statement,
    typed,
)
from oracles.adapters.script_text import bits_statement
from oracles.adapters.tensor_memory import initializer_content
from oracles.memory_layouts import is_packed
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.vocabulary import AXIS, BLOCK, FORM, PRECISION, SATURATE, SCALE
from specs.operations import operation_of

FITTING = 90
"""A script writes a node with fewer characters on one line."""

OPERATORS: Mapping[str, str] = {
    "quantize": "QuantizeLinear",
    "dequantize": "DequantizeLinear",
    "dynamic-quantize": "DynamicQuantizeLinear",
}
"""By operation of a document, ONNX's operator."""

CLAIMS = ("onnx-quantize-linear", "onnx-dequantize-linear", "onnx-dynamic-quantize-linear")
"""The documents of these operators; cases of other documents use the latest opset."""

FIRST_OUTPUT_DTYPE = {"QuantizeLinear": 21, "DequantizeLinear": 23}
"""By operator, the first opset that has the attribute `output_dtype`."""

DEFAULT_CODES = "uint8"
"""The dtype of QuantizeLinear's codes if neither a zero point nor `output_dtype` names one."""

Typed = tuple[tuple[str, str], ...]
"""Names of tensors, each with its dtype."""

Shapes = tuple[tuple[str, tuple[int | None, ...]], ...]
"""Names of tensors, each with its shape; a dimension that is None may have any length."""


@dataclass(frozen=True)
class OpsetNode:
    """One node of an opset: its operator, its attributes, and its inputs and outputs by name.

    The value of an attribute is an integer, or the name of a dtype.
    """

    opset: int
    operator: str
    inputs: Typed
    outputs: Typed
    attributes: tuple[tuple[str, int | str], ...] = ()


def quantize_node(case: Case, tensors: Mapping[str, Bits]) -> tuple[OpsetNode, Mapping[str, Bits]]:
    """Return the node of a case, and its tensors by name, in the shapes that ONNX expects.

    ``tensors`` has ``x`` and, unless the operator computes them, ``scale`` and perhaps ``zero``. A
    zero point of zeros is added where only that sets the dtype of codes. Raises Unsupported if ONNX
    has no operator for the case, or its opset cannot give floats of the target's dtype.
    """
    operator = OPERATORS.get(operation_of(case))
    if operator is None:
        raise Unsupported(f"ONNX has no operator for {case.document}")
    opset, modes = int(case.version) if case.document in CLAIMS else LATEST, dict(case.modes)
    if operator == "DynamicQuantizeLinear":
        outputs = (("y", case.target), ("scale", case.source), ("zero", case.target))
        return OpsetNode(opset, operator, (("x", case.source),), outputs), tensors
    quantizes = operator == "QuantizeLinear"
    codes, floats = (case.target, case.source)[:: 1 if quantizes else -1]
    dtypes = {"x": case.source, "scale": modes.get(SCALE, floats), "zero": codes}
    tensors = _as_onnx_takes_them(modes, tensors)
    default = dtypes["scale"]
    if quantizes:
        default = codes if "zero" in tensors else DEFAULT_CODES
    attributes: dict[str, int | str] = {}
    if case.target != default:
        if opset >= FIRST_OUTPUT_DTYPE[operator]:
            attributes["output_dtype"] = case.target
        elif quantizes:
            # In these opsets only a zero point can set the dtype of the codes.
            scale = tensors["scale"]
            tensors = {**tensors, "zero": np.zeros(scale.shape, format_named(codes).storage)}
        else:
            raise Unsupported(f"{operator} of opset {opset} gives floats of the scale's dtype")
    if SATURATE in modes:
        attributes["saturate"] = int(modes[SATURATE])
    if PRECISION in modes:
        attributes["precision"] = modes[PRECISION]
    if modes.get(FORM) in ("axis", "block"):
        attributes["axis"] = AXIS
    if BLOCK in modes:
        attributes["block_size"] = int(modes[BLOCK])
    inputs = tuple((name, dtype) for name, dtype in dtypes.items() if name in tensors)
    return OpsetNode(
        opset, operator, inputs, (("y", case.target),), tuple(attributes.items())
    ), tensors


def _as_onnx_takes_them(
    modes: Mapping[str, str], tensors: Mapping[str, Bits]
) -> Mapping[str, Bits]:
    """Return the tensors with one dimension for scales along an axis, and for their zero points."""
    if modes.get(FORM) != "axis":
        return tensors
    return {name: bits if name == "x" else bits.reshape(-1) for name, bits in tensors.items()}


def shapes_of(node: OpsetNode, tensors: Mapping[str, Bits]) -> Shapes:
    """Return the shapes of a node's tensors; output y has that of x, other outputs are scalars."""
    shapes = {name: tensors["x"].shape if name == "y" else () for name, _ in node.outputs}
    return tuple((shapes | {name: tensors[name].shape for name, _ in node.inputs}).items())


def without_lengths(node: OpsetNode, shapes: Shapes) -> Shapes:
    """Return ``shapes`` with None for the lengths of x and y, except along the node's axis."""
    axis = dict(node.attributes).get("axis")
    return tuple(
        (
            name,
            tuple(length if place == axis else None for place, length in enumerate(shape))
            if name in ("x", "y")
            else shape,
        )
        for name, shape in shapes
    )


OF_FORMS = ("axis", "block_size")
"""The attributes that a node without channels and blocks lacks."""


def plain_node(node: OpsetNode) -> tuple[OpsetNode, Shapes]:
    """Return the node without channels and blocks, and the shapes of one element."""
    attributes = tuple(each for each in node.attributes if each[0] not in OF_FORMS)
    names = (name for name, _ in (*node.inputs, *node.outputs))
    shapes = {name: (1,) if name in ("x", "y") else () for name in names}
    return replace(node, attributes=attributes), tuple(shapes.items())


def usual_node(node: OpsetNode) -> tuple[OpsetNode, Shapes]:
    """Return the node with float32 and uint8 as its dtypes, no attributes, and one element."""
    codes = {"x" if node.operator == "DequantizeLinear" else "y", "zero"}

    def usual(ends: Typed) -> Typed:
        return tuple((name, "uint8" if name in codes else "float32") for name, _ in ends)

    return plain_node(OpsetNode(node.opset, node.operator, usual(node.inputs), usual(node.outputs)))


class NodeModels:
    """Builds ONNX models of one node, by a ``ModelBuilder``."""

    def __init__(self, models: ModelBuilder) -> None:
        self._models = models

    def model(self, node: OpsetNode, shapes: Shapes, constants: Mapping[str, Bits]) -> Any:
        """Return the model of a node; inputs that are among the ``constants`` are initializers.

        A tensor that is not among the ``shapes`` may have any shape. Raises Unsupported for a dtype
        that the onnx package lacks.
        """
        model = self._models.parsed(self._text(node, shapes, [*constants]))
        for name, dtype in node.inputs:
            if name in constants:
                content = initializer_content(format_named(dtype), constants[name])
                tensor = self._models.tensor(name, dtype, constants[name].shape, content)
                model.graph.initializer.append(tensor)
        return model

    def statement(self, node: OpsetNode, shapes: Shapes, constants: Sequence[str] = ()) -> str:
        """Return the statement that binds a script's ``model`` to the model of a node.

        The script must add the ``constants``, the names of inputs, as initializers.
        """
        return parse_statement(self._text(node, shapes, constants))

    def _text(self, node: OpsetNode, shapes: Shapes, constants: Sequence[str]) -> str:
        shape_of = dict(shapes)

        def values(tensors: Typed) -> str:
            for _, dtype in tensors:
                self._models.element_type(dtype)
            return ", ".join(
                typed(dtype, _parsed_shape(name, shape_of.get(name)), name)
                for name, dtype in tensors
            )

        attributes = attributes_text(
            {
                name: self._models.element_type(value) if isinstance(value, str) else value
                for name, value in node.attributes
            }
        )
        free = tuple(each for each in node.inputs if each[0] not in constants)
        inputs, outputs = (
            ", ".join(name for name, _ in each) for each in (node.inputs, node.outputs)
        )
        head = f"one_node ({values(free)}) => ({values(node.outputs)})"
        body = f"{{ {outputs} = {node.operator}{attributes}({inputs}) }}"
        between = " " if len(head) + len(body) < FITTING else "\n"
        return f"{self._models.head(node.opset)}{head}{between}{body}"


def _parsed_shape(name: str, shape: tuple[int | None, ...] | None) -> str:
    """Return the shape of the tensor ``name`` in ONNX's text format.

    ``[]`` stands for any shape, given as None, and an empty text for a scalar. A length that is
    None gets a name such as ``x0``.
    """
    if not shape:
        return "[]" if shape is None else ""
    lengths = (
        f"{name}{axis}" if length is None else str(length) for axis, length in enumerate(shape)
    )
    return f"[{', '.join(lengths)}]"


PACKED = "  # packed: the first code in the low bits"

INITIALIZERS = """\
for name, dtype, dims, data in [{constants}]:
    model.graph.initializer.add(name=name, data_type=dtype, dims=dims, raw_data=data.tobytes())
"""


def tensor_statements(
    node: OpsetNode, tensors: Mapping[str, Bits], memory: Callable[[Format, Bits], Bits]
) -> str:
    """Return the statements that bind each input of a node, by name, to an array of its memory.

    ``memory`` returns the content of the memory for a format and the patterns.
    """
    lines = []
    for name, dtype in node.inputs:
        entry, bits = format_named(dtype), tensors[name]
        statement = bits_statement(dtype, memory(entry, bits), name)
        lines.append(statement + (PACKED if is_packed(entry) and bits.size > 1 else "") + "\n")
    return "".join(lines)


def initializers(
    node: OpsetNode, tensors: Mapping[str, Bits], number_of: Callable[[str], int]
) -> str:
    """Return the statements that make a node's inputs the initializers of a script's ``model``.

    ``number_of`` returns a dtype's number in ``TensorProto.DataType``.
    """
    constants = (
        f'("{name}", {number_of(dtype)}, {tensors[name].shape}, {name})'
        for name, dtype in node.inputs
    )
    return INITIALIZERS.format(constants=", ".join(constants))


def results(node: OpsetNode) -> str:
    """Return the left side of the assignment of a node's results, such as ``(y,)``."""
    names = [name for name, _ in node.outputs]
    return ", ".join(names) if len(names) > 1 else f"({names[0]},)"


def patterns_expression(dtype: str, memory: str, count: int) -> str:
    """Return the expression of the patterns in a tensor of ``count`` elements.

    ``memory`` is the expression of an array with the tensor's memory.
    """
    entry = format_named(dtype)
    if not is_packed(entry):
        return f'{memory}.view("{entry.storage}")'
    codes = f'{memory}.view("uint8")[:, None] >> np.arange(0, 8, {entry.bits}) & {entry.mask:#x}'
    return f"({codes}).ravel()[:{count}]"


def print_patterns(name: str, patterns: str) -> str:
    """Return the statement that prints a result's name and the array of its patterns.

    ``patterns`` is the expression of the array.
    """
    return f'print("{name}:", *map(hex, {patterns}.ravel()))\n'
