"""Findings for code scanning: the fields that SARIF 2.1.0 requires, and those of a finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.outputs.sarif import _place
from tests.conformance.processes import castigate
from tests.reports.judged_run import RIGHT, cases_of, judged_run, through

ROOT = Path(__file__).parents[2]
NARROW = cases_of("onnx-cast:25/float64/float16/")


def test_each_finding_is_a_rule_and_a_result_with_a_place(tmp_path: Path) -> None:
    backends = {"dir/mine.py:Mine": through("float32"), "two": RIGHT.cast}
    run = judged_run(tmp_path / "run", backends, NARROW[:1]).folder.display_name
    code, out, err = castigate("findings", run, "--sarif")
    assert (code, err) == (1, "")
    log = json.loads(out)
    assert log["version"] == "2.1.0"
    [found] = log["runs"]
    driver = found["tool"]["driver"]
    name = "dir/mine.py:Mine/rounds-twice-through-float32"
    assert [rule["id"] for rule in driver["rules"]] == [name]
    [result] = found["results"]
    assert (result["ruleId"], result["ruleIndex"]) == (name, 0)
    assert result["level"] in ("error", "warning")
    assert "rounds twice, through float32" in result["message"]["text"]
    [place] = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "dir/mine.py"},
        "region": {"startLine": 1},
    }
    assert "rounds twice" in driver["rules"][0]["help"]["markdown"]
    assert [each["fullyQualifiedName"] for each in place["logicalLocations"]] == [NARROW[0].id]
    assert result["partialFingerprints"]["primaryLocationLineHash"].endswith(":1")


@pytest.mark.parametrize(
    ("backend", "place"),
    [
        ("ort", "ort"),
        ("ort:folded", "ort/folded"),
        ("/abs/../my stäck/adapter.py:Mine", "my%20st%C3%A4ck/adapter.py"),
        ("exec:./vendor --device 0", "vendor"),
        ("exec:python examples/vendor_python/adapter.py", "examples/vendor_python/adapter.py"),
        (f"{ROOT}/examples/vendor_python/adapter.py:Any", "examples/vendor_python/adapter.py"),
    ],
)
def test_a_place_is_a_relative_uri(
    backend: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert _place(backend) == place


def test_two_forms_at_once_are_refused(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", {"two": RIGHT.cast}, NARROW[:1]).folder.display_name
    code, out, err = castigate("findings", run, "--sarif", "--json")
    assert (code, out) == (2, "")
    assert "--json and --sarif exclude each other" in err
