"""A run on a disk, behind a ``file://`` URL and in an object store is the same run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from reports.run_store.open_run import open_run, read_batches
from reports.run_store.storage import MAX_LINKS, UNFINISHED, Folder, LocalFiles, folder_at
from reports.run_store.store import create, resume
from reports.run_store.tables import SCHEMAS
from specs.errors import CastigateError
from tests.reports.common import HALF, divergence, judgement, record, same, steps

FOUND = [judgement(HALF, divergence(steps(70)))]
ROWS = [("ort", HALF, FOUND[0])]


@pytest.fixture(params=["path", "relative path", "file", "memory"])
def out(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    yield {
        "path": f"{tmp_path}/deep/run/",
        "relative path": "deep/run",
        "file": f"file://{tmp_path}/deep/run",
        "memory": f"memory://castigate-{uuid4().hex}/deep/run",
    }[request.param]
    memory = fsspec.filesystem("memory")
    for folder in memory.ls("/"):
        if "castigate-" in folder["name"]:
            memory.rm(folder["name"], recursive=True)


def test_a_run_from_creation_to_completion(out: str, tmp_path: Path) -> None:
    store = create(out, record())
    for name in ("a", "b", "a"):
        store.write(name, FOUND)
    for call in (lambda: create(out, record()), lambda: open_run(out)):
        with pytest.raises(CastigateError, match="holds an unfinished run"):
            call()
    store = resume(out, record())
    assert store.finished() == {"a", "b"}
    assert same(tuple(store.read("a")), tuple(FOUND))
    store.finish(ROWS, lambda: 0)
    assert store.folder.names() == [
        "answers.parquet",
        "cases.parquet",
        "divergences.parquet",
        "pairs.parquet",
        "problems.parquet",
        "run.json",
    ]
    done = open_run(out)
    assert resume(out, record()).record == done.record
    assert sum(batch.num_rows for batch in read_batches(done, "divergences.parquet")) == 70
    local = create(str(tmp_path / "local"), record()).finish(ROWS, lambda: 0)
    for table in SCHEMAS:
        assert local.folder.read(table) == done.folder.read(table)


def test_opening_a_run_reports_a_missing_table(out: str) -> None:
    store = create(out, record()).finish(ROWS, lambda: 0)
    store.folder.system.delete_file(f"{store.folder.path}/cases.parquet")
    with pytest.raises(CastigateError, match=r"run/cases\.parquet is missing; "):
        open_run(out)


def test_a_file_appears_whole_or_not_at_all(out: str) -> None:
    folder = folder_at(out)
    folder.write("x/one", b"old")

    def fail_while_writing(error: BaseException) -> None:
        with folder.new_file("x/one") as stream:
            stream.write(b"ne")
            assert folder.read("x/one") == b"old"
            raise error

    for error, expected in (
        (OSError(5, "no matter"), CastigateError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SystemExit(3), SystemExit),
    ):
        with pytest.raises(expected):
            fail_while_writing(error)
        assert (folder.read("x/one"), folder.names("x")) == (b"old", ["one"])
    folder.write("x/one", b"new")
    assert (folder.read("x/one"), folder.names("x")) == (b"new", ["one"])


def test_remove_unfinished_removes_nothing_else(out: str) -> None:
    folder = folder_at(out)
    for name in ("x/one", f"x/.one.12{UNFINISHED}", f".two.3{UNFINISHED}", "two"):
        folder.write(name, b"")
    folder.remove_unfinished("x")
    assert folder.names("x") == ["one"]
    folder.remove_unfinished()
    assert folder.names() == ["two", "x"]


def test_missing_files_and_folders_are_no_error(out: str) -> None:
    folder = folder_at(out)
    assert (folder.names(), folder.names("x"), folder.read("x/y")) == ([], [], None)
    folder.remove_unfinished()
    folder.remove_folder("x")
    folder.write("x/y", b"")
    folder.remove_folder("x")
    assert folder.names() == []


def test_a_local_file_is_whole_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    rename = os.replace

    def seen_rename(old: str, new: str) -> None:
        sizes.append(os.stat(old).st_size)
        rename(old, new)

    monkeypatch.setattr(os, "replace", seen_rename)
    folder_at(str(tmp_path)).write("one", b"x" * 10)
    assert sizes == [10]


def test_the_root_is_a_folder_like_any_other() -> None:
    assert "proc" in folder_at("/").names()
    assert folder_at("/").display_path("run.json") == "/run.json"


def test_a_relative_folder_stays_the_same_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder: Folder = folder_at("run")
    folder.write("one", b"1")
    monkeypatch.chdir("/")
    assert folder.read("one") == b"1"
    shutil.rmtree(tmp_path / "run")
    assert folder.read("one") is None


def test_as_many_links_are_followed_as_the_system_follows(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("the end")
    for number in range(1, MAX_LINKS + 2):
        (tmp_path / str(number)).symlink_to(str(number - 1))
    last = tmp_path / str(MAX_LINKS)
    assert LocalFiles().end_of_links(str(last)) == str(tmp_path / "0")
    assert last.read_text() == "the end"
    with pytest.raises(OSError, match="symbolic links"):
        LocalFiles().end_of_links(str(tmp_path / str(MAX_LINKS + 1)))
