"""What backends do on open inputs is told on the page of behaviours and with every case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.diff.judgement import Judgement
from reports.diff.kept_answers import Answered, Kept
from reports.findings.open_answers import explanations
from reports.findings.report import read_report
from reports.html.site import write_site
from reports.run_store.answers import KeptAnswers
from reports.run_store.open_run import open_run
from specs.cases import Case
from specs.formats import format_named
from tests.html.planted import Elements, data, one_cell, planted_run

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


def answered(inputs: list[float], answers: list[int]) -> Answered:
    """Answers to float32 values in the order of their patterns."""
    patterns = np.array(inputs, np.float32).view(np.uint32)
    got = np.array(answers, np.int8).view(np.uint8)
    order = np.argsort(patterns)
    return Answered(Kept("float32", patterns[order]), Kept("int8", got[order]))


ALL_OPEN = "pypto-cast:0.2/float32/int8"
COMPLEX = "onnx-cast:25/float32/complex64"


def planted(folder: Path, **told: dict[str, Answered]) -> str:
    """A run in which backends have answered a few cases."""

    def plant(backend: str, case: Case) -> Judgement:
        kept = told[backend].get(case.id)
        return Judgement(
            case.id, backend, "conforms", "", 7, 0 if kept is None else 1, answered=kept
        )

    return planted_run(folder, plant, told)


def test_the_same_answers_mean_something_else_by_other_rules(tmp_path: Path) -> None:
    same = answered([*INPUTS], [*INPUTS.values()])
    found = read_report([planted(tmp_path / "run", ort={BYTE: same, ALL_OPEN: same})]).behaviours
    assert found == {
        ("ort", BYTE): (f"every open input: {WORDS}: 100 % of {OPEN} inputs",),
        ("ort", ALL_OPEN): (f"every open input: {WORDS}: 100 % of {len(INPUTS)} inputs",),
    }


def test_the_same_answers_mean_something_else_to_other_inputs(tmp_path: Path) -> None:
    told = {
        "ort": {BYTE: answered([300.0, 400.0], [0, 0])},
        "torch": {BYTE: answered([512.0, 3e38], [0, 0])},
        "other": {BYTE: answered([0.5, 1e9], [0, 0])},
    }
    found = read_report([planted(tmp_path / "run", **told)]).behaviours
    assert {backend: lines for (backend, _), lines in found.items()} == {
        "ort": ("every open input: zero: 100 % of 2 inputs",),
        "torch": ("every open input: zero: 100 % of 2 inputs",),
        "other": ("every open input: zero: 100 % of 1 inputs",),
    }


def test_nothing_is_told_of_what_no_form_speaks_of(tmp_path: Path) -> None:
    ones = Kept("complex64", np.ones(1, np.uint64))
    kept = Answered(Kept("float32", np.ones(1, np.float32).view(np.uint32)), ones)
    right = answered([0.5, 3.0], [0, 3])
    run = planted(tmp_path / "run", ort={COMPLEX: kept, BYTE: right})
    assert read_report([run]).behaviours == {}


def test_of_a_case_that_the_document_no_longer_has_nothing_is_told(run: str) -> None:
    cell, kept = read_report([run]).cells["ort", BYTE], KeptAnswers(open_run(run))
    gone = replace(cell, document="pypto-cast", version="0.2", target="int16", mode="mode:GONE")
    assert [*explanations(kept, {("a", "known"): cell, ("a", "gone"): gone})] == [("a", "known")]


OTHERS = {
    "a document that is not shipped": {"document": "lost-cast"},
    "a bitcast": {
        "document": "cinn-bitcast-convert",
        "version": "1.0",
        "source": "bool",
        "target": "bool",
        "mode": "shape:scalar",
    },
    "a text": {"source": "bool", "target": "string"},
    "a cast to be refused": {"target": "float6e2m3"},
    "no open inputs": {"open": 0},
    "no answers": {"asked": None, "answers": None},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_where_nothing_is_to_be_explained_nothing_is_told(
    run: str, changes: dict[str, Any]
) -> None:
    cell, kept = read_report([run]).cells["ort", BYTE], KeptAnswers(open_run(run))
    assert explanations(kept, {("a", "case"): replace(cell, **changes)}) == {}


@pytest.mark.parametrize("source", ["complex64", "complex128"])
def test_of_complex_numbers_the_real_parts_are_explained(tmp_path: Path, source: str) -> None:
    values = np.array([complex(1e20, 7.0), complex(-300.0, 0.5)], source)
    inputs = Kept(source, values.view(format_named(source).storage))
    zeros = Kept("int8", np.zeros(2, np.uint8))
    told = Judgement(BYTE, "ort", "conforms", inputs=2, answered=Answered(inputs, zeros))
    run = planted_run(tmp_path / "run", one_cell("ort", BYTE, told))
    cell, kept = read_report([run]).cells["ort", BYTE], KeptAnswers(open_run(run))
    open_case = replace(
        cell,
        open=2,
        document="paddle-layer-astype",
        version="1.0",
        source=source,
        mode="form:name/member:weight",
    )
    assert explanations(kept, {("a", "case"): open_case}) == {
        ("a", "case"): ("every open input: zero: 100 % of 2 inputs",)
    }
