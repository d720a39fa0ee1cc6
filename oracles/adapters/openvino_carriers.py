"""openvino's carriers: models of ONNX that its front end reads, with the operators of a carrier."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from oracles.adapters.onnx_carriers import CarrierModels
from oracles.adapters.onnx_quantize_models import patterns_expression
from oracles.adapters.openvino_models import IMPORTS, READ, OnnxFrontEnd
from oracles.adapters.openvino_plugin import Lacking, Plugin, nothing
from oracles.adapters.openvino_tensors import OpenvinoTensors
from oracles.adapters.refusals import is_lacking
from oracles.adapters.script_text import PACK, bits_statement, print_statement
from oracles.memory_layouts import is_packed
from oracles.protocol import Bits, Unsupported
from specs.cases import CARRIER, Case
from specs.formats import format_named

CACHED_MODELS = 1 << 10
"""The number of models that are kept: enough for the second carriers of each wrong carrier."""
FOLDED = "cpu-folded"
USUAL = "multiply-by-one"
"""A carrier of float32 that every openvino runs: if it fails too, openvino itself is broken."""


class OnnxCarriers(OnnxFrontEnd):
    """Carries rows by openvino, in the way that the adapter's variant names."""

    def __init__(
        self, openvino: Any, tensors: OpenvinoTensors, plugin: Plugin, variant: str | None
    ) -> None:
        super().__init__(openvino, tensors, plugin, variant)
        self._models = CarrierModels(self._builder)
        self._model = lru_cache(CACHED_MODELS)(self._read)
        self._compiled = lru_cache(CACHED_MODELS)(self._compile)

    def carry(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits``, a row, after the operators of the carrier that a case names.

        Raises Unsupported for a dtype, an operator or a kernel that openvino lacks in this variant,
        and in `cpu-folded`, which would compile a model for each tensor.
        """
        if self._variant == FOLDED:
            raise Unsupported(f"openvino:{FOLDED} carries nothing: it compiles each tensor")
        self._tensors.type(case.target)
        x = self._tensors.of_patterns(case.source, bits)
        lacking = partial(self._lacking, case)
        try:
            return self._tensors.patterns(case.target, self._answer(case, bits, x, lacking))
        except RuntimeError:
            reason = lacking()
            if not reason:
                raise
            raise Unsupported(reason) from None

    def _answer(self, case: Case, bits: Bits, x: Any, lacking: Lacking) -> Any:
        length = self._length(bits)
        if self._variant is None:
            [answer] = self._evaluate(self._model(case, length), [x], case.mode[CARRIER])
            return answer
        request = self._compiled(case, length).create_infer_request()
        request.set_input_tensor(x)
        self._plugin.run(request, lacking)
        return request.output_tensors[0]

    def _length(self, bits: Bits) -> int | None:
        """Return the length of rows in a model; None for any in `cpu-dynamic` alone.

        Where lengths are open, openvino's reference writes beyond the memory of a MaxPool's result.
        """
        return None if self._variant == "cpu-dynamic" else bits.size

    def _read(self, case: Case, length: int | None) -> Any:
        return self._read_onnx(self._models.with_input(case, length))

    def _compile(self, case: Case, length: int | None) -> Any:
        return self._plugin.compile(self._model(case, length), nothing)

    def _lacking(self, case: Case) -> str:
        """Return the reason if openvino lacks a carrier for these dtypes, else an empty text."""
        usual = replace(case, source="float32", target="float32", modes=((CARRIER, USUAL),))
        calls = (partial(self._answer_to_zero, each) for each in (case, usual))
        words = f"openvino runs no {case.mode[CARRIER]} from {case.source} to {case.target}"
        return words if is_lacking((RuntimeError,), *calls) else ""

    def _answer_to_zero(self, case: Case) -> None:
        zero = np.zeros(1, format_named(case.source).storage)
        self._answer(case, zero, self._tensors.of_patterns(case.source, zero), nothing)

    def script(self, case: Case, bits: Bits) -> str:
        """Return a script, without its first line, that carries ``bits`` and prints the answers."""
        entry, memory, packed = format_named(case.source), "bits", ""
        if is_packed(entry):
            memory, packed = "packed", PACK.format(bits=entry.bits)
        given = f"ov.Tensor({memory}, [bits.size], ov.Type.{self._tensors.name(case.source)})"
        script = (
            IMPORTS
            + f"{bits_statement(case.source, bits)}\n"
            + packed
            + self._models.statement(case, self._length(bits))
            + READ
            + self._run_statements({"x": given})
        )
        patterns = patterns_expression(case.target, self._result_text(0), bits.size)
        return script + print_statement(case.source, case.target, bits, patterns)
