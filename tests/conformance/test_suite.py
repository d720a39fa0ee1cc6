"""``pytest conformance --backend=…`` as a process: its exit codes, output and records."""

from __future__ import annotations

import re
import subprocess
import sys
from ast import literal_eval
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from specs import VERSION
from specs.loader import documents

ROOT = Path(__file__).parents[2]
HOSTILE = Path(__file__).with_name("data") / "hostile.py"
PASSED, FAILED, USAGE, NOTHING = 0, 1, 4, 5
REFERENCE = "--backend=reference"
ONNX = "--document=onnx-cast:25"
TIES = "onnx-cast:25/float16/float8e5m2/saturate:1"
MINUS_ZERO = "onnx-cast:25/float16/bfloat16"
SMALL = "onnx-cast:25/int4/int2"


def suite(*arguments: str, target: str = "conformance", cwd: Path = ROOT) -> tuple[int, str]:
    """Run the suite; return its exit code and its output, which must not have an internal error."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", target, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output
    return done.returncode, output


def hostile(name: str) -> str:
    return f"--backend={HOSTILE}:{name}"


def table(output: str) -> list[list[str]]:
    """The rows of the table of verdicts, headings first."""
    rows = output.partition("= verdicts =")[2].splitlines()[1:]
    return [row.split() for row in rows if row.strip() and not row.startswith("=")]


def test_k_selects_cases_by_id_and_the_header_names_backends_documents_and_options(
    tmp_path: Path,
) -> None:
    """The suite runs from any folder."""
    options = ("--pyargs", "--seed=17", "--max-examples=3")
    given = (REFERENCE, ONNX, "-v", "-k", "onnx-cast:25/int4/", *options)
    code, output = suite(*given, cwd=tmp_path)
    assert code == PASSED
    assert re.search(r"\d+ passed", output)
    headings, row = table(output)[:2]
    assert headings[:3] == ["backend", "document", "conforms"]
    assert row[:2] == ["reference", "onnx-cast:25"]
    assert int(row[2]) > 20
    assert f"castigate: backends reference {VERSION}" in output
    assert f"castigate: documents onnx-cast {documents()['onnx-cast'].digest[:12]}\n" in output
    assert "castigate: tier quick, seed 17, max-examples 3, level recommended" in output


PROGRESS = r"castigate: \d+ of \d+ judged, 0 failed"
USAGE_ERRORS = [
    ([ONNX], "no backend is named; add --backend=NAME; installed are reference"),
    (["--backend=rot"], "unknown backend `rot`; did you mean `ort`? castigate backends lists all"),
    (["--backend=reference:fast"], "the reference has no variants"),
    (["--backend=/no/such.py:A"], "/no/such.py does not exist"),
    ([hostile("Unmakeable")], "OSError: no device at all"),
    ([REFERENCE, "--document=onyx-cast"], "`onyx-cast`; did you mean `onnx-cast`, "),
    ([REFERENCE, "--document=onnx-cast:26"], "onnx-cast has no version `26`; it has 1, 6, 9"),
    ([REFERENCE, "--seed=-1"], "--seed is -1; give a whole number from 0 on"),
    (
        [REFERENCE, "--max-examples=100000001"],
        "--max-examples is 100000001; give a whole number from 0 to 100,000,000",
    ),
    ([REFERENCE, "--timeout=0"], "--timeout 0: give a number of seconds above 0"),
    ([REFERENCE, "--timeout=-1"], "--timeout -1: give a number of seconds above 0"),
    (
        [REFERENCE, "--junitxml=/proc/x"],
        "--junitxml: /proc/x cannot be written: No such file or directory; give another path",
    ),
    ([REFERENCE, "--level=optional"], "invalid choice: 'optional'"),
]


@pytest.mark.ci_runs_one_of(13)
@pytest.mark.parametrize(("arguments", "message"), USAGE_ERRORS)
def test_bad_usage_ends_with_advice(arguments: list[str], message: str) -> None:
    code, output = suite(*arguments)
    assert (code, message in output) == (USAGE, True), output


def test_a_run_without_selected_cases_fails() -> None:
    assert suite(REFERENCE, ONNX, "-k", "no_such_case")[0] == NOTHING


def test_a_run_with_only_unsupported_cases_fails() -> None:
    code, output = suite(hostile("Declines"), ONNX, "-v", "-rs", "-k", SMALL)
    assert code == NOTHING
    assert table(output)[0][2:] == ["unsupported"]
    assert "no such kernel" in output


@pytest.mark.nightly
def test_an_unclaimed_document_counts_only_if_named_by_document() -> None:
    code, output = suite(hostile("ClaimsNothing"), "-v", "-k", SMALL)
    assert (code, table(output)[0][2:]) == (PASSED, ["differs"])
    assert "1 xfailed" in output
    code, output = suite(hostile("ClaimsNothing"), ONNX, "-v", "-k", SMALL)
    assert (code, table(output)[0][2:]) == (FAILED, ["violates"])


@pytest.mark.nightly
def test_the_level_decides_whether_a_broken_recommendation_fails() -> None:
    arguments = (hostile("LosesMinusZero"), ONNX, "-v", "-k", MINUS_ZERO)
    assert suite(*arguments)[0] == FAILED
    code, output = suite(*arguments, "--level=required")
    assert (code, table(output)[0][2:]) == (PASSED, ["deviates"])
    assert suite(hostile("TiesAway"), ONNX, "-k", TIES, "--level=required")[0] == FAILED


@pytest.mark.nightly
def test_a_node_id_ends_in_the_case_id_and_selects_it() -> None:
    code, output = suite(REFERENCE, ONNX, "-k", SMALL, "--collect-only", "-q")
    node = f"conformance/pytest_plugin/items.py::reference::{SMALL}"
    assert (code, node in output.splitlines()) == (PASSED, True)
    code, output = suite(REFERENCE, "-v", target=node)
    assert code == PASSED
    assert "collected 1 item" in output
    assert "1 passed" in output


@pytest.fixture(scope="module")
def failure(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """The output and the JUnit XML of a failing and a passing case."""
    xml = tmp_path_factory.mktemp("suite") / "out.xml"
    words = f"{TIES} or {SMALL}"
    code, output = suite(hostile("TiesAway"), ONNX, "-k", words, f"--junitxml={xml}")
    assert code == FAILED
    return output, ElementTree.parse(xml)


def test_a_failure_shows_rule_input_answers_and_how_to_reproduce_it(
    failure: tuple[str, Any],
) -> None:
    output, _ = failure
    block = output.partition(f"{TIES} on {HOSTILE}:TiesAway: violates\n")[2]
    rows = [" ".join(line.split()) for line in block.splitlines()]
    assert "rule saturate-24, required" in rows
    assert "clause table 1 (saturate = 1)" in rows
    # 2^-17, half of the smallest subnormal of float8e5m2.
    assert "input 0x0080 0 | 00000 | 0010000000 0.00000762939453125" in rows
    assert "expected 0x00 0 | 00000 | 00 0" in rows
    assert any(row.startswith("answer 0x01 0 | 00000 | 01 0.0000152587890625") for row in rows)
    assert any(row.startswith("fails 124 of 65536 inputs: 0x0080, 0x0280,") for row in rows)
    assert "reproduce" in rows
    assert any(f"castigate explain {TIES} " in row and "0x0080" in row for row in rows)


def test_junit_xml_holds_the_verdicts(failure: tuple[str, Any]) -> None:
    records = [literal_eval(str(one.get("value"))) for one in failure[1].iter("property")]
    verdicts = {record["verdict"]: record["wrong"] for record in records}
    assert verdicts["violates"] == 124
    assert failure[1].find(".//failure") is not None


@pytest.mark.nightly
def test_xdist_workers_find_the_same_counts() -> None:
    arguments = (hostile("TiesAway"), ONNX, "-k", f"{TIES} or onnx-cast:25/float16/float8e5m2fnuz")
    alone, shared = suite(*arguments), suite(*arguments, "-n", "2")
    assert alone[0] == shared[0] == FAILED
    assert table(alone[1])[0] == table(shared[1])[0]


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("option", ["--dist=load", "-n0"])
def test_without_xdist_workers_pytest_judges_itself(option: str) -> None:
    code, output = suite(REFERENCE, ONNX, "-k", SMALL, option)
    assert code == PASSED
    assert f"castigate: backends reference {VERSION}" in output.splitlines()


LOADED = """
import os
from tests.conformance.data.hostile import Honest

class Backend(Honest):
    def __init__(self):
        with open({notes!r}, "a") as notes:
            print(os.getpid(), file=notes)
"""


@pytest.mark.nightly
def test_only_xdist_workers_load_a_backend(tmp_path: Path) -> None:
    """The main process loads no framework, and still prints its version."""
    notes, file = tmp_path / "notes", tmp_path / "loaded.py"
    file.write_text(LOADED.format(notes=str(notes)))
    backend = f"{file}:Backend"
    code, output = suite(f"--backend={backend}", ONNX, "-k", SMALL, "-n", "2")
    assert code == PASSED
    assert len(notes.read_text().splitlines()) == 2
    assert f"castigate: backends {backend} 0" in output.splitlines()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["nobody", "/no/such.py:A", f"{HOSTILE}:Nothing"])
def test_a_backend_that_xdist_workers_cannot_load_is_reported_once(name: str) -> None:
    code, alone = suite(f"--backend={name}")
    assert code == USAGE
    code, shared = suite(f"--backend={name}", "-n", "2")
    assert code == USAGE
    [printed] = [line for line in shared.splitlines() if line.startswith("ERROR")]
    assert printed in alone.splitlines()


def test_other_runs_of_pytest_do_not_have_the_suites_options(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    code, output = suite(REFERENCE, target="test_nothing.py", cwd=tmp_path)
    assert (code, "castigate: --backend judges a backend by the suite" in output) == (USAGE, True)


def test_a_projects_own_folder_named_conformance_is_not_taken_for_the_suite(tmp_path: Path) -> None:
    (tmp_path / "conformance").mkdir()
    code, output = suite(REFERENCE, target="conformance", cwd=tmp_path)
    assert (code, "castigate: --backend judges a backend by the suite" in output) == (USAGE, True)


def test_the_header_without_documents_is_short_and_has_a_digest_of_all(tmp_path: Path) -> None:
    _, output = suite(REFERENCE, "-k", "onnx-cast:25/int4/int8", "--collect-only", cwd=tmp_path)
    [line] = [each for each in output.splitlines() if each.startswith("castigate: documents ")]
    digests = "".join(documents().digests[name] for name in sorted(documents()))
    whole = sha256(digests.encode()).hexdigest()[:12]
    assert line == f"castigate: documents {len(documents())}, all together {whole}"


def test_lines_of_progress_follow_one_another_where_there_is_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import conformance.pytest_plugin.progress as progress\n"
        "progress.SECONDS_BETWEEN_LINES = 0.0\n"
    )
    given = (REFERENCE, "--document=pypto-cast:0.2", "-k", "pypto-cast:0.2/int8/", "--pyargs")
    code, output = suite(*given, cwd=tmp_path)
    assert code == PASSED
    lines = output.splitlines()
    shown = [at for at, line in enumerate(lines) if re.fullmatch(PROGRESS, line)]
    assert len(shown) > 3
    assert shown == list(range(shown[0], shown[-1] + 1)), output
