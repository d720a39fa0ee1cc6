"""The docket: verdicts follow from the document and from the answers of today."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conformance.extras.issues.asked import ask_backends
from conformance.extras.issues.docket import docket, load_docket
from conformance.extras.issues.threads import (
    VERDICTS,
    WRONG,
    DecidedThread,
    JudgedAnswer,
    Missing,
    decide,
)
from conformance.extras.issues.words import counts, page, standing, thread_lines
from oracles.registry import load_backend
from specs.errors import CastigateError
from tests.conformance.processes import ROOT, castigate

RIGHT, FAULT = JudgedAnswer("0x01", "conforms"), JudgedAnswer("0x02", "violates")
FROM_FLOAT = "onnx-cast:25/float32"


def thread(tmp_path: Path, *questions: str, claims: str = "[]") -> DecidedThread:
    lines = "".join(f"      - {{{each}}}\n" for each in questions)
    named = "systems: {GPU: a GPU}\n" if any("GPU" in each for each in questions) else ""
    (tmp_path / "where.yaml").write_text(
        f"project: some/where\nclaims: {claims}\n{named}threads:\n  https://github.com/some/where/issues/7:\n"
        f"    report: something\n    questions:\n{lines}"
    )
    [found] = load_docket(tmp_path / "where.yaml")
    return decide(found)


def verdicts(decided: DecidedThread, **today: object) -> list[tuple[str, str]]:
    asked = DecidedThread(decided.thread, decided.questions, today)  # type: ignore[arg-type]
    return [(each.verdict, each.backend) for each in asked.verdicts]


FAULTY = f"case: {FROM_FLOAT}/bool, input: 2, answers: {{ort: false, torch: true}}, wanted: true"
YARDSTICK = "case: plain-cast:open/float32/bool, input: 2, answers: {ort: false}"
OPEN = f"case: {FROM_FLOAT}/int8, input: 300, answers: {{ort: 44, torch: 127}}"
MISTAKEN = f"case: {FROM_FLOAT}/bool, input: 2, answers: {{ort: true}}, wanted: false"
ELEMENT = "case: 'onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor', input: '2.5'"
TIE = f"{ELEMENT}, scale: '1', zero: 1, answers: {{reference: 4}}, wanted: 3"
TO_FLOAT8 = f"case: {FROM_FLOAT}/float8e4m3fn/saturate"
NAN = f"{TO_FLOAT8}:0, input: 465, answers: {{ml_dtypes: nan}}"
SATURATED = f"{TO_FLOAT8}:1, input: 465, answers: {{ort: 448}}"
EITHER = f"case: {FROM_FLOAT}/int4, input: '2.7', answers: {{ort: 3}}"
ELSEWHERE = f"case: {FROM_FLOAT}/bool, input: 2, answers: {{GPU: false, ort: true}}"


@pytest.mark.parametrize(
    ("question", "today", "found"),
    [
        (FAULTY, {"ort": [FAULT]}, [("present", "ort")]),
        (FAULTY, {"ort": [RIGHT]}, [("mended", "ort")]),
        (FAULTY, {"ort": [Missing("no bool")]}, [("not reproducible here", "ort")]),
        (FAULTY, {"torch": [FAULT]}, [("present", "torch")]),
        (FAULTY, {"torch": [RIGHT]}, [("not reproducible here", "")]),
        (FAULTY, {"mine": [RIGHT]}, [("absent", "mine")]),
        (FAULTY, {"mine": [FAULT], "ort": [RIGHT]}, [("present", "mine"), ("mended", "ort")]),
        (FAULTY, {}, [("not reproducible here", "")]),
        (ELSEWHERE, {"ort": [RIGHT]}, [("not reproducible here", "")]),
        (OPEN, {}, [("open by the document", "")]),
        (OPEN, {"ort": [JudgedAnswer("0x2c", "open")]}, [("open by the document", "")]),
        (TIE, {}, [("not reproducible here", "")]),
        (TIE, {"reference": [FAULT]}, [("present", "reference")]),
        (MISTAKEN, {}, [("the reporter was wrong", "")]),
        (MISTAKEN, {"ort": [RIGHT]}, [("the reporter was wrong", "")]),
        (MISTAKEN, {"ort": [FAULT]}, [("present", "ort")]),
    ],
)
def test_a_verdict_follows(
    tmp_path: Path, question: str, today: dict[str, object], found: list[tuple[str, str]]
) -> None:
    given = verdicts(thread(tmp_path, question), **today)
    assert [each for each in given if each[1]] == [each for each in found if each[1]]
    if not any(name for _, name in found):
        assert given == found


def test_a_backend_that_a_thread_is_about_is_held_to_its_own_questions(tmp_path: Path) -> None:
    asked = thread(tmp_path, NAN, SATURATED)
    assert ("present", "mine") in verdicts(asked, mine=[RIGHT, FAULT])
    assert verdicts(asked, ml_dtypes=[RIGHT, FAULT]) == [("open by the document", "")]
    assert ("present", "ml_dtypes") in verdicts(asked, ml_dtypes=[FAULT, RIGHT])


def test_a_backend_that_declines_gives_the_only_reason(tmp_path: Path) -> None:
    asked = thread(tmp_path, FAULTY)
    [one] = DecidedThread(asked.thread, asked.questions, {"ort": [Missing("no bool")]}).verdicts
    assert (one.verdict, one.why, one.backend) == ("not reproducible here", "no bool", "ort")


@pytest.mark.parametrize(
    ("claims", "questions", "words"),
    [
        ("[onnx-cast]", [FAULTY], "own document"),
        ("[]", [FAULTY], "another project's document"),
        ("[]", [YARDSTICK], "a yardstick"),
        ("[onnx-cast]", [OPEN, YARDSTICK], "a yardstick"),
        ("[]", [OPEN, YARDSTICK], "a yardstick"),
    ],
)
def test_the_words_say_whose_document_decides(
    tmp_path: Path, claims: str, questions: list[str], words: str
) -> None:
    assert standing(thread(tmp_path, *questions, claims=claims)) == words


def test_the_reason_names_each_system(tmp_path: Path) -> None:
    wrong = f"case: {FROM_FLOAT}/bool, input: 2, answers: {{GPU: false, ort: false}}"
    decided = thread(tmp_path, wrong)
    assert decided.verdict.why == "GPU: a GPU; ort was not asked"


def test_of_several_questions_a_fault_counts_most(tmp_path: Path) -> None:
    assert thread(tmp_path, OPEN, MISTAKEN).verdict.verdict == "open by the document"
    assert thread(tmp_path, OPEN, MISTAKEN, FAULTY).verdict.verdict == "not reproducible here"


@pytest.mark.parametrize(
    ("questions", "verdict"),
    [
        ([NAN, SATURATED], "open by the document"),
        ([f"{NAN}, wanted: 448", SATURATED], "the reporter was wrong"),
        ([f"{NAN}, wanted: 448", SATURATED, OPEN], "open by the document"),
        ([EITHER], "open by the document"),
    ],
)
def test_two_modes_may_want_the_two_answers(
    tmp_path: Path, questions: list[str], verdict: str
) -> None:
    """An answer that its own mode allows stays right beside a system in another mode."""
    assert thread(tmp_path, *questions).verdict.verdict == verdict


@pytest.mark.parametrize(
    "questions",
    [
        (NAN, NAN),
        (NAN, SATURATED.replace("465", "500")),
        (NAN, SATURATED.replace("float32", "float16")),
    ],
)
def test_only_another_answer_to_the_same_input_makes_a_question(
    tmp_path: Path, questions: tuple[str, str]
) -> None:
    with pytest.raises(CastigateError, match="the same input has another answer"):
        thread(tmp_path, *questions)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (f"case: {FROM_FLOAT}/bool, input: x, answers: {{ort: true}}", "`input` `x` is not a"),
        (f"case: {FROM_FLOAT}/bool, input: 2, answers: {{ort: yes}}", "is not a value of bool"),
        (f"case: {FROM_FLOAT}/bool, input: 2, answers: {{cpu: true}}", "`cpu` is no backend"),
        (f"case: {FROM_FLOAT}/bool, input: 2, answers: {{ort: true}}", "say what was `wanted`"),
        (NAN, "say what was `wanted`"),
        (f"case: {FROM_FLOAT}/int32/bool, input: x, answers: {{ort: true}}", "`x`"),
        (f"case: {FROM_FLOAT}/int32/bool, input: 1, answers: {{ort: 5}}", "bool"),
        (f"{ELEMENT}, answers: {{ort: 4}}", "needs a `scale` beside the input"),
        (f"{ELEMENT}, scale: x, answers: {{ort: 4}}", "`input.scale[0]` `x` is not a"),
        (f"case: {FROM_FLOAT}/bool, input: 2, scale: '1', answers: {{ort: true}}", "has no scales"),
    ],
)
def test_an_entry_that_decides_nothing_is_refused(tmp_path: Path, question: str, said: str) -> None:
    with pytest.raises(CastigateError) as error:
        thread(tmp_path, question)
    assert str(error.value).startswith(f"{tmp_path / 'where.yaml'}:7: ")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("case: onnx-cast:25/float32/int32/bool, input: '-0.2', answers: {ort: true}", "deviates"),
        (
            "case: onnx-cast:25/float32/float8e4m3fn/saturate:0/float32, input: inf,"
            " answers: {ort: nan}, wanted: inf",
            "conforms",
        ),
        ("case: plain-cast:open/float32/int8/float32, input: 300, answers: {ort: 44}", "open"),
        (
            "case: plain-cast:open/float64/float16, input: '0x3ff0020000001000',"
            " answers: {ort: '0x3c00'}",
            "violates",
        ),
        ("case: onnx-cast:25/string/int32, input: {text: '7'}, answers: {ort: 8}", "deviates"),
        (
            "case: checked-cast:1/float64/uint64, input: '18446744073709551616', answers: {ort: 0}",
            "violates",
        ),
        ("case: checked-cast:1/float32/int8, input: '2.5', answers: {ort: 2}", "violates"),
        ("case: checked-cast:1/int16/uint8, input: 256, answers: {ort: 0}", "violates"),
        (
            "case: checked-cast:1/float32/int8, input: -128, answers: {ort: {error: refused}}",
            "violates",
        ),
        (
            "case: checked-cast:1/float32/int8, input: nan, answers: {ort: {error: refused}},"
            " wanted: 0",
            "conforms",
        ),
        (
            "case: onnx-bitcast:26/uint8/int8/shape:2, input: [255, 1], answers: {ort: [-1, 2]}",
            "violates",
        ),
        (
            "case: onnx-bitcast:26/uint8/int8/shape:2, input: [255, 1],"
            " answers: {ort: {error: refused}}",
            "violates",
        ),
    ],
)
def test_answers_of_every_kind_are_judged(tmp_path: Path, question: str, verdict: str) -> None:
    [decided] = thread(tmp_path, question).questions
    assert decided.reported["ort"].verdict == verdict
    # The reference is never wrong.
    [asked] = ask_backends([thread(tmp_path, question)], [load_backend("reference")])
    [today] = asked.today["reference"]
    assert isinstance(today, JudgedAnswer)
    assert today.verdict not in WRONG


@pytest.fixture(scope="module")
def shipped() -> list[DecidedThread]:
    return [decide(each) for each in docket()]


def test_the_reference_has_no_fault_of_the_docket(shipped: list[DecidedThread]) -> None:
    asked = ask_backends(shipped, [load_backend("reference")])
    assert counts(asked).get("present", 0) == 0
    missing = [each for thread in asked for each in thread.today["reference"]]
    assert not any(isinstance(each, Missing) for each in missing)


def test_what_was_wanted_is_allowed_where_an_answer_was_not(shipped: list[DecidedThread]) -> None:
    """If the document forbids both the answer and the wanted one, the entry's case may be wrong."""
    for each in shipped:
        for one in each.questions:
            assert not (one.faulty and one.wanted is not None and one.wanted.is_wrong), each.thread


def test_only_documents_of_a_project_call_its_reporters_wrong(
    shipped: list[DecidedThread],
) -> None:
    """In the other threads the owners said so themselves."""
    others = [
        each.thread.name
        for each in shipped
        if each.verdict.verdict == "the reporter was wrong" and standing(each) != "own document"
    ]
    assert others == [
        "arch-hdl-lang/arch-com#629",
        "jax-ml/ml_dtypes#260",
        "jax-ml/ml_dtypes#147",
    ]


def test_an_element_is_asked_with_its_scale_and_zero_point(tmp_path: Path) -> None:
    decided = thread(tmp_path, TIE)
    [asked] = ask_backends([decided], [load_backend("reference")])
    assert asked.today == {"reference": [JudgedAnswer("0x03", "conforms")]}
    assert asked.verdict.verdict == "mended"
    words = " ".join(" ".join(thread_lines(asked, {"reference": "0"})).split())
    assert "of 0x40200000 (2.5) by scale 1 and zero point 1: required 0x03 (3);" in words


def test_the_page_has_every_thread(shipped: list[DecidedThread]) -> None:
    text = page(shipped, {}, "2026-01-01")
    assert all(f"]({each.thread.link})" in text for each in shipped)
    assert text.startswith(f"# The docket: {len(shipped)} threads, decided\n")
    for verdict, number in counts(shipped).items():
        assert f"| {verdict} | {number} | {VERDICTS[verdict]} |" in text


def test_the_docs_have_every_thread(shipped: list[DecidedThread]) -> None:
    text = (ROOT / "docs" / "atlas" / "docket.md").read_text()
    assert text.startswith(f"# The docket: {len(shipped)} threads, decided\n")
    assert all(f"]({each.thread.link})" in text for each in shipped)


def test_lines_fit_a_terminal(shipped: list[DecidedThread]) -> None:
    for each in shipped:
        for line in thread_lines(each, {}):
            assert len(line) <= 100 or not line.startswith("    ") or " " not in line.strip()


def wrongly(source: str) -> str:
    return f"""\
import numpy as np


class Mine:
    name, version = "mine", "1"

    def cast(self, case, bits):
        from specs.formats import format_named

        answer = {source}
        return np.full(bits.shape, answer, format_named(case.target).storage)
"""


@pytest.fixture(scope="module")
def zero(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("zero") / "zero.py"
    file.write_text(wrongly("0"))
    return f"{file}:Mine"


def test_a_backend_of_ones_own_is_asked_all_threads(zero: str) -> None:
    code, out, _ = castigate(
        "docket", zero, "--project", "numpy/numpy", "--project", "apache/tvm", "--json"
    )
    found = {each["link"]: each for each in map(json.loads, out.splitlines())}
    assert code == 0
    assert len(found) == sum(
        each.project.project in ("numpy/numpy", "apache/tvm") for each in docket()
    )
    nan_to_bool = found["https://github.com/apache/tvm/issues/18605"]
    assert nan_to_bool["verdicts"] == [{"verdict": "present", "why": "", "backend": zero}]
    [question] = nan_to_bool["questions"]
    assert question["today"] == {zero: {"answer": "0x0", "verdict": "violates"}}
    assert (question["level"], question["allowed"]) == ("required", ["0x1"])
    assert "bool" in question["clause"]
    # The backend makes no chains.
    through_bool = found["https://github.com/apache/tvm/issues/13048"]
    assert through_bool["verdicts"][0]["verdict"] == "not reproducible here"


@pytest.mark.parametrize(("project", "code"), [("apache/tvm", 1), ("numpy/numpy", 0)])
def test_the_exit_code_says_whether_a_fault_is_present(zero: str, project: str, code: int) -> None:
    asked = ("docket", zero, "--project", project)
    assert castigate(*asked)[0] == 0
    assert castigate(*asked, "--fail-if-present")[0] == code


def test_onnxruntime_is_asked_its_own_threads() -> None:
    pytest.importorskip("onnxruntime")
    code, out, err = castigate("docket", "ort")
    assert (code, err) == (0, "")
    mended = r"^mended in ort \S+, by own document  https://\S+/issues/28089  2026"
    assert re.search(mended, out, re.M)
    assert "numpy/numpy" not in out
    assert re.fullmatch(r"\d+ threads: .*\d+ mended.*", out.splitlines()[-1])


def test_without_a_backend_documents_decide() -> None:
    code, out, _ = castigate("docket", "--project", "onnx/onnx")
    assert code == 0
    assert "not reproducible here (onnx was not asked), by own document  https://" in out
    assert "the reporter was wrong, by own document  https://github.com/onnx/onnx/pull/7223" in out


def test_an_unknown_project_is_one_line() -> None:
    code, out, err = castigate("docket", "--project", "onnx/onx")
    assert (code, out) == (2, "")
    assert "did you mean `onnx/onnx`?" in err
    assert err.count("\n") == 1
