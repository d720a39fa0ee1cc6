"""Build ONNX models of one node, for onnxruntime and for ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from oracles.adapters.tensor_memory import initializer_content
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.chains import Chain, Company
from specs.formats import format_named

LATEST = 25
"""The opset for documents without opsets."""

FIRST_BITCAST = 26
"""The first opset that has BitCast."""

FIRST_NUMBERED = 6
"""The first opset whose Cast takes `to` as a number."""

CAST_OPERATORS = {"onnx-cast": "Cast", "onnx-cast-like": "CastLike"}
"""By document, the operator that answers its cases; those of others are answered by Cast."""

LIKE = "like"
"""The second input of CastLike, an initializer of the target's dtype."""

FIRST_FREE_INITIALIZER = 4
"""The first IR version in which an initializer need not be a graph input too."""

CACHED_GRAPHS = 64

SHORT_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}
PARSED_NAMES = {"float32": "float", "float64": "double"}
"""The dtypes that ONNX's text format names otherwise than this project."""


def element_name(dtype: str) -> str:
    """Return the dtype's name in the enum TensorProto."""
    return SHORT_NAMES.get(dtype, dtype.upper())


@dataclass(frozen=True)
class Graph:
    """One node between an input x and an output y; without an operator, x itself is the output."""

    opset: int
    source: str
    target: str
    operator: str | None
    modes: tuple[tuple[str, str], ...] = ()

    @property
    def output(self) -> str:
        """The output's name."""
        return "y" if self.operator else "x"

    @property
    def inputs(self) -> list[str]:
        """The names of the node's inputs."""
        return ["x", LIKE] if self.operator == "CastLike" else ["x"]

    @property
    def road(self) -> str:
        """The graph in one line; cases with the same graph have the same model."""
        modes = "".join(f", {name}={value}" for name, value in self.modes)
        operator = f"{self.operator}, " if self.operator == "CastLike" else ""
        return f"{operator}opset {self.opset}, {self.source}->{self.target}{modes}"

    @property
    def attributes(self) -> dict[str, int | str]:
        """The node's attributes except `to`."""
        return {name: int(value) if value.isdigit() else value for name, value in self.modes}


def cast_graph(case: Case) -> Graph:
    """Return the graph of a case: its opset, its dtypes, and the parameters that Cast has."""
    operator = CAST_OPERATORS.get(case.document)
    opset = LATEST if operator is None else int(case.version)
    modes = tuple(item for item in case.modes if item[0] in ("saturate", "round_mode"))
    return Graph(opset, case.source, case.target, operator or "Cast", modes)


def bitcast_graph(case: Case) -> Graph:
    """Return the graph of a bitcast, which has no parameters."""
    return Graph(FIRST_BITCAST, case.source, case.target, "BitCast")


def axes_of(company: Company) -> dict[str, str]:
    """Return the axes of a company's road, each with its value."""
    return dict(axis.split(":") for axis in company.road.split(","))


class ModelBuilder:
    """Builds models with an onnx package; raises Unsupported for dtypes that the package lacks."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._helper = onnx.helper
        # A graph is asked in several ranks, and copying its model takes a fraction of building it.
        self._unshaped = lru_cache(CACHED_GRAPHS)(self._built_unshaped)
        self._without_input = lru_cache(CACHED_GRAPHS)(self._built_without_input)

    def road(self, case: Case) -> str:
        """Return the road of a case, whose dtypes the onnx package must have."""
        for dtype in (case.source, case.target):
            self.element_type(dtype)
        return cast_graph(case).road

    def element_type(self, dtype: str) -> int:
        """Return the dtype's number in the enum TensorProto."""
        try:
            return int(self._onnx.TensorProto.DataType.Value(element_name(dtype)))
        except ValueError:
            version = self._onnx.__version__
            raise Unsupported(f"onnx {version} has no dtype {element_name(dtype)}") from None

    def with_input(self, graph: Graph, rank: int | None) -> Any:
        """Return the model whose x is a graph input, of that rank or, without one, of any shape."""
        unshaped = self._unshaped(graph)
        if rank is None:
            return unshaped
        model = _copied(unshaped)
        for value in (*model.graph.input, *model.graph.output):
            shape = value.type.tensor_type.shape
            shape.SetInParent()  # A shape without dimensions is not the same as none.
            for axis in range(rank):
                shape.dim.add().dim_param = f"d{axis}"
        return model

    def _built_unshaped(self, graph: Graph) -> Any:
        x = self._value("x", graph.source, None)
        return self._model(graph, None, inputs=[x])

    def with_constant(
        self, graph: Graph, shape: tuple[int, ...], content: bytes | list[bytes]
    ) -> Any:
        """Return the model whose x is an initializer of texts, or of the patterns' raw bytes."""
        model = _copied(self._without_input(graph, len(shape)))
        model.graph.initializer.append(self.tensor("x", graph.source, shape, content))
        return model

    def _built_without_input(self, graph: Graph, rank: int) -> Any:
        return self._model(graph, rank, inputs=[])

    def tensor(
        self, name: str, dtype: str, shape: tuple[int, ...], content: bytes | list[bytes]
    ) -> Any:
        """Return a TensorProto of texts, or of the patterns' raw bytes."""
        # onnx's own `make_tensor` takes most of the time of building a model.
        filled = {"raw_data" if isinstance(content, bytes) else "string_data": content}
        number = self.element_type(dtype)
        return self._onnx.TensorProto(name=name, data_type=number, dims=shape, **filled)

    def statement(self, graph: Graph, shape: str, *, has_input: bool = True) -> str:
        """Return the statement that binds a script's ``model``; dtypes are followed by ``shape``.

        Without an input, the script must add x as an initializer.
        """
        source, target = (
            f"{PARSED_NAMES.get(dtype, dtype)}{shape}" for dtype in (graph.source, graph.target)
        )
        attributes = ", ".join(
            f"{name} = {value}" if isinstance(value, int) else f'{name} = "{value}"'
            for name, value in self._attributes(graph).items()
        )
        return (
            f'model = onnx.parser.parse_model("""<ir_version: {self.ir_version(graph.opset)}, '
            f'opset_import: ["": {graph.opset}]>\n'
            f"one_node ({f'{source} x' if has_input else ''}) => ({target} y)\n"
            f"{{ y = {graph.operator}{f'<{attributes}>' if attributes else ''}"
            f'({", ".join(graph.inputs)}) }}""")\n' + self._constant_statement(graph)
        )

    def _constant_statement(self, graph: Graph) -> str:
        if LIKE not in graph.inputs:
            return ""
        content = _content_of_like(graph)
        field = "raw_data" if isinstance(content, bytes) else "string_data"
        value = f"bytes({len(content)})" if isinstance(content, bytes) else content
        number = self.element_type(graph.target)
        return (
            f'model.graph.initializer.add(name="{LIKE}", data_type={number}, dims=[1], '
            f"{field}={value})\n"
        )

    def chains(
        self,
        company: Company,
        axes: Mapping[str, str],
        bits: Sequence[Bits],
    ) -> Any:
        """Return the model of a company: chain number i leads from ``xi`` to ``yi``.

        With the axis ``middle:output`` the values between casts are outputs too, with
        ``input:constant`` the inputs are initializers with these ``bits``, and with
        ``before:reshape`` a Reshape precedes the first cast.
        """
        helper, graph = self._helper, cast_graph(company.chains[0].steps[0])
        nodes, inputs, outputs, constants = [], [], [], []

        def row(name: str, dtype: str, number: int) -> Any:
            # Each chain has its own length; onnxruntime relies on equal names for equal sizes.
            return helper.make_tensor_value_info(name, self.element_type(dtype), [f"n{number}"])

        for number, chain in enumerate(company.chains):
            at = f"x{number}"
            if axes.get("input") == "constant":
                own = bits[number]
                content = initializer_content(format_named(chain.source), own)
                constants.append(self.tensor(at, chain.source, own.shape, content))
            else:
                inputs.append(row(at, chain.source, number))
            if axes.get("before") == "reshape":
                nodes.append(helper.make_node("Reshape", [at, "row"], [f"r{number}"]))
                at = f"r{number}"
            for place, step in enumerate(chain.steps, 1):
                is_last = place == len(chain.steps)
                name = f"y{number}" if is_last else f"m{number}_{place}"
                attributes = self._attributes(cast_graph(step))
                nodes.append(helper.make_node("Cast", [at], [name], **attributes))
                if is_last or axes.get("middle") == "output":
                    outputs.append(row(name, step.target, number))
                at = name
        if axes.get("before") == "reshape":
            constants.append(helper.make_tensor("row", self.element_type("int64"), [1], [-1]))
        body = helper.make_graph(nodes, "casts", inputs, outputs, constants)
        opsets = [helper.make_opsetid("", graph.opset)]
        return helper.make_model(
            body, opset_imports=opsets, ir_version=self.ir_version(graph.opset)
        )

    def chain_statement(self, chain: Chain, axes: Mapping[str, str]) -> str:
        """Return the statement that binds a script's ``model`` of one chain, as ``chains`` does.

        If x is constant, the script must add it as an initializer.
        """
        graph = cast_graph(chain.steps[0])
        lines, outputs, at = [], [], "x"
        if axes.get("before") == "reshape":
            lines += ["row = Constant<value = int64[1] {-1}>()", "r = Reshape(x, row)"]
            at = "r"
        for place, step in enumerate(chain.steps, 1):
            is_last = place == len(chain.steps)
            name = "y" if is_last else f"m{place}"
            given = self._attributes(cast_graph(step)).items()
            attributes = ", ".join(
                f"{key} = {value}" if isinstance(value, int) else f'{key} = "{value}"'
                for key, value in given
            )
            lines.append(f"{name} = Cast<{attributes}>({at})")
            if is_last or axes.get("middle") == "output":
                outputs.append(f"{PARSED_NAMES.get(step.target, step.target)}[n] {name}")
            at = name
        source = f"{PARSED_NAMES.get(chain.source, chain.source)}[n] x"
        given_x = "" if axes.get("input") == "constant" else source
        body = "\n  ".join(lines)
        return (
            f'model = onnx.parser.parse_model("""<ir_version: {self.ir_version(graph.opset)}, '
            f'opset_import: ["": {graph.opset}]>\n'
            f"casts ({given_x}) => ({', '.join(outputs)}) {{\n  {body}\n}}"
            '""")\n'
        )

    def _value(self, name: str, dtype: str, rank: int | None) -> Any:
        shape = None if rank is None else [f"d{axis}" for axis in range(rank)]
        return self._helper.make_tensor_value_info(name, self.element_type(dtype), shape)

    def _model(self, graph: Graph, rank: int | None, *, inputs: list[Any]) -> Any:
        helper, output = self._helper, self._value(graph.output, graph.target, rank)
        nodes, constants = self._nodes(graph), self._constants(graph)
        body = helper.make_graph(nodes, "one_node", inputs, [output], constants)
        opsets = [helper.make_opsetid("", graph.opset)]
        version = self.ir_version(graph.opset)
        return helper.make_model(body, opset_imports=opsets, ir_version=version)

    def ir_version(self, opset: int) -> int:
        """Return the oldest IR version that models of an opset may have here."""
        opsets = [self._helper.make_opsetid("", opset)]
        oldest = int(self._helper.find_min_ir_version_for(opsets, ignore_unknown=True))
        return max(FIRST_FREE_INITIALIZER, oldest)

    def _nodes(self, graph: Graph) -> list[Any]:
        if graph.operator is None:
            return []
        attributes = self._attributes(graph)
        return [self._helper.make_node(graph.operator, graph.inputs, ["y"], **attributes)]

    def _constants(self, graph: Graph) -> list[Any]:
        """Return the initializers that a node needs besides x: for CastLike one of the target."""
        if LIKE not in graph.inputs:
            return []
        return [self.tensor(LIKE, graph.target, (1,), _content_of_like(graph))]

    def _attributes(self, graph: Graph) -> dict[str, int | str]:
        """Return the node's attributes; Cast and BitCast have `to`."""
        if graph.operator not in ("Cast", "BitCast"):
            return graph.attributes
        is_numbered = graph.opset >= FIRST_NUMBERED
        to = self.element_type(graph.target) if is_numbered else element_name(graph.target)
        return {"to": to} | graph.attributes


def _content_of_like(graph: Graph) -> bytes | list[bytes]:
    """Return an initializer's content: a zero of the target's dtype, or an empty text."""
    entry = format_named(graph.target)
    is_text = entry.kind == "text"
    return initializer_content(
        entry, np.array([""], "O") if is_text else np.zeros(1, entry.storage)
    )


def _copied(model: Any) -> Any:
    """Return a copy of a model."""
    copy = type(model)()
    copy.CopyFrom(model)
    return copy
