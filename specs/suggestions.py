"""Suggestions for misspelled words in error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean `…`? `` with the most similar known word, or an empty string."""
    match = closest(word, known)
    return f"did you mean `{match}`? " if match else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, or None if no word is similar."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None
