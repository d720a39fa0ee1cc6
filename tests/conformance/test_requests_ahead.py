"""The judge sends its first requests ahead, and names with each all cases that make it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings
from conformance.judging.requests_ahead import ask_ahead

from oracles.protocol import AheadRequest
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from oracles.tensor_batch import BatchAnswers, TensorBatch
from specs.cases import Case
from specs.selection import case_named, select


class Takes:
    """Takes requests ahead, and notes what it is asked."""

    name = "takes"
    version = "1"

    def __init__(self) -> None:
        self.ahead: list[AheadRequest] = []

    def ask_ahead(self, requests: Sequence[AheadRequest]) -> None:
        self.ahead += requests

    def cast(self, case: Case, bits: Any) -> Any:
        raise AssertionError("nothing is judged here")

    bitcast = cast
    cast_batch = cast


def requests_of(cases: list[Case]) -> list[AheadRequest]:
    oracle = Takes()
    ask_ahead(BackendJudge(Backend("takes", oracle), {}, Settings()), cases)
    return oracle.ahead


def wanted(requests: Sequence[AheadRequest]) -> Counter[tuple[object, ...]]:
    """How often each case makes each request, with the bytes that it sends."""
    return Counter(
        (each.method, case, _content(each.tensors)) for each in requests for case in each.cases
    )


def _content(tensors: Any) -> tuple[object, ...]:
    if isinstance(tensors, TensorBatch):
        return tuple(tensors.shapes), tensors.elements.tobytes()
    return tensors.shape, np.asarray(tensors).tobytes()


@pytest.mark.parametrize("pair", ["float16/int8", "uint8/uint8", "float8e5m2/uint4"])
def test_requests_for_all_cases_are_those_of_each_case(pair: str) -> None:
    documents = ["onnx-cast", "onnx-bitcast", "xla-bitcast-convert", "torch-view"]
    cases = [case for case in select(documents) if f"{case.source}/{case.target}" == pair]
    requests = requests_of(cases)
    # One request alone is not sent ahead, so each case is asked twice.
    twice = sum((wanted(requests_of([case, case])) for case in cases), Counter())
    assert wanted(requests + requests) == twice
    assert len(requests) < sum(len(each.cases) for each in requests)


def test_a_request_that_a_case_makes_twice_is_sent_twice() -> None:
    """The judge asks a tensor twice if the document leaves bits of its answer open."""
    requests = requests_of(select(["cinn-bitcast-convert"]))
    twice = [key for key, times in wanted(requests).items() if times > 1]
    assert twice
    assert all(len(set(each.cases)) == len(each.cases) for each in requests)


class WideInBatches:
    """Right in one row; in a batch, it fills every code with bits beyond the format."""

    name = "wide"
    version = "1"

    def cast(self, case: Case, bits: Any) -> Any:
        return Reference().cast(case, bits)

    def cast_batch(self, case: Case, batch: TensorBatch) -> BatchAnswers:
        return BatchAnswers(np.full(batch.elements.shape, 0xFF, np.uint8), len(batch.shapes))


def test_answers_of_a_batch_are_checked_as_single_ones_are() -> None:
    judge = BackendJudge(Backend("wide", WideInBatches()), {}, Settings())
    judgement = judge.judge(case_named("onnx-cast:25/uint8/int4"))
    assert (judgement.verdict, judgement.message) == (
        "violates",
        "shape (): the answer holds 0xff, wider than int4",
    )
