"""Findings about quantization: each shows its own element, counts its inputs, has its script."""

from __future__ import annotations

from reports.findings.find import find_findings
from reports.findings.finding_text import extent_words
from reports.findings.issue_text import script_or_command
from reports.findings.judged_cells import cell_of
from reports.judgement import Judgement
from reports.problems import WrongTensor
from specs.selection import case_named

CASE = "mx-blocks:1/float32/float4e2m1/rule:floor/block:32"
TIES = WrongTensor(
    "elements-by-other-rules", "§ 1", "recommended", "y", "0.75", "0x1", ("0x2",), 202, 999,
    ("rounds-elements-half-toward-zero",), "print('a tie')\n",
)  # fmt: skip
ZEROS = WrongTensor(
    "zeros-of-floats", "§ 2", "recommended", "y", "-0.1", "0x0", ("0x8",), 5, 999,
    ("drops-the-sign-of-zero-elements",), "print('a zero')\n",
)  # fmt: skip


def test_two_faults_of_a_case_are_two_findings() -> None:
    judgement = Judgement(CASE, "b", "deviates", (TIES, ZEROS), 999, reproduction=TIES.script)
    assert judgement.wrong == 207
    cell = cell_of(case_named(CASE), judgement, ())
    found = {each.name: each for each in find_findings([cell], lambda digest: None)["b"]}
    for problem, words in (
        (TIES, "at least 202 inputs; 0.75 gives 0x1, not 0x2; 202 of 999 inputs"),
        (ZEROS, "at least 5 inputs; -0.1 gives 0x0, not 0x8; 5 of 999 inputs"),
    ):
        finding = found[problem.followed[0]]
        assert extent_words(finding) == f"1 case, float32 to float4e2m1, {words}"
        assert (finding.inputs, finding.is_exact) == (problem.wrong, False)
        assert script_or_command(finding) == problem.script
