"""openvino's Convert: evaluated by its reference, or compiled or folded by the CPU plugin.

Cases of ``openvino-convert-like`` are answered by ConvertLike, which takes the type from a second
tensor. The reference does not evaluate it: the pass ``ConstantFolding`` turns it into a Convert,
which it folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oracles.adapters.onnx_carriers import DOCUMENT as CARRIERS
from oracles.adapters.onnx_quantize_models import CLAIMS, quantize_node
from oracles.adapters.openvino_carriers import FOLDED, OnnxCarriers
from oracles.adapters.openvino_onnx import OnnxNodes
from oracles.adapters.openvino_plugin import (
    CPU,
    DEVICE_ROADS,
    Lacking,
    Plugin,
    device_named,
    nothing,
)
from oracles.adapters.openvino_tensors import DTYPES, OpenvinoTensors
from oracles.adapters.refusals import is_lacking, load, require_plain
from oracles.adapters.script_text import (
    PACK,
    UNPACK,
    bits_statement,
    print_loop,
    print_statement,
)
from oracles.adapters.tensor_memory import patterns_in, tensor_memory
from oracles.memory_layouts import in_huge_pages, is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

if TYPE_CHECKING:
    from specs.chains import Company

VARIANTS: tuple[str, ...] = ("cpu", "cpu-dynamic", "cpu-folded")
"""The CPU plugin has one kernel for static shapes (`cpu`), another for dynamic (`cpu-dynamic`).

It folds constants when it compiles (`cpu-folded`). openvino's pass ``ConstantFolding`` has no
variant: it calls the reference, which is the adapter without a variant.
"""

OPEN_ROADS = DEVICE_ROADS

LIKE = "openvino-convert-like"
"""The document whose cases are answered by ConvertLike, all others by Convert."""

CHAIN_ROADS = ("compiled", "compiled,middle:output")
CACHED_MODELS = 32


class OpenVino:
    """Casts, quantizes and carries by openvino's own reference or, with a variant, by a plugin."""

    name = "openvino"
    claims: tuple[str, ...] = ("openvino-convert", LIKE, CARRIERS, *CLAIMS)

    def __init__(self, variant: str | None = None) -> None:
        self._openvino: Any = load("openvino", "openvino")
        self._operators: Any = load("openvino.opset15", "openvino")
        self._passes: Any = load("openvino.passes", "openvino")
        is_open = variant is not None and variant not in VARIANTS
        device = device_named(variant) if variant is not None and is_open else CPU
        self.version = str(self._openvino.__version__).partition("-")[0]
        # On other devices models are compiled as for the CPU.
        self._variant = "cpu" if is_open else variant
        self.compiles_shapes = self._variant in ("cpu", "cpu-folded")
        self.chain_roads = CHAIN_ROADS if self._variant in ("cpu", "cpu-dynamic") else ()
        if variant == FOLDED:
            self.claims = tuple(each for each in self.claims if each != CARRIERS)
        self._plugin = Plugin(self._openvino, device)
        self._tensors = OpenvinoTensors(self._openvino)
        self._compiled = lru_cache(CACHED_MODELS)(self._compile)
        self._lacks = lru_cache(None)(self._try_conversion)
        if is_open:
            parameter, node = self._graph(Case("", "", "float32", "float16"), [1])
            model = self._openvino.Model([node], [parameter], "cast")
            self.version += f", {self._plugin.version(model, VARIANTS)}"

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one Convert or, for cases of ``LIKE``, one ConvertLike.

        Raises Unsupported for modes that ``require_plain`` refuses, a dtype or a conversion that
        openvino lacks, and one that `cpu-folded` does not fold.
        """
        require_plain(case, "openvino's Convert")
        target = format_named(case.target)
        x = self._tensors.of_patterns(case.source, bits)
        memory = tensor_memory(target, bits.size)
        y = self._tensors.of_memory(case.target, memory, bits.shape)
        if self._variant == "cpu-folded":
            self._run(self._folded(case, x), y, self._lacking(case))
        else:
            self._prepared(case, x, y)()
        return patterns_in(memory, target, bits.size).reshape(bits.shape)

    @cached_property
    def _nodes(self) -> OnnxNodes:
        # Casts need no onnx.
        return OnnxNodes(self._openvino, self._tensors, self._plugin, self._variant)

    @cached_property
    def _carriers(self) -> OnnxCarriers:
        return OnnxCarriers(self._openvino, self._tensors, self._plugin, self._variant)

    def carry(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits``, a row, after the carrier that a case names, read from an ONNX model.

        Raises Unsupported if openvino lacks a dtype, an operator or a kernel, and in `cpu-folded`.
        """
        return self._carriers.carry(case, bits)

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return, by name, the results of one ONNX node as openvino's front end translates it.

        Raises Unsupported if ONNX has no node for the case, if openvino lacks a dtype, the operator
        or a kernel, or if `cpu-folded` does not fold the node.
        """
        return self._nodes.quantize(*quantize_node(case, tensors))

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the result of each chain of a company, all computed by one model.

        ``bits`` has the input of each chain under its index, as text. On the road with
        ``middle:output`` the values between casts are outputs of the model, too. Raises Unsupported
        for modes that ``require_plain`` refuses, and a dtype or a kernel that openvino lacks.
        """
        parameters, ends, middles, inputs = [], [], [], []
        lacking = self._lacking(*(step for chain in company.chains for step in chain.steps))
        for chain, own in zip(company.chains, company.inputs(bits), strict=True):
            length = -1 if self._variant == "cpu-dynamic" else own.size
            node = self._operators.parameter([length], self._tensors.type(chain.source))
            parameters.append(node)
            inputs.append(self._tensors.of_patterns(chain.source, own))
            for step in chain.steps:
                require_plain(step, "openvino's Convert")
                node = self._conversion(step, node)
                middles.append(node)
            ends.append(middles.pop())
        shown = middles if company.road == CHAIN_ROADS[1] else []
        model = self._openvino.Model([*ends, *shown], parameters, "cast")
        compiled = self._plugin.compile(model, lacking)
        request = compiled.create_infer_request()
        answers = []
        for number, (chain, x) in enumerate(zip(company.chains, inputs, strict=True)):
            target = format_named(chain.target)
            answers.append(tensor_memory(target, x.size))
            request.set_input_tensor(number, x)
            y = self._tensors.of_memory(chain.target, answers[-1], tuple(x.shape))
            request.set_output_tensor(number, y)
        self._plugin.run(request, lacking)
        found = zip(company.chains, answers, inputs, strict=True)
        return [patterns_in(own, format_named(chain.target), x.size) for chain, own, x in found]

    def road(self, case: Case) -> str:
        """Return the pair of dtypes as text, after ``ConvertLike`` if that answers the case.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that openvino lacks.
        """
        require_plain(case, "openvino's Convert")
        for dtype in (case.source, case.target):
            self._tensors.type(dtype)
        pair = f"{case.source}->{case.target}"
        return f"ConvertLike, {pair}" if case.document == LIKE else pair

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that reads the memory of ``bits`` and writes into memory that calls reuse.

        For a packed source, strided or unaligned ``bits``, and in `cpu-folded`, it is a call of
        ``cast`` instead. Raises Unsupported as ``cast`` does.
        """
        self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
        source, target, count = format_named(case.source), format_named(case.target), bits.size
        is_read_in_place = bits.flags.c_contiguous and bits.flags.aligned
        if is_packed(source) or not is_read_in_place or self._variant == "cpu-folded":
            return partial(self.cast, case, bits)
        x = self._tensors.of_memory(case.source, bits, bits.shape)
        memory = tensor_memory(target, count, in_huge_pages)
        run = self._prepared(case, x, self._tensors.of_memory(case.target, memory, bits.shape))

        def call() -> Bits:
            run()
            return patterns_in(memory, target, count)

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return the bits after a copy into openvino's own memory and back.

        Raises Unsupported if openvino lacks the dtype.
        """
        copy = self._openvino.Tensor(self._tensors.type(dtype), list(bits.shape))
        self._tensors.of_patterns(dtype, bits).copy_to(copy)
        return self._tensors.patterns(dtype, copy)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script of the case on openvino; raise Unsupported for a missing dtype."""
        types = {
            "source": self._tensors.name(case.source),
            "target": self._tensors.name(case.target),
        }
        is_folded = self._variant == "cpu-folded" or self._folds_itself(case)
        script = self._tensors_of(str(case), case.source, case.target, bits)
        shape = self._written_shape(bits)
        script += (CONSTANT if is_folded else OPERAND).format(shape=shape, **types)
        script += (CONVERT_LIKE if case.document == LIKE else CONVERT).format(**types)
        if self._variant is None:
            script += FOLD if case.document == LIKE else EVALUATE
        else:
            script += COMPILE.format(
                results="convert",
                settings=self._plugin.settings_text,
                device=self._plugin.device,
                parameters="[]" if is_folded else "[operand]",
                feed="" if is_folded else "request.set_input_tensor(x)\n",
                number="",
            )
        printed = print_statement(case.source, case.target, bits)
        return script + self._unpacked(case.target) + printed

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that runs a company's only chain on the CPU plugin."""
        [chain], [own] = company.chains, [*bits.values()]
        source = self._tensors.name(chain.source)
        steps = [
            f"step{number} = opset15.convert({f'step{number - 1}' if number else 'operand'},"
            f" ov.Type.{self._tensors.name(step.target)})\n"
            for number, step in enumerate(chain.steps)
        ]
        last = len(steps) - 1
        results = [last, *range(last)] if company.road == CHAIN_ROADS[1] else [last]
        return (
            self._tensors_of(f"{chain.id} on {company.road}", chain.source, chain.target, own)
            + OPERAND.format(shape=self._written_shape(own), source=source)
            + "".join(steps)
            + COMPILE.format(
                results=", ".join(f"step{number}" for number in results),
                settings=self._plugin.settings_text,
                device=self._plugin.device,
                parameters="[operand]",
                feed="request.set_input_tensor(x)\n",
                number="0, " if len(results) > 1 else "",
            )
            + self._unpacked(chain.target)
            + print_loop(chain.source, chain.target)
        )

    def reproduce_carry(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that carries ``bits``; raise Unsupported as ``carry``."""
        return f"# openvino {self.version}: {case}\n" + self._carriers.script(case, bits)

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Return a script of a case's ONNX model on openvino; raise Unsupported without one."""
        header = f"# openvino {self.version}: {case}\n"
        return header + self._nodes.script(*quantize_node(case, tensors))

    def _tensors_of(self, asked: str, source: str, target: str, bits: Bits) -> str:
        """Return the first statements of a script, which bind the tensors x and y.

        ``asked``, the case or the chain, is named in the first line. x holds ``bits``, and y the
        memory for the answers.
        """
        given, answer = format_named(source), format_named(target)
        return (
            HEADER.format(version=self.version, case=asked)
            + f"{bits_statement(source, bits)}\n"
            + (PACK.format(bits=given.bits) if is_packed(given) else "")
            + TENSORS.format(
                memory="raw" if is_packed(answer) else "answers",
                size=f"-(-bits.size * {answer.bits} // 8)" if is_packed(answer) else "shape",
                storage=answer.storage,
                content="packed" if is_packed(given) else "bits",
                source=self._tensors.name(source),
                target=self._tensors.name(target),
            )
        )

    def _written_shape(self, bits: Bits) -> str:
        """Return the expression of the shape for which a script compiles its model."""
        return str([-1] * bits.ndim) if self._variant == "cpu-dynamic" else "shape"

    @staticmethod
    def _unpacked(target: str) -> str:
        entry = format_named(target)
        return UNPACK.format(bits=entry.bits) if is_packed(entry) else ""

    def _prepared(self, case: Case, x: Any, y: Any) -> Callable[[], None]:
        """Return a function that converts the tensor x into the tensor y, and keeps both alive."""
        if self._folds_itself(case):
            return partial(self._fold, case, x, y)
        if self._variant is None:
            return self._evaluation(case, x, y)
        request, lacking = self._request(case, tuple(x.shape)), self._lacking(case)
        request.set_input_tensor(x)

        # The request holds only addresses.
        def run(_alive: Any = x) -> None:
            self._run(request, y, lacking)

        return run

    def _run(self, request: Any, y: Any, lacking: Lacking) -> None:
        request.set_output_tensor(y)
        self._plugin.run(request, lacking)

    def _lacking(self, *cases: Case) -> Lacking:
        """Return a function that says which of the cases' conversions the CPU plugin lacks."""

        def lacking() -> str:
            pairs = ((case.source, case.target) for case in cases)
            lacks = (pair for pair in pairs if self._lacks(*pair))
            words = f"openvino's {self._plugin.device} plugin does not convert {{}} to {{}}"
            return next((words.format(*map(DTYPES.get, pair)) for pair in lacks), "")

        return lacking

    def _try_conversion(self, source: str, target: str) -> bool:
        """Return whether the plugin refuses to convert one zero, but not one of float32."""

        def convert(source: str, target: str) -> None:
            case = Case("", "", source, target)
            parameter, node = self._graph(case, [-1 if self._variant == "cpu-dynamic" else 1])
            model = self._openvino.Model([node], [parameter], "cast")
            request = self._plugin.compile(model, nothing).create_infer_request()
            x = self._tensors.of_patterns(source, np.zeros(1, format_named(source).storage))
            request.set_input_tensor(x)
            self._plugin.run(request, nothing)

        pairs = ((source, target), ("float32", "float16"))
        return is_lacking((RuntimeError,), *(partial(convert, *pair) for pair in pairs))

    def _folded(self, case: Case, x: Any) -> Any:
        """Return a request to a model in which the plugin has folded the conversion of x.

        Raises Unsupported if the plugin did not fold it.
        """
        constant = self._openvino.op.Constant(x, shared_memory=False)
        convert = self._conversion(case, constant)
        model = self._openvino.Model([convert], [], "cast")
        return self._plugin.request_to_folded(model, self._lacking(case))

    def _evaluation(self, case: Case, x: Any, y: Any) -> Callable[[], None]:
        _, convert = self._graph(case, self._openvino.PartialShape.dynamic())

        def run() -> None:
            if not convert.evaluate([y], [x]):
                raise _not_converted(case)

        return run

    def _folds_itself(self, case: Case) -> bool:
        """Return whether the pass ``ConstantFolding`` answers a case, without any plugin."""
        return self._variant is None and case.document == LIKE

    def _fold(self, case: Case, x: Any, y: Any) -> None:
        """Convert x, as a constant, by the pass ``ConstantFolding``, and copy the result into y.

        Raises Unsupported if the pass leaves the conversion.
        """
        constant = self._openvino.op.Constant(x, shared_memory=False)
        model = self._openvino.Model([self._conversion(case, constant)], [], "cast")
        passes = self._passes.Manager()
        passes.register_pass(self._passes.ConstantFolding())
        passes.run_passes(model)
        node = model.get_results()[0].input_value(0).get_node()
        if node.get_type_name() != "Constant":
            raise _not_converted(case)
        node.get_tensor_view().copy_to(y)

    def _request(self, case: Case, shape: tuple[int, ...]) -> Any:
        shape = (-1,) * len(shape) if self._variant == "cpu-dynamic" else shape
        return self._compiled(_kernel_of(case), shape).create_infer_request()

    def _compile(self, case: Case, shape: tuple[int, ...]) -> Any:
        parameter, convert = self._graph(case, list(shape))
        model = self._openvino.Model([convert], [parameter], "cast")
        return self._plugin.compile(model, self._lacking(case))

    def _graph(self, case: Case, shape: Any) -> tuple[Any, Any]:
        parameter = self._operators.parameter(shape, self._tensors.type(case.source))
        return parameter, self._conversion(case, parameter)

    def _conversion(self, case: Case, operand: Any) -> Any:
        target = self._tensors.type(case.target)
        if case.document != LIKE:
            return self._operators.convert(operand, target)
        like = self._openvino.op.Constant(target, self._openvino.Shape([1]), [0])
        return self._operators.convert_like(operand, like)


def _kernel_of(case: Case) -> Case:
    """Return a Case that is the same for all cases with one compiled model.

    It has the pair of dtypes and, if ConvertLike converts, its document.
    """
    document = LIKE if case.document == LIKE else ""
    return Case(document, "", case.source, case.target)


def _not_converted(case: Case) -> Unsupported:
    pair = f"{DTYPES[case.source]} to {DTYPES[case.target]}"
    return Unsupported(f"openvino's reference does not convert {pair}")


HEADER = """\
# openvino {version}: {case}
import numpy as np
import openvino as ov
from openvino import opset15

"""

TENSORS = """\

shape = list(bits.shape)
{memory} = np.empty({size}, np.{storage})
x = ov.Tensor({content}, shape, ov.Type.{source})
y = ov.Tensor({memory}, shape, ov.Type.{target})
"""

OPERAND = "operand = opset15.parameter({shape}, ov.Type.{source})\n"

CONSTANT = "operand = ov.op.Constant(x, shared_memory=False)\n"

CONVERT = "convert = opset15.convert(operand, ov.Type.{target})\n"

CONVERT_LIKE = """\
like = ov.op.Constant(ov.Type.{target}, ov.Shape([1]), [0])
convert = opset15.convert_like(operand, like)
"""

FOLD = """\
from openvino.passes import ConstantFolding, Manager

model = ov.Model([convert], [], "cast")
folding = Manager()
folding.register_pass(ConstantFolding())
folding.run_passes(model)
model.get_results()[0].input_value(0).get_node().get_tensor_view().copy_to(y)
"""

EVALUATE = """\
if not convert.evaluate([y], [x]):
    raise SystemExit("openvino's reference does not evaluate this conversion")
"""

COMPILE = """\
model = ov.Model([{results}], {parameters}, "cast")
settings = {settings}
request = ov.Core().compile_model(model, "{device}", settings).create_infer_request()
{feed}request.set_output_tensor({number}y)
request.start_async()
request.wait()
"""
