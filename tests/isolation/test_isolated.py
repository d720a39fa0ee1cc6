"""A planted backend's death is told of the input that is guilty; the next question is answered."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.running.selection import case_named
from oracles.isolation.launch_config import Home
from oracles.isolation.loading import close, load_isolated
from oracles.isolation.remote_errors import Crashed
from oracles.protocol import WithBitcastMemory
from oracles.registry import Backend
from specs.errors import CastigateError
from tests.conformance.processes import children, end_of

PLANTED = Path(__file__).with_name("data") / "planted.py"
CASE = case_named("onnx-cast:25/int8/int4")
WIDE = case_named("onnx-cast:25/uint32/uint8")
GUILTY, WIDE_GUILTY = 0x95, 0x01234567
FEW = np.array([0x01, 0x7F, 0x80, 0xFF, GUILTY], np.uint8)
HARMLESS = FEW[:-1]
MEMORY = 1 << 30
Planted = Callable[..., Any]


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLANTED_MARK", str(tmp_path / "mark"))
    return tmp_path / "mark"


@pytest.fixture
def planted(mark: Path) -> Iterator[Planted]:
    """Gives planted backends; nothing of them is left afterwards."""
    made: list[Backend] = []

    def give(name: str, seconds: float = 30.0, memory: int = MEMORY) -> Any:
        backend = load_isolated(f"{PLANTED}:{name}", Home(seconds=seconds, memory=memory))
        made.append(backend)
        return backend.oracle

    before = set(children(os.getpid()))
    yield give
    for backend in made:
        close(backend)
    # Not even dead ones that nobody has buried.
    assert set(children(os.getpid())) == before


def crash(oracle: Any, bits: Any = FEW, case: Any = CASE) -> Crashed:
    with pytest.raises(Crashed) as caught:
        oracle.cast(case, bits)
    return caught.value


def assert_answered(oracle: Any) -> None:
    assert oracle.cast(CASE, HARMLESS).tolist() == (HARMLESS & 15).tolist()


DEATHS = {
    "Segfaults": "the process was ended by SIGSEGV",
    "BreaksOff": "the process ended by itself with code 0",
    "BreaksOffAndStays": (
        "the process wrote something else than answers: the stream ends within a frame"
    ),
    "Floods": (
        "the process wrote something else than answers:"
        " a frame begins with b'CST1', this with b'\\x80noi'"
    ),
    "SaysOtherWords": (
        "the process wrote something else than answers: an error without its kinds and text"
    ),
    "AllocatesAndAborts": "the process was ended by SIGABRT",
    "ChattersAndDies": "the process was ended by SIGSEGV (the last word is [31mred[0m at …)",
    "ForksAndDies": "the process was ended by SIGSEGV",
    "ClosesAll": "the process ended by itself with code 2",
    "ClosesAllAndStays": "the process closed its pipe",
}


@pytest.mark.parametrize("name", DEATHS)
def test_a_death_names_the_guilty_input_alone(name: str, planted: Planted) -> None:
    oracle = planted(name)
    assert_answered(oracle)
    death = crash(oracle)
    assert str(death).replace("\\\\", "\\") == DEATHS[name]
    assert death.inputs is not None
    assert (death.inputs.tolist(), death.silent) == ([GUILTY], False)
    assert_answered(oracle)


def test_one_input_in_a_million(planted: Planted) -> None:
    million = np.arange(1_000_000, dtype=np.uint32) * np.uint32(4241)
    million[-3] = WIDE_GUILTY
    assert np.count_nonzero(million == WIDE_GUILTY) == 1
    oracle = planted("Segfaults")
    death = crash(oracle, million.reshape(1000, 1000), WIDE)
    assert death.inputs is not None
    assert death.inputs.tolist() == [WIDE_GUILTY]
    harmless = million[million != WIDE_GUILTY]
    assert oracle.cast(WIDE, harmless).tolist() == (harmless & 255).tolist()


@pytest.mark.parametrize("place", [0, 2])
def test_wherever_it_stands(place: int, planted: Planted) -> None:
    inputs = np.roll(FEW, place + 1)
    assert inputs[place] == GUILTY
    death = crash(planted("Segfaults"), inputs)
    assert death.inputs is not None
    assert death.inputs.tolist() == [GUILTY]


def test_a_silence_names_the_guilty_input_alone(planted: Planted) -> None:
    oracle = planted("Hangs", seconds=1.5)
    death = crash(oracle)
    assert str(death) == "the process was silent for 1.5 s"
    assert death.inputs is not None
    assert (death.inputs.tolist(), death.silent) == ([GUILTY], True)
    assert_answered(oracle)


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("Half", (FEW & 15)[:2]),
        ("OtherStorage", (FEW & 15).astype(np.float32)),
        ("Chatters", FEW & 15),
        ("ForksAndAnswers", FEW & 15),
        ("AnswersTwice", FEW & 15),
    ],
)
def test_what_is_an_answer_is_no_crash(name: str, answers: Any, planted: Planted) -> None:
    oracle = planted(name)
    found = oracle.cast(CASE, FEW)
    assert (found.dtype, found.tolist()) == (answers.dtype, answers.tolist())
    assert_answered(oracle)
    assert_answered(oracle)


@pytest.mark.parametrize("name", ["ForksAndAnswers", "ForksAndDies"])
def test_a_child_of_the_process_ends_with_it(name: str, planted: Planted, mark: Path) -> None:
    oracle = planted(name)
    if name == "ForksAndDies":
        crash(oracle)
    else:
        oracle.cast(CASE, FEW)
    oracle.close()
    assert end_of([int(mark.read_text())]) == []


def test_want_of_memory_is_an_error_and_a_fresh_process_has_it_all(planted: Planted) -> None:
    oracle = planted("Allocates")
    with pytest.raises(Exception, match="Unable to allocate") as caught:
        oracle.cast(CASE, FEW)
    assert "MemoryError" in type(caught.value).__name__
    assert_answered(oracle)


def test_memory_that_an_earlier_question_has_taken_is_no_error(planted: Planted) -> None:
    oracle = planted("Leaks")
    for _ in range(3):
        assert_answered(oracle)


def test_a_death_that_does_not_come_again_is_no_verdict(planted: Planted) -> None:
    for name in ("DiesAtTheThird", "DiesAfterwards"):
        oracle = planted(name)
        for _ in range(4):
            assert_answered(oracle)


def test_who_dies_of_two_inputs_together_is_told_of_both(planted: Planted) -> None:
    inputs = np.array([0x01, 0x10, 0x02, 0x03, GUILTY, 0x04, 0x05, 0x06, 0x07], np.uint8)
    oracle = planted("DiesOfTwo")
    death = crash(oracle, inputs)
    assert death.inputs is not None
    assert {0x10, GUILTY} <= set(death.inputs.tolist())
    assert str(death) == "the process was ended by SIGSEGV"
    # All of one half, where both are in it.
    death = crash(oracle, np.concatenate([inputs[1:5], HARMLESS]))
    assert death.inputs is not None
    assert death.inputs.tolist() == inputs[1:5].tolist()
    assert_answered(oracle)


def test_who_dies_at_random_is_asked_on_and_on(planted: Planted, mark: Path) -> None:
    oracle = planted("DiesAtRandom")
    crashes: list[Crashed] = []
    for _ in range(8):
        try:
            assert_answered(oracle)
        except Crashed as death:
            crashes.append(death)
    assert len(crashes) < 4
    for death in crashes:
        assert death.inputs is not None
        assert set(death.inputs.tolist()) <= set(HARMLESS.tolist())
    # It has died meanwhile.
    assert mark.stat().st_size > 8


def test_who_cannot_be_loaded_again_has_not_answered(planted: Planted) -> None:
    oracle = planted("LoadsOnce")
    assert_answered(oracle)
    death = crash(oracle)
    lost = f"no other could be started: backend `{PLANTED}:LoadsOnce`: OSError: the device is busy"
    assert str(death) == f"the process was ended by SIGSEGV; {lost}"
    assert death.inputs is not None
    assert death.inputs.tolist() == FEW.tolist()
    # Of what is asked then, nothing is known.
    later = crash(oracle, HARMLESS)
    assert (str(later), later.inputs) == (lost, None)


def test_who_wants_to_end_the_run_in_parts_dies_of_all(planted: Planted) -> None:
    death = crash(planted("RaisesInParts"))
    assert death.inputs is not None
    assert death.inputs.tolist() == FEW.tolist()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SpeaksWhileLoading", "wrote something else than answers: a frame begins with"),
        ("SaysNothingOfItself", "what a process serves is not told in full"),
        ("ClosesAllWhileLoading", "ended by itself with code 2 (OSError: [Errno 9] Bad file"),
        ("LeavesWhileItsNameIsAsked", "ended by itself with code 5 before its first task"),
    ],
)
def test_who_ends_while_it_loads_is_one_line(name: str, message: str, planted: Planted) -> None:
    with pytest.raises(CastigateError, match=re.escape(message)) as caught:
        planted(name)
    assert str(caught.value).startswith(f"backend `{PLANTED}:{name}`")
    assert "\n" not in str(caught.value)


def test_a_closed_backend_answers_again(planted: Planted) -> None:
    oracle = planted("Right")
    oracle.close()
    oracle.close()
    assert_answered(oracle)


def test_where_a_bitcast_lies_is_told_by_those_who_know(planted: Planted) -> None:
    oracle = planted("SharesOdd")
    assert isinstance(oracle, WithBitcastMemory)
    for bits in (np.array([3, 0], np.uint8), np.array([2, 1], np.uint8)):
        assert oracle.bitcast_shares_memory(CASE, bits) is bool(bits[0] & 1)
    assert not isinstance(planted("Right"), WithBitcastMemory)
