"""Commands that write to and read from an S3-compatible server on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from fsspec.registry import _registry as registry
from s3fs import S3FileSystem

from reports.html.replace_report import FRONT_PAGE, INCOMPLETE, MARK, replace_report
from reports.run_store.open_run import open_run
from reports.run_store.storage import file_to_write, folder_at
from reports.run_store.store import create, resume
from specs.errors import CastigateError
from tests.conformance.killed_store_run import kill_writers
from tests.conformance.processes import ROOT, TABLES, castigate, castigate_process
from tests.reports.common import record
from tests.reports.killed_writers import TASKS, all_rows, judgements_of
from tests.s3_server import BUCKET, Server, refused_keys, s3_server

RUN = ("run", "--backend=ml_dtypes", "--document=onnx-cast:25", "--source=uint4", "--jobs=1")
STORE = f"s3://{BUCKET}"


@pytest.fixture
def server() -> Iterator[Server]:
    with s3_server() as server:
        yield server


def refusal(*arguments: str) -> str:
    """Return the one line of error that a failing command prints; no keys are remembered."""
    S3FileSystem.clear_instance_cache()
    code, out, err = castigate(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    return err


@pytest.mark.nightly  # half a minute
def test_killed_writers_leave_no_wrong_run_and_no_wrong_report(
    server: Server, tmp_path: Path
) -> None:
    kill_writers(server, 3, 1, tmp_path)


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("step", [1, 8, 11, 12])
def test_a_run_killed_while_it_is_finished_in_a_store_can_be_resumed(
    step: int, server: Server
) -> None:
    out = f"{STORE}/run"
    store = create(out, record())
    for task in TASKS:
        store.write(task, judgements_of(task))
    died = subprocess.run(
        [sys.executable, "-m", "tests.reports.killed_writers", "finish", out, str(step)],
        cwd=ROOT,
        check=False,
    )
    assert died.returncode == 9
    store = resume(out, record())
    assert store.record.complete == (step >= 11)
    if not store.record.complete:
        assert store.finished() == set(TASKS)
        store = store.finish(all_rows(store), lambda: 1)
    assert set(folder_at(out).names()) == {*TABLES, "problems.parquet", "run.json"}
    assert open_run(out).record == store.record


def test_every_folder_option_takes_a_url(server: Server, tmp_path: Path) -> None:
    local, store = str(tmp_path / "run"), f"{STORE}/run"
    for out in (local, store):
        code, _, err = castigate(*RUN, f"--out={out}")
        assert code == 1, err
    code, out, _ = castigate("diff", local, store)
    assert (code, "0 differences of answers, 0 of verdicts" in out) == (0, True)
    local_findings, stored_findings = (castigate("findings", each) for each in (local, store))
    assert stored_findings == local_findings
    files = (f"--summary={STORE}/files/s.md", f"--csv={STORE}/c.csv", f"--junit={STORE}/j/j.xml")
    code, out, err = castigate("report", store, f"--out={STORE}/report", *files)
    assert (code, err) == (0, "")
    assert out.startswith(f"{STORE}/report/index.html: ")
    bucket = folder_at(f"{STORE}/")
    assert bucket.names() == ["c.csv", "files", "j", "report", "run"]
    assert b"uint4" in (bucket.read("c.csv") or b"")
    assert "index.html" in bucket.names("report")


@pytest.mark.nightly
def test_shards_in_a_store_are_merged_there(server: Server, tmp_path: Path) -> None:
    whole = str(tmp_path / "whole")
    assert castigate_process(*RUN, f"--out={whole}")[0] == 1
    shards = [f"{STORE}/shard-{index}" for index in (1, 2)]
    for index, shard in enumerate(shards, 1):
        castigate_process(*RUN, f"--out={shard}", f"--shard={index}/2")
    code, _, err = castigate_process("merge", *shards, f"--out={STORE}/whole")
    assert code == 1, err
    table = "cases.parquet"
    assert folder_at(f"{STORE}/whole").read(table) == folder_at(whole).read(table)


@pytest.mark.nightly  # half a minute
def test_nights_in_a_store_share_a_report(server: Server) -> None:
    night = ("nightly", "--backend=ml_dtypes", "--document=onnx-bitcast")
    for count in (1, 2):
        code, out, err = castigate_process(*night, f"--out={STORE}/nights")
        assert code in (0, 1), err
        assert f"{STORE}/nights/report/index.html: " in out
        assert len(folder_at(f"{STORE}/nights").names("runs")) == count


def test_an_error_while_rendering_leaves_the_older_report(server: Server) -> None:
    folder = folder_at(f"{STORE}/report")
    replace_report(folder, lambda: iter([(FRONT_PAGE, b"old"), ("data/gone.js", b"")]))

    def broken() -> Iterator[tuple[str, bytes]]:
        yield FRONT_PAGE, b"new"
        raise CastigateError("a damaged table")

    with pytest.raises(CastigateError, match="a damaged table"):
        replace_report(folder, broken)
    assert folder.read(FRONT_PAGE) == b"old"
    replace_report(folder, lambda: iter([(FRONT_PAGE, b"new"), ("data/here.js", b"")]))
    assert folder.files() == [MARK, "data/here.js", FRONT_PAGE]


def test_a_report_is_called_incomplete_until_its_last_object_is_written(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_at(f"{STORE}/report")
    replace_report(folder, lambda: iter([(FRONT_PAGE, b"old"), ("a.html", b"old")]))
    seen = []
    publish = type(folder.system)._publish  # type: ignore[union-attr]

    def watched(self: object, file: str, path: str) -> None:
        publish(self, file, path)  # type: ignore[arg-type]
        seen.append((folder.read(FRONT_PAGE), folder.read("a.html")))

    monkeypatch.setattr(type(folder.system), "_publish", watched)
    replace_report(folder, lambda: iter([(FRONT_PAGE, b"new"), ("a.html", b"new")]))
    assert seen == [
        (b"old", b"old"),
        (INCOMPLETE, b"old"),
        (INCOMPLETE, b"new"),
        (b"new", b"new"),
    ]


def test_a_missing_bucket(server: Server) -> None:
    wrong = "the bucket does not exist; create it\n"
    assert refusal(*RUN, "--out=s3://missing/x").endswith(f"read s3://missing/x: {wrong}")
    assert refusal("findings", "s3://missing/x").endswith(f"s3://missing/x/run.json: {wrong}")


def test_wrong_keys_and_none(server: Server) -> None:
    with refused_keys(server.address):
        line = refusal(*RUN, f"--out={STORE}/x")
    assert "check the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in line
    with patch.dict(os.environ, {"HOME": "/nonexistent"}):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            os.environ.pop(name)
        line = refusal("findings", f"{STORE}/x")
    assert "Unable to locate credentials; check AWS_ENDPOINT_URL and the credentials" in line


def test_a_server_that_is_not_there(server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with patch.dict(os.environ, {"AWS_ENDPOINT_URL": closed}):
            line = refusal(*RUN, f"--out={STORE}/x")
    assert f'Could not connect to the endpoint URL: "{closed}' in line
    assert line.endswith("; check AWS_ENDPOINT_URL and the credentials\n")


@pytest.mark.parametrize(
    ("url", "wrong"),
    {
        "s3://": "`s3://` names no bucket; write s3://BUCKET/FOLDER",
        "gopher://x/y": "`gopher://x/y` has the unknown protocol `gopher`; give a path, or a URL",
        "file://host/x": "`file://host/x` does not name a folder; write file:///PATH, or the path",
        "memory://x": "`memory://x` is memory of this process alone",
    }.items(),
)
def test_a_url_of_no_folder(url: str, wrong: str) -> None:
    for command in (RUN, ("report", "run"), ("nightly",), ("merge", "run")):
        code, out, err = castigate(*command, f"--out={url}")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"castigate: {wrong}")


def test_a_file_needs_a_bucket() -> None:
    with pytest.raises(CastigateError, match="names no bucket"):
        file_to_write("s3://cases.csv")


def test_commands_that_write_for_other_programs_take_no_url() -> None:
    for command in (("gate", "--backend=ml_dtypes", "--policy=required"), ("export", "onnx")):
        code, _, err = castigate(*command, "--out=s3://bucket/x")
        assert (code, err.count("\n")) == (2, 1)
        assert "`s3://bucket/x` is a URL; give a folder on this machine as --out" in err


@pytest.mark.parametrize(
    ("package", "url", "advice"),
    [
        ("fsspec", "s3://b/x", "pip install 'castigate[scale]'"),
        ("s3fs", "s3://b/x", "pip install 'castigate[scale]'"),
        ("gcsfs", "gs://b/x", "pip install gcsfs"),
        ("adlfs", "abfs://b/x", "install it with pip"),
    ],
)
def test_a_missing_package(package: str, url: str, advice: str) -> None:
    with (
        patch.dict(registry, clear=True),
        patch.dict(sys.modules, {package: None}),
        pytest.raises(CastigateError) as error,
    ):
        folder_at(url)
    assert str(error.value).startswith(f"`{url}` needs ")
    assert str(error.value).endswith(f"; {advice}")


def test_commands_without_a_url_import_no_store() -> None:
    before = (
        "import atexit, sys\n"
        "from contextlib import suppress\n"
        "from conformance.commands.main import main\n"
        "atexit.register(lambda: print("
        "sorted({'fsspec', 's3fs', 'botocore'} & set(sys.modules)), file=sys.stderr))\n"
        "given, sys.argv = sys.argv, ['castigate', 'specs']\n"
        "with suppress(SystemExit): main()\n"
        "sys.argv = given\n"
    )
    _, out, err = castigate_process("findings", "/nonexistent", before=before)
    assert "onnx-cast" in out
    assert err.endswith("\n[]\n")
