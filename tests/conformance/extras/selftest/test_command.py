"""``castigate selftest`` tells a program that is ready to be judged from one that is broken."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.extras.selftest import checks
from oracles.registry import load_backend
from oracles.smoke_check import sample_patterns
from specs.formats import formats
from tests.conformance.processes import ROOT, castigate

PROGRAM = ROOT / "examples" / "vendor_python" / "program.py"
HOSTILE = ROOT / "tests" / "wire" / "data" / "hostile.py"
Test = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture(autouse=True)
def short_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SECONDS_OF_A_FIGURE", 0.0)
    monkeypatch.setattr(checks, "LONGEST_ROW", checks.LONG_ROW)


@pytest.fixture
def planted(tmp_path: Path) -> Test:
    """A function that replaces parts of the example in Python, and tests the result."""

    def test(
        options: tuple[str, ...] = (), **replaced: str
    ) -> tuple[int, list[dict[str, Any]], str]:
        text = PROGRAM.read_text(encoding="utf-8")
        for name, new in replaced.items():
            assert text.count(PARTS[name]) == 1
            text = text.replace(PARTS[name], new)
        program = tmp_path / "program.py"
        program.write_text(text, encoding="utf-8")
        return results(f"exec:{shlex.quote(sys.executable)} {shlex.quote(str(program))}", *options)

    return test


PARTS = {
    "payload": "values.tobytes()",
    "shape": 'request.get("shape", [values.size])',
    "cast": ".astype(target)",
    "inputs": 'request["first"] + request["count"]',
    "start": "while start := sys.stdin.buffer.read(16):\n",
    "mode": "if mode:",
    "claims": '"onnx-cast", "onnx-quantize-linear"',
    "quantized": '("onnx-quantize-linear", ONE_SCALE)',
}


def results(backend: str, *options: str) -> tuple[int, list[dict[str, Any]], str]:
    code, out, err = castigate("selftest", "--json", backend, *options)
    return code, [json.loads(line) for line in out.splitlines()], err


def broken(found: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    return {(each["check"], each["subject"]): each["result"] for each in found if each["is_broken"]}


def test_a_correct_program_is_ready(planted: Test) -> None:
    code, found, err = planted()
    assert (code, err, broken(found)) == (0, "", {})
    by_check = {(each["check"], each["subject"]): each["result"] for each in found}
    assert by_check["operations", ""] == "cast, quantize, sweep; sweeps in payloads"
    assert by_check["not offered", ""].startswith("bfloat16, float8e4m3fn, ")
    assert by_check["cast", "float64"] == by_check["sweep", "uint16"] == "unchanged"
    assert ("sweep", "float64") not in by_check
    assert by_check["quantize", "float32 to int8"] == "right"
    assert by_check["quantize", "float16 to int8"].startswith("unsupported: only QuantizeLinear")
    assert not any(check == "dequantize" for check, _ in by_check)
    assert by_check["row", "longest sent"].startswith("524,288 elements of ")
    assert by_check["shape", "scalar"] == by_check["shape", "2x0x3"] == "answered"
    assert {subject for check, subject in by_check if check == "speed"} == {
        "single elements", "rows", "sweeps",
    }  # fmt: skip


def test_quantization_of_documents_that_are_not_claimed_is_not_asked(planted: Test) -> None:
    code, found, _ = planted(claims='"onnx-cast"')
    assert code == 0
    [result] = [each["result"] for each in found if each["check"] == "quantize"]
    assert result == "not asked: of its dtypes no case is claimed"


def test_speeds_that_happen_to_be_equal_have_lines_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "_rate", lambda ask: "7")
    _, out, _ = castigate("selftest", f"exec:{shlex.quote(sys.executable)} {PROGRAM}")
    lines = [line.removeprefix("speed").lstrip() for line in out.splitlines()]
    assert [line for line in lines if line.endswith("/s")] == [
        "single elements: 7 requests/s", "rows: 7 elements/s", "sweeps: 7 elements/s",
    ]  # fmt: skip


BYTES_SWAPPED = {"payload": "values.byteswap().tobytes()"}
SCALAR_AS_ROW = {"shape": '(request.get("shape") or [values.size])'}
SHORT_SWEEP = {"inputs": 'request["first"] + request["count"] - 1'}
LONG_ROWS_FAIL = {"cast": ".astype(target if len(elements) < 9**6 else None.name)"}
WRONG_WIDTH = {"cast": '.astype("float32")'}


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(
    ("replaced", "where", "result"),
    [
        (BYTES_SWAPPED, ("cast", "int16"), "0x0001 comes back as 0x0100 (65,280 of 65,536 are"),
        (SCALAR_AS_ROW, ("shape", "scalar"), "the answer has shape (1,), the input ()"),
        (SHORT_SWEEP, ("sweep", "int8"), "the answer has shape (0,), the input (1,)"),
        (LONG_ROWS_FAIL, ("row", "longest"), "131,072 elements of int32 are answered; 262,144: cr"),
        (WRONG_WIDTH, ("cast", "int8"), "crashed: "),
    ],
)
def test_what_the_protocol_requires_is_exit_code_1(
    replaced: dict[str, str], where: tuple[str, str], result: str, planted: Test
) -> None:
    code, found, err = planted(**replaced)
    assert (code, err) == (1, "")
    assert result in broken(found)[where]


@pytest.mark.parametrize(
    ("deed", "result"),
    [
        ("another-shape", "invalid answer: the answer has shape (255,), the input (256,)"),
        ("exit", "crashed: on 0x95: the process ended by itself with code 7"),
        pytest.param(
            "huge-payload",
            "crashed: on 0x95: the process sent an invalid reply: a payload of",
            marks=pytest.mark.nightly,  # a crash like `exit`, which tests/wire has in CI
        ),
        ("markup", "error: "),
    ],
)
def test_a_hostile_program_is_broken(deed: str, result: str) -> None:
    code, found, err = results(f"exec:{shlex.quote(sys.executable)} {HOSTILE} {deed}")
    assert (code, err) == (1, "")
    assert broken(found)["cast", "int8"].startswith(result)
    # It starts only if shared memory is offered.
    assert "KeyError: 'memory'" in broken(found)["hello", "without shared memory"]


@pytest.mark.parametrize("backend", ["ort", "ml_dtypes"])
def test_an_adapter_of_ours_is_ready(backend: str) -> None:
    code, found, _ = results(backend)
    assert (code, broken(found)) == (0, {})
    by_check = {(each["check"], each["subject"]): each["result"] for each in found}
    assert by_check["sweep", "float16"] == by_check["sweep", "int8"] == "unchanged"


CLAIMS_ONE_DOCUMENT = """\
class Adapter:
    name, version, claims = "adapter", "1", ("mx-blocks",)
    def cast(self, case, bits): raise RuntimeError("no casts")
"""


def test_an_error_where_nothing_is_claimed_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "adapter.py"
    file.write_text(CLAIMS_ONE_DOCUMENT)
    _, found, _ = results(f"{file}:Adapter")
    assert ("cast", "float32") not in broken(found)
    file.write_text(CLAIMS_ONE_DOCUMENT.replace("mx-blocks", "onnx-cast"))
    _, found, _ = results(f"{file}:Adapter")
    assert broken(found)["cast", "float32"] == "error: RuntimeError: no casts"


def test_a_program_that_declines_everything_is_exit_code_3(planted: Test) -> None:
    code, found, err = planted(mode="if True:", quantized="()")
    assert (code, err, broken(found)) == (3, "", {})
    assert {each["result"] for each in found if each["check"] == "cast"} == {
        "unsupported: astype takes no"
    }


def test_a_program_without_identities_is_timed_on_another_cast(planted: Test) -> None:
    code, found, _ = planted(mode="if source == target:")
    assert (code, broken(found)) == (0, {})
    assert any(each["check"] == "speed" for each in found)
    [values] = [each["result"] for each in found if each["check"] == "values"]
    assert values.startswith("unchecked, as is the order of bytes: only casts like ")


def test_a_program_that_does_not_start_is_one_line_with_its_reason(planted: Test) -> None:
    failing = 'raise RuntimeError("no device")\n' + PARTS["start"]
    code, found, err = planted(start=failing)
    assert (code, found, err.count("\n")) == (2, [], 1)
    assert "ended by itself with code 1 (RuntimeError: no device) before its first task" in err


@pytest.mark.parametrize("name", ["exec:", "exec:./no-such-vendor", "no-such-backend"])
def test_a_wrong_name_is_one_line(name: str) -> None:
    code, out, err = castigate("selftest", name)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_terminal_gets_subjects_with_one_result_together() -> None:
    code, out, err = castigate("selftest", "reference")
    assert (code, err) == (0, "")
    assert "bool, string: unchanged" in " ".join(out.split())
    assert out.splitlines()[-1].startswith("ready: castigate run --backend reference ")
    assert max(map(len, out.splitlines())) <= 100


def test_every_dtype_that_some_document_gives_back_has_a_case() -> None:
    backend = load_backend("reference")
    asked = {
        (operation, form.name)
        for operation in ("cast", "bitcast")
        for form in formats().values()
        if checks.identity_case(backend, operation, form, sample_patterns(form))
    }
    missing = {name for name in formats() if not {("cast", name), ("bitcast", name)} & asked}
    assert missing == set()


def test_after_a_silence_no_further_dtype_is_asked(planted: Test) -> None:
    silent = "if question['ask'] == 'cast': __import__('time').sleep(60)\n    if mode:"
    code, found, _ = planted(mode=silent.replace("question", "request"), options=("--timeout=0.3",))
    assert code == 1
    casts = [each["result"] for each in found if each["check"] == "cast"]
    assert "silent for 0.3 s" in casts[0]
    assert set(casts[1:]) == {"not asked after this silence"}
    assert not any(each["check"] in ("row", "shape", "speed") for each in found)
