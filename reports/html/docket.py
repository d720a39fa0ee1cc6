"""The rows of the page of public threads.

A higher layer provides them: it decides a thread by asking backends, or by the answers of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class DocketQuestion:
    """One input that a thread is about: its case, what is allowed, and what backends answered."""

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
