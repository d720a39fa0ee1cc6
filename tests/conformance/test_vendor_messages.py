"""What a vendor is told of mistakes in an adapter: what, at which line, and what to do."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import castigate as api
from conformance.judging.verdicts import problem_of
from conformance.running import progress
from conformance.running.plan import Task
from oracles.backend.remote_errors import SILENT, decode_error, encode_error
from oracles.backend.replies import Malformed, Raised, Unanswered, stored
from oracles.protocol import Unsupported
from oracles.registry import file_of, load_oracle
from reports.findings.causes import Failure, find_causes
from reports.findings.cells import Cell
from reports.findings.judged_cells import cell_of
from reports.gate.fault_comparison import fails_alike
from reports.judgement import Judgement
from reports.outputs.annotations import annotation
from reports.problem_words import words
from reports.problems import Died, Problem, Refused
from specs.errors import CastigateError
from specs.formats import format_named
from specs.model.yaml_file import read_yaml
from specs.selection import case_named

CASE = case_named("onnx-cast:25/float16/int8")
STACK = """\
import stack_helper


class Base:
    name = "stack"


class Stack(Base):
    def __init__(self):
        self.version = "1"

    def cast(self, case, bits):
        return self.convert(bits)

    def convert(self, bits):
        stack_helper.fail(bits)


class Other:
    name, version = "other", "1"

    def cast(self, case):
        return case


class NotText(Stack):
    def __init__(self):
        self.version = 1
"""


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    Path("stack.py").write_text(STACK)
    Path("stack_helper.py").write_text("def fail(bits):\n    raise ValueError('boom')\n")
    return "stack.py"


def cell(problem: Problem, verdict: Any = "error") -> Cell:
    return cell_of(CASE, Judgement(CASE.id, "b", verdict, (problem,)), ())


def sent(error: BaseException) -> Problem:
    """The problem that a judge makes of an error of the backend's process."""
    decoded = decode_error(encode_error(error))
    assert isinstance(decoded, Exception)
    return problem_of(Raised(decoded))


def test_an_error_names_the_innermost_line_of_the_adapter(stack: str) -> None:
    with pytest.raises(ValueError, match="boom") as raised:
        load_oracle(f"{stack}:Stack").cast(CASE, np.zeros(1, np.uint16))
    line = STACK.splitlines().index("        stack_helper.fail(bits)") + 1
    # pytest's own frame is outermost here; a backend's process calls from oracles/backend.
    error = raised.value.with_traceback(raised.tb.tb_next)
    problem = sent(error)
    assert words(problem) == f"ValueError: boom (stack.py:{line})"
    [(cause, says)] = find_causes([Failure(cell(problem), None, problem)])
    assert (cause.name, says) == ("raises-ValueError", f"raises ValueError: boom (stack.py:{line})")


def test_the_line_says_nothing_of_whether_an_error_is_known() -> None:
    before, now = (cell(Refused("ValueError", "boom", place=f"a.py:{line}")) for line in (1, 2))
    assert fails_alike(before, now, None)


def test_an_error_of_an_own_adapter_has_no_line() -> None:
    with pytest.raises(AttributeError) as raised:
        load_oracle("ml_dtypes").cast(CASE, "no bits")  # type: ignore[arg-type]
    error = raised.value.with_traceback(raised.tb.tb_next)
    assert words(sent(error)) == f"AttributeError: {error}"


def test_who_raises_not_implemented_is_told_how_to_decline() -> None:
    own = Refused("NotImplementedError", "NotImplementedError", place="a.py:1")
    declines = "raise castigate.Unsupported to decline a case"
    assert words(own) == f"NotImplementedError; {declines} (a.py:1)"
    assert words(replace(own, line="no", place="")) == "NotImplementedError: no"
    assert api.Unsupported is Unsupported


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        ("int8", "the answer is an array of int8; return its bits: y.view(np.uint8)"),
        ("bool", "the answer is an array of bool; return its bits: y.view(np.uint8)"),
        ("int64", "the answer's storage is int64, int8 is held in uint8"),
    ],
)
def test_an_array_of_numbers_is_told_how_to_give_its_bits(dtype: str, message: str) -> None:
    with pytest.raises(Unanswered) as raised:
        stored(format_named("int8"), np.zeros(1, dtype))
    assert raised.value.answer == Malformed(message)


def load_error(name: str) -> str:
    with pytest.raises(CastigateError) as raised:
        load_oracle(name)
    return str(raised.value)


def test_a_class_is_told_what_it_lacks(stack: str) -> None:
    assert load_error(f"{stack}:Base").endswith(
        "it lacks version and cast; add version = '1.0' and cast(self, case, bits)"
    )
    assert "its version is no text" in load_error(f"{stack}:NotText")
    assert load_error(f"{stack}:Other").endswith(
        "cast takes (case), but it is called with a case and its bits;"
        " write def cast(self, case, bits)"
    )


def test_only_classes_that_can_be_judged_are_suggested(stack: str) -> None:
    assert load_error(stack).endswith("add its class: stack.py:Stack")
    assert "; did you mean the file stack.py:Stack? " in load_error("stack:Stack")
    Path("empty.py").write_text("class Base:\n    name = 'x'\n")
    assert "no class in it has name, version and cast(case, bits)" in load_error("empty.py")


def test_an_annotation_stands_beside_the_adapter(stack: str, tmp_path: Path) -> None:
    assert file_of(f"{tmp_path / stack}:Stack") == file_of(f"./{stack}:Stack") == "stack.py"
    assert file_of("ort") == file_of("exec:./stack.py:x") == ""
    line = annotation("error", "a: b", "text", "a,b.py")
    assert line == "::error file=a%2Cb.py,title=a%3A b::text"


def test_a_process_that_is_silent_hangs() -> None:
    died = Died(f"on 0x0000: the process {SILENT} 2 s")
    [(cause, says)] = find_causes([Failure(cell(died, "crashed"), None, died)])
    assert (cause.name, says) == ("hangs", "it hangs: on 0x0000: the process was silent for 2 s")


def test_a_file_that_does_not_exist_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(CastigateError) as raised:
        read_yaml(tmp_path / "no.yaml")
    assert str(raised.value) == f"{tmp_path / 'no.yaml'}: there is no such file"


def test_progress_is_not_repeated_while_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    reporter = progress.ProgressReporter(Console(file=shown, width=200), None)
    reporter.begin("vendor", [Task("one", ())])
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    for _ in range(3):
        reporter.add_inputs(0, 0)
    assert shown.getvalue().count("0 of 1 task,") == 1
