"""The page of public threads: decided by the answers that the run holds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from conformance.exchange.docket_of_run import docket_rows
from reports.html.site import write_site
from specs.docket import docket
from tests.conformance.processes import castigate_in_process
from tests.html.planted import planted_run


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("docket")
    pair = ("--source=float32", "--target=float8e4m3fnuz")
    asked = ("run", "--backend=onnx", "--document=onnx-cast:21", *pair, f"--out={folder / 'run'}")
    assert castigate_in_process(*asked)[0] == 1
    assert castigate_in_process("report", str(folder / "run"), f"--out={folder / 'site'}")[0] == 0
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
    counts = Counter(each.verdict for each in docket_rows(str(site.parent / "run")))
    assert "1 present" in front
    for verdict, number in counts.items():
        assert f"{number} {verdict}" in front
        assert f'<h2 id="{verdict.replace(" ", "-")}">{verdict} <small>{number}</small>' in page


def test_a_run_that_asked_none_of_it_is_decided_by_documents(tmp_path: Path) -> None:
    rows = docket_rows(planted_run(tmp_path / "run"))
    assert {each.verdict for each in rows} == {
        "not reproducible here",
        "open by the document",
        "the reporter was wrong",
    }
    assert any(
        "the run did not ask this input" in verdict for each in rows for verdict in each.verdicts
    )


def test_a_site_without_a_docket_has_no_page_of_it(tmp_path: Path) -> None:
    write_site([planted_run(tmp_path / "run")], tmp_path / "site")
    assert not (tmp_path / "site" / "docket.html").exists()
    assert "docket" not in (tmp_path / "site" / "index.html").read_text()
