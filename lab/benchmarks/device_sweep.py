"""Measures a sweep on a device beside the least time that its answers need in the device's memory.

The least is the time in which the device writes all answers once and reads them once, block by
block. The sweep also makes the inputs, casts them and checks the answers, in one process. The tasks
take turns within a repetition; ratios are taken within one, and their median is shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.sweep.device_blocks import BLOCK
from lab.benchmarks.figures import keep, median, show
from lab.benchmarks.options import PAIRS, number
from lab.benchmarks.pair import COMPILED, Pair, prepared
from oracles.adapters.torch import Torch
from oracles.registry import Backend
from specs.formats import format_named

Task = Callable[[Pair, str, int], int]
"""Takes a pair, a device and a number of inputs; returns how many answers were wrong."""


def least(pair: Pair, device: str, inputs: int) -> int:
    """Write and read as many bytes as the answers have, 8 at a time."""
    width = np.dtype(format_named(pair.asked.target).storage).itemsize
    words = torch.empty(min(BLOCK, inputs) * width // 8, dtype=torch.int64, device=device)
    for begin in range(0, inputs, BLOCK):
        part = words[: min(BLOCK, inputs - begin) * width // 8].fill_(1)
        if int(part.sum()) != part.numel():
            raise RuntimeError("the device reads what was not written")
    return 0


def cast_alone(pair: Pair, device: str, inputs: int) -> int:
    """Make all inputs and cast them."""
    oracle: Any = pair.judge.backend.oracle
    call = oracle.device_sweep(pair.asked, min(BLOCK, inputs))
    for begin in range(0, inputs, BLOCK):
        call(begin, min(BLOCK, inputs - begin))
    return 0


def swept(pair: Pair, device: str, inputs: int) -> int:
    """Make all inputs, cast them and judge the answers."""
    return pair.swept(COMPILED[-1], 1, 0, inputs)


TASKS: Mapping[str, Task] = {"least": least, "cast alone": cast_alone, "sweep": swept}


def on_device(name: str, device: str) -> Pair:
    """Return torch on a device, with the case that the sweep of torch on the CPU is measured by."""
    adapter = type("OnDevice", (Torch,), {"devices": {"cuda": device}})
    pair = prepared("torch", *name.split("/"))
    pair.judge = BackendJudge(Backend("torch", adapter("cuda")), {}, Settings())
    return pair


def measure(name: str, device: str, inputs: int, repeat: int) -> dict[str, Any]:
    """Time every task of one pair, in turns; return the figures as plain data for JSON."""
    pair = on_device(name, device)
    seconds: dict[str, list[float]] = {task: [] for task in TASKS}
    wrong = 0
    for task in TASKS.values():
        task(pair, device, min(BLOCK, inputs))  # loads kernels, and takes memory from the system
    for _ in range(repeat):
        for title, task in TASKS.items():
            begun = perf_counter()
            wrong = max(wrong, task(pair, device, inputs))
            seconds[title].append(perf_counter() - begun)
    ratios = {
        title: [one / base for one, base in zip(seconds[title], seconds["least"], strict=True)]
        for title in TASKS
    }
    return {
        "pair": name,
        "asked": pair.asked.id,
        "seconds": seconds,
        "median_ratio": {title: median(each) for title, each in ratios.items()},
        "wrong": wrong,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, and write all figures as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="cuda", metavar="NAME", help="a torch device")
    options.add_argument("--pair", action="append", metavar="SOURCE/TARGET", help="repeatable")
    options.add_argument("--repeat", type=int, default=5, metavar="N")
    options.add_argument("--range", type=number, default=1 << 32, metavar="N", help="inputs")
    options.add_argument("--json", type=Path, metavar="FILE", help="where all figures go")
    wanted = options.parse_args(arguments)
    results = [
        measure(pair, wanted.device, wanted.range, wanted.repeat)
        for pair in wanted.pair or PAIRS["torch"]
    ]
    show(
        f"{wanted.range:,} inputs on {wanted.device}, one process",
        ["", *(f"{title} s" for title in TASKS), "cast / least", "sweep / least", "wrong"],
        [
            [
                result["pair"],
                *(f"{median(result['seconds'][title]):.4f}" for title in TASKS),
                *(f"{result['median_ratio'][title]:.1f}" for title in ("cast alone", "sweep")),
                f"{result['wrong']:,}",
            ]
            for result in results
        ],
    )
    keep(wanted, {"pairs": results})


if __name__ == "__main__":
    main()
