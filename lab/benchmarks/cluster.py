"""How fast a run is on a Dask cluster of this machine, beside the local pool: whole commands."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from lab.benchmarks.figures import keep, median, show
from lab.benchmarks.options import number

HOST = "127.0.0.1"
DOCUMENT = "onnx-cast:25"
RUN = "import sys; from castigate import main; sys.exit(main())"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, and write all figures as JSON."""
    chosen = _parser().parse_args(arguments)
    source, _, target = chosen.pair.partition("/")
    run = ["run", "--backend", chosen.backend, "--document", DOCUMENT, "--tier", chosen.tier]
    run += ["--source", source, *(["--target", target] if target else [])]
    local: list[float] = []
    there: list[float] = []
    with TemporaryDirectory(prefix="castigate-") as name, _cluster(Path(name), chosen.jobs) as at:
        folder = Path(name)
        for repeat in range(chosen.repeat):
            here, away = folder / f"local-{repeat}", folder / f"cluster-{repeat}"
            local.append(_seconds([*run, f"--jobs={chosen.jobs}", f"--out={here}"]))
            there.append(_seconds([*run, f"--executor={at}", f"--out={away}"]))
            _compare(here, away)
    ratios = [one / other for one, other in zip(local, there, strict=True)]
    show(
        f"{chosen.jobs} processes of the local pool, and as many Dask workers",
        ["", "local s", "cluster s", "throughput of the cluster / local"],
        [
            [
                f"{chosen.backend} {chosen.pair}, {chosen.tier}",
                f"{median(local):.2f}",
                f"{median(there):.2f}",
                f"{median(ratios):.2f}",
            ]
        ],
    )
    seconds = {"local": local, "cluster": there}
    keep(chosen, {"seconds": seconds, "throughput": median(ratios)})


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--backend", default="torch", metavar="NAME")
    made.add_argument("--pair", default="float32/float16", metavar="SOURCE[/TARGET]")
    made.add_argument("--tier", default="full", choices=["quick", "full"])
    made.add_argument("--repeat", type=number, default=3, metavar="N")
    made.add_argument("--jobs", type=number, default=2, metavar="N", help="processes and workers")
    made.add_argument("--json", type=Path, metavar="FILE", help="where all figures go")
    return made


@contextmanager
def _cluster(folder: Path, workers: int) -> Iterator[str]:
    """Start a scheduler and workers of one thread each; yield the address for ``--executor``."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        port = found.getsockname()[1]
    with ExitStack() as stack:
        stack.enter_context(_dask("scheduler", "--host", HOST, "--port", str(port)))
        while not _answers(port):
            sleep(0.1)
        for _ in range(workers):
            options = ("--nthreads", "1", "--local-directory", str(folder))
            stack.enter_context(_dask("worker", f"tcp://{HOST}:{port}", *options))
        yield f"dask://{HOST}:{port}"


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@contextmanager
def _dask(*arguments: str) -> Iterator[None]:
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, env=_environment(), stdout=nowhere, stderr=nowhere) as process:
        try:
            yield
        finally:
            process.terminate()


def _environment() -> dict[str, str]:
    """Return an environment in which child processes find this process's modules."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _seconds(arguments: list[str]) -> float:
    """Run a whole command and return its seconds; exit if its code is neither 0 nor 1."""
    begun = monotonic()
    command = [sys.executable, "-c", RUN, *arguments]
    ended = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stderr)
    return monotonic() - begun


def _compare(one: Path, other: Path) -> None:
    for table in sorted(one.glob("*.parquet")):
        if table.read_bytes() != (other / table.name).read_bytes():
            raise SystemExit(f"{table.name} is different on the cluster")


if __name__ == "__main__":
    main()
