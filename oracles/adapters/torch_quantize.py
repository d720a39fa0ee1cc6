"""torch's quantization of tensors: `quantize_per_tensor` and `quantize_per_channel`.

Their docstrings speak of a quantization formula and state none. So torch claims no document of
quantization, and its codes are compared with those of documents that do. The variant `decomposed`
calls the operations of the same names that exported graphs have (`quantized_decomposed`), which
also dequantize, take 16-bit floats, and limit codes to fewer bits than their dtype has.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oracles.adapters.calls import ones
from oracles.adapters.refusals import first_line, is_lacking
from oracles.adapters.script_text import bits_statement
from oracles.adapters.scripted import function_of
from oracles.adapters.torch_tensors import DTYPES, TorchTensors
from oracles.memory_layouts import is_packed
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.vocabulary import AXIS, FORM, PRECISION, SCALE
from specs.operations import operation_of

QUANTIZED: Mapping[str, str] = {"uint8": "quint8", "int8": "qint8", "int32": "qint32"}
"""By the dtype of codes, torch's quantized dtype."""

DECOMPOSED = "torch.ao.quantization.fx._decomposed"
"""The module whose import registers the operations of exported graphs."""

REFUSALS = (RuntimeError, AssertionError, ValueError)
"""The classes of the errors with which torch refuses a dtype, and also what is wrong otherwise."""


class Parameters(NamedTuple):
    """A case's parameters as torch's operations take them.

    ``operation`` is `quantize` or `dequantize`, and ``limits`` are the lowest and the highest code.
    """

    operation: str
    is_per_channel: bool
    codes: str
    """The dtype of a tensor of codes; those of fewer bits are in the 8-bit dtype of their sign."""
    limits: tuple[int, int]


class Quantizer:
    """Quantizes by torch, or by the operations of exported graphs if it is ``decomposed``."""

    def __init__(self, torch: Any, tensors: TorchTensors, *, decomposed: bool) -> None:
        self._torch = torch
        self._tensors = tensors
        self._decomposed = decomposed
        if decomposed:
            importlib.import_module(DECOMPOSED)

    def quantize(self, case: Case, given: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return, as ``y``, the codes of ``x`` or, if the case dequantizes, the numbers.

        ``given`` has the tensors ``x``, ``scale`` and perhaps ``zero``. Raises Unsupported for an
        operation or a dtype that torch's quantization lacks, for blocks, and if the case has a
        `precision`.
        """
        parameters = self._parameters(case)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return {"y": self._answer(case, parameters, given)}
            except REFUSALS as error:
                plain, usual = (partial(self._quantize_one, each) for each in (case, _usual(case)))
                if not is_lacking(REFUSALS, plain, usual):
                    raise
                raise Unsupported(first_line(error)) from None

    def _quantize_one(self, case: Case) -> None:
        """Quantize or dequantize one zero by a scale of one, without a zero point."""
        scale = ones(case.mode[SCALE], (1,))
        x = np.zeros((1,) * (AXIS + 1), format_named(case.source).storage)
        self._answer(case, self._parameters(case), {"x": x, "scale": scale})

    def _parameters(self, case: Case) -> Parameters:
        modes, operation = dict(case.modes), operation_of(case)
        if operation not in ("quantize", "dequantize"):
            raise Unsupported(f"torch has no operation {operation}")
        if operation == "dequantize" and not self._decomposed:
            raise Unsupported("torch dequantizes only what it has quantized, torch:decomposed all")
        if PRECISION in modes:
            raise Unsupported("torch's quantization takes no precision")
        if modes[FORM] == "block":
            raise Unsupported("torch quantizes no blocks")
        if modes[SCALE] not in ("float32", "float16", "bfloat16"):
            raise Unsupported(f"torch's scales are floats, not {modes[SCALE]}")
        codes = case.target if operation == "quantize" else case.source
        entry, carrier = format_named(codes), codes
        if not self._decomposed and codes not in QUANTIZED:
            raise Unsupported(f"torch has no quantized dtype for {codes}")
        if entry.kind != "integer":
            raise Unsupported(f"torch's quantization has no codes of {codes}")
        if is_packed(entry):
            carrier = "int8" if entry.is_signed else "uint8"
        return Parameters(operation, modes[FORM] == "axis", carrier, _limits(entry))

    def _answer(self, case: Case, parameters: Parameters, given: Mapping[str, Bits]) -> Bits:
        dtype, x = _input(case, parameters, given["x"])
        statements = f"y = {self._call(case, parameters)}"
        answers = self._patterns(case, parameters)
        call = function_of({"torch": self._torch}, "x, scale, zero", statements, answers)
        tensor = self._tensors.tensor(dtype, x)
        found: Bits = call(tensor, self._scales(case, given), self._zeros(case, given)).copy()
        return found

    def _call(self, case: Case, parameters: Parameters) -> str:
        """Return the expression that calls an operation on ``x``, ``scale`` and ``zero``."""
        is_per_channel, quantizes = parameters.is_per_channel, parameters.operation == "quantize"
        dtype = parameters.codes if self._decomposed else QUANTIZED[parameters.codes]
        arguments = ["x, scale, zero", *([str(AXIS)] if is_per_channel else [])]
        arguments += map(str, parameters.limits if self._decomposed else ())
        arguments.append(f"torch.{dtype}")
        arguments += [] if quantizes else [f"out_dtype=torch.{DTYPES[case.target]}"]
        owner = "torch.ops.quantized_decomposed" if self._decomposed else "torch"
        function = f"{owner}.{parameters.operation}_per_{'channel' if is_per_channel else 'tensor'}"
        return f"{function}(\n    {', '.join(arguments)}\n)"

    def _patterns(self, case: Case, parameters: Parameters) -> str:
        """Return the expression of the patterns in y, the result of the operation."""
        quantizes = parameters.operation == "quantize"
        storage = format_named(parameters.codes if quantizes else case.target).storage
        mask = f" & {format_named(case.target).mask:#x}" if quantizes else ""
        y = "y" if self._decomposed else "y.int_repr()"
        return f"{y}.view(torch.{storage}).numpy(){mask}"

    def _scales(self, case: Case, given: Mapping[str, Bits]) -> Any:
        scales = self._tensors.tensor(dict(case.modes)[SCALE], given["scale"]).flatten()
        return scales.float() if dict(case.modes)[FORM] == "axis" else scales.double().item()

    def _zeros(self, case: Case, given: Mapping[str, Bits]) -> Any:
        """Return the zero point as an integer or, per channel, a tensor; zeros if none is given."""
        codes = case.target if operation_of(case) == "quantize" else case.source
        zeros = np.zeros(given["scale"].size, np.int64)
        if "zero" in given:
            zeros = _integers(format_named(codes), given["zero"]).ravel()
        is_per_channel = dict(case.modes)[FORM] == "axis"
        return self._torch.from_numpy(zeros.copy()) if is_per_channel else int(zeros[0])

    def statements(self, case: Case, given: Mapping[str, Bits]) -> str:
        """Return the statements of a script, without its header, that print the case's answers.

        Raises Unsupported as ``quantize`` does, but for what shows only when torch runs.
        """
        parameters = self._parameters(case)
        dtype, x = _input(case, parameters, given["x"])
        scale, zero = self._scales(case, given), self._zeros(case, given)
        if parameters.is_per_channel:
            scale, zero = f"torch.tensor({scale.tolist()})", f"torch.tensor({zero.tolist()})"
        return (
            (f"import {DECOMPOSED}\n\n" if self._decomposed else "\n")
            + f"{bits_statement(dtype, x, 'x')}\n"
            + f"x = torch.from_numpy(x).view(torch.{DTYPES[dtype]})\n"
            + f"scale, zero = {scale}, {zero}\n"
            + f"y = {self._call(case, parameters)}\n"
            + f"answers = {self._patterns(case, parameters)}\n"
            + 'print("y:", *map(hex, answers.ravel()))\n'
        )


def _usual(case: Case) -> Case:
    """Return the case with float32 and int8 as its dtypes."""
    quantizes = operation_of(case) == "quantize"
    source, target = ("float32", "int8") if quantizes else ("int8", "float32")
    modes = {**case.mode, SCALE: "float32"}
    return replace(case, source=source, target=target, modes=tuple(modes.items()))


def _input(case: Case, parameters: Parameters, bits: Bits) -> tuple[str, Bits]:
    """Return the dtype and the patterns of the tensor that the operation takes as ``x``.

    To be dequantized, codes of less than a byte are widened to 8 bits.
    """
    if parameters.operation == "quantize":
        return case.source, bits
    return parameters.codes, _widened(case.source, parameters.codes, bits)


def _limits(entry: Format) -> tuple[int, int]:
    low = -(1 << (entry.bits - 1)) if entry.is_signed else 0
    return low, low + entry.mask


def _integers(entry: Format, bits: Bits) -> Any:
    """Return the values of integer codes as 64-bit integers."""
    values = bits.astype(np.int64)
    return np.where(values > _limits(entry)[1], values - (1 << entry.bits), values)


def _widened(dtype: str, carrier: str, bits: Bits) -> Bits:
    """Return codes of an integer dtype as codes of ``carrier``, which has no fewer bits."""
    if dtype == carrier:
        return bits
    storage = format_named(carrier).storage
    return np.asarray(_integers(format_named(dtype), bits).astype(carrier).view(storage))
