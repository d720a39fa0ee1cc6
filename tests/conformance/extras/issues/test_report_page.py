"""The page of public threads: decided by the answers that the run holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.extras.issues.docket import docket
from conformance.extras.issues.report_page import issues_page
from reports.run_store.open_run import open_run
from tests.conformance.processes import castigate
from tests.html.planted import planted_run


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("docket")
    pair = ("--source=float32", "--target=float8e4m3fnuz")
    asked = ("--backend=onnx", "--document=onnx-cast:21", *pair, "--jobs=1")
    assert castigate("run", *asked, f"--out={folder / 'run'}")[0] == 1
    asked = ("report", str(folder / "run"), "--with=issues", f"--out={folder / 'site'}")
    assert castigate(*asked)[0] == 0
    return folder / "site"


def test_a_fault_that_the_run_shows_is_present(site: Path) -> None:
    page = (site / "docket.html").read_text()
    [row] = re.findall(r"<tr>.*issues/6220\".*</tr>", page)
    assert re.search(r"present in onnx \d", row)
    assert 'href="case.html#onnx-cast:21/float32/float8e4m3fnuz/saturate:1"' in row
    assert "today onnx 0xff" in row


def test_every_thread_has_a_row_and_the_front_page_counts_them(site: Path) -> None:
    page, front = (site / "docket.html").read_text(), (site / "index.html").read_text()
    for each in docket():
        assert page.count(f'href="{each.link}"') == 1
    counts = issues_page(open_run(str(site.parent / "run"))).content["counts"]
    assert "1 present" in front
    for verdict, number in counts.items():
        assert f"{number} {verdict}" in front
        assert f'<h2 id="{verdict.replace(" ", "-")}">{verdict} <small>{number}</small>' in page


def test_a_run_that_asked_none_of_it_is_decided_by_documents(tmp_path: Path) -> None:
    content = issues_page(open_run(planted_run(tmp_path / "run"))).content
    assert {*content["counts"]} == {
        "not reproducible here",
        "open by the document",
        "the reporter was wrong",
    }
    assert any("the run did not ask this input" in verdicts for _, verdicts, *_ in content["rows"])


def test_a_report_decides_threads_only_where_asked(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "run")
    assert castigate("report", run, f"--out={tmp_path / 'site'}")[0] == 0
    assert not (tmp_path / "site" / "docket.html").exists()
    assert "docket" not in (tmp_path / "site" / "index.html").read_text()


def test_a_page_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    code, out, err = castigate("report", "RUN", "--with=isues", f"--out={tmp_path}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "did you mean `issues`? the pages are portable, containers, issues" in err
