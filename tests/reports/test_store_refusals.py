"""Errors of a run's folder, each one line: wrong use, damage, a full disk."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reports.run_store.open_run import RunAnswers, open_run, open_shard, read_batches
from reports.run_store.record import BackendRecord, Selection, serialize_record
from reports.run_store.store import create, resume
from reports.run_store.tables import ANSWERS
from specs.errors import CastigateError
from tests.reports.common import record, shard
from tests.reports.run_folders import FOUND, ROWS, complete, refusal

ROOT = Path(__file__).parents[2]


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "run")


def _with_record_text(text: str) -> Callable[[str], None]:
    def write(out: str) -> None:
        Path(out).mkdir()
        Path(out, "run.json").write_text(text)

    return write


def _without_table(table: str) -> Callable[[str], None]:
    def make(out: str) -> None:
        complete(out)
        Path(out, table).unlink()

    return make


def _with_truncated_table(table: str, size: int) -> Callable[[str], None]:
    def make(out: str) -> None:
        complete(out)
        os.truncate(Path(out, table), size)

    return make


def _with_other_columns(out: str) -> None:
    complete(out)
    pq.write_table(pa.table({"x": [1]}), Path(out, "cases.parquet"))


def _complete_shard(out: str) -> None:
    create(out, shard(2, 3)).finish([], lambda: 0)


def _record_text(**changes: Any) -> str:
    return json.dumps(json.loads(serialize_record(record())) | changes)


RESUME = "resume it as it was begun, or give another --out"
REPAIR_ADVICE = "copy the whole folder again, or run again into another --out"
CUT_SHORT = "OUT/cases.parquet is cut short or damaged: "
NOT_JSON = "is cut short or damaged: it is not JSON; run again into another --out"


def _nothing(_: str) -> None: ...


def _a_file(out: str) -> None:
    Path(out).touch()


def _begin(out: str) -> None:
    create(out, record())


def _begin_selection(out: str) -> None:
    chosen = Selection(documents=("a", "b:1"), source=("int8", "int4"))
    create(out, record(selection=chosen))


def _go_on(out: str) -> None:
    resume(out, record())


REFUSED: dict[str, tuple[Callable[[str], Any], Callable[..., Any], str]] = {
    "a complete run": (complete, _begin, "OUT holds a complete run; give another --out"),
    "an unfinished run": (_begin, _begin,
        "OUT holds an unfinished run; go on with it by --resume, or give another --out"),
    "a folder of something else": (lambda out: (Path(out).mkdir(), Path(out, "thesis.tex").touch()),
        _begin,
        "OUT holds files and is no run (`thesis.tex`); give an empty folder or a new one as --out"),
    "a file": (_a_file, _begin, "cannot read OUT: Not a directory"),
    "a folder in a file": (_a_file, lambda out: create(f"{out}/deeper", record()),
        "cannot write OUT/deeper/run.json: Not a directory; give another --out"),
    "an empty name": (_nothing, lambda out: create("", record()),
        "`` does not name a folder; give a path or a URL"),
    "a name with a NUL": (_nothing, lambda out: create("a\0b", record()),
        r"`a\u0000b` does not name a folder; give a path or a URL"),
    "a name that is no UTF-8": (_nothing, lambda out: create("a\udcff", record()),
        "`a\\udcff` does not name a folder; give a path or a URL"),
    "an unknown kind of URL": (
        _nothing,
        lambda out: create("gopher://x/y", record()),
        "`gopher://x/y` has the unknown protocol `gopher`; give a path, or a URL such as "
        "s3://BUCKET/FOLDER",
    ),
    "nothing to resume": (_nothing, _go_on,
        "OUT is no run: it holds no run.json; give a run's folder"),
    "another suite": (lambda out: create(out, record(suite="0.0.9")),
        lambda out: resume(out, record(suite="0.3.0")),
        f"OUT was begun with castigate 0.0.9, now castigate 0.3.0; {RESUME}"),
    "another document": (
        _begin,
        lambda out: resume(out, record(documents={"onnx-cast": "cd" * 32, "pypto": "ef"})),
        f"OUT was begun with document onnx-cast of sha256 {'ab' * 32}, now document onnx-cast of "
        f"sha256 {'cd' * 32}; no document pypto, now document pypto of sha256 ef; {RESUME}",
    ),
    "another backend's version": (
        lambda out: create(out, record(backends=(BackendRecord(name="ort", version="1.30.0"),))),
        _go_on, f"OUT was begun with ort 1.30.0, now ort 1.31.1; {RESUME}"),
    "another selection": (
        _begin_selection,
        lambda out: resume(out, record(selection=Selection(target=("bool",)))),
        "OUT was begun with --document a --document b:1, now no --document; "
        f"--source int8 --source int4, now no --source; no --target, now --target bool; {RESUME}",
    ),
    "another tier, seed, size and shard": (
        lambda out: create(out, shard(1, 4, tier="full")),
        lambda out: resume(out, shard(2, 4, seed=7, max_examples=5)),
        "OUT was begun with --tier full, now --tier quick; --seed 0, now --seed 7; "
        f"--max-examples 1000, now --max-examples 5; --shard 1/4, now --shard 2/4; {RESUME}",
    ),
    "a record that is cut short": (_with_record_text(_record_text()[:-5]), _go_on,
        f"OUT/run.json {NOT_JSON}"),
    "an empty record": (_with_record_text(""), open_run, f"OUT/run.json {NOT_JSON}"),
    "a record of no text": (
        lambda out: (Path(out).mkdir(), Path(out, "run.json").write_bytes(b"\xff")), open_run,
        f"OUT/run.json {NOT_JSON}"),
    "an endless record": (
        _with_record_text("[" * 200_000),
        open_run,
        "OUT/run.json is cut short or damaged: it is nested more than 100 levels deep; "
        "run again into another --out",
    ),
    "a record that is a list": (
        _with_record_text("[]"),
        open_run,
        "OUT/run.json has format null, castigate 0.3.0 reads format 2; "
        "use the version that wrote it",
    ),
    "another format": (_with_record_text(_record_text(format=1)), open_run,
        "OUT/run.json has format 1, castigate 0.3.0 reads format 2; use the version that wrote it"),
    "a record with another byte": (_with_record_text(_record_text(seed=1)), open_run,
        f"OUT/run.json is damaged: its checksum is wrong; {REPAIR_ADVICE}"),
    "an unknown word": (_with_record_text(_record_text(colour="red")), open_run,
        "OUT/run.json is damaged: `colour`: Extra inputs are not permitted"),
    **{
        f"a {kind} for a number": (_with_record_text(_record_text(seed=seed)), open_run,
            "OUT/run.json is damaged: `seed`: Input should be a valid integer")
        for kind, seed in (("text", "1"), ("boolean", True), ("float", 1.0))
    },
    "a number for a boolean": (_with_record_text(_record_text(complete=1)), open_run,
        "OUT/run.json is damaged: `complete`: Input should be a valid boolean"),
    "a float for the format": (_with_record_text(_record_text(format=2.0)), open_run,
        "OUT/run.json has format 2.0, castigate 0.3.0 reads format 2; use the version that wrote "
        "it"),
    **{
        f"a record with {what}": (_with_record_text(_record_text(**changes)), open_run,
            f"OUT/run.json is damaged: {message}")
        for what, changes, message in (
            ("no backends", {"backends": []},
                "`backends`: Tuple should have at least 1 item after validation, not 0"),
            ("a backend without a name", {"backends": [{"name": "", "version": "1"}]},
                "`backends.0.name`: String should have at least 1 character"),
            ("a backend twice", {"backends": 2 * [{"name": "a", "version": "1"}]},
                "a backend is named twice"),
            ("a negative seed", {"seed": -1},
                "`seed`: Input should be greater than or equal to 0"),
            ("too many examples", {"max_examples": 10**9},
                "`max_examples`: Input should be less than or equal to 100000000"),
            ("a negative exit code", {"exit_code": -1},
                "`exit_code`: Input should be greater than or equal to 0"),
            ("no end", {"complete": True, "exit_code": 0},
                "a complete run has an end and an exit code"),
        )
    },
    "a record with a key twice": (_with_record_text('{"format": 1, "format": 2}'), open_run,
        "OUT/run.json is cut short or damaged: it has the key `format` twice; run again into "
        "another --out"),
    "a record with NaN": (_with_record_text('{"format": NaN}'), open_run,
        "OUT/run.json is cut short or damaged: it is not JSON: `NaN` is no value of JSON; run "
        "again into another --out"),
    "a shard beyond the last": (_with_record_text(_record_text(shard={"index": 5, "count": 4})),
        open_run, "OUT/run.json is damaged: `shard`: there is no shard 5/4 of a run"),
    "a folder for a record": (lambda out: Path(out, "run.json").mkdir(parents=True), open_run,
        "cannot read OUT/run.json: Is a directory"),
    "reading no run": (_nothing, open_run,
        "OUT is no run: it holds no run.json; give a run's folder"),
    "reading an unfinished run": (_begin, open_run,
        "OUT holds an unfinished run; go on with it by `castigate run … --resume`"),
    "reading a shard": (_complete_shard, open_run,
        "OUT is shard 2/3 of a run; join all shards with `castigate merge` first"),
    "merging a whole run": (complete, open_shard, "OUT is a whole run; only shards can be merged"),
    "a missing table": (_without_table("divergences.parquet"), open_run,
        f"OUT/divergences.parquet is missing; {REPAIR_ADVICE}"),
    "an empty table": (_with_truncated_table("cases.parquet", 0), open_run,
        f"{CUT_SHORT}Parquet file size is 0 bytes; {REPAIR_ADVICE}"),
    "a table without its footer": (
        _with_truncated_table("cases.parquet", 1000),
        open_run,
        f"{CUT_SHORT}Parquet magic bytes not found in footer. "
        f"Either the file is corrupted or this is not a parquet file; {REPAIR_ADVICE}",
    ),
    "a table of something else": (
        _with_other_columns,
        open_run,
        "OUT/cases.parquet does not have the columns of castigate 0.3.0; "
        "read it with the version that wrote it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_says_what_is_wrong_and_changes_no_file(what: str, out: str) -> None:
    prepare, call, message = REFUSED[what]
    prepare(out)
    before = [(path, path.is_file() and path.read_bytes()) for path in Path(out).rglob("*")]
    assert refusal(call, out) == message.replace("OUT", out)
    assert before == [(path, path.is_file() and path.read_bytes()) for path in Path(out).rglob("*")]


@pytest.mark.parametrize("column", ["digest", "dtype", "data"])
def test_a_row_that_lacks_what_every_row_has_is_one_line(out: str, column: str) -> None:
    store = complete(out)
    path = Path(out, "answers.parquet")
    row = {"digest": "0", "dtype": "int8", "count": 1, "data": b"0"}
    table = pa.Table.from_pylist([row], ANSWERS)
    place = table.schema.get_field_index(column)
    nulls = pa.nulls(table.num_rows, table.schema.field(column).type)
    pq.write_table(table.set_column(place, table.schema.field(column), nulls), path)
    with pytest.raises(CastigateError) as caught:
        RunAnswers(store)
    assert str(caught.value) == (
        f"{path} is cut short or damaged: a row has no `{column}`; {REPAIR_ADVICE}"
    )


def test_damage_anywhere_in_a_table_never_changes_its_rows_silently(out: str) -> None:
    store = complete(out)
    path = Path(out, "divergences.parquet")
    data, rows = path.read_bytes(), pa.Table.from_batches(read_batches(store, path.name))
    messages: list[str] = []
    # Up to the footer; some bits of a page's header mean nothing to the reader.
    for place in range(4, len(data) - 8 - int.from_bytes(data[-8:-4], "little")):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            assert list(read_batches(store, path.name)) == rows.to_batches()
        except CastigateError as error:
            messages.append(str(error))
    assert len(messages) > len(data) // 4
    assert all(line.startswith(f"{path} is cut short or damaged: ") for line in messages)
    assert all(line.endswith(f"; {REPAIR_ADVICE}") for line in messages)


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("table", ["answers.parquet", "divergences.parquet"])
@pytest.mark.parametrize("flipped", [0x01, 0x80])
def test_damage_anywhere_in_a_footer_is_one_line(out: str, table: str, flipped: int) -> None:
    store = complete(out)
    path = Path(out, table)
    data, rows = path.read_bytes(), list(read_batches(store, table))
    messages: list[str] = []
    for place in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ flipped]) + data[place + 1 :])
        try:
            assert list(read_batches(open_run(out), table)) == rows
        except CastigateError as error:
            messages.append(str(error))
    damaged = [line for line in messages if line.startswith(f"{path} is cut short or damaged: ")]
    assert len(damaged) > len(messages) // 2
    assert all(line.endswith(f"; {REPAIR_ADVICE}") for line in damaged)
    others = set(messages) - set(damaged)
    assert all(line.startswith(f"{path} does not have the columns of ") for line in others)


def test_a_full_disk_loses_only_the_file_that_was_being_written(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = create(out, record())
    store.write("a", FOUND)

    def full(*_: str) -> None:
        raise OSError(errno.ENOSPC, "no matter")

    advice = "what was finished before is kept, and --resume goes on from there"
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        message = refusal(store.write, "b", FOUND)
        assert message.startswith(f"cannot write {out}/parts/")
        assert message.endswith(f".part: No space left on device; {advice}")
        message = refusal(store.finish, ROWS, lambda: 0)
        assert message == f"cannot write {out}/problems.parquet: No space left on device; {advice}"
        message = refusal(create, f"{out}/new", record())
        assert message == (
            f"cannot write {out}/new/run.json: No space left on device; give another --out"
        )
    assert sorted(os.listdir(out)) == ["new", "parts", "run.json"]
    assert resume(out, record()).finished() == {"a"}
    store.finish(ROWS, lambda: 0)


WRITE_UNDER_SIZE_LIMIT = """
import resource, signal, sys
from reports.run_store.store import resume
from specs.errors import CastigateError
from tests.reports.common import HALF, divergence, judgement, record, steps
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
many = judgement(HALF, divergence(steps(60_000)))
store = resume(sys.argv[1], record())
store.write("small", [judgement(HALF)])
for act in (
    lambda: store.write("large", [many]),
    lambda: store.finish([("ort", HALF, many)] * 40, lambda: 0),
):
    try:
        act()
    except CastigateError as error:
        print(error)
"""


def test_a_file_size_limit_loses_only_the_file_that_exceeds_it(out: str) -> None:
    create(out, record())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WRITE_UNDER_SIZE_LIMIT, out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (0, "", 2)
    assert all(": File too large; what was finished before is kept" in line for line in lines)
    assert lines[1].startswith(f"cannot write {out}/divergences.parquet: ")
    assert sorted(os.listdir(out)) == ["parts", "run.json"]
    assert len(os.listdir(f"{out}/parts")) == 1
    assert resume(out, record()).finished() == {"small"}


def test_an_unwritable_folder_is_reported() -> None:
    message = refusal(create, "/proc/castigate", record())
    assert message.startswith("cannot write /proc/castigate/run.json: ")
    assert message.endswith("; give another --out")


def test_a_record_of_before_there_was_a_checksum_is_read(out: str) -> None:
    content = json.loads(_record_text())
    del content["checksum"]
    _with_record_text(json.dumps(content))(out)
    assert resume(out, record()).record == record()
