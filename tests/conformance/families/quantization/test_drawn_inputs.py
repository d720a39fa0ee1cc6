"""A drawn tensor's expected codes equal those that the kernels compute for each element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.families.named_tensors import AboutTensors
from conformance.families.quantization.grading import Elements, expect_by_kernels
from conformance.families.quantization.inputs import drawn_requests
from conformance.families.quantization.kernels import NO_CODE, Codes, quantize
from conformance.families.quantization.ruling import formula
from oracles.backend.replies import Reply, attempt
from specs.selection import case_named
from tests.conformance.feeding import judged

DRAWS = 24


@pytest.mark.parametrize(
    "name",
    [
        "onnx-quantize-linear:21/float32/uint8/scale:float32/form:tensor",
        "onnx-quantize-linear:21/float16/int4/scale:float16/form:axis",
        "onnx-quantize-linear:21/bfloat16/float8e4m3fn/scale:bfloat16/form:block/block:16/saturate:1",
        "onnx-dequantize-linear:21/int8/float32/scale:float32/form:axis",
    ],
)
def test_drawn_elements_are_expected_as_if_they_were_listed(name: str) -> None:
    case = case_named(name)
    rules, compared = formula(case), 0
    for given in drawn_requests(case, 5, DRAWS):
        if given.drawn is None or given.zeros is None:
            continue
        compared += 1
        x, scales, zeros = (
            each.reshape(-1) for each in (given.tensors["x"], given.scales, given.zeros)
        )
        anew = expect_by_kernels(rules, Elements(x, scales, zeros))
        found = expect_by_kernels(rules, given.drawn.elements).at(given.drawn.picks)
        assert np.array_equal(given.drawn.elements.x[given.drawn.picks], x)
        assert named(found.strong, x.size) == named(anew.strong, x.size)
        assert named(found.weaker, x.size) == named(anew.weaker, x.size)
        assert np.array_equal(found.is_open, anew.is_open)
        assert np.array_equal(found.is_recommended, anew.is_recommended)
    assert compared > DRAWS // 2


def named(codes: list[Codes], size: int) -> list[set[int]]:
    """The patterns that columns of codes name for each element."""
    columns = [each.tolist() for each in codes]
    return [{column[at] for column in columns} - {NO_CODE} for at in range(size)]


@pytest.mark.parametrize(
    ("fails", "is_drawn"), [(False, True), (True, False)], ids=["answers", "answers none"]
)
def test_tensors_are_drawn_only_for_a_backend_that_answers_a_listed_one(
    fails: bool, is_drawn: bool
) -> None:
    def answer(request: Any) -> Reply:
        if fails or not isinstance(request, AboutTensors):
            return attempt(lambda: 1 / 0)
        return attempt(lambda: quantize(request.case, request.tensors))

    asked: list[Any] = []
    judged("onnx-quantize-linear:25/float32/int8/scale:float32/form:axis", answer, asked=asked)
    requests = [each for each in asked if isinstance(each, AboutTensors)]
    # One is listed, and one has the number for a script.
    assert (len(requests) > 2) == is_drawn
