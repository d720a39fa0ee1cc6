"""A document of a user's own: a YAML file in the place of a shipped document's name."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from specs.loader import documents
from tests.conformance.processes import castigate_process

CLAMPS = """\
document: our-cast
title: Our runtime's cast
operation: cast
seed: none
scope: own-dtypes

versions:
  1: {from: [float32], to: [int8], rules: [clamps]}
  2: {extends: 1, from: [float32, float16]}

rules:
  clamps:
    clause: "out of range is clamped, NaN is zero"
    level: required
    when: {from: float, to: int8}
    then:
      {nan: zero, inf: max, -inf: lowest, overflow: max, -overflow: lowest, otherwise: toward-zero}

tensors:
  every-shape: {clause: "element by element", level: required, when: {}, then: same-shape}
"""
BACKEND = """\
import numpy as np

class Clamps:
    name, version = "clamps", "1"

    def cast(self, case, bits):
        with np.errstate(all="ignore"):
            x = bits.view(case.source).astype(np.float64)
            x = np.trunc(np.where(np.isnan(x), 0, np.clip(x, -128, 127)))
        if self.version == "2":
            x = np.where(x == 127, 126, x)
        return np.asarray(x.astype(np.int8)).view(np.uint8)

class Wrong(Clamps):
    version = "2"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.yaml").write_text(CLAMPS)
    (tmp_path / "stack.py").write_text(BACKEND)
    return tmp_path


def castigate(folder: Path, *arguments: str) -> tuple[int, str, str]:
    before = f"import os; os.chdir({str(folder)!r});"
    return castigate_process(*arguments, before=before)


def test_a_run_judges_by_a_file_and_keeps_it(folder: Path) -> None:
    asked = ("run", "--document", "mine.yaml", "--out", "RUN", "--jobs", "1")
    code, out, err = castigate(folder, *asked, "--backend=stack.py:Clamps")
    assert (code, "violates" in out) == (0, False), err
    (folder / "RUN").rename(folder / "FIRST")
    code, out, _ = castigate(folder, *asked, "--backend=stack.py:Wrong")
    assert code == 1
    # What reads the run later needs no file.
    (folder / "mine.yaml").unlink()
    code, out, err = castigate(folder, "findings", "RUN", "--json")
    assert (code, err) == (1, "")
    assert '"our-cast:' in out
    code, out, err = castigate(folder, "report", "RUN", "--out", "REPORT")
    assert (code, err) == (0, "")
    assert "clamps" in (folder / "REPORT" / "index.html").read_text()
    # Another file with the name of the run's document is not mistaken for it.
    (folder / "other.yaml").write_text(CLAMPS.replace("NaN is zero", "NaN is nought"))
    code, _, err = castigate(
        folder,
        "run",
        "--resume",
        "--out",
        "RUN",
        "--backend=stack.py:Wrong",
        "--document=other.yaml",
    )
    assert code == 2
    assert "another document has the name `our-cast`" in err
    assert err.count("\n") == 1


def test_diff_compares_runs_of_two_texts_of_a_document(folder: Path) -> None:
    asked = ("run", "--backend=stack.py:Clamps", "--document=mine.yaml:2", "--jobs=1")
    for name, words in {
        "FIRST": {},
        "SECOND": {"toward-zero": "nearest-even"},
        "THIRD": {"our-cast": "another-cast"},
    }.items():
        text = CLAMPS
        for old, new in words.items():
            text = text.replace(old, new)
        (folder / "mine.yaml").write_text(text)
        castigate(folder, *asked, f"--out={name}")
    code, out, err = castigate(folder, "diff", "FIRST", "SECOND")
    assert (code, err) == (1, "")
    first, *_, last = out.splitlines()
    assert first.startswith("our-cast was edited between the runs; ")
    assert first.endswith(" by the text of SECOND")
    assert "since stack.py:Clamps of FIRST: 2 worse, " in " ".join(out.split())
    assert last.endswith("2 with answers kept, 0 differences of answers, 2 of verdicts")
    code, out, err = castigate(folder, "report", "FIRST", "SECOND", "--out", "REPORT")
    assert (code, err, "2 worse" in out) == (0, "", True)
    code, out, err = castigate(folder, "diff", "FIRST", "THIRD")
    assert (code, err) == (3, "")
    assert "FIRST: no case in common, " in " ".join(out.split())
    assert "nothing changed" not in out


def test_a_version_may_stand_behind_the_file(folder: Path) -> None:
    code, out, _ = castigate(folder, "specs", "mine.yaml:1")
    assert code == 0
    assert "our-cast:1/float32/int8" in out
    assert "float16" not in out
    code, _, err = castigate(folder, "specs", "mine.yaml:3")
    assert (code, err) == (2, "castigate: our-cast has no version `3`; it has 1, 2\n")


def test_house_rules_that_decide_no_listed_pair_are_refused(folder: Path) -> None:
    pairs = "pair-groups: {some: {float16: [int8]}}\nversions:\n  1: {pairs: some, from: [float32"
    (folder / "mine.yaml").write_text(
        CLAMPS.replace("versions:\n  1: {from: [float32", f"{pairs}, float16").partition("  2:")[0]
        + CLAMPS[CLAMPS.index("\nrules:") :]
    )
    (folder / "ours.yaml").write_text(RULES)
    code, _, err = castigate(
        folder, "run", "--backend=numpy", "--document=mine.yaml", "--rules=ours.yaml", "--out=RUN"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "castigate: the house rules ours decide no pair that our-cast lists; " in err


def test_explain_takes_a_file(folder: Path) -> None:
    code, out, err = castigate(
        folder, "explain", "mine.yaml", "fp32", "int8", "300", "nan", "--json"
    )
    assert (code, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    assert [each["allowed"] for each in found] == [["0x7f"], ["0x00"]]


def test_commands_that_take_cases_know_a_file(folder: Path) -> None:
    code, out, err = castigate(folder, "inputs", "--json", "mine.yaml:2/float16/int8")
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[0])["case"] == "our-cast:2/float16/int8"
    answer = {"case": "our-cast:2/float16/int8", "input": "300", "output": "0x00"}
    (folder / "answers.jsonl").write_text(json.dumps(answer))
    code, out, _ = castigate(folder, "judge", "answers.jsonl", "--document=mine.yaml", "--json")
    assert (code, json.loads(out)["verdict"]) == (1, "violates")
    np.savez(folder / "model.npz", w=np.array([1.5, 500], np.float32))
    text = CLAMPS.replace("to: [int8]", "to: [float8e4m3fn]").replace(
        "to: int8", "to: float8e4m3fn"
    )
    (folder / "mine.yaml").write_text(text)
    asked = ("--to=e4m3fn", "--document=mine.yaml", "--backend=ml_dtypes")
    code, out, err = castigate(folder, "check", "model.npz", *asked)
    assert (code, err, "our-cast:2" in out) == (1, "", True)


OPEN = CLAMPS.replace("nan: zero", "nan: unspecified")
RULES = """\
rules: ours
title: A choice of ours
text: Ours.
documents: [our-cast]
choices:
  nan-is-zero: {clause: zero, when: {from: [float32], to: [int8]}, then: {nan: zero}}
"""


def test_hints_name_the_files_and_run_as_they_stand(folder: Path) -> None:
    (folder / "mine.yaml").write_text(OPEN)
    (folder / "ours.yaml").write_text(RULES)
    code, out, err = castigate(folder, "rules", "ours.yaml", "--document=mine.yaml")
    assert (code, err, "  our-cast+ours: 2 cases" in out) == (0, "", True)
    _, out, _ = castigate(
        folder, "explain", "mine.yaml", "fp32", "int8", "nan", "--rules=ours.yaml"
    )
    hint = out.splitlines()[-1].partition(": castigate ")[2]
    assert hint == "explain mine.yaml:2/float32/int8 nan --rules ours.yaml"
    code, out, err = castigate(folder, *shlex.split(hint))
    assert (code, err, "ours.nan-is-zero" in out) == (0, "", True)
    _, _, err = castigate(folder, "explain", "mine.yaml", "fp32", "int16", "1")
    assert err.endswith("; castigate specs mine.yaml lists its cases\n")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.yaml", None, "document missing.yaml: there is no such file; give its path"),
        ("clash.yaml", CLAMPS.replace("our-cast", "onnx-cast"), "clash.yaml:1: another document"),
        ("wrong.yaml", CLAMPS.replace("toward-zero", "tworad-zero"), "wrong.yaml:17: "),
        ("list.yaml", "- 1\n", "list.yaml:1: a document is a mapping"),
    ],
)
def test_a_wrong_file_is_one_line(folder: Path, name: str, content: str | None, says: str) -> None:
    if content is not None:
        (folder / name).write_text(content)
    code, out, err = castigate(
        folder, "run", "--backend=numpy", f"--document={name}", "--out", "RUN"
    )
    assert (code, out) == (2, "")
    assert err.startswith(f"castigate: {says}")
    assert err.count("\n") == 1
    assert not (folder / "RUN").exists()


@pytest.fixture
def no_document_stays() -> Iterator[None]:
    yield
    documents().own.clear()


@pytest.mark.usefixtures("no_document_stays")
def test_python_takes_a_file(folder: Path) -> None:
    import castigate

    path = str(folder / "mine.yaml")
    assert castigate.cast([300, -300], "fp32", "int8", document=path).tolist() == [127, -128]
    answers = np.array([127, -128, 7], np.int8)
    given = np.array([300, -300, np.nan], np.float32)
    assert castigate.judge(given, answers, document=path).wrong == 1
    [case] = castigate.explain(300, "fp32", "int8", document=path).cases
    assert case.id == "our-cast:2/float32/int8"
