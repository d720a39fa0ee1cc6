"""``run``, ``nightly`` and ``gate`` also check position, length, layout and roads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conformance.processes import HALF, castigate

WRONG = "tests/conformance/data/placed.py:MiddleRows"
PAIR = "invariances/float32/float16"
POLICY = """\
policy: one
title: One
documents: ['pypto-cast:seed']
levels: [required, recommended]
tier: quick
max-examples: 20
seed: 0
cases:
  - match: ['pypto-cast:seed/float32/float16/mode:CAST_RINT']
{more}
"""
SAYS = "changes its answers with position, length or layout"


def pairs(run: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run / "pairs.parquet").to_pylist()
    return rows


@pytest.fixture(scope="module")
def wrong_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    folder = tmp_path_factory.mktemp("wrong") / "run"
    code, out, _ = castigate("run", f"--backend={WRONG}", *HALF, f"--out={folder}")
    return folder, code, out


def test_a_run_fails_by_a_check_alone(wrong_run: tuple[Path, int, str]) -> None:
    folder, code, out = wrong_run
    assert code == 1
    assert f"depends on layout: {SAYS}" in out
    [cell] = pq.read_table(folder / "cases.parquet").to_pylist()
    assert cell["verdict"] == "conforms"
    [row] = pairs(folder)
    assert (row["check"], row["verdict"], row["case"]) == (PAIR, "violates", cell["case"])
    assert "at length " in row["message"]


def test_the_finding_is_listed_and_has_a_page(
    wrong_run: tuple[Path, int, str], tmp_path: Path
) -> None:
    folder, _, _ = wrong_run
    code, out, _ = castigate("findings", str(folder), "--json")
    [found] = map(json.loads, out.splitlines())
    assert code == 1
    assert (found["kind"], found["finding"]) == ("depends on layout", SAYS)
    assert [each["case"] for each in found["cases"]] == [PAIR]
    site = tmp_path / "site"
    assert castigate("report", str(folder), f"--out={site}")[0] == 0
    [page] = site.glob("finding-*changes-with-layout.html")
    assert "at length " in page.read_text()


@pytest.mark.nightly
def test_a_night_fails_by_a_check_alone(tmp_path: Path) -> None:
    asked = (f"--backend={WRONG}", "--document=pypto-cast:seed", f"--out={tmp_path}")
    code, out, _ = castigate("nightly", *asked)
    assert code == 1
    assert SAYS in out
    code, _, _ = castigate("nightly", *asked, "--no-ledger")
    assert code == 1


def gate(folder: Path, more: str) -> tuple[int, dict[str, Any]]:
    folder.mkdir()
    policy, out = folder / "policy.yaml", folder / "gate"
    policy.write_text(POLICY.format(more=more))
    arguments = (f"--backend={WRONG}", f"--policy={policy}", "--jobs=1", f"--out={out}")
    code, _, _ = castigate("gate", *arguments)
    content: dict[str, Any] = json.loads((out / "certificate.json").read_text())
    assert content["checks"]["count"] == len(pairs(out / "run"))
    assert [each["kind"] for each in content["findings"]] == ["depends on layout"]
    assert castigate("verify", str(out / "certificate.json"))[0] == code
    return code, content


def test_a_gate_fails_by_a_check_unless_the_policy_accepts_it(tmp_path: Path) -> None:
    code, failed = gate(tmp_path / "failed", "")
    assert (code, failed["result"]) == (1, "fail")
    assert {each["kind"] for each in failed["failures"]} == {"layout"}
    rules = {each["rule"] for each in failed["divergences"]}
    accepted = "".join(ACCEPTED.format(rule) for rule in sorted(rules))
    code, passed = gate(tmp_path / "passed", f"accepted:\n{accepted}")
    assert (code, passed["result"]) == (0, "pass")


ACCEPTED = """\
  - cases: ['invariances/**']
    rule: {}
    reason: known
    expires: '2999-01-01'
"""


def test_roads_of_one_framework_are_compared(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    roads = ("--backend=ort", "--backend=ort:folded")
    assert castigate("run", *roads, *HALF, f"--out={tmp_path / 'run'}")[0] == 0
    assert [(row["backend"], row["check"]) for row in pairs(tmp_path / "run")] == [
        ("ort", PAIR),
        ("ort:folded", PAIR),
        ("ort:folded", "variants/ort/float32/float16"),
    ]
