"""Cells as they are read from a run's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.findings.cells import ShownRun
from reports.findings.read_findings import causes_of, read_cells, read_findings
from reports.judgement import FAILING
from reports.run_store import open_run, tables
from reports.run_store.store import CAUSES
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


def test_cases_that_fail_on_the_same_inputs_share_these_even_if_their_answers_differ(
    tmp_path: Path,
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) ^ (bits % 7 == 0)

    cases = cases_of("onnx-cast:25/float16/float32", "onnx-cast:25/float16/float64")
    folder = judged_run(tmp_path, {"it": cast}, cases)
    first, second = (cell.broken[0].failing for cell in read_cells(folder))
    assert first is not None
    assert second is not None
    assert first.runs.first is first.runs.last is second.runs.first
    assert first.runs.answer is first.runs.last_answer
    assert first.runs.answer is not second.runs.answer


def test_a_reader_may_leave_out_failing_inputs_of_which_there_may_be_gigabytes(
    tmp_path: Path,
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) ^ (bits % 7 == 0)

    folder = judged_run(tmp_path, {"it": cast}, cases_of("onnx-cast:25/uint8/int8"))
    [whole], [cell] = read_cells(folder), read_cells(folder, has_inputs=False)
    assert whole.broken[0].failing is not None
    assert cell.broken[0].failing is None
    assert cell == whole
    assert cell.broken[0].shown_runs
    assert read_findings(folder)["it"][0].explained[0].cell.broken[0].failing is not None
    folder.folder.write(CAUSES, causes_of(folder))
    assert read_findings(folder)["it"][0].explained[0].cell.broken[0].failing is None


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


def test_failing_cells_of_one_backend_are_those_of_all(tmp_path: Path) -> None:
    def odd(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) ^ (bits % 7 == 0)

    def on_bytes(case: Case, bits: Any) -> Any:
        return odd(case, bits) if case.source == "uint8" else RIGHT.cast(case, bits)

    cases = cases_of("onnx-cast:25/float16/float32/", "onnx-cast:25/uint8/float16")
    folder = judged_run(tmp_path, {"one": odd, "two": on_bytes}, cases)
    every = [*read_cells(folder)]
    assert {(each.backend, each.verdict in FAILING) for each in every} == {
        ("one", True), ("two", True), ("two", False),
    }  # fmt: skip
    for backend in ("one", "two"):
        wanted = [each for each in every if each.backend == backend and each.verdict in FAILING]
        assert [*map(repr, read_cells(folder, FAILING, backend))] == [*map(repr, wanted)]


def test_rows_that_no_wanted_case_has_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tables.ROWS_PER_GROUP, "divergences.parquet", 4)

    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) ^ (bits % 7 == 0)

    folder = judged_run(tmp_path, {"one": cast, "two": cast}, cases_of("onnx-cast:25/uint8/int8"))
    read: list[int] = []
    batches = open_run._batches
    monkeypatch.setattr(
        open_run, "_batches", lambda *given: read.append(len(given)) or batches(*given)
    )
    groups = [*open_run.row_groups(folder, "divergences.parquet")]
    assert len(groups) > 10
    read.clear()
    [_] = read_cells(folder, FAILING, "two")
    assert len(read) < len(groups)
