"""Optimizers of ONNX models; the reference executes the casts that they leave.

So a wrong answer is the fault of a rewrite, never of a runtime's kernel. There is no road for
constants: an optimizer folds them by the kernels of a runtime, which is a backend of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

from oracles.adapters.onnx_graph_casts import GraphCasts
from oracles.adapters.onnx_models import FIRST_NUMBERED, Graph, ModelBuilder, axes_of, cast_graph
from oracles.adapters.ort import LEVELS, Ort
from oracles.adapters.refusals import load, require_plain, require_variant
from oracles.protocol import Bits, Unsupported
from oracles.reference.chain_ends import ends
from oracles.reference.reference_oracle import Casts
from specs.cases import Case
from specs.chains import Company
from specs.formats import format_named
from specs.ruling import ruling

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

Rewrite = Callable[[Any, str], Any]
"""Optimizes a model at a level, and returns the optimized one."""


@dataclass(frozen=True)
class Rewriter:
    """An optimizer: its package, how it is loaded, and how a script calls it.

    In a script the expression ``left``, after ``statements``, is the optimized ``model``.
    """

    package: str
    start: Callable[[], Rewrite]
    imports: str
    left: str
    statements: str = ""
    extra: str = "optimizers"
    levels: tuple[str, ...] = (DEFAULT,)
    """The levels of optimization; the first is the default."""
    name: str = ""

    @property
    def roads(self) -> tuple[str, ...]:
        """Each level, and variations of the first that may change which casts are removed."""
        first, *others = (f"level:{each}" for each in self.levels)
        return first, f"{first},middle:output", f"{first},before:reshape", *others


def _onnxoptimizer() -> Rewrite:
    optimizer = load("onnxoptimizer", "optimizers")
    return lambda model, level: optimizer.optimize(model)


def _onnxslim() -> Rewrite:
    slimmer = load("onnxslim", "optimizers")
    return lambda model, level: slimmer.slim(model)


def _onnxsim() -> Rewrite:
    simplifier = load("onnxsim", "optimizers")
    return lambda model, level: simplifier.simplify(model)[0]


def _onnxscript() -> Rewrite:
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
    """An optimizer in front of the reference."""

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
        """Answer a case with the casts that the optimizer leaves of a model of one Cast."""
        require_plain(case, "ONNX's Cast")
        return self._casts.run(self._optimized(cast_graph(case), bits.ndim), {"x": bits})["y"]

    def road(self, case: Case) -> str:
        """Return the opset, the dtypes and the parameters of the model of a case."""
        require_plain(case, "ONNX's Cast")
        return self._models.road(case)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Copy the bits: the reference has no tensors to move them through."""
        return self._reference.identity(dtype, bits)

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Answer chains with the casts that the optimizer leaves of one model of them all."""
        axes = axes_of(company)
        inputs = [bits[str(number)] for number in range(len(company.chains))]
        model = self._rewritten(self._models.chains(company, axes, inputs), axes["level"])
        given = {f"x{number}": own for number, own in enumerate(inputs)}
        found = self._casts.run(model, given)
        return [found[f"y{number}"] for number in range(len(inputs))]

    def left(self, company: Company) -> list[tuple[Case, ...]]:
        """Return the casts that the optimizer leaves of each chain of a company."""
        axes = axes_of(company)
        model = self._models.chains(company, axes, [])
        paths = self._casts.paths(self._rewritten(model, axes["level"]))
        return [paths[f"y{number}"].casts for number in range(len(company.chains))]

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a script that prints the optimized model of a chain; a comment has the answers.

        The script runs no kernel: most kernels are wrong in some casts themselves.
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
