"""Timeouts exclude time in which this process was suspended; last words are read in full."""

from __future__ import annotations

import os
import sys
import time
from itertools import count

import pytest

from oracles.backend import supervised_process
from oracles.backend.frames import encode_frame
from oracles.backend.supervised_process import (
    PIPE_CAPACITY,
    STDERR_TAIL,
    ProcessFailed,
    ProcessTimeout,
    SupervisedProcess,
)

REPLY_AFTER_HALF_A_SECOND = (
    "import os, sys, time; time.sleep(0.5); os.write(int(sys.argv[-1]), bytes.fromhex('{}'))"
)
SILENT = "import time; time.sleep(600)"
DIES_AT_ONCE = "import sys; sys.exit('no device')"
REPLIES_AND_DIES_LATER = """
import os, sys
os.write(2, b'ready\\n')
os.write(int(sys.argv[-1]), bytes.fromhex('{}'))
os.read(int(sys.argv[-2]), 1)
os._exit(3)
"""
CLOSES_ITS_PIPE_AND_WRITES_MUCH = f"""
import os, sys
os.close(int(sys.argv[-1]))
os.write(2, b'loading\\n' * {STDERR_TAIL})
sys.exit('no device')
"""
IS_OUTLIVED = """
import os, time
read_end, write_end = os.pipe()
if os.fork():
    os.write(2, {!r})
    os._exit(3)
os.close(write_end)
os.read(read_end, 1)
{}
"""
"""The process writes something and exits; then its child goes on, which holds its pipes open."""
WRITES_LATER = "time.sleep(0.3); os.write(2, b'no device\\n')"
SLEEPS = "time.sleep(600)"
WRITES_FOR_EVER = "while True: os.write(2, b'no device\\n')"


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


def failure(process: SupervisedProcess, payload: bytes = b"") -> str:
    """Send a request, and return how the process fails to answer it."""
    try:
        with pytest.raises(ProcessFailed) as caught:
            process.request(encode_frame({"number": 1}, payload), 30.0)
    finally:
        process.kill()
    return str(caught.value)


def test_the_last_words_of_a_process_that_dies_before_the_first_request_are_its_reason() -> None:
    process = start(DIES_AT_ONCE)
    while process.is_alive:
        time.sleep(0.01)
    assert failure(process) == "ended by itself with code 1 (no device)"


def test_what_a_process_wrote_before_it_replied_is_no_reason() -> None:
    frame = b"".join(encode_frame({"number": 0}))
    process = start(REPLIES_AND_DIES_LATER.format(frame.hex()))
    assert process.receive(30.0).header == {"number": 0}
    assert failure(process) == "ended by itself with code 3"


def test_a_process_may_write_more_than_a_pipe_holds_before_it_exits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervised_process, "SECONDS_TO_EXIT", 30.0)
    process = start(CLOSES_ITS_PIPE_AND_WRITES_MUCH)
    assert failure(process) == "ended by itself with code 1 (no device)"


def test_the_last_words_may_come_from_a_child_that_outlives_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervised_process, "SECONDS_OF_LAST_WORDS", 30.0)
    process = start(IS_OUTLIVED.format(b"loading\n", WRITES_LATER))
    assert failure(process) == "ended by itself with code 3 (no device)"


@pytest.mark.parametrize("deed", [SLEEPS, WRITES_FOR_EVER], ids=["sleeps", "writes"])
def test_a_child_that_goes_on_for_ever_is_not_waited_for(deed: str) -> None:
    process = start(IS_OUTLIVED.format(b"no device\n", deed))
    assert failure(process) == "ended by itself with code 3 (no device)"


def test_a_request_that_only_a_child_of_a_dead_process_could_read_fails() -> None:
    process = start(IS_OUTLIVED.format(b"no device\n", SLEEPS))
    payload = bytes(2 * PIPE_CAPACITY)
    assert failure(process, payload) == "ended by itself with code 3 (no device)"
