"""The sweep of one part of a road, with the fastest functions that are installed."""

from __future__ import annotations

from conformance.driver import BackendJudge
from conformance.sweep.engine import Progress, sweep
from oracles.reference.sweep_inputs import InputSequence
from reports.grading.chunk_comparison import fastest_comparison
from reports.judgement import Judgement
from specs.cases import Case


def swept(
    judge: BackendJudge,
    cases: list[Case],
    inputs: InputSequence,
    lo: int,
    hi: int,
    progress: Progress,
) -> list[Judgement]:
    """Sweep some inputs of a sequence with the fastest functions that are installed."""
    return sweep(judge, cases, inputs, lo, hi, fastest_comparison(), progress)
