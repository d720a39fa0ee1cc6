"""Consecutive patterns that a program makes itself: asked in blocks, and ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.isolation.backend_supervisor import Served
from oracles.isolation.crash_bisect import Survival
from oracles.isolation.remote_errors import Crashed
from oracles.protocol import Bits
from oracles.wire.schema import Hello
from oracles.wire.shared_memory import ANSWER, SLOTS
from specs.cases import Case
from specs.formats import format_named


class Sweeping:
    """Answers so many patterns from the first on; the program works on the next ones meanwhile."""

    def __init__(
        self,
        served: Served[Hello],
        survival: Survival,
        case: Case,
        lo: int,
        hi: int,
        seconds: float,
    ) -> None:
        self._served = served
        self._survival = survival
        self._case = case
        self._lo = lo
        self._hi = hi
        self._seconds = seconds
        self._storage = np.dtype(format_named(case.source).storage)
        self._length = ANSWER // np.dtype(format_named(case.target).storage).itemsize
        """Patterns of one question."""
        self._block: tuple[int, Bits] | None = None
        self._asked: dict[int, int] = {}
        """The numbers of the questions that were asked ahead, by where their blocks begin."""

    def __call__(self, first: int, count: int) -> Bits:
        """The answers to consecutive patterns, from as many blocks as they lie in."""
        pieces = []
        at, last = first, first + count
        while at < last:
            begin = self._lo + (at - self._lo) // self._length * self._length
            answers = self._answers(begin)
            if answers.shape != (self._count(begin),):
                return answers  # whoever checks answers tells what is wrong about their shape
            piece = answers[at - begin : last - begin]
            at += piece.size
            # The next block may be written to the same memory.
            pieces.append(piece if at == last else piece.copy())
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _answers(self, begin: int) -> Bits:
        if self._block is not None and self._block[0] == begin:
            return self._block[1]
        self._block = None
        try:
            answers = self._next(begin)
        except Crashed:
            self._asked.clear()
            count = self._count(begin)
            bits = np.arange(begin, begin + count, dtype=np.uint64).astype(self._storage)
            # Any part of consecutive patterns is one too.
            answers = self._survival.of(self._ask, bits)
        self._block = begin, answers
        return answers

    def _next(self, begin: int) -> Bits:
        """A block that was asked ahead, if it was; the next ones are asked before it is heard."""
        if begin not in self._asked:
            self._asked.clear()
        after = max(self._asked, default=begin - self._length) + self._length
        while after < self._hi and len(self._asked) < SLOTS:
            question = self._question(after, self._count(after))
            self._asked[after] = self._served.ask_ahead(question, self._seconds)
            after += self._length
        answers: Bits = self._served.heard(self._asked.pop(begin), self._seconds)
        return answers

    def _ask(self, part: Bits, seconds: float) -> Any:
        return self._served.ask(self._question(int(part[0]), part.size), {}, seconds)

    def _question(self, first: int, count: int) -> dict[str, Any]:
        return {"ask": "sweep", "case": self._case, "first": first, "count": count}

    def _count(self, begin: int) -> int:
        return min(self._length, self._hi - begin)
