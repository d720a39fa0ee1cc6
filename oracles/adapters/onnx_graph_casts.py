"""Executes the casts that an optimizer has left in a model, by the reference.

An optimizer is judged without the kernels of any runtime. So the reference answers the casts that
are left, and operators that only move bits pass them on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from oracles.adapters.onnx_models import SHORT_NAMES
from oracles.protocol import Bits, Unsupported
from oracles.reference.reference_oracle import Casts
from specs.cases import Case
from specs.loader import document_named
from specs.selection import cases_of_pair

DOCUMENT = "onnx-cast"
MOVES = frozenset({"Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten"})
"""Operators that keep every bit of their first input; all tensors here are rows."""
LONG_NAMES = {short: name for name, short in SHORT_NAMES.items()}


class Path(NamedTuple):
    """How a graph computes a value: from which input, by which casts, and the value's dtype."""

    source: str
    casts: tuple[Case, ...]
    dtype: str


class GraphCasts:
    """Finds the casts that optimized models make for each output, and executes them."""

    def __init__(self, onnx: Any, reference: Casts) -> None:
        self._onnx = onnx
        self._reference = reference

    def run(self, model: Any, given: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return the patterns of each output by name, for the patterns of inputs by name."""
        found: dict[str, Bits] = {}
        for name, path in self.paths(model).items():
            bits = given[path.source]
            for case in path.casts:
                bits = self._reference.cast(case, bits)
            found[name] = bits
        return found

    def paths(self, model: Any) -> dict[str, Path]:
        """Return from which input and by which casts the graph computes each output.

        Raise Unsupported for a node that neither casts nor moves bits, and TypeError for an output
        of another dtype than the graph declares.
        """
        version = _version(model)
        values: dict[str, Path] = {}
        for each in model.graph.input:
            dtype = self._dtype(each.type.tensor_type.elem_type)
            values[each.name] = Path(each.name, (), dtype)
        for node in model.graph.node:
            if node.op_type == "Cast":
                source, casts, dtype = values[node.input[0]]
                case = self._case(node, version, dtype)
                values[node.output[0]] = Path(source, (*casts, case), case.target)
            elif node.op_type in MOVES:
                values[node.output[0]] = values[node.input[0]]
            elif node.op_type != "Constant":  # the shape of a Reshape
                raise Unsupported(f"the optimizer has left a node {node.op_type}")
        for each in model.graph.output:
            wanted = self._dtype(each.type.tensor_type.elem_type)
            if (dtype := values[each.name].dtype) != wanted:
                raise TypeError(f"asked for {wanted}, got {dtype}")
        return {each.name: values[each.name] for each in model.graph.output}

    def _case(self, node: Any, version: str, source: str) -> Case:
        """The case of a node; an attribute that it lacks has the value of the default mode."""
        read = self._onnx.helper.get_attribute_value
        attributes = {each.name: read(each) for each in node.attribute}
        given = {name: _text(value) for name, value in attributes.items()}
        listed = cases_of_pair(DOCUMENT, version, source, self._dtype(attributes["to"]))
        default = dict(listed[0].modes)
        return next(
            case
            for case in listed
            if all(given.get(name, default.get(name)) == value for name, value in case.modes)
        )

    def _dtype(self, number: int) -> str:
        name = str(self._onnx.TensorProto.DataType.Name(number))
        return LONG_NAMES.get(name, name.lower())


def _version(model: Any) -> str:
    """The newest version of the document that is not above a model's opset."""
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    versions = document_named(DOCUMENT).entry.versions
    return max((each for each in versions if int(each) <= opset), key=int)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
