"""Sweeps consecutive patterns that a program generates itself, with requests sent ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.isolation.backend_supervisor import BackendSupervisor
from oracles.isolation.crash_bisect import CrashBisector
from oracles.isolation.remote_errors import ProcessDied
from oracles.protocol import Bits
from oracles.wire.schema import Hello
from oracles.wire.shared_memory import SLOT_BYTES, SLOTS
from specs.cases import Case
from specs.formats import format_named


class ProgramSweep:
    """Answers consecutive patterns of ``range(lo, hi)`` in blocks of one request each.

    While the caller judges one block, the program works on the next.
    """

    def __init__(
        self,
        supervisor: BackendSupervisor[Hello],
        bisector: CrashBisector,
        case: Case,
        lo: int,
        hi: int,
        seconds: float,
    ) -> None:
        self._supervisor = supervisor
        self._bisector = bisector
        self._case = case
        self._lo = lo
        self._hi = hi
        self._seconds = seconds
        self._storage = np.dtype(format_named(case.source).storage)
        self._block_size = SLOT_BYTES // np.dtype(format_named(case.target).storage).itemsize
        """Patterns of one request: as many as one slot of the shared memory holds answers."""
        self._block: tuple[int, Bits] | None = None
        """The last block's first pattern and its answers."""
        self._sent_ahead: dict[int, int] = {}
        """The numbers of requests sent ahead, by the first pattern of their blocks."""

    def __call__(self, first: int, count: int) -> Bits:
        """Return the answers to consecutive patterns, from all the blocks that they lie in."""
        pieces = []
        pattern, end = first, first + count
        while pattern < end:
            begin = self._lo + (pattern - self._lo) // self._block_size * self._block_size
            answers = self._answers(begin)
            if answers.shape != (self._count(begin),):
                return answers  # of a wrong shape, which the caller reports
            piece = answers[pattern - begin : end - begin]
            pattern += piece.size
            # A copy if more follow: the next block may be written to the same memory.
            pieces.append(piece if pattern == end else piece.copy())
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _answers(self, begin: int) -> Bits:
        if self._block is not None and self._block[0] == begin:
            return self._block[1]
        self._block = None
        try:
            answers = self._next_block(begin)
        except ProcessDied:
            self._sent_ahead.clear()
            count = self._count(begin)
            bits = np.arange(begin, begin + count, dtype=np.uint64).astype(self._storage)
            # Bisecting only ever asks for consecutive patterns, so these are sweeps too.
            answers = self._bisector.ask(self._ask, bits)
        self._block = begin, answers
        return answers

    def _next_block(self, begin: int) -> Bits:
        """Return a block; send the requests for the following ones before waiting for it."""
        if begin not in self._sent_ahead:
            self._sent_ahead.clear()
        after = max(self._sent_ahead, default=begin - self._block_size) + self._block_size
        while after < self._hi and len(self._sent_ahead) < SLOTS:
            request = self._request(after, self._count(after))
            self._sent_ahead[after] = self._supervisor.ask_ahead(request, self._seconds)
            after += self._block_size
        number = self._sent_ahead.pop(begin)
        answers: Bits = self._supervisor.wait_for(number, self._seconds)
        return answers

    def _ask(self, part: Bits, seconds: float) -> Any:
        return self._supervisor.ask(self._request(int(part[0]), part.size), {}, seconds)

    def _request(self, first: int, count: int) -> dict[str, Any]:
        return {"ask": "sweep", "case": self._case, "first": first, "count": count}

    def _count(self, begin: int) -> int:
        return min(self._block_size, self._hi - begin)
