"""How long a process is waited for."""

from __future__ import annotations

import os
import sys
from itertools import count

import pytest

from oracles.isolation import supervised_process
from oracles.isolation.frames import written
from oracles.isolation.supervised_process import Late, Process

ANSWERS = "import os, sys, time; time.sleep(0.5); os.write(int(sys.argv[-1]), bytes.fromhex('{}'))"
SILENT = "import time; time.sleep(600)"


def started(code: str) -> Process:
    return Process([sys.executable, "-c", code], os.environ)


def test_time_in_which_we_were_not_run_ourselves_is_no_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = b"".join(written({"number": 1}))
    asked = started(ANSWERS.format(frame.hex()))
    # Each look at the clock comes an hour after the last, as on a machine that was suspended.
    hours = count(step=3600)
    monkeypatch.setattr(supervised_process, "monotonic", lambda: next(hours))
    try:
        assert asked.hear(10.0).header == {"number": 1}
    finally:
        asked.end()


def test_silence_is() -> None:
    asked = started(SILENT)
    try:
        with pytest.raises(Late, match=r"^was silent for 0.5 s$"):
            asked.hear(0.5)
    finally:
        asked.end()
