"""A hint for a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """``did you mean `…`? `` with the known word that is nearest, or nothing."""
    found = closest(word, known)
    return f"did you mean `{found}`? " if found else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest, if any is near."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None
