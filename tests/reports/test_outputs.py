"""A report as CSV, JUnit XML and Markdown: complete, reproducible, and safely escaped."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest

from reports.findings.report import Report, read_report
from reports.judgement import Judgement
from reports.outputs.junit import junit
from reports.outputs.summary_md import summary_md
from reports.outputs.write_outputs import COLUMNS, RENDERERS, cases_csv, write_output
from reports.problems import Died, Note, WrongShape, WrongTensor
from reports.run_store.open_run import open_run
from reports.run_store.record import BackendRecord, serialize_record
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named
from specs.plain_text import escape_markdown
from tests.conformance.processes import castigate
from tests.html.planted import BACKENDS, HALF, cases, one_cell, planted_run, violated
from tests.reports.common import divergence, steps

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
    named = [dict(zip(head, row, strict=True)) for row in rows]
    found = next(row for row in named if (row["backend"], row["case"]) == ("ort", HALF))
    broken = report.cells["ort", HALF].broken[0]
    assert (found["verdict"], found["rules"]) == ("violates", "rounds")
    assert (found["smallest"], found["answer"]) == (broken.smallest, broken.answer)
    assert found["wrong"] == str(broken.wrong)


def test_junit_has_a_test_per_case_and_counts_failures(report: Report) -> None:
    root = Tree.fromstring(junit(report))
    suites = {suite.get("name", "").split()[0]: suite for suite in root}
    assert tuple(suites) == BACKENDS
    for backend, suite in suites.items():
        counts = verdicts(report, backend)
        tests = suite.findall("testcase")
        assert len(tests) == int(suite.get("tests", "")) == counts.total()
        for kind, expected in {
            "failures": counts["violates"] + counts["deviates"],
            "errors": counts["error"] + counts["crashed"],
            "skipped": counts["unsupported"] + counts["not-run"],
        }.items():
            tag = {"failures": "failure", "errors": "error", "skipped": "skipped"}[kind]
            assert int(suite.get(kind, "")) == expected == len(suite.findall(f"testcase/{tag}"))
    half = suites["ort"].find(f"testcase[@name='{HALF.split('/', 1)[1]}']/failure")
    assert half is not None
    assert half.get("message") == "rounds"


def test_markdown_has_findings_verdicts_and_changes(report: Report) -> None:
    page = summary_md(report)
    for backend in BACKENDS:
        counts = verdicts(report, backend)
        row = next(
            line for line in page.splitlines() if line.startswith(f"| {escape_markdown(backend)} |")
        )
        assert [cell for cell in row.strip("| ").split(" | ")[1:] if cell != "0"] == [
            f"{counts[verdict]:,}" for verdict in
            ("conforms", "violates", "deviates", "differs", "open", "unsupported", "error",
             "crashed", "not-run") if counts[verdict]
        ]  # fmt: skip
    assert "## ort 1.2, since the previous run: 1 worse, " in page
    assert f"  {escape_markdown(HALF)}\n" in page
    lines = [line for line in page.splitlines() if "float32 to float16, at" in line]
    [line] = lines
    assert line.startswith("  1 case, float32 to float16, at least 1 input; ")


def test_a_step_to_another_version_names_the_version_before(tmp_path: Path) -> None:
    earlier = tuple(BackendRecord(name=name, version="0.9") for name in BACKENDS)
    runs = planted_run(tmp_path / "a"), planted_run(tmp_path / "b", after=1)
    store = open_run(runs[0])
    record = store.record.model_copy(update={"backends": earlier})
    (tmp_path / "a" / "run.json").write_bytes(serialize_record(record))
    assert [each.since for each in read_report(runs).steps] == ["since 0.9"] * len(BACKENDS)
    assert read_report(runs[1:]).step("ort") is None


def test_markdown_of_a_first_run_has_no_changes(runs: tuple[str, str]) -> None:
    assert "There is no previous run to compare with." in summary_md(read_report(runs[:1]))


def test_texts_of_a_backend_are_escaped_in_every_output(tmp_path: Path) -> None:
    def hostile(backend: str, case: Case) -> Judgement | None:
        return Judgement(case.id, backend, "error", (Note(HOSTILE),)) if case.id == HALF else None

    report = read_report([planted_run(tmp_path / "run", hostile, ["ort"])])
    error = Tree.fromstring(junit(report)).find("testsuite/testcase/error")
    assert error is not None
    assert error.get("message", "").startswith('=cmd|"x"\\u0000]]>&<b>')
    named = read_report([planted_run(tmp_path / "named", backends=[HOSTILE[:16]])])
    assert Tree.fromstring(junit(named))[0].get("name") == '=cmd|"x"\\u0000]]>&<b> 1.2'
    rows = list(csv.reader(StringIO(cases_csv(report))))
    assert next(row[-1] for row in rows if row[2] == HALF).startswith("'=cmd")
    assert escape_markdown("<b>|`x`") == r"\<b>\|\`x\`"


@pytest.mark.parametrize("output", RENDERERS)
def test_outputs_are_reproducible(report: Report, output: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_output(report, output, tmp_path / name / output)
    one, two = ((tmp_path / name / output).read_bytes() for name in ("one", "two"))
    assert one == two
    assert one.endswith(b"\n")


def planted_report(folder: Path, *judgements: Judgement) -> Report:
    """The report of one backend with these judgements, and default ones on all other cases."""
    named = {each.case: each for each in judgements}
    return read_report([planted_run(folder, lambda _, case: named.get(case.id), ["ort"])])


def broken(name: str, *rules: str, notes: Sequence[Note] = (), **changes: Any) -> Judgement:
    """A judgement with one divergence of three inputs per rule."""
    wrong = tuple(divergence(steps(3), rule=rule) for rule in rules)
    fields = {"verdict": "violates", "inputs": 9, "problems": (*wrong, *notes)}
    return Judgement(name, "ort", **fields | changes)


def test_markdown_lists_findings_by_kind_and_then_by_cases(tmp_path: Path) -> None:
    names = [case.id for case in cases()]
    lines = summary_md(
        planted_report(
            tmp_path,
            Judgement(names[0], "ort", "error", (Note("boom"),)),
            Judgement(names[1], "ort", "crashed", (Died("the process was ended"),)),
            broken(names[2], "a", "b", verdict="differs"),
            broken(names[3], "c", verdict="deviates"),
            replace(
                broken(names[4], "c"),
                problems=(
                    divergence(steps(3), rule="c"),
                    replace(divergence(steps(3), rule="c"), level="recommended"),
                ),
            ),
            Judgement(names[5], "ort", "unsupported", (Note("no"),)),
        )
    ).splitlines()
    assert lines[2] == f"{len(names)} cases, tier quick, ort 1.2."
    findings = [line.split("**") for line in lines if line.startswith("- **")]
    # Failures without a cause come last; without stored answers no wrong value has a cause.
    assert [kind for _, kind, _ in findings] == ["wrong refusal", "crash", "wrong value"]
    assert [says.rstrip() for _, _, says in findings[:2]] == [
        ": boom",
        ": its process dies: the process was ended",
    ]


def test_markdown_lists_differences_in_setup(tmp_path: Path) -> None:
    runs = [
        planted_run(tmp_path / str(seed), backends=["ort"], after=seed, seed=seed)
        for seed in range(3)
    ]
    assert "- The runs differ in their setup: seed: 1 before, 2 now" in summary_md(
        read_report(runs)
    )


def test_markdown_escapes_all_markup() -> None:
    for mark in "`*|~<":
        assert escape_markdown(f"a{mark}b") == f"a\\{mark}b"
    assert escape_markdown(" one\r\n\n\ttwo ") == "one two"


def test_csv_has_the_right_value_in_every_column(tmp_path: Path) -> None:
    name = "onnx-cast:25/float32/float8e4m3fn/saturate:1"
    wrong = broken(name, "a", "b", notes=[Note("note")], open_inputs=4)
    again = replace(divergence(steps(1), rule="a", smallest=5), level="recommended")
    report = planted_report(tmp_path, replace(wrong, problems=(*wrong.problems, again)))
    head, *rows = csv.reader(StringIO(cases_csv(report)))
    [row] = [row for row in rows if row[2] == name]
    assert dict(zip(head, row, strict=True)) == {
        "backend": "ort",
        "version": "1.2",
        "case": name,
        "document": "onnx-cast",
        "document_version": "25",
        "source": "float32",
        "target": "float8e4m3fn",
        "mode": "saturate:1",
        "verdict": "violates",
        "inputs": "9",
        "open": "4",
        "wrong": "7",
        "rules": "a b",
        "smallest": "0x00000001",
        "answer": "0x02",
        "allowed": "0x0000 or any-nan",
        "message": "note",
    }


def test_csv_has_the_example_of_a_tensor(tmp_path: Path) -> None:
    codes = WrongTensor(
        "nearest", "§ 2", "required", "y", "0.5, scale 1", "0x01 (1)", ("0x00",), 5, 9
    )
    name = cases()[0].id
    report = planted_report(tmp_path, Judgement(name, "ort", "violates", (codes,)))
    head, *rows = csv.reader(StringIO(cases_csv(report)))
    [row] = [dict(zip(head, row, strict=True)) for row in rows if row[2] == name]
    assert (row["smallest"], row["answer"], row["allowed"]) == ("0.5, scale 1", "0x01 (1)", "0x00")


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_escapes_formulas(tmp_path: Path, mark: str) -> None:
    report = planted_report(tmp_path, Judgement(HALF, "ort", "error", (Note(f"{mark}1"),)))
    rows = list(csv.reader(StringIO(cases_csv(report))))
    shown = mark.replace("\r", r"\u000d")
    assert [row[-1] for row in rows if row[2] == HALF] == [f"'{shown}1"]


def test_junit_describes_each_failure(tmp_path: Path) -> None:
    names = [case.id for case in cases()]
    report = planted_report(
        tmp_path,
        broken(
            names[0], "a", "b", verdict="deviates", notes=[Note("note")], reproduction="print(1)\n"
        ),
        broken(names[1], "a", verdict="differs"),
        Judgement(names[2], "ort", "violates", (Note("another shape"),)),
        Judgement(names[3], "ort", "crashed", (Died("gone"),)),
        Judgement(names[4], "ort", "not-run"),
    )
    [suite] = Tree.fromstring(junit(report))
    counts = {kind: suite.get(kind) for kind in ("failures", "errors", "skipped")}
    assert counts == {"failures": "2", "errors": "1", "skipped": "1"}
    assert (suite.get("name"), suite.get("timestamp")) == ("ort 1.2", "2026-01-02T03:04:05+00:00")
    tests = {f"{test.get('classname')}/{test.get('name')}": test for test in suite}
    found = {name: [*tests[f"ort.{name}"]] for name in names[:5]}
    assert [
        (each.tag, each.get("type"), each.get("message"))
        for children in found.values()
        for each in children
    ] == [
        ("failure", "deviates", "a, b"),
        ("system-out", None, None),
        ("failure", "violates", "another shape"),
        ("error", "crashed", "gone"),
        ("skipped", None, "not-run"),
    ]
    source, target = (format_named(name) for name in names[0].split("/")[1:3])
    line = (
        f"(§ 1, required): 3 wrong answers; {source.hexadecimal(1)} gives {target.hexadecimal(2)},"
        " allowed: 0x0000 or any-nan"
    )
    assert found[names[0]][0].text == f"a {line}\nb {line}\nnote\nprint(1)\n"
    text = found[names[1]][0].text
    assert text is not None
    assert text.startswith("differs from a document that it does not claim\na (§ 1, required): 3 ")


def test_junit_counts_wrong_answers_that_have_no_pattern(tmp_path: Path) -> None:
    about = ("nearest", "§ 2", "required")
    codes = WrongTensor(*about, "y", "0.5, scale 1", "0x01 (1)", ("0x00 (0)",), 5, 9)
    shape = WrongShape("kept", "§ 3", "required", (2,), (3,))
    name = cases()[0].id
    report = planted_report(tmp_path, Judgement(name, "ort", "violates", (codes, shape)))
    [suite] = Tree.fromstring(junit(report))
    text = next(each.text or "" for test in suite for each in test if each.tag == "failure")
    assert text.splitlines()[:2] == [
        "nearest (§ 2, required): 5 wrong answers",
        "kept (§ 3, required)",
    ]
    assert report.cells["ort", name].wrong == 5


def test_junit_has_the_time_of_the_last_run(runs: tuple[str, str]) -> None:
    root = Tree.fromstring(junit(read_report(runs)))
    assert {suite.get("timestamp") for suite in root} == {"2026-01-02T03:04:05+00:00"}


def test_an_output_is_written_under_any_name_completely_or_not_at_all(
    report: Report, tmp_path: Path
) -> None:
    write_output(report, "junit.xml", tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(CastigateError, match="is a folder; give the name of a file"):
        write_output(report, "junit.xml", tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "mine.txt"]


def test_a_link_to_a_file_is_followed_and_stays(report: Report, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "old.csv").symlink_to("kept/cases.csv")
    (tmp_path / "latest.csv").symlink_to(tmp_path / "old.csv")
    for before in (None, "of yesterday"):
        if before is not None:
            (tmp_path / "kept" / "cases.csv").write_text(before)
        write_output(report, "cases.csv", tmp_path / "latest.csv")
        assert (tmp_path / "kept" / "cases.csv").read_text() == cases_csv(report)
    assert os.readlink(tmp_path / "latest.csv") == str(tmp_path / "old.csv")
    assert os.readlink(tmp_path / "old.csv") == "kept/cases.csv"
    assert sorted(each.name for each in tmp_path.rglob("*")) == [
        "cases.csv", "kept", "latest.csv", "old.csv"
    ]  # fmt: skip


def special_file(kind: str, folder: Path) -> Path:
    """Create a special file of some kind; return its path."""
    path = folder / "special"
    match kind:
        case "a FIFO":
            os.mkfifo(path)
        case "a socket":
            with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as bound:
                bound.bind(path.name)
        case "a device":
            path.symlink_to(os.devnull)
        case "an open stream":
            path.symlink_to("/dev/stdout")
    return path


@pytest.mark.parametrize("kind", ["a FIFO", "a socket", "a device", "an open stream"])
def test_what_is_no_file_is_refused_and_stays(kind: str, report: Report, tmp_path: Path) -> None:
    path = special_file(kind, tmp_path)
    before = path.lstat()
    refused = f"`{path}` is {kind}, which a file would replace; give the name of a file"
    with pytest.raises(CastigateError, match=f"^{re.escape(refused)}$"):
        write_output(report, "cases.csv", path)
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert [each.name for each in tmp_path.iterdir()] == ["special"]


def test_a_link_to_itself_is_one_line(report: Report, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CastigateError, match=r"cannot write .*/loop: Too many levels of symbolic"):
        write_output(report, "cases.csv", tmp_path / "loop")
    assert os.readlink(tmp_path / "loop") == "loop"


@pytest.mark.parametrize("option", ["summary", "csv", "junit"])
def test_a_report_with_an_output_that_is_refused_writes_nothing(
    option: str, runs: tuple[str, str], tmp_path: Path
) -> None:
    fifo = special_file("a FIFO", tmp_path)
    arguments = [*runs, f"--out={tmp_path / 'site'}", f"--{option}={fifo}"]
    code, out, err = castigate("report", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"castigate: `{fifo}` is a FIFO")
    assert [each.name for each in tmp_path.iterdir()] == ["special"]


def test_each_option_of_the_report_command_writes_its_output(
    runs: tuple[str, str], tmp_path: Path
) -> None:
    files = {name: tmp_path / f"{name}.txt" for name in ("summary", "csv", "junit")}
    options = [f"--{name}={file}" for name, file in files.items()]
    code, out, err = castigate("report", *runs, f"--out={tmp_path / 'site'}", *options)
    assert (code, err) == (0, "")
    assert out == (
        f"{tmp_path / 'site' / 'index.html'}: {len(cases())} cases, 3 backends, 1 worse\n"
    )
    first_lines = {name: file.read_text().partition("\n")[0] for name, file in files.items()}
    assert first_lines == {
        "summary": "# Castigate",
        "csv": ",".join(f'"{column}"' for column in COLUMNS),
        "junit": '<?xml version="1.0" encoding="UTF-8"?>',
    }
    code, out, _ = castigate("report", runs[1], f"--out={tmp_path / 'other'}")
    assert (code, out.partition(": ")[2]) == (0, f"{len(cases())} cases, 3 backends\n")
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"site", "other"}


def test_the_folder_of_a_file_is_not_made(report: Report, tmp_path: Path) -> None:
    with pytest.raises(CastigateError, match=f"`{tmp_path}` is a folder; "):
        write_output(report, "cases.csv", tmp_path)
    with pytest.raises(CastigateError, match=f"there is no folder {tmp_path / 'none'}; make it"):
        write_output(report, "cases.csv", tmp_path / "none" / "cases.csv")
    assert not (tmp_path / "none").exists()
