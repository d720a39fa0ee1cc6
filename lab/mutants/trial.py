"""Runs mutants: whether the suite finds each deliberate fault, and whether it names its cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from multiprocessing import get_context
from time import process_time
from typing import Any

from numpy.typing import NDArray

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.running.plan import Tier, quick_tasks
from lab.mutants.mutant import UNTOLD, Mutant, MutantOracle, mutant_named
from lab.mutants.space import Combination, chosen, combinations
from lab.mutants.survivors import REASONS, UNKNOWN_REASON
from lab.mutants.tensors import NEED_PROCESS
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.registry import Backend
from reports.findings.find import find_findings
from reports.findings.judged_cells import cell_of
from reports.findings.root_causes import ONE_INPUT
from reports.judgement import FAILING, Judgement
from reports.problems import ChangesWithShape
from specs.selection import case_named, select

MODULE = "lab.mutants.backend"
OTHER_SEEDS = 5
"""Number of other seeds with which a survivor is tried."""


@dataclass(frozen=True)
class MutantResult:
    """The result of a mutant: the check that found it, and the names of the findings.

    ``killed_by`` is empty for a survivor.
    """

    name: str
    fault: str
    kind: str
    condition: str
    on: str
    killed_by: str
    inputs: int
    seconds: float
    findings: tuple[str, ...]
    is_named: bool

    @property
    def is_killed(self) -> bool:
        """Whether some verdict fails."""
        return bool(self.killed_by)


@dataclass(frozen=True)
class Survivor:
    """A mutant that is not found: why, how many other seeds find it, and whether full does."""

    result: MutantResult
    why: str
    seeds: int
    found: int
    is_found_at_full: bool


def run_mutants(seed: int, jobs: int, every: int = 1) -> Iterator[MutantResult | None]:
    """Judge the mutants that a seed chooses, from every ``every``-th combination.

    Yields None for a combination that is wrong nowhere, or whose mutant was judged before.
    """
    numbers = range(0, len(_known_combinations(seed)), every)
    seen: set[str] = set()
    with _pool(jobs) as pool:
        for result in pool.map(_judge_combination, [(seed, number) for number in numbers]):
            is_new = result is not None and result.name not in seen
            seen |= {result.name} if result is not None else set()
            yield result if is_new else None


def follow_survivors(survivors: Sequence[MutantResult], jobs: int, seed: int) -> Iterator[Survivor]:
    """Judge survivors with other seeds, and at the tier full."""
    with _pool(jobs) as pool:
        yield from pool.map(_follow, survivors, [seed] * len(survivors))


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of processes; cancel tasks that have not begun when it is left."""
    pool = ProcessPoolExecutor(jobs, get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@cache
def _known_combinations(seed: int) -> list[Combination]:
    return [*combinations(seed)]


def _judge_combination(chosen_by: tuple[int, int]) -> MutantResult | None:
    """Judge the mutant of a seed's combination of a number; None if it is wrong nowhere."""
    seed, number = chosen_by
    mutant = chosen(_known_combinations(seed)[number])
    return None if mutant is None else judge_mutant(mutant.name, seed)


def _follow(result: MutantResult, seed: int) -> Survivor:
    others = range(seed + 1, seed + 1 + OTHER_SEEDS)
    found = sum(judge_mutant(result.name, other).is_killed for other in others)
    at_full = judge_mutant(result.name, seed, "full").is_killed
    return Survivor(result, why_it_survives(result), OTHER_SEEDS, found, at_full)


def why_it_survives(result: MutantResult) -> str:
    """Return the first of ``REASONS`` that fits a survivor's name, or ``UNKNOWN_REASON``."""
    fits = (why for form, why in REASONS.items() if fnmatchcase(result.name, form))
    return next(fits, UNKNOWN_REASON)


def judge_mutant(
    name: str, seed: int = 0, tier: Tier = "quick", *, as_a_gate: bool = False
) -> MutantResult:
    """Judge the pair in which a mutant's fault is planted, as a run or as a gate would."""
    mutant = mutant_named(name)
    begun = process_time()
    settings = Settings(seed=seed, tier=tier, isolates_sweeps=as_a_gate)
    judgements = list(_judged(mutant, settings))
    failing = [each for each in judgements if each.verdict in FAILING]
    found = _findings(failing)
    return MutantResult(
        name,
        mutant.fault.name,
        mutant.fault.kind,
        mutant.condition.name,
        mutant.condition.on,
        _check(failing[0]) if failing else "",
        sum(each.inputs for each in judgements),
        process_time() - begun,
        found,
        bool(found) and all(map(_names(mutant.causes), found)),
    )


def _names(causes: Iterable[str]) -> Any:
    return lambda finding: any(fnmatchcase(finding, cause) for cause in causes)


def _judged(mutant: Mutant, settings: Settings) -> Iterator[Judgement]:
    case = mutant.case
    cases = [
        each
        for each in select([f"{case.document}:{case.version}"])
        if (each.source, each.target) == (case.source, case.target)
    ]
    needs_process = mutant.condition.on == "threads and time" or mutant.fault.name in NEED_PROCESS
    if needs_process:
        backend = load_isolated(f"{MODULE}:{mutant.name}", LaunchConfig())
    else:
        backend = Backend(f"{MODULE}:{mutant.name}", MutantOracle(mutant))
    judge = BackendJudge(backend, {}, settings)
    try:
        for task in quick_tasks(backend.name, [backend.name], cases):
            yield from judge.judge_pair(task.cases, task.checks, task.among)
    finally:
        if needs_process:
            close(backend)


def _check(judgement: Judgement) -> str:
    """Name the check that found a mutant."""
    if judgement.check:
        return judgement.check.partition("/")[0]
    if judgement.verdict in ("error", "crashed"):
        return judgement.verdict
    if judgement.divergences:
        return "values"
    if any(isinstance(each, ChangesWithShape) for each in judgement.problems):
        return "shapes"
    return "bits and shapes"


def _findings(failing: Sequence[Judgement]) -> tuple[str, ...]:
    """The names of the findings of failing judgements, those of most inputs first.

    One whose cause a single input does not tell has the name ``UNTOLD``.
    """
    arrays: dict[str, NDArray[Any]] = {}
    cells = []
    for judgement in failing:
        digests = []
        if judgement.answered is not None:
            for array in (judgement.answered.inputs, judgement.answered.answers):
                arrays[array.digest] = array.values
                digests.append(array.digest)
        cells.append(cell_of(case_named(judgement.case), judgement, digests))
    found = find_findings(cells, arrays.__getitem__)
    return tuple(
        UNTOLD if each.says.startswith(ONE_INPUT) else each.name
        for findings in found.values()
        for each in findings
    )
