"""pytest's items are judged in the pool of workers that `castigate run` uses."""

from __future__ import annotations

import os
from ast import literal_eval
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.pytest_plugin.judging import CaseKey, PooledJudging
from conformance.pytest_plugin.plugin import MAX_JOBS
from conformance.running.plan import quick_tasks
from conformance.running.process_pool import BackendWorker, ProcessPool
from conformance.running.supervisor import WorkerFailure
from conformance.running.worker import Ready, TaskDone, TaskOrder, TaskRunner, work
from oracles.backend.loading import launch_configs
from oracles.registry import load_backend
from reports.outputs.totals import count_record
from specs.cases import Case
from specs.errors import IS_A_BUG, CastigateError
from specs.selection import select
from tests.conformance.data import hostile, noting, runnable
from tests.conformance.processes import wait_for_ends
from tests.conformance.test_suite import FAILED, USAGE, suite

HOSTILE, NOTING, RUNNABLE = hostile.__file__, noting.__file__, runnable.__file__
MANY = ("--document=tensorflow-bitcast", "--document=cinn-bitcast-convert")
"""Many pairs, which are judged quickly: bitcasts of few elements."""
FEW = (*MANY[:1], "-k", "/int8/ or /uint8/")
JOBS = min(os.cpu_count() or 1, MAX_JOBS)


def cases_of(*pairs: str) -> list[Case]:
    """All cases of pairs in all versions of a document, pair by pair."""
    return [case for case in select(["onnx-cast"]) if f"{case.source}/{case.target}" in pairs]


@contextmanager
def pooled(backends: list[str], cases: list[Case], jobs: int = 1) -> Iterator[PooledJudging]:
    judging = PooledJudging(launch_configs(backends), Settings(), cases, jobs)
    try:
        yield judging
    finally:
        judging.close()


def keys_of(judging: PooledJudging, backend: str) -> list[CaseKey]:
    """All cases and checks of a backend, in the order of pytest's items."""
    return [
        (backend, name)
        for task in judging.tasks(backend)
        for name in (*(case.id for case in task.cases), *task.checks)
    ]


def record_of(judging: PooledJudging, key: CaseKey) -> dict[str, Any]:
    return count_record(*judging.judgement(key))


def test_each_item_finds_its_judgement_in_the_order_of_the_items() -> None:
    backends = [f"{HOSTILE}:TiesAway", "reference"]
    cases = cases_of("float16/float8e5m2", "int8/int4", "int8/string")
    with pooled(backends, cases, jobs=2) as judging:
        assert [each.name for each in judging.backends] == backends
        keys = [key for backend in backends for key in keys_of(judging, backend)]
        judging.begin(keys)
        found = {key: record_of(judging, key) for key in keys}
        assert judging.messages == []
    assert [name for _, name in keys].count("invariances/int8/int4") == 2
    for backend in backends:
        judge = BackendJudge(load_backend(backend), None, Settings())
        for case in cases:
            expected = count_record(case, judge.judge(case))
            assert found[backend, case.id] == expected
    verdicts = {record["verdict"] for record in found.values()}
    assert verdicts >= {"conforms", "violates", "error"}


def test_an_item_has_the_same_judgement_alone_as_in_a_whole_run() -> None:
    backend, cases = f"{HOSTILE}:TiesAway", cases_of("float16/float8e5m2")
    with pooled([backend], cases) as judging:
        keys = keys_of(judging, backend)
        judging.begin()
        whole = {key: record_of(judging, key) for key in keys}
    assert {each["verdict"] for each in whole.values()} >= {"conforms", "violates"}
    for key in (keys[0], keys[-2], keys[-1]):
        with pooled([backend], cases) as judging:
            judging.begin([key])
            assert record_of(judging, key) == whole[key]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """A function that returns the cases that an adapter has noted since its last call."""
    notes = tmp_path / "notes"
    monkeypatch.setenv(noting.NOTES, str(notes))

    def cases() -> set[str]:
        lines = notes.read_text().splitlines()
        notes.write_text("")
        return {line.removeprefix("asked ") for line in lines if line.startswith("asked ")}

    return cases


def test_only_selected_cases_are_asked_and_a_check_may_ask_all_of_its_pair(
    asked: Callable[[], set[str]],
) -> None:
    backend, pair = f"{NOTING}:OnlyOpset24", "float16/float8e5m2"
    cases = cases_of(pair, "float16/float8e4m3fn")
    with pooled([backend], cases) as judging:
        judging.begin([(backend, name := f"onnx-cast:25/{pair}/saturate:0")])
        assert record_of(judging, (backend, name))["verdict"] == "unsupported"
        assert asked() == {name}
    with pooled([backend], cases) as judging:
        judging.begin([(backend, f"invariances/{pair}")])
        case, judgement = judging.judgement((backend, f"invariances/{pair}"))
    # No case was selected; the backend refuses the newest cases of the pair.
    assert (case.version, judgement.verdict) == ("24", "violates")
    assert {name.rpartition("/")[0] for name in asked()} > {f"onnx-cast:24/{pair}"}


class Found(NamedTuple):
    """The outcome of a run of pytest: each item's record, and the notes of its processes."""

    code: int
    output: str
    records: list[str]
    loaded: int
    pids: list[int]
    asked: list[str]


def run(folder: Path, name: str, *arguments: str) -> Found:
    xml, notes = folder / f"{name}.xml", folder / f"{name}{len(arguments)}"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(noting.NOTES, str(notes))
        environment.setenv(noting.LOADS, "1" if "-n" in arguments else str(JOBS))
        code, output = suite(f"--backend={NOTING}:{name}", "-q", f"--junitxml={xml}", *arguments)
    found = [str(one.get("value")) for one in ElementTree.parse(xml).iter("property")]
    lines = notes.read_text().splitlines()
    pids = [int(line.split()[-1]) for line in lines if line.startswith("loaded ")]
    asked = [line for line in lines if line.startswith("asked ")]
    records = [each.replace(f":{name}", ":Noting") for each in found]
    return Found(code, output, records, len(pids) // 2, pids, asked)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """A run in one worker, which belongs to the only worker of xdist."""
    found = run(tmp_path_factory.mktemp("alone"), "Noting", *FEW, "-n", "1")
    assert (found.code, found.loaded) == (FAILED, 1)
    assert {"conforms", "violates"} <= {literal_eval(each)["verdict"] for each in found.records}
    return found


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """A run in as many workers as there are processors."""
    return run(tmp_path_factory.mktemp("several"), "Noting", *FEW)


def test_a_run_with_several_workers_shows_the_same_in_the_same_order(
    alone: Found, several: Found
) -> None:
    assert (several.code, several.loaded) == (FAILED, JOBS)
    assert several.records == alone.records
    assert "castigate: a worker" not in several.output
    assert wait_for_ends(several.pids) == []


@pytest.mark.nightly
def test_workers_of_xdist_have_one_worker_each_and_find_the_same(
    alone: Found, tmp_path: Path
) -> None:
    found = run(tmp_path, "Noting", *FEW, "-n", "2")
    assert (found.code, found.loaded) == (FAILED, 2)
    assert sorted(found.records) == sorted(alone.records)
    # Only a pair whose items are split between the workers is judged by both.
    assert {*found.asked} == {*alone.asked}
    assert len(found.asked) < 1.5 * len(alone.asked)


def test_pairs_whose_worker_ended_are_judged_again_and_crash_if_they_end_each_worker(
    alone: Found, tmp_path: Path
) -> None:
    found = run(tmp_path, "LosesItsWorkers", *FEW)
    assert (found.code, found.loaded) == (FAILED, JOBS + 3)
    for before, now in zip(alone.records, found.records, strict=True):
        if "/int8/uint8" in literal_eval(now)["item"]:
            assert literal_eval(now)["verdict"] == "crashed"
        else:
            assert now == before
    lines = [line for line in found.output.splitlines() if line.startswith("castigate: a worker")]
    ended = f"castigate: a worker of {NOTING}:LosesItsWorkers was ended by SIG{{}}; "
    said = [ended.format(name) + "its task is done again" for name in ("KILL", "SEGV", "SEGV")]
    assert sorted(lines) == said


@pytest.mark.skipif(JOBS < 2, reason="a single processor has one worker")
def test_workers_that_cannot_load_the_backend_are_done_without(
    alone: Found, tmp_path: Path
) -> None:
    found = run(tmp_path, "OneAtATime", *FEW)
    assert (found.code, found.records) == (FAILED, alone.records)
    assert "the device is taken" in found.output


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize(("option", "items"), [("--maxfail=2", 2), ("--exitfirst", 1)])
def test_a_run_that_stops_early_ends_its_workers(option: str, items: int, tmp_path: Path) -> None:
    found = run(tmp_path, "Noting", *FEW, option)
    verdicts = [literal_eval(each)["verdict"] for each in found.records]
    assert (found.code, verdicts.count("violates"), verdicts[-1]) == (FAILED, items, "violates")
    assert "castigate: a worker" not in found.output
    assert wait_for_ends(found.pids) == []


def test_an_item_that_is_collected_twice_is_judged_once(several: Found, tmp_path: Path) -> None:
    twice = run(tmp_path, "Noting", *FEW, "--keep-duplicates", "conformance")
    assert twice.records == several.records * 2
    assert sorted(twice.asked) == sorted(several.asked)


ENDINGS = [
    ("SegfaultsOnItsRoad", ["--tier=full", "-k", "uint32/bool"], "it was asked for its `road`"),
    (
        "SegfaultsOnItsRoad",
        ["--tier=full", "-k", "uint32/bool", "-n1"],
        "it was asked for its `road`",
    ),
    ("IsAnotherInEachProcess", ["-k", "int4"], "run again with one version"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), ENDINGS)
def test_a_backend_that_cannot_be_judged_ends_the_run_in_one_line(
    name: str, arguments: list[str], message: str
) -> None:
    asked = [f"--backend={RUNNABLE}:{name}", "--document=onnx-cast:25", "-q", *arguments]
    code, output = suite(*asked)
    [line] = [line for line in output.splitlines() if message in line]
    assert ": backend `" in line
    assert " failed" not in output
    assert code == USAGE


class Running:
    """A stand-in for a process that never ends."""

    exitcode = None

    def kill(self) -> None: ...

    def join(self) -> None: ...


def test_a_task_that_is_done_is_kept_when_another_worker_fails() -> None:
    [task] = quick_tasks("reference", ["reference"], cases_of("int8/int4"))
    pool = ProcessPool("reference", launch_configs(["reference"]), Settings())
    for message in (WorkerFailure("the device is gone"), TaskDone(b"part", b"")):
        here, there = Pipe()
        pool._workers.append(BackendWorker(Running(), here, is_ready=True, tasks=deque([task])))
        there.send(message)
    [(done, result)] = pool.poll(1)
    assert (done.name, result.part) == (task.name, b"part")
    assert pool.is_busy
    with pytest.raises(CastigateError, match=r"^the device is gone$"):
        pool.poll(0)


class Left(Running):
    """A stand-in for a process that ended by itself."""

    exitcode = 3


def test_a_task_that_is_done_is_kept_when_a_worker_dies_without_a_task() -> None:
    [task] = quick_tasks("reference", ["reference"], cases_of("int8/int4"))
    pool = ProcessPool("reference", launch_configs(["reference"]), Settings())
    (ended, closed), (here, there) = Pipe(), Pipe()
    closed.close()
    pool._workers.append(BackendWorker(Left(), ended))
    pool._workers.append(BackendWorker(Running(), here, is_ready=True, tasks=deque([task])))
    there.send(TaskDone(b"part", b""))
    [(done, _)] = pool.poll(1)
    assert done.name == task.name
    with pytest.raises(CastigateError, match="ended by itself with code 3 before its first task"):
        pool.poll(0)


def test_a_bug_in_a_worker_is_no_crash_of_the_backend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: TaskRunner, order: TaskOrder) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(TaskRunner, "judge", fail)
    monkeypatch.setattr("conformance.running.worker.live_with_parent", lambda: None)
    [config] = launch_configs(["reference"]).items()
    ours, theirs = Pipe()
    [task] = quick_tasks("reference", ["reference"], cases_of("bool/int8"))
    ours.send(TaskOrder(task))
    work(theirs, config, None, Settings())
    assert isinstance(ours.recv(), Ready)
    assert ours.recv() == WorkerFailure(IS_A_BUG)
    assert "ZeroDivisionError" in capsys.readouterr().err
