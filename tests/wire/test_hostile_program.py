"""Whatever a program does on the wire ends in a verdict, or in one line where it only begins."""

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

from conformance.judging.meeting import Meeting, Settings
from conformance.running.selection import case_named
from oracles.isolation.launch_config import LaunchConfig
from oracles.isolation.loading import close, load_isolated
from oracles.isolation.remote_errors import Crashed
from oracles.protocol import Unsupported
from oracles.registry import Backend
from oracles.wire.stderr_log import KEPT
from specs.errors import CastigateError
from tests.conformance.processes import castigate, children, end_of, run, verdicts

HOSTILE = Path(__file__).with_name("data") / "hostile.py"
CASE = case_named("onnx-cast:25/int8/int4")
GUILTY = 0x95
FEW = np.array([0x01, 0x7F, 0x80, 0xFF, GUILTY], np.uint8)
HARMLESS = FEW[:-1]
SECONDS = 3.0
"""So long is a program waited for; one that answers takes a fraction of it."""
NONSENSE = "the process wrote something else than answers: "
SILENT = "the process was silent for 3 s"
NO_ANSWER = NONSENSE + "not an answer of the protocol "
Hostile = Callable[[str], Backend]


def name_of(deed: str) -> str:
    return f"exec:{shlex.quote(sys.executable)} {shlex.quote(str(HOSTILE))} {deed}"


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    """Gives hostile programs; nothing of them is left afterwards."""
    made: list[Backend] = []

    def give(deed: str) -> Backend:
        made.append(load_isolated(name_of(deed), LaunchConfig(seconds=SECONDS)))
        return made[-1]

    before = set(children(os.getpid()))
    yield give
    for backend in made:
        close(backend)
    assert set(children(os.getpid())) == before


def assert_answered(oracle: Any) -> None:
    assert oracle.cast(CASE, HARMLESS).tolist() == (HARMLESS & 15).tolist()


DEATHS = {
    "fewer-elements": NONSENSE + "0 bytes of 1 elements of uint8, 1 bytes each",
    "more-elements": NONSENSE + "2 bytes of 1 elements of uint8, 1 bytes each",
    "negative-shape": NO_ANSWER + "(values.shape.0: greater_than_equal)",
    "endless-shape": NONSENSE + "an array without its number of bytes, or of too many elements",
    "rank-of-thousands": NO_ANSWER + "(values.shape: too_long)",
    "shape-of-truth": NO_ANSWER + "(values.shape.0: int_type)",
    "huge-header": NONSENSE + "a header of 4294967295 bytes; 1048576 are the most",
    "huge-payload": NONSENSE + "a payload of 18446744073709551615 bytes; 1048576 are the most",
    "large-payload": NONSENSE + "a payload of 1073741824 bytes; 1048576 are the most",
    "no-json": NONSENSE + "a header is not JSON in UTF-8",
    "nan-json": NONSENSE + "a header is not JSON in UTF-8",
    "deep-json": NONSENSE + "a header is not JSON in UTF-8",
    "long-number": NONSENSE + "a header is not JSON in UTF-8",
    "a-list": NONSENSE + "a header is not a JSON object",
    "a-surrogate": NO_ANSWER + "(error.text: string_unicode)",
    "unknown-answer": NO_ANSWER + "(header: union_tag_invalid)",
    "unknown-member": NO_ANSWER + "(values.path: extra_forbidden)",
    "no-number": NONSENSE + "an answer to another question",
    "number-of-another-kind": NONSENSE + "an answer to another question",
    "earlier-number": NONSENSE + "an answer to another question",
    "later-number": NONSENSE + "an answer to another question",
    "hello-again": NONSENSE + "an answer `hello` that was not asked for",
    "bye-unasked": NONSENSE + "an answer `bye` that was not asked for",
    "error-with-payload": NONSENSE + "an answer `error` with a payload",
    "memory-of-others": NONSENSE + "an answer in memory that was not given to it",
    "endless-reason": NONSENSE + "a header of 2097207 bytes; 1048576 are the most",
    "long-reason": NO_ANSWER + "(unsupported.reason: string_too_long)",
    "half-and-exit": "the process ended by itself with code 0",
    "half-and-stay": NONSENSE + "the stream ends within a frame",
    "start-and-exit": "the process ended by itself with code 9",
    "header-and-exit": "the process ended by itself with code 0",
    "exit": "the process ended by itself with code 7",
    "close": "the process closed its pipe",
    "print": NONSENSE + "a frame begins with b'CST1', this with b'0 in'",
    "flood-of-stdout": NONSENSE + "a frame begins with b'CST1', this with b'\\x80 \\x1b['",
    "drip": SILENT,
    "silence": SILENT,
    "on-stderr": SILENT,
    "flood-of-stderr": SILENT,
}


@pytest.mark.parametrize("deed", DEATHS)
def test_what_is_no_answer_is_a_crash_on_the_guilty_input(deed: str, hostile: Hostile) -> None:
    oracle = hostile(deed).oracle
    assert_answered(oracle)
    with pytest.raises(Crashed) as caught:
        oracle.cast(CASE, FEW)
    said = str(caught.value)
    # A length depends on the number of the question.
    wanted = re.sub("2097207", r"\\d+", re.escape(DEATHS[deed]))
    assert re.fullmatch(wanted, said), said
    assert "\n" not in said
    assert caught.value.inputs is not None
    assert caught.value.inputs.tolist() == [GUILTY]
    assert_answered(oracle)


@pytest.mark.parametrize("deed", ["much-stderr", "twice", "in-turn", "shrink"])
def test_what_is_an_answer_is_taken(deed: str, hostile: Hostile) -> None:
    oracle = hostile(deed).oracle
    for _ in range(2):
        assert oracle.cast(CASE, FEW).tolist() == (FEW & 15).tolist()
        assert_answered(oracle)


def test_stderr_is_kept_in_part(hostile: Hostile) -> None:
    oracle: Any = hostile("much-stderr").oracle
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    oracle.cast(CASE, FEW)
    oracle.cast(CASE, HARMLESS)
    assert oracle.log.size > 50 << 20
    assert len(oracle.log.content) < 2 * KEPT + 100
    assert oracle.log.content.startswith(b"\x80 \x1b[31mnoise\n")
    assert b"bytes are left out]" in oracle.log.content
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10


def test_memory_that_was_given_cannot_be_taken_away(hostile: Hostile) -> None:
    oracle: Any = hostile("shrink").oracle
    assert oracle.sweep(CASE, 0, 256)(0, 256).tolist() == [code & 15 for code in range(256)]
    assert_answered(oracle)
    assert b"PermissionError" in oracle.log.content


def test_a_death_in_a_sweep_names_the_guilty_input(hostile: Hostile) -> None:
    oracle: Any = hostile("exit").oracle
    harmless = oracle.sweep(CASE, 0, GUILTY)
    assert harmless(0, GUILTY).tolist() == [code & 15 for code in range(GUILTY)]
    with pytest.raises(Crashed, match="ended by itself with code 7") as caught:
        oracle.sweep(CASE, 0, 256)(0, 256)
    assert caught.value.inputs is not None
    assert caught.value.inputs.tolist() == [GUILTY]


def test_another_shape_and_an_error_are_verdicts(hostile: Hostile) -> None:
    backend = hostile("another-shape")
    judgement = Meeting(backend, {}, Settings()).judge(CASE)
    assert judgement.verdict == "error"
    assert judgement.message == "the answer has shape (255,), the input (256,)"
    judgement = Meeting(hostile("markup"), {}, Settings()).judge(CASE)
    assert judgement.verdict == "error"
    assert "<script>" in judgement.message
    assert judgement.message.isprintable()


def test_an_operation_or_dtype_that_it_has_not_is_unsupported(hostile: Hostile) -> None:
    oracle = hostile("right").oracle
    with pytest.raises(Unsupported, match="hostile has no int16"):
        oracle.cast(case_named("onnx-cast:25/int16/int4"), FEW.astype(np.uint16))


HELLOS = {
    "hello-banner": " wrote something else than answers: a frame begins with b'CST1', this with",
    "hello-exit": " ended by itself with code 3 (no device) before its first task",
    "hello-silence": " was silent for 3 s before its first task",
    "hello-drip": " was silent for 3 s before its first task",
    "hello-huge": " wrote something else than answers: a header of 4294967295 bytes; 1048576 are",
    "hello-half": " ended by itself with code 0 before its first task",
    "hello-payload": " wrote something else than answers: a payload of 1 bytes; 0 are the most",
    "hello-nameless": ": its hello is not an answer of the protocol (hello.name: missing)",
    "hello-red": ": its hello is not an answer of the protocol (hello.name: string_pattern_",
    "hello-extra": ": its hello is not an answer of the protocol (hello.exec: extra_forbidden)",
    "hello-protocol": " speaks protocol 2; this Castigate speaks 1",
    "hello-number": ": its first answer is no hello with the number of the question",
    "hello-dtype": ": its hello names a dtype that is none: ",
    "hello-claim": " claims `onnx-casts`, which is no document",
    "hello-operation": ": its hello is not an answer of the protocol (hello.operations.0: literal",
    "hello-error": ": it answers hello by an error: no licence <b>",
    "hello-values": ": its first answer is no hello",
    "hello-flood": " was silent for 3 s",
}


@pytest.mark.parametrize("deed", HELLOS)
def test_a_bad_beginning_is_one_line(deed: str) -> None:
    with pytest.raises(CastigateError) as caught:
        load_isolated(name_of(deed), LaunchConfig(seconds_to_begin=SECONDS))
    said = str(caught.value)
    assert said.startswith(f"backend `{name_of(deed)}`{HELLOS[deed]}"), said
    assert said.isprintable()


def test_who_ignores_bye_is_ended(hostile: Hostile) -> None:
    before = set(children(os.getpid()))
    backend = hostile("no-bye")
    assert_answered(backend.oracle)
    [child] = set(children(os.getpid())) - before
    close(backend)
    assert end_of([child]) == []
    assert_answered(backend.oracle)


@pytest.mark.parametrize("deed", ["exit", "huge-payload", "flood-of-stderr", "later-number"])
def test_a_run_goes_on_to_its_end(deed: str, tmp_path: Path) -> None:
    given = (f"--backend={name_of(deed)}", "--document=onnx-cast:25", "--source=int8")
    assert run(tmp_path / "run", *given, "--target=int4", f"--timeout={SECONDS}") == 1
    found = verdicts(tmp_path / "run")
    assert found[CASE.id] == "crashed"


@pytest.mark.parametrize("deed", ["hello-banner", "hello-exit", "hello-half"])
def test_a_run_of_who_cannot_begin_is_one_line(deed: str, tmp_path: Path) -> None:
    given = (f"--backend={name_of(deed)}", f"--out={tmp_path / 'run'}")
    code, out, err = castigate("run", *given)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith(f"castigate: backend `{name_of(deed)}`")
