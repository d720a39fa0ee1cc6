"""A Dask cluster of real processes on this machine, any of which a test may kill."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.conformance.processes import ROOT

SLOWED = {"RUNNABLE_PAUSE": "0.0004"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class DaskCluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker() for _ in range(2)]

    def start(self, *arguments: str, root: Path = ROOT) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        environment = os.environ | SLOWED | {"PYTHONPATH": str(root)}
        process = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        host, _, port = self.address.partition(":")
        process = self.start("scheduler", "--host", host, "--port", port)
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return process
            assert process.poll() is None
            time.sleep(0.1)

    def start_worker(self, root: Path = ROOT) -> subprocess.Popen[bytes]:
        own = ["--nthreads", "1", "--no-nanny", "--local-directory", str(self.folder)]
        return self.start("worker", f"tcp://{self.address}", *own, root=root)

    def replace_worker(self, place: int) -> None:
        """Kill a worker, and start another."""
        self.workers[place].kill()
        self.workers[place] = self.start_worker()

    def restart(self) -> None:
        """Kill all remaining processes, and start everything again at the same address."""
        self.close()
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker() for _ in self.workers]

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()
