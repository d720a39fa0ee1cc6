"""onnxruntime: one node, such as a Cast, in a session of its own, at the opset of a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from oracles.adapters import ort_scripts
from oracles.adapters.onnx_models import (
    LATEST,
    Graph,
    ModelBuilder,
    axes_of,
    bitcast_graph,
    cast_graph,
)
from oracles.adapters.onnx_quantize_models import (
    CLAIMS,
    NodeModels,
    OpsetNode,
    initializers,
    quantize_node,
    tensor_statements,
)
from oracles.adapters.refusals import (
    first_line,
    is_lacking,
    load,
    plain_road,
    require_plain,
    wants_error,
)
from oracles.adapters.script_text import (
    NUMPY_DTYPES,
    bits_statement,
)
from oracles.adapters.tensor_memory import (
    initializer_content,
    ort_value_buffer,
    patterns_in,
    patterns_of_ort_value,
    tensor_content,
    tensor_memory,
)
from oracles.memory_layouts import in_huge_pages, is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

if TYPE_CHECKING:
    from oracles.adapters.onnx_carriers import CarrierModels
    from oracles.adapters.ort_providers import Provider
    from specs.chains import Company

OPTIMIZED: Mapping[str, str] = {"basic": "basic", "extended": "extended", "optimized": "all"}
"""The variants that optimize graphs, each with its key in ``LEVELS``."""
VARIANTS: tuple[str, ...] = ("folded", *OPTIMIZED, "threads", "cpu", "cuda")
OPEN_ROADS: Mapping[str, str] = {
    "EP[,KEY=VALUE…]": "an execution provider of the installed onnxruntime, with its options",
    "ep=PATH[,name=EP][,device=gpu][,KEY=VALUE…]": "a provider in the library of a plug-in",
}
NEIGHBOR = "Identity"
"""Precedes a node that a provider does not take alone."""

LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "disabled": "ORT_DISABLE_ALL",
}
"""The levels of graph optimization, as roads of chains name them; the first is the default."""
CHAIN_ROADS = (
    "level:all",
    "level:all,middle:output",
    "level:all,input:constant",
    "level:all,before:reshape",
    "level:extended",
    "level:basic",
    "level:disabled",
    "level:disabled,middle:output",
    "level:disabled,before:reshape",
)
CACHED_SESSIONS = 1 << 10
"""Enough for the steps of all chains, which each pair of dtypes uses again. They take 30 MiB."""
ONLY_FATAL = 4


class Ort:
    """Casts, bitcasts, quantizes and carries, each by a model in a session of onnxruntime.

    In the variant `folded` the node has constant inputs, and onnxruntime folds it when it loads the
    model. Graphs are optimized in `basic`, `extended` and `optimized` alone: onnxruntime's default
    is the last. `threads` uses its default number of threads; all others use one. The other
    roads name an execution provider, by default the CPU's. On those no node may run on the CPU: a
    case whose node a provider leaves to the CPU, alone and after an Identity, is Unsupported.
    """

    name = "ort"
    claims: tuple[str, ...] = (
        "onnx-cast",
        "onnx-cast-like",
        "onnx-bitcast",
        "onnx-carriers",
        *CLAIMS,
    )

    def __init__(self, variant: str | None = None) -> None:
        self._ort: Any = load("onnxruntime", "ort")
        self._states: Any = load("onnxruntime.capi.onnxruntime_pybind11_state", "ort")
        self._refusal_classes = (
            self._states.NotImplemented,
            self._states.Fail,
            self._states.InvalidGraph,
            self._states.InvalidArgument,
        )
        self._onnx: Any = load("onnx", "ort")
        self.version = str(self._ort.__version__)
        self._models = ModelBuilder(self._onnx)
        self._nodes = NodeModels(self._models)
        self._folded = self.compiles_shapes = variant == "folded"
        self._level = OPTIMIZED.get(variant or "", "disabled")
        self._threads = 0 if variant == "threads" else 1
        self._provider = None if variant is None else self._provider_of(variant)
        self.chain_roads = () if self._folded or variant in OPTIMIZED else CHAIN_ROADS
        self._session_or_refusal = lru_cache(CACHED_SESSIONS)(self._try_session)
        self._session_of_node = lru_cache(CACHED_SESSIONS)(self._try_node)
        self._session_of_carrier = lru_cache(CACHED_SESSIONS)(self._try_carrier)
        if self._provider is not None:
            self.version = self._provider.version
            self._open_first(variant)

    def _provider_of(self, variant: str) -> Provider | None:
        from oracles.adapters.ort_providers import provider_of  # plain casts do without it

        return provider_of(self._ort, variant, VARIANTS)

    def _open_first(self, variant: str | None) -> None:
        """Raise Unsupported if no session can be opened on the provider."""
        try:
            self._session(Graph(LATEST, "float32", "float32", operator=None), rank=1)
        except Unsupported:
            raise
        except Exception as error:
            raise Unsupported(f"onnxruntime opens no session: {first_line(error)}") from None

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by a model of one Cast or CastLike.

        Raises Unsupported for modes that ``require_plain`` refuses, for a dtype that onnx lacks or
        a missing kernel and, in `folded`, for a node that is not folded. Other errors of
        onnxruntime are raised unchanged.
        """
        require_plain(case, "onnxruntime's Cast")
        graph = cast_graph(case)
        with self._refusals(graph.opset, (case.source, case.target), lambda: wants_error(case)):
            return self._answer(graph, bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by a model of one BitCast, which keeps the shape.

        Raises Unsupported for modes that ``require_plain`` refuses, a kernel or a tensor's dtype
        that onnxruntime lacks and, in `folded`, for a node that is not folded.
        """
        require_plain(case, "onnxruntime's BitCast")
        graph, ends = bitcast_graph(case), (case.source, case.target)
        with self._refusals(graph.opset, ends, lambda: not _are_equally_wide(*ends)):
            return self._answer(graph, bits)

    def bitcast_road(self, case: Case) -> str:
        """Return the pair of dtypes as text; raise Unsupported as ``require_plain`` does."""
        return plain_road(case, "onnxruntime's BitCast")

    def road(self, case: Case) -> str:
        """Return, as text, what a case's model depends on: opset, dtypes and parameters.

        For CastLike the text names the operator, too. Raises Unsupported for modes that
        ``require_plain`` refuses, or a dtype that onnx lacks.
        """
        require_plain(case, "onnxruntime's Cast")
        return self._models.road(case)

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return, by name, the results of a model of one node that quantizes or dequantizes.

        Raises Unsupported if ONNX has no node for the case, if onnxruntime lacks the kernel or, in
        `folded`, if it does not fold the node.
        """
        node, tensors = quantize_node(case, tensors)
        with self._refusals(node.opset):
            session = self._node_session(node, tensors)
            binding = session.io_binding()
            for name, dtype in () if self._folded else node.inputs:
                binding.bind_ortvalue_input(name, self._ort_value(dtype, tensors[name]))
            for name, _ in node.outputs:
                binding.bind_output(name)
            session.run_with_iobinding(binding)
            found = zip(node.outputs, binding.get_outputs(), strict=True)
            return {
                name: patterns_of_ort_value(format_named(dtype), value)
                for (name, dtype), value in found
            }

    @cached_property
    def _carriers(self) -> CarrierModels:
        from oracles.adapters.onnx_carriers import CarrierModels  # Casts need none.

        return CarrierModels(self._models)

    def carry(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits``, a row, after the operators of the carrier that a case names.

        Raises Unsupported for a carrier or a dtype that ONNX lacks, a missing kernel and, in
        `folded`, for operators that are not folded.
        """
        with self._refusals(LATEST, (case.source, case.target)):
            if self._folded:
                content = initializer_content(format_named(case.source), bits)
                model = self._carriers.with_constant(case, bits, content)
                return self._bound(self._open_folded(model, "carrier"), None, "y", case.target)
            try:
                return self._carried(case, bits)
            except RuntimeError as error:
                # Some kernels refuse dtypes only when they run.
                usual = replace(case, source="float32", target="float32")
                calls = (partial(self._carry_zero, each) for each in (case, usual))
                if not is_lacking((RuntimeError,), *calls):
                    raise
                raise Unsupported(first_line(error)) from None

    def _carried(self, case: Case, bits: Bits) -> Bits:
        session = _raised(self._session_of_carrier(case))
        return self._bound(session, self._ort_value(case.source, bits), "y", case.target)

    def _carry_zero(self, case: Case) -> None:
        self._carried(case, np.zeros(1, format_named(case.source).storage))

    def _try_carrier(self, case: Case) -> Any:
        return self._opened_or_refused(self._carriers.with_input(case))

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the result of each chain of a company, all computed by one model.

        ``bits`` has the input of each chain under its index, as text. The road is the level of
        optimization and other properties of the model. Raises Unsupported if onnxruntime lacks a
        kernel.
        """
        axes = axes_of(company)
        inputs = company.inputs(bits)
        with self._refusals(LATEST):
            model = self._models.chains(company, axes, inputs)
            session = self._open(model, self._options(axes["level"]))
            binding = session.io_binding()
            for number, (chain, own) in enumerate(zip(company.chains, inputs, strict=True)):
                if axes.get("input") != "constant":
                    binding.bind_ortvalue_input(f"x{number}", self._ort_value(chain.source, own))
                binding.bind_output(f"y{number}")
            session.run_with_iobinding(binding)
            ends = zip(company.chains, binding.get_outputs(), strict=True)
            return [patterns_of_ort_value(format_named(chain.target), end) for chain, end in ends]

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that runs the only chain of a company on onnxruntime."""
        [chain], [own], axes = company.chains, [*bits.values()], axes_of(company)
        number, is_constant = self._models.element_type(chain.source), axes.get("input") is not None
        ends = replace(case, target=chain.target)
        # The first level is onnxruntime's own default.
        level = None if axes["level"] == next(iter(LEVELS)) else LEVELS[axes["level"]]
        outputs = '["y"]' if "middle" in axes else "None"
        return (
            ort_scripts.header(self._heading(f"{chain.id} on {company.road}"), chain.target)
            + f"{bits_statement(chain.source, own)}\n"
            + self._models.chain_statement(chain, axes)
            + (ort_scripts.initializer(chain.source, number, own) if is_constant else "")
            + self._session_statements(level)
            + ort_scripts.run(ends, number, own, outputs, is_constant=is_constant)
        )

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that reads the memory of ``bits`` and writes into memory that calls reuse.

        Where onnxruntime cannot do so, as for texts or on a GPU, it is a call of ``cast`` instead.
        Raises Unsupported as ``cast`` does.
        """
        self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
        if not self._can_bind(case, bits):
            return partial(self.cast, case, bits)
        target, count = format_named(case.target), len(bits)
        session = self._session(cast_graph(case))
        memory = tensor_memory(target, count, in_huge_pages)
        binding = session.io_binding()
        for bind, name, dtype, array in (
            (binding.bind_input, "x", case.source, bits),
            (binding.bind_output, "y", case.target, memory),
        ):
            bind(name, "cpu", 0, self._models.element_type(dtype), [count], array.ctypes.data)

        answer = None if is_packed(target) else patterns_in(memory, target, count)

        # onnxruntime holds only addresses, so the call itself keeps ``bits`` alive.
        def call(_alive: Bits = bits) -> Bits:
            # Passing run options, even the defaults, would raise a call from 2 µs to 25 µs.
            session.run_with_iobinding(binding)
            return patterns_in(memory, target, count) if answer is None else answer

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a model without nodes, whose output is its input.

        Raises Unsupported if onnxruntime refuses a tensor of the dtype.
        """
        try:
            return self._answer(Graph(LATEST, dtype, dtype, operator=None), bits)
        except (self._states.Fail, self._states.InvalidArgument) as error:
            raise Unsupported(first_line(error)) from None

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script of the case on onnxruntime; raise Unsupported for a missing dtype."""
        return self._script(case, cast_graph(case), bits)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that does the bitcast on onnxruntime.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that onnx lacks.
        """
        require_plain(case, "onnxruntime's BitCast")
        return self._script(case, bitcast_graph(case), bits)

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Return a self-contained script that runs the case's node on onnxruntime.

        Raises Unsupported if ONNX has no node for the case.
        """
        node, tensors = quantize_node(case, tensors)
        number_of = self._models.element_type
        names = [name for name, _ in node.inputs] if self._folded else []
        memory = tensor_content if self._folded else ort_value_buffer
        return (
            ort_scripts.header(self._heading(str(case)), case.target)
            + tensor_statements(node, tensors, memory)
            + self._nodes.statement(node, (), names)
            + (initializers(node, tensors, number_of) if self._folded else "")
            + self._session_statements(None)  # by default onnxruntime folds constants
            + ort_scripts.node_run(node, tensors, number_of, is_constant=self._folded)
        )

    def reproduce_carry(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that carries ``bits``; raise Unsupported as ``carry``."""
        number = self._models.element_type(case.source)
        length = bits.size if self._folded else None
        return (
            ort_scripts.header(self._heading(str(case)), case.target)
            + f"{bits_statement(case.source, bits)}\n"
            + self._carriers.statement(case, length, has_input=not self._folded)
            + (ort_scripts.initializer(case.source, number, bits) if self._folded else "")
            + self._session_statements(LEVELS["basic" if self._folded else self._level])
            + ort_scripts.run(case, number, bits, is_constant=self._folded)
        )

    def _script(self, case: Case, graph: Graph, bits: Bits) -> str:
        number = self._models.element_type(case.source)
        # ``session.run`` takes texts, but returns no dtype that numpy lacks.
        is_constant = self._folded or (case.source == "string" and ort_scripts.is_raw(case.target))
        # onnxruntime removes a Cast to the same dtype, and folds a constant one.
        level = None
        if self._folded or is_constant or case.source == case.target:
            level = LEVELS["basic" if self._folded else self._level]
        rank = bits.ndim if is_constant else self._rank(bits)
        graph = graph if is_constant else self._placed(graph, rank)
        return (
            ort_scripts.header(self._heading(str(case), graph), case.target)
            + f"{bits_statement(case.source, bits)}\n"
            + self._models.statement(graph, rank, has_input=not is_constant)
            + (ort_scripts.initializer(case.source, number, bits) if is_constant else "")
            + self._session_statements(level)
            + ort_scripts.run(
                case,
                number,
                bits,
                is_constant=is_constant,
                is_bitcast=graph.operator == "BitCast",
            )
        )

    def _can_bind(self, case: Case, bits: Bits) -> bool:
        """Return whether onnxruntime can read ``bits`` in their memory, and write into an array."""
        source, target = format_named(case.source), format_named(case.target)
        numeric = "text" not in (source.kind, target.kind)
        on_cpu = self._provider is None and not self._folded
        return on_cpu and numeric and not is_packed(source) and bits.flags.carray

    def _takes_constant(self, dtype: str) -> bool:
        # An OrtValue cannot hold text, so text is an initializer in every variant.
        return self._folded or dtype == "string"

    def _answer(self, graph: Graph, bits: Bits) -> Bits:
        if graph.source in NUMPY_DTYPES and not (self._folded or ort_scripts.is_raw(graph.target)):
            return self._answer_in_numpy(graph, bits)
        if self._takes_constant(graph.source):
            session, ort_value = self._session_with_constant(graph, bits), None
        else:
            session = self._session(graph, self._rank(bits))
            ort_value = self._ort_value(graph.source, bits)
        return self._bound(session, ort_value, graph.output, graph.target)

    @staticmethod
    def _bound(session: Any, x: Any, output: str, target: str) -> Bits:
        """Return the patterns of a session's output; x is None where it is an initializer."""
        # A binding takes a quarter of the time that ``run_with_ort_values`` does.
        binding = session.io_binding()
        if x is not None:
            binding.bind_ortvalue_input("x", x)
        binding.bind_output(output)
        session.run_with_iobinding(binding)
        (answer,) = binding.get_outputs()
        return patterns_of_ort_value(format_named(target), answer)

    def _ort_value(self, dtype: str, bits: Bits) -> Any:
        return self._ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
            ort_value_buffer(format_named(dtype), bits), self._models.element_type(dtype)
        )

    def _answer_in_numpy(self, graph: Graph, bits: Bits) -> Bits:
        """Return the answer to a graph of numpy's dtypes by ``run``, in half the time of a binding.

        The source is never text: for texts ``run`` raises other errors than a binding, and some
        targets need a binding.
        """
        x = ort_value_buffer(format_named(graph.source), bits).view(graph.source)
        (y,) = self._session(graph, self._rank(bits)).run((graph.output,), {"x": x})
        target = format_named(graph.target)
        patterns: Bits = y if target.kind == "text" else y.view(target.storage)
        return patterns

    def _rank(self, bits: Bits) -> int | None:
        """Return the rank of a model's x; None for any, of which some providers take no node."""
        return None if self._provider is None else bits.ndim

    def _session(self, graph: Graph, rank: int | None = None) -> Any:
        return _raised(self._session_or_refusal(self._placed(graph, rank), rank))

    def _placed(self, graph: Graph, rank: int | None) -> Graph:
        """Return the graph with a neighbor if only that is not left to the CPU, else itself."""
        if self._provider is None or graph.operator is None:
            return graph
        beside, is_left = replace(graph, neighbor=NEIGHBOR), self._provider.is_left
        if not is_left(self._session_or_refusal(graph, rank)):
            return graph
        return graph if is_left(self._session_or_refusal(beside, rank)) else beside

    def _try_session(self, graph: Graph, rank: int | None) -> Any:
        """Return a new session of a graph, or the error with which onnxruntime refuses it.

        The error is returned so that it is cached: a refusal takes as long as ten sessions.
        """
        return self._opened_or_refused(self._models.with_input(graph, rank))

    def _opened_or_refused(self, model: Any) -> Any:
        try:
            return self._open(model, self._options())
        except (Unsupported, *self._refusal_classes) as refusal:
            return refusal

    def _node_session(self, node: OpsetNode, tensors: Mapping[str, Bits]) -> Any:
        """Return the session of a node; in `folded` the model has ``tensors`` as constants.

        Raises onnxruntime's error if it refuses the node. In `folded` it raises Unsupported if the
        node is not folded.
        """
        if self._folded:
            return self._open_folded(self._nodes.model(node, (), tensors), node.operator)
        return _raised(self._session_of_node(node))

    def _try_node(self, node: OpsetNode) -> Any:
        return self._opened_or_refused(self._nodes.model(node, (), {}))

    def _session_with_constant(self, graph: Graph, bits: Bits) -> Any:
        content = initializer_content(format_named(graph.source), bits)
        model = self._models.with_constant(graph, bits.shape, content)
        if not self._folded:
            return self._open(model, self._options())
        return self._open_folded(model, str(graph.operator))

    def _open_folded(self, model: Any, operator: str) -> Any:
        session, left = self._open_optimized(model, "basic")
        if left.graph.node:
            raise Unsupported(f"onnxruntime did not fold this {operator} at load")
        return session

    def optimized(self, model: Any, level: str) -> Any:
        """Return the model into which onnxruntime optimizes ``model`` at a key of ``LEVELS``.

        Raises Unsupported if onnxruntime lacks a kernel.
        """
        with self._refusals(LATEST):
            return self._open_optimized(model, level)[1]

    def _open_optimized(self, model: Any, level: str) -> tuple[Any, Any]:
        with TemporaryDirectory() as folder:
            written = Path(folder, "optimized.onnx")
            options = self._options(level)
            options.optimized_model_filepath = str(written)
            return self._open(model, options), self._onnx.load(written)

    def _open(self, model: Any, options: Any) -> Any:
        content = model.SerializeToString()
        if self._provider is not None:
            return self._provider.open(content, options)
        return self._ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def _heading(self, asked: str, graph: Graph | None = None) -> str:
        if self._provider is None:
            return f"{self.version}: {asked}"
        return self._provider.heading(asked, graph.operator if graph and graph.neighbor else None)

    def _session_statements(self, level: str | None) -> str:
        if self._provider is not None:
            return self._provider.statements(level or "ORT_DISABLE_ALL")
        return ort_scripts.session(level)

    def _options(self, level: str | None = None) -> Any:
        options = self._ort.SessionOptions()
        levels = self._ort.GraphOptimizationLevel
        options.graph_optimization_level = getattr(levels, LEVELS[level or self._level])
        options.intra_op_num_threads = self._threads
        # In an arena each kept session would keep the memory of its largest tensors, too.
        options.enable_cpu_mem_arena = False
        options.log_severity_level = ONLY_FATAL
        if self._provider is not None:
            self._provider.prepare(options)
        return options

    @contextmanager
    def _refusals(
        self,
        opset: int,
        dtypes: tuple[str, ...] = (),
        is_rejected: Callable[[], bool] = lambda: False,
    ) -> Iterator[None]:
        """Within the context, replace onnxruntime's errors about what it lacks by Unsupported.

        No words of an error count. It is about what onnxruntime lacks if no float32, or none of a
        dtype of ``dtypes``, is cast at the opset. Else, if ``is_rejected``, the error is the one
        that the document wants. Where an answer is due, a kernel is missing if the class says so.
        """
        try:
            yield
        except self._refusal_classes as error:
            if self._lacks(opset, dtypes, error, is_rejected()):
                raise Unsupported(first_line(error)) from None
            raise

    def _lacks(
        self, opset: int, dtypes: tuple[str, ...], error: Exception, is_rejected: bool
    ) -> bool:
        if isinstance(error, self._states.NotImplemented) and not is_rejected:
            return True
        asked = ("float32",) if is_rejected else ("float32", *dtypes)
        graphs = (Graph(opset, dtype, "float32", "Cast") for dtype in asked)
        rank = None if self._provider is None else 1
        return any(
            isinstance(self._session_or_refusal(self._placed(graph, rank), rank), Exception)
            for graph in graphs
        )


def _raised(found: Any) -> Any:
    """Return a session; raise the error with which onnxruntime refused it instead."""
    if isinstance(found, Exception):
        raise found.with_traceback(None)
    return found


def _are_equally_wide(source: str, target: str) -> bool:
    """Whether BitCast is defined between two dtypes; a boolean of ONNX has 8 bits."""
    bits = {
        8 if each.kind == "boolean" else each.bits for each in map(format_named, (source, target))
    }
    return len(bits) == 1
