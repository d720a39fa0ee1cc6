"""Measures the cost of another process: torch in this one, in its own, and by the wire protocol.

Each is swept and judged alike. Ratios are taken within a repetition and their median is shown.
"""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.sweep.engine import sweep
from lab.benchmarks.figures import median, show
from lab.benchmarks.pair import CHUNK
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend, load_backend
from reports.grading.chunk_comparison import fastest_comparison
from specs.cases import Case
from specs.selection import case_named

CASES = (
    "onnx-cast:25/float32/float16",
    "onnx-cast:25/float32/bfloat16",
    "onnx-cast:25/float32/float8e4m3fn/saturate:0",
)
PROGRAM = Path(__file__).with_name("wire_torch.py")
ROADS = {
    "sweep, shared memory": "sweep memory",
    "sweep, pipes": "sweep",
    "cast, pipes": "",
}


def swept(backend: Backend, case: Case, inputs: int) -> float:
    """The seconds of a sweep, judged by one table."""
    begun = perf_counter()
    judge = BackendJudge(backend, {}, Settings())
    [found] = sweep(judge, [case], Dense(inputs), 0, inputs, fastest_comparison(), lambda *_: None)
    if found.inputs != inputs:
        raise SystemExit(f"{case} on {backend.name}: {found.message}")
    return perf_counter() - begun


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1 << 28)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    command = f"exec:{shlex.quote(sys.executable)} {shlex.quote(str(PROGRAM))}"
    backends = {
        "in process": load_backend("torch"),
        "isolated": load_isolated("torch", LaunchConfig()),
    }
    backends |= {
        road: load_isolated(f"{command} {how}", LaunchConfig()) for road, how in ROADS.items()
    }
    rows = []
    for case in map(case_named, CASES):
        for backend in backends.values():
            swept(backend, case, 4 * CHUNK)
        seconds: dict[str, list[float]] = {road: [] for road in backends}
        for _ in range(options.repeat):
            for road, backend in backends.items():
                seconds[road].append(swept(backend, case, options.inputs))
        own = seconds["in process"]
        for road, took in seconds.items():
            ratio = median([alone / each for alone, each in zip(own, took, strict=True)])
            speed = options.inputs / median(took) / 1e9
            rows.append([f"{case.source}/{case.target}", road, f"{speed:.3f}", f"{ratio:.0%}"])
    for backend in backends.values():
        close(backend)
    show("torch by five ways", ["", "", "G inputs/s", "of in process"], rows)


if __name__ == "__main__":
    main()
