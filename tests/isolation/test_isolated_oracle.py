"""A crash of a planted backend names the guilty input, and the next request is answered."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.backend.remote_errors import ProcessDied
from oracles.protocol import WithBitcastMemory
from oracles.registry import Backend
from specs.errors import CastigateError
from specs.selection import case_named
from tests.conformance.processes import children, wait_for_ends

PLANTED = Path(__file__).with_name("data") / "planted.py"
CASE = case_named("onnx-cast:25/int8/int4")
WIDE = case_named("onnx-cast:25/uint32/uint8")
GUILTY, WIDE_GUILTY = 0x95, 0x01234567
INPUTS = np.array([0x01, 0x7F, 0x80, 0xFF, GUILTY], np.uint8)
HARMLESS = INPUTS[:-1]
MEMORY = 1 << 30
LoadPlanted = Callable[..., Any]


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLANTED_MARK", str(tmp_path / "mark"))
    return tmp_path / "mark"


@pytest.fixture
def planted(mark: Path) -> Iterator[LoadPlanted]:
    """Load planted backends; afterwards, none of their processes is left."""
    loaded: list[Backend] = []

    def load(name: str, seconds: float = 30.0, memory: int = MEMORY) -> Any:
        backend = load_isolated(f"{PLANTED}:{name}", LaunchConfig(seconds=seconds, memory=memory))
        loaded.append(backend)
        return backend.oracle

    before = set(children(os.getpid()))
    yield load
    for backend in loaded:
        close(backend)
    # No zombies either.
    assert set(children(os.getpid())) == before


def crash(oracle: Any, bits: Any = INPUTS, case: Any = CASE) -> ProcessDied:
    with pytest.raises(ProcessDied) as caught:
        oracle.cast(case, bits)
    return caught.value


def assert_answered(oracle: Any) -> None:
    assert oracle.cast(CASE, HARMLESS).tolist() == (HARMLESS & 15).tolist()


CRASHES = {
    "Segfaults": "the process was ended by SIGSEGV",
    "BreaksOff": "the process ended by itself with code 0",
    "BreaksOffAndStays": ("the process sent an invalid reply: the stream ends within a frame"),
    "Floods": ("the process sent an invalid reply: a frame starts with b'CST1', not b'\\x80noi'"),
    "SaysOtherWords": ("the process sent an invalid reply: an error without its kinds and text"),
    "AllocatesAndAborts": "the process was ended by SIGABRT",
    "ChattersAndDies": "the process was ended by SIGSEGV (the last word is [31mred[0m at …)",
    "ForksAndDies": "the process was ended by SIGSEGV",
    "ClosesAll": "the process ended by itself with code 2",
    "ClosesAllAndStays": "the process closed its pipe",
}


@pytest.mark.ci_runs_one_of(10)
@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_names_only_the_guilty_input(name: str, planted: LoadPlanted) -> None:
    oracle = planted(name)
    assert_answered(oracle)
    crashed = crash(oracle)
    assert str(crashed).replace("\\\\", "\\") == CRASHES[name]
    assert crashed.inputs is not None
    assert (crashed.inputs.tolist(), crashed.silent) == ([GUILTY], False)
    assert_answered(oracle)


@pytest.mark.nightly
def test_one_guilty_input_in_a_million_is_found(planted: LoadPlanted) -> None:
    million = np.arange(1_000_000, dtype=np.uint32) * np.uint32(4241)
    million[-3] = WIDE_GUILTY
    assert np.count_nonzero(million == WIDE_GUILTY) == 1
    oracle = planted("Segfaults")
    crashed = crash(oracle, million.reshape(1000, 1000), WIDE)
    assert crashed.inputs is not None
    assert crashed.inputs.tolist() == [WIDE_GUILTY]
    harmless = million[million != WIDE_GUILTY]
    assert oracle.cast(WIDE, harmless).tolist() == (harmless & 255).tolist()


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("place", [0, 2])
def test_the_guilty_input_is_found_at_any_place(place: int, planted: LoadPlanted) -> None:
    inputs = np.roll(INPUTS, place + 1)
    assert inputs[place] == GUILTY
    crashed = crash(planted("Segfaults"), inputs)
    assert crashed.inputs is not None
    assert crashed.inputs.tolist() == [GUILTY]


def test_a_timeout_names_only_the_guilty_input(planted: LoadPlanted) -> None:
    oracle = planted("Hangs", seconds=1.5)
    crashed = crash(oracle)
    assert str(crashed) == "the process was silent for 1.5 s"
    assert crashed.inputs is not None
    assert (crashed.inputs.tolist(), crashed.silent) == ([GUILTY], True)
    assert_answered(oracle)


@pytest.mark.ci_runs_one_of(5)
@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("Half", (INPUTS & 15)[:2]),
        ("OtherStorage", (INPUTS & 15).astype(np.float32)),
        ("Chatters", INPUTS & 15),
        ("ForksAndAnswers", INPUTS & 15),
        ("AnswersTwice", INPUTS & 15),
    ],
)
def test_an_answer_is_no_crash_whatever_comes_with_it(
    name: str, answers: Any, planted: LoadPlanted
) -> None:
    oracle = planted(name)
    found = oracle.cast(CASE, INPUTS)
    assert (found.dtype, found.tolist()) == (answers.dtype, answers.tolist())
    assert_answered(oracle)
    assert_answered(oracle)


@pytest.mark.parametrize("name", ["ForksAndAnswers", "ForksAndDies"])
def test_a_child_of_the_process_ends_with_it(name: str, planted: LoadPlanted, mark: Path) -> None:
    oracle = planted(name)
    if name == "ForksAndDies":
        crash(oracle)
    else:
        oracle.cast(CASE, INPUTS)
    oracle.close()
    assert wait_for_ends([int(mark.read_text())]) == []


def test_a_lack_of_memory_is_an_error_and_the_next_process_has_it_all(
    planted: LoadPlanted,
) -> None:
    oracle = planted("Allocates")
    with pytest.raises(Exception, match="Unable to allocate") as caught:
        oracle.cast(CASE, INPUTS)
    assert "MemoryError" in type(caught.value).__name__
    assert_answered(oracle)


def test_memory_used_up_by_earlier_requests_is_no_error(planted: LoadPlanted) -> None:
    oracle = planted("Leaks")
    for _ in range(3):
        assert_answered(oracle)


def test_a_crash_that_does_not_repeat_is_ignored(planted: LoadPlanted) -> None:
    for name in ("DiesAtTheThird", "DiesAfterwards"):
        oracle = planted(name)
        for _ in range(4):
            assert_answered(oracle)


@pytest.mark.nightly
def test_a_crash_on_two_inputs_together_names_both(planted: LoadPlanted) -> None:
    inputs = np.array([0x01, 0x10, 0x02, 0x03, GUILTY, 0x04, 0x05, 0x06, 0x07], np.uint8)
    oracle = planted("DiesOfTwo")
    crashed = crash(oracle, inputs)
    assert crashed.inputs is not None
    assert {0x10, GUILTY} <= set(crashed.inputs.tolist())
    assert str(crashed) == "the process was ended by SIGSEGV"
    # If both are in one half, the crash names that half as a whole.
    crashed = crash(oracle, np.concatenate([inputs[1:5], HARMLESS]))
    assert crashed.inputs is not None
    assert crashed.inputs.tolist() == inputs[1:5].tolist()
    assert_answered(oracle)


def test_a_backend_that_crashes_at_random_is_mostly_answered(
    planted: LoadPlanted, mark: Path
) -> None:
    oracle = planted("DiesAtRandom")
    crashes: list[ProcessDied] = []
    for _ in range(8):
        try:
            assert_answered(oracle)
        except ProcessDied as crashed:
            crashes.append(crashed)
    assert len(crashes) < 4
    for crashed in crashes:
        assert crashed.inputs is not None
        assert set(crashed.inputs.tolist()) <= set(HARMLESS.tolist())
    # The mark counts the calls: some crashed and were repeated.
    assert mark.stat().st_size > 8


def test_a_backend_that_cannot_be_loaded_again_stays_crashed(planted: LoadPlanted) -> None:
    oracle = planted("LoadsOnce")
    assert_answered(oracle)
    crashed = crash(oracle)
    lost = f"no other could be started: backend `{PLANTED}:LoadsOnce`: OSError: the device is busy"
    assert str(crashed) == f"the process was ended by SIGSEGV; {lost}"
    assert crashed.inputs is not None
    assert crashed.inputs.tolist() == INPUTS.tolist()
    # A later crash names no inputs, since no process can be asked.
    later = crash(oracle, HARMLESS)
    assert (str(later), later.inputs) == (lost, None)


def test_a_backend_that_is_another_version_afterwards_stays_crashed(planted: LoadPlanted) -> None:
    oracle = planted("IsAnotherAfterwards")
    assert_answered(oracle)
    lost = f"backend `{PLANTED}:IsAnotherAfterwards` was planted 1, and is planted 2 now"
    assert f"no other could be started: {lost}" in str(crash(oracle))


def test_an_exit_on_each_part_leaves_the_crash_on_all_inputs(
    planted: LoadPlanted,
) -> None:
    crashed = crash(planted("RaisesInParts"))
    assert crashed.inputs is not None
    assert crashed.inputs.tolist() == INPUTS.tolist()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SpeaksWhileLoading", "sent an invalid reply: a frame starts with"),
        ("SaysNothingOfItself", "the description of the backend is incomplete"),
        ("ClosesAllWhileLoading", "ended by itself with code 2 (OSError: [Errno 9] Bad file"),
        ("LeavesWhileItsNameIsAsked", "ended by itself with code 5 before its first task"),
    ],
)
def test_a_failure_while_loading_is_one_line(name: str, message: str, planted: LoadPlanted) -> None:
    with pytest.raises(CastigateError, match=re.escape(message)) as caught:
        planted(name)
    assert str(caught.value).startswith(f"backend `{PLANTED}:{name}`")
    assert "\n" not in str(caught.value)


def test_a_closed_backend_answers_again(planted: LoadPlanted) -> None:
    oracle = planted("Right")
    oracle.close()
    oracle.close()
    assert_answered(oracle)


def test_shared_memory_is_reported_by_oracles_that_have_the_method(planted: LoadPlanted) -> None:
    oracle = planted("SharesOdd")
    assert isinstance(oracle, WithBitcastMemory)
    for bits in (np.array([3, 0], np.uint8), np.array([2, 1], np.uint8)):
        assert oracle.bitcast_shares_memory(CASE, bits) is bool(bits[0] & 1)
    assert not isinstance(planted("Right"), WithBitcastMemory)
