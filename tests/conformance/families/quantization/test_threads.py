"""Public threads about quantization: their own numbers, and the mechanism that gives them.

Each row has what a thread asked, what was answered, and what was wanted. The document allows what
was wanted and forbids the answer, and the named mechanism gives that answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from conformance.families.quantization.kernels import expect
from conformance.families.quantization.ruling import formula
from conformance.families.quantization.wrongs import followed_ways
from specs.formats import format_named
from specs.selection import case_named

TENSOR = "onnx-quantize-linear:{}/{}/{}/scale:{}/form:tensor"
BACK = "onnx-dequantize-linear:{}/{}/{}/scale:{}/form:tensor"


class Thread(NamedTuple):
    """The numbers of one thread, and the mechanism behind its answers."""

    name: str
    case: str
    x: list[float]
    scale: float
    zero: int
    answered: list[float]
    wanted: list[float]
    mechanism: str


THREADS = [
    Thread(
        "microsoft/onnxruntime#18576",
        TENSOR.format(19, "float16", "int8", "float16"),
        [0.050018310546875, -0.050018310546875],
        0.0999755859375,
        0,
        [0, 0],
        [1, -1],
        "truncates-quotients",
    ),
    Thread(
        "microsoft/onnxruntime#25045, intel/onnxruntime#707",
        TENSOR.format(10, "float32", "int8", "float32"),
        [0, 2, 3, 5, 6, -2, -5, -6],
        0.039215686,
        23,
        [23, 74, 100, 127, 127, -28, -104, -128],
        [23, 74, 99, 127, 127, -28, -104, -128],
        "adds-zero-points-before-rounding",
    ),
    Thread(
        "sonos/tract pull 2850",
        TENSOR.format(10, "float32", "uint8", "float32"),
        [0.25, 0.75, 1.25, 1.75],
        0.5,
        0,
        [1, 2, 3, 4],
        [0, 2, 2, 4],
        "rounds-half-away",
    ),
    Thread(
        "microsoft/onnxruntime#3442",
        TENSOR.format(10, "float32", "int8", "float32"),
        [-129, -128, -127, -126, 126, 127, 128],
        1,
        0,
        [-127, -127, -127, -126, 126, 127, 127],
        [-128, -128, -127, -126, 126, 127, 127],
        "leaves-out-lowest-codes",
    ),
    Thread(
        "microsoft/onnxruntime#32578",
        BACK.format(21, "uint8", "float32", "float32"),
        [0, 10, 200],
        0.5,
        128,
        [64, 69, 36],
        [-64, -59, 36],
        "wraps-differences",
    ),
    Thread(
        "ROCm/aiter pull 4637",
        TENSOR.format(10, "float32", "int8", "float32"),
        [127.59999847412109, 1],
        1,
        0,
        [-128, 1],
        [127, 1],
        "wraps-codes",
    ),
    Thread(
        "NVIDIA/TensorRT#3009",
        TENSOR.format(13, "float32", "int8", "float32"),
        [0.5, 1.5, 2.5],
        1,
        0,
        [1, 2, 3],
        [0, 2, 2],
        "rounds-half-away",
    ),
    Thread(
        "ROCm/rocMLIR pull 2340: a cast's rounding toward zero where a quantization rounds",
        TENSOR.format(13, "float32", "int8", "float32"),
        [1.75, -1.75, 0.25],
        1,
        0,
        [1, -1, 0],
        [2, -2, 0],
        "truncates-quotients",
    ),
]


def patterns(dtype: str, values: list[float]) -> np.ndarray:
    """The patterns of values that a dtype has."""
    return np.array(values, np.float64).astype(dtype).view(format_named(dtype).storage)


@pytest.mark.parametrize("thread", THREADS, ids=lambda each: each.name)
def test_the_document_decides_a_thread_and_the_mechanism_is_named(thread: Thread) -> None:
    case = case_named(thread.case)
    rules, codes = formula(case), case.source if "dequantize" in thread.case else case.target
    x = patterns(case.source, thread.x)
    scale = np.full(x.shape, patterns(case.mode["scale"], [thread.scale]))
    zero = np.full(x.shape, patterns(codes, [thread.zero]))
    answered, wanted = (
        patterns(case.target, values) for values in (thread.answered, thread.wanted)
    )
    expected = expect(rules, x, scale, zero)
    allowed = np.zeros((2, *x.shape), bool)
    for codes_allowed in expected.strong:  # What is only weaker breaks a recommendation.
        allowed |= np.stack([answered, wanted]) == codes_allowed
    assert not expected.is_open.any()
    assert allowed[1].all()
    is_wrong = ~allowed[0]
    assert is_wrong.any()
    names = followed_ways(rules, x, {"": (scale, zero)}, answered, is_wrong, names_precision=False)
    assert thread.mechanism in names
