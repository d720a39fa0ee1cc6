"""Asks a program line by line: an input a line on its stdin, an answer a line on its stdout.

A line has a pattern in hex, two digits a byte without a prefix, or a text. The program gets the
lines of a batch, then the end of its input, so that it need not flush its output after each line.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format
from specs.plain_text import plain_line

FIRST_BATCH, LARGEST_BATCH = 1 << 12, 1 << 20
"""Lines of the first batch, and the most of a later one."""
QUICK = 0.25
"""Seconds; after a batch that takes less, the next one has twice as many lines."""
SEARCHING = 1.0
"""Seconds after which a batch counts as hanging while the input is searched for that is at fault.

It is at least twice what the slowest batch took so far.
"""
LONGEST = 60
HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)
"""The two hex digits of each byte, as one word."""


class CodecEndedError(Exception):
    """A program ended, hung, or answered wrongly, at the input ``place``."""

    def __init__(self, says: str, place: int) -> None:
        super().__init__(says)
        self.place = place


class _BatchFailedError(Exception):
    """A program did not answer a batch; ``index`` is that of a malformed line, or -1.

    If it ``hangs``, the batch took longer than its limit.
    """

    def __init__(self, says: str, index: int = -1, *, hangs: bool = False) -> None:
        super().__init__(says)
        self.index, self.hangs = index, hangs


@dataclass
class _Program:
    """A program, with the limit of a batch in seconds, and the number of lines of the next one."""

    command: list[str]
    seconds: float
    lines_of: Callable[[NDArray[Any]], bytes]
    answers_of: Callable[[list[bytes]], NDArray[Any]]
    batch: int = FIRST_BATCH
    slowest: float = 0.0

    def ask(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Return the answers to inputs; raise CodecEndedError with the input at which it fails."""
        parts, at = [], 0
        while at < inputs.size:
            here = inputs[at : at + self.batch]
            begin = monotonic()
            try:
                parts.append(self._answers(here, self.seconds))
            except _BatchFailedError as error:
                limit = max(SEARCHING, 2 * self.slowest) if error.hangs else self.seconds
                guilty = error.index if error.index >= 0 else self._guilty(here, limit)
                raise CodecEndedError(str(error), int(here[guilty])) from None
            at += here.size
            took = monotonic() - begin
            self.slowest = max(self.slowest, took)
            if took < QUICK:
                self.batch = min(2 * self.batch, LARGEST_BATCH)
        return np.concatenate(parts)

    def _guilty(self, inputs: NDArray[Any], limit: float) -> int:
        """Return the index of the input to which bisection narrows the failure of a batch."""
        first, count = 0, inputs.size
        while count > 1:
            half = count // 2
            try:
                self._answers(inputs[first : first + half], min(limit, self.seconds))
                first, count = first + half, count - half
            except _BatchFailedError:
                count = half
        return first

    def _answers(self, inputs: NDArray[Any], seconds: float) -> NDArray[Any]:
        lines = self._output(self.lines_of(inputs), seconds).split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        if len(lines) != inputs.size:
            raise _BatchFailedError(f"gave {len(lines):,} of {inputs.size:,} lines; it fails")
        return self.answers_of(lines)

    def _output(self, given: bytes, seconds: float) -> bytes:
        process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            out, _ = process.communicate(given, seconds)
        except subprocess.TimeoutExpired:
            says = f"did not return within {self.seconds:g} s"
            raise _BatchFailedError(says, hangs=True) from None
        finally:
            process.kill()
            process.wait()
        code = process.returncode
        if code:
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            raise _BatchFailedError(f"ended its process {how}")
        return out


def program_asker(
    command: str, seconds: float, source: Format, target: Format, texts: Sequence[str]
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return a function from an array of patterns to the program's answers, patterns or texts.

    If the source has texts, the inputs are indices of ``texts``. ``seconds`` limits a batch. The
    function raises CodecEndedError with the input at which the program fails.
    """

    def texts_of(inputs: NDArray[Any]) -> bytes:
        return "".join(f"{texts[index]}\n" for index in inputs.tolist()).encode()

    def answered(lines: list[bytes]) -> NDArray[Any]:
        return _texts(lines) if target.kind == "text" else _codes(lines, target)

    given = texts_of if source.kind == "text" else hex_lines
    return _Program(shlex.split(command), seconds, given, answered).ask


def hex_lines(patterns: NDArray[Any]) -> bytes:
    """Return a line for each pattern: its hex digits, two for each byte of its storage."""
    width = patterns.dtype.itemsize
    digits = np.full((patterns.size, 2 * width + 1), ord("\n"), np.uint8)
    big = patterns.astype(patterns.dtype.newbyteorder(">")).view(np.uint8).reshape(-1, width)
    digits[:, :-1] = HEX[big].view(np.uint8)
    return digits.tobytes()


def _codes(lines: list[bytes], target: Format) -> NDArray[Any]:
    """Return hex patterns, with or without `0x`, as numbers; raise _BatchFailedError for others."""
    largest = np.iinfo(target.storage).max
    try:
        found = [int(line, 16) for line in lines]
    except ValueError:
        found = [_code(line) for line in lines]
    if min(found) < 0 or max(found) > largest:
        index = next(at for at, code in enumerate(found) if not 0 <= code <= largest)
        shown = plain_line(lines[index].decode(errors="replace"), LONGEST)
        says = f"answers `{shown}`, which is no code of {target.name} in hex,"
        raise _BatchFailedError(says, index)
    return np.array(found, target.storage)


def _code(line: bytes) -> int:
    try:
        return int(line, 16)
    except ValueError:
        return -1


def _texts(lines: list[bytes]) -> NDArray[Any]:
    found = np.empty(len(lines), object)
    found[:] = [line.decode(errors="replace").rstrip("\r") for line in lines]
    return found
