"""``castigate rules`` says which backends obey house rules, and in which regions one does not.

A process knows one text of house rules by each name, so each test's text has a name of its own.
"""

from __future__ import annotations

from pathlib import Path

from tests.conformance.processes import castigate

PLANTED = "tests/conformance/data/saturating.py:AllButMinusInfinity"
RIGHT = "tests/conformance/data/saturating.py:Saturating"
RULES = """\
rules: NAME
title: integers in range
text: our wiki, page 7
documents: [onnx-cast]
choices:
  to-integers:
    clause: NaN is zero, the rest is clamped
    when: {from: FROM, to: TO}
    then: {nan: zero, otherwise: saturate}
"""


def written(folder: Path, name: str, sources: str, targets: str) -> str:
    path = folder / "ours.yaml"
    text = RULES.replace("NAME", name).replace("FROM", sources).replace("TO", targets)
    path.write_text(text)
    return str(path)


def test_rules_says_who_obeys_and_in_which_regions_not(tmp_path: Path) -> None:
    ours = written(tmp_path, "three", "float", "[int8, uint8, uint4]")
    backends = [f"--backend={each}" for each in (RIGHT, PLANTED, "reference", "numpy")]
    code, said, _ = castigate("rules", ours, *backends)
    assert code == 0
    heading, *lines = said.splitlines()
    assert heading == "three where onnx-cast:25, from float32, is open"
    assert "    int8 uint8 uint4: obeys" in lines
    assert "    int8: obeys but for -inf; int8 of -INF is 0, not -128" in lines
    assert "    uint8 uint4: obeys" in lines
    assert "    uint4: unsupported; numpy has no dtype uint4" in lines
    assert any(each.startswith("    int8: obeys but for inf, -inf, above the") for each in lines)


def test_rules_that_decide_nothing_say_so(tmp_path: Path) -> None:
    ours = written(tmp_path, "none", "int8", "int16")
    code, said, err = castigate("rules", ours, f"--backend={RIGHT}")
    assert (code, said, err) == (0, "none decides nothing in the newest version of onnx-cast\n", "")


def test_rules_asks_from_the_first_source_if_not_from_float32(tmp_path: Path) -> None:
    ours = written(tmp_path, "sources", "[float16, float64]", "int8")
    code, said, _ = castigate("rules", ours, "--backend=ort")
    assert code == 0
    assert said.startswith("sources where onnx-cast:25, from float64, is open\n")
