"""Requests to quantize and their answers carry tensors by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conformance.families.named_tensors import AboutTensors
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.client import Client
from oracles.backend.loading import close, load_isolated
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, Reply
from oracles.backend.requests import CastBatch, Script
from oracles.memory_layouts import TensorBatch
from specs.selection import case_named

DATA = Path(__file__).with_name("data")
CASE = case_named("onnx-quantize-linear:19/float32/uint8/scale:float32/form:tensor")
DYNAMIC = case_named("onnx-dynamic-quantize-linear:11/float32/uint8")
X, SCALE, ZERO = (np.array(each, np.uint8) for each in ([9, 8], [2, 3], [1, 0]))


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    backend = load_isolated(f"{DATA}/{request.param}", LaunchConfig(seconds=20.0))
    yield Client(backend)
    close(backend)


def adapter(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("client", [name], indirect=True)


def with_and_without_zero() -> list[AboutTensors]:
    given = {"x": X, "scale": SCALE}
    return [AboutTensors(CASE, given), AboutTensors(CASE, given | {"zero": ZERO})]


def codes(reply: Reply) -> list[int]:
    assert isinstance(reply, Answered), reply
    found: list[int] = reply.value["y"].tolist()
    return found


@adapter("quantizing.py:Quantizes")
@pytest.mark.parametrize("is_alone", [True, False])
def test_tensors_go_and_come_by_name(client: Client, is_alone: bool) -> None:
    asked = with_and_without_zero()
    replies = [client.send([each])[0] for each in asked] if is_alone else client.send(asked)
    assert [*map(codes, replies)] == [[7, 5], [8, 5]]


@adapter("quantizing.py:Quantizes")
def test_a_script_is_written_about_the_tensors(client: Client) -> None:
    [reply] = client.send([Script(with_and_without_zero()[1])])
    assert isinstance(reply, Answered)
    assert reply.value == "quantize(x, scale, zero)"


@adapter("quantizing.py:ReturnsAnArray")
def test_an_array_alone_is_malformed(client: Client) -> None:
    [reply] = client.send(with_and_without_zero()[:1])
    assert isinstance(reply, Malformed)
    assert "ndarray" in reply.text


@adapter("quantizing.py:ForgetsTheScale")
def test_a_missing_result_is_malformed(client: Client) -> None:
    [reply] = client.send([AboutTensors(DYNAMIC, {"x": X})])
    assert isinstance(reply, Malformed)
    assert reply.text == "the answer has no tensor `scale`"


@adapter("quantizing.py:ReturnsScalars")
def test_numpy_scalars_among_the_results_are_arrays_of_rank_0(client: Client) -> None:
    [reply] = client.send([AboutTensors(DYNAMIC, {"x": X.astype(np.uint32)})])
    assert isinstance(reply, Answered), reply
    found = {name: (each.shape, each.tolist()) for name, each in reply.value.items()}
    assert found == {"y": ((2,), [9, 8]), "scale": ((), 9), "zero": ((), 8)}


@adapter("quantizing.py:ListsTheScale")
@pytest.mark.parametrize("count", [1, 2])
def test_a_result_that_is_no_array_is_described_itself(client: Client, count: int) -> None:
    request = AboutTensors(DYNAMIC, {"x": X.astype(np.uint32)})
    for reply in client.send([request] * count):
        assert reply == Malformed("the answer is list, not a numpy array")


@adapter("../../conformance/data/hostile.py:Scalars")
def test_a_batch_may_hold_tensors_of_rank_0(client: Client) -> None:
    tensors = [X[:1], np.array(X[0]), X]
    [reply] = client.send(
        [CastBatch(case_named("onnx-cast:25/uint8/int8"), TensorBatch.of(tensors))]
    )
    assert isinstance(reply, Answered)
    assert reply.value.elements.tolist() == [9, 9, 9, 8]


@adapter("quantizing.py:Dies")
def test_a_crash_is_a_crash(client: Client) -> None:
    replies = client.send(with_and_without_zero())
    assert all(isinstance(each, Crashed) for each in replies)


@adapter("counting.py:Counts")
def test_who_has_no_method_declines(client: Client) -> None:
    [reply] = client.send(with_and_without_zero()[:1])
    assert isinstance(reply, Declined)
    assert "does not quantize" in reply.text
