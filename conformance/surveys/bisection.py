"""Finds the first release of a framework that answers otherwise than the oldest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

Answer = TypeVar("Answer")


class Change(NamedTuple):
    """Two neighboring releases: the last with the old answer, and the first with another."""

    last_same: str
    first_other: str


def first_change(
    releases: Sequence[str], answer_of: Callable[[str], Answer], newest: Answer
) -> Change | None:
    """The first change among releases, the oldest first; None if both ends answer alike.

    ``newest`` is what the last release answers. At most log2 of their number are asked besides the
    oldest. If answers change and change back, one of the changes is found.
    """
    low, high = 0, len(releases) - 1
    oldest = answer_of(releases[low])
    if high == 0 or oldest == newest:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if answer_of(releases[middle]) == oldest:
            low = middle
        else:
            high = middle
    return Change(releases[low], releases[high])
