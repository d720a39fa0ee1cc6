"""Recorded blocks: what is allowed for each scale and element, and the tensors of a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from conformance.families.blocks.grading import GradedBlocks
from conformance.families.blocks.inputs import block_inputs
from conformance.families.blocks.kernels import (
    QUESTIONS,
    Blocks,
    allowed_codes,
    answer_blocks,
    scales,
)
from conformance.families.blocks.ruling import GLOBAL_DTYPE, BlockRuling, block_ruling
from conformance.families.family import GradedTensor, Rule, TensorFunctions, TensorsByName
from conformance.families.quantization.grading import graded_result
from conformance.families.quantization.kernels import ANY_NAN, ExpectedCodes
from oracles.protocol import Bits
from reports.grading.allowed_answers import is_nan
from specs.cases import Case, Shape
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.operations import GLOBAL, SCALE, X, Y


def results(
    case: Case, tensors: TensorsByName, answer: TensorsByName | None
) -> Iterator[GradedTensor]:
    """Yield each tensor that a case returns, beside what is allowed for its elements.

    When it quantizes, these are the scales of blocks, and the codes by the returned scales; when it
    decodes, the numbers. If ``answer`` is None, for a recorded error, only the first is yielded.
    """
    ruling = block_ruling(case)
    graded = GradedBlocks(ruling, tensors, answer or {})
    source, size = format_named(case.source), ruling.size
    if not ruling.is_decoding:
        largest = graded.largest_patterns.reshape(-1)
        expected = scales(ruling, graded.x, graded.global_scale)
        yield _block_result(
            (SCALE, ruling.scale),
            ruling,
            (expected, [expected.codes]),
            answer,
            (source, largest),
            lambda at: {"largest": source.hexadecimal(int(largest[at]))},
        )
        if answer is None:
            return
    expected = graded.expected[Y]
    every = [expected.codes] if ruling.is_decoding else allowed_codes(ruling, expected)
    x, scale = graded.x.reshape(-1), graded.unblocked(np.repeat(graded.scale, size, axis=-1))
    yield _block_result(
        (Y, ruling.number if ruling.is_decoding else ruling.element),
        ruling,
        (expected, every),
        answer,
        (source, x),
        lambda at: {
            X: source.hexadecimal(int(x[at])),
            SCALE: ruling.scale.hexadecimal(int(scale.reshape(-1)[at])),
        },
    )


def _block_result(
    named: tuple[str, Format],
    ruling: BlockRuling,
    due: tuple[Blocks, Sequence[Bits]],
    answer: TensorsByName | None,
    inputs: tuple[Format, Bits],
    given: Callable[[int], dict[str, str]],
) -> GradedTensor:
    name, form = named
    expected, every = due
    asked = expected.asked.reshape(-1)

    def rule(at: int) -> Rule:
        found = ruling.answers[QUESTIONS[asked[at]]]
        return Rule(found.rule, found.level, found.clause)

    levels = np.array([ruling.levels.get(each, "") for each in QUESTIONS])
    # If a block decodes to a NaN, any NaN is allowed.
    strong = [
        np.where(is_nan(form, codes) & ruling.is_decoding, ANY_NAN, codes.astype(np.int64))
        for codes in every
    ]
    return graded_result(
        name,
        form,
        expected.codes.shape,
        None if answer is None else answer[name],
        ExpectedCodes(
            [codes.reshape(-1) for codes in strong],
            [],
            expected.is_open.reshape(-1),
            levels[asked] == "recommended",
        ),
        inputs,
        rule,
        given,
    )


def listed(case: Case, seed: int, most: int) -> Iterator[TensorsByName]:
    """Yield ``block_inputs`` in parts of whole rows: one row, or at most ``most`` elements."""
    for each in block_inputs(block_ruling(case), seed):
        x = each.tensors[X]
        count = max(1, most // x.shape[-1])
        for at in range(0, len(x), count):
            yield {
                name: values[at : at + count] if values.ndim else values
                for name, values in each.tensors.items()
            }


def shapes(case: Case, x: Shape) -> Iterator[tuple[str, Sequence[Shape]]]:
    """Yield each tensor of scales by name, with the shapes that it may have beside ``x``.

    ``x`` is a shape. Raises CastigateError if it has no dimensions.
    """
    if not x:
        raise CastigateError("`input.x` has no dimension along which blocks could lie")
    yield SCALE, [(*x[:-1], -(-x[-1] // block_ruling(case).size))]
    yield GLOBAL, [()]


def sample(case: Case) -> dict[str, Bits]:
    """Return the tensors of one block: a one and zeros, as numbers or as codes with scale one."""
    ruling = block_ruling(case)
    one = ruling.element.one_code if ruling.is_decoding else ruling.number.one_code
    x = np.zeros((1, ruling.size), format_named(case.source).storage)
    x[0, 0] = one
    tensors = {X: x}
    if ruling.is_decoding:
        tensors[SCALE] = np.full((1, 1), ruling.scale.one_code, ruling.scale.storage)
    if ruling.has_global:
        whole = format_named(GLOBAL_DTYPE)
        tensors[GLOBAL] = np.array(whole.one_code, whole.storage)
    return tensors


TENSORS = TensorFunctions(
    answer_blocks,
    results,
    sample,
    listed,
    shapes,
    optional=lambda _: (),
    cut=lambda _: "between rows",
)
