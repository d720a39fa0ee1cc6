"""Verdicts on a pair whose invariance test ends early or must use few tensors."""

from __future__ import annotations

from pathlib import Path

from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings
from conformance.judging.invariances import Invariances
from conformance.kinds.shape_choice import shape_of_pair

from oracles.registry import Backend, load_backend
from reports.judgement import Judgement
from specs.selection import case_named
from tests.conformance.test_invariances import INT8, cases

TENSORS = Path(__file__).with_name("data") / "tensors.py"


def judged_by(backend: Backend) -> Judgement:
    return Invariances(BackendJudge(backend, {}, Settings(max_examples=20)), cases(*INT8)).judge()[
        1
    ]


def judged(name: str) -> Judgement:
    return judged_by(load_backend(f"{TENSORS}:{name}"))


def test_a_forbidden_change_counts_for_more_than_a_tensor_that_is_not_answered() -> None:
    found = judged("RaisesLater")
    assert found.verdict in ("violates", "deviates")
    assert "in one row" in found.message


def test_a_tensor_that_is_not_answered_counts_for_more_than_open_answers() -> None:
    found = judged("OpenRaisesLater")
    assert (found.verdict, found.message) == ("error", "shape (): ValueError: no such rank")


def test_a_process_that_dies_of_a_tensor_is_a_verdict() -> None:
    found = judged("DiesOfScalars")
    assert found.verdict == "crashed"
    assert "SIGSEGV" in found.message


def test_where_shapes_are_costly_one_more_shape_is_asked_in_two_layouts_at_most() -> None:
    backend = load_backend(f"{TENSORS}:Remembers")
    judged_by(backend)
    whole, *again = getattr(backend.oracle, "asked")  # noqa: B009
    assert {shape for shape, _ in again} == {shape_of_pair("/".join(INT8)), whole[0]}
    assert len(set(again)) <= 3


def test_where_shapes_are_costly_a_refusal_is_awaited_in_a_shape_that_is_there() -> None:
    backend = load_backend(f"{TENSORS}:Remembers")
    backend_judge = BackendJudge(backend, {}, Settings(max_examples=20))
    asked: list[tuple[tuple[int, ...], object]] = getattr(backend.oracle, "asked")  # noqa: B009
    assert backend_judge.judge(case_named("onnx-cast:25/float32/int4")).verdict != "error"
    [row] = {shape for shape, _ in asked[:1]}
    asked.clear()
    assert backend_judge.judge(case_named("onnx-cast:1/float32/int4")).inputs == row[0]
    assert [shape for shape, _ in asked] == [row]
