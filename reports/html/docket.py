"""The rows of the page of public threads, which whoever can decide threads provides.

A thread is decided by asking, or by answers that a run holds; both are above this layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class DocketQuestion:
    """One input that a thread is about: its case, and what the document and everybody say."""

    case: str
    words: str


@dataclass(frozen=True)
class DocketRow:
    """A thread: its address, what was reported, the verdicts, and whose document decides."""

    link: str
    name: str
    opened: str
    report: str
    verdict: str
    """The most urgent verdict, by which threads are counted."""
    verdicts: tuple[str, ...]
    standing: str
    questions: tuple[DocketQuestion, ...]


DocketRows = Callable[[str], Sequence[DocketRow]]
"""Decides threads by the answers that a run holds."""
