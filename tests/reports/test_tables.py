"""The tables: what each column holds, and the same bytes for the same judgements."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.findings.cells import KnownColumns, failing_inputs
from reports.grading.failure_runs import MOST_RUNS, Runs
from reports.judgement import DatumArray, InputsAndAnswers, Judgement, decode_array
from reports.problems import WrongForm
from reports.run_store.storage import folder_at
from reports.run_store.tables import (
    CASES,
    DIVERGENCES,
    ROWS_PER_GROUP,
    SCHEMAS,
    JudgedCase,
    case_row,
    divergence_rows,
    write_tables,
)
from specs.errors import CastigateError
from tests.reports.common import (
    FROM_TEXT,
    HALF,
    TO_COMPLEX,
    TO_TEXT,
    divergence,
    judgement,
    objects,
    patterns,
    steps,
)
from tests.reports.judgement_strategies import JUDGEMENTS
from tests.search import examples

ROOT = Path(__file__).parents[2]
TWO_ROWS = np.zeros(2, np.int64), np.ones(2, np.bool_)
SLOPE_AND_STRAIGHT = np.array([3], np.int64), np.array([True])


def written_table(folder: Path, name: str, rows: list[JudgedCase]) -> list[dict[str, Any]]:
    write_tables(folder_at(str(folder)), rows)
    return pq.read_table(folder / name).to_pylist()


def runs_of_texts(rows: int) -> Runs:
    """Runs of texts of many lengths: enough for several pages."""
    texts = objects([f"{place}" * (place % 50) for place in range(rows)])
    runs = steps(rows)
    return Runs(rows, texts, texts, *runs.columns[2:])


def rows_of_several_groups() -> list[JudgedCase]:
    """Rows that fill several row groups of divergences."""
    many = divergence(steps(MOST_RUNS + 1, total=1 << 20), rule="clamps")
    texts = judgement(FROM_TEXT, divergence(runs_of_texts(30_000)))
    return [
        ("ort", HALF, judgement(HALF, divergence(steps(5)), many)),
        ("ort", FROM_TEXT, texts),
        ("torch", HALF, judgement(HALF, many)),
        ("torch", FROM_TEXT, texts),
    ]


def test_the_columns_of_cases(tmp_path: Path) -> None:
    fault = WrongForm("shape \ud800", "", "keeps-shape", "§ 9", "required")
    found = judgement(
        FROM_TEXT,
        divergence(steps(3, total=70_000), smallest="a\ud800\0", answer=0x7F),
        fault,
        open_inputs=7,
        reproduction="one\ntwo",
    )
    assert written_table(tmp_path, "cases.parquet", [("ort:folded", FROM_TEXT, found)]) == [
        {
            "backend": "ort:folded",
            "case": "onnx-cast:25/string/float8e4m3fn/saturate:0",
            "document": "onnx-cast",
            "version": "25",
            "source": "string",
            "target": "float8e4m3fn",
            "mode": "saturate:0",
            "verdict": "violates",
            "message": "shape \\ud800",
            "inputs": 256,
            "open": 7,
            "wrong": 70_000,
            "runs": 70_000,
            "reaches_ends": False,
            "broken": [
                {
                    "rule": "rounds",
                    "clause": "§ 1",
                    "level": "required",
                    "wrong": 70_000,
                    "runs": 70_000,
                    "digest": "0000000000077a11",
                    "smallest": "a\\ud800\0",
                    "answer": "0x7f",
                    "allowed": ["0x0000", "any-nan"],
                },
                {
                    "rule": "keeps-shape",
                    "clause": "§ 9",
                    "level": "required",
                    "wrong": 0,
                    "runs": 0,
                    "digest": "",
                    "smallest": None,
                    "answer": None,
                    "allowed": [],
                },
            ],
            "reproduction": "one\ntwo",
            "asked": None,
            "answers": None,
        }
    ]


def test_answers_are_stored_once_under_their_digest(tmp_path: Path) -> None:
    inputs = DatumArray("float32", np.array([1, 2, 0xFFFF_FFFF], np.uint32))
    answers = DatumArray("float16", np.array([0, 0x7C00, 3], np.uint16))
    found = judgement(HALF, answered=InputsAndAnswers(inputs, answers))
    rows = [(name, HALF, found) for name in ("ort", "torch")]
    kept = written_table(tmp_path, "answers.parquet", rows)
    assert [(row["dtype"], row["count"]) for row in kept] == [("float32", 3), ("float16", 3)]
    by_digest = {row["digest"]: decode_array(row["dtype"], row["data"]) for row in kept}
    for row in written_table(tmp_path, "cases.parquet", rows):
        assert by_digest[row["asked"]].values.tolist() == inputs.values.tolist()
        assert by_digest[row["answers"]].values.tolist() == answers.values.tolist()


MAX_WORD = (1 << 64) - 1
ONE_RUN = {
    "patterns": (
        HALF,
        Runs(
            1,
            patterns([0]),
            patterns([MAX_WORD - 1]),
            patterns([5]),
            patterns([MAX_WORD]),
            *SLOPE_AND_STRAIGHT,
        ),
        {"first": 0, "last": MAX_WORD - 1, "count": MAX_WORD, "answer": 5, "last_answer": MAX_WORD},
    ),
    "patterns to texts": (
        TO_TEXT,
        Runs(
            1,
            patterns([1]),
            patterns([9]),
            objects(["1"]),
            objects(["\ud800"]),
            *SLOPE_AND_STRAIGHT,
        ),
        {"first": 1, "last": 9, "count": 9, "answer_text": "1", "last_answer_text": "\\ud800"},
    ),
    "texts": (
        FROM_TEXT,
        Runs(
            1, objects(["x\n"]), objects(["x\n"]), patterns([1]), patterns([1]), *SLOPE_AND_STRAIGHT
        ),
        {"count": 1, "text": "x\n", "answer": 1, "last_answer": 1},
    ),
    "answers of 128 bits": (
        TO_COMPLEX,
        Runs(
            1,
            patterns([1]),
            patterns([2]),
            objects([1 << 64]),
            objects([MAX_WORD]),
            *SLOPE_AND_STRAIGHT,
        ),
        {
            "first": 1,
            "last": 2,
            "count": 2,
            "answer_text": "0x00000000000000010000000000000000",
            "last_answer_text": f"0x{MAX_WORD:032x}",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ONE_RUN)
def test_the_columns_of_divergences(what: str, tmp_path: Path) -> None:
    case, runs, expected = ONE_RUN[what]
    rows = written_table(
        tmp_path, "divergences.parquet", [("ort", case, judgement(case, divergence(runs)))]
    )
    named = {"backend": "ort", "case": case.id, "rule": "rounds", "level": "required"}
    every = dict.fromkeys(DIVERGENCES.names) | named | {"slope": 3, "straight": True}
    assert rows == [every | expected]


def test_runs_past_the_cap_are_counted_and_not_listed(tmp_path: Path) -> None:
    runs = steps(MOST_RUNS + 1, total=1 << 20)
    row = ("ort", HALF, judgement(HALF, divergence(runs)))
    assert len(written_table(tmp_path, "divergences.parquet", [row])) == MOST_RUNS
    assert pq.read_table(tmp_path / "cases.parquet")["runs"].to_pylist() == [1 << 20]


@examples(50)
@given(st.lists(JUDGEMENTS, max_size=3))
def test_every_judgement_can_be_written_as_rows(found: list[Judgement]) -> None:
    for each in found:
        row = case_row("ort", TO_TEXT, each)
        assert pa.Table.from_pylist([row], CASES).num_rows == 1
        rows = sum(few.num_rows for few in divergence_rows("ort", TO_TEXT, each))
        assert rows == sum(one.runs.first.size for one in each.divergences)


def test_tables_without_rows_have_their_columns(tmp_path: Path) -> None:
    write_tables(folder_at(str(tmp_path)), [])
    for name, schema in SCHEMAS.items():
        assert pq.read_table(tmp_path / name).schema.equals(schema, check_metadata=True)


def test_row_groups_depend_on_the_rows_alone(tmp_path: Path) -> None:
    write_tables(folder_at(str(tmp_path)), rows_of_several_groups())
    footer = pq.ParquetFile(tmp_path / "divergences.parquet").metadata
    sizes = [footer.row_group(place).num_rows for place in range(footer.num_row_groups)]
    full, rest = divmod(2 * (MOST_RUNS + 30_000) + 5, ROWS_PER_GROUP["divergences.parquet"])
    assert sizes == [ROWS_PER_GROUP["divergences.parquet"]] * full + [rest]
    # The same rows, from judgements that are divided otherwise.
    apart = [
        (backend, case, judgement(case, divergence(one.runs.listed.at(rows), one.rule)))
        for backend, case, found in rows_of_several_groups()
        for one in found.divergences
        for rows in (slice(1000), slice(1000, None))
    ]
    write_tables(folder_at(str(tmp_path / "apart")), apart)
    one, other = (tmp_path / folder / "divergences.parquet" for folder in ("", "apart"))
    assert one.read_bytes() == other.read_bytes()


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys;"
        "from reports.run_store.storage import folder_at;"
        "from reports.run_store.tables import write_tables;"
        "from tests.reports.test_tables import rows_of_several_groups;"
        "write_tables(folder_at(sys.argv[1]), rows_of_several_groups())"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, str(tmp_path / seed)]
        environment = os.environ | {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed}
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    for name in SCHEMAS:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_no_table_appears_if_writing_fails(tmp_path: Path) -> None:
    def rows() -> Any:
        yield from rows_of_several_groups()
        raise RuntimeError("a worker has died")

    with pytest.raises(RuntimeError, match="a worker"):
        write_tables(folder_at(str(tmp_path)), rows())
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_last_write_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
    with pytest.raises(CastigateError, match="No space left"):
        write_tables(folder_at(str(tmp_path)), rows_of_several_groups())
    assert list(tmp_path.iterdir()) == []


def test_small_patterns_of_a_wide_dtype_are_texts_as_large_ones_are() -> None:
    rows = Runs(2, patterns([1, 2]), patterns([1, 2]), *[objects([5, 1 << 70])] * 2, *TWO_ROWS)
    [table] = divergence_rows("ort", TO_COMPLEX, judgement(TO_COMPLEX, divergence(rows)))
    assert table["answer"].null_count == 2
    found = failing_inputs(table, 2, 2, KnownColumns())
    assert found.runs.answer.tolist() == [f"0x{5:032x}", f"0x{1 << 70:032x}"]
