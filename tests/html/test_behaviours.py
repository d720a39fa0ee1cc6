"""What backends do on open inputs is told on the page of behaviours and with every case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.answers import Answered, Kept
from reports.findings.report import read_report
from reports.html.site import write_site
from reports.judgement import Judgement
from specs.cases import Case
from tests.html.planted import Elements, data, planted_run

BYTE = "onnx-cast:25/float32/int8"
INPUTS = {0.5: 0, 3.0: 3, 300.0: 44, -129.0: 127, 1e20: 0, float("inf"): 0, float("nan"): 0}
"""What comes of values that are truncated to int32, its minimum where they do not fit: low bits."""
OPEN = 5
WORDS = "truncate to int32 (its minimum when out of range or NaN), keep the low bits"


def low_bits(backend: str, case: Case) -> Judgement | None:
    """Two backends wrap, and one of them says 1 to the largest."""
    if case.id != BYTE or backend == "vendor:fast":
        return None
    patterns = np.array([*INPUTS], np.float32).view(np.uint32)
    answers = np.array([*INPUTS.values()], np.int8).view(np.uint8)
    if backend == "torch":
        answers[4] = 1
    order = np.argsort(patterns)
    answered = Answered(Kept("float32", patterns[order]), Kept("int8", answers[order]))
    return Judgement(case.id, backend, "conforms", "", 7, OPEN, answered=answered)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted_run(tmp_path_factory.mktemp("runs") / "run", low_bits)


def test_open_answers_are_explained_or_said_not_to_be(run: str) -> None:
    found = read_report([run]).behaviours
    assert set(found) == {("ort", BYTE), ("torch", BYTE)}
    assert found["ort", BYTE] == (f"every open input: {WORDS}: 100 % of {OPEN} inputs",)
    explained, exception = found["torch", BYTE]
    assert f"{WORDS}: 100 % of" in explained
    assert "unexplained" in exception
    assert "0x60ad78ec → 0x01" in exception


def test_they_stand_with_the_case_and_with_their_pair(run: str, tmp_path: Path) -> None:
    write_site([run], tmp_path / "site")
    told = data(tmp_path / "site", "onnx-cast.float32")
    lines = {
        cell["backend"]: [told["texts"][place] for place in cell["behaviours"]]
        for cell in told["cases"][BYTE]
    }
    assert list(map(len, lines.values())) == [1, 2, 0]
    page = Elements((tmp_path / "site" / "behaviours.html").read_text())
    assert lines[0][0] in " ".join(page.text.split())
    links = [each["href"] for tag, each in page.found if tag == "a" and "href" in each]
    assert f"case.html#{BYTE}" in links
    assert "pair.html#float32/int8" in links
