"""Rows of the board, and ``board.json``: which run counts, what is stale, what a cell says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.extras.board.badges import badge
from conformance.extras.board.board_file import Board, board_bytes, cells_of, schema_text
from conformance.extras.board.made_board import BoardRow, encode_board, rows_of
from conformance.extras.board.rows import GoodRun, RowFindings, read_attempts
from reports.judgement import Judgement, Verdict
from reports.problems import Note
from reports.run_store.record import BackendRecord, Shard, serialize_record
from reports.run_store.storage import folder_at
from reports.run_store.store import read_record
from specs.cases import Case
from specs.editions import edition
from specs.errors import CastigateError
from specs.loader import documents
from tests.conformance.processes import ROOT
from tests.html.planted import (
    BACKENDS,
    HALF,
    STARTED,
    cases,
    default_judgement,
    half_answers,
    one_cell,
    planted_run,
    violated,
)

CASES = [
    *(case for case in cases() if case.target in ("float16", "float8e4m3fn", "string", "int4")),
    *(case for case in cases() if case.document == "pypto-cast" and case.target == "int32"),
]
VENDOR = "vendor:fast"
TODAY = STARTED.date() + timedelta(days=10)


def versioned(run: str, **versions: str) -> str:
    """Give backends of a planted run other versions."""
    record = read_record(folder_at(run))
    backends = tuple(
        BackendRecord(name=each.name, version=versions.get(each.name, each.version))
        for each in record.backends
    )
    changed = serialize_record(record.model_copy(update={"backends": backends}))
    Path(run, "run.json").write_bytes(changed)
    return run


def dead(backend: str, case: Case) -> Judgement | None:
    """Nothing but crashes and refusals of one backend."""
    if backend != VENDOR:
        return None
    if case.target == "string":
        return Judgement(case.id, backend, "unsupported", (Note("no texts"),))
    return Judgement(case.id, backend, "crashed", (Note("exit status 139"),))


def rows(*runs: str) -> list[BoardRow]:
    warned: list[str] = []
    return rows_of(each for run in runs for each in read_attempts(run, warned.append))


def row(found: list[BoardRow], backend: str, version: str = "1.2") -> BoardRow:
    [one] = [each for each in found if (each.backend, each.version) == (backend, version)]
    return one


def encoded(found: list[BoardRow], today: date = TODAY) -> Board:
    return Board.model_validate_json(board_bytes(encode_board(found, today)))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("board")
    return planted_run(folder / "run", one_cell("ort", HALF, BROKEN), of=CASES)


BROKEN = violated("ort", HALF)
RIGHT = Judgement(HALF, "ort", "conforms", inputs=256)


def test_every_cell_survives_the_file_and_the_file_follows_its_schema(planted: str) -> None:
    found = rows(planted)
    board = encoded(found)
    content = json.loads(board_bytes(board))
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))
    jsonschema.validate(content, json.loads(schema_text()))
    assert [(each.backend, each.road) for each in board.rows] == [
        ("ort", ""),
        ("torch", ""),
        ("vendor", "fast"),
    ]
    for name, each in zip(BACKENDS, board.rows, strict=True):
        cells = {cell.case: cell for cell in cells_of(board, each)}
        assert {case.id for case in CASES} == {*cells}
        for case in CASES:
            wanted = BROKEN if (name, case.id) == ("ort", HALF) else default_judgement(name, case)
            assert cells[case.id].verdict == wanted.verdict
            assert bool(cells[case.id].findings) == (
                wanted.verdict in ("violates", "deviates", "error", "crashed")
            )


def test_the_example_of_the_docs_reads_every_cell(
    tmp_path: Path, planted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    board = encode_board(rows(planted), TODAY)
    (tmp_path / "SITE").mkdir()
    (tmp_path / "SITE" / "board.json").write_bytes(board_bytes(board))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "runs.md").read_text()
    [code] = [
        each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "board" in each
    ]
    exec(compile(code, "runs.md", "exec"), {})
    printed = [line.split(" ") for line in capsys.readouterr().out.splitlines()]
    told = {(backend, case, verdict) for backend, _, case, verdict in printed}
    assert told == {
        (row.backend, cell.case, cell.verdict)
        for row in board.rows
        for cell in cells_of(board, row)
    }


def test_a_schema_refuses_what_is_no_board(planted: str) -> None:
    content = json.loads(board_bytes(encode_board(rows(planted), TODAY)))
    content["rows"][0]["date"] = "yesterday"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, json.loads(schema_text()))


def test_what_a_run_did_not_ask_is_no_cell(tmp_path: Path, planted: str) -> None:
    """Blank is not a verdict: a row without a case has no cell of it."""
    half = planted_run(tmp_path / "half", backends=["new"], of=half_case())
    board = encoded(rows(planted, half))
    [new] = [each for each in board.rows if each.backend == "new"]
    assert [cell.case for cell in cells_of(board, new)] == [HALF]
    assert [each is None for each in new.answers] == [
        (asked.source, asked.target) != ("float32", "float16") for asked in board.asked
    ]


def half_case() -> list[Case]:
    every = edition(documents()["onnx-cast"], "25").cases()
    return [case for case in every if case.id == HALF]


def to_half(*documents_and_versions: str) -> list[Case]:
    """The default case of float32 to float16 in versions of documents."""
    found = []
    for name in documents_and_versions:
        document, _, version = name.partition(":")
        every = edition(documents()[document], version).cases()
        found.append(next(one for one in every if one.id.startswith(f"{name}/float32/float16")))
    return found


def test_the_newest_version_of_a_document_counts(tmp_path: Path) -> None:
    cases = to_half("onnx-cast:9", "onnx-cast:25", "onnx-cast:24")
    [entry] = (
        board := encoded(rows(planted_run(tmp_path / "run", backends=["ort"], of=cases)))
    ).rows
    assert [cell.case for cell in cells_of(board, entry)] == [HALF]


@pytest.mark.parametrize(
    ("own", "other", "third", "shown"),
    [
        ("violates", "differs", "conforms", "openvino-convert:1"),
        ("violates", "conforms", "conforms", "openvino-convert:1"),
        ("conforms", "differs", "violates", "openvino-convert:1"),
        ("conforms", "differs", "conforms", "onnx-cast:25"),
        ("differs", "differs", "conforms", "onnx-cast:25"),
        ("conforms", "conforms", "conforms", "onnx-cast:25"),
    ],
)
def test_a_cell_is_of_a_document_that_the_backend_claims(
    tmp_path: Path, own: Verdict, other: Verdict, third: Verdict, shown: str
) -> None:
    """A run records no claims, but what differs is not claimed, and what violates is.

    Without any that violates, a backend is taken to claim nothing. The third document is about
    another pair.
    """
    verdicts = {"openvino-convert": own, "onnx-cast": other, "wasm-convert": third}

    def plant(backend: str, case: Case) -> Judgement:
        verdict = verdicts[case.document]
        broken = () if verdict == "conforms" else BROKEN.problems
        answered = half_answers(backend) if case.target == "float16" else None
        return Judgement(case.id, backend, verdict, broken, inputs=2, answered=answered)

    wasm = next(iter(edition(documents()["wasm-convert"], "3.0").cases()))
    cases = [*to_half("openvino-convert:1", "onnx-cast:25"), wasm]
    [entry] = rows(planted_run(tmp_path / "run", plant, ["ort"], of=cases))
    assert entry.good is not None
    [answer] = [each for each in entry.good.answers if each is not None]
    assert answer.case.startswith(shown)
    # The planted answers are those to infinity and NaN: without a word, the verdict is shown.
    assert answer.word == ""


def test_the_last_good_run_counts(tmp_path: Path, planted: str) -> None:
    later = planted_run(tmp_path / "later", after=1, of=CASES)
    for given in ((planted, later), (later, planted)):
        found = row(rows(*given), "ort")
        assert found.good is not None
        assert found.good.day == STARTED.date() + timedelta(days=1)
        assert "unexplained" not in found.since


@pytest.mark.parametrize("kind", ["dead", "unfinished", "damaged"])
def test_after_a_failed_run_the_last_good_one_is_shown_with_its_date(
    tmp_path: Path, planted: str, kind: str
) -> None:
    run = str(tmp_path / "failed")
    if kind == "dead":
        planted_run(Path(run), dead, after=3, of=CASES)
    else:
        planted_run(Path(run), after=3, complete=kind == "damaged", of=CASES)
    if kind == "damaged":
        table = Path(run, "cases.parquet")
        table.write_bytes(table.read_bytes()[:-100])
    found = row(rows(planted, run), VENDOR)
    assert found.good is not None
    assert found.good.day == STARTED.date()
    [entry] = [each for each in encoded(rows(planted, run)).rows if each.backend == "vendor"]
    assert entry.date == STARTED.date().isoformat()
    assert entry.failed is not None
    assert entry.failed.date == (STARTED + timedelta(days=3)).date().isoformat()
    whys = {"dead": "crashed", "unfinished": "did not end", "damaged": "cannot be read"}
    assert whys[kind] in entry.failed.why
    assert [*cells_of(encoded(rows(planted, run)), entry)]


def test_a_backend_that_never_answered_has_no_cells_and_no_number(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "run", dead, of=CASES)
    found = rows(run)
    [entry] = [each for each in encoded(found).rows if each.backend == "vendor"]
    assert (entry.date, entry.run, entry.cells, {*entry.answers}) == (None, None, {}, {None})
    assert entry.failed is not None
    assert badge(row(found, VENDOR), TODAY)["message"] == "no good run yet"
    assert row(found, "ort").good is not None


@pytest.mark.parametrize(("days", "is_old"), [(60, False), (61, True)])
def test_a_run_is_old_after_sixty_days(planted: str, days: int, is_old: bool) -> None:
    found, today = rows(planted), STARTED.date() + timedelta(days=days)
    assert {each.old for each in encoded(found, today).rows} == {is_old}
    color = badge(row(found, VENDOR), today)["color"]
    assert (color == "lightgrey") == is_old


def test_a_release_that_was_not_asked_is_named(tmp_path: Path, planted: str) -> None:
    """Known are a version whose run failed, that of another road, and the shipped answers."""
    failed = versioned(
        planted_run(tmp_path / "failed", dead, after=3, of=CASES), **{"ort": "99.0", VENDOR: "1.3"}
    )
    found = rows(planted, failed)
    assert row(found, VENDOR).newer == "1.3"
    assert row(found, "torch").newer  # The shipped answers are those of a later torch.
    assert not row(found, "ort").is_latest
    assert row(found, "ort", "99.0").newer == ""
    assert badge(row(found, VENDOR), TODAY)["color"] == "lightgrey"


def test_since_when_a_finding_exists(tmp_path: Path) -> None:
    def run(version: str, judgement: Judgement) -> str:
        planted = planted_run(
            tmp_path / version, one_cell("ort", HALF, judgement), ["ort"], of=half_case()
        )
        return versioned(planted, ort=version)

    right, broken, broken_later = run("1.1", RIGHT), run("1.2", BROKEN), run("1.10", BROKEN)
    assert since(broken_later, right, broken) == {("1.2", "1.1")}
    assert since(broken_later, broken) == {("1.2", "")}
    assert since(broken_later, right, broken, run("1.3", RIGHT)) == {("1.10", "1.3")}


def since(*runs: str) -> set[tuple[str, str]]:
    """Since when the latest version has its findings, and which version did not have them."""
    [latest] = [each for each in rows(*runs) if each.is_latest]
    return {*latest.since.values()}


def test_a_folder_of_a_gate_needs_a_name(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").touch()
    with pytest.raises(CastigateError, match=r"is the folder of a gate; .* --reported NAME="):
        read_attempts(str(tmp_path), print)


def test_a_shard_is_no_run(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "run", of=half_case(), shard=Shard(index=1, count=2))
    with pytest.raises(CastigateError, match="is shard 1/2 of a run; join all shards"):
        read_attempts(run, print)


def test_badges_follow_the_schema_of_shields(planted: str) -> None:
    found = rows(planted)
    every: list[dict[str, Any]] = [badge(each, TODAY) for each in found]
    assert all({*each} == {"schemaVersion", "label", "message", "color"} for each in every)
    assert {each["schemaVersion"] for each in every} == {1}
    assert [each["label"] for each in every] == ["ort 1.2", "torch 1.2", "vendor:fast 1.2"]
    [fast] = [each for each in every if each["label"] == "vendor:fast 1.2"]
    assert fast["color"] == "red"
    assert not any("%" in each["message"] for each in every)
    right = replace_verdicts(found[2], {"conforms"})
    assert badge(right, TODAY)["color"] == "brightgreen"
    assert badge(replace_verdicts(found[2], {"conforms", "differs"}), TODAY)["color"] == "blue"


def replace_verdicts(one: BoardRow, verdicts: set[str]) -> BoardRow:
    assert isinstance(one.good, GoodRun)
    cells = dict(zip(one.good.verdicts, sorted(verdicts), strict=False))
    good = replace(one.good, verdicts=cells, findings=RowFindings())
    return replace(one, good=good, failed=None)
