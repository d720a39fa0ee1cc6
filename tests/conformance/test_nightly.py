"""``castigate nightly`` as real processes: a run a night, and a report of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest

from conformance.nightly import Nights
from tests.conformance.processes import backend, castigate
from tests.html.planted import Elements, planted_run

FORMS = ("cases.csv", "junit.xml", "summary.md")


def night(folder: Path, *backends: str) -> tuple[int, str, str]:
    asked = [*map(backend, backends), "--document=pypto-cast:0.2"]
    return castigate("nightly", *asked, f"--out={folder}")


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two nights: a backend goes wrong in the second."""
    folder = tmp_path_factory.mktemp("nights")
    return folder, night(folder, "Right"), night(folder, "Right", "TiesAway")


def test_every_night_leaves_a_run_and_a_report(nights: Any) -> None:
    folder, (first, said, _), (second, _, _) = nights
    assert (first, second) == (0, 1)
    assert said.splitlines()[-1].startswith(str(folder / "report" / "index.html"))
    assert len(list((folder / "runs").iterdir())) == 2
    names = {path.name for path in folder.iterdir()}
    assert names == {"runs", "report", *FORMS}
    assert len(Tree.parse(folder / "junit.xml").getroot()) == 2


def test_the_same_night_again_leaves_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    folders = [tmp_path / each / "nights" for each in "ab"]
    for seed, folder in enumerate(folders):
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        assert night(folder, "Right", "TiesAway")[0] == 1
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
    code, _, err = night(folders[0], "Right")
    assert (code, err.strip()) == (
        2,
        f"castigate: {folders[0]}/runs/20231114-221320 holds a complete run; give another --out",
    )


def test_a_time_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    times = [told["datetime"] for tag, told in page.found if tag == "time"]
    assert len(times) == 3
    assert len(set(times)) == 2


def test_a_run_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    planted_run(tmp_path / "runs" / "a")
    planted_run(tmp_path / "runs" / "b", after=1, complete=False)
    told: list[str] = []
    report = Nights(tmp_path).render(told.append)
    assert len(report.records) == 1
    [line] = told
    assert line.startswith(f"left out: {tmp_path / 'runs' / 'b'}")


def test_only_the_last_runs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.nightly.PAST", 2)
    for day in range(3):
        planted_run(tmp_path / "runs" / str(9 - day), after=day, backends=["ort"])
    report = Nights(tmp_path).render(print)
    assert [record.started.day for record in report.records] == [3, 4]


def test_a_night_that_could_not_be_reported_is_not_begun(tmp_path: Path) -> None:
    (tmp_path / "nights" / "report").mkdir(parents=True)
    (tmp_path / "nights" / "report" / "thesis.txt").touch()
    for out, wrong in (
        (tmp_path / "nights", f"{tmp_path}/nights/report holds files and is no report"),
        (f"file://{tmp_path}/url", "is no folder of this machine"),
    ):
        code, told, err = castigate("nightly", backend("Right"), f"--out={out}")
        assert (code, told, err.count("\n")) == (2, "", 1)
        assert wrong in err
    assert [path.name for path in tmp_path.rglob("*")] == ["nights", "report", "thesis.txt"]


def test_without_a_run_there_is_nothing_to_report(tmp_path: Path) -> None:
    code, _, err = castigate("nightly", "--backend=nobody", f"--out={tmp_path / 'x'}")
    assert code == 2
    assert err.startswith("castigate: unknown backend `nobody`")
    assert not (tmp_path / "x").exists()
