"""onnxruntime: one Cast or BitCast in a session of its own, at the opset that a case names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
    patterns_expression,
    print_patterns,
    quantize_node,
    results,
    tensor_statements,
)
from oracles.adapters.refusals import first_line, load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import (
    NUMPY_DTYPES,
    PACK,
    UNPACK,
    bits_statement,
    mask_expression,
    print_statement,
    print_tensor,
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
from specs.chains import Company
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("folded", "threads", "cpu", "cuda")
"""The short name of each installed execution provider is a variant, too."""

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
CPU = "CPUExecutionProvider"
NO_FALLBACK = "session.disable_cpu_ep_fallback"

MISSING_KERNELS = (
    # If Cast has no float16 kernel, onnxruntime inserts a second Cast and then fails on it.
    "InsertedPrecisionFreeCast",
    # The error under NO_FALLBACK if the provider lacks the kernel.
    "fallback to CPU EP",
    # The errors of an older onnxruntime for a newer opset.
    "Unsupported model IR version",
    "Current official support for domain",
)
"""Signs of a missing kernel in errors other than NOT_IMPLEMENTED."""

MISSING_TENSORS = "is not currently registered or supported"
"""The sign that onnxruntime has no tensors of a dtype.

ONNX does not define Cast for such dtypes, so there the error is a rejection. It defines BitCast for
them, so there the kernel is missing.
"""


class Ort:
    """Casts, bitcasts and quantizes by onnxruntime, or (`folded`) by its folding at load.

    `threads` uses onnxruntime's default number of threads; the other variants use one.
    """

    name = "ort"
    claims: tuple[str, ...] = ("onnx-cast", "onnx-cast-like", "onnx-bitcast", *CLAIMS)

    def __init__(self, variant: str | None = None) -> None:
        self._ort: Any = load("onnxruntime", "ort")
        self._states: Any = load("onnxruntime.capi.onnxruntime_pybind11_state", "ort")
        self._onnx: Any = load("onnx", "ort")
        self.version = str(self._ort.__version__)
        self._models = ModelBuilder(self._onnx)
        self._nodes = NodeModels(self._models)
        available = self._ort.get_available_providers()
        providers = {name.removesuffix("ExecutionProvider").lower(): name for name in available}
        require_variant(self.name, variant, tuple(dict.fromkeys((*VARIANTS, *providers))))
        self._folded = self.compiles_shapes = variant == "folded"
        self._threads = 0 if variant == "threads" else 1
        self._provider = providers.get(variant or "cpu", CPU)
        if variant == "cuda" and variant not in providers:
            raise Unsupported(self._no_device("has no CUDA execution provider"))
        self.chain_roads = () if self._folded else CHAIN_ROADS
        self._session_or_refusal = lru_cache(CACHED_SESSIONS)(self._try_session)
        self._session_of_node = lru_cache(CACHED_SESSIONS)(self._try_node)
        if variant == "cuda":
            self._session(Graph(LATEST, "float32", "float32", operator=None))

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by a model of one Cast; raise Unsupported without a kernel."""
        require_plain(case, "onnxruntime's Cast")
        with self._refusals(*MISSING_KERNELS):
            return self._answer(cast_graph(case), bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by a model of one BitCast, which keeps the shape."""
        require_plain(case, "onnxruntime's BitCast")
        with self._refusals(*MISSING_KERNELS, MISSING_TENSORS):
            return self._answer(bitcast_graph(case), bits)

    def bitcast_road(self, case: Case) -> str:
        """Return the pair of dtypes as text: a bitcast has no parameters besides the shape."""
        return plain_road(case, "onnxruntime's BitCast")

    def road(self, case: Case) -> str:
        """Return, as text, the opset, the dtypes and the parameters of the model of a case."""
        require_plain(case, "onnxruntime's Cast")
        return self._models.road(case)

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return, by name, the results of a model of one node that quantizes or dequantizes.

        Raises Unsupported if onnxruntime lacks the kernel.
        """
        with self._refusals(*MISSING_KERNELS):
            node, tensors = quantize_node(case, tensors)
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

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the ends of chains by one model, in which each has its own input and output."""
        axes = axes_of(company)
        inputs = [bits[str(number)] for number in range(len(company.chains))]
        with self._refusals(*MISSING_KERNELS):
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
        """Return a self-contained script that makes one chain by onnxruntime."""
        [chain], [own], axes = company.chains, [*bits.values()], axes_of(company)
        number, is_constant = self._models.element_type(chain.source), axes.get("input") is not None
        ends = replace(case, target=chain.target)
        # The first level is onnxruntime's own default.
        level = None if axes["level"] == next(iter(LEVELS)) else LEVELS[axes["level"]]
        outputs = '["y"]' if "middle" in axes else "None"
        return (
            header(self.version, f"{chain.id} on {company.road}", chain.target)
            + f"{bits_statement(chain.source, own)}\n"
            + self._models.chain_statement(chain, axes)
            + (initializer(chain.source, number, own) if is_constant else "")
            + session(level, self._provider)
            + run(ends, number, own, outputs, is_constant=is_constant)
        )

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that reads ``bits`` in place and writes into memory that calls reuse.

        The call is the whole ``cast`` where that is impossible, as for texts or on a GPU.
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
        """Return the bits after a model whose input is its output."""
        try:
            return self._answer(Graph(LATEST, dtype, dtype, operator=None), bits)
        except (self._states.Fail, self._states.InvalidArgument) as error:
            raise Unsupported(first_line(error)) from None

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that runs the case on onnxruntime."""
        return self._script(case, cast_graph(case), bits)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that runs a bitcast on onnxruntime."""
        return self._script(case, bitcast_graph(case), bits)

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Return a self-contained script that runs one node on onnxruntime."""
        node, tensors = quantize_node(case, tensors)
        number_of = self._models.element_type
        names = [name for name, _ in node.inputs] if self._folded else []
        memory = tensor_content if self._folded else ort_value_buffer
        return (
            header(self.version, str(case), case.target)
            + tensor_statements(node, tensors, memory)
            + self._nodes.statement(node, (), names)
            + (initializers(node, tensors, number_of) if self._folded else "")
            + session(None, self._provider)  # by default onnxruntime folds constants
            + node_run(node, tensors, number_of, is_constant=self._folded)
        )

    def _script(self, case: Case, graph: Graph, bits: Bits) -> str:
        number = self._models.element_type(case.source)
        # ``session.run`` takes texts, but returns no dtype that numpy lacks.
        is_constant = self._folded or (case.source == "string" and is_raw(case.target))
        # onnxruntime removes a Cast to the same dtype, and folds a constant one.
        level = None
        if self._folded or is_constant or case.source == case.target:
            level = "ORT_ENABLE_BASIC" if self._folded else "ORT_DISABLE_ALL"
        return (
            header(self.version, str(case), case.target)
            + f"{bits_statement(case.source, bits)}\n"
            + self._models.statement(
                graph, bits.ndim if is_constant else None, has_input=not is_constant
            )
            + (initializer(case.source, number, bits) if is_constant else "")
            + session(level, self._provider)
            + run(
                case,
                number,
                bits,
                is_constant=is_constant,
                is_bitcast=graph.operator == "BitCast",
            )
        )

    def _can_bind(self, case: Case, bits: Bits) -> bool:
        """Whether onnxruntime can read ``bits`` and write the answer in plain memory."""
        source, target = format_named(case.source), format_named(case.target)
        numeric = "text" not in (source.kind, target.kind)
        on_cpu = self._provider == CPU and not self._folded
        return on_cpu and numeric and not is_packed(source) and bits.flags.carray

    def _takes_constant(self, dtype: str) -> bool:
        # An OrtValue cannot hold text, so text is an initializer in every variant.
        return self._folded or dtype == "string"

    def _answer(self, graph: Graph, bits: Bits) -> Bits:
        if graph.source in NUMPY_DTYPES and not (self._folded or is_raw(graph.target)):
            return self._answer_in_numpy(graph, bits)
        if self._takes_constant(graph.source):
            session, ort_value = self._session_with_constant(graph, bits), None
        else:
            session, ort_value = self._session(graph), self._ort_value(graph.source, bits)
        # A binding takes a quarter of the time that ``run_with_ort_values`` does.
        binding = session.io_binding()
        if ort_value is not None:
            binding.bind_ortvalue_input("x", ort_value)
        binding.bind_output(graph.output)
        session.run_with_iobinding(binding)
        (answer,) = binding.get_outputs()
        return patterns_of_ort_value(format_named(graph.target), answer)

    def _ort_value(self, dtype: str, bits: Bits) -> Any:
        return self._ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
            ort_value_buffer(format_named(dtype), bits), self._models.element_type(dtype)
        )

    def _answer_in_numpy(self, graph: Graph, bits: Bits) -> Bits:
        """Answer a graph whose dtypes numpy has, in half the time that a binding takes.

        Texts as inputs go by a binding: it raises other errors, and some targets need one.
        """
        x = ort_value_buffer(format_named(graph.source), bits).view(graph.source)
        (y,) = self._session(graph).run((graph.output,), {"x": x})
        target = format_named(graph.target)
        patterns: Bits = y if target.kind == "text" else y.view(target.storage)
        return patterns

    def _session(self, graph: Graph) -> Any:
        """Return the session of a graph, or raise the error with which it was refused before."""
        found = self._session_or_refusal(graph)
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found

    def _try_session(self, graph: Graph) -> Any:
        """Create a session, or return its error to be cached: an error costs ten sessions."""
        return self._opened_or_refused(self._models.with_input(graph, rank=None))

    def _opened_or_refused(self, model: Any) -> Any:
        states = self._states
        try:
            return self._open(model, self._options())
        except (states.NotImplemented, states.Fail, states.InvalidGraph) as refusal:
            return refusal

    def _node_session(self, node: OpsetNode, tensors: Mapping[str, Bits]) -> Any:
        """Return the session of a node; in `folded` its tensors are constants of the model."""
        if self._folded:
            return self._open_folded(self._nodes.model(node, (), tensors), node.operator)
        found = self._session_of_node(node)
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found

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
        """Return a model after optimization at a level, which is a key of ``LEVELS``."""
        with self._refusals(*MISSING_KERNELS):
            return self._open_optimized(model, level)[1]

    def _open_optimized(self, model: Any, level: str) -> tuple[Any, Any]:
        with TemporaryDirectory() as folder:
            written = Path(folder, "optimized.onnx")
            options = self._options(level)
            options.optimized_model_filepath = str(written)
            return self._open(model, options), self._onnx.load(written)

    def _open(self, model: Any, options: Any) -> Any:
        content = model.SerializeToString()
        session = self._ort.InferenceSession(content, options, providers=[self._provider])
        # A provider that cannot be created, for want of a device or a library, is left out.
        if self._provider not in session.get_providers():
            raise Unsupported(self._no_device(f"cannot use its {self._provider}"))
        return session

    def _no_device(self, problem: str) -> str:
        return (
            f"onnxruntime {self.version} {problem}; ask `ort`, or install an onnxruntime that is "
            "built for the device, and its libraries (https://onnxruntime.ai/docs/install)"
        )

    def _options(self, level: str = "disabled") -> Any:
        options = self._ort.SessionOptions()
        levels = self._ort.GraphOptimizationLevel
        options.graph_optimization_level = getattr(levels, LEVELS[level])
        options.intra_op_num_threads = self._threads
        options.log_severity_level = ONLY_FATAL
        if self._provider != CPU:
            # By default the CPU silently answers for a provider that lacks the kernel.
            options.add_session_config_entry(NO_FALLBACK, "1")
        return options

    @contextmanager
    def _refusals(self, *signs: str) -> Iterator[None]:
        """Raise Unsupported for NOT_IMPLEMENTED and for errors that show one of the signs."""
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


HEADER = """\
# onnxruntime {version}: {asked}
{modules}import numpy as np
import onnx.parser
import onnxruntime as ort

"""

INITIALIZER = """\
x = onnx.helper.make_tensor("x", {number}, bits.shape, {content})
model.graph.initializer.append(x)
"""

SESSION = """\
session = ort.InferenceSession(model.SerializeToString(), providers=["{provider}"])
"""

SESSION_OF_LEVEL = """\
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.{level}
session = ort.InferenceSession(
    model.SerializeToString(), options, providers=["{provider}"]
)
"""

ORT_VALUE = "x = ort.OrtValue.ortvalue_from_numpy_with_onnx_type({array}, {number})\n"

PADDED = """\
padded = np.resize(packed, bits.shape)  # the tensor takes its shape from the array
"""

TENSORS = """\
tensor = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
given = {{{given}}}
"""

RAW = "raw = ctypes.string_at(y.data_ptr(), y.tensor_size_in_bytes())\n"


def header(version: str, asked: str, target: str) -> str:
    """Return a script's first line, which names the case or the chain, and its imports."""
    modules = "import ctypes\n\n" if is_raw(target) else ""
    return HEADER.format(version=version, asked=asked, modules=modules)


def initializer(dtype: str, number: int, bits: Bits) -> str:
    """Return the statements that make ``bits`` the initializer x of ``model``."""
    entry = format_named(dtype)
    if entry.kind == "text":
        return INITIALIZER.format(number=number, content="[text.encode() for text in bits.flat]")
    pack = PACK.format(bits=entry.bits) if _needs_packing(dtype, bits) else ""
    array = "packed" if pack else "bits"
    return pack + INITIALIZER.format(number=number, content=f"{array}.tobytes(), raw=True")


def session(level: str | None, provider: str) -> str:
    """Return the statements that open a session, at a level of optimization if it is given."""
    if level is None:
        return SESSION.format(provider=provider)
    return SESSION_OF_LEVEL.format(level=level, provider=provider)


def run(
    case: Case,
    number: int,
    bits: Bits,
    outputs: str = "None",
    *,
    is_constant: bool,
    is_bitcast: bool = False,
) -> str:
    """Return the statements that run the session and print its answers.

    ``number`` is that of the source in ``TensorProto.DataType``, and ``outputs`` the expression of
    the names of outputs.
    """
    in_memory = is_raw(case.target)
    if is_constant:
        feed, is_numpy = "{}", not in_memory
    elif case.source == "string":
        feed, is_numpy = '{"x": bits}', True
    elif case.source in NUMPY_DTYPES and not in_memory:
        feed, is_numpy = f'{{"x": bits.view("{case.source}")}}', True
    else:
        feed, is_numpy = '{"x": x}', False
    statements = _ort_value(case.source, number, bits) if feed == '{"x": x}' else ""
    method = "run" if is_numpy else "run_with_ort_values"
    statements += f"(y,) = session.{method}({outputs}, {feed})\n"
    answers = "y" if is_numpy else "y.numpy()"
    if in_memory:
        more, answers = _from_memory(case.target, bits)
        statements += more
    elif case.target != "string":
        answers += f'.view("{format_named(case.target).storage}")'
    if is_bitcast:
        return statements + print_tensor(case.target, answers)
    return statements + print_statement(case.source, case.target, bits, answers)


def _ort_value(dtype: str, number: int, bits: Bits) -> str:
    """Return the statements that make ``bits`` the OrtValue x."""
    if not _needs_packing(dtype, bits):
        return ORT_VALUE.format(array="bits", number=number)
    pack = PACK.format(bits=format_named(dtype).bits)
    return pack + PADDED + ORT_VALUE.format(array="padded", number=number)


def _from_memory(dtype: str, bits: Bits) -> tuple[str, str]:
    """Return the statements that read the memory of y, and the expression of its patterns."""
    entry, shaped = format_named(dtype), "" if bits.ndim == 1 else ".reshape(bits.shape)"
    if _needs_packing(dtype, bits):
        return RAW + UNPACK.format(bits=entry.bits), f"answers{shaped}"
    return RAW, f'np.frombuffer(raw, "{entry.storage}"){mask_expression(dtype)}{shaped}'


def node_run(
    node: OpsetNode,
    tensors: Mapping[str, Bits],
    number_of: Callable[[str], int],
    *,
    is_constant: bool,
) -> str:
    """Return the statements that run the session on a node's inputs and print its results."""
    given = [f'"{name}": tensor({name}, {number_of(dtype)})' for name, dtype in node.inputs]
    feed = "{}" if is_constant else "given"
    statements = "" if is_constant else TENSORS.format(given=", ".join(given))
    statements += f"{results(node)} = session.run_with_ort_values(None, {feed})\n"
    for name, dtype in node.outputs:
        patterns = f'{name}.numpy().view("{format_named(dtype).storage}")'
        if is_raw(dtype):
            statements += RAW
            memory, count = 'np.frombuffer(raw, "uint8")', tensors["x"].size
            patterns = patterns_expression(dtype, memory, count)
        statements += print_patterns(name, patterns)
    return statements


def is_raw(dtype: str) -> bool:
    """Whether a tensor's patterns must be read from its memory, as numpy lacks the dtype."""
    return dtype not in NUMPY_DTYPES and dtype != "string"


def _needs_packing(dtype: str, bits: Bits) -> bool:
    """Whether several codes of this array share a byte; a single one has its own."""
    return is_packed(format_named(dtype)) and bits.size != 1
