"""Keeps a bounded part of what a program writes to stderr."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

MAX_BYTES = 1 << 16
"""Bytes kept of the beginning, and as many of the end."""


@dataclass
class StderrLog:
    """The beginning and the end of what a backend's processes have written to stderr."""

    size: int = 0
    first: bytes = b""
    last: bytes = b""

    def append(self, written: bytes) -> None:
        """Add what was written."""
        self.size += len(written)
        room = MAX_BYTES - len(self.first)
        self.first += written[:room]
        self.last = (self.last + written[room:])[-MAX_BYTES:]

    def drain(self) -> bytes:
        """Return the content and empty the log."""
        content = self.content
        self.size, self.first, self.last = 0, b"", b""
        return content

    @property
    def content(self) -> bytes:
        """The whole log, or both ends with the number of bytes left out between them."""
        left_out = self.size - len(self.first) - len(self.last)
        between = b"\n[%d bytes are left out]\n" % left_out if left_out else b""
        return self.first + between + self.last


@runtime_checkable
class WithStderrLog(Protocol):
    """An oracle that keeps what its program writes to stderr."""

    log: StderrLog
