"""A hint for a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """``did you mean `…`? `` with the known word that is nearest, or nothing."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"did you mean `{matches[0]}`? " if matches else ""
