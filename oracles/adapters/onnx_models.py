"""Build ONNX models of one node, for onnxruntime and for ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from oracles.adapters.dtype_table import names_in
from oracles.adapters.refusals import load
from oracles.adapters.tensor_memory import initializer_content
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named

if TYPE_CHECKING:
    from specs.chains import Chain, Company

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

DTYPES = names_in("onnx")
"""The names of dtypes in ONNX's text format."""


def typed(dtype: str, shape: str, name: str) -> str:
    """Return the declaration of a tensor in ONNX's text format, such as ``float[2,n] x``.

    ``shape`` is a text such as ``[2,n]``; ``[]`` stands for any shape, and an empty text for a
    scalar.
    """
    return f"{DTYPES.get(dtype, dtype)}{shape} {name}"


def attributes_text(attributes: Mapping[str, int | str]) -> str:
    """Return a node's attributes in ONNX's text format, such as ``<to = 1>``, or an empty text."""
    listed = (
        f"{name} = {value}" if isinstance(value, int) else f'{name} = "{value}"'
        for name, value in attributes.items()
    )
    return f"<{', '.join(listed)}>" if attributes else ""


@dataclass(frozen=True)
class Graph:
    """One node between an input x and an output y; if the operator is None, x itself is the output.

    ``source`` and ``target`` are the dtypes of x and y. ``modes`` has the node's attributes besides
    `to`, by name and as texts. A ``neighbor`` is an operator before the node that moves x exactly.
    """

    opset: int
    source: str
    target: str
    operator: str | None
    modes: tuple[tuple[str, str], ...] = ()
    neighbor: str = ""

    @property
    def output(self) -> str:
        """The name of the output: ``y``, or ``x`` without an operator."""
        return "y" if self.operator else "x"

    @property
    def inputs(self) -> list[str]:
        """The names of the node's inputs: ``x``, and for CastLike also ``like``.

        If there is a neighbor, ``moved`` takes the place of ``x``.
        """
        first = "moved" if self.neighbor else "x"
        return [first, LIKE] if self.operator == "CastLike" else [first]

    @property
    def road(self) -> str:
        """The graph of a cast in one line of text; casts with the same line have the same model."""
        modes = "".join(f", {name}={value}" for name, value in self.modes)
        operator = f"{self.operator}, " if self.operator == "CastLike" else ""
        return f"{operator}opset {self.opset}, {self.source}->{self.target}{modes}"

    @property
    def attributes(self) -> dict[str, int | str]:
        """The node's attributes besides `to`, by name; numbers are integers."""
        return {name: int(value) if value.isdigit() else value for name, value in self.modes}


def cast_graph(case: Case) -> Graph:
    """Return the graph of a case's Cast or CastLike, with the parameters that these operators have.

    The opset is the version of the case or, for documents other than ONNX's, ``LATEST``.
    """
    operator = CAST_OPERATORS.get(case.document)
    opset = LATEST if operator is None else int(case.version)
    modes = tuple(item for item in case.modes if item[0] in ("saturate", "round_mode"))
    return Graph(opset, case.source, case.target, operator or "Cast", modes)


def bitcast_graph(case: Case) -> Graph:
    """Return the graph of a case's BitCast, at the first opset that has this operator."""
    return Graph(FIRST_BITCAST, case.source, case.target, "BitCast")


def axes_of(company: Company) -> dict[str, str]:
    """Return the axes of a company's road, each with its value, by name.

    ``level:all,middle:output`` has the axes `level` and `middle`.
    """
    return dict(axis.split(":") for axis in company.road.split(","))


class ModelBuilder:
    """Builds models of one node, or of chains of Cast, with an onnx package.

    It writes a model as text, which scripts have too, and has the package parse it. Its methods
    raise Unsupported for a dtype that the package lacks.
    """

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._parse = load("onnx.parser", "onnx").parse_model
        # Copying a model takes a fraction of parsing it, and its opset has one IR version.
        self._parsed = lru_cache(CACHED_GRAPHS)(self._parse)
        self._ir_version = lru_cache(None)(self._oldest_ir_version)

    def road(self, case: Case) -> str:
        """Return the road of a case, the text of its graph.

        Raises Unsupported for a dtype that the onnx package lacks.
        """
        for dtype in (case.source, case.target):
            self.element_type(dtype)
        return cast_graph(case).road

    def element_type(self, dtype: str) -> int:
        """Return the dtype's number in ``TensorProto.DataType``.

        Raises Unsupported if the onnx package has no such dtype.
        """
        name = DTYPES.get(dtype, dtype).upper()
        try:
            return int(self._onnx.TensorProto.DataType.Value(name))
        except ValueError:
            raise Unsupported(f"onnx {self._onnx.__version__} has no dtype {name}") from None

    def with_input(self, graph: Graph, rank: int | None) -> Any:
        """Return a graph's model whose x is an input of that rank or, if None, of any shape."""
        return self._with_like(graph, self._text(graph, rank, has_input=True))

    def with_constant(
        self, graph: Graph, shape: tuple[int, ...], content: bytes | list[bytes]
    ) -> Any:
        """Return the model of a graph whose x is an initializer of this shape.

        ``content`` is a list of encoded texts, or the patterns' raw bytes.
        """
        model = self._with_like(graph, self._text(graph, len(shape), has_input=False))
        model.graph.initializer.append(self.tensor("x", graph.source, shape, content))
        return model

    def _with_like(self, graph: Graph, text: str) -> Any:
        model = self.parsed(text)
        if LIKE in graph.inputs:
            content = _content_of_like(graph)
            model.graph.initializer.append(self.tensor(LIKE, graph.target, (1,), content))
        return model

    def parsed(self, text: str) -> Any:
        """Return a new copy of the model that onnx's parser makes of a text."""
        parsed = self._parsed(text)
        model = type(parsed)()
        model.CopyFrom(parsed)
        return model

    def tensor(
        self, name: str, dtype: str, shape: tuple[int, ...], content: bytes | list[bytes]
    ) -> Any:
        """Return a TensorProto whose ``content`` is encoded texts, or the patterns' raw bytes."""
        # onnx's own `make_tensor` takes most of the time of building a model.
        filled = {"raw_data" if isinstance(content, bytes) else "string_data": content}
        number = self.element_type(dtype)
        return self._onnx.TensorProto(name=name, data_type=number, dims=shape, **filled)

    def statement(self, graph: Graph, rank: int | None, *, has_input: bool = True) -> str:
        """Return the statements that bind a script's ``model``, as ``with_input`` builds it.

        ``rank`` is that of x, or None for any shape. If ``has_input`` is false, the script must add
        x as an initializer.
        """
        text = self._text(graph, rank, has_input=has_input)
        return parse_statement(text) + self._constant_statement(graph)

    def _text(self, graph: Graph, rank: int | None, *, has_input: bool) -> str:
        for dtype in (graph.source, graph.target)[:: 1 if has_input else -1]:
            self.element_type(dtype)
        axes = ", ".join(f"d{axis}" for axis in range(rank or 0))
        shape = "" if rank == 0 else f"[{axes}]"
        x, y = typed(graph.source, shape, "x"), typed(graph.target, shape, graph.output)
        attributes = attributes_text(self._attributes(graph))
        before = f" moved = {graph.neighbor}(x)" if graph.neighbor else ""
        node = f"{before} y = {graph.operator}{attributes}({', '.join(graph.inputs)})"
        return (
            self.head(graph.opset)
            + f"one_node ({x if has_input else ''}) => ({y})\n"
            + f"{{{node if graph.operator else ''} }}"
        )

    def head(self, opset: int) -> str:
        """Return the first line of a model's text, which names the IR version and the opset."""
        return f'<ir_version: {self._ir_version(opset)}, opset_import: ["": {opset}]>\n'

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

    def chains(self, company: Company, axes: Mapping[str, str], bits: Sequence[Bits]) -> Any:
        """Return the model of a company: chain number i leads from ``xi`` to ``yi``.

        ``axes`` are those of its road, as ``axes_of`` returns them. With ``middle:output`` the
        values between casts are outputs, too. With ``input:constant`` the inputs are initializers
        with ``bits``, one array per chain. With ``before:reshape`` a Reshape precedes the first
        cast.
        """
        numbers = [*map(str, range(len(company.chains)))]
        model = self._parse(self._chains_text(company.chains, axes, numbers))
        if axes.get("input") == "constant":
            for number, chain, own in zip(numbers, company.chains, bits, strict=True):
                content = initializer_content(format_named(chain.source), own)
                constant = self.tensor(f"x{number}", chain.source, own.shape, content)
                model.graph.initializer.append(constant)
        return model

    def chain_statement(self, chain: Chain, axes: Mapping[str, str]) -> str:
        """Return the statement that binds a script's ``model`` of one chain from x to y.

        ``axes`` are those of ``chains``. With ``input:constant`` the script must add x as an
        initializer.
        """
        return parse_statement(self._chains_text([chain], axes, [""]))

    def _chains_text(
        self, chains: Sequence[Chain], axes: Mapping[str, str], numbers: Sequence[str]
    ) -> str:
        lines, inputs, outputs = [], [], []
        has_reshape, opset = axes.get("before") == "reshape", cast_graph(chains[0].steps[0]).opset
        for number, chain in zip(numbers, chains, strict=True):
            # Each chain has its own length; onnxruntime relies on equal names for equal sizes.
            shape, at = f"[n{number}]", f"x{number}"
            self.element_type(chain.source)
            if axes.get("input") != "constant":
                inputs.append(typed(chain.source, shape, at))
            if has_reshape:
                lines.append(f"r{number} = Reshape({at}, row)")
                at = f"r{number}"
            for place, step in enumerate(chain.steps, 1):
                is_last = place == len(chain.steps)
                name = f"y{number}" if is_last else f"m{number}_{place}" if number else f"m{place}"
                attributes = attributes_text(self._attributes(cast_graph(step)))
                lines.append(f"{name} = Cast{attributes}({at})")
                if is_last or axes.get("middle") == "output":
                    outputs.append(typed(step.target, shape, name))
                at = name
        constants = "\n<int64[1] row = {-1}>" if has_reshape else ""
        body = "\n  ".join(lines)
        return (
            self.head(opset)
            + f"casts ({', '.join(inputs)}) => ({', '.join(outputs)}){constants} {{\n  {body}\n}}"
        )

    def _oldest_ir_version(self, opset: int) -> int:
        opsets = [self._onnx.helper.make_opsetid("", opset)]
        oldest = int(self._onnx.helper.find_min_ir_version_for(opsets, ignore_unknown=True))
        return max(FIRST_FREE_INITIALIZER, oldest)

    def _attributes(self, graph: Graph) -> dict[str, int | str]:
        """Return all attributes of a graph's node; Cast and BitCast also have `to`."""
        if graph.operator not in ("Cast", "BitCast"):
            return graph.attributes
        is_numbered = graph.opset >= FIRST_NUMBERED
        number = self.element_type(graph.target)
        name = DTYPES.get(graph.target, graph.target).upper()
        return {"to": number if is_numbered else name} | graph.attributes


def _content_of_like(graph: Graph) -> bytes | list[bytes]:
    entry = format_named(graph.target)
    is_text = entry.kind == "text"
    return initializer_content(
        entry, np.array([""], "O") if is_text else np.zeros(1, entry.storage)
    )


def parse_statement(text: str) -> str:
    """Return the statement that binds a script's ``model`` to the model that a text describes."""
    return f'model = onnx.parser.parse_model("""{text}""")\n'
