"""Berkeley SoftFloat 3, the C functions in the wheel of softfloatpy, called from compiled loops."""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from lab.truths.questions import Answers, Patterns, Question
from lab.truths.values import is_nan, values_of
from specs.formats import Format
from specs.model.vocabulary import Rounding

MODES: dict[Rounding, int] = {
    "nearest-even": 0, "toward-zero": 1, "floor": 2, "ceil": 3, "nearest-away": 4
}  # fmt: skip
FLOATS = {"float16": "f16", "float32": "f32", "float64": "f64"}
C_TYPES = {16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}
"""A float is a structure of one unsigned integer, which is passed as that integer is."""


class SoftFloat:
    """Convert by SoftFloat; narrow integers by way of its 32-bit ones, in which they are exact.

    It knows no integer out of range, as processors differ there.
    """

    name = "SoftFloat"
    package = "softfloatpy"
    most_inputs: int | None = None

    def version(self) -> str:
        return f"3 (softfloatpy {version('softfloatpy')})"

    def can_answer(self, question: Question) -> bool:
        source, target = question.source, question.target
        if question.rounding not in MODES or source == target:
            return False
        if source.name in FLOATS:
            bfloat = (source.name, target.name) == ("float32", "bfloat16")
            return target.name in FLOATS or target.kind == "integer" or bfloat
        if source.name == "bfloat16":
            return target.name == "float32"
        return source.is_integral and target.name in FLOATS

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        source, target = question.source, question.target
        mode = MODES[question.rounding]
        if target.is_integral:
            return _to_integer(question, patterns, mode)
        if source.is_integral:
            prefix, bits = _integer(source)
            inputs = values_of(source, patterns).astype(f"int{bits}").view(f"uint{bits}")
        else:
            prefix, bits, inputs = _float(source), source.bits, patterns
        codes = np.empty(inputs.size, target.storage)
        loop = _loop(f"{prefix}_to_{_float(target)}", bits, target.bits)
        _set_mode(mode)
        loop(inputs, codes)
        known = np.ones(codes.shape, bool)
        if question.overflow == "saturate":
            known = np.isfinite(values_of(target, codes)) | is_nan(source, patterns)
        return Answers(codes, known)


def _float(fmt: Format) -> str:
    return FLOATS.get(fmt.name, "bf16")


def _integer(fmt: Format) -> tuple[str, int]:
    bits = 64 if fmt.bits > 32 else 32
    return f"{'i' if fmt.is_signed else 'ui'}{bits}", bits


def _to_integer(question: Question, patterns: Patterns, mode: int) -> Answers:
    source, target = question.source, question.target
    prefix, bits = _integer(target)
    result = np.empty(patterns.size, f"uint{bits}")
    loop = _loop(f"{_float(source)}_to_{prefix}", source.bits, bits, mode)
    loop(patterns, result)
    values = values_of(source, patterns)
    top = 2.0 ** (bits - target.is_signed)
    # Whole numbers: what rounds up to the top is out of range in some rounding.
    known = (values <= top - 1 if bits == 32 else values < top) & (
        values >= (-top if target.is_signed else 0.0)
    )
    whole = (
        np.where(known, result, 0)
        .astype(f"uint{bits}")
        .view(f"int{bits}" if target.is_signed else f"uint{bits}")
    )
    if question.overflow == "saturate":
        largest = target.max_code
        lowest = -(largest + 1) if target.is_signed else 0
        whole = np.clip(whole, lowest, largest)
    codes = whole.astype(np.int64).view(np.uint64) if target.is_signed else whole.astype(np.uint64)
    return Answers((codes & np.uint64(target.mask)).astype(target.storage), known)


@cache
def _library() -> Any:
    return ctypes.CDLL(importlib.import_module("softfloatpy._core").__file__)


def _set_mode(mode: int) -> None:
    ctypes.c_uint8.in_dll(_library(), "softfloat_roundingMode").value = mode


@cache
def _loop(name: str, bits: int, target_bits: int, mode: int | None = None) -> Any:
    """Compile a loop that applies one of SoftFloat's functions to each element of an array.

    Functions to integers take the rounding ``mode`` as an argument; others have None.
    """
    numba: Any = importlib.import_module("numba")
    function = getattr(_library(), name)
    function.restype = C_TYPES[target_bits]
    more = [] if mode is None else [ctypes.c_uint8, ctypes.c_bool]
    function.argtypes = [C_TYPES[bits], *more]
    if mode is None:

        @numba.njit  # type: ignore[untyped-decorator]
        def loop(inputs: Any, codes: Any) -> None:
            for at in range(inputs.size):
                codes[at] = function(inputs[at])

        return loop

    @numba.njit  # type: ignore[untyped-decorator]
    def loop_by_mode(inputs: Any, codes: Any) -> None:
        for at in range(inputs.size):
            codes[at] = function(inputs[at], mode, True)

    return loop_by_mode
