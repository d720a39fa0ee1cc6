"""Sweeps consecutive patterns, generated in a backend's process, by requests sent ahead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oracles.backend.backend_supervisor import BackendSupervisor
from oracles.backend.crash_bisect import AskInputs, CrashBisector
from oracles.backend.frames import SLOTS
from oracles.backend.remote_errors import ProcessDied
from oracles.protocol import Bits


@dataclass
class RemoteSweep:
    """Answers consecutive patterns of ``range(lo, hi)`` in blocks of one request each.

    While the caller judges one block, the process answers the next. ``ask_alone`` sends a request
    for a block that failed, or for a part of it; ``bisector`` finds the inputs that cause a crash.
    """

    supervisor: BackendSupervisor[Any]
    bisector: CrashBisector
    request: dict[str, Any]
    """The header members that all requests share."""
    ask_alone: AskInputs
    storage: np.dtype[Any]
    lo: int
    hi: int
    block_size: int
    _block: tuple[int, Bits] | None = None
    """The first pattern of the last block, and the answers to the block."""
    _failed: int | None = None
    """The first pattern of the last block that was not answered as a whole."""
    _sent_ahead: dict[int, int] = field(default_factory=dict)
    """By first pattern of a block: the number of the request for it that was sent ahead."""

    def __call__(self, first: int, count: int) -> Bits:
        """Return the answers to ``count`` patterns from ``first`` on, joined from their blocks.

        ``count`` is at least 1. Later calls may overwrite the answers. A malformed answer to a part
        is returned as it is. Raises what the backend raised for one of these patterns, or
        ProcessDied.
        """
        pieces = []
        pattern, end = first, first + count
        while pattern < end:
            begin = self.lo + (pattern - self.lo) // self.block_size * self.block_size
            part = min(end, begin + self._count(begin)) - pattern
            answers = self._answers(begin, pattern, part)
            if not _is_row(answers, part):
                return answers  # which the caller reports
            pattern += part
            # A copy if more follow: the next block may be written to the same memory.
            pieces.append(answers if pattern == end else answers.copy())
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _answers(self, begin: int, pattern: int, count: int) -> Bits:
        """Return the answers to ``count`` patterns from ``pattern`` on, of the block at ``begin``.

        Raises an Exception only if these patterns cause it, but ProcessDied for any part of the
        block.
        """
        is_all = count == self._count(begin)
        if begin != self._failed:
            try:
                block = self._whole(begin)
            except Exception:
                if is_all:
                    raise
            else:
                if is_all:
                    return block
                if _is_row(block, self._count(begin)):
                    return block[pattern - begin :][:count]
            self._failed = begin
            self._sent_ahead.clear()  # They are read, and dropped, at the next request.
        return self._alone(pattern, count)

    def _whole(self, begin: int) -> Bits:
        if self._block is not None and self._block[0] == begin:
            return self._block[1]
        self._block = None
        try:
            answers = self._next_block(begin)
        except ProcessDied:
            self._sent_ahead.clear()
            answers = self._alone(begin, self._count(begin))
        self._block = begin, answers
        return answers

    def _next_block(self, begin: int) -> Bits:
        """Return the answers to the block at ``begin``, after requesting it and the next ones."""
        if begin not in self._sent_ahead:
            self._sent_ahead.clear()
        after = max(self._sent_ahead, default=begin - self.block_size) + self.block_size
        while after < self.hi and len(self._sent_ahead) < SLOTS:
            request = self.request | {"first": after, "count": self._count(after)}
            self._sent_ahead[after] = self.supervisor.ask_ahead(request, self.bisector.seconds)
            after += self.block_size
        number = self._sent_ahead.pop(begin)
        answers: Bits = self.supervisor.wait_for(number, self.bisector.seconds)
        return answers

    def _alone(self, first: int, count: int) -> Bits:
        bits = np.arange(first, first + count, dtype=np.uint64).astype(self.storage)
        answers: Bits = self.bisector.ask(self.ask_alone, bits)
        return answers

    def _count(self, begin: int) -> int:
        return min(self.block_size, self.hi - begin)


def _is_row(answers: object, count: int) -> bool:
    return isinstance(answers, np.ndarray) and answers.shape == (count,)
