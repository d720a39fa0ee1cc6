"""Measures the cost of judging: whole sweeps beside the same casts alone, in one run.

Ratios are taken within a repetition and their median is shown: they hold where a machine's speed
drifts, the seconds do not. Within a repetition the tasks take turns, a part of the range each time,
and a task's seconds are those of all its parts: a drift of a few seconds meets all of them.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from lab.benchmarks.crew import Crew, Task, Timed, together
from lab.benchmarks.figures import keep, median, show
from lab.benchmarks.options import Measured, measured, parser
from lab.benchmarks.pair import COMPILED, Checked, Chosen, Pair, parts, prepared

ALONE = "cast alone"
TABLES = (4, 16)
TURNS = 8
"""Parts of a range that are timed one after another.

The shortest whole task takes a third of a second, and a part still takes much longer than the
processes need to begin together.
"""
NAMES = {True: "numba", False: "numpy"}
NOISE = "lab.benchmarks.noise:Noise"
NOISE_CASE = "onnx-cast:25/float32/float16"
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Result:
    """All figures of one backend and pair, by task: seconds of every repetition, and the peak.

    ``processor`` is the processor time of all processes together.
    """

    backend: str
    source: str
    target: str
    chosen: Chosen
    seconds: dict[str, list[float]]
    processor: dict[str, list[float]]
    peak: dict[str, int]
    wrong: int
    checked: dict[str, Checked]

    @property
    def name(self) -> str:
        return f"{self.backend} {self.source}/{self.target}"

    def ratio(self, form: str) -> list[float]:
        """The time of the sweep divided by that of the cast alone, for each repetition."""
        return _ratio(self.seconds, form)

    def ratio_of_processors(self, form: str) -> list[float]:
        """The same ratio of processor times."""
        return _ratio(self.processor, form)

    def of_each_table(self, form: str, tables: int) -> list[float]:
        """The cost of each further table, relative to the sweep with the first."""
        pairs = zip(self.seconds[_tables(form, tables)], self.seconds[form], strict=True)
        return [(several - one) / one / (tables - 1) for several, one in pairs]

    def figures(self, form: str) -> dict[str, Any]:
        """All measured and derived figures as plain data for JSON."""
        names = [name for name in NAMES.values() if name in self.seconds]
        ratio = {name: self.ratio(name) for name in names}
        processors = {name: self.ratio_of_processors(name) for name in names}
        further = {str(tables): self.of_each_table(form, tables) for tables in TABLES}
        return {
            **asdict(self),
            "ratio": ratio,
            "median_ratio": {name: median(each) for name, each in ratio.items()},
            "ratio_of_processors": processors,
            "median_ratio_of_processors": {n: median(each) for n, each in processors.items()},
            "further_table": further,
            "median_further_table": {name: median(each) for name, each in further.items()},
        }


def _ratio(times: dict[str, list[float]], form: str) -> list[float]:
    return [whole / alone for whole, alone in zip(times[form], times[ALONE], strict=True)]


def measure(wanted: Namespace, what: Measured, fast: bool) -> Result:
    """Time every task of one pair, taking turns within each repetition."""
    form = NAMES[fast]
    turns = [parts(lo, hi, wanted.jobs) for lo, hi in parts(0, wanted.range, TURNS)]
    tasks: dict[str, Task] = {ALONE: Pair.alone, form: partial(_swept, fast, 1)}
    if wanted.numpy and fast:
        tasks[NAMES[False]] = partial(_swept, False, 1)
    tasks |= {_tables(form, tables): partial(_swept, fast, tables) for tables in TABLES}
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    processor: dict[str, list[float]] = {name: [] for name in tasks}
    peak = dict.fromkeys(tasks, 0)
    with Crew(wanted.jobs, partial(prepared, *what)) as crew:
        chosen: Chosen = crew.first(Pair.told)
        wrong = 0
        for _ in range(wanted.repeat):
            done: dict[str, list[Timed]] = {name: [] for name in tasks}
            for turn in turns:
                for name, task in tasks.items():
                    done[name].append(crew.timed(task, turn))
            for name, timed in done.items():
                whole = together(timed)
                _say(f"{'/'.join(what)}, {name}: {whole.seconds:.3f} s")
                seconds[name].append(whole.seconds)
                processor[name].append(whole.processor)
                peak[name] = max(peak[name], whole.peak)
                wrong = max(wrong, sum(whole.found))
        checked = {
            NAMES[each]: crew.first(partial(_checked, each), 0, wanted.range) for each in COMPILED
        }
    return Result(*what, chosen, seconds, processor, peak, wrong, checked)


def _say(message: str) -> None:
    """Print progress on stderr; the results go to stdout."""
    print(message, file=sys.stderr, flush=True)


# A task is called with the process's ``Pair`` and the bounds of its part.


def _swept(fast: bool, tables: int, pair: Pair, lo: int, hi: int) -> int:
    return pair.swept(fast, tables, lo, hi)


def _checked(fast: bool, pair: Pair, lo: int, hi: int) -> Checked:
    return pair.checked(fast, lo, hi)


def _tables(form: str, tables: int) -> str:
    return f"{form}, {tables} tables"


def measure_worst(wanted: Namespace, fast: bool) -> dict[str, Any]:
    """Sweep answers that are all wrong, once; return the figures as plain data for JSON."""
    make = partial(prepared, NOISE, "float32", "float16", NOISE_CASE)
    with Crew(wanted.jobs, make) as crew:
        timed = crew.timed(partial(_swept, fast, 1), parts(0, wanted.range, wanted.jobs))
    return {
        "form": NAMES[fast],
        "seconds": timed.seconds,
        "inputs_per_second_per_process": wanted.range / timed.seconds / wanted.jobs,
        "inputs_per_second_of_a_processor": wanted.range / timed.processor,
        "inputs": wanted.range,
        "wrong": sum(timed.found),
        "peak": timed.peak,
    }


def show_all(results: list[Result], worst: dict[str, Any] | None, fast: bool) -> None:
    """Print tables of the sweeps, of the checker alone, and of the worst case unless it is None."""
    form = NAMES[fast]
    columns = ["", "alone s", f"{form} s", "ratio", "of CPU"]
    with_numpy = bool(results) and fast and NAMES[False] in results[0].seconds
    if with_numpy:
        columns += ["numpy s", "ratio", "of CPU"]
    columns += ["wrong", *(f"+1 table, of {tables}" for tables in TABLES), "peak MB"]
    rows = []
    for result in results:
        names = [form, NAMES[False]] if with_numpy else [form]
        row = [result.name, _spread(result.seconds[ALONE], 3)]
        for name in names:
            row += [
                f"{median(result.seconds[name]):.3f}",
                _spread(result.ratio(name)),
                f"{median(result.ratio_of_processors(name)):.2f}",
            ]
        row.append(f"{result.wrong:,}")
        row += [f"{median(result.of_each_table(form, tables)):+.1%}" for tables in TABLES]
        rows.append([*row, f"{max(result.peak.values()) / MEGABYTE:.0f}"])
    show("whole sweeps and the cast alone", columns, rows)
    show(
        "the checker alone, answers in the cache, one process",
        ["", *(f"{NAMES[each]} G/s" for each in COMPILED), "chunks refused", "table made in s"],
        [
            [
                result.name,
                *(_speed(result.checked[NAMES[each]]) for each in COMPILED),
                str(result.checked[form].refused),
                f"{result.chosen.seconds_for_table:.3f}",
            ]
            for result in results
        ],
    )
    for result in results:
        chosen, judging = result.chosen, result.chosen.judging
        print(
            f"{result.name}: asked {chosen.asked}, {chosen.is_open:.1%} of it open;"
            f" {len(judging)} rulings that differ, repeated"
        )
        print("".join(f"    {name}\n" for name in judging[1:]), end="")
    if worst is not None:
        speed = worst["inputs_per_second_per_process"] / 1e9
        of_processor = worst["inputs_per_second_of_a_processor"] / 1e9
        exact = "all counted" if worst["wrong"] == worst["inputs"] else "NOT ALL COUNTED"
        show(
            "every answer wrong, in no pattern",
            ["", "s", "G/s per process", "of CPU", "inputs", "wrong", "", "peak MB"],
            [
                [
                    f"noise float32/float16, {form}",
                    f"{worst['seconds']:.2f}",
                    f"{speed:.3f}",
                    f"{of_processor:.3f}",
                    f"{worst['inputs']:,}",
                    f"{worst['wrong']:,}",
                    exact,
                    f"{worst['peak'] / MEGABYTE:.0f}",
                ]
            ],
        )


def _spread(figures: list[float], places: int = 2) -> str:
    """Format the least, median and greatest figure, which shows how steady the machine was."""
    least, middle, most = (f"{each(figures):.{places}f}" for each in (min, median, max))
    return f"{least} < {middle} < {most}"


def _speed(checked: Checked) -> str:
    return f"{checked.elements / checked.seconds / 1e9:.1f}" if checked.elements else "-"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print tables, and write all figures as JSON."""
    options = parser(__doc__)
    options.add_argument("--numpy", action="store_true", help="time numpy's comparison as well")
    options.add_argument("--no-worst", action="store_true", help="leave the worst case out")
    wanted = options.parse_args(arguments)
    fast = COMPILED[-1]
    results = [measure(wanted, what, fast) for what in measured(wanted)]
    worst = None if wanted.no_worst else measure_worst(wanted, fast)
    show_all(results, worst, fast)
    figures = [result.figures(NAMES[fast]) for result in results]
    keep(wanted, {"pairs": figures, "worst": worst})


if __name__ == "__main__":
    main()
