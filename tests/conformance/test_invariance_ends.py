"""Verdicts on a pair whose invariance test ends early or must use few tensors."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.kinds.invariances import Invariances
from conformance.kinds.shape_choice import shape_of_pair
from oracles.backend.requests import Cast, CastBatch
from tests.conformance import feeding
from tests.conformance.data.placed import Compiles
from tests.conformance.feeding import answering, feed, planted
from tests.conformance.test_invariances import INT8, cases, judged

COMPILES = planted(compiles_shapes=True, max_examples=20)


@pytest.mark.parametrize(
    ("name", "verdicts", "message"),
    [
        # A forbidden change counts for more than a tensor that is not answered.
        ("RaisesLater", ("violates", "deviates"), "in one row"),
        # A tensor that is not answered counts for more than open answers.
        ("OpenRaisesLater", ("error",), "shape (): ValueError: no such rank"),
        ("DiesOfScalars", ("crashed",), "SIGSEGV"),
    ],
)
def test_the_gravest_result_is_the_verdict(
    name: str, verdicts: tuple[str, ...], message: str
) -> None:
    found = judged(name)
    assert found.verdict in verdicts
    assert message in found.message


def test_where_shapes_are_costly_one_more_shape_is_asked_in_two_layouts_at_most() -> None:
    asked: list[Any] = []
    feed(Invariances(COMPILES, cases(*INT8)).judge(), answering(cast=Compiles().cast), asked)
    [row] = [each.bits for each in asked if isinstance(each, Cast)]
    batches = [each.batch for each in asked if isinstance(each, CastBatch)]
    again = {(each.shape, each.strides) for batch in batches for each in batch.tensors()}
    assert {shape for shape, _ in again} == {shape_of_pair("/".join(INT8)), row.shape}
    assert len(again) <= 3


def test_where_shapes_are_costly_a_refusal_is_awaited_in_a_shape_that_is_there() -> None:
    asked: list[Any] = []
    answer = answering(cast=Compiles().cast)
    found = feeding.judged("onnx-cast:25/float32/int4", answer, COMPILES, asked)
    assert found.verdict != "error"
    row = asked[0].bits.shape
    asked.clear()
    assert feeding.judged("onnx-cast:1/float32/int4", answer, COMPILES, asked).inputs == row[0]
    assert [each.bits.shape for each in asked if isinstance(each, Cast)] == [row]
