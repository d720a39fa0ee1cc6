"""House rules on every way to a verdict: run, reading a run, pytest, explain and the gate.

A process knows one text of house rules by each name, so texts here have names of their own, and
after each test this process forgets them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.conformance.processes import ROOT, castigate, castigate_process, rows

PLANTED = "tests/conformance/data/saturating.py:AllButMinusInfinity"
RIGHT = "tests/conformance/data/saturating.py:Saturating"
PAIR = ("--source=float32", "--target=int8")
RULES = """\
rules: ours
title: what our models need
text: our wiki, page 7
documents: [onnx-cast]
choices:
  to-int8:
    clause: NaN is zero, the rest is clamped
    when: {from: float, to: int8}
    then: {nan: zero, otherwise: saturate}
"""
SPAWNING = "from conformance.running import fork_server; fork_server._can_fork = lambda: False; "
POLICY = """\
policy: ours
title: Our house rules hold
documents: ['onnx-cast+ours:25']
levels: [required]
tier: quick
may-be-unsupported: ['**']
"""


@pytest.fixture(autouse=True)
def _forgotten_rules() -> Iterator[None]:
    with patch.dict("specs.house_rules._own"):
        yield


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    path = tmp_path / "ours.yaml"
    path.write_text(RULES)
    return path


def test_the_one_region_that_is_not_obeyed_is_named(tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, _ = castigate(
        "run", f"--backend={PLANTED}", "--rules=wasm-saturating", "--document=onnx-cast:25",
        *PAIR, f"--out={out}",
    )  # fmt: skip
    assert code == 1
    verdicts = {row["case"]: row["verdict"] for row in rows(out, "cases")}
    assert verdicts == {
        "onnx-cast:25/float32/int8": "conforms",
        "onnx-cast+wasm-saturating:25/float32/int8": "violates",
    }
    [wrong] = rows(out, "divergences")
    assert wrong["rule"] == "wasm-saturating.float-to-integer"
    assert "0xff800000 (-INF) gives 0x00 (0), not 0x80 (-128)" in " ".join(said.split())


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("before", ["", SPAWNING], ids=["forked", "spawned"])
def test_a_run_by_rules_of_a_file_is_read_without_the_file(
    ours: Path, tmp_path: Path, before: str
) -> None:
    out = tmp_path / "run"
    run = ("run", f"--backend={PLANTED}", f"--rules={ours}", *PAIR, f"--out={out}")
    code, _, _ = castigate_process(*run, before=before)
    assert code == 1
    ours.unlink()
    assert json.loads((out / "run.json").read_text())["rules"] == {"ours": RULES}
    code, said, err = castigate("findings", str(out))
    assert "onnx-cast+ours:25/float32/int8" in said + err
    assert castigate("report", str(out), f"--out={tmp_path / 'site'}")[0] == 0
    page = (tmp_path / "site" / "index.html").read_text()
    assert "onnx-cast+ours" in page


def test_rules_with_the_name_of_others_are_refused(ours: Path) -> None:
    ours.write_text(RULES.replace("rules: ours", "rules: java"))
    code, _, err = castigate("rules", str(ours))
    assert code == 2
    assert "other house rules have the name `java`; rename these" in err


def test_explain_answers_by_the_document_and_by_house_rules(ours: Path) -> None:
    question = ("explain", "onnx-cast:25/float32/int8", "300", f"--rules={ours}")
    code, said, _ = castigate(*question, "--json")
    assert code == 0
    found = [json.loads(line) for line in said.splitlines()]
    assert [each["case"] for each in found] == [
        "onnx-cast:25/float32/int8",
        "onnx-cast+ours:25/float32/int8",
    ]
    assert [each["allowed"] for each in found] == ["anything", ["0x7f"]]
    code, said, _ = castigate("explain", "float32", "int8", "300", f"--rules={ours}")
    assert "onnx-cast+ours:25" in said


@pytest.mark.nightly  # three gates; CI has one in test_gate_command.py
def test_the_gate_certifies_house_rules(ours: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    gate = ("gate", f"--policy={policy}", f"--rules={ours}")
    for backend, wanted in ((RIGHT, 0), (PLANTED, 1)):
        out = tmp_path / str(wanted)
        code, said, err = castigate(*gate, f"--backend={backend}", f"--out={out}")
        assert code == wanted, said + err
        certificate = json.loads((out / "certificate.json").read_text())
        assert "onnx-cast+ours" in json.dumps(certificate)
    code, said, err = castigate("verify", str(tmp_path / "0" / "certificate.json"))
    assert code == 0, said + err


@pytest.mark.nightly  # test_ledger.py does so in CI
def test_pytest_judges_by_house_rules(ours: Path) -> None:
    command = (
        sys.executable, "-m", "pytest", "conformance", "-q", "-p", "no:cacheprovider",
        f"--backend={PLANTED}", f"--rules={ours}", "-k", "float32-int8 or float32/int8",
    )  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "onnx-cast+ours:25/float32/int8" in done.stdout
