"""Shared memory that a backend's process may write its answers to."""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref

SLOT_BYTES = 1 << 23
"""Bytes of one answer: enough to make the overhead small, few enough for a cache."""
SLOTS = 2
"""The number of slots: this side reads one while the backend's process writes the other."""


class SharedMemory:
    """An anonymous file whose size is sealed; this side maps it read-only."""

    def __init__(self) -> None:
        self.size = SLOTS * SLOT_BYTES
        self.descriptor = os.memfd_create("castigate", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self.descriptor)
        os.ftruncate(self.descriptor, self.size)
        # If the program could shrink the file, reading it here would end this process by SIGBUS.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self._view = memoryview(mmap.mmap(self.descriptor, self.size, prot=mmap.PROT_READ))

    def slot(self, number: int) -> tuple[int, int]:
        """Return the offset and size of the slot for the answer to a request, by its number."""
        return number % SLOTS * SLOT_BYTES, SLOT_BYTES

    def content(self, offset: int, size: int) -> memoryview:
        """Return a view of the memory; its content changes if the program goes on writing."""
        return self._view[offset : offset + size]
