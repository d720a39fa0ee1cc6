"""Explanations of open answers, on the page of behaviors and in the details of a case."""

from __future__ import annotations

import os
import pickle
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from select import PIPE_BUF
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from reports import other_processes
from reports.findings import report
from reports.findings.report import explain_open_answers, read_report
from reports.html.site import write_site
from reports.judgement import DatumArray, InputsAndAnswers, Judgement
from reports.run_store.open_run import RunAnswers, open_run
from specs.cases import Case
from specs.formats import format_named
from tests.html.planted import Elements, data, one_cell, planted_run

TO_INT8 = "onnx-cast:25/float32/int8"
INPUTS = {0.5: 0, 3.0: 3, 300.0: 44, -129.0: 127, 1e20: 0, float("inf"): 0, float("nan"): 0}
"""Inputs with the low 8 bits of their value in int32 (the minimum of int32 if out of range)."""
OPEN_INPUTS = 5
LOW_BITS = "truncates to int32 (its minimum when out of range or NaN) and keeps the low bits"


def keep_low_bits(backend: str, case: Case) -> Judgement | None:
    """Plant low bits for two backends, one of which answers 1 to the largest input instead."""
    if case.id != TO_INT8 or backend == "vendor:fast":
        return None
    patterns = np.array([*INPUTS], np.float32).view(np.uint32)
    answers = np.array([*INPUTS.values()], np.int8).view(np.uint8)
    if backend == "torch":
        answers[4] = 1
    order = np.argsort(patterns)
    answered = InputsAndAnswers(
        DatumArray("float32", patterns[order]), DatumArray("int8", answers[order])
    )
    return Judgement(case.id, backend, "conforms", (), 7, OPEN_INPUTS, answered=answered)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted_run(tmp_path_factory.mktemp("runs") / "run", keep_low_bits)


def test_a_large_run_is_explained_elsewhere_and_what_goes_through_a_queue_fits_a_pipe(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11.2 waits without end for a queue that a killed process no longer reads."""
    expected = read_report([run]).behaviors
    assert expected
    sizes = []
    submit = ProcessPoolExecutor.submit

    def measured(self: ProcessPoolExecutor, call: Any, /, *arguments: Any) -> Any:
        future = submit(self, call, *arguments)
        sizes.append(len(pickle.dumps((call, arguments))))
        sizes.append(len(pickle.dumps(future.result())))
        return future

    monkeypatch.setattr(report, "MANY_CELLS", 0)
    monkeypatch.setattr(ProcessPoolExecutor, "submit", measured)
    here = Mock(side_effect=report.explain_open_answers)
    monkeypatch.setattr(report, "explain_open_answers", here)
    assert read_report([run]).behaviors == expected
    assert here.call_count == 0
    assert len(sizes) == 2 * report.EXPLAINERS
    assert max(sizes) < PIPE_BUF


def test_what_a_process_that_died_has_not_explained_is_explained_here(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = read_report([run]).behaviors
    monkeypatch.setattr(report, "MANY_CELLS", 0)
    monkeypatch.setattr(report, "EXPLAINERS", 1)
    monkeypatch.setattr(other_processes, "_begin", die)
    here = Mock(side_effect=report.explain_open_answers)
    monkeypatch.setattr(report, "explain_open_answers", here)
    assert read_report([run]).behaviors == expected
    assert here.call_count == 1


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_open_answers_are_explained_and_exceptions_are_listed(run: str) -> None:
    found = read_report([run]).behaviors
    assert set(found) == {("ort", TO_INT8), ("torch", TO_INT8)}
    assert found["ort", TO_INT8] == (
        f"every open input: {LOW_BITS}: 100 % of {OPEN_INPUTS} inputs",
    )
    explained, exception = found["torch", TO_INT8]
    assert f"{LOW_BITS}: 100 % of" in explained
    assert "unexplained" in exception
    assert "0x60ad78ec → 0x01" in exception


def test_explanations_are_in_the_case_details_and_on_the_behaviors_page(
    run: str, tmp_path: Path
) -> None:
    write_site([run], tmp_path / "site")
    details = data(tmp_path / "site", "onnx-cast.float32")
    lines = {
        cell["backend"]: [details["texts"][index] for index in cell["behaviors"]]
        for cell in details["cases"][TO_INT8]
    }
    assert list(map(len, lines.values())) == [1, 2, 0]
    page = Elements((tmp_path / "site" / "behaviors.html").read_text())
    behavior, _, _ = lines[0][0].partition(": 100 % of ")
    text = " ".join(page.text.split())
    assert f"{behavior} torch: float32 → int8" in text or f"{behavior} ort: float32 → int8" in text
    links = [each["href"] for tag, each in page.found if tag == "a" and "href" in each]
    assert f"case.html#{TO_INT8}" in links


def answered(inputs: list[float], answers: list[int]) -> InputsAndAnswers:
    """Answers to float32 values, sorted by the values' bit patterns."""
    patterns = np.array(inputs, np.float32).view(np.uint32)
    patterns_out = np.array(answers, np.int8).view(np.uint8)
    order = np.argsort(patterns)
    return InputsAndAnswers(
        DatumArray("float32", patterns[order]), DatumArray("int8", patterns_out[order])
    )


ALL_OPEN_TO_INT8 = "pypto-cast:0.2/float32/int8"
TO_COMPLEX64 = "onnx-cast:25/float32/complex64"


def run_with_answers(folder: Path, **answers: dict[str, InputsAndAnswers]) -> str:
    """A run in which each backend has recorded its answers to a few cases."""

    def plant(backend: str, case: Case) -> Judgement:
        kept = answers[backend].get(case.id)
        return Judgement(
            case.id, backend, "conforms", (), 7, 0 if kept is None else 1, answered=kept
        )

    return planted_run(folder, plant, answers)


def test_equal_answers_are_explained_by_the_rules_of_each_case(tmp_path: Path) -> None:
    same = answered([*INPUTS], [*INPUTS.values()])
    found = read_report(
        [run_with_answers(tmp_path / "run", ort={TO_INT8: same, ALL_OPEN_TO_INT8: same})]
    ).behaviors
    assert found == {
        ("ort", TO_INT8): (f"every open input: {LOW_BITS}: 100 % of {OPEN_INPUTS} inputs",),
        ("ort", ALL_OPEN_TO_INT8): (
            f"every open input: {LOW_BITS}: 100 % of {len(INPUTS)} inputs",
        ),
    }


def test_equal_answers_to_different_inputs_are_explained_separately(tmp_path: Path) -> None:
    answers = {
        "ort": {TO_INT8: answered([300.0, 400.0], [0, 0])},
        "torch": {TO_INT8: answered([512.0, 3e38], [0, 0])},
        "other": {TO_INT8: answered([0.5, 1e9], [0, 0])},
    }
    found = read_report([run_with_answers(tmp_path / "run", **answers)]).behaviors
    assert {backend: lines for (backend, _), lines in found.items()} == {
        "ort": ("every open input: gives zero: 100 % of 2 inputs",),
        "torch": ("every open input: gives zero: 100 % of 2 inputs",),
        "other": ("every open input: gives zero: 100 % of 1 inputs",),
    }


def test_answers_without_a_closed_form_or_without_open_inputs_are_not_explained(
    tmp_path: Path,
) -> None:
    ones = DatumArray("complex64", np.ones(1, np.uint64))
    kept = InputsAndAnswers(DatumArray("float32", np.ones(1, np.float32).view(np.uint32)), ones)
    right = answered([0.5, 3.0], [0, 3])
    run = run_with_answers(tmp_path / "run", ort={TO_COMPLEX64: kept, TO_INT8: right})
    assert read_report([run]).behaviors == {}


def test_a_case_that_its_document_no_longer_has_is_not_explained(run: str) -> None:
    cell, kept = read_report([run]).cells["ort", TO_INT8], RunAnswers(open_run(run))
    gone = replace(cell, document="pypto-cast", version="0.2", target="int16", mode="mode:GONE")
    assert [*explain_open_answers(kept, {("a", "known"): cell, ("a", "gone"): gone})] == [
        ("a", "known")
    ]


NOT_EXPLAINED = {
    "a document that is not shipped": {"document": "lost-cast"},
    "a bitcast": {"document": "cinn-bitcast-convert", "version": "1.0", "source": "bool",
        "target": "bool", "mode": "shape:scalar"},
    "a text target": {"source": "bool", "target": "string"},
    "a cast that the document rejects": {"target": "float6e2m3"},
    "no open inputs": {"open": 0},
    "no answers": {"asked": None, "answers": None},
}  # fmt: skip


@pytest.mark.parametrize("changes", NOT_EXPLAINED.values(), ids=NOT_EXPLAINED)
def test_cells_without_explainable_answers_are_skipped(run: str, changes: dict[str, Any]) -> None:
    cell, kept = read_report([run]).cells["ort", TO_INT8], RunAnswers(open_run(run))
    assert explain_open_answers(kept, {("a", "case"): replace(cell, **changes)}) == {}


@pytest.mark.parametrize("source", ["complex64", "complex128"])
def test_complex_inputs_are_explained_by_their_real_parts(tmp_path: Path, source: str) -> None:
    values = np.array([complex(1e20, 7.0), complex(-300.0, 0.5)], source)
    inputs = DatumArray(source, values.view(format_named(source).storage))
    zeros = DatumArray("int8", np.zeros(2, np.uint8))
    judgement = Judgement(
        TO_INT8, "ort", "conforms", inputs=2, answered=InputsAndAnswers(inputs, zeros)
    )
    run = planted_run(tmp_path / "run", one_cell("ort", TO_INT8, judgement))
    cell, kept = read_report([run]).cells["ort", TO_INT8], RunAnswers(open_run(run))
    open_case = replace(
        cell,
        open=2,
        document="paddle-layer-astype",
        version="1.0",
        source=source,
        mode="form:name/member:weight",
    )
    assert explain_open_answers(kept, {("a", "case"): open_case}) == {
        ("a", "case"): ("every open input: gives zero: 100 % of 2 inputs",)
    }
