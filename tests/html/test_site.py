"""The files of a report: reproducible, escaped, complete, and never half-written."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import reports.html.site
from reports.findings.report import read_report
from reports.html.page_data import open_answers_data
from reports.html.replace_report import MARK
from reports.html.site import write_site
from reports.judgement import VERDICTS, Judgement
from reports.problems import Died, Note
from reports.run_store.record import Shard
from specs.cases import Case
from specs.errors import CastigateError
from specs.loader import documents
from specs.plain_text import plain_text
from specs.rule_words import rule_lines
from specs.ruling import rule_case
from tests.conformance.processes import ROOT, castigate, contents
from tests.html.planted import (
    BACKENDS,
    HALF,
    Elements,
    cases,
    data,
    one_cell,
    planted_run,
    violated,
)
from tests.reports.common import objects

FEW = [case for case in cases() if case.id.startswith("onnx-cast:25/float32/float")]
HOSTILE = (
    "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}\u2028\u202e&amp;"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def site(run: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sites") / "site"
    write_site([run], folder)
    return folder


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted_run(tmp_path_factory.mktemp("runs") / "run", of=FEW)


def cases_of(index: Any) -> list[tuple[str, int, int]]:
    """Every case of an index: its id, the index of its version, and its own within that."""
    names = list(index["dtypes"])
    found = []
    for at, version in enumerate(index["versions"]):
        triples = zip(*[iter(version["cases"])] * 3, strict=True)
        for number, (source, target, mode) in enumerate(triples):
            segments = [f"{version['document']}:{version['version']}", names[source], names[target]]
            segments += [version["modes"][mode]] * bool(version["modes"][mode])
            found.append(("/".join(segments), at, number))
    return found


@pytest.mark.nightly
def test_two_processes_write_identical_reports(run: str, tmp_path: Path) -> None:
    older = planted_run(tmp_path / "older", one_cell("ort", HALF, violated("ort", HALF)), after=-1)
    for name in ("one", "two"):
        seed = {"PYTHONHASHSEED": {"one": "1", "two": "2"}[name]}
        code, out, _ = castigate("report", older, run, f"--out={tmp_path / name}", env=seed)
        assert code == 0
        assert out.endswith("3 backends, 1 better\n")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_index_and_front_page_have_every_verdict(run: str, site: Path) -> None:
    index = data(site, "index")
    rows = pq.read_table(f"{run}/cases.parquet").to_pylist()
    verdicts = {
        (index["backends"][backend]["name"], name): VERDICTS[int(digits[number])]
        for name, version, number in cases_of(index)
        for backend, digits in enumerate(index["versions"][version]["verdicts"])
    }
    assert verdicts == {(row["backend"], row["case"]): row["verdict"] for row in rows}
    page = (site / "index.html").read_text()
    counts = Counter((row["document"], row["backend"], row["verdict"]) for row in rows)
    for (_, _, verdict), count in counts.items():
        assert f'<span class="hidden">{verdict}: </span>' in page
        assert f"</span>{count:,} <small>" in page


def test_every_cell_has_its_details(run: str, site: Path) -> None:
    index = data(site, "index")
    rows = {
        (row["backend"], row["case"]): row
        for row in pq.read_table(f"{run}/cases.parquet").to_pylist()
    }
    for name, version, _ in cases_of(index):
        source = name.split("/")[1]
        found = data(site, f"{index['versions'][version]['document']}.{source}")
        for cell in found["cases"][name]:
            row = rows.pop((index["backends"][cell["backend"]]["name"], name))
            assert (cell["inputs"], cell["open"]) == (row["inputs"], row["open"])
            assert found["texts"][cell["message"]] == row["message"]
            assert found["texts"][cell["script"]] == row["reproduction"]
            findings = [found["broken"][each] for each in cell["broken"]]
            assert [each["rule"] for each in findings] == [each["rule"] for each in row["broken"]]
            assert sum(each["wrong"] for each in findings) == row["wrong"]
            for each, broken in zip(findings, row["broken"], strict=True):
                assert each["smallest"][0] == broken["smallest"]
                assert each["answer"][0] == broken["answer"]
                assert [word[0] for word in each["allowed"]] == broken["allowed"]
                assert each["segments"]
    assert rows == {}


def test_texts_of_a_backend_are_never_markup(tmp_path: Path) -> None:
    def hostile(backend: str, case: Case) -> Judgement | None:
        if case.target != "string":
            return None
        wrong = violated(backend, case.id, rule="int-to-string").divergences[0]
        answers = dict.fromkeys(("answer", "last_answer"), objects([HOSTILE]))
        runs = type(wrong.runs)(**vars(wrong.runs) | answers)
        one = type(wrong)(**vars(wrong) | {"runs": runs, "answer": HOSTILE, "allowed": (HOSTILE,)})
        found = (one, Note(HOSTILE))
        return Judgement(case.id, backend, "violates", found, inputs=1, reproduction=HOSTILE)

    run = planted_run(
        tmp_path / "run", hostile, [HOSTILE, "ort"], command_line=("castigate", HOSTILE)
    )
    write_site([run], tmp_path / "site")
    found = data(tmp_path / "site", "onnx-cast.int8")
    assert HOSTILE in found["texts"]
    assert any(HOSTILE in each["stretches"][0] for each in found["broken"])
    for page in (tmp_path / "site").glob("*.html"):
        text = page.read_text()
        assert HOSTILE not in text
        for tag, attributes in Elements(text).found:
            assert tag != "img"
            assert tag != "script" or "src" in attributes
            assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert plain_text(HOSTILE) in Elements((tmp_path / "site" / "index.html").read_text()).text
    for script in (tmp_path / "site" / "data").iterdir():
        data(tmp_path / "site", script.stem)


def changed_cells(site: Path) -> list[tuple[str, str, list[str]]]:
    """The cells that the index marks as changed: backend, case, kinds of change."""
    index = data(site, "index")
    return [
        (
            index["backends"][backend]["name"],
            name,
            [index["changes"][kind]["name"] for kind in kinds],
        )
        for name, version, number in cases_of(index)
        for backend, changes in enumerate(index["versions"][version]["changes"])
        if (kinds := changes.get(str(number)))
    ]


CONFORMS = Judgement(HALF, "ort", "conforms", inputs=256)
BOOM = Judgement(HALF, "ort", "error", (Note("boom"),))
DEAD = Judgement(HALF, "ort", "crashed", (Died("the process was ended by SIGSEGV"),))


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize(
    ("before", "now", "kinds"),
    [
        (CONFORMS, violated("ort", HALF), ["new"]),
        (violated("ort", HALF), CONFORMS, ["mended"]),
        (violated("ort", HALF), violated("ort", HALF, 2), ["changed"]),
        (violated("ort", HALF), violated("ort", HALF, rule="other"), ["new", "mended"]),
        (violated("ort", HALF), Judgement(HALF, "ort", "unsupported"), ["unanswered"]),
        (violated("ort", HALF), DEAD, ["new", "unanswered"]),
        (CONFORMS, BOOM, ["new"]),
        (BOOM, CONFORMS, ["mended"]),
        (CONFORMS, Judgement(HALF, "ort", "unsupported"), []),
        (violated("ort", HALF), violated("ort", HALF), []),
    ],
)
def test_a_change_in_one_cell_is_reported_once(
    before: Judgement, now: Judgement, kinds: list[str], tmp_path: Path
) -> None:
    runs = [
        planted_run(tmp_path / "before", one_cell("ort", HALF, before), of=FEW),
        planted_run(tmp_path / "now", one_cell("ort", HALF, now), after=1, of=FEW),
    ]
    report = write_site(runs, tmp_path / "site")
    assert changed_cells(tmp_path / "site") == ([("ort", HALF, kinds)] if kinds else [])
    found = [change.kind for each in report.changes.values() for change in each]
    assert found == kinds
    page = (tmp_path / "site" / "index.html").read_text()
    assert page.count(f'href="case.html#{HALF}">{HALF}</a>') == len(kinds)
    [cell] = [
        each
        for each in data(tmp_path / "site", "onnx-cast.float32")["cases"][HALF]
        if each["backend"] == BACKENDS.index("ort")
    ]
    assert [VERDICTS[int(digit)] for digit in cell["history"]] == [before.verdict, now.verdict]


def test_cells_that_the_previous_run_lacks_are_not_reported_as_new(tmp_path: Path) -> None:
    runs = [
        planted_run(tmp_path / "before", backends=["torch"], of=FEW),
        planted_run(tmp_path / "now", backends=["torch", "ort"], after=1, of=FEW),
    ]
    report = write_site(runs, tmp_path / "site")
    assert report.changes == {}
    assert report.history["ort", HALF].startswith(".")


def test_front_page_names_a_different_seed(tmp_path: Path) -> None:
    runs = [planted_run(tmp_path / f"{seed}", after=seed, seed=seed, of=FEW) for seed in (0, 1)]
    write_site(runs, tmp_path / "site")
    assert "seed: 0 before, 1 now" in (tmp_path / "site" / "index.html").read_text()


def test_groups_of_backends_do_not_depend_on_claims(site: Path) -> None:
    found = data(site, "onnx-cast.float32")
    cells = found["cases"]["onnx-cast:25/float32/float8e4m3fn/saturate:1"]
    broken = {BACKENDS[cell["backend"]]: cell["broken"] for cell in cells}
    assert broken["torch"] == broken["vendor:fast"] != broken["ort"] == []


def test_open_answers_are_told_by_pair_and_backend(tmp_path: Path) -> None:
    report = read_report([planted_run(tmp_path / "run", backends=["ort"])])
    case = "onnx-cast:25/float32/int16"
    other = "pypto-cast:0.2/float32/int16/mode:CAST_ODD/satmode:on"
    lines = {
        ("ort", case): ("a: 100 % of 2 inputs", "b"),
        ("ort", other): ("b", "a: 100 % of 3 inputs", "c"),
    }
    told = open_answers_data(replace(report, behaviors=lines))
    assert told == {"texts": ["a", "b", "c"], "pairs": {"float32/int16": {"ort": [0, 1, 2]}}}


def test_case_details_show_whose_answers_are_identical(site: Path) -> None:
    found = data(site, "onnx-cast.float32")
    answers = {BACKENDS[cell["backend"]]: cell["answers"] for cell in found["cases"][HALF]}
    assert None is not answers["ort"] == answers["torch"] != answers["vendor:fast"] is not None
    others = found["cases"]["onnx-cast:25/float32/int8"]
    assert [cell["answers"] for cell in others] == [None] * 3


def test_open_points_list_conflicts_and_count_open_inputs(run: str, site: Path) -> None:
    page = Elements((site / "open.html").read_text()).text
    for name in ("onnx-cast", "pypto-cast"):
        for rule, entry in documents()[name].entry.rules.items():
            for conflict in entry.conflict:
                assert rule in page
                assert conflict.about in page
                assert conflict.taken in page
    assert "cinn" not in page
    rows = pq.read_table(f"{run}/cases.parquet", filters=[("backend", "=", "ort")]).to_pylist()
    open_inputs = {row["case"]: row["open"] for row in rows}
    totals = {"onnx-cast": 0, "pypto-cast": 0}
    for case in cases():
        if rule_case(documents()[case.document], case).open_branches:
            totals[case.document] += open_inputs[case.id]
    assert 0 < sum(totals.values()) < sum(open_inputs.values())
    for count in totals.values():
        assert f'<td class="number">{count:,}</td>' in (site / "open.html").read_text()


def test_a_documents_page_says_what_each_rule_says(site: Path) -> None:
    page = Elements((site / "document-onnx-cast.html").read_text()).text
    for rule in documents()["onnx-cast"].entry.rules.values():
        for line in rule_lines(rule):
            assert line in page


def test_case_details_have_all_rules_broken_or_not(site: Path) -> None:
    for case in cases():
        details = data(site, f"{case.document}.{case.source}")
        rules = rule_case(documents()[case.document], case)
        rows = details["rules"][details["rules_of"][case.id]]
        assert {tuple(row[:3]) for row in rows} == {
            (branch.rule, branch.level, branch.clause) for branch in rules.branches
        }
        assert all(inputs for *_, inputs in rows)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_only_an_older_report_is_replaced(small_run: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/deep", "empty"):
        write_site([small_run], tmp_path / name)
        (tmp_path / name / "left.html").touch()
    write_site([small_run], tmp_path / "empty")
    assert "left.html" not in names_in(tmp_path / "empty")
    assert names_in(tmp_path) == ["empty", "new"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(CastigateError, match=r"mine holds other files \(`thesis.txt`\)"):
        write_site([small_run], tmp_path / "mine")
    assert names_in(tmp_path / "mine") == ["thesis.txt"]
    with pytest.raises(CastigateError, match="is a file"):
        write_site([small_run], tmp_path / "mine" / "thesis.txt")


def test_a_failed_report_leaves_the_older_one_unchanged(
    small_run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_site([small_run], tmp_path / "site")
    before = contents(tmp_path / "site")

    def disk_full(name: str, content: Any) -> bytes:
        if name != "index":
            raise OSError(28, "No space left on device")
        return b""

    monkeypatch.setattr(reports.html.site, "data_file", disk_full)
    for name in ("site", "another"):
        with pytest.raises(CastigateError, match="No space left on device"):
            write_site([small_run], tmp_path / name)
    assert names_in(tmp_path) == ["site"]
    assert contents(tmp_path / "site") == before
    assert MARK in before


def error_line(*arguments: str) -> str:
    """Run `castigate report`, which must fail, and return its one line of error."""
    code, out, err = castigate("report", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    return err


@pytest.mark.nightly
def test_incomplete_runs_are_rejected_in_one_line(run: str, tmp_path: Path) -> None:
    out = f"--out={tmp_path / 'site'}"
    assert "is no run" in error_line(str(tmp_path), out)
    unfinished = planted_run(tmp_path / "unfinished", complete=False)
    assert "holds an unfinished run" in error_line(unfinished, out)
    assert "holds an unfinished run" in error_line(unfinished, run, out)
    shard = planted_run(tmp_path / "shard", shard=Shard(index=1, count=2))
    assert "is shard 1/2" in error_line(shard, out)
    older = planted_run(tmp_path / "older", after=-1)
    assert not (tmp_path / "site").exists()
    # The last run is the one that began last, in whatever order runs are given.
    pages = [tmp_path / "a", tmp_path / "b"]
    for given, page in zip(((run, older), (older, run)), pages, strict=True):
        assert castigate("report", *given, f"--out={page}")[0] == 0
    assert contents(pages[0]) == contents(pages[1])


def test_tables_of_different_runs_are_rejected(run: str, tmp_path: Path) -> None:
    more = planted_run(tmp_path / "more", one_cell("ort", HALF, violated("ort", HALF)))
    fewer = Path(run) / "divergences.parquet"
    (Path(more) / "divergences.parquet").write_bytes(fewer.read_bytes())
    with pytest.raises(CastigateError, match=r"does not belong to its cases\.parquet"):
        write_site([more], tmp_path / "site")


def test_a_run_with_an_unknown_version_is_rejected(run: str, tmp_path: Path) -> None:
    other = Path(planted_run(tmp_path / "other"))
    table = pq.read_table(other / "cases.parquet")
    column = table.schema.get_field_index("version")
    table = table.set_column(column, table.schema.field(column), [["99"] * table.num_rows])
    pq.write_table(table, other / "cases.parquet", store_schema=False)
    with pytest.raises(CastigateError, match="has document `onnx-cast:99`, which castigate"):
        write_site([str(other)], tmp_path / "site")
    assert json.loads((other / "run.json").read_text())["complete"]


def test_a_wheel_includes_templates_scripts_and_styles() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["reports.html"]
    folder = Path(reports.html.site.__file__).parent
    packaged = {path for pattern in patterns for path in folder.glob(pattern)}
    files = {path for path in folder.rglob("*.*") if path.suffix not in (".py", ".pyc")}
    assert packaged == files != set()
