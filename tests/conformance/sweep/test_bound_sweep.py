"""Calls that pass over right answers lose no answer, no error and no change of the inputs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.sweep.engine import swept
from oracles import bound_sweep
from oracles.adapters.c_compilers import Gcc
from oracles.adapters.compiled_loops import Loop
from oracles.bound_sweep import BoundLoop, BoundSweep
from oracles.memory_layouts import HUGE_PAGE, in_huge_pages
from oracles.protocol import InputsChanged
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend
from reports.grading.chunk_check import advance
from specs.cases import Case
from specs.selection import case_named
from tests.conformance.sweep.swept import plain

ROOT = Path(__file__).parents[3]
CASE = case_named("onnx-cast:13/uint32/int32")
SIZE, CALLS, PART = 16, 6, 4
END = SIZE * CALLS


class Oracle:
    """Returns its inputs; the nth call returns the result of ``first`` unless that is None."""

    name, version = "planted", "0"

    def __init__(self, nth: int = -1, first: Callable[[Any], Any] = lambda bits: None) -> None:
        self.calls, self._nth, self._first = 0, nth, first

    def cast(self, case: Any, bits: Any) -> Any:
        return bits.astype(np.int32).view(np.uint32)

    def bind(self, case: Any, bits: Any) -> Callable[[], Any]:
        answers = np.zeros_like(bits)

        def call() -> Any:
            self.calls += 1
            instead = self._first(bits) if self.calls == self._nth else None
            np.copyto(answers, bits)
            return answers if instead is None else instead

        return call


def bound(oracle: Oracle) -> BoundSweep:
    """A sweep after its first call, which for every road is made before any ``pass_over``."""
    sweep = BoundSweep(oracle, CASE, Dense(1 << 32), 0, END, SIZE)
    assert sweep(0, SIZE).tolist() == list(range(SIZE))
    return sweep


class Check:
    """Accepts answers that equal the numbers of their inputs, up to the number ``wrong``."""

    def __init__(self, wrong: int = END) -> None:
        self.seen: list[int] = []
        self._wrong = wrong

    def __call__(self, first: int, answers: Any, inputs: Any, step: int) -> bool:
        advance(inputs, step)
        self.seen.append(first)
        return bool((answers == np.arange(first, first + SIZE)).all()) and first < self._wrong


def test_right_answers_are_passed_over_up_to_the_last_call() -> None:
    oracle, check = Oracle(), Check()
    sweep = bound(oracle)
    assert sweep.pass_over(SIZE, END, check) == END - SIZE
    assert check.seen == [*range(SIZE, END - SIZE, SIZE)]
    assert sweep(END - SIZE, SIZE).tolist() == [*range(END - SIZE, END)]
    assert oracle.calls == CALLS


class Copies(Oracle):
    """Copies memory, as compiled code does."""

    def bind(self, case: Any, bits: Any) -> Callable[[], Any]:
        return BoundLoop(self._copy, bits, np.zeros_like(bits))

    def _copy(self, count: int, inputs: int, answers: int) -> None:
        self.calls += 1
        ctypes.memmove(answers, inputs, 4 * count)


class CheckOfLoop(Check):
    """Calls the function itself; without Python in between, if it were compiled."""

    def over(self, function: Any, first: int, end: int, inputs: Any, answers: Any) -> int:
        for at in range(first, end, PART):
            function(PART, inputs.ctypes.data, answers.ctypes.data)
            assert answers.tolist() == [*range(at, at + PART)] == inputs.tolist()
            advance(inputs, PART)
            if at >= self._wrong:
                return at
        return end


@pytest.mark.parametrize("stop", [END, END - SIZE - 3])
@pytest.mark.parametrize("wrong", [END, 2 * SIZE, 3 * SIZE + PART, 4 * SIZE - PART])
def test_a_compiled_loop_is_called_in_parts_and_leaves_a_whole_call_with_a_wrong_answer(
    wrong: int, stop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_sweep, "PART", PART)
    oracle = Copies()
    sweep = bound(oracle)
    reached = sweep.pass_over(SIZE, stop, CheckOfLoop(wrong))
    assert reached == min(wrong // SIZE * SIZE, END - SIZE)
    assert oracle.calls == 1 + (min(wrong, END - SIZE) - SIZE) // PART + (wrong < END)
    for at in range(reached, END, SIZE):
        assert sweep(at, SIZE).tolist() == [*range(at, at + SIZE)]


class Planted(Gcc):
    """Errs at 3."""

    def loop(self, case: Case) -> Loop:
        return Loop("float", "int16_t", "x[i] == 3.0f ? 4 : (int16_t)x[i]")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba: the extra `fast`")
def test_a_compiled_check_calls_a_loop_of_c_and_finds_what_calls_one_by_one_find(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    three, around = 0x40400000, 1 << 19
    judge = BackendJudge(Backend("gcc", Planted()), {}, Settings())
    cases, passed = [case_named("onnx-cast:25/float32/int16")], []
    passes = BoundSweep._pass_by_loop

    def counted(self: BoundSweep, *asked: Any) -> int:
        passed.append(passes(self, *asked))
        return passed[-1]

    monkeypatch.setattr(BoundSweep, "_pass_by_loop", counted)
    found = []
    for part in (bound_sweep.PART, 3):
        monkeypatch.setattr(bound_sweep, "PART", part)
        [judged] = swept(
            judge, cases, Dense(1 << 32), three - around, three + around, lambda *counts: None
        )
        found.append(plain(judged))
        assert (judged.wrong, judged.inputs) == (1, 2 * around)
        assert passed.count(three) == 1
    assert found[0] == found[1]


def test_answers_that_do_not_pass_are_not_asked_for_again() -> None:
    oracle, check = Oracle(), Check(wrong=3 * SIZE)
    sweep = bound(oracle)
    assert sweep.pass_over(SIZE, END, check) == 3 * SIZE
    assert sweep(3 * SIZE, SIZE).tolist() == [*range(3 * SIZE, 4 * SIZE)]
    assert oracle.calls == 4
    assert sweep.to_advance() == (None, 0)
    assert sweep(4 * SIZE, SIZE).tolist() == [*range(4 * SIZE, 5 * SIZE)]
    inputs, step = sweep.to_advance()
    advance(inputs, step)
    assert sweep.to_advance() == (None, 0)
    assert sweep(5 * SIZE, SIZE).tolist() == [*range(5 * SIZE, END)]


def test_an_error_that_a_call_raises_once_comes_when_its_answers_are_asked_for() -> None:
    def fail(bits: Any) -> None:
        raise MemoryError("only now")

    sweep = bound(Oracle(3, fail))
    assert sweep.pass_over(SIZE, END, Check()) == 2 * SIZE
    with pytest.raises(MemoryError, match="only now"):
        sweep(2 * SIZE, SIZE)
    assert sweep(2 * SIZE, SIZE).tolist() == [*range(2 * SIZE, 3 * SIZE)]


def test_answers_in_another_array_of_the_same_form_are_passed_over() -> None:
    right = np.arange(3 * SIZE, 4 * SIZE, dtype=np.uint32)
    check = Check()
    sweep = bound(Oracle(4, lambda bits: right))
    assert sweep.pass_over(SIZE, END, check) == END - SIZE
    assert check.seen == [*range(SIZE, END - SIZE, SIZE)]


@pytest.mark.parametrize(
    "other",
    [
        np.zeros(SIZE, np.float64), np.zeros(SIZE - 1, np.uint32), np.zeros((SIZE, 1), np.uint32),
        np.zeros(2 * SIZE, np.uint32)[::2], np.ma.zeros(SIZE, np.uint32), [0] * SIZE,
    ],
    ids=["dtype", "length", "rank", "strides", "subclass", "list"],
)  # fmt: skip
def test_answers_of_another_form_are_given_out_to_be_examined(other: object) -> None:
    check = Check()
    sweep = bound(Oracle(4, lambda bits: other))
    assert sweep.pass_over(SIZE, END, check) == 3 * SIZE
    assert check.seen == [SIZE, 2 * SIZE]
    assert sweep(3 * SIZE, SIZE) is other


@pytest.mark.parametrize("place", [None, 0, 7, SIZE - 1])
def test_an_oracle_that_writes_to_its_inputs_is_found_out_in_the_end(
    place: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_sweep, "CHECKED", 5)

    def write(bits: Any) -> None:
        if place is not None:
            bits[place] ^= 1

    sweep = bound(Oracle(3, write))
    sweep.pass_over(SIZE, END, lambda first, answers, inputs, step: not advance(inputs, step))
    with nullcontext() if place is None else pytest.raises(InputsChanged):
        sweep(END - SIZE, SIZE)


@pytest.mark.parametrize("count", [0, 1, 1 << 14, 1 << 17, (1 << 20) + 1])
def test_arrays_of_huge_pages_begin_with_one(count: int) -> None:
    array = in_huge_pages(count, np.uint64)
    assert (array.dtype, array.shape, array.any()) == (np.uint64, (count,), False)
    assert array.flags.writeable
    if array.nbytes >= 1 << 16:
        assert array.ctypes.data % HUGE_PAGE == 0


REUSES_MEMORY = """\
import numpy as np
from oracles.memory_layouts import in_huge_pages
from oracles.backend.resource_limits import keep_freed_memory

def kilobytes_in_huge_pages():
    return sum(int(line.split()[1]) for line in open("/proc/self/smaps") if "AnonHuge" in line)

keep_freed_memory()
kept = []
for _ in range(4):
    freed = [np.ones(1 << 20, np.uint8) for _ in range(30)]
    del freed
    before = kilobytes_in_huge_pages()
    kept.append(in_huge_pages(1 << 16, np.uint64))
    kept[-1][:] = 1
    print(kilobytes_in_huge_pages() - before)
"""
ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(
    not ENABLED.exists() or "[never]" in ENABLED.read_text(), reason="Linux gives no huge pages"
)
def test_memory_that_was_freed_before_does_not_take_the_place_of_huge_pages() -> None:
    """A worker keeps the memory that it frees. Linux may lack huge pages for some of the arrays."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REUSES_MEMORY],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert max(map(int, done.stdout.split())) >= HUGE_PAGE // 1024
