"""A run whose time is over stores `not-run` for the cases, checks and parts of sweeps left."""

from __future__ import annotations

from conformance.running.plan import Task, quick_tasks, sweep_tasks
from conformance.running.run import _store_not_run
from conformance.sweep.plan import Sweep
from reports.judgement import Judgement
from specs.selection import case_named

CASE = case_named("onnx-cast:25/float32/int8")


class Kept:
    """A store that has one finished task, and keeps what is written."""

    def __init__(self, *finished: str) -> None:
        self._finished = set(finished)
        self.written: dict[str, list[Judgement]] = {}

    def finished(self) -> set[str]:
        return self._finished

    def write(self, task: str, judgements: list[Judgement]) -> None:
        self.written[task] = judgements


def stored(tasks: list[Task], *finished: str) -> dict[str, list[Judgement]]:
    store = Kept(*finished)
    _store_not_run(tasks, "planted", store)  # type: ignore[arg-type]
    return store.written


def test_cases_and_checks_of_a_pair_are_not_run() -> None:
    [task] = quick_tasks("planted", ["planted"], [CASE])
    [(name, left)] = stored([task]).items()
    assert name == task.name
    assert {each.verdict for each in left} == {"not-run"}
    assert [each.check for each in left] == ["", *task.checks]
    assert stored([task], task.name) == {}


def test_parts_of_a_sweep_are_not_run() -> None:
    tasks = sweep_tasks("planted", Sweep("a road", (CASE,), "dense"))
    written = stored(tasks, tasks[0].name)
    assert list(written) == [task.name for task in tasks[1:]]
    assert {(each.case, each.verdict) for left in written.values() for each in left} == {
        (CASE.id, "not-run")
    }
