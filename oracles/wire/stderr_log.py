"""What a program says on stderr, of which a bounded part is kept."""

from __future__ import annotations

from dataclasses import dataclass

KEPT = 1 << 16


@dataclass
class Log:
    """The beginning and the end of all that a backend's processes have said."""

    size: int = 0
    first: bytes = b""
    last: bytes = b""

    def keep(self, said: bytes) -> None:
        """Add what was said."""
        self.size += len(said)
        more = KEPT - len(self.first)
        self.first += said[:more]
        self.last = (self.last + said[more:])[-KEPT:]

    def taken(self) -> bytes:
        """What there is; after that, there is nothing."""
        content = self.content
        self.size, self.first, self.last = 0, b"", b""
        return content

    @property
    def content(self) -> bytes:
        """All of it, or both ends and the number of bytes between them."""
        missing = self.size - len(self.first) - len(self.last)
        between = b"\n[%d bytes are left out]\n" % missing if missing else b""
        return self.first + between + self.last
