"""The tier `full` inside one process: the quick tier's judgement, and a sweep of each road."""

from __future__ import annotations

from functools import lru_cache

from conformance.judging.backend_judge import BackendJudge
from conformance.running.plan import Sweep, is_swept, sweeps
from conformance.sweep.engine import Progress, sweep
from conformance.sweep.joining import completed, joined
from oracles.reference.sweep_inputs import InputSequence, input_sequence
from reports.diff.chunk_comparison import fastest_comparison
from reports.diff.failure_runs import Runs
from reports.diff.judgement import Judgement
from specs.cases import Case
from specs.ruling import Ruling, ruling

ROADS_KEPT = 8
"""Roads whose sweeps are remembered: cases come pair by pair."""


class FullJudge:
    """Judges one backend on every input of sources of up to 32 bits, one sweep for all cases."""

    def __init__(self, judge: BackendJudge, cases: list[Case]) -> None:
        self.quick_judge = judge
        self.backend = judge.backend
        self._cases = cases
        self._swept = lru_cache(ROADS_KEPT)(self._sweep_road)

    def judge(self, case: Case) -> Judgement:
        """The verdict on a case."""
        quick = self.quick_judge.judge(case)
        if not is_swept(case) or not (road := self.quick_judge.road(case)):
            return quick
        return completed(quick, self._swept(case.source, case.target, road)[ruling(case)])

    def _sweep_road(self, source: str, target: str, road: str) -> dict[Ruling, Judgement]:
        """Judge one cast of all inputs by every ruling that shares the road."""
        cases = [case for case in self._cases if (case.source, case.target) == (source, target)]
        roads = {case.id: self.quick_judge.road(case) for case in cases}
        found: dict[Ruling, Judgement] = {}
        for plan in sweeps(cases, roads):
            if plan.road == road:
                for case, judgement in zip(plan.cases, self._judgements(plan), strict=True):
                    rules = ruling(case)
                    before = found.get(rules)
                    found[rules] = joined(before, judgement, Runs.merged) if before else judgement
        return found

    def _judgements(self, plan: Sweep) -> list[Judgement]:
        rulings = [ruling(case) for case in plan.cases]
        seed = self.quick_judge.settings.seed
        inputs = input_sequence(plan.way, plan.source, plan.target, rulings, seed)
        return swept(self.quick_judge, list(plan.cases), inputs, 0, inputs.size, lambda *_: None)


def swept(
    judge: BackendJudge,
    cases: list[Case],
    inputs: InputSequence,
    lo: int,
    hi: int,
    progress: Progress,
) -> list[Judgement]:
    """Sweep some inputs of a visit with the fastest functions that are installed."""
    return sweep(judge, cases, inputs, lo, hi, fastest_comparison(), progress)
