"""What a program says on stderr, of which a bounded part is kept."""

from __future__ import annotations

KEPT = 1 << 16


class Log:
    """The beginning and the end of all that a backend's processes have said."""

    def __init__(self) -> None:
        self._clear()

    def keep(self, said: bytes) -> None:
        """Add what was said."""
        self.size += len(said)
        more = KEPT - len(self._first)
        self._first += said[:more]
        self._last = (self._last + said[more:])[-KEPT:]

    def taken(self) -> bytes:
        """What there is; after that, there is nothing."""
        content = self.content
        self._clear()
        return content

    @property
    def content(self) -> bytes:
        """All of it, or both ends and the number of bytes between them."""
        missing = self.size - len(self._first) - len(self._last)
        between = b"\n[%d bytes are left out]\n" % missing if missing else b""
        return self._first + between + self._last

    def _clear(self) -> None:
        self.size = 0
        self._first = b""
        self._last = b""
