"""Versions of a backend, and spans of them: ``1.20.1``, or ``1.20.1 to 1.31.1``."""

from __future__ import annotations

import re
from dataclasses import dataclass

TO = " to "
LATER_SUFFIXES = ("post", "r", "rev")
"""A version with one of these is later than the bare number; with any other, as rc, earlier."""
END = (1, 0, "")
"""Sorts after suffixes such as rc and dev, and before numbers and later suffixes."""


def public_version(version: str) -> str:
    """Return a version without its local part: ``2.13.0`` for ``2.13.0+cpu``."""
    return " ".join(version.partition("+")[0].split())


def version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return the key that sorts versions, those with a suffix such as rc before the bare number."""
    parts = []
    for word in re.findall(r"\d+|[^\W\d_]+", public_version(version).lower()):
        if word.isdigit():
            parts.append((2, int(word), ""))
        else:
            parts.append((2, -1, word) if word in LATER_SUFFIXES else (0, 0, word))
    return (*parts, END)


@dataclass(frozen=True)
class Span:
    """All versions from the first to the last, both included."""

    first: str
    last: str

    @classmethod
    def of(cls, text: str) -> Span:
        """Parse ``VERSION`` or ``VERSION to VERSION``.

        Raise ValueError if the text is neither, or if the second version is the earlier one.
        """
        first, to, last = text.partition(TO)
        span = cls(public_version(first), public_version(last) if to else public_version(first))
        if not span.first or not span.last:
            raise ValueError(f"`{text}` is not a version; write VERSION or VERSION to VERSION")
        if version_order(span.last) < version_order(span.first):
            raise ValueError(f"`{text}` is reversed; write versions from the earlier to the later")
        return span

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first}{TO}{self.last}"

    def __contains__(self, version: str) -> bool:
        return version_order(self.first) <= version_order(version) <= version_order(self.last)

    def overlaps(self, other: Span) -> bool:
        """Return whether a version can be in both spans."""
        return version_order(self.first) <= version_order(other.last) and (
            version_order(other.first) <= version_order(self.last)
        )
