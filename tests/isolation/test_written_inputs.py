"""A backend that changes the tensor it is given is found, however right its answers are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.families.bitcast.bits import Bitcast
from conformance.judging.asking import Settings
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.client import Client
from oracles.backend.loading import close, load_isolated
from oracles.backend.replies import Answered, Malformed
from oracles.backend.requests import Cast, CastBatch
from oracles.memory_layouts import TensorBatch
from oracles.registry import Backend
from reports.problems import WritesToInputs
from specs.selection import case_named

ADAPTER = Path(__file__).with_name("data") / "writing.py"
CASE = case_named("onnx-cast:25/uint8/int8")
VIEW = case_named("torch-view:2/uint8/int8/shape:3")
ROW = np.array([1, 2, 3], np.uint8)


@pytest.fixture
def backend() -> Iterator[Backend]:
    loaded = load_isolated(f"{ADAPTER}:Writes", LaunchConfig(seconds=20.0))
    yield loaded
    close(loaded)


@pytest.mark.parametrize("request_", [Cast(CASE, ROW), Bitcast(VIEW, ROW)])
def test_an_answer_that_cost_its_input_is_none(backend: Backend, request_: Cast | Bitcast) -> None:
    [reply] = Client(backend).send([request_])
    assert isinstance(reply, Malformed)
    assert reply.writes_to_inputs


def test_in_a_batch_too(backend: Backend) -> None:
    [reply] = Client(backend).send([CastBatch(CASE, TensorBatch.of([ROW * 0, ROW]))])
    assert isinstance(reply, Answered)
    first, second = reply.value.each()
    assert not isinstance(first, Malformed)  # zeros were there before
    assert isinstance(second, Malformed)


@pytest.mark.parametrize("case", [CASE, VIEW])
def test_it_is_an_error_of_the_case(backend: Backend, case: object) -> None:
    found = BackendJudge(backend, {}, Settings()).judge(case)
    assert (found.verdict, [*map(type, found.problems)]) == ("error", [WritesToInputs])
