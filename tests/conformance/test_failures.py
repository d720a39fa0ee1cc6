"""The folder of failures that all processes of a pytest run share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from conformance.driver import BackendJudge
from conformance.families.reference import Reference
from conformance.judging.asking import Settings
from conformance.pytest_plugin.failures import FailureFolder
from oracles.protocol import Bits
from oracles.registry import Backend
from reports.findings.find import find_findings
from specs.cases import Case
from specs.selection import case_named

CASES = [f"onnx-cast:{version}/float16/int4" for version in (25, 24)]


class GivesOne(Reference):
    """Answers 1 to inputs between 2 and 3 in casts to int4."""

    def cast(self, case: Case, inputs: Bits) -> Bits:
        answers = super().cast(case, inputs)
        is_wrong = (inputs > 0x4000) & (inputs < 0x4200) & (case.target == "int4")
        return np.where(is_wrong, 1, answers).astype(answers.dtype)


def test_findings_are_those_of_all_failures_whoever_stored_them(tmp_path: Path) -> None:
    judge = BackendJudge(Backend("wrong", GivesOne()), {}, Settings())
    one, other = FailureFolder(tmp_path), FailureFolder(tmp_path)
    for failures, name in zip((one, other), CASES, strict=True):
        failures.add(judge.judge(case_named(name)))
    failures.add(judge.judge(case_named("onnx-cast:25/float16/int8")))
    [finding] = find_findings(one.cells(), one.values)["wrong"]
    assert (finding.name, set(finding.cases)) == ("one", set(CASES))
    assert finding.simplest.smallest == "0x4001"
    # Both cases have the same inputs and answers, which are stored once.
    assert len(list(tmp_path.glob("*.part"))) == 2
    assert len(list(tmp_path.glob("*.array"))) == 2


def test_a_judgement_that_is_stored_stays_as_it_is(tmp_path: Path) -> None:
    judge = BackendJudge(Backend("wrong", GivesOne()), {}, Settings())
    failures, judgement = FailureFolder(tmp_path), judge.judge(case_named(CASES[0]))
    failures.add(judgement)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    failures.add(judgement)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
