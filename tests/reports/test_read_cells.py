"""Cells as they are read from a run's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.findings.cells import ShownRun
from reports.findings.read_findings import read_cells
from specs.cases import Case
from tests.reports.judged_run import RIGHT, cases_of, judged_run


def test_cases_that_fail_alike_share_failing_inputs_which_keep_no_table(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) ^ (bits % 7 == 0)

    cases = cases_of("onnx-cast:24/float16/float32/", "onnx-cast:25/float16/float32/")
    folder = judged_run(tmp_path, {"it": cast}, cases)
    first, second = (cell.broken[0] for cell in read_cells(folder))
    assert first.failing is not None
    assert first.failing is second.failing
    columns = [*first.failing.runs.columns, first.failing.count]
    assert all(column.base is None for column in columns)


@pytest.mark.parametrize(
    ("name", "codes", "run"),
    [
        (
            "onnx-cast:25/float16/float8e4m3fn/saturate:1",
            {0x3C00: 0x40, 0x3C01: 0x41},
            ShownRun("0x3c00", "0x3c01", 2, "0x40", "0x41", 1, True),
        ),
        (
            "onnx-cast:25/int8/string",
            {0x05: "six", 0x06: "seven"},
            ShownRun("0x05", "0x06", 2, "six", "seven", 1, False),
        ),
    ],
)
def test_a_run_of_inputs_is_shown_with_its_first_and_last_answer(
    name: str, codes: dict[int, Any], run: ShownRun, tmp_path: Path
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits).copy()
        for code, answer in codes.items():
            answers[bits == code] = answer
        return answers

    [cell] = read_cells(judged_run(tmp_path, {"it": cast}, cases_of(name)))
    assert cell.broken[0].shown_runs == (run,)
