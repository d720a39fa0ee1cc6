"""Castigate turns each reply of a hostile program into a verdict, or into one line of error."""

from __future__ import annotations

import os
import re
import resource
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.backend import supervised_process
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.backend.remote_errors import MAX_TEXT, ProcessDied
from oracles.backend.supervised_process import MAX_BYTES
from oracles.protocol import Unsupported
from oracles.registry import Backend
from oracles.wire.schema import parse_answer
from specs.errors import CastigateError
from specs.selection import case_named
from tests.conformance.processes import castigate, children, run, verdicts, wait_for_ends

HOSTILE = Path(__file__).with_name("data") / "hostile.py"
CASE = case_named("onnx-cast:25/int8/int4")
GUILTY = 0x95
INPUTS = np.array([0x01, 0x7F, 0x80, 0xFF, GUILTY], np.uint8)
HARMLESS = INPUTS[:-1]
SECONDS = 3.0
"""The timeout; a program that answers takes a fraction of it."""
INVALID = "the process sent an invalid reply: "
TIMED_OUT = "the process was silent for 3 s"
BAD_HELLO = ": its hello is not an answer of the protocol "
NOT_AN_ANSWER = INVALID + "not an answer of the protocol "
LoadHostile = Callable[[str], Backend]


def backend_name(deed: str) -> str:
    return f"exec:{shlex.quote(sys.executable)} {shlex.quote(str(HOSTILE))} {deed}"


@pytest.fixture
def hostile() -> Iterator[LoadHostile]:
    """Load hostile programs; afterwards, none of their processes is left."""
    loaded: list[Backend] = []

    def load(deed: str) -> Backend:
        loaded.append(load_isolated(backend_name(deed), LaunchConfig(seconds=SECONDS)))
        return loaded[-1]

    before = set(children(os.getpid()))
    yield load
    for backend in loaded:
        close(backend)
    assert set(children(os.getpid())) == before


def assert_answered(oracle: Any) -> None:
    assert oracle.cast(CASE, HARMLESS).tolist() == (HARMLESS & 15).tolist()


CRASHES = {
    "fewer-elements": INVALID + "0 bytes for 1 elements of uint8, 1 bytes each",
    "more-elements": INVALID + "2 bytes for 1 elements of uint8, 1 bytes each",
    "negative-shape": NOT_AN_ANSWER
    + "(values.shape.0: Input should be greater than or equal to 0)",
    "endless-shape": INVALID + "an array without its number of bytes, or with too many elements",
    "rank-of-thousands": NOT_AN_ANSWER
    + "(values.shape: List should have at most 64 items after validation, not 5000)",
    "shape-of-truth": NOT_AN_ANSWER + "(values.shape.0: Input should be a valid integer)",
    "huge-header": INVALID + "a header of 4294967295 bytes; at most 1048576 are allowed",
    "huge-payload": INVALID
    + "a payload of 18446744073709551615 bytes; at most 1048576 are allowed",
    "large-payload": INVALID + "a payload of 1073741824 bytes; at most 1048576 are allowed",
    "no-json": INVALID + "a header is not JSON in UTF-8",
    "nan-json": INVALID + "a header is not JSON in UTF-8",
    "deep-json": INVALID + "a header is not JSON in UTF-8",
    "long-number": INVALID + "a header is not JSON in UTF-8",
    "key-twice": INVALID + "a header has the key `number` twice",
    "a-list": INVALID + "a header is not a JSON object",
    "a-surrogate": NOT_AN_ANSWER
    + "(error.text: Input should be a valid string, unable to parse raw data as a unicode string)",
    "unknown-answer": NOT_AN_ANSWER
    + "(header: Input tag '"
    + r"\u001b[31m" * 9
    + "' found using 'answer' d…tags: 'hello', 'values', 'tensors', 'unsupported', 'error', 'bye')",
    "unknown-member": NOT_AN_ANSWER + "(values.path: the protocol has no such member)",
    "no-number": INVALID + "an answer to another question",
    "number-of-another-kind": INVALID + "an answer to another question",
    "earlier-number": INVALID + "an answer to another question",
    "later-number": INVALID + "an answer to another question",
    "hello-again": INVALID + "an answer `hello` that was not asked for",
    "bye-unasked": INVALID + "an answer `bye` that was not asked for",
    "error-with-payload": INVALID + "an answer `error` with a payload",
    "memory-of-others": INVALID + "an answer in memory that was not offered for it",
    "endless-reason": INVALID + "a header of 2097207 bytes; at most 1048576 are allowed",
    "half-and-exit": "the process ended by itself with code 0",
    "half-and-stay": INVALID + "the stream ends within a frame",
    "start-and-exit": "the process ended by itself with code 9",
    "header-and-exit": "the process ended by itself with code 0",
    "exit": "the process ended by itself with code 7",
    "close": "the process closed its pipe",
    "print": INVALID + "a frame starts with b'CST1', not b'0 in'",
    "flood-of-stdout": INVALID + "a frame starts with b'CST1', not b'\\x80 \\x1b['",
    "drip": TIMED_OUT,
    "silence": TIMED_OUT,
    "on-stderr": TIMED_OUT,
    "flood-of-stderr": TIMED_OUT,
}


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize("deed", CRASHES)
def test_an_invalid_reply_is_a_crash_on_the_guilty_input(deed: str, hostile: LoadHostile) -> None:
    oracle = hostile(deed).oracle
    assert_answered(oracle)
    with pytest.raises(ProcessDied) as caught:
        oracle.cast(CASE, INPUTS)
    message = str(caught.value)
    # The length of this header depends on the number of digits of the request's number.
    expected = re.sub("2097207", r"\\d+", re.escape(CRASHES[deed]))
    assert re.fullmatch(expected, message), message
    assert "\n" not in message
    assert caught.value.inputs is not None
    assert caught.value.inputs.tolist() == [GUILTY]
    assert_answered(oracle)


def test_a_long_reason_is_cut(hostile: LoadHostile) -> None:
    oracle = hostile("long-reason").oracle
    with pytest.raises(Unsupported) as caught:
        oracle.cast(CASE, INPUTS)
    assert str(caught.value) == "x" * MAX_TEXT
    assert_answered(oracle)


def test_an_error_whose_kind_is_no_name_is_an_error() -> None:
    header = {"answer": "error", "number": 1, "text": "no", "kind": "no such name"}
    assert parse_answer(header).kind == "Error"


@pytest.mark.parametrize("deed", ["much-stderr", "twice", "in-turn", "shrink"])
def test_a_valid_answer_counts_whatever_comes_with_it(deed: str, hostile: LoadHostile) -> None:
    oracle = hostile(deed).oracle
    for _ in range(2):
        assert oracle.cast(CASE, INPUTS).tolist() == (INPUTS & 15).tolist()
        assert_answered(oracle)


def test_the_log_of_stderr_is_bounded(hostile: LoadHostile) -> None:
    oracle: Any = hostile("much-stderr").oracle
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    oracle.cast(CASE, INPUTS)
    oracle.cast(CASE, HARMLESS)
    assert oracle.log.size > 50 << 20
    assert len(oracle.log.content) < 2 * MAX_BYTES + 100
    assert oracle.log.content.startswith(b"\x80 \x1b[31mnoise\n")
    assert b"bytes are left out]" in oracle.log.content
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10


def test_a_program_cannot_shrink_the_shared_memory(hostile: LoadHostile) -> None:
    oracle: Any = hostile("shrink").oracle
    assert oracle.sweep(CASE, 0, 256)(0, 256).tolist() == [code & 15 for code in range(256)]
    assert_answered(oracle)
    assert b"PermissionError" in oracle.log.content


def test_a_crash_in_a_sweep_names_the_guilty_input(hostile: LoadHostile) -> None:
    oracle: Any = hostile("exit").oracle
    harmless = oracle.sweep(CASE, 0, GUILTY)
    assert harmless(0, GUILTY).tolist() == [code & 15 for code in range(GUILTY)]
    with pytest.raises(ProcessDied, match="ended by itself with code 7") as caught:
        oracle.sweep(CASE, 0, 256)(0, 256)
    assert caught.value.inputs is not None
    assert caught.value.inputs.tolist() == [GUILTY]


def test_a_wrong_shape_and_an_error_are_verdicts(hostile: LoadHostile) -> None:
    backend = hostile("another-shape")
    judgement = BackendJudge(backend, {}, Settings()).judge(CASE)
    assert judgement.verdict == "error"
    assert judgement.message == "the answer has shape (255,), the input (256,)"
    judgement = BackendJudge(hostile("markup"), {}, Settings()).judge(CASE)
    assert judgement.verdict == "error"
    assert "<script>" in judgement.message
    assert judgement.message.isprintable()


def test_a_dtype_that_the_program_does_not_list_is_unsupported(hostile: LoadHostile) -> None:
    oracle = hostile("right").oracle
    with pytest.raises(Unsupported, match="hostile has no int16"):
        oracle.cast(case_named("onnx-cast:25/int16/int4"), INPUTS.astype(np.uint16))


HELLOS = {
    "hello-banner": " sent an invalid reply: a frame starts with b'CST1', not b",
    "hello-exit": " ended by itself with code 3 (no device) before its first task",
    "hello-silence": " was silent for 3 s before its first task",
    "hello-drip": " was silent for 3 s before its first task",
    "hello-huge": " sent an invalid reply: a header of 4294967295 bytes; at most 1048576 are",
    "hello-half": " ended by itself with code 0 before its first task",
    "hello-payload": " sent an invalid reply: a payload of 1 bytes; at most 0 are allowed",
    "hello-nameless": BAD_HELLO + "(hello.name: this member is missing)",
    "hello-red": BAD_HELLO + "(hello.name: String should match pattern",
    "hello-extra": BAD_HELLO + "(hello.exec: the protocol has no such member)",
    "hello-protocol": " speaks protocol 2; this Castigate speaks 1",
    "hello-number": ": its first answer is not a hello with number 1",
    "hello-dtype": ": its hello names an unknown dtype: ",
    "hello-twice": BAD_HELLO + "(hello.dtypes: Value error, a word is listed twice)",
    "hello-many": BAD_HELLO + "(hello.claims: List should have at most 1000 items",
    "hello-claim": " claims `onnx-casts`, which is no document",
    "hello-operation": BAD_HELLO
    + "(hello.operations.0: Input should be 'cast', 'sweep', 'bitcast' or 'quantize')",
    "hello-error": ": it answers hello by an error: no licence <b>",
    "hello-values": ": its first answer is not a hello",
    "hello-flood": " was silent for 3 s",
}


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("deed", HELLOS)
def test_a_failed_handshake_is_one_line(deed: str) -> None:
    with pytest.raises(CastigateError) as caught:
        load_isolated(backend_name(deed), LaunchConfig(startup_seconds=SECONDS))
    message = str(caught.value)
    assert message.startswith(f"backend `{backend_name(deed)}`{HELLOS[deed]}"), message
    assert message.isprintable()


def test_a_program_that_does_not_say_hello_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supervised_process, "SILENT_SECONDS", 0.1)
    with pytest.raises(CastigateError, match="was silent for 1 s"):
        load_isolated("exec:sleep 60", LaunchConfig(startup_seconds=1))
    assert capfd.readouterr().err == (
        "castigate: `exec:sleep 60` has not said hello after 0.1 s; waiting for up to 1 s "
        "(docs/protocol.md)\n"
    )


def test_an_adapter_that_does_not_load_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(supervised_process, "SILENT_SECONDS", 0.1)
    file = tmp_path / "endless.py"
    file.write_text("import time\ntime.sleep(600)")
    with pytest.raises(CastigateError, match="was silent for 2 s"):
        load_isolated(f"{file}:Adapter", LaunchConfig(startup_seconds=2))
    expected = f"loading {file}:Adapter takes over 0.1 s; waiting for up to 2 s\n"
    assert capfd.readouterr().err == expected


def test_a_program_that_ignores_bye_is_killed(hostile: LoadHostile) -> None:
    before = set(children(os.getpid()))
    backend = hostile("no-bye")
    assert_answered(backend.oracle)
    [child] = set(children(os.getpid())) - before
    close(backend)
    assert wait_for_ends([child]) == []
    assert_answered(backend.oracle)


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("deed", ["exit", "huge-payload", "flood-of-stderr", "later-number"])
def test_a_run_goes_on_after_a_crash(deed: str, tmp_path: Path) -> None:
    options = (f"--backend={backend_name(deed)}", "--document=onnx-cast:25", "--source=int8")
    more = ("--target=int4", f"--timeout={SECONDS}", "--jobs=1")
    assert run(tmp_path / "run", *options, *more) == 1
    found = verdicts(tmp_path / "run")
    assert found[CASE.id] == "crashed"


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("deed", ["hello-banner", "hello-exit", "hello-half"])
def test_castigate_run_prints_a_failed_handshake_in_one_line(deed: str, tmp_path: Path) -> None:
    options = (f"--backend={backend_name(deed)}", f"--out={tmp_path / 'run'}")
    code, out, err = castigate("run", *options)
    [line] = err.splitlines()
    assert (code, out) == (2, "")
    assert line.startswith(f"castigate: backend `{backend_name(deed)}`")
