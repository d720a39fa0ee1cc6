"""Measures ``castigate check`` on a checkpoint of 2 GB, beside a plain cast by torch.

    python -m lab.benchmarks.checkpoints [FOLDER]

writes FOLDER/model.safetensors (by default to a temporary folder) with a fixed seed, most of it
bfloat16. It prints for bfloat16 alone, and for all, how long torch takes to cast the same elements
from memory, how long the check takes in a process that has started, and how long the command takes
from start to end, with the largest memory of all its processes together. The ratios are to torch's
speed. Each is given by the clock and in processor seconds, which a busy machine changes less; torch
spreads its work over all cores, the check does not.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.extras.checkpoints.check import check_checkpoint

TENSORS = {"BF16": 40, "F32": 6, "F16": 12}
"""The number of tensors of each dtype; those of 16 bits have 32 MiB each, those of 32 twice."""
SHAPE = (4096, 4096)
BYTES = {"BF16": 2, "F32": 4, "F16": 2}
TORCH = {"BF16": "bfloat16", "F32": "float32", "F16": "float16"}
SEED = 0
REPEATS = 3
PAGE = os.sysconf("SC_PAGE_SIZE")


def elements(chance: np.random.Generator, dtype: str) -> NDArray[Any]:
    """Draw a tensor as weights are: normal, with few far outliers."""
    drawn = chance.standard_normal(SHAPE, np.float32) * np.float32(0.02)
    drawn.ravel()[:: 1 << 20] *= np.float32(1 << 15)
    if dtype == "F32":
        return drawn
    if dtype == "F16":
        return drawn.astype(np.float16)
    # The high half is a bfloat16: what it is rounded from does not matter here.
    return (drawn.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def write(path: Path) -> None:
    """Write the checkpoint."""
    header, at = {}, 0
    for dtype, count in TENSORS.items():
        for number in range(count):
            size = SHAPE[0] * SHAPE[1] * BYTES[dtype]
            entry = {"dtype": dtype, "shape": SHAPE, "data_offsets": [at, at + size]}
            header[f"layers.{number}.{dtype.lower()}.weight"] = entry
            at += size
    text = json.dumps(header).encode()
    chance = np.random.default_rng(SEED)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for dtype, count in TENSORS.items():
            for _ in range(count):
                file.write(elements(chance, dtype).tobytes())


class Seconds(NamedTuple):
    """How long something takes, and the processor time of all its threads and processes."""

    passed: float
    processor: float


def seconds_of_check(path: Path, dtypes: list[str]) -> Seconds:
    """Return how long a check takes in this process, which has done it once."""
    source = TORCH[dtypes[0]] if len(dtypes) == 1 else None
    times = []
    for _ in range(1 + REPEATS):
        begin, processor = time.perf_counter(), time.process_time()
        check_checkpoint(path, "float8e4m3fn", source=source)
        times.append((time.perf_counter() - begin, time.process_time() - processor))
    return mean([Seconds(*each) for each in times[1:]])


def seconds_of_torch(dtypes: list[str]) -> Seconds:
    """Return how long torch takes to cast all tensors of some dtypes, each from memory."""
    torch: Any = importlib.import_module("torch")
    chance, passed, used = np.random.default_rng(SEED), 0.0, 0.0
    for dtype in dtypes:
        plain = torch.from_numpy(elements(chance, "F32")).to(getattr(torch, TORCH[dtype]))
        times = []
        for _ in range(REPEATS * TENSORS[dtype]):
            begin, processor = time.perf_counter(), time.process_time()
            plain.to(torch.float8_e4m3fn)
            times.append((time.perf_counter() - begin, time.process_time() - processor))
        passed += sum(each for each, _ in times) / REPEATS
        used += sum(each for _, each in times) / REPEATS
    return Seconds(passed, used)


def measured(command: list[str]) -> tuple[Seconds, int]:
    """Run a command; return its seconds, and the most bytes that it and its children held."""
    begin, before, most = time.perf_counter(), os.times(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, sum(map(resident, family(process.pid))))
            time.sleep(0.02)
    assert process.returncode in (0, 1), process.returncode
    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return Seconds(time.perf_counter() - begin, used), most


def family(pid: int) -> Iterator[int]:
    """Yield a process and all below it."""
    yield pid
    with suppress(OSError):
        for thread in (Path("/proc") / str(pid) / "task").glob("*/children"):
            for child in thread.read_text().split():
                yield from family(int(child))


def resident(pid: int) -> int:
    """Return the bytes of memory that a process holds."""
    with suppress(OSError):
        return int((Path("/proc") / str(pid) / "statm").read_text().split()[1]) * PAGE
    return 0


def show(path: Path, title: str, dtypes: list[str], backends: tuple[str, ...] = ()) -> None:
    """Print the figures of one command."""
    check = [sys.executable, "-c", "import castigate; castigate.main()", "check", str(path)]
    source = [f"--from={TORCH[dtypes[0]]}"] if len(dtypes) == 1 else []
    asked = [f"--backend={name}" for name in backends]
    command = [*check, "--to=e4m3fn", *source, *asked]
    by_torch = seconds_of_torch(dtypes)
    times = [measured(command) for _ in range(REPEATS)]
    seconds, most = mean([each for each, _ in times]), max(each for _, each in times)
    size = sum(TENSORS[each] * SHAPE[0] * SHAPE[1] * BYTES[each] for each in dtypes)
    print(f"{title}, {size / 1e9:.2f} GB: torch {by_torch.passed:.2f} s ({by_torch.processor:.2f})")
    if not backends:
        print(f"  check {_words(seconds_of_check(path, dtypes), by_torch)}")
    print(f"  whole command {_words(seconds, by_torch)}, at most {most / 2**20:,.0f} MiB")


def _words(seconds: Seconds, by_torch: Seconds) -> str:
    ratios = by_torch.passed / seconds.passed, by_torch.processor / seconds.processor
    return (
        f"{seconds.passed:.2f} s ({seconds.processor:.2f}), ratio {ratios[0]:.2f} ({ratios[1]:.2f})"
    )


def mean(times: list[Seconds]) -> Seconds:
    """Return the means of both times."""
    return Seconds(
        sum(each.passed for each in times) / len(times),
        sum(each.processor for each in times) / len(times),
    )


def main() -> None:
    with TemporaryDirectory() as made:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else made)
        path = folder / "model.safetensors"
        write(path)
        every = [*TENSORS]
        show(path, "bfloat16", ["BF16"])
        show(path, "all", every)
        show(path, "all, two backends", every, ("torch", "ort"))


if __name__ == "__main__":
    main()
