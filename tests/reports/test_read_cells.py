"""Cells as they are read from a run's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reports.findings.read_cells import read_cells
from specs.cases import Case
from tests.reports.judged_run import RIGHT, cases_of, judged_run


def test_cases_that_fail_alike_share_failing_inputs_which_keep_no_table(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) ^ (bits % 7 == 0)

    cases = cases_of("onnx-cast:24/float16/float32/", "onnx-cast:25/float16/float32/")
    first, second = (
        cell.broken[0] for cell in read_cells(judged_run(tmp_path, {"it": cast}, cases))
    )
    assert first.failing is not None
    assert first.failing is second.failing
    columns = [*first.failing.runs.columns, first.failing.count]
    assert all(column.base is None for column in columns)
