"""How much faster several processes are than one, for the same casts and the same sweeps."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from lab.benchmarks.crew import Crew, Task
from lab.benchmarks.figures import keep, median, show
from lab.benchmarks.options import Measured, measured, parser
from lab.benchmarks.pair import COMPILED, Pair, parts, prepared

DEFAULT = ["float32/float16", "float32/float8e4m3fn"]


@dataclass(frozen=True)
class Scaled:
    """Seconds of one process and of several for the same inputs, of every repetition."""

    backend: str
    source: str
    target: str
    task: str
    one: list[float]
    several: list[float]

    @property
    def speed_up(self) -> list[float]:
        """How many times faster several processes were, for each repetition."""
        return [one / several for one, several in zip(self.one, self.several, strict=True)]

    def figures(self) -> dict[str, Any]:
        """The figures as plain data for JSON."""
        more = {"speed_up": self.speed_up, "median_speed_up": median(self.speed_up)}
        return {**asdict(self), **more}


def measure(chosen: Namespace, what: Measured) -> list[Scaled]:
    """Time both tasks in one process and in all, in turn."""
    tasks: dict[str, Task] = {"cast alone": Pair.alone, "sweep": _swept}
    cut = parts(0, chosen.range, chosen.jobs)
    results = [Scaled(*what, task, [], []) for task in tasks]
    with Crew(chosen.jobs, partial(prepared, *what)) as crew:
        for _ in range(chosen.repeat):
            for result in results:
                task = tasks[result.task]
                result.one.append(crew.timed(task, parts(0, chosen.range, 1)).seconds)
                result.several.append(crew.timed(task, cut).seconds)
    return results


def _swept(pair: Pair, lo: int, hi: int) -> int:
    return pair.swept(COMPILED[-1], 1, lo, hi)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, and write all figures as JSON."""
    chosen = parser(__doc__).parse_args(arguments)
    if not chosen.backend and not chosen.pair:
        chosen.backend, chosen.pair = ["torch"], DEFAULT
    results = [result for what in measured(chosen) for result in measure(chosen, what)]
    show(
        f"one process and {chosen.jobs}",
        ["", "1 process s", f"{chosen.jobs} processes s", "times faster"],
        [
            [
                f"{result.backend} {result.source}/{result.target}, {result.task}",
                f"{median(result.one):.3f}",
                f"{median(result.several):.3f}",
                f"{median(result.speed_up):.2f}",
            ]
            for result in results
        ],
    )
    figures = [result.figures() for result in results]
    keep(chosen, {"pairs": figures})


if __name__ == "__main__":
    main()
