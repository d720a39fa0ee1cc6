"""Compare all truths with all rulings, pair by pair, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

import numpy as np

from lab.truths.comparison import Counts, Key, compare_pair
from lab.truths.inputs import inputs_of
from lab.truths.known import KNOWN
from lab.truths.questions import Patterns
from lab.truths.rulings import pairs, rulings_of
from lab.truths.texts import compare_texts, text_targets
from lab.truths.truths import TRUTHS
from specs.formats import Format, format_named

RANDOM = 1_000_000
"""The number of random patterns for each pair with a wide source."""
TEXTS = 20_000
"""The number of texts for each target."""

Task = tuple[str, str, int]
"""The names of a source (empty: texts) and a target, and the number of random inputs."""


def run(jobs: int, random: int, report: Callable[[str, dict[Key, Counts]], None]) -> None:
    """Compare every pair and report each as it is done."""
    tasks = [(source.name, target.name, random) for source, target in pairs()]
    tasks += [("", target.name, min(random, TEXTS)) for target in text_targets()]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for task, counts in zip(tasks, pool.map(_compare, tasks), strict=True):
            report(f"{task[0] or 'text'} to {task[1]}", counts)


def _compare(task: Task) -> dict[Key, Counts]:
    source_name, target_name, random = task
    target = format_named(target_name)
    if not source_name:
        return compare_texts(target, random)
    source = format_named(source_name)
    choose = _chooser(source, target, random)
    return compare_pair(rulings_of(source, target), TRUTHS, KNOWN, choose)


def _chooser(source: Format, target: Format, random: int) -> Callable[[int | None], Patterns]:
    """Return a function that returns a pair's inputs, or some of them, the same array each time."""
    inputs = inputs_of(source, target, random)

    @cache
    def choose(most: int | None) -> Patterns:
        if most is None or inputs.size <= most:
            return inputs
        chance = np.random.default_rng(0)
        return inputs[np.sort(chance.choice(inputs.size, most, replace=False))]

    return choose
