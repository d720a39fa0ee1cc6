"""A round of requests travels in one message; each gets the reply that it would get alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families.bitcast.bits import Bitcast
from oracles.backend import isolated_oracle
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.client import Client
from oracles.backend.isolated_oracle import MESSAGE_BYTES, round_messages
from oracles.backend.loading import close, load_isolated
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, Raised, Reply
from oracles.backend.requests import Cast, CastAtOnce, CastBatch, Road, Script
from oracles.memory_layouts import Layout, TensorBatch, with_layout
from oracles.protocol import InputsChanged
from specs.selection import case_named

ADAPTER = Path(__file__).with_name("data") / "counting.py"
CASE, OTHER = case_named("onnx-cast:25/uint8/int8"), case_named("onnx-cast:24/uint8/int8")
NEWEST = case_named("onnx-cast:23/uint8/int8")
OTHER_TARGET = case_named("onnx-cast:24/uint8/int16")
BITCASTS = [
    case_named(f"{document}/uint8/int8/shape:3")
    for document in ("onnx-bitcast:26", "torch-view:2", "xla-bitcast-convert:2023")
]
GUILTY = 200
ROW = np.arange(1, 6, dtype=np.uint8)
THREE = ROW[:3]


@pytest.fixture(params=["Counts"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    backend = load_isolated(f"{ADAPTER}:{request.param}", LaunchConfig(seconds=20.0))
    yield Client(backend)
    close(backend)


def adapter(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("client", [name], indirect=True)


def values(replies: list[Reply]) -> list[Any]:
    """The first element of each answer, which says by which call it was made."""
    return [int(each.value[0]) if isinstance(each, Answered) else each for each in replies]


def calls(client: Client) -> int:
    """The number of casts that the adapter has made, including the one made here."""
    return int(client.backend.oracle.cast(CASE, np.zeros(1, np.uint8))[0])


@pytest.fixture
def messages(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the messages that are sent."""
    kinds: list[str] = []
    supervisor: Any = client.backend.oracle._supervisor
    send = supervisor.ask

    def noting(message: Any, arrays: Any, seconds: float) -> Any:
        kinds.append(message["ask"])
        return send(message, arrays, seconds)

    monkeypatch.setattr(supervisor, "ask", noting)
    return kinds


def test_all_requests_of_a_round_are_one_message(client: Client, messages: list[str]) -> None:
    batch = TensorBatch.of([ROW, THREE])
    client.send([Cast(CASE, ROW), Cast(OTHER, ROW), CastBatch(CASE, batch)])
    assert messages == ["many"]


def test_each_request_is_made_by_a_call_of_its_own(client: Client) -> None:
    reversed_row = with_layout(ROW, Layout((-1,)))
    tensors = [ROW, ROW, ROW[:4], ROW + 1, reversed_row]
    asked = [*(Cast(CASE, tensor) for tensor in tensors), Cast(OTHER, ROW)]
    replies = client.send(asked)
    assert sorted(values(replies)) == [1, 2, 3, 4, 5, 6]
    assert [each.value.shape for each in replies] == [each.bits.shape for each in asked]


@adapter("Counting")
def test_every_cast_is_made_for_its_own_case(client: Client) -> None:
    # Both cases have the same road, but only a sweep relies on that.
    assert values(client.send([Cast(CASE, ROW), Cast(NEWEST, ROW)])) == [1, 2]


@adapter("Counting")
def test_cases_with_the_same_refusal_share_it(client: Client) -> None:
    refused, answered, other = client.send(
        [Cast(each, ROW) for each in (OTHER, CASE, OTHER_TARGET)]
    )
    assert refused == other == Declined("no opset 24")
    assert values([answered]) == [2]
    assert calls(client) == 3


@adapter("RefusesToBeSwept")
def test_a_refusal_of_what_is_answered_is_not_shared(client: Client) -> None:
    assert values(client.send([Cast(each, ROW) for each in (OTHER, CASE, NEWEST)])) == [1, 2, 3]


@pytest.mark.parametrize(
    ("client", "answers"),
    [("Counting", [1, 2, 3]), ("SharesBitcasts", [1, 2, 1])],
    indirect=["client"],
)
def test_bitcasts_of_one_road_are_made_once(client: Client, answers: list[int]) -> None:
    assert values(client.send([Bitcast(case, THREE) for case in BITCASTS])) == answers
    # The next round asks again.
    assert values(client.send([Bitcast(BITCASTS[0], THREE)]))[0] == max(answers) + 1


def test_a_gate_asks_each_bitcast_whatever_the_adapter_calls_one_road() -> None:
    config = LaunchConfig(seconds=20.0, shares_answers=False)
    backend = load_isolated(f"{ADAPTER}:SharesBitcasts", config)
    try:
        asked = [Bitcast(case, THREE) for case in BITCASTS]
        assert values(Client(backend).send(asked)) == [1, 2, 3]
    finally:
        close(backend)


@adapter("ExitsOnItsRoads")
def test_a_case_whose_road_cannot_be_told_has_its_own(client: Client, messages: list[str]) -> None:
    assert values(client.send([Cast(CASE, ROW), Cast(OTHER, ROW)])) == [1, 2]
    assert values(client.send([Bitcast(case, THREE) for case in BITCASTS])) == [3, 4, 5]
    assert messages == ["many", "many"]
    assert client.road(CASE) == CASE.id
    assert not any(getattr(each, "value", "") for each in client.send([Road(CASE), Road(OTHER)]))


@adapter("ExitsOnItsRoads")
def test_a_script_that_tries_to_exit_is_an_error(client: Client) -> None:
    with pytest.raises(Exception, match="3"):
        client.backend.oracle.reproduce(CASE, ROW)  # type: ignore[attr-defined]


@adapter("SharesBitcasts")
def test_a_bitcast_that_a_case_makes_twice_is_made_twice(client: Client) -> None:
    assert values(client.send([Bitcast(BITCASTS[0], THREE) for _ in range(2)])) == [1, 2]


@pytest.mark.parametrize(
    ("client", "is_shared", "answers"),
    [
        ("Counting", True, [1, 1]),
        ("Counting", False, [1, 2]),
        ("Counts", True, [1, 2]),
        ("DiesOnItsRoads", True, [1, 2]),
    ],
    indirect=["client"],
)
def test_equal_batches_on_one_road_are_cast_once_if_they_may_be(
    client: Client, is_shared: bool, answers: list[int]
) -> None:
    batches = [CastBatch(case, TensorBatch.of([ROW.copy()]), is_shared) for case in (CASE, NEWEST)]
    replies = client.send(batches)
    assert [int(next(reply.value.each()).value[0]) for reply in replies] == answers


def test_a_batch_is_one_cast_for_each_tensor(client: Client) -> None:
    tensors = [ROW, ROW[:2].reshape(2, 1), ROW[:0], ROW[3]]
    batch, last = client.send([CastBatch(CASE, TensorBatch.of(tensors)), Cast(CASE, ROW)])
    split = [(each.value.shape, each.value.tolist()) for each in batch.value.each()]
    assert split == [((5,), [1] * 5), ((2, 1), [[2], [2]]), ((0,), []), ((), 4)]
    assert values([last]) == [5]


@adapter("WritesToInputs")
def test_a_tensor_that_is_sent_once_is_fresh_for_each_request(client: Client) -> None:
    # Only numbers above zero can be overwritten by zeros, so both requests had them.
    for reply in client.send([Cast(CASE, ROW), Cast(OTHER, ROW)]):
        assert reply == Malformed(str(InputsChanged()), writes_to_inputs=True)


@adapter("RaisesAndDies")
def test_an_error_is_the_reply_to_its_request_alone(client: Client) -> None:
    hundred = np.array([100], np.uint8)
    first, error, last = client.send([Cast(CASE, ROW), Cast(CASE, hundred), Cast(OTHER, ROW)])
    assert isinstance(error, Raised)
    assert str(error.error) == "a hundred"
    for reply in (first, last):
        assert reply.value.tolist() == ROW.tolist()


@adapter("RaisesAndDies")
def test_a_crash_is_the_reply_to_the_guilty_request_alone(
    client: Client, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated_oracle, "MAX_LOST_MESSAGES", 1)
    guilty = np.array([1, GUILTY], np.uint8)
    for _ in range(2):
        first, crash, last = client.send([Cast(CASE, ROW), Cast(CASE, guilty), Cast(OTHER, ROW)])
        assert isinstance(crash, Crashed)
        assert crash.death.inputs is not None
        assert crash.death.inputs.tolist() == [GUILTY]
        for reply in (first, last):
            assert reply.value.tolist() == ROW.tolist()
    # After enough messages have ended the process, each request is sent alone.
    assert messages.count("many") == 1


@adapter("RaisesAndDies")
def test_a_batch_ends_before_the_tensor_that_has_no_answer(client: Client) -> None:
    batch = TensorBatch.of([ROW, ROW[:1], np.array([100], np.uint8), ROW])
    answers: Any = client.backend.oracle.cast_batch(CASE, batch)  # type: ignore[attr-defined]
    assert (answers.count, answers.elements.tolist()) == (2, [1, 2, 3, 4, 5, 1])


@adapter("Widens")
@pytest.mark.parametrize("is_rewritten", [False, True])
def test_a_batch_ends_before_an_answer_of_another_dtype(client: Client, is_rewritten: bool) -> None:
    batch = replace(TensorBatch.of([ROW, ROW, ROW]), is_rewritten=is_rewritten)
    answers: Any = client.backend.oracle.cast_batch(CASE, batch)  # type: ignore[attr-defined]
    assert (answers.count, answers.elements.dtype) == (1, np.uint8)


def test_tensors_of_a_batch_lie_in_their_layouts() -> None:
    laid = with_layout(ROW, Layout((-2,), 3))
    plain, other = TensorBatch.of([ROW, laid]).tensors()
    assert (plain.strides, other.strides) == ((1,), (-2,))
    assert plain.tolist() == other.tolist() == ROW.tolist()


OFFERS = ("road", "reproduce")


def test_equal_tensors_are_sent_once_and_cases_of_equal_requests_are_listed() -> None:
    laid = with_layout(ROW, Layout((-1,)))
    asked = [
        Cast(CASE, ROW),
        Cast(OTHER, ROW.copy()),
        Cast(CASE, laid),
        Cast(CASE, ROW),
        Road(CASE),
    ]
    [message] = round_messages(asked, OFFERS)
    # If a case makes equal requests, each is answered.
    assert message.places == [[0, 1], [2], [3], [4]]
    assert [each["ask"] for each in message.entries] == ["cast", "cast", "cast", "road"]
    assert [each.tolist() for each in message.arrays.values()] == [ROW.tolist()] * 2


def test_requests_that_the_oracle_lacks_or_that_need_threads_travel_alone() -> None:
    asked = [Cast(CASE, ROW), CastAtOnce(CASE, [ROW]), Bitcast(CASE, ROW), Script(Cast(CASE, ROW))]
    [message] = round_messages(asked, OFFERS)
    assert message.places == [[0], [3]]


def test_a_message_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MESSAGE_BYTES == 1 << 24
    monkeypatch.setattr(isolated_oracle, "MESSAGE_BYTES", 10)
    asked = [Cast(CASE, ROW + step) for step in range(5)]
    assert [each.places for each in round_messages(asked, OFFERS)] == [
        [[0], [1]],
        [[2], [3]],
        [[4]],
    ]
