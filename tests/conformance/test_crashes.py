"""If a backend dies, hangs or lies, only the verdict on what it was asked says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.processes import (
    BOOL,
    FULL,
    INT4,
    ONNX,
    RUNNABLE,
    backend,
    castigate,
    castigate_process,
    rows,
    run,
    tables,
    verdicts,
)

CASE = "onnx-cast:25/int4/int2"
FEW = (*INT4, *(f"--target={name}" for name in ("bool", "int2", "uint4", "float16")), "--jobs=1")
"""One worker judges other pairs before and after that of ``CASE``."""
SWEPT = "onnx-cast:25/uint32/bool"
FEW_SECONDS = "import conformance.running.process_pool as pool; pool.SECONDS_OF_SILENCE = 12.0; "
"""Lowers the seconds for which a worker may be silent; its tasks take a fraction of these."""
FEW_DEATHS = """
from conformance.running.process_pool import ProcessPool
bury, deaths = ProcessPool._bury, []
def bury_few(pool, worker):
    deaths.append(worker)
    assert len(deaths) < 9
    bury(pool, worker)
ProcessPool._bury = bury_few
"""
"""Makes a run fail in which nine workers die."""


def right_rows(folder: Path, *given: str) -> dict[str, dict[str, Any]]:
    """Run a backend that survives, to compare with those that die."""
    assert run(folder, backend("Right"), *given) == 0
    return {row["case"]: row | {"backend": ""} for row in rows(folder, "cases")}


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return right_rows(tmp_path_factory.mktemp("right") / "int4", *FEW)


@pytest.fixture(scope="module")
def right_sweeps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return right_rows(tmp_path_factory.mktemp("right") / "uint32", ONNX, "--source=uint32")


def only(folder: Path, case: str, right: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the row of one case; assert that all other rows are those of the right backend."""
    found = {row["case"]: row | {"backend": ""} for row in rows(folder, "cases")}
    one = found.pop(case)
    assert len(found) > 2
    assert found == {name: right[name] for name in found}
    return one


@pytest.mark.ci_runs_one_of(6)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Segfaults", "the process was ended by SIGSEGV"),
        ("Aborts", "the process was ended by SIGABRT"),
        ("Leaves", "the process ended by itself with code 3"),
        ("IsAlwaysKilled", "the process was ended by SIGKILL"),
        ("Hangs", "the process was silent for 5 s"),
        ("HangsAndHoldsTheLock", "the process was silent for 5 s"),
    ],
)
def test_a_death_is_the_verdict_on_one_case(
    name: str, message: str, right: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    code, printed, err = castigate("run", backend(name), *FEW, f"--out={out}", "--timeout=5")
    assert code == 1
    assert "crashed" in printed
    crashed = only(out, CASE, right)
    # It dies on every input, so the search ends at the first.
    assert (crashed["verdict"], crashed["message"]) == ("crashed", f"on 0x0: {message}")
    assert (crashed["inputs"], crashed["wrong"], crashed["broken"]) == (0, 0, [])
    # Only the backend's process died, not a worker.
    assert "its task is done again" not in err


def test_who_dies_once_is_asked_again(right: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    mark = {"RUNNABLE_MARK": str(tmp_path / "mark")}
    assert run(tmp_path / "run", backend("DiesOnce"), *FEW, env=mark) == 0
    assert only(tmp_path / "run", CASE, right) == right[CASE]
    said = [each["message"] for each in rows(tmp_path / "run", "pairs")]
    died = "died once, and answered when asked again: the process was ended by SIGSEGV"
    assert [each for each in said if "died" in each] == [died]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("DiesInASweep", "the process was ended by SIGSEGV"),
        ("HangsInASweep", "the process was silent for 5 s"),
    ],
)
def test_a_death_in_a_sweep_is_the_verdict_on_what_is_swept(
    name: str, message: str, right_sweeps: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    given = (backend(name), ONNX, "--source=uint32", FULL, f"--out={out}", "--timeout=5")
    code, _, err = castigate("run", *given)
    end = message.removeprefix("the process ")
    line = f"a worker of {RUNNABLE}:{name} {end}; its task is done again\n"
    assert (code, err.count(line)) == (1, 2)
    crashed = only(out, SWEPT, right_sweeps)
    found = (crashed["verdict"], crashed["message"])
    assert found == ("crashed", f"on 0x50000000: {message}")
    # The fifteen other parts were swept to their end.
    assert (crashed["inputs"], crashed["wrong"]) == (15 << 28, 0)


@pytest.mark.nightly
def test_a_backend_that_dies_costs_the_others_nothing(tmp_path: Path) -> None:
    assert run(tmp_path / "alone", backend("WrongRange"), *BOOL, FULL) == 1
    given = [backend("DiesInASweep"), backend("WrongRange")]
    assert run(tmp_path / "both", *given, *BOOL, FULL) == 1
    alone, both = (rows(tmp_path / name, "cases") for name in ("alone", "both"))
    assert both[1:] == alone
    assert rows(tmp_path / "both", "divergences") == rows(tmp_path / "alone", "divergences")


@pytest.mark.nightly
def test_a_death_is_the_same_in_shards(tmp_path: Path) -> None:
    given = (backend("DiesInASweep"), ONNX, "--source=uint32", FULL)
    assert run(tmp_path / "run", *given) == 1
    for number in (1, 2):
        run(tmp_path / str(number), *given, f"--shard={number}/2")
    merged = ("merge", str(tmp_path / "1"), str(tmp_path / "2"), f"--out={tmp_path / 'merged'}")
    assert castigate(*merged)[0] == 1
    assert tables(tmp_path / "merged") == tables(tmp_path / "run")


@pytest.mark.nightly
def test_who_dies_on_one_of_two_cases_that_share_a_road(tmp_path: Path) -> None:
    given = (ONNX, "--source=float32", "--target=float8e5m2", FULL)
    assert run(tmp_path / "run", backend("DiesOnAnotherRoad"), *given) == 1
    found = {row["case"]: row for row in rows(tmp_path / "run", "cases")}
    assert {name.rpartition("/")[2]: row["verdict"] for name, row in found.items()} == {
        "saturate:0": "crashed",
        "saturate:1": "unsupported",
    }


@pytest.mark.nightly
def test_a_lie_about_the_size_is_an_error(
    right: dict[str, dict[str, Any]], right_sweeps: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    assert run(tmp_path / "int4", backend("TooLong"), *FEW) == 1
    lied = only(tmp_path / "int4", CASE, right)
    assert (lied["verdict"], lied["inputs"]) == ("error", 16)
    assert "shape" in lied["message"]
    given = (backend("TooLong"), ONNX, "--source=uint32", FULL)
    assert run(tmp_path / "uint32", *given) == 1
    lied = only(tmp_path / "uint32", SWEPT, right_sweeps)
    assert lied["verdict"] == "error"
    assert "shape" in lied["message"]


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SegfaultsLoading", "was ended by SIGSEGV before its first task"),
        ("LeavesLoading", "ended by itself with code 3 before its first task"),
        ("ExitsLoading", "SystemExit: 3"),
        ("HangsLoading", "was silent for 12 s"),
        ("SegfaultsWhenItsVersionIsAsked", "was ended by SIGSEGV before its first task"),
        ("RaisesWhenItsVersionIsAsked", "OSError: no device"),
        ("HasNumbersForVersion", "is no oracle: its version is no text; "),
    ],
)
def test_who_cannot_be_loaded_is_one_line_and_makes_no_run(
    name: str, message: str, tmp_path: Path
) -> None:
    given = ("run", backend("Right"), backend(name), *BOOL, FULL, f"--out={tmp_path / 'run'}")
    code, out, err = castigate_process(*given, before=FEW_SECONDS)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith(f"castigate: backend `{RUNNABLE}:{name}`")
    assert message in err
    assert not (tmp_path / "run" / "cases.parquet").exists()


def test_who_is_another_version_in_each_process_is_one_line(tmp_path: Path) -> None:
    given = (backend("IsAnotherInEachProcess"), *INT4, "--jobs=2", f"--out={tmp_path / 'run'}")
    code, out, err = castigate("run", *given)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert re.search(r" is version \d+ now, and was \d+; run again with one version$", err.strip())


def test_who_dies_when_its_roads_are_asked_is_one_line(tmp_path: Path) -> None:
    given = (backend("SegfaultsOnItsRoad"), *BOOL, FULL, f"--out={tmp_path / 'run'}")
    code, out, err = castigate("run", *given)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.endswith(": the process was ended by SIGSEGV; it was asked for its `road`\n")


@pytest.mark.parametrize(
    "tier",
    ["quick", pytest.param("full", marks=pytest.mark.nightly)],  # a sweep takes twenty seconds
)
@pytest.mark.parametrize("name", ["ExitsOnItsRoad", "InterruptsOnItsRoad"])
def test_a_road_that_tries_to_exit_ends_no_worker(name: str, tier: str, tmp_path: Path) -> None:
    given = (backend(name), *BOOL, f"--tier={tier}", f"--out={tmp_path / 'run'}")
    code, _, err = castigate_process("run", *given, before=FEW_DEATHS)
    assert (code, "its task is done again" in err) == (0, False), err
    assert set(verdicts(tmp_path / "run").values()) == {"conforms"}


def test_a_task_at_which_a_worker_dies_twice_has_crashed(tmp_path: Path) -> None:
    given = (backend("AbortsItsJudge"), *BOOL, f"--out={tmp_path / 'run'}")
    code, _, err = castigate_process("run", *given, before=FEW_DEATHS)
    assert (code, err.count("was ended by SIGABRT; its task is done again")) == (1, 2), err
    assert set(verdicts(tmp_path / "run").values()) == {"crashed"}
    [check] = rows(tmp_path / "run", "pairs")
    assert (check["verdict"], check["message"]) == ("crashed", "the process was ended by SIGABRT")
