"""A run's folder: created, resumed, finished, also after writers were killed."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from reports.run_store.open_run import open_run, open_shard, read_batches
from reports.run_store.record import (
    Selection,
    current_environment,
    parse_record,
    serialize_record,
    shareable_command,
)
from reports.run_store.store import create, resume
from tests.reports.common import HALF, MACHINE, record, same, shard
from tests.reports.run_folders import FOUND, ROWS, complete, refusal


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "run")


def test_a_run_from_creation_to_completion(out: str) -> None:
    store = create(out, record())
    assert store.finished() == set()
    store.write("task/one:1", FOUND)
    assert resume(out, record()).finished() == {"task/one:1"}
    assert same(tuple(store.read("task/one:1")), tuple(FOUND))
    done = store.finish(ROWS, lambda: 1)
    assert done.record == open_run(out).record
    assert (done.record.complete, done.record.exit_code) == (True, 1)
    assert done.record.finished is not None
    assert sorted(os.listdir(out)) == [
        "answers.parquet",
        "cases.parquet",
        "divergences.parquet",
        "pairs.parquet",
        "problems.parquet",
        "run.json",
    ]
    (batch,) = read_batches(done, "divergences.parquet", ["first", "case"])
    assert batch.to_pylist() == [{"first": place, "case": HALF.id} for place in (0, 4, 8)]


def test_a_shard_keeps_its_parts_and_has_no_tables(out: str) -> None:
    store = create(out, shard(1, 2))
    store.write("a", FOUND)
    store.finish([], lambda: 0)
    assert sorted(os.listdir(out)) == ["parts", "run.json"]
    assert open_shard(out).finished() == {"a"}
    assert resume(out, shard(1, 2)).finished() == {"a"}


def test_a_store_can_be_pickled(out: str) -> None:
    pickle.loads(pickle.dumps(create(out, record()))).write("a", FOUND)
    assert resume(out, record()).finished() == {"a"}


@pytest.mark.parametrize(
    ("dtypes", "stored"),
    [((), "null"), (("int8",), '"int8"'), (("int8", "int4"), '["int8","int4"]')],
)
def test_a_selection_keeps_its_dtypes(dtypes: tuple[str, ...], stored: str) -> None:
    """No dtype and one dtype are stored as they were when a run could have no more."""
    kept = record(selection=Selection(source=dtypes, target=dtypes))
    text = serialize_record(kept)
    assert parse_record(text, "run.json") == kept
    shown = "".join(text.decode().split())
    assert f'"source":{stored},"target":{stored}' in shown


def test_a_task_may_have_any_name(out: str) -> None:
    store = create(out, record())
    names = {"", "a/../b", "x" * 5000, "\0\n", "\ud800", ".unfinished"}
    for name in names:
        store.write(name, FOUND)
    assert store.finished() == names


def test_resuming_a_complete_run_does_nothing(out: str) -> None:
    complete(out)
    before = {path: path.read_bytes() for path in Path(out).iterdir()}
    elsewhere = MACHINE.model_copy(update={"cpus": 64})
    assert resume(out, record(environments=(elsewhere,))).record.complete
    assert before == {path: path.read_bytes() for path in Path(out).iterdir()}


def test_a_machine_that_resumes_is_added_to_the_record_once(out: str) -> None:
    create(out, record())
    elsewhere = MACHINE.model_copy(update={"cpus": 64})
    for _ in range(2):
        store = resume(out, record(environments=(elsewhere,)))
        assert store.record.environments == (MACHINE, elsewhere)
        assert resume(out, record()).record == store.record


def test_resuming_removes_what_killed_writers_left(out: str) -> None:
    store = create(out, record())
    store.write("a", FOUND)
    leftovers = [
        Path(out) / ".run.json.12.unfinished",
        Path(out) / "parts" / ".x.part.1.unfinished",
    ]
    for path in leftovers:
        path.write_bytes(b"half")
    warnings: list[str] = []
    assert (store.finished(warnings.append), warnings) == ({"a"}, [])
    resume(out, record())
    assert not any(path.exists() for path in leftovers)


def test_a_run_can_be_created_after_a_creation_that_was_killed(out: str) -> None:
    Path(out).mkdir()
    (Path(out) / ".run.json.12.unfinished").write_bytes(b"{")
    create(out, record())
    assert os.listdir(out) == ["run.json"]


def test_damaged_parts_are_reported_and_not_counted_as_finished(out: str) -> None:
    store = create(out, record())
    files: dict[str, Path] = {}
    for name in ("a", "b", "c"):
        store.write(name, FOUND)
        (files[name],) = set(Path(out, "parts").iterdir()) - set(files.values())
    files["a"].write_bytes(files["a"].read_bytes()[:-1])
    files["b"].write_bytes(files["c"].read_bytes())
    warnings: list[str] = []
    assert resume(out, record()).finished(warnings.append) == {"c"}
    assert sorted(warnings) == sorted(
        [
            f"{out}/parts/{files['a'].name}: its checksum is wrong; its task is done again",
            f"{out}/parts/{files['b'].name}: it is another task's; its task is done again",
        ]
    )
    assert refusal(store.read, "a").endswith("its checksum is wrong; use --resume")
    assert refusal(store.read, "b").endswith("it is another task's; use --resume")
    assert refusal(store.read, "d").endswith("it is missing; use --resume")
    store.write("a", FOUND)
    assert store.finished() == {"a", "c"}


def test_a_shareable_command_names_no_local_folders() -> None:
    arguments = [
        "/a/castigate",
        "run",
        "--out=/home/me/run",
        "/a/b.py:Class",
        "exec:/a/b --c /d/e",
    ]
    assert shareable_command(
        [*arguments, "s3://bucket/key", "file:///home/me/run", "a/b", "int8/int4"]
    ) == (
        "castigate",
        "run",
        "--out=run",
        "b.py:Class",
        "exec:b --c e",
        "s3://bucket/key",
        "run",
        "a/b",
        "int8/int4",
    )


def test_the_current_environment_is_that_of_this_process() -> None:
    here = current_environment()
    assert here.packages["pyarrow"] == pa.__version__
    assert here.python == sys.version.split()[0]
