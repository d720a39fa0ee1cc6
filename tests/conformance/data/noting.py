"""Adapters that note when they are loaded and what they are asked; some kill the asking worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from oracles.protocol import Unsupported
from specs.cases import Case
from tests.conformance.data.hostile import RIGHT, Honest

NOTES, LOADS = "CASTIGATE_TEST_NOTES", "CASTIGATE_TEST_LOADS"
MOST_WAITS, SECONDS_OF_A_WAIT = 300, 0.1


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


class Noting(Honest):
    """Notes loads and cases; answers zero when a scalar is bitcast to its own dtype.

    It stays busy with int8 to uint8 until as many processes as ``LOADS`` says have loaded it.
    """

    def __init__(self) -> None:
        self.notes = Path(os.environ[NOTES])
        self.is_first = self.is_new("loaded")
        self.note(f"loaded {os.getpid()}")
        self.note(f"loaded for {os.getppid()}")
        self.asked: set[str] = set()

    def note(self, what: str) -> None:
        with self.notes.open("a") as notes:
            print(what, file=notes)

    def noted(self, what: str) -> list[int]:
        """The numbers that were noted after certain words."""
        lines = self.notes.read_text().splitlines()
        return [int(line.split()[-1]) for line in lines if line.startswith(what)]

    def wait(self, is_over: Callable[[], bool]) -> None:
        for _ in range(MOST_WAITS):
            if is_over():
                return
            sleep(SECONDS_OF_A_WAIT)

    def is_new(self, mark: str) -> bool:
        """Set a mark; return whether no process had set it yet."""
        try:
            self.notes.with_name(f"{self.notes.name}-{mark}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def note_asked(self, case: Case) -> None:
        if case.id not in self.asked:
            self.asked.add(case.id)
            self.note(f"asked {case.id}")

    def cast(self, case: Case, bits: Any) -> Any:
        self.note_asked(case)
        return RIGHT.cast(case, bits)

    def bitcast(self, case: Case, bits: Any) -> Any:
        self.note_asked(case)
        if (case.source, case.target) == ("int8", "uint8"):
            loads = int(os.environ.get(LOADS, "1"))
            self.wait(lambda: len(self.noted("loaded for")) >= loads)
            self.after_the_loads()
        answer = RIGHT.bitcast(case, bits)
        return np.zeros_like(answer) if case.source == case.target and answer.ndim == 0 else answer

    def after_the_loads(self) -> None:
        """Called while int8 to uint8 is answered."""


class LosesItsWorkers(Noting):
    """Sends SIGSEGV to each worker that asks it for int8 to uint8, as if the fault were its own.

    It also kills the first worker that asks it for uint8 to int8.
    """

    def bitcast(self, case: Case, bits: Any) -> Any:
        if (case.source, case.target) == ("uint8", "int8") and self.is_new("killed"):
            os.kill(os.getppid(), signal.SIGKILL)
        return super().bitcast(case, bits)

    def after_the_loads(self) -> None:
        os.kill(os.getppid(), signal.SIGSEGV)


class OneAtATime(Noting):
    """Can be loaded once; it is busy until the workers of all further processes have ended."""

    def __init__(self) -> None:
        super().__init__()
        if not self.is_first:
            self.note(f"refused {os.getppid()}")
            raise RuntimeError("the device is taken")

    def after_the_loads(self) -> None:
        self.wait(lambda: all(map(is_gone, self.noted("refused") or [os.getpid()])))


class OnlyOpset24(Noting):
    """Offers one version of a document, and forgets the sign of all but rows."""

    def cast(self, case: Case, bits: Any) -> Any:
        answer = super().cast(case, bits)
        if case.version != "24":
            raise Unsupported(f"opset 24 only, not {case.version}")
        return answer if bits.ndim == 1 else np.asarray(answer & 0x7F)
