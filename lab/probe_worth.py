"""Measures what each kind of tensors costs, and counts the mutants that it alone kills.

``python -m lab.probe_worth`` prints the table.

A kind's **price** is the processor time that pairs take longer if it is asked. Its **worth** is the
number of mutants (``lab/mutants``) that are killed with it and survive without it. Both are counted
as if its turn had come in every pair. These two figures are to decide how often each kind is asked
(``conformance/families/cast/probes.py``): less often if it costs much and kills little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from statistics import median
from time import process_time
from typing import Annotated, Any

import typer

from conformance.driver import BackendJudge
from conformance.families.cast import invariances
from conformance.judging.asking import Settings
from conformance.running.plan import Task, quick_tasks
from lab.command import progress, run
from lab.mutants.trial import judge_mutant, run_mutants
from oracles.registry import load_backend
from reports.outputs.table import markdown_table
from specs.selection import select

TIMES = 3
"""How often each price is measured, each time in a new process as in a run; the median counts."""


def _nothing(*_arguments: object, **_options: object) -> list[Any]:
    return []


KINDS: Mapping[str, tuple[str, ...]] = {
    "draws": ("drawn",),
    "listed tensors": ("listed",),
    "layouts of all inputs": ("whole_probes",),
    "used memory": ("rewritten",),
    "other casts before": ("in_turn",),
    "two threads": ("at_once", "beside"),
}
"""By kind, the functions of ``invariances`` that give its tensors."""


def _ask(kinds: Sequence[str]) -> None:
    """Have this process ask these kinds in every pair, and no other."""
    vars(invariances)["turn_of"] = lambda *_: 0
    for kind, functions in KINDS.items():
        if kind not in kinds:
            vars(invariances).update(dict.fromkeys(functions, _nothing))


def _in_process(kinds: Sequence[str], function: Callable[..., Any], each: Sequence[Any]) -> Any:
    """Yield the results of a function in another process that asks only these kinds."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_ask, initargs=(kinds,)) as pool:
        yield from pool.map(function, each)


def _seconds(named: tuple[str, int]) -> float:
    """Judge one in ``every`` pairs of a backend; return the processor time that it took."""
    name, every = named
    tasks: list[Task] = [*quick_tasks(name, [name], select([]))]
    Random("pairs").shuffle(tasks)
    judge = BackendJudge(load_backend(name), None, Settings(has_turns=True))
    begun = process_time()
    for task in tasks[::every]:
        judge.judge_pair(task.cases, task.checks, task.among)
    return process_time() - begun


def _is_killed(name: str) -> bool:
    return judge_mutant(name).is_killed


def _without(kind: str) -> list[str]:
    return [each for each in KINDS if each != kind]


def rows(backend: str, pairs: int, mutants: int) -> Iterator[tuple[str, ...]]:
    """Yield for each kind its name, its price and its share of all time, its worth, and the ratio.

    One in so many ``pairs`` is timed, and one in so many ``mutants`` is tried.
    """
    asked = {kind: _without(kind) for kind in KINDS} | {"": [*KINDS]}
    rounds = [
        {
            kind: sum(_in_process(kinds, _seconds, [(backend, pairs)]))
            for kind, kinds in asked.items()
        }
        for _ in range(TIMES)
    ]
    times = {kind: median(each[kind] for each in rounds) for kind in asked}
    whole = times.pop("")
    with progress() as bar:
        tried = bar.track([*run_mutants(0, 1, mutants)], description="mutants")
        names = [found.name for found in tried if found is not None]
    killed = [*_in_process([*KINDS], _is_killed, names)]
    some = [name for name, is_killed in zip(names, killed, strict=True) if is_killed]
    for kind, seconds in times.items():
        still = [*_in_process(_without(kind), _is_killed, some)]
        worth, price = still.count(False), whole - seconds
        ratio = f"{worth / price:.1f}" if price > 0 else "–"
        yield kind, f"{price:.2f} s", f"{price / whole:.0%}", f"{worth} of {len(some)}", ratio


def command(
    backend: Annotated[str, typer.Option(help="The backend whose pairs are timed.")] = "ml_dtypes",
    pairs: Annotated[int, typer.Option(min=1, help="Time one pair in so many.")] = 8,
    mutants: Annotated[int, typer.Option(min=1, help="Try one mutant in so many.")] = 7,
) -> None:
    """Print what each kind of tensors costs, and how many mutants it alone kills."""
    titles = ("kind", "price", "of all time", "kills alone", "kills per second")
    typer.echo("\n".join(markdown_table(titles, [*rows(backend, pairs, mutants)])))


if __name__ == "__main__":
    run(command)
