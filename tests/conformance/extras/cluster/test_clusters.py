"""A run on a Dask cluster: the same bytes, also when a worker or the scheduler is killed."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.extras.cluster.dask_processes import DaskCluster
from tests.conformance.processes import (
    FULL,
    HALF,
    INT4,
    ONNX,
    ROOT,
    SECONDS_TO_END,
    backend,
    castigate,
    rows,
    start_castigate,
    tables,
)

pytest.importorskip("distributed")
GIVEN = (backend("WrongRange"), *HALF)
PAIRS = (backend("Right"), ONNX, "--source=int8")
"""A run of many short tasks."""


HOUSE_RULES = """\
rules: ours
title: what our models need
text: our wiki
documents: [onnx-cast]
choices:
  to-int8:
    clause: NaN is zero, the rest is clamped
    when: {from: float, to: int8}
    then: {nan: zero, otherwise: saturate}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    started = DaskCluster(tmp_path / "dask")
    yield started
    started.close()


@pytest.mark.nightly  # `tox -e kills` kills at more moments
def test_killed_workers_and_a_killed_scheduler_change_no_byte(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    assert castigate("run", *PAIRS, "--jobs=2", f"--out={tmp_path / 'local'}")[0] == 0
    there = (f"--executor=dask://{cluster.address}", f"--out={tmp_path / 'there'}")
    process = start_castigate("run", *PAIRS, *there)
    parts = tmp_path / "there" / "parts"
    for wanted, victim in [(1, cluster.workers[0]), (4, cluster.scheduler)]:
        while len(list(parts.glob("*.part"))) < wanted:
            assert process.poll() is None
            time.sleep(0.05)
        victim.send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=SECONDS_TO_END)
    assert process.returncode == 2, err
    assert "Traceback" not in err
    [line] = [line for line in err.splitlines() if line.startswith("castigate: ")]
    assert line == (
        f"castigate: the Dask scheduler at tcp://{cluster.address} was lost; what was finished "
        "before is kept, and --resume goes on from there"
    )
    cluster.close()
    cluster.start_scheduler()
    cluster.start_worker()
    code, _, err = castigate("run", "--resume", *there)
    assert code == 0, err
    assert tables(tmp_path / "there") == tables(tmp_path / "local")


@pytest.mark.nightly
def test_a_worker_with_other_sources_is_refused_by_name(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    """Compiles all sources again in three processes."""
    other = tmp_path / "other"
    for package in ("specs", "oracles", "reports", "conformance", "tests"):
        shutil.copytree(ROOT / package, other / package)
    with (other / "specs" / "__init__.py").open("a") as file:
        file.write("# Another version.\n")
    cluster.workers.pop().kill()
    cluster.start_worker(other)
    there = (f"--executor=dask://{cluster.address}", f"--out={tmp_path / 'there'}")
    code, _, err = castigate("run", backend("Right"), *INT4, *there)
    assert code == 0, err
    [line] = [line for line in err.splitlines() if "is refused" in line]
    assert re.search(
        r"worker tcp://127\.0\.0\.1:[0-9]+ is refused: it has castigate sources [0-9a-f]{12}, not "
        r"[0-9a-f]{12}; install the same there and start it again",
        line,
    )


@pytest.mark.nightly
def test_chains_and_house_rules_of_a_file_go_to_the_cluster(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    """Imports onnxruntime and everything else in five processes."""
    rules = tmp_path / "ours.yaml"
    rules.write_text(HOUSE_RULES)
    asked = ("--backend=ort", ONNX, "--source=float8e5m2", "--target=int8", f"--rules={rules}")
    there = (f"--executor=dask://{cluster.address}", f"--out={tmp_path / 'there'}")
    code, _, err = castigate("run", *asked, "--chains", *there)
    assert code == 1, err
    code, _, err = castigate("run", *asked, "--chains", f"--out={tmp_path / 'local'}")
    assert code == 1, err
    assert tables(tmp_path / "there") == tables(tmp_path / "local")
    checked = {row["case"] for row in rows(tmp_path / "there", "cases")}
    assert "onnx-cast+ours:25/float8e5m2/int8" in checked
    assert any(row["check"].startswith("chains/") for row in rows(tmp_path / "there", "pairs"))


@pytest.mark.nightly  # half a minute
def test_the_tasks_of_a_worker_that_hangs_are_done_by_another(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    there = (f"--executor=dask://{cluster.address}", f"--out={tmp_path / 'there'}")
    process = start_castigate("run", *GIVEN, FULL, *there)
    parts = tmp_path / "there" / "parts"
    while len(list(parts.glob("*.part"))) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    cluster.workers[0].send_signal(signal.SIGSTOP)
    _, err = process.communicate(timeout=SECONDS_TO_END)
    assert process.returncode == 1, err
    assert castigate("run", *GIVEN, FULL, "--jobs=2", f"--out={tmp_path / 'local'}")[0] == 1
    assert tables(tmp_path / "there") == tables(tmp_path / "local")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1", "--executor `127.0.0.1` is no address; write dask://HOST:PORT"),
        ("dask://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1; start one with"),
    ],
)
def test_a_wrong_address_is_one_line(
    address: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.extras.cluster.connection.SECONDS_TO_CONNECT", 1.0)
    code, out, err = castigate("run", *GIVEN, f"--executor={address}", f"--out={tmp_path / 'run'}")
    assert (code, out) == (2, "")
    assert err.startswith(f"castigate: {message}")
    assert len(err.splitlines()) == 1
