"""Findings of runs with planted faults: each is named by its cause, with region and counts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reports.findings import read_findings as read_findings_module
from reports.findings import wrong as wrong_module
from reports.findings.find import find_findings
from reports.findings.finding import UNEXPLAINED, Finding
from reports.findings.finding_text import finding_record, findings_lines
from reports.findings.judged_cells import cell_of
from reports.findings.read_findings import causes_of, read_cells, read_findings
from reports.findings.report import read_report
from reports.findings.root_causes import Undecided
from reports.findings.wrong import known_ruling
from reports.html.site import write_site
from reports.judgement import FAILING, Judgement, Verdict
from reports.problems import BrokenPromise, Note
from reports.run_store.open_run import RunAnswers, open_run
from reports.run_store.store import CAUSES
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named
from tests.conformance.feeding import without_place
from tests.conformance.processes import castigate
from tests.html.planted import HALF, one_cell, planted_run
from tests.reports.judged_run import (
    RIGHT,
    Answer,
    cases_of,
    judged_run,
    raising,
    through,
    where,
    with_mode,
)

TO_FLOAT8 = cases_of(
    "onnx-cast:25/float16/float8e4m3fn/",
    "onnx-cast:25/bfloat16/float8e4m3fn/",
    "onnx-cast:25/int16/float8e4m3fn/",
)
NARROW = cases_of("onnx-cast:25/int32/bfloat16/", "onnx-cast:25/float64/float16/")
ONE = cases_of("onnx-cast:25/int32/bfloat16/")
TO_BFLOAT16 = cases_of("onnx-cast:25/int32/bfloat16/", "onnx-cast:25/float16/bfloat16/")


def findings(folder: Path, answer: Answer, cases: list[Case]) -> tuple[Finding, ...]:
    store = judged_run(folder, {"faulty": answer}, cases)
    return read_findings(store).get("faulty", ())


def test_a_right_backend_has_none(tmp_path: Path) -> None:
    assert findings(tmp_path / "run", RIGHT.cast, TO_FLOAT8) == ()


@pytest.mark.parametrize("seed", [0, 1])
def test_double_rounding_is_named_as_such_whatever_the_seed(tmp_path: Path, seed: int) -> None:
    store = judged_run(tmp_path / "run", {"faulty": through("float32")}, NARROW, seed)
    [found] = read_findings(store)["faulty"]
    assert found.id == "faulty/rounds-twice-through-float32"
    assert (found.kind, found.says) == ("wrong value", "rounds twice, through float32")
    assert found.cases == tuple(case.id for case in NARROW)
    assert not found.is_exact


def test_the_example_is_a_number_where_there_is_one(tmp_path: Path) -> None:
    cases = [*ONE, *cases_of("onnx-cast:25/string/float16")]
    [found] = findings(tmp_path / "run", through("float32"), cases)
    assert found.cases == tuple(case.id for case in cases)
    assert found.simplest.cell.case == ONE[0].id


def test_an_ignored_parameter_is_named(tmp_path: Path) -> None:
    [found] = findings(tmp_path / "run", with_mode("saturate", "1"), TO_FLOAT8)
    assert found.name == "as-saturate-1"
    assert found.says == "answers as with saturate = 1 where it has another value"
    assert all("saturate:0" in case for case in found.cases)
    assert len(found.cases) == 3


@pytest.mark.parametrize(
    ("swapped", "says"),
    [
        ("answers", "gives its answers with their bytes in reverse order"),
        ("inputs", "reads its inputs with their bytes in reverse order"),
    ],
)
def test_reversed_bytes_are_named(tmp_path: Path, swapped: str, says: str) -> None:
    def cast(case: Case, bits: np.ndarray) -> np.ndarray:
        if swapped == "inputs":
            return RIGHT.cast(case, bits.byteswap())
        return RIGHT.cast(case, bits).byteswap()

    found = findings(tmp_path / "run", cast, TO_BFLOAT16)
    assert [(each.name, each.says) for each in found] == [(f"reversed-bytes-of-{swapped}", says)]
    assert found[0].cases == tuple(case.id for case in TO_BFLOAT16)


def between(case: Case, bits: np.ndarray) -> np.ndarray:
    """Inputs from 480 up to but not including 496, of both signs, without saturation."""
    source = format_named(case.source)
    values = {
        "float16": lambda: np.abs(bits.view(np.float16).astype(float)),
        "bfloat16": lambda: np.abs((bits.astype(np.uint32) << 16).view(np.float32)),
        "int16": lambda: np.abs(bits.view(np.int16).astype(int)),
    }
    magnitudes = values[source.name]()
    return (magnitudes >= 480) & (magnitudes < 496) & (case.mode["saturate"] == "0")


def test_a_region_is_told_in_values(tmp_path: Path) -> None:
    answer = where(between, lambda case: 0x7E)
    found, *others = findings(tmp_path / "run", answer, TO_FLOAT8)
    # This is about positive inputs; for negative ones the answer has the wrong sign as well.
    assert "480 ≤" in found.says
    assert "< 496" in found.says
    assert found.says.endswith(", where NaN is required")
    assert found.is_exact
    assert sum(each.inputs for each in (found, *others)) == 2 * (2**6 + 2**3 + 2**4)


def test_a_form_that_fits_for_want_of_larger_inputs_is_not_the_cause(tmp_path: Path) -> None:
    """No uint16 is large enough to show that values from 65536 on do not become a NaN."""

    def nearly_out_of_range(case: Case, bits: np.ndarray) -> np.ndarray:
        magnitudes = np.abs(bits.view(case.source).astype(float))
        return (magnitudes >= 61440) & (magnitudes < 65536)

    pairs = ("int32", "uint32", "uint16")
    cases = cases_of(*(f"onnx-cast:25/{source}/float8e5m2/saturate:0" for source in pairs))
    [found] = findings(tmp_path / "run", where(nearly_out_of_range, lambda case: 0x7F), cases)
    assert (found.name, found.cases) == ("nan", tuple(case.id for case in cases))
    assert found.says == "gives NaN, for 61440 ≤ |x| < 65536, where infinity is required"


def test_one_wrong_pattern_is_told_with_its_value(tmp_path: Path) -> None:
    answer = where(lambda case, bits: bits == 0x3C00, lambda case: 0x40)
    cases = cases_of("onnx-cast:25/float16/float8e4m3fn/saturate:1")
    [found] = findings(tmp_path / "run", answer, cases)
    [line] = [
        line for line in findings_lines({"faulty": [found]}, {"faulty": "1"}) if "0x3c00" in line
    ]
    assert (
        "1 case, float16 to float8e4m3fn, 1 input; 0x3c00 (1) gives 0x40 (2), not 0x38 (1)" in line
    )
    assert found.explained[0].region == "x = 1"


@pytest.mark.parametrize(("verdict", "is_exact"), [("error", True), ("violates", False)])
def test_a_count_is_exact_unless_answers_change_with_the_tensor(
    verdict: Verdict, is_exact: bool, tmp_path: Path
) -> None:
    """A check that ends in an error shows that an answer is missing, not that it is another."""
    answer = where(lambda case, bits: bits == 0x3C00, lambda case: 0x40)
    cases = cases_of("onnx-cast:25/float16/float8e4m3fn/saturate:1")
    store = judged_run(tmp_path / "run", {"faulty": answer}, cases)
    check = Judgement(
        cases[0].id, "faulty", verdict, (Note("so"),), check="invariances/float16/float8e4m3fn"
    )
    cells = [*read_cells(store, FAILING), cell_of(cases[0], check, ())]
    exact = {
        each.name: each.is_exact
        for each in find_findings(cells, RunAnswers(store).values)["faulty"]
        if each.inputs
    }
    assert {*exact.values()} == {is_exact}


def test_a_constant_that_negative_inputs_get_is_told_with_its_sign(tmp_path: Path) -> None:
    def lies_below(case: Case, bits: np.ndarray) -> np.ndarray:
        return (bits >= 0xBC00) & (bits <= 0xC000)  # from -1 down to -2

    cases = cases_of("onnx-cast:25/float16/float8e4m3fn/saturate:1")
    [found] = findings(tmp_path / "run", where(lies_below, lambda case: 0x80), cases)
    assert (found.name, found.says) == ("zero", "gives -0, for -2 ≤ x ≤ -1")


def test_what_integers_are_required_is_told(tmp_path: Path) -> None:
    def lies_above(case: Case, bits: np.ndarray) -> np.ndarray:
        return (bits >= 0x5800) & (bits < 0x7C00)  # from 128 up, but for infinity

    cases = cases_of("pypto-cast:0.2/float16/int8/mode:CAST_RINT/satmode:on")
    [found] = findings(tmp_path / "run", where(lies_above, lambda case: 0), cases)
    assert found.says == "gives zero, for x ≥ 128, where the largest value is required"


def test_what_only_some_of_the_inputs_require_is_not_told(tmp_path: Path) -> None:
    def as_c(case: Case, bits: np.ndarray) -> np.ndarray:
        values = bits.view(np.float16).astype(float)
        return np.where(np.isfinite(values), np.trunc(values), -(2.0**31)).astype(int) & 0xFF

    cases = cases_of("pypto-cast:0.2/float16/int8/mode:CAST_RINT/satmode:on")
    [found] = findings(tmp_path / "run", lambda *asked: as_c(*asked).astype(np.uint8), cases)
    # Of 256 the largest value is required, and of 2.7 another rounding.
    assert (found.name, found.explained[0].allowed) == ("as-c-on-x86", ("0x7f",))
    assert found.says.endswith(" and keeps the low bits")


def test_a_region_of_several_cases_is_that_of_a_case_whose_inputs_were_all_asked(
    tmp_path: Path,
) -> None:
    ends = {  # 512 and 10000
        "float16": (0x6000, 0x70E2),
        "float64": (0x4080000000000000, 0x40C3880000000000),
    }

    def lies_between(case: Case, bits: np.ndarray) -> np.ndarray:
        first, last = ends[case.source]
        return (bits >= first) & (bits <= last)

    cases = cases_of(*(f"onnx-cast:25/{source}/float8e4m3fn/saturate:0" for source in ends))
    [found] = findings(tmp_path / "run", where(lies_between, lambda case: 0), cases)
    assert {each.is_exact for each in found.explained} == {True, False}
    assert found.says == "gives zero, for 512 ≤ x ≤ 10000, where NaN is required"


def test_failing_inputs_between_which_none_was_asked_are_one_interval(tmp_path: Path) -> None:
    def lies_between(case: Case, bits: np.ndarray) -> np.ndarray:
        return (bits >= 0x3FF0000000000000) & (bits <= 0x4000000000000000)  # from 1 to 2

    cases = cases_of("onnx-cast:25/float64/float8e4m3fn/saturate:0")
    [found] = findings(tmp_path / "run", where(lies_between, lambda case: 0x35), cases)
    assert [each.region for each in found.explained] == ["1 ≤ x ≤ 2"]


def test_one_wrong_input_that_several_mechanisms_explain_is_named_by_the_first(
    tmp_path: Path,
) -> None:
    answer = where(lambda case, bits: bits == 1, lambda case: 0)  # 0.5, the only subnormal number
    cases = cases_of("onnx-cast:25/float4e2m1/float8e8m0/saturate:1/round_mode:up")
    [found] = findings(tmp_path / "run", answer, cases)
    assert found.name == "flushes-subnormals"
    assert found.says.startswith(
        "gives one input a wrong value, which is not enough to tell the cause: flushes subnormal"
        " inputs and results to zero, "
    )


def test_of_many_mechanisms_three_are_named() -> None:
    begin = "gives one input a wrong value, which is not enough to tell the cause: "
    for count, words in ((2, "a, or b"), (3, "a, b, or c"), (5, "a, b, c, or 2 more")):
        assert Undecided("a", tuple("abcde"[:count])).says == begin + words


def test_a_finding_and_a_judgement_are_one_short_line(tmp_path: Path) -> None:
    answer = where(lambda case, bits: bits == 0, lambda case: 1)
    [found] = findings(tmp_path / "run", answer, cases_of("onnx-cast:25/float16/float32"))
    assert repr(found) == f"<Finding {found.id}: {found.says} (1 inputs, 1 cases)>"
    judgement = Judgement("onnx-cast:25/float16/float32", "faulty", "conforms", inputs=65536)
    assert repr(judgement) == (
        "<Judgement onnx-cast:25/float16/float32 on faulty: conforms, 0 of 65,536 inputs wrong>"
    )


def test_the_example_is_of_usual_dtypes_and_the_newest_version(tmp_path: Path) -> None:
    answer = where(lambda case, bits: bits == 0, lambda case: 1)
    ends = "float8e5m2/float32", "float16/float32", "int4/float32"
    cases = cases_of(*(f"onnx-cast:{version}/{pair}/" for version in (24, 25) for pair in ends))
    [found] = findings(tmp_path / "run", answer, cases)
    assert len(found.explained) == 6
    assert found.simplest.cell.case == "onnx-cast:25/float16/float32"


def test_every_stored_answer_is_tried(tmp_path: Path) -> None:
    wrong = np.array([0x00, 0x41, 0x42, 0x00], np.uint8)

    def cast(case: Case, bits: np.ndarray) -> np.ndarray:
        answers = RIGHT.cast(case, bits).copy()
        for offset, answer in enumerate(wrong):
            answers[bits == 0x3C00 + offset] = answer
        return answers

    cases = cases_of("onnx-cast:25/float16/float8e4m3fn/saturate:1")
    [found] = findings(tmp_path / "run", cast, cases)
    # Both ends of the run are zero, but not what lies between.
    assert (found.name, found.inputs) == (UNEXPLAINED, 4)


def test_a_run_of_rules_that_have_changed_has_findings_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = judged_run(tmp_path / "run", {"faulty": through("float32")}, ONE)

    def missing(case: Case) -> None:
        raise CastigateError(f"gap: no rule applies to {case.id}")

    known_ruling.cache_clear()
    monkeypatch.setattr(wrong_module, "ruling", missing)
    try:
        found = read_findings(store)["faulty"]
    finally:
        known_ruling.cache_clear()
    assert {case for each in found for case in each.cases} == {ONE[0].id}
    assert all(each.simplest.allowed for each in found)


def test_what_no_form_explains_is_counted(tmp_path: Path) -> None:
    wrong = where(lambda case, bits: bits % 7 == 3, lambda case: 0x31)
    *_, found = findings(tmp_path / "run", wrong, TO_FLOAT8[:2])
    assert found.name == UNEXPLAINED
    assert found.inputs > 10_000


@pytest.mark.parametrize(
    ("cases", "kind", "name", "says"),
    [
        (cases_of("onnx-cast:25/float16/int4"), "wrong refusal", "raises-ValueError",
            "raises ValueError: no such kernel"),
        (cases_of("onnx-cast:6/float16/int4"), None, "", ""),
    ],
)  # fmt: skip
def test_an_error_is_wrong_only_where_an_answer_is_due(
    tmp_path: Path, cases: list[Case], kind: str | None, name: str, says: str
) -> None:
    found = findings(tmp_path / "run", raising(ValueError("no such kernel")), cases)
    assert [(each.kind, each.name, without_place(each.says)) for each in found] == (
        [(kind, name, says)] if kind else []
    )
    for each in found:
        command = f"castigate explain {cases[0].id} --backend faulty -- 0x0000"
        assert each.simplest.cell.reproduction == command


def test_a_malformed_answer_is_a_wrong_value(tmp_path: Path) -> None:
    def shortened(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits)[:-1]

    [found] = findings(tmp_path / "run", shortened, TO_FLOAT8)
    assert (found.id, found.kind) == ("faulty/malformed", "wrong value")
    assert found.says.startswith("returns what cannot be compared: the answer has shape (65535,)")


def test_pairs_that_are_not_listed_are_one_finding(tmp_path: Path) -> None:
    def cast(case: Case, bits: np.ndarray) -> np.ndarray:
        return np.zeros(bits.shape, format_named(case.target).storage)

    cases = cases_of("onnx-cast:6/float16/int4", "onnx-cast:9/float16/uint4")
    [found] = findings(tmp_path / "run", cast, cases)
    assert (found.kind, found.name) == (
        "accepts what is not listed",
        "accepts-unlisted-onnx-cast",
    )
    assert len(found.cases) == 2


def test_backends_share_findings_of_the_same_name(tmp_path: Path) -> None:
    backends = {"one": through("float32"), "two": through("float32"), "three": RIGHT.cast}
    store = judged_run(tmp_path / "run", backends, ONE)
    found = read_findings(store)
    assert set(found) == {"one", "two"}
    [first] = found["one"]
    assert finding_record(first, found, "1")["shared"] == ["two"]
    text = "\n".join(findings_lines(found, dict.fromkeys(backends, "1")))
    assert re.search(r"^one 1: 1 finding, 1 failing case$", text, re.MULTILINE)
    assert "also in two" in text


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}",
        '{"format": 1, "findings": []}', '{"format": 1, "findings": {"faulty": [{}]}}',
    ],
)  # fmt: skip
def test_stored_findings_that_cannot_be_read_are_one_line(text: str, tmp_path: Path) -> None:
    store = judged_run(tmp_path / "run", {"faulty": RIGHT.cast}, ONE)
    store.folder.write(CAUSES, text.encode())
    with pytest.raises(CastigateError, match=r"causes\.json is damaged; "):
        read_findings(store)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"problem": "Weather"}', '{"problem": "Died"}'])
def test_a_stored_problem_that_is_none_is_one_line(text: str, tmp_path: Path) -> None:
    store = judged_run(tmp_path / "run", {"faulty": raising(ValueError("no"))}, ONE)
    path = tmp_path / "run" / "problems.parquet"
    table = pq.read_table(path)
    [row] = table.to_pylist()
    changed = pa.Table.from_pylist([row | {"problem": text}], table.schema)
    pq.write_table(changed, path)
    message = rf"problems\.parquet holds `{re.escape(text)}`, which is no problem; "
    with pytest.raises(CastigateError, match=message):
        read_findings(store)


def test_runs_of_inputs_that_are_missing_are_one_line(tmp_path: Path) -> None:
    store = judged_run(tmp_path / "run", {"faulty": through("float32")}, ONE)
    path = tmp_path / "run" / "divergences.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    message = f"does not belong to its cases.parquet: the runs of {ONE[0].id} are not in their"
    with pytest.raises(CastigateError, match=re.escape(message)):
        read_findings(store)


def test_a_backend_that_one_run_lacks_is_not_compared(tmp_path: Path) -> None:
    cases = ONE
    judged_run(tmp_path / "before", {"one": RIGHT.cast}, cases)
    judged_run(tmp_path / "now", {"one": RIGHT.cast, "two": through("float32")}, cases)
    report = read_report([str(tmp_path / "before"), str(tmp_path / "now")])
    assert set(report.findings) == {"two"}
    [step] = report.steps
    assert (step.backend, step.changes) == ("one", ())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run in which one backend rounds twice, and another is right."""
    backends = {"one": through("float32"), "two": RIGHT.cast}
    folder = tmp_path_factory.mktemp("findings") / "run"
    return judged_run(folder, backends, ONE).folder.display_name


def test_the_command_prints_what_was_found(run: str) -> None:
    code, out, err = castigate("findings", run)
    assert (code, err) == (1, "")
    assert "rounds-twice-through-float32: 1 case, int32 to bfloat16, 32,512 inputs; " in out
    assert out.rstrip().endswith("two 1: no finding")
    code, out, _ = castigate("findings", run, "--backend", "two")
    assert (code, out.strip()) == (0, "two 1: no finding")
    code, out, _ = castigate("findings", run, "--json")
    [record] = map(json.loads, out.splitlines())
    assert (record["id"], record["kind"]) == ("one/rounds-twice-through-float32", "wrong value")
    assert [each["case"] for each in record["cases"]] == [ONE[0].id]


def test_a_finding_is_printed_as_an_issue(run: str) -> None:
    code, out, err = castigate("findings", run, "--issue", "one/rounds-twice-through-float32")
    assert (code, err) == (0, "")
    title, _, machine, *_ = out.splitlines()
    assert title == "# Cast int32 to bfloat16: rounds twice, through float32"
    assert machine == "one 1, Python 3.11.7, Linux"
    for part in (
        "A cast from int32 to bfloat16:",
        "- ONNX Cast, version 25, recommends this: ",
        f"castigate explain {ONE[0].id} --backend one -- 0x",
        "| int32 | bfloat16 |  | 32,512 | ",
    ):
        assert part in out


def test_an_unknown_finding_is_one_line(run: str) -> None:
    code, out, err = castigate("findings", run, "--issue=one/rounds-twice")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "has no finding `one/rounds-twice`; did you mean `one/rounds-twice-through-" in err


def test_an_unknown_backend_is_one_line(run: str) -> None:
    code, out, err = castigate("findings", run, "--backend", "onn")
    assert (code, out) == (2, "")
    assert err == f"castigate: run {run} has no backend `onn`; did you mean `one`?\n"


def test_the_report_has_a_page_per_finding(tmp_path: Path) -> None:
    runs = []
    for name, answer in (("before", RIGHT.cast), ("now", with_mode("saturate", "1"))):
        runs.append(str(tmp_path / name))
        judged_run(tmp_path / name, {"faulty": answer}, TO_FLOAT8)
    write_site(runs, tmp_path / "site")
    front = (tmp_path / "site" / "index.html").read_text()
    assert 'href="finding-faulty-as-saturate-1.html"' in front
    assert "answers as with saturate = 1 where it has another value" in front
    page = (tmp_path / "site" / "finding-faulty-as-saturate-1.html").read_text()
    for each in ("wrong value", "worse", "case.html#onnx-cast:25/int16/float8e4m3fn/saturate:0"):
        assert each in page


def test_a_fault_is_named_by_its_message_without_dtypes(tmp_path: Path) -> None:
    dtypes = "float32", "float16"
    fault = BrokenPromise("whole", "§ 1", "required", "converted", dtypes)
    wrong = Judgement(HALF, "ort", "violates", (fault,), inputs=2)
    run = planted_run(tmp_path / "run", one_cell("ort", HALF, wrong), ["ort"])
    [found] = [each for each in read_findings(open_run(run))["ort"] if HALF in each.cases]
    assert found.says == (
        "gives the source dtype instead of the target dtype (nothing was converted)"
    )
    assert found.name == "gives-the-source-dtype-instead-of-the-target-dtype"


def test_causes_of_a_large_run_are_searched_by_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(case: Case, bits: Any) -> Any:
        return np.asarray(RIGHT.cast(case, bits) ^ (bits % 7 == 0))

    store = judged_run(tmp_path, {"one": wrong, "two": wrong}, cases_of("onnx-cast:25/uint8/int8"))
    here = causes_of(store)
    monkeypatch.setattr(read_findings_module, "MANY_FAILURES", 1)
    monkeypatch.setattr(read_findings_module, "found_again", Mock(side_effect=AssertionError))
    assert causes_of(store) == here
    assert json.loads(here)["findings"].keys() == {"one", "two"}
