"""A run whose cluster's workers and scheduler are killed at any moment comes to the same bytes."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conformance.extras.cluster.dask_processes import DaskCluster
from tests.conformance.processes import (
    FULL,
    HALF,
    SECONDS_TO_END,
    backend,
    castigate,
    resume_option,
    start_castigate,
    tables,
)

pytest.importorskip("distributed")
KILLS = int(os.environ.get("CLUSTER_KILLS", "3"))
"""`tox -e kills` sets 20."""
GIVEN = (backend("WrongRange"), *HALF, FULL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    started = DaskCluster(tmp_path / "dask")
    yield started
    started.close()


class Killer:
    """Kills workers and the scheduler at moments that a seed determines."""

    def __init__(self, seed: int, kills: int, cluster: DaskCluster) -> None:
        self.chance = random.Random(seed)
        self.left = kills
        self.cluster = cluster
        self.killed: Counter[str] = Counter()

    def disturb(self, process: subprocess.Popen[str]) -> bool:
        """Kill until the scheduler is dead, the run ends or no kill is left; return if it is dead.

        A task that loses five workers counts as crashed, so fewer are killed in one command.
        """
        lives = self.chance.randrange(4)
        while self.left:
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.chance.uniform(0.5, 4.0))
                return False
            self.left -= 1
            if not lives:
                self.killed["scheduler"] += 1
                self.cluster.scheduler.kill()
                return True
            lives -= 1
            self.killed["worker"] += 1
            self.cluster.replace_worker(self.chance.randrange(len(self.cluster.workers)))
        return False

    def whole_run(self, folder: Path) -> None:
        """Disturb a run, and continue it until it is complete."""
        where = (f"--executor=dask://{self.cluster.address}", f"--out={folder}")
        while True:
            process = start_castigate("run", *GIVEN, *where, *resume_option(folder))
            has_no_scheduler = self.disturb(process)
            _, err = process.communicate(timeout=SECONDS_TO_END)
            assert "Traceback" not in err, err
            if process.returncode == 1:
                return
            assert (process.returncode, has_no_scheduler) == (2, True), err
            assert len([line for line in err.splitlines() if line.startswith("castigate: ")]) == 1
            self.cluster.restart()


@pytest.mark.nightly
def test_kills_in_a_cluster_change_no_byte(cluster: DaskCluster, tmp_path: Path) -> None:
    assert castigate("run", *GIVEN, "--jobs=2", f"--out={tmp_path / 'local'}")[0] == 1
    undisturbed = tables(tmp_path / "local")
    killer, runs = Killer(11, KILLS, cluster), 0
    while killer.left:
        folder = tmp_path / str(runs)
        killer.whole_run(folder)
        assert tables(folder) == undisturbed
        runs += 1
        if cluster.scheduler.poll() is not None:
            cluster.restart()
    assert killer.killed.total() == KILLS
    print(f"{KILLS} kills in {runs} runs: {dict(killer.killed)}")
