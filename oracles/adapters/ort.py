"""onnxruntime: one Cast or BitCast in a session of its own, at the opset that a case names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oracles.adapters.lazy_import import first_line, load, require_variant
from oracles.adapters.onnx_models import LATEST, Graph, ModelBuilder, bitcast_graph, cast_graph
from oracles.adapters.ort_memory import (
    answer_of,
    buffer_of,
    content_of,
    patterns_in,
    room_for,
)
from oracles.adapters.ort_script import reproduction
from oracles.adapters.plain_modes import require_plain
from oracles.bit_packing import is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("folded", "threads", "cpu")
"""An execution provider is a variant too, by its short name, where onnxruntime has it."""

SESSIONS_KEPT = 32
ONLY_FATAL = 4
CPU = "CPUExecutionProvider"
NO_FALLBACK = "session.disable_cpu_ep_fallback"

MISSING_KERNELS = (
    # Where Cast has no float16 kernel, onnxruntime puts a second Cast before it, and stumbles.
    "InsertedPrecisionFreeCast",
    # What NO_FALLBACK says when the provider lacks the kernel.
    "fallback to CPU EP",
    # What an older onnxruntime says of an opset that came after it.
    "Unsupported model IR version",
    "Current official support for domain",
)
"""How a missing kernel shows where onnxruntime does not say NOT_IMPLEMENTED."""
NO_TENSORS = "is not currently registered or supported"
"""What is said of a dtype without tensors: of BitCast it is no refusal, for the operator has it."""


class Ort:
    """Cast and BitCast by onnxruntime's kernels, or (`folded`) by its constant folding at load.

    `threads` takes as many as onnxruntime would by itself; the others take one.
    """

    name = "ort"
    claims: tuple[str, ...] = ("onnx-cast", "onnx-bitcast")

    def __init__(self, variant: str | None = None) -> None:
        self._ort: Any = load("onnxruntime", "ort")
        self._states: Any = load("onnxruntime.capi.onnxruntime_pybind11_state", "ort")
        self._onnx: Any = load("onnx", "ort")
        self.version = str(self._ort.__version__)
        self._models = ModelBuilder(self._onnx)
        available = self._ort.get_available_providers()
        providers = {name.removesuffix("ExecutionProvider").lower(): name for name in available}
        require_variant(self.name, variant, tuple(dict.fromkeys((*VARIANTS, *providers))))
        self._folded = self.compiles_shapes = variant == "folded"
        self._threads = 0 if variant == "threads" else 1
        self._provider = providers.get(variant or "cpu", CPU)
        self._session = lru_cache(SESSIONS_KEPT)(self._session_with_input)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by a model that holds nothing but its Cast."""
        require_plain(case, "onnxruntime's Cast")
        with self._refusals(*MISSING_KERNELS):
            return self._answer(cast_graph(case), bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by a model that holds nothing but a BitCast, which keeps the shape."""
        require_plain(case, "onnxruntime's BitCast")
        with self._refusals(*MISSING_KERNELS, NO_TENSORS):
            return self._answer(bitcast_graph(case), bits)

    def road(self, case: Case) -> str:
        """What the model of a case depends on."""
        require_plain(case, "onnxruntime's Cast")
        return self._models.road(case)

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that reads ``bits`` in place and writes into one and the same memory."""
        self.cast(case, bits[:1])  # refuses what cannot be cast, in the same words
        if not self._binds(case, bits):
            return partial(self.cast, case, bits)
        target, count = format_named(case.target), len(bits)
        session, raw = self._session(cast_graph(case)), room_for(target, count)
        binding = session.io_binding()
        for bind, name, dtype, memory in (
            (binding.bind_input, "x", case.source, bits),
            (binding.bind_output, "y", case.target, raw),
        ):
            bind(name, "cpu", 0, self._models.element_type(dtype), [count], memory.ctypes.data)

        # onnxruntime knows addresses only: the call itself keeps the question's memory alive.
        def call(_alive: Bits = bits) -> Bits:
            # With run options, were they the defaults, a call would cost 25 µs instead of 2.
            session.run_with_iobinding(binding)
            return patterns_in(raw, target, count)

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits through a model whose input is its output."""
        try:
            return self._answer(Graph(LATEST, dtype, dtype, operator=None), bits)
        except (self._states.Fail, self._states.InvalidArgument) as error:
            raise Unsupported(first_line(error)) from None

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks onnxruntime the same, without this project."""
        return reproduction(
            self._models, self.version, case, bits, folded=self._folded, provider=self._provider
        )

    def _binds(self, case: Case, bits: Bits) -> bool:
        """Whether a tensor can lie in the memory of ``bits``, and its answer in ours."""
        source, target = format_named(case.source), format_named(case.target)
        numeric = "text" not in (source.kind, target.kind)
        here = self._provider == CPU and not self._folded
        return here and numeric and not is_packed(source) and bits.flags.carray

    def _takes_constant(self, dtype: str) -> bool:
        # An OrtValue cannot hold text, so text comes in as an initializer on every road.
        return self._folded or dtype == "string"

    def _answer(self, graph: Graph, bits: Bits) -> Bits:
        source = format_named(graph.source)
        feed: dict[str, Any] = {}
        if self._takes_constant(graph.source):
            session = self._session_with_constant(graph, bits)
        else:
            session = self._session(graph)
            buffer = buffer_of(source, bits)
            element_type = self._models.element_type(graph.source)
            make = self._ort.OrtValue.ortvalue_from_numpy_with_onnx_type
            feed["x"] = make(buffer, element_type)
        (answer,) = session.run_with_ort_values(None, feed)
        return answer_of(format_named(graph.target), answer)

    def _session_with_input(self, graph: Graph) -> Any:
        return self._open(self._models.with_input(graph, rank=None), self._options())

    def _session_with_constant(self, graph: Graph, bits: Bits) -> Any:
        source = format_named(graph.source)
        model = self._models.with_constant(graph, bits.shape, content_of(source, bits))
        if not self._folded:
            return self._open(model, self._options())
        with TemporaryDirectory() as folder:
            optimized = Path(folder, "optimized.onnx")
            options = self._options()
            options.graph_optimization_level = self._ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
            options.optimized_model_filepath = str(optimized)
            session = self._open(model, options)
            if self._onnx.load(optimized).graph.node:
                raise Unsupported(f"onnxruntime did not fold this {graph.operator} at load")
        return session

    def _open(self, model: Any, options: Any) -> Any:
        content = model.SerializeToString()
        return self._ort.InferenceSession(content, options, providers=[self._provider])

    def _options(self) -> Any:
        options = self._ort.SessionOptions()
        options.graph_optimization_level = self._ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = self._threads
        options.log_severity_level = ONLY_FATAL
        if self._provider != CPU:
            # Otherwise the CPU would answer, unnoticed, for a provider that lacks the kernel.
            options.add_session_config_entry(NO_FALLBACK, "1")
        return options

    @contextmanager
    def _refusals(self, *signs: str) -> Iterator[None]:
        try:
            yield
        except self._states.NotImplemented as error:
            raise Unsupported(first_line(error)) from None
        except (
            self._states.Fail,
            self._states.InvalidGraph,
            self._states.InvalidArgument,
        ) as error:
            if not any(sign in str(error) for sign in signs):
                raise
            raise Unsupported(first_line(error)) from None
