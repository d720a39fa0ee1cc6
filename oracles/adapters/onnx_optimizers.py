"""Optimizers of ONNX models; the reference executes the casts that they leave.

So a wrong answer is the fault of a rewrite, never of a runtime's kernel. There is no road for
constants: an optimizer folds them by the kernels of a runtime, which is a backend of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from oracles.adapters.onnx_models import (
    DTYPES,
    FIRST_NUMBERED,
    Graph,
    ModelBuilder,
    axes_of,
    cast_graph,
)
from oracles.adapters.ort import LEVELS, Ort
from oracles.adapters.refusals import load, require_plain, require_variant
from oracles.protocol import Bits, Unsupported
from oracles.reference.chain_ends import ends
from oracles.reference.reference_oracle import Casts
from specs.cases import Case
from specs.formats import format_named
from specs.loader import document_named
from specs.ruling import ruling
from specs.selection import cases_of_pair

if TYPE_CHECKING:
    from specs.chains import Company

DOCUMENT = "onnx-cast"
MOVES = frozenset({"Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten"})
"""Operators that keep every bit of their first input; all tensors here are rows."""
LONG_NAMES = {short.upper(): name for name, short in DTYPES.items()}


class Path(NamedTuple):
    """How a graph computes a value: the input's name, the casts in order, and the value's dtype."""

    source: str
    casts: tuple[Case, ...]
    dtype: str


class GraphCasts:
    """Finds the casts that compute each output of an optimized model, and executes them."""

    def __init__(self, onnx: Any, reference: Casts) -> None:
        self._onnx = onnx
        self._reference = reference

    def run(self, model: Any, given: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return the patterns of each output by name.

        ``given`` has the patterns of the inputs by name. Raises the errors of ``paths``.
        """
        found: dict[str, Bits] = {}
        for name, path in self.paths(model).items():
            bits = given[path.source]
            for case in path.casts:
                bits = self._reference.cast(case, bits)
            found[name] = bits
        return found

    def paths(self, model: Any) -> dict[str, Path]:
        """Return, by the name of each output, from which input and by which casts it is computed.

        Raises Unsupported for a node that is no Cast, no Constant and not among ``MOVES``, and
        TypeError for an output of another dtype than the graph declares.
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
        """Return the case of a Cast node, whose input has the dtype ``source``.

        An attribute that the node lacks has its value in the first of the pair's cases.
        """
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
    """Return the newest version of ``DOCUMENT`` that is not above a model's opset."""
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    versions = document_named(DOCUMENT).entry.versions
    return max((each for each in versions if int(each) <= opset), key=int)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


VARIANTS: tuple[str, ...] = ()
CACHED_MODELS = 64
DEFAULT = "default"
"""The level of an optimizer that is called without options."""

HEADER = """\
# {name} {version}: {asked}
import onnx
{imports}
"""
SHOW = """\
print(onnx.printer.to_text({left}.graph))
# Of {given} the casts of the model make {right}, and those that are left {answer}.
"""
OFFLINE = """\
options = ort.SessionOptions()
{level}options.optimized_model_filepath = "optimized.onnx"
ort.InferenceSession(model.SerializeToString(), options)
"""
LEVEL = "options.graph_optimization_level = ort.GraphOptimizationLevel.{}\n"

Optimize = Callable[[Any, str], Any]
"""Optimizes a model at a level, perhaps in place, and returns the optimized one."""


@dataclass(frozen=True)
class Rewriter:
    """An optimizer: its package, how it is loaded, and how a script calls it.

    ``start`` imports the package, and returns the function that optimizes. In a script the
    expression ``left``, after ``statements``, is the optimized ``model``; ``statements`` may have a
    place for a ``level``. ``extra`` is the extra of Castigate that installs the package, and
    ``name`` the backend's if it is another than the package's.
    """

    package: str
    start: Callable[[], Optimize]
    imports: str
    left: str
    statements: str = ""
    extra: str = "optimizers"
    levels: tuple[str, ...] = (DEFAULT,)
    """The levels of optimization; the first is the default."""
    name: str = ""

    @property
    def roads(self) -> tuple[str, ...]:
        """The roads of chains: the first level, two variations of its models, and the other levels.

        The variations may change which casts are removed.
        """
        first, *others = (f"level:{each}" for each in self.levels)
        return first, f"{first},middle:output", f"{first},before:reshape", *others


def _onnxoptimizer() -> Optimize:
    optimizer = load("onnxoptimizer", "optimizers")
    return lambda model, level: optimizer.optimize(model)


def _onnxslim() -> Optimize:
    slimmer = load("onnxslim", "optimizers")
    return lambda model, level: slimmer.slim(model)


def _onnxsim() -> Optimize:
    simplifier = load("onnxsim", "optimizers")
    return lambda model, level: simplifier.simplify(model)[0]


def _onnxscript() -> Optimize:
    optimizer = load("onnxscript.optimizer", "optimizers")
    return lambda model, level: optimizer.optimize(model)


REWRITERS = (
    Rewriter(
        "onnxoptimizer",
        _onnxoptimizer,
        "import onnxoptimizer\n",
        "onnxoptimizer.optimize(model)",
    ),
    Rewriter("onnxslim", _onnxslim, "import onnxslim\n", "onnxslim.slim(model)"),
    Rewriter("onnxsim", _onnxsim, "import onnxsim\n", "onnxsim.simplify(model)[0]"),
    Rewriter(
        "onnxscript",
        _onnxscript,
        "import onnxscript.optimizer\n",
        "onnxscript.optimizer.optimize(model)",
    ),
    Rewriter(
        "onnxruntime",
        lambda: Ort().optimized,
        "import onnxruntime as ort\n",
        'onnx.load("optimized.onnx")',
        OFFLINE,
        "ort",
        tuple(LEVELS),
        "ort_offline",
    ),
)


class OnnxOptimizer:
    """Answers cases with the casts that an optimizer leaves, executed by the reference."""

    claims: tuple[str, ...] = ("onnx-cast",)

    def __init__(self, rewriter: Rewriter, variant: str | None = None) -> None:
        self._rewrite = rewriter.start()
        self._onnx: Any = load("onnx", rewriter.extra)
        self.name = rewriter.name or rewriter.package
        require_variant(self.name, variant, VARIANTS)
        self._rewriter = rewriter
        self.version = version(rewriter.package)
        self.chain_roads = rewriter.roads
        self._models = ModelBuilder(self._onnx)
        self._reference = Casts()
        self._casts = GraphCasts(self._onnx, self._reference)
        self._optimized = lru_cache(CACHED_MODELS)(self._optimize_cast)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` after the casts that the optimizer leaves of a model of one Cast.

        Raises Unsupported for modes that ``require_plain`` refuses, a dtype that onnx lacks, an
        opset before 6, or a model whose casts cannot be found, and TypeError if these give another
        dtype than the target.
        """
        require_plain(case, "ONNX's Cast")
        return self._casts.run(self._optimized(cast_graph(case), bits.ndim), {"x": bits})["y"]

    def road(self, case: Case) -> str:
        """Return, as text, what a case's model depends on: opset, dtypes and parameters.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that onnx lacks.
        """
        require_plain(case, "ONNX's Cast")
        return self._models.road(case)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return a copy of the bits: the reference has no tensors to move them through."""
        return self._reference.identity(dtype, bits)

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the result of each chain of a company, whose common model is optimized first.

        ``bits`` has the input of each chain under its index, as text. The reference executes the
        casts that are left. Raises the errors of ``GraphCasts.paths``.
        """
        axes = axes_of(company)
        inputs = company.inputs(bits)
        model = self._rewritten(self._models.chains(company, axes, inputs), axes["level"])
        given = {f"x{number}": own for number, own in enumerate(inputs)}
        found = self._casts.run(model, given)
        return [found[f"y{number}"] for number in range(len(inputs))]

    def left(self, company: Company) -> list[tuple[Case, ...]]:
        """Return, for each chain of a company, the casts that the optimizer leaves of it."""
        axes = axes_of(company)
        model = self._models.chains(company, axes, [])
        paths = self._casts.paths(self._rewritten(model, axes["level"]))
        return [paths[f"y{number}"].casts for number in range(len(company.chains))]

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a script that prints the optimized model of a company's only chain.

        A comment has the answers to the first input: the script runs no kernel, as most are wrong
        in some casts themselves.
        """
        [chain], [own], axes = company.chains, [*bits.values()], axes_of(company)
        source, target = format_named(chain.source), format_named(chain.target)
        rewriter, level = self._rewriter, axes["level"]
        is_default = level == rewriter.levels[0]
        right = own
        for step in chain.steps:
            right = self._reference.cast(step, right)
        [answer], [left] = self.chains(case, company, bits), self.left(company)
        is_open = bool(left) and ends([*map(ruling, left)], int(own[0])).is_open
        return (
            HEADER.format(
                name=rewriter.package,
                version=self.version,
                asked=f"{chain.id} on {company.road}",
                imports=rewriter.imports,
            )
            + self._models.chain_statement(chain, axes)
            + rewriter.statements.format(level="" if is_default else LEVEL.format(LEVELS[level]))
            + SHOW.format(
                left=rewriter.left,
                given=source.hexadecimal(own[0]),
                right=target.hexadecimal(right[0]),
                answer="may make anything" if is_open else target.hexadecimal(answer[0]),
            )
        )

    def _optimize_cast(self, graph: Graph, rank: int) -> Any:
        if graph.opset < FIRST_NUMBERED:
            raise Unsupported("optimizers read the attribute `to` only as a number")
        # onnxsim wants a shape, so each rank has its own model.
        return self._rewritten(self._models.with_input(graph, rank), self._rewriter.levels[0])

    def _rewritten(self, model: Any, level: str) -> Any:
        # Some optimizers change the model that they are given.
        copy = type(model)()
        copy.CopyFrom(model)
        return self._rewrite(copy, level)


Onnxoptimizer, Onnxslim, Onnxsim, Onnxscript, OrtOffline = (
    partial(OnnxOptimizer, each) for each in REWRITERS
)
