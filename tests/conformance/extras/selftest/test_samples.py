"""The samples of quantization in the self test have one right answer in every document."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from conformance.extras.selftest.samples import sample, sample_cases
from conformance.families import NAMED_TENSORS
from conformance.families.blocks.grading import GradedBlocks
from conformance.families.blocks.ruling import block_ruling
from conformance.families.quantization.exact import dynamic_scale, dynamic_zero_point
from conformance.families.quantization.grading import allowed
from conformance.families.quantization.ruling import formula
from oracles.protocol import Bits
from oracles.registry import load_backend
from specs.cases import Case
from specs.formats import formats
from specs.loader import documents

CASES = {
    operation: [
        case
        for cases in sample_cases(load_backend("reference"), operation, formats()).values()
        for case in cases
    ]
    for operation in NAMED_TENSORS
}


def only(tensor: Bits) -> int:
    return int(tensor.reshape(()) if tensor.ndim == 0 else tensor.reshape(-1)[0])


def element_answers(case: Case) -> Iterator[tuple[int, tuple[int, ...], bool]]:
    """Yield the code of each element of a sample, the codes allowed, and whether it is open."""
    asked = sample(case)
    scale, zero = (only(asked.tensors[name]) for name in ("scale", "zero"))
    for x, y in zip(asked.tensors["x"].tolist(), asked.results["y"].tolist(), strict=True):
        found = allowed(formula(case), x, scale, zero)
        yield y, found.codes + found.weaker, found.is_open


@pytest.mark.parametrize("operation", ["quantize", "dequantize"])
def test_each_element_has_one_answer(operation: str) -> None:
    distinct = {  # A sample is the same in every version.
        (case.document, case.source, case.target, case.modes): case
        for case in CASES[operation]  # type: ignore[index]
    }
    for case in distinct.values():
        for code, codes, is_open in element_answers(case):
            assert (codes, is_open) == ((code,), False), case.id


def test_a_dynamic_quantization_has_one_answer() -> None:
    [case] = CASES["dynamic-quantize"]
    asked, rules = sample(case), formula(case)
    xs, scale = asked.tensors["x"].tolist(), only(asked.results["scale"])
    assert dynamic_scale(rules, xs).codes == (scale,) == (0x3F800000,)
    assert dynamic_zero_point(rules, xs, scale).codes == (only(asked.results["zero"]),) == (0,)
    assert asked.results["y"].tolist() == list(range(1, 256))


@pytest.mark.parametrize("operation", ["block-quantize", "block-dequantize"])
def test_a_block_has_one_answer(operation: str) -> None:
    for case in CASES[operation]:  # type: ignore[index]
        asked = sample(case)
        graded = GradedBlocks(block_ruling(case), asked.tensors, asked.results)
        assert not graded.shape_fault
        for name, expected in graded.expected.items():
            assert not expected.is_open.any(), case.id
            assert not graded.wrong[name].any(), case.id
        assert np.count_nonzero(asked.results["y"]) == 1, case.id


def test_every_document_of_quantization_has_samples() -> None:
    known = {name for name, each in documents().items() if each.entry.operation in NAMED_TENSORS}
    assert {case.document for cases in CASES.values() for case in cases} == known


def test_tensors_are_of_the_dtypes_that_a_program_has() -> None:
    found = sample_cases(load_backend("reference"), "quantize", ["float32", "int8"])
    assert list(found) == ["float32 to int8"]
    assert {case.mode["scale"] for case in found["float32 to int8"]} == {"float32"}
