"""``castigate nightly`` as real processes: a run a night, and a report of all of them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest

from conformance.running.nights import Nights
from reports.run_store.open_run import open_run
from tests.conformance.processes import (
    BOOL,
    PROC,
    SECONDS_TO_END,
    backend,
    castigate,
    children,
    record,
    start_castigate,
    wait_for_ends,
)
from tests.html.planted import STARTED, Elements, planted_run

FORMS = ("cases.csv", "junit.xml", "summary.md")


def night(folder: Path, *backends: str) -> tuple[int, str, str]:
    asked = [*map(backend, backends), "--document=webnn-cast:draft", "--jobs=1"]
    return castigate("nightly", *asked, f"--out={folder}")


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two nights, in the second of which another backend is wrong."""
    folder = tmp_path_factory.mktemp("nights")
    return folder, night(folder, "Halves"), night(folder, "Halves", "HalvesTiesAway")


def test_every_night_leaves_a_run_and_a_report(nights: Any) -> None:
    folder, (first, output, _), (second, _, _) = nights
    assert (first, second) == (0, 1)
    assert output.splitlines()[-1].startswith(str(folder / "report" / "index.html"))
    assert len(list((folder / "runs").iterdir())) == 2
    names = {path.name for path in folder.iterdir()}
    assert names == {"runs", "report", *FORMS}
    assert len(Tree.parse(folder / "junit.xml").getroot()) == 2


@pytest.mark.nightly
def test_the_same_night_again_leaves_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    folders = [tmp_path / each / "nights" for each in "ab"]
    for seed, folder in enumerate(folders):
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        assert night(folder, "Halves", "HalvesTiesAway")[0] == 1
    one, other = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in folders
    )
    assert one == other
    assert Path("runs/20231114-221320/run.json") in one


@pytest.mark.nightly
def test_two_nights_of_one_second_have_a_run_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for _ in range(2):
        assert night(tmp_path, "Halves")[0] == 0
    runs = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert runs == ["20231114-221320", "20231114-221320-02"]
    assert open_run(str(tmp_path / "runs" / runs[0])).record.seed == 20231114


def test_an_invalid_source_date_epoch_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    code, _, err = night(tmp_path / "nights", "Right")
    assert (code, err) == (
        2,
        "castigate: SOURCE_DATE_EPOCH is `yesterday`; set it to seconds since 1970, or unset it\n",
    )
    assert not (tmp_path / "nights").exists()


def test_the_trend_has_a_column_per_run(nights: Any) -> None:
    folder, *_ = nights
    page = Elements((folder / "report" / "trend.html").read_text())
    times = [printed["datetime"] for tag, printed in page.found if tag == "time"]
    assert len(times) == 3
    assert len(set(times)) == 2


def test_an_unreadable_run_is_left_out(tmp_path: Path) -> None:
    planted_run(tmp_path / "runs" / "a")
    planted_run(tmp_path / "runs" / "b", after=1, complete=False)
    printed: list[str] = []
    report = Nights(tmp_path).render(printed.append)
    assert len(report.records) == 1
    [line] = printed
    assert line.startswith(f"left out: {tmp_path / 'runs' / 'b'}")


def test_a_run_with_a_damaged_page_is_left_out(tmp_path: Path) -> None:
    for day, name in enumerate(("a", "b", "c")):
        planted_run(tmp_path / "runs" / name, after=day, backends=["ort"])
    table = tmp_path / "runs" / "a" / "cases.parquet"
    content = bytearray(table.read_bytes())
    content[len(content) // 4 : len(content) // 4 + 64] = bytes(64)
    table.write_bytes(content)
    printed: list[str] = []
    assert len(Nights(tmp_path).render(printed.append).records) == 2
    [line] = printed
    assert line.startswith(f"left out: {table} is cut short or damaged: ")


def test_only_the_last_runs_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.running.nights.PAST", 2)
    for day in range(3):
        planted_run(tmp_path / "runs" / str(9 - day), after=day, backends=["ort"])
    report = Nights(tmp_path).render(print)
    assert [record.started.day for record in report.records] == [3, 4]


def test_a_night_is_not_begun_if_its_report_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "nights" / "report").mkdir(parents=True)
    (tmp_path / "nights" / "report" / "thesis.txt").touch()
    for out, wrong in (
        (tmp_path / "nights", f"{tmp_path}/nights/report holds other files"),
        ("memory://nights", "is memory of this process alone"),
    ):
        code, printed, err = castigate("nightly", backend("Right"), f"--out={out}")
        assert (code, printed, err.count("\n")) == (2, "", 1)
        assert wrong in err
    assert [path.name for path in tmp_path.rglob("*")] == ["nights", "report", "thesis.txt"]


def test_without_a_run_there_is_nothing_to_report(tmp_path: Path) -> None:
    code, _, err = castigate("nightly", "--backend=nobody", f"--out={tmp_path / 'x'}")
    assert code == 2
    assert err.startswith("castigate: unknown backend `nobody`")
    assert not (tmp_path / "x").exists()


def test_nights_are_reported_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    planted_run(tmp_path / "runs" / "long", after=5, started=STARTED, backends=["ort"])
    planted_run(tmp_path / "runs" / "late", after=1, backends=["ort"])
    report = Nights(tmp_path).render(print)
    assert [record.started.day for record in report.records] == [2, 3]


def test_unfinished_files_of_a_killed_writer_are_ignored(tmp_path: Path) -> None:
    planted_run(tmp_path / "runs" / "a", backends=["ort"])
    (tmp_path / "runs" / ".b.0123.unfinished").mkdir()
    printed: list[str] = []
    assert len(Nights(tmp_path).render(printed.append).records) == 1
    assert printed == []


@pytest.mark.nightly
def test_the_options_of_a_night_select_its_cases(tmp_path: Path) -> None:
    unfinished = Path(planted_run(tmp_path / "runs" / "a", after=-1, complete=False))
    code, out, err = night(tmp_path, "Halves", "Halves")
    [run] = {*(tmp_path / "runs").iterdir()} - {unfinished}
    printed = record(run)
    assert (code, len(printed["backends"]), printed["tier"]) == (0, 1, "quick")
    assert printed["selection"]["documents"] == ["webnn-cast:draft"]
    *totals, last = out.splitlines()
    assert any("conforms" in line for line in totals)
    assert last.endswith(" cases, 1 backend")
    assert f"castigate: left out: {unfinished} holds an unfinished run" in err


def test_bad_options_are_one_line(tmp_path: Path) -> None:
    for option, output in {
        "--timeout=0": "--timeout 0: give a number of seconds above 0",
        "--python=ort=/x": "no backend `ort` is asked",
    }.items():
        code, _, err = castigate("nightly", backend("Right"), option, f"--out={tmp_path / 'x'}")
        assert (code, output in err) == (2, True), err


@pytest.mark.skipif(not PROC.is_dir(), reason="there is no /proc to look into")
def test_an_interrupted_night_says_how_to_resume(tmp_path: Path) -> None:
    options = (backend("Right"), BOOL[0], "--tier=full", "--jobs=1", f"--out={tmp_path}")
    process = start_castigate("nightly", *options, start_new_session=True)
    last = time.monotonic() + SECONDS_TO_END
    while not (found := list(tmp_path.glob("runs/*/parts/*.part"))) and time.monotonic() < last:
        time.sleep(0.05)
    left = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS_TO_END)
    assert (process.returncode, out, wait_for_ends(left)) == (130, "", [])
    run = found[0].parents[1]
    assert err.splitlines()[-1] == (
        f"castigate: interrupted; castigate run --resume --out {run} continues it"
    )
    assert record(run)["tier"] == "full"
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
