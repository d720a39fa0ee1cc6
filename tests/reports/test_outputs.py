"""The forms of a report for other programs: complete, the same twice, and nothing in them acts."""

from __future__ import annotations

import csv
from collections import Counter
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from reports.findings.report import Report, read_report
from reports.judgement import Judgement
from reports.outputs.cases_csv import COLUMNS, cases_csv
from reports.outputs.junit import junit
from reports.outputs.summary_md import plain, summary_md
from reports.outputs.writing import FORMS, write_output
from specs.cases import Case
from tests.html.planted import BACKENDS, HALF, one_cell, planted_run, violated

HOSTILE = '=cmd|"x"\u0000]]>&<b>`|`\ud800\r\n[a](b)'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    wrong = one_cell("ort", HALF, violated("ort", HALF))
    return planted_run(folder / "old", after=-1), planted_run(folder / "new", wrong)


@pytest.fixture(scope="module")
def report(runs: tuple[str, str]) -> Report:
    return read_report(runs)


def verdicts(report: Report, backend: str) -> Counter[str]:
    return Counter(cell.verdict for (name, _), cell in report.cells.items() if name == backend)


def test_csv_has_a_row_per_backend_and_case(report: Report) -> None:
    head, *rows = csv.reader(StringIO(cases_csv(report)))
    assert tuple(head) == COLUMNS
    assert [(row[0], row[2]) for row in rows] == list(report.cells)
    told = [dict(zip(head, row, strict=True)) for row in rows]
    found = next(row for row in told if (row["backend"], row["case"]) == ("ort", HALF))
    broken = report.cells["ort", HALF].broken[0]
    assert (found["verdict"], found["rules"]) == ("violates", "rounds")
    assert (found["smallest"], found["answer"]) == (broken.smallest, broken.answer)
    assert found["wrong"] == str(broken.wrong)


def test_junit_has_a_test_per_case_and_counts_what_failed(report: Report) -> None:
    root = Tree.fromstring(junit(report))
    suites = {suite.get("name", "").split()[0]: suite for suite in root}
    assert tuple(suites) == BACKENDS
    for backend, suite in suites.items():
        counts = verdicts(report, backend)
        tests = suite.findall("testcase")
        assert len(tests) == int(suite.get("tests", "")) == counts.total()
        for kind, of in {
            "failures": counts["violates"] + counts["deviates"],
            "errors": counts["error"] + counts["crashed"],
            "skipped": counts["unsupported"] + counts["not-run"],
        }.items():
            tag = {"failures": "failure", "errors": "error", "skipped": "skipped"}[kind]
            assert int(suite.get(kind, "")) == of == len(suite.findall(f"testcase/{tag}"))
    half = suites["ort"].find(f"testcase[@name='{HALF.split('/', 1)[1]}']/failure")
    assert half is not None
    assert half.get("message") == "rounds"


def test_markdown_tells_verdicts_changes_and_what_fails(report: Report) -> None:
    page = summary_md(report)
    for backend in BACKENDS:
        counts = verdicts(report, backend)
        row = next(line for line in page.splitlines() if line.startswith(f"| {plain(backend)} |"))
        assert [cell for cell in row.strip("| ").split(" | ")[1:] if cell != "0"] == [
            f"{counts[verdict]:,}" for verdict in
            ("conforms", "violates", "deviates", "differs", "open", "unsupported", "error",
             "crashed", "not-run") if counts[verdict]
        ]  # fmt: skip
    assert "1 new, 0 changed, 0 fixed, 0 unanswered." in page
    assert f"- new: ort, {plain(HALF)}, rounds" in page
    assert "| ort | onnx-cast | rounds | 1 |" in page


def test_the_first_run_has_none_before_it(runs: tuple[str, str]) -> None:
    assert "There is none." in summary_md(read_report(runs[:1]))


def test_what_a_backend_says_is_text_everywhere(tmp_path: Path) -> None:
    def hostile(backend: str, case: Case) -> Judgement | None:
        return Judgement(case.id, backend, "error", HOSTILE) if case.id == HALF else None

    report = read_report([planted_run(tmp_path / "run", hostile, ["ort"])])
    error = Tree.fromstring(junit(report)).find("testsuite/testcase/error")
    assert error is not None
    assert error.get("message", "").startswith('=cmd|"x"\ufffd]]>&<b>')
    named = read_report([planted_run(tmp_path / "named", backends=[HOSTILE[:16]])])
    assert Tree.fromstring(junit(named))[0].get("name") == '=cmd|"x"\ufffd]]>&<b> 1.2'
    rows = list(csv.reader(StringIO(cases_csv(report))))
    assert next(row[-1] for row in rows if row[2] == HALF).startswith("'=cmd")
    assert plain("<b>|`x`") == r"\<b\>\|\`x\`"


@pytest.mark.parametrize("form", FORMS)
def test_the_same_report_gives_the_same_bytes(report: Report, form: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_output(report, form, tmp_path / name / form)
    one, two = ((tmp_path / name / form).read_bytes() for name in ("one", "two"))
    assert one == two
    assert one.endswith(b"\n")
