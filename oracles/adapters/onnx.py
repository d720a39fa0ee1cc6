"""ONNX's ReferenceEvaluator, on models of one node that ``onnx.checker`` has accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oracles.adapters.onnx_backends import BACKEND_ROADS, OnnxBackend
from oracles.adapters.onnx_models import (
    FIRST_NUMBERED,
    LATEST,
    Graph,
    ModelBuilder,
    bitcast_graph,
    cast_graph,
)
from oracles.adapters.onnx_quantize_models import (
    CLAIMS,
    NodeModels,
    OpsetNode,
    Shapes,
    print_patterns,
    quantize_node,
    results,
    shapes_of,
    tensor_statements,
    usual_node,
    without_lengths,
)
from oracles.adapters.refusals import (
    first_line,
    is_lacking,
    load,
    plain_road,
    require_plain,
)
from oracles.adapters.script_text import (
    NUMPY_DTYPES,
    bits_statement,
    mask_expression,
    print_statement,
    print_tensor,
)
from oracles.memory_layouts import is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

if TYPE_CHECKING:
    from oracles.adapters.onnx_carriers import CarrierModels
    from specs.chains import Company

VARIANTS: tuple[str, ...] = ()

OPEN_ROADS = BACKEND_ROADS

CACHED_MODELS = 64

USUAL = 13
"""An opset that every backend should have."""

HEADER = """\
# onnx {version}: {case}
import numpy as np
import onnx.parser
from onnx.reference import ReferenceEvaluator

"""

CHECK = "onnx.checker.check_model(model, full_check=True)\n"
RUN = '(y,) = ReferenceEvaluator(model).run(None, {{"x": {x}}})\n'
CHECK_RESULT = """\
if not isinstance(y, np.ndarray):
    raise TypeError(f"asked for a tensor, got a {{type(y).__name__}}")
"""


def evaluator_run(
    models: ModelBuilder,
    case: Case,
    bits: Bits,
    *,
    is_bitcast: bool = False,
    run: str = RUN,
) -> str:
    """Return the statements that run a script's ``model`` on ``bits`` and print the answers.

    ``models`` finds the numbers of dtypes that numpy lacks. The script also prints shapes with
    ``is_bitcast``, and for ``bits`` that are no row. ``run`` binds y, and has a place for x.
    """
    source, target = format_named(case.source), format_named(case.target)
    x, y, binding = "bits", f'y.view("{target.storage}"){mask_expression(case.target)}', ""
    if target.kind == "text":
        y = "y.tolist()"
    if case.source in NUMPY_DTYPES:
        x += f'.view("{case.source}")'
    elif source.kind != "text":
        number = models.element_type(case.source)
        x, binding = "x", f"x = bits.view(onnx.helper.tensor_dtype_to_np_dtype({number}))\n"
    shown = (
        print_tensor(case.target, y)
        if is_bitcast
        else print_statement(case.source, case.target, bits, y)
    )
    return binding + run.format(x=x) + shown


class Onnx:
    """Casts, bitcasts and quantizes by ONNX's ReferenceEvaluator, on models of one node.

    A backend of ONNX that the variant names casts and bitcasts in its place.
    """

    name = "onnx"
    claims: tuple[str, ...] = (
        "onnx-cast",
        "onnx-cast-like",
        "onnx-bitcast",
        "onnx-carriers",
        *CLAIMS,
    )
    chain_roads: tuple[str, ...] = ("evaluator",)

    def __init__(self, variant: str | None = None) -> None:
        self._onnx: Any = load("onnx", "onnx")
        self._reference: Any = load("onnx.reference", "onnx")
        self.version = str(self._onnx.__version__)
        self._backend = OnnxBackend(variant) if variant is not None else None
        if self._backend is not None:
            self.version += f", {self._backend.version}"
            self.chain_roads, self.claims = (), self.claims[: -len(CLAIMS) - 1]
        self._models = ModelBuilder(self._onnx)
        self._nodes = NodeModels(self._models)
        self._refusal = lru_cache(CACHED_MODELS)(self._check)
        self._node_evaluator = lru_cache(CACHED_MODELS)(self._create_node_evaluator)
        self._carrier_evaluator = lru_cache(CACHED_MODELS)(self._create_carrier)
        self._evaluator_of = lru_cache(CACHED_MODELS)(self._create_evaluator)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by a model of one Cast or CastLike.

        Raises Unsupported for modes that ``require_plain`` refuses, a dtype that onnx lacks or a
        cast that the evaluator lacks, and the checker's error for a model that it refuses.
        """
        require_plain(case, "ONNX's Cast")
        graph = cast_graph(case)
        if self._backend is not None:
            return self._by_backend(graph, bits)
        evaluator = self._evaluator(graph, bits.ndim)
        if graph.opset < FIRST_NUMBERED:
            raise Unsupported("ReferenceEvaluator reads the attribute `to` only as a number")
        try:
            return self._answer(evaluator, graph, bits)
        except TypeError as error:
            if not self._lacks_cast(graph, bits):
                raise
            raise Unsupported(first_line(error.__cause__ or error)) from None

    def _by_backend(self, graph: Graph, bits: Bits) -> Bits:
        """Return the backend's answer; raise Unsupported if it refuses zeros, but no usual ones.

        Raises the checker's error for a model that it refuses.
        """
        self._require_accepted(graph, bits.ndim)
        try:
            return self._answer(self._evaluator(graph, bits.ndim), graph, bits)
        except Exception as error:
            usual = Graph(USUAL, "float32", "float16", "Cast")
            calls = (partial(self._answer_to_zeros, each) for each in (graph, usual))
            if not is_lacking((Exception,), *calls):
                raise
            raise Unsupported(first_line(error)) from None

    def _answer_to_zeros(self, graph: Graph) -> Bits:
        entry = format_named(graph.source)
        zeros = np.array(["0"], object) if entry.kind == "text" else np.zeros(1, entry.storage)
        return self._answer(self._evaluator(graph, 1), graph, zeros)

    def _lacks_cast(self, graph: Graph, bits: Bits) -> bool:
        """Return whether numpy, by which the evaluator casts, has no such cast.

        Where the evaluator refuses zeros of float32, too, the operator is at fault.
        """
        usual = replace(graph, source="float32")
        zeros = np.zeros(bits.shape, np.uint32)
        return is_lacking(
            (TypeError,),
            partial(self._cast_by_numpy, graph.source, graph.target),
            lambda: self._answer(self._evaluator(usual, bits.ndim), usual, zeros),
        )

    def _cast_by_numpy(self, source: str, target: str) -> None:
        is_text = format_named(source).kind == "text"
        zeros = np.array(["0"], object) if is_text else np.zeros(1, self._dtype(source))
        to_text = format_named(target).kind == "text"
        zeros.astype(np.str_ if to_text else self._dtype(target))

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return, by name, the results of a model of one node that quantizes or dequantizes.

        Raises Unsupported if ONNX has no node for the case, onnx no such dtype or the evaluator no
        such operator, and the checker's error for a model that it refuses.
        """
        if self._backend is not None:
            raise Unsupported(f"onnx:backend={self._backend.name} casts and bitcasts alone")
        node, tensors = quantize_node(case, tensors)
        shapes = without_lengths(node, shapes_of(node, tensors))
        evaluator = self._node_evaluator(node, shapes)
        if isinstance(evaluator, Exception):
            raise evaluator.with_traceback(None)
        given = {name: tensors[name].view(self._dtype(dtype)) for name, dtype in node.inputs}
        with np.errstate(all="ignore"):
            found = evaluator.run(None, given)
        answers = zip(node.outputs, found, strict=True)
        return {name: self._codes(dtype, y).copy() for (name, dtype), y in answers}

    @cached_property
    def _carriers(self) -> CarrierModels:
        from oracles.adapters.onnx_carriers import CarrierModels  # Casts need none.

        return CarrierModels(self._models)

    def carry(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits``, a row, after the operators of the carrier that a case names.

        Raises Unsupported for a carrier or a dtype that ONNX lacks, the checker's error for a model
        that it refuses, and TypeError for a result that is no tensor of the target.
        """
        if self._backend is not None:
            raise Unsupported(f"onnx:backend={self._backend.name} casts and bitcasts alone")
        x = bits.view(self._dtype(case.source))
        with np.errstate(all="ignore"):
            (y,) = self._carrier_evaluator(case).run(None, {"x": x})
        if not isinstance(y, np.ndarray):
            raise TypeError(f"asked for a tensor, got a {type(y).__name__}")
        return self._codes(case.target, y).copy()

    def _create_carrier(self, case: Case) -> Any:
        model = self._carriers.with_input(case)
        self._onnx.checker.check_model(model, full_check=True)
        return self._reference.ReferenceEvaluator(model)

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the result of each chain of a company, all computed by one model.

        ``bits`` has the input of each chain under its index, as text. Raises Unsupported for modes
        that ``require_plain`` refuses, an opset before 6 or a dtype that onnx lacks, and the
        checker's error for a model that it refuses.
        """
        chains = company.chains
        for step in (step for chain in chains for step in chain.steps):
            require_plain(step, "ONNX's Cast")
        if cast_graph(chains[0].steps[0]).opset < FIRST_NUMBERED:
            raise Unsupported("ReferenceEvaluator reads the attribute `to` only as a number")
        model = self._models.chains(company, {}, [])
        self._onnx.checker.check_model(model, full_check=True)
        given = {
            f"x{number}": own.view(self._dtype(chain.source))
            for number, (chain, own) in enumerate(zip(chains, company.inputs(bits), strict=True))
        }
        with np.errstate(all="ignore"):
            ends = self._reference.ReferenceEvaluator(model).run(None, given)
        found = zip(chains, ends, strict=True)
        return [self._codes(chain.target, end).copy() for chain, end in found]

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by a model of one BitCast, which keeps the shape.

        Raises Unsupported for modes that ``require_plain`` refuses or a dtype that onnx lacks, and
        the checker's error for a model that it refuses.
        """
        require_plain(case, "ONNX's BitCast")
        graph = bitcast_graph(case)
        if self._backend is not None:
            return self._by_backend(graph, bits)
        return self._answer(self._evaluator(graph, bits.ndim), graph, bits).copy()

    def bitcast_road(self, case: Case) -> str:
        """Return the pair of dtypes as text; raise Unsupported as ``require_plain`` does."""
        return plain_road(case, "ONNX's BitCast")

    def road(self, case: Case) -> str:
        """Return, as text, what a case's model depends on: opset, dtypes and parameters.

        For CastLike the text names the operator, too. Raises Unsupported for modes that
        ``require_plain`` refuses, or a dtype that onnx lacks.
        """
        require_plain(case, "ONNX's Cast")
        return self._models.road(case)

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that runs the evaluator on ``bits`` in their own memory.

        Raises the errors of ``cast``.
        """
        self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
        if self._backend is not None:
            return partial(self.cast, case, bits)
        graph = cast_graph(case)
        x = bits.view(self._dtype(graph.source))
        return partial(self._run, self._evaluator(graph, bits.ndim), graph, x)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a model of one Identity.

        Raises Unsupported for a dtype that onnx lacks or its checker refuses.
        """
        graph = Graph(LATEST, dtype, dtype, "Identity")
        try:
            evaluator = self._evaluator(graph, bits.ndim)
        except self._onnx.shape_inference.InferenceError as error:
            raise Unsupported(first_line(error)) from None
        if self._backend is not None:
            return self._by_backend(graph, bits)
        return self._answer(evaluator, graph, bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script of the case on the evaluator; raise Unsupported for a missing dtype."""
        return self._script(case, cast_graph(case), bits)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that does the bitcast on the evaluator.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that onnx lacks.
        """
        require_plain(case, "ONNX's BitCast")
        return self._script(case, bitcast_graph(case), bits)

    def reproduce_carry(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that carries ``bits``; raise Unsupported as ``carry``."""
        return (
            HEADER.format(version=self.version, case=case)
            + f"{bits_statement(case.source, bits)}\n"
            + self._carriers.statement(case, None)
            + CHECK
            + evaluator_run(self._models, case, bits, run=RUN + CHECK_RESULT)
        )

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that runs the only chain of a company on the evaluator."""
        [chain], [own] = company.chains, [*bits.values()]
        return (
            HEADER.format(version=self.version, case=chain.id)
            + f"{bits_statement(chain.source, own)}\n"
            + self._models.chain_statement(chain, {})
            + CHECK
            + evaluator_run(self._models, replace(case, target=chain.target), own)
        )

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Return a self-contained script that runs the case's node on the evaluator.

        Raises Unsupported if ONNX has no node for the case, or onnx no such dtype.
        """
        node, tensors = quantize_node(case, tensors)
        given = ", ".join(
            f'"{name}": {name}.view(dtype({self._models.element_type(dtype)}))'
            for name, dtype in node.inputs
        )
        script = (
            HEADER.format(version=self.version, case=case)
            + tensor_statements(node, tensors, lambda _, bits: bits)
            + self._nodes.statement(node, without_lengths(node, shapes_of(node, tensors)))
            + CHECK
            + "dtype = onnx.helper.tensor_dtype_to_np_dtype\n"
            + f"{results(node)} = ReferenceEvaluator(model).run(None, {{{given}}})\n"
        )
        for name, dtype in node.outputs:
            patterns = f'{name}.view("{format_named(dtype).storage}")'
            masked = f"({patterns}{mask_expression(dtype)})" if mask_expression(dtype) else patterns
            script += print_patterns(name, masked)
        return script

    def _script(self, case: Case, graph: Graph, bits: Bits) -> str:
        header, run = HEADER, RUN
        if self._backend is not None:
            header, run = self._backend.header, self._backend.run_text
        return (
            header.format(version=self.version, case=case)
            + f"{bits_statement(case.source, bits)}\n"
            + self._models.statement(graph, bits.ndim)
            + CHECK
            + evaluator_run(
                self._models, case, bits, is_bitcast=graph.operator == "BitCast", run=run
            )
        )

    def _evaluator(self, graph: Graph, rank: int) -> Any:
        """Return a graph's evaluator; raise the error that ``_check`` returns, if any.

        ``rank`` is that of the input: the checker needs a shape.
        """
        self._require_accepted(graph, rank)
        return self._evaluator_of(graph, None if self._backend is None else rank)

    def _require_accepted(self, graph: Graph, rank: int) -> None:
        refusal = self._refusal(graph, rank)
        if refusal is not None:
            raise refusal.with_traceback(None)

    def _create_node_evaluator(self, node: OpsetNode, shapes: Shapes) -> Any:
        """Return a node's evaluator, or the error with which its model is refused.

        It is Unsupported if the evaluator lacks the operator in this version.

        The error is returned, so that it is cached with the evaluators.
        """
        try:
            return self._create_plainly(node, shapes)
        except RuntimeError as refusal:
            return Unsupported(first_line(refusal)) if self._lacks_operator(node) else refusal
        except Exception as refusal:
            return refusal

    def _create_plainly(self, node: OpsetNode, shapes: Shapes) -> Any:
        model = self._nodes.model(node, shapes, {})
        self._onnx.checker.check_model(model, full_check=True)
        return self._reference.ReferenceEvaluator(model)

    def _lacks_operator(self, node: OpsetNode) -> bool:
        """Return whether the evaluator lacks an opset's version of an operator."""
        here, latest = usual_node(node), usual_node(replace(node, opset=LATEST))
        create = (partial(self._create_plainly, *each) for each in (here, latest))
        return is_lacking((RuntimeError,), *create)

    def _check(self, graph: Graph, rank: int) -> Exception | None:
        """Return the error of building or checking a graph's model, or None."""
        try:
            # The checker needs a shape, so each rank has its own model.
            model = self._models.with_input(graph, rank)
            self._onnx.checker.check_model(model, full_check=True)
        except Exception as refusal:
            return refusal
        return None

    def _create_evaluator(self, graph: Graph, rank: int | None) -> Any:
        model = self._models.with_input(graph, rank)
        if self._backend is not None:
            return self._backend.evaluator(model)
        return self._reference.ReferenceEvaluator(model)

    def _answer(self, evaluator: Any, graph: Graph, bits: Bits) -> Bits:
        text = format_named(graph.source).kind == "text"
        x = bits if text else bits.view(self._dtype(graph.source))
        return self._run(evaluator, graph, x)

    def _run(self, evaluator: Any, graph: Graph, x: Bits) -> Bits:
        target = format_named(graph.target)
        with np.errstate(all="ignore"):
            (y,) = evaluator.run(None, {"x": x})
        if target.kind == "text":
            return np.asarray(y, dtype=object)
        return self._codes(graph.target, y)

    def _codes(self, dtype: str, y: Any) -> Bits:
        target = format_named(dtype)
        if y.dtype != self._dtype(dtype):
            raise TypeError(f"asked for {dtype}, got {y.dtype}")
        codes: Bits = y.view(target.storage)
        # numpy returns a scalar for a tensor of rank 0.
        return np.asarray(codes & np.uint8(target.mask)) if is_packed(target) else codes

    @cache  # noqa: B019 (a process has one adapter)
    def _dtype(self, dtype: str) -> Any:
        return self._onnx.helper.tensor_dtype_to_np_dtype(self._models.element_type(dtype))
