"""Adapters that note when they are loaded and what they are asked; some kill the asking worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from oracles.protocol import Unsupported
from specs.cases import Case
from tests.conformance.data.hostile import RIGHT, Honest

NOTES = "CASTIGATE_TEST_NOTES"
MOST_WAITS, SECONDS_OF_A_WAIT = 300, 0.1


class Noting(Honest):
    """Notes loads and cases; answers zero when a scalar is bitcast to its own dtype."""

    def __init__(self) -> None:
        self.notes = Path(os.environ[NOTES])
        self.is_first = self.is_new("loaded")
        self.note(f"loaded {os.getpid()}")
        self.note(f"loaded for {os.getppid()}")
        self.asked: set[str] = set()

    def note(self, what: str) -> None:
        with self.notes.open("a") as notes:
            print(what, file=notes)

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
        answer = RIGHT.bitcast(case, bits)
        return np.zeros_like(answer) if case.source == case.target and answer.ndim == 0 else answer


class LosesItsWorker(Noting):
    """Kills the first worker that asks it for int8 to uint8."""

    def bitcast(self, case: Case, bits: Any) -> Any:
        if (case.source, case.target) == ("int8", "uint8") and self.is_new("killed"):
            os.kill(os.getppid(), signal.SIGKILL)
        return super().bitcast(case, bits)


class CrashesItsWorkers(Noting):
    """Sends SIGSEGV to each worker that asks it for int8 to uint8, as if the fault were its own."""

    def bitcast(self, case: Case, bits: Any) -> Any:
        if (case.source, case.target) == ("int8", "uint8"):
            os.kill(os.getppid(), signal.SIGSEGV)
        return super().bitcast(case, bits)


class OneAtATime(Noting):
    """Can be loaded once; it stays busy with one pair until a second process failed to load it."""

    def __init__(self) -> None:
        super().__init__()
        if not self.is_first:
            self.is_new("refused")
            raise RuntimeError("the device is taken")

    def bitcast(self, case: Case, bits: Any) -> Any:
        refused = self.notes.with_name(f"{self.notes.name}-refused")
        for _ in range(MOST_WAITS if (case.source, case.target) == ("int8", "uint8") else 0):
            if refused.exists():
                break
            sleep(SECONDS_OF_A_WAIT)
        return super().bitcast(case, bits)


class OnlyOpset24(Noting):
    """Offers one version of a document, and forgets the sign of all but rows."""

    def cast(self, case: Case, bits: Any) -> Any:
        answer = super().cast(case, bits)
        if case.version != "24":
            raise Unsupported(f"opset 24 only, not {case.version}")
        return answer if bits.ndim == 1 else np.asarray(answer & 0x7F)
