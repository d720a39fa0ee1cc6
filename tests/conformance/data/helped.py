"""Adapters that note on whose behalf they are loaded and asked, and fail whoever comes second."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from specs.cases import Case
from tests.conformance.data.hostile import RIGHT, Honest

NOTES = "CASTIGATE_TEST_NOTES"


class Noting(Honest):
    """Wrong about a scalar of its own dtype, from the first pair on."""

    def __init__(self) -> None:
        self.notes = Path(os.environ[NOTES])
        self.is_first = not self.notes.exists()
        self.asked = 0
        self.note("loaded")

    def note(self, what: str) -> None:
        with self.notes.open("a") as notes:
            print(what, os.getppid(), file=notes)

    def bitcast(self, case: Case, bits: Any) -> Any:
        if not self.asked:
            self.note("asked")
        self.asked += 1
        answer = RIGHT.bitcast(case, bits)
        return np.zeros_like(answer) if case.source == case.target and answer.ndim == 0 else answer


class Helped(Noting):
    """Answers whoever comes first when a helper is there as well."""

    def bitcast(self, case: Case, bits: Any) -> Any:
        while self.is_first and self.notes.read_text().count("loaded") < 2:
            sleep(0.01)
        return super().bitcast(case, bits)


class LosesItsAsker(Helped):
    def bitcast(self, case: Case, bits: Any) -> Any:
        if self.asked == 20 and not self.is_first:
            os.kill(os.getppid(), signal.SIGKILL)
        return super().bitcast(case, bits)


class OneAtATime(Helped):
    def __init__(self) -> None:
        super().__init__()
        if not self.is_first:
            raise RuntimeError("the device is taken")
