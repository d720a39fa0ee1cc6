"""Adapters that note when they are loaded and asked, and fail some of those who ask."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from conformance.suite.parallel_judging import MAX_HELPERS
from specs.cases import Case
from tests.conformance.data.hostile import RIGHT, Honest

NOTES = "CASTIGATE_TEST_NOTES"


class Noting(Honest):
    """Wrong about a scalar of its own dtype, from the first pair on."""

    def __init__(self) -> None:
        self.notes = Path(os.environ[NOTES])
        self.asked = 0
        self.note("loaded")
        self.place = self.loaded().index(f"loaded {os.getpid()}")
        """How many processes have been loaded before this one."""

    def note(self, what: str) -> None:
        with self.notes.open("a") as notes:
            print(what, os.getpid(), file=notes)

    def loaded(self) -> list[str]:
        """The notes of the processes that have been loaded."""
        return [line for line in self.notes.read_text().splitlines() if "loaded" in line]

    def bitcast(self, case: Case, bits: Any) -> Any:
        if not self.asked:
            self.note("asked")
        self.asked += 1
        answer = RIGHT.bitcast(case, bits)
        return np.zeros_like(answer) if case.source == case.target and answer.ndim == 0 else answer


class Helped(Noting):
    """Answers when two helpers have loaded it, so that both judge."""

    def bitcast(self, case: Case, bits: Any) -> Any:
        while len(self.loaded()) < 2:
            sleep(0.01)
        return super().bitcast(case, bits)


class LosesItsAsker(Helped):
    """Kills the second of those who ask."""

    first, last = 1, 1

    def bitcast(self, case: Case, bits: Any) -> Any:
        if self.asked == 20 and self.first <= self.place <= self.last:
            os.kill(os.getppid(), signal.SIGKILL)
        return super().bitcast(case, bits)


class LosesItsAskers(LosesItsAsker):
    """Kills all helpers."""

    first, last = 0, min(os.cpu_count() or 1, MAX_HELPERS) - 1


class OneAtATime(Helped):
    def __init__(self) -> None:
        super().__init__()
        if self.place:
            raise RuntimeError("the device is taken")
