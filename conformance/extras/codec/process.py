"""Asks a codec in processes of its own, so that it may crash or hang without harm."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specs.errors import CastigateError
from specs.plain_text import plain_line

WordsOf64 = NDArray[np.uint64]
CodecAnswerBits = NDArray[Any]
"""Patterns as words of 64 bits, or texts as objects."""
NOT_OPENED, MANY_RUNS, RAISED = 3, 4, 6
"""Exit codes of the programs that ask: see ``driver.c`` and ``python_worker.py``."""
STARTING = (1 << 64) - 1
"""The value in the progress file until the first input is asked."""
START_SECONDS = 120.0
"""Seconds in which a codec must be loaded, together with its framework."""
POLL = 0.02
LONGEST = 200
WHOLE = 1 << 62
"""The ``step`` with which each call gets a whole block of inputs."""
Advance = Callable[[int], None]


class CodecFailedError(CastigateError):
    """A codec ended its process, raised an error, gave a malformed answer, or took too long.

    ``says`` describes the failure. If ``has_input``, ``place`` is the input at fault, or -1 if that
    is unknown. Otherwise ``place`` is the first input of the failed block; from ``_list`` it is
    that input's index instead.
    """

    def __init__(self, says: str, place: int, *, has_input: bool = False) -> None:
        super().__init__(says)
        self.says, self.place, self.has_input = says, place, has_input


class CodecNotLoadedError(CodecFailedError):
    """The process ended, or took too long, while it loaded the codec, before any call of it."""


class ManyRunsError(Exception):
    """A part of a sweep has more runs of equal answers than the limit."""


@dataclass(frozen=True)
class CodecProcess:
    """The program that calls a codec, and its limits.

    ``block`` is the number of inputs that it asks at a time, ``seconds`` the limit for one block,
    and ``environment`` its environment variables. If it ``gives_texts``, an answer is a text, and
    only ``answers`` may be used.
    """

    command: tuple[str, ...]
    block: int
    seconds: float
    gives_texts: bool = False
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def answers(self, inputs: WordsOf64, step: int = WHOLE) -> tuple[CodecAnswerBits, float]:
        """Return the answers to ``inputs``, and the processor seconds that the codec took.

        A call gets at most ``step`` inputs. If a block fails without an input known to be at fault,
        its inputs are asked again one at a time. CodecFailedError then names the first at fault, or
        all of them if none fails alone. Raise NotOpenedError if the codec cannot be loaded, and
        CastigateError if answers are missing.
        """
        try:
            return self._list(inputs, min(step, self.block))
        except CodecFailedError as error:
            if error.has_input:
                raise
            if step == 1:
                place = int(inputs[error.place])
                raise CodecFailedError(error.says, place, has_input=True) from None
            near = inputs[error.place : error.place + self.block]
        self.answers(near, 1)
        raise CodecFailedError(error_among(near), int(near[0]))

    def sweep(
        self, count: int, parts: int, most: int, jobs: int, progress: Advance
    ) -> tuple[WordsOf64, WordsOf64]:
        """Return the first input of each run of equal answers, and the answer of each run.

        The inputs from 0 to before ``count`` are asked in ``parts``, at most ``jobs`` at a time.
        ``progress`` is called with the number of inputs done since its last call. Raise
        ManyRunsError if a part has more than ``most`` runs, CodecFailedError if the codec fails,
        and NotOpenedError if it cannot be loaded.
        """
        size, stop = -(-count // parts), Event()
        ranges = [(first, min(size, count - first)) for first in range(0, count, size)]

        def one(part: tuple[int, int]) -> WordsOf64:
            try:
                return self._sweep(*part, most, stop, progress)
            except BaseException:
                stop.set()
                raise

        with ThreadPoolExecutor(jobs) as pool:
            waiting = [pool.submit(one, part) for part in ranges]
            try:
                found = [each.result() for each in waiting]
            except BaseException:
                stop.set()
                for each in waiting:
                    each.cancel()
                failed = [
                    each.exception() for each in waiting if each.done() and not each.cancelled()
                ]
                told = [error for error in failed if isinstance(error, CodecFailedError)]
                if told:
                    raise self._located(min(told, key=lambda each: each.place)) from None
                # A part that was stopped may come before the part whose failure stopped it.
                for error in failed:
                    if error is not None and not isinstance(error, SweepStoppedError):
                        raise error from None
                raise
        both = np.concatenate(found).reshape(-1, 2)
        is_first = np.append(True, both[1:, 1] != both[:-1, 1])
        return both[is_first, 0].copy(), both[is_first, 1].copy()

    def _located(self, error: CodecFailedError) -> CodecFailedError:
        """Return ``error`` if it has an input, otherwise that of asking its block again.

        If the block does not fail again, the new error says so, and names the block's first input.
        If its inputs fail together but not one by one, the error names no single input.
        """
        if error.has_input:
            return error
        last = min(error.place + self.block, 1 << 32)
        block = np.arange(error.place, last, dtype=np.uint64)
        try:
            self.answers(block)
        except CodecFailedError as located:
            return located
        return CodecFailedError(
            f"{error.says}, but not when asked again", error.place, has_input=True
        )

    def _list(self, inputs: WordsOf64, step: int) -> tuple[CodecAnswerBits, float]:
        with TemporaryDirectory(prefix="castigate-") as folder:
            given, out = Path(folder) / "inputs", Path(folder) / "answers"
            given.write_bytes(inputs.astype(np.uint64).tobytes())
            seconds = self._run(Path(folder), "list", out, [str(given), str(step)], Event())
            answers = _texts_of(out) if self.gives_texts else np.fromfile(out, np.uint64)
        if answers.size != inputs.size:
            raise CastigateError(f"the codec ended its process after {answers.size:,} answers")
        return answers, seconds

    def _sweep(
        self, first: int, count: int, most: int, stop: Event, progress: Advance
    ) -> WordsOf64:
        with TemporaryDirectory(prefix="castigate-") as folder:
            out = Path(folder) / "answers"
            words = [str(first), str(count), str(most)]
            self._run(Path(folder), "sweep", out, words, stop, (first, count), progress)
            return np.fromfile(out, np.uint64)

    def _run(
        self,
        folder: Path,
        how: str,
        out: Path,
        words: Sequence[str],
        stop: Event,
        swept: tuple[int, int] = (0, 0),
        progress: Advance = lambda inputs: None,
    ) -> float:
        """Run the program until it ends; return the processor seconds that the codec took.

        ``how`` is ``sweep`` or ``list``, and ``words`` the arguments after ``out``. ``swept`` has
        the first and the number of a sweep's inputs. Raise CodecFailedError if the program fails or
        exceeds a time limit, NotOpenedError if it cannot load the codec, ManyRunsError if a sweep
        has too many runs, and SweepStoppedError if ``stop`` is set.
        """
        file = folder / "progress"
        np.array([STARTING, 0], np.uint64).tofile(file)
        place = np.memmap(file, np.uint64, "r+")
        stderr = folder / "stderr"
        with stderr.open("wb") as errors:
            process = subprocess.Popen(
                [*self.command, how, str(file), str(out), *words],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                env=self.environment, process_group=0,
            )  # fmt: skip
            try:
                self._wait(process, place, stop, swept, progress)
            finally:
                # The codec may have started processes of its own, or be one.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        code, at = process.returncode, int(place[0])
        seconds = float(place[1]) * 1e-9
        # The drivers write these last, and never as 0: else the codec itself called exit(0).
        if code == 0 and seconds:
            return seconds
        said = stderr.read_text(encoding="utf-8", errors="replace").strip()
        raise self._failure(code, at, said)

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        place: NDArray[np.uint64],
        stop: Event,
        swept: tuple[int, int],
        progress: Advance,
    ) -> None:
        first, count = swept
        told, last, since = first, STARTING, monotonic()
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL)
            at = int(place[0])
            if at != STARTING and count:
                progress(at - told)
                told = at
            if process.returncode is not None:
                progress(first + count - told if process.returncode == 0 else 0)
                return
            if at != last:
                last, since = at, monotonic()
            limit = START_SECONDS if at == STARTING else self.seconds
            if monotonic() - since > limit:
                what = "was not loaded" if at == STARTING else "did not return"
                raise _failed_at(f"{what} within {limit:g} s", at)
            if stop.is_set():
                raise SweepStoppedError

    def _failure(self, code: int, at: int, said: str) -> Exception:
        if code == MANY_RUNS:
            return ManyRunsError()
        lines = said.splitlines()
        last = plain_line(lines[-1], LONGEST) if lines else ""
        if code == NOT_OPENED:
            return NotOpenedError(last)
        if code == RAISED:
            place_text, _, text = last.partition(" ")
            return CodecFailedError(text, int(place_text), has_input=True)
        if code < 0:
            return _failed_at(f"ended its process by {signal.Signals(-code).name}", at)
        what = "ended its process" + (" while it was loaded," if at == STARTING else "")
        return _failed_at(f"{what} with exit code {code}", at)


def _texts_of(path: Path) -> CodecAnswerBits:
    """Return the lines of a file as an array of texts."""
    lines = path.read_bytes().decode(errors="replace").split("\n")[:-1]
    texts = np.empty(len(lines), object)
    texts[:] = lines
    return texts


class SweepStoppedError(Exception):
    """A part of a sweep was ended early, because another part failed."""


class NotOpenedError(CastigateError):
    """The program could not load the codec's function."""


def _failed_at(says: str, at: int) -> CodecFailedError:
    """Return the error of the block that begins at ``at``, or of loading for ``STARTING``."""
    if at == STARTING:
        return CodecNotLoadedError(says, -1, has_input=True)
    return CodecFailedError(says, at)


def error_among(inputs: WordsOf64) -> str:
    """Return the message for ``inputs`` that fail in one call, but not one by one."""
    return (
        f"fails for the inputs 0x{int(inputs[0]):x} to 0x{int(inputs[-1]):x}, and for none of them"
        " alone"
    )


def python_command(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command that starts ``python_worker``, and the environment variables for it.

    ``words`` are its first arguments, from MODULE to TEXTS.
    """
    command = (sys.executable, "-P", "-m", "conformance.extras.codec.python_worker", *words)
    return command, os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def seconds_of_children() -> float:
    """Return the processor seconds of all child processes that have ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
