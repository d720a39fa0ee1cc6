"""The client sends requests, and turns whatever a backend does into a reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformance.families.bitcast.bits import Bitcast, SharesMemory
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.client import Client
from oracles.backend.loading import close, load_isolated
from oracles.backend.remote_errors import ProcessDied
from oracles.backend.replies import Answered, Declined, Malformed, Raised, Reply
from oracles.backend.requests import (
    Cast,
    CastAtOnce,
    CastBatch,
    MakeCall,
    Request,
    Road,
    Script,
)
from oracles.memory_layouts import TensorBatch
from oracles.protocol import Returned, Tensor, Unsupported
from oracles.registry import Backend
from specs.case_calls import call_of
from specs.selection import case_named

ADAPTERS = Path(__file__).with_name("data") / "hostile.py"
COUNTING = Path(__file__).parents[1] / "isolation" / "data" / "counting.py"
TO_INT4 = case_named("onnx-cast:25/uint8/int4")
TO_INT8 = case_named("onnx-cast:25/uint8/int8")
XLA = "xla-bitcast-convert:2023"
BITCAST = case_named(f"{XLA}/float32/int32/shape:3")
TO_UINT4 = case_named(f"{XLA}/int4/uint4/shape:3")
CALL = case_named("paddle-tensor-to:1.0/int8/int16/form:name")
ROW = np.arange(3, dtype=np.uint8)
WORDS = ROW.astype(np.uint32)


def client_of(**methods: Any) -> Client:
    """A client of an oracle in this process."""
    without_cast = {"name": "planted", "version": "0", "cast": lambda case, bits: bits}
    return Client(Backend("planted", SimpleNamespace(**without_cast | methods)))


def replies(request: Request, **methods: Any) -> Reply:
    [reply] = client_of(**methods).send([request])
    return reply


def make_call(bits: Any) -> MakeCall:
    return MakeCall(CALL, call_of(CALL), {"": bits})


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (Bitcast(BITCAST, WORDS), "planted has no bitcast"),
        (SharesMemory(BITCAST, WORDS), "planted does not say where a bitcast's result lies"),
        (make_call(ROW), "planted makes no calls of paddle-tensor-to"),
        (CastAtOnce(TO_INT8, [ROW]), "planted is asked by one thread only"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_request_that_the_oracle_does_not_offer_is_declined(request_: Request, text: str) -> None:
    assert replies(request_) == Declined(text)


def test_without_the_methods_a_case_is_its_own_road_and_has_no_script() -> None:
    found = client_of().send([Road(TO_INT8), Script(Cast(TO_INT8, ROW))])
    assert found == [Answered(TO_INT8.id), Answered("")]


class Subarray(np.ndarray):  # type: ignore[type-arg]
    pass


# Casts are in test_hostile_adapters.py.
MALFORMED: list[tuple[Any, Any, str]] = [
    (BITCAST, None, "the answer is NoneType, not a numpy array"),
    (BITCAST, [0, 1, 2], "the answer is list, not a numpy array"),
    (BITCAST, WORDS.view(Subarray), "the answer is Subarray, not a numpy array"),
    (BITCAST, WORDS.astype(np.uint64), "the answer's storage is uint64, int32 is held in uint32"),
    (TO_UINT4, ROW | 0xF0, "the answer holds 0xf2, wider than uint4"),
    (TO_UINT4, np.uint8(0xF2), "the answer holds 0xf2, wider than uint4"),
    (BITCAST, np.int8(1), "the answer's storage is int8, int32 is held in uint32"),
    (BITCAST, 1, "the answer is int, not a numpy array"),
    (CALL, None, "the answer is NoneType, not a Returned"),
    (CALL, ROW, "the answer is ndarray, not a Returned"),
]


@pytest.mark.parametrize(("case", "answer", "text"), MALFORMED)
def test_a_malformed_answer_says_what_it_is(case: Any, answer: Any, text: str) -> None:
    request = make_call(ROW) if case is CALL else Bitcast(case, ROW)
    found = replies(request, bitcast=lambda *_: answer, call=lambda *_: answer)
    assert found == Malformed(text)


@pytest.mark.parametrize("request_", [Cast(TO_INT8, ROW[1]), Bitcast(BITCAST, WORDS[1])])
def test_a_numpy_scalar_is_an_array_of_rank_0(request_: Any) -> None:
    def answers(_: Any, bits: Any) -> Any:
        return bits[()]

    found: Any = replies(request_, cast=answers, bitcast=answers)
    assert (type(found.value), found.value.shape, found.value.tolist()) == (np.ndarray, (), 1)


def test_a_numpy_scalar_is_no_answer_to_a_row_of_one_element() -> None:
    found = replies(Cast(TO_INT8, ROW[:1]), cast=lambda _, bits: bits[0])
    assert found == Malformed("the answer has shape (), the input (1,)")


def test_a_backend_that_exits_does_not_end_the_run() -> None:
    def exits(*_: Any) -> Any:
        raise SystemExit(3)

    for request in (Cast(TO_INT8, ROW), Bitcast(BITCAST, WORDS), make_call(ROW)):
        found = replies(request, cast=exits, bitcast=exits, call=exits)
        assert isinstance(found, Raised)
        assert found.text == "RuntimeError: it wanted to end the run: SystemExit: 3"


@pytest.mark.parametrize("kind", ["cast", "bitcast", "call"])
def test_what_a_backend_writes_into_its_inputs_reaches_nobody(kind: str) -> None:
    given = np.array([1, 2, 3], np.uint8 if kind != "bitcast" else np.uint32)
    kept = given.copy()

    def overwrites(case: Any, *sent: Any) -> Any:
        bits = sent[-1][""] if kind == "call" else sent[-1]
        bits[...] = 0
        found = {"": Tensor("int16", "cpu", bits.astype(np.uint16))}
        return Returned(False, False, found, found) if kind == "call" else bits

    request = {"cast": Cast(TO_INT8, given), "bitcast": Bitcast(BITCAST, given)}.get(kind)
    found: Any = replies(request or make_call(given), **{kind: overwrites})
    answer = found.value.tensors[""].bits if kind == "call" else found.value
    assert (given.tolist(), answer.tolist()) == (kept.tolist(), [0, 0, 0])


def test_a_buffer_that_a_backend_uses_again_does_not_change_an_earlier_answer() -> None:
    buffer = np.zeros(3, np.uint8)

    def writes(case: Any, bits: Any) -> Any:
        buffer[...] = bits
        return buffer

    first, second = client_of(cast=writes).send([Cast(TO_INT8, ROW), Cast(TO_INT8, ROW + 1)])
    assert (first.value.tolist(), second.value.tolist()) == ([0, 1, 2], [1, 2, 3])


def batch_of(cast: Callable[..., Any]) -> list[Reply]:
    """The replies to a batch of tensors that begin with 0, 1, 2 and 3."""
    tensors = [ROW, ROW[1:], ROW[2:], ROW[:1] + 3]
    [reply] = client_of(cast=cast).send([CastBatch(TO_INT8, TensorBatch.of(tensors))])
    return [*reply.value.each()]


def at(first: int, error: Exception | None = None) -> Callable[..., Any]:
    """Return bits unchanged, but raise an error, or return None, for one tensor of a batch."""

    def cast(case: Any, bits: Any) -> Any:
        if bits[0] != first:
            return bits
        if error is not None:
            raise error
        return None

    return cast


def test_the_replies_to_a_batch_end_with_the_first_missing_answer() -> None:
    assert [each.value.tolist() for each in batch_of(at(9))] == [[0, 1, 2], [1, 2], [2], [3]]
    _, declined, third, fourth = batch_of(at(1, Unsupported("not this one")))
    assert declined == Declined("not this one")
    assert (third.value.tolist(), fourth.value.tolist()) == ([2], [3])
    _, _, raised = batch_of(at(2, ValueError("no")))
    assert isinstance(raised, Raised)
    _, _, malformed = batch_of(at(2))
    assert malformed == Malformed("the answer is NoneType, not a numpy array")


def test_shared_batches_are_cast_once_for_each_road() -> None:
    asked: list[str] = []

    def cast(case: Any, bits: Any) -> Any:
        asked.append(case.id)
        return bits

    batch = TensorBatch.of([ROW])
    names = [f"onnx-cast:{version}/uint8/int8" for version in (13, 24, 25)]
    names.append("onnx-cast:25/uint8/uint8")
    requests = [CastBatch(case_named(name), batch, is_shared=True) for name in names]
    client_of(cast=cast, road=lambda case: f"{case.source}->{case.target}").send(requests)
    assert asked == [names[0], names[3]]
    asked.clear()
    # A backend that fails to name a road shares nothing.
    client_of(cast=cast, road=lambda case: 1 // 0).send(requests)
    assert asked == names


@pytest.fixture
def isolated(request: pytest.FixtureRequest) -> Iterator[Client]:
    backend = load_isolated(request.param, LaunchConfig(seconds=20.0))
    yield Client(backend)
    close(backend)


@pytest.mark.parametrize("isolated", [f"{ADAPTERS}:OneBuffer"], indirect=True)
def test_an_answer_in_a_batch_is_kept_while_the_next_one_is_made(isolated: Client) -> None:
    """The backend answers in one buffer, so users would lose the first answer as well."""
    rows = [np.zeros(3, np.uint16), np.full(3, 0x3C00, np.uint16)]
    [reply] = isolated.send(
        [CastBatch(case_named("onnx-cast:25/float16/float32"), TensorBatch.of(rows))]
    )
    first, second = (answer.value.tolist() for answer in reply.value.each())
    assert first == second


@pytest.mark.parametrize("isolated", [f"{ADAPTERS}:WideScalars"], indirect=True)
def test_answers_that_come_together_are_checked_as_single_ones_are(isolated: Client) -> None:
    batch = TensorBatch.of([ROW, ROW[0], ROW])
    [reply] = isolated.send([CastBatch(TO_INT4, batch)])
    first, scalar = reply.value.each()
    assert first.value.tolist() == [0, 1, 2]
    assert scalar == Malformed("the answer holds 0xff, wider than int4")


@pytest.mark.parametrize("isolated", [f"{COUNTING}:Counts"], indirect=True)
def test_after_three_lost_messages_every_request_is_sent_alone(
    isolated: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    supervisor: Any = isolated.backend.oracle._supervisor
    send = supervisor.ask

    def losing(message: Any, arrays: Any, seconds: float) -> Any:
        sent.append(message["ask"])
        if message["ask"] == "many":
            raise ProcessDied("the process was ended by SIGSEGV")
        return send(message, arrays, seconds)

    monkeypatch.setattr(supervisor, "ask", losing)
    for lost in (["many"], ["many"], ["many"], []):
        isolated.send([Cast(TO_INT8, ROW), Cast(TO_INT8, ROW + 1)])
        assert sent == [*lost, "cast", "cast"]
        sent.clear()
