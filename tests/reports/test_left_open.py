"""Inputs that a document leaves open are counted in one line, with an answer to one of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reports.findings.left_open import left_open
from reports.findings.report import read_report
from reports.gate.certificate import certificate_body
from reports.judgement import DatumArray, InputsAndAnswers, Judgement
from reports.outputs.summary_md import summary_md
from reports.run_store.open_run import open_run
from specs.cases import Case
from specs.selection import case_named
from tests.html.planted import planted_run
from tests.reports.gated import CASE, evidence, gated_run, only, policy

TO_INT8 = "onnx-cast:25/float32/int8"
TO_UINT8 = "onnx-cast:25/float64/uint8"
BITCAST = "onnx-bitcast:26/float32/int32/shape:3"


def judged(backend: str, case: Case) -> Judgement:
    """Of four inputs to int8, 128 and two NaNs are open; of another case it is not known which."""
    if case.id != TO_INT8:
        return Judgement(case.id, backend, "conforms", inputs=9, open_inputs=5)
    inputs = np.array([0x3F800000, 0x43000000, 0x7FC00000, 0xFFFFFFFF], np.uint32)
    answers = np.array([1, 0x7F, 0x80, 0], np.uint8)
    answered = InputsAndAnswers(DatumArray("float32", inputs), DatumArray("int8", answers))
    return Judgement(case.id, backend, "conforms", inputs=4, open_inputs=3, answered=answered)


def test_open_inputs_are_counted_with_an_answer_to_a_nan(tmp_path: Path) -> None:
    of = [case_named(each) for each in (TO_INT8, TO_UINT8)]
    run = planted_run(tmp_path / "run", judged, ["vendor"], of=of)
    line = (
        "left open by onnx-cast:25: 8 inputs in 2 cases, such as float32 NaN to int8"
        " (answer: -128); castigate rules lists choices"
    )
    assert left_open(open_run(run)) == {"vendor": line}
    assert f"\n- {line}\n" in summary_md(read_report([run]))


def test_without_stored_answers_inputs_are_only_counted(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "run", judged, ["a", "b"], of=[case_named(TO_UINT8)])
    line = "left open by onnx-cast:25: 5 inputs in 1 case; castigate rules lists choices"
    assert left_open(open_run(run)) == {"a": line, "b": line}
    assert f"\n- b: {line}\n" in summary_md(read_report([run]))


def test_documents_and_versions_are_named_briefly(tmp_path: Path) -> None:
    older = TO_UINT8.replace(":25", ":24")
    of = [case_named(each) for each in (TO_UINT8, older, BITCAST)]
    [line] = left_open(open_run(planted_run(tmp_path / "run", judged, ["a"], of=of))).values()
    assert line.startswith("left open by onnx-cast and 1 other document: 15 inputs in 3 cases;")


def test_a_case_that_is_open_as_a_whole_does_not_count(tmp_path: Path) -> None:
    def plant(backend: str, case: Case) -> Judgement:
        return Judgement(case.id, backend, "open", inputs=256, open_inputs=256)

    run = planted_run(tmp_path / "run", plant, ["a"], of=[case_named(TO_INT8)])
    assert left_open(open_run(run)) == {}


def test_a_certificate_says_first_what_was_left_open(tmp_path: Path) -> None:
    judgement = Judgement(CASE, "vendor", "conforms", inputs=256, open_inputs=7)
    given = evidence(gated_run(tmp_path / "run", only(judgement)), policy())
    line = "left open by pypto-cast:0.2: 7 inputs in 1 case; castigate rules lists choices"
    assert certificate_body(given, given.judged(), {})["left-out"][0] == line
