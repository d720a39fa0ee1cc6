"""A process times out by the time in which this one has run, not by the clock alone."""

from __future__ import annotations

import os
import sys
from itertools import count

import pytest

from oracles.backend import supervised_process
from oracles.backend.frames import encode_frame
from oracles.backend.supervised_process import ProcessTimeout, SupervisedProcess

REPLY_AFTER_HALF_A_SECOND = (
    "import os, sys, time; time.sleep(0.5); os.write(int(sys.argv[-1]), bytes.fromhex('{}'))"
)
SILENT = "import time; time.sleep(600)"


def start(code: str) -> SupervisedProcess:
    return SupervisedProcess([sys.executable, "-c", code], os.environ)


def test_time_in_which_this_process_was_suspended_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = b"".join(encode_frame({"number": 1}))
    process = start(REPLY_AFTER_HALF_A_SECOND.format(frame.hex()))
    # Each reading of the clock is an hour after the last, as on a machine that was suspended.
    hours = count(step=3600)
    monkeypatch.setattr(supervised_process, "monotonic", lambda: next(hours))
    try:
        assert process.receive(10.0).header == {"number": 1}
    finally:
        process.kill()


def test_a_silent_process_times_out() -> None:
    process = start(SILENT)
    try:
        with pytest.raises(ProcessTimeout, match=r"^was silent for 0.5 s$"):
            process.receive(0.5)
    finally:
        process.kill()
