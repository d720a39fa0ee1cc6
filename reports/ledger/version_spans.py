"""Versions of a backend, and spans of them: ``1.20.1``, or ``1.20.1 to 1.31.1``."""

from __future__ import annotations

import re
from dataclasses import dataclass

TO = " to "
AFTER = ("post", "r", "rev")
"""Words that mark a later version than the bare number; others, as rc and dev, an earlier one."""
END = (1, 0, "")


def public(version: str) -> str:
    """A version without its local part: builds of one version are one."""
    return " ".join(version.partition("+")[0].split())


def order(version: str) -> tuple[tuple[int, int, str], ...]:
    """What versions are sorted by."""
    parts = []
    for word in re.findall(r"\d+|[^\W\d_]+", public(version).lower()):
        if word.isdigit():
            parts.append((2, int(word), ""))
        else:
            parts.append((2, -1, word) if word in AFTER else (0, 0, word))
    return (*parts, END)


@dataclass(frozen=True)
class Span:
    """All versions from the first to the last."""

    first: str
    last: str

    @classmethod
    def of(cls, text: str) -> Span:
        """The span that a text says, or a ValueError."""
        first, to, last = text.partition(TO)
        span = cls(public(first), public(last) if to else public(first))
        if not span.first or not span.last:
            raise ValueError(f"`{text}` is no version, nor VERSION to VERSION")
        if order(span.last) < order(span.first):
            raise ValueError(f"versions run from the earlier to the later, not `{text}`")
        return span

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first}{TO}{self.last}"

    def __contains__(self, version: str) -> bool:
        return order(self.first) <= order(version) <= order(self.last)

    def meets(self, other: Span) -> bool:
        """Whether there may be a version that is in both."""
        return not (order(self.last) < order(other.first) or order(other.last) < order(self.first))

    def reaching(self, version: str) -> Span:
        """The least span that has these versions and one more."""
        ends = sorted((self.first, self.last, public(version)), key=order)
        return Span(ends[0], ends[-1])
