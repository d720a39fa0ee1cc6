"""Memory that a program may write its answers to, and nothing else."""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref

ANSWER = 1 << 23
"""Bytes of an answer: enough to make the cost of asking small, few enough for a cache."""
SLOTS = 2
"""One is read while the other is written."""


class SharedMemory:
    """A file without a name, whose size nobody can change any more."""

    def __init__(self) -> None:
        self.size = SLOTS * ANSWER
        self.descriptor = os.memfd_create("castigate", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self.descriptor)
        os.ftruncate(self.descriptor, self.size)
        # A file that shrinks would end us by SIGBUS as soon as we look at it.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self._view = memoryview(mmap.mmap(self.descriptor, self.size, prot=mmap.PROT_READ))

    def slot(self, number: int) -> tuple[int, int]:
        """The offset of a question's room, and how many bytes it has."""
        return number % SLOTS * ANSWER, ANSWER

    def content(self, offset: int, size: int) -> memoryview:
        """What is there, and what will be: the program may go on writing."""
        return self._view[offset : offset + size]
