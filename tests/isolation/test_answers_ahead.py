"""Requests that are sent ahead in one message: an answer serves one call of each of its cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.judging.backend_judge import BackendJudge, Settings
from conformance.running.selection import case_named
from oracles.isolation.launch_config import LaunchConfig
from oracles.isolation.loading import close, load_isolated
from oracles.isolation.remote_errors import ProcessDied
from oracles.memory_layouts import Layout, with_layout
from oracles.protocol import AheadRequest, Unsupported
from oracles.registry import Backend
from oracles.tensor_batch import TensorBatch
from specs.cases import Case

ADAPTER = Path(__file__).with_name("data") / "asked_ahead.py"
CASE, OTHER = case_named("onnx-cast:25/uint8/int8"), case_named("onnx-cast:24/uint8/int8")
NEWEST = case_named("onnx-cast:23/uint8/int8")
OTHER_TARGET = case_named("onnx-cast:24/uint8/int16")
BITCASTS = ("onnx-bitcast:26", "torch-view:2", "xla-bitcast-convert:2023")
GUILTY = 200
ROW = np.arange(1, 6, dtype=np.uint8)
THREE = ROW[:3]


@pytest.fixture(params=["Counts"])
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    backend = load_isolated(f"{ADAPTER}:{request.param}", LaunchConfig(seconds=20.0))
    yield backend.oracle
    close(backend)


def ahead(*tensors: Any, case: Case = CASE) -> list[AheadRequest]:
    kinds = {True: "cast_batch", False: "cast"}
    return [AheadRequest(kinds[isinstance(each, TensorBatch)], [case], each) for each in tensors]


def calls(oracle: Any) -> int:
    """How many casts the adapter has made; this is one of them."""
    return int(oracle.cast(CASE, np.zeros(1, np.uint8))[0])


def test_an_answer_ahead_serves_one_call(oracle: Any) -> None:
    oracle.ask_ahead(ahead(ROW))
    assert oracle.cast(CASE, ROW.copy()).tolist() == [1] * 5
    # The same request, made again, is made again.
    assert oracle.cast(CASE, ROW).tolist() == [2] * 5


def test_other_tensors_and_cases_are_asked_for_anew(oracle: Any) -> None:
    oracle.ask_ahead(ahead(ROW))
    assert oracle.cast(OTHER, ROW).tolist() == [2] * 5
    assert oracle.cast(CASE, ROW[:4]).tolist() == [3] * 4
    assert oracle.cast(CASE, ROW + 1).tolist() == [4] * 5
    assert oracle.cast(CASE, with_layout(ROW, Layout((-1,)))).tolist() == [5] * 5
    assert oracle.cast(CASE, ROW).tolist() == [1] * 5


@pytest.mark.parametrize("oracle", ["Counting"], indirect=True)
def test_every_cast_is_made_for_its_own_case(oracle: Any) -> None:
    # Its road is the same, but only a sweep relies on that.
    oracle.ask_ahead([AheadRequest("cast", [CASE, NEWEST], ROW)])
    assert [oracle.cast(case, ROW)[0] for case in (CASE, NEWEST)] == [1, 2]


@pytest.mark.parametrize("oracle", ["Counting"], indirect=True)
def test_cases_with_the_same_refusal_share_it(oracle: Any) -> None:
    oracle.ask_ahead([AheadRequest("cast", [OTHER, CASE, OTHER_TARGET], ROW)])
    assert oracle.cast(CASE, ROW)[0] == 2
    for case in (OTHER, OTHER_TARGET):
        with pytest.raises(Unsupported, match="no opset 24"):
            oracle.cast(case, ROW)
    assert calls(oracle) == 3


@pytest.mark.parametrize("oracle", ["RefusesToBeSwept"], indirect=True)
def test_a_refusal_of_what_is_answered_is_not_shared(oracle: Any) -> None:
    oracle.ask_ahead([AheadRequest("cast", [OTHER, CASE, NEWEST], ROW)])
    assert [oracle.cast(case, ROW)[0] for case in (OTHER, CASE, NEWEST)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("oracle", "answers"),
    [("Counting", [1, 2, 3]), ("SharesBitcasts", [1, 2, 1])],
    indirect=["oracle"],
)
def test_bitcasts_of_one_road_are_made_once(oracle: Any, answers: list[int]) -> None:
    cases = [case_named(f"{document}/uint8/int8/shape:3") for document in BITCASTS]
    oracle.ask_ahead([AheadRequest("bitcast", cases, THREE)])
    assert [oracle.bitcast(case, THREE)[0] for case in cases] == answers
    # The answer serves one call of each case.
    assert oracle.bitcast(cases[0], THREE)[0] == max(answers) + 1


@pytest.mark.parametrize("oracle", ["ExitsOnItsRoads"], indirect=True)
def test_a_road_that_tries_to_exit_is_no_road(oracle: Any) -> None:
    bitcasts = [case_named(f"{document}/uint8/int8/shape:3") for document in BITCASTS]
    casts = AheadRequest("cast", [CASE, OTHER], ROW)
    oracle.ask_ahead([casts, AheadRequest("bitcast", bitcasts, THREE)])
    assert [oracle.cast(case, ROW)[0] for case in casts.cases] == [1, 2]
    assert [oracle.bitcast(case, THREE)[0] for case in bitcasts] == [3, 4, 5]
    assert BackendJudge(Backend("exits", oracle), {}, Settings()).road(CASE) == ""


@pytest.mark.parametrize("oracle", ["ExitsOnItsRoads"], indirect=True)
def test_a_script_that_tries_to_exit_is_an_error(oracle: Any) -> None:
    with pytest.raises(Exception, match="3"):
        oracle.reproduce(CASE, ROW)


@pytest.mark.parametrize("oracle", ["SharesBitcasts"], indirect=True)
def test_a_bitcast_that_a_case_makes_twice_is_made_twice(oracle: Any) -> None:
    case = case_named("onnx-bitcast:26/uint8/int8/shape:3")
    oracle.ask_ahead([AheadRequest("bitcast", [case], THREE)] * 2)
    assert [oracle.bitcast(case, THREE)[0] for _ in range(2)] == [1, 2]


def test_answers_that_nobody_asked_for_are_dropped(oracle: Any) -> None:
    oracle.ask_ahead(ahead(ROW))
    oracle.ask_ahead(ahead(ROW[:2]))
    assert oracle.cast(CASE, ROW[:2]).tolist() == [2] * 2
    assert oracle.cast(CASE, ROW).tolist() == [3] * 5


def test_a_batch_ahead_is_one_cast_for_each_tensor(oracle: Any) -> None:
    batch = TensorBatch.of([ROW, ROW[:2].reshape(2, 1), ROW[:0], ROW[3]])
    oracle.ask_ahead(ahead(batch))
    answers = oracle.cast_batch(CASE, batch)
    assert answers.count == 4
    split = [(each.shape, each.tolist()) for each in answers.split(batch)]
    assert split == [((5,), [1] * 5), ((2, 1), [[2], [2]]), ((0,), []), ((), 4)]
    assert calls(oracle) == 5


@pytest.mark.parametrize("oracle", ["WritesToInputs"], indirect=True)
def test_a_tensor_that_is_sent_once_is_fresh_for_each_request(oracle: Any) -> None:
    oracle.ask_ahead(ahead(ROW) + ahead(ROW, case=OTHER))
    for case in (CASE, OTHER):
        assert oracle.cast(case, ROW).tolist() == ROW.tolist()


@pytest.mark.parametrize("oracle", ["RaisesAndDies"], indirect=True)
def test_an_error_ahead_is_raised_where_it_is_asked_for(oracle: Any) -> None:
    oracle.ask_ahead(ahead(ROW, np.array([100], np.uint8)) + ahead(ROW, case=OTHER))
    with pytest.raises(Exception, match="a hundred"):
        oracle.cast(CASE, np.array([100], np.uint8))
    for case in (CASE, OTHER):
        assert oracle.cast(case, ROW).tolist() == ROW.tolist()


@pytest.mark.parametrize("oracle", ["RaisesAndDies"], indirect=True)
def test_a_crash_ahead_is_that_of_the_guilty_request_alone(oracle: Any) -> None:
    guilty = np.array([1, GUILTY], np.uint8)
    for _ in range(5):
        oracle.ask_ahead(ahead(ROW, guilty))
        assert oracle.cast(CASE, ROW).tolist() == ROW.tolist()
        with pytest.raises(ProcessDied) as caught:
            oracle.cast(CASE, guilty)
        assert caught.value.inputs is not None
        assert caught.value.inputs.tolist() == [GUILTY]


@pytest.mark.parametrize("oracle", ["RaisesAndDies"], indirect=True)
def test_a_batch_ends_before_the_tensor_that_has_no_answer(oracle: Any) -> None:
    batch = TensorBatch.of([ROW, ROW[:1], np.array([100], np.uint8), ROW])
    answers = oracle.cast_batch(CASE, batch)
    assert (answers.count, answers.elements.tolist()) == (2, [1, 2, 3, 4, 5, 1])


def test_tensors_of_a_batch_lie_in_their_layouts() -> None:
    laid = with_layout(ROW, Layout((-2,), 3))
    plain, other = TensorBatch.of([ROW, laid]).tensors()
    assert (plain.strides, other.strides) == ((1,), (-2,))
    assert plain.tolist() == other.tolist() == ROW.tolist()
