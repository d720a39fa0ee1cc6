"""Which divergences a baseline has, if both runs were asked different inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import quick_inputs
from reports.findings.read_findings import read_cells
from reports.gate.baseline import EarlierRun
from reports.run_store.open_run import RunAnswers
from specs.cases import Case
from tests.reports.judged_run import RIGHT, Answer, cases_of, judged_run, through, where

BEFORE, NOW = 1, 2
"""The seeds of the baseline and of the run that is compared with it."""
MILLION = 0x412E848000000000
LARGE, TRILLION = 0x7FEFFFFFFFFFFFFF, 0x426D1A94A2000000
TO_FLOAT8 = "onnx-cast:25/float64/float8e4m3fn/saturate:0"
TO_BFLOAT16 = "onnx-cast:25/float64/bfloat16"


def known(folder: Path, before: Answer, now: Answer, name: str) -> list[bool]:
    """For each divergence of a case in the new run, whether the baseline has it."""
    old = judged_run(folder / "old", {"it": before}, cases_of(name), BEFORE)
    new = judged_run(folder / "new", {"it": now}, cases_of(name), NOW)
    cells = {cell.name: cell for cell in read_cells(old)}
    baseline = EarlierRun(cells, RunAnswers(old).values, RunAnswers(new).values)
    [cell] = read_cells(new)
    assert cell.asked != cells[cell.name].asked
    assert cell.broken
    return [baseline.has(cell, broken) for broken in cell.broken]


def from_million(code: int, last: int = LARGE) -> Answer:
    """Answer one pattern to each number from a million to ``last``."""
    return where(lambda _, bits: (bits >= MILLION) & (bits <= last), lambda _: code)


def asked_by(seed: int, case: Case) -> Any:
    return quick_inputs(case.source, case.target, seed, 100)


def only_for(seed: int, answer: Answer, other: Answer = RIGHT.cast) -> Answer:
    """One answer to the inputs of a seed, and another to all others."""

    def cast(case: Case, bits: Any) -> Any:
        is_asked = np.isin(bits, asked_by(seed, case))
        return np.where(is_asked, answer(case, bits), other(case, bits))

    return cast


SAME_FAULTS: dict[str, tuple[Answer, str]] = {
    "rounds twice": (through("float32"), TO_FLOAT8),
    "rounds twice, on more inputs than a run lists": (through("float32"), TO_BFLOAT16),
    "rounds a text twice": (through("float32"), "onnx-cast:25/string/float16"),
    "gives one pattern in a region": (from_million(0x35), TO_FLOAT8),
}


@pytest.mark.parametrize("kind", SAME_FAULTS)
def test_a_fault_is_known_whichever_inputs_are_drawn(kind: str, tmp_path: Path) -> None:
    answer, name = SAME_FAULTS[kind]
    assert all(known(tmp_path, answer, answer, name))


zeros = where(lambda _, bits: np.ones(bits.shape, bool), lambda _: 0)
NEW_FAULTS: dict[str, tuple[Answer, Answer]] = {
    "the rule held": (RIGHT.cast, from_million(0x35)),
    "another answer in the same region": (from_million(0x35), from_million(0x36)),
    "only the inputs of the baseline are right": (RIGHT.cast, only_for(BEFORE, RIGHT.cast, zeros)),
    "only the inputs of the baseline are answered as before": (
        from_million(0x35),
        only_for(BEFORE, from_million(0x35), zeros),
    ),
    "some inputs are right now": (from_million(0x35), from_million(0x35, TRILLION)),
}


@pytest.mark.parametrize("kind", NEW_FAULTS)
def test_another_fault_by_the_same_rule_is_not_known(kind: str, tmp_path: Path) -> None:
    before, now = NEW_FAULTS[kind]
    assert not all(known(tmp_path, before, now, TO_FLOAT8))
