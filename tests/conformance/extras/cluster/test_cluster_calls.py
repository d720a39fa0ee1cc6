"""Which tasks one call of a cluster's worker does, and how they are repeated when it is lost."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.extras.cluster import pool as dask_pool
from conformance.extras.cluster.call import call, payload_of
from conformance.extras.cluster.connection import Job
from conformance.running.plan import PARTS, Task, sweep_tasks
from conformance.sweep.plan import Sweep
from oracles.reference.sweep_inputs import SAMPLE, SequenceKind
from specs.selection import case_named

CASE = case_named("onnx-cast:25/float64/float32")


class LockedError(Exception):
    """An error that cannot be pickled, because it keeps a lock."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self.lock = Lock()


def fail(error: type[Exception], *words: str) -> None:
    raise error(*words)


@pytest.mark.parametrize(
    ("error", "words", "shown"),
    [
        (KeyError, ("x",), "KeyError('x')"),
        (LockedError, ("no kernel",), "RuntimeError('LockedError: no kernel')"),
    ],
)
def test_a_worker_returns_the_error_of_any_call(
    error: type[Exception], words: tuple[str, ...], shown: str
) -> None:
    assert repr(pickle.loads(call(payload_of(fail, error, *words)))) == shown


def parts(road: str, way: SequenceKind = "sample") -> list[Task]:
    return sweep_tasks("planted", Sweep(road, (CASE,), way))


def calls(tasks: Sequence[Task]) -> list[tuple[Task, ...]]:
    return [*dask_pool._calls(tasks)]


def test_a_call_does_neighboring_parts_of_one_sweep() -> None:
    size = dask_pool.INPUTS_OF_CALL // (SAMPLE // PARTS)
    assert size > 1
    one, other = parts("one"), parts("other")
    found = calls([*one, *other[:1]])
    assert found == [*(tuple(one[at : at + size]) for at in range(0, PARTS, size)), (other[0],)]


def test_other_tasks_have_a_call_each(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [Task("one", (CASE,)), Task("other", (CASE,))]
    assert calls(quick) == [(each,) for each in quick]
    assert calls([]) == []
    monkeypatch.setattr(dask_pool, "INPUTS_OF_CALL", 1)
    assert calls(parts("one")) == [(each,) for each in parts("one")]


def test_the_tasks_of_a_lost_call_are_done_one_by_one() -> None:
    pool: Any = object.__new__(dask_pool.DaskPool)
    pool._cluster = SimpleNamespace(address="", drop=lambda job, worker: job.calls.pop(worker))
    pool._say = lambda message: None
    tasks = tuple(parts("one")[:3])
    job = Job(len, (), tasks, losses=1, calls={"first": None, "copy": None})
    left, waiting = {job}, deque[Job]()
    pool._lose(job, "first", left, waiting)
    assert (left, [*waiting]) == ({job}, [])
    pool._lose(job, "copy", left, waiting)
    assert [each.tasks for each in waiting] == [(task,) for task in tasks]
    assert left == {*waiting}
    assert all((each.losses, each.calls) == (3, {}) for each in waiting)
    lone = waiting[0]
    lone.calls["third"] = None
    waiting.clear()
    pool._lose(lone, "third", left, waiting)
    assert [*waiting] == [lone]
