"""Errors that a user can cause: one line each that says what is wrong, where, and what to do."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from specs.plain_text import plain_line

Location = tuple[str | int, ...]
"""The path of keys and indices from the top of a file to one part of it."""
LONGEST_QUOTE = 80
"""The most characters of a key or value that an error about a file quotes."""
IS_A_BUG = "this is a bug in castigate; report it with the lines above"


class CastigateError(Exception):
    """An error in the user's input; its message is one line that can be printed to stderr."""

    def __init__(self, message: str) -> None:
        super().__init__(plain_line(message))


class DocumentError(CastigateError):
    """An error in a document, or in another YAML file or file of digests that Castigate reads."""


def error_at(path: Path, line: int, location: Location, message: str) -> DocumentError:
    """Return an error that names file and line, and the rule if the location is inside one."""
    rule = ""
    if len(location) > 1 and location[0] == "rules":
        rule = f"rule {plain_line(str(location[1]), LONGEST_QUOTE)}: "
    return DocumentError(f"{path}:{line}: {rule}{message}")


def quoted(text: str) -> str:
    """Return a key or value as an error about a file shows it: in backquotes, and not too long."""
    return f"`{plain_line(text, LONGEST_QUOTE)}`"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean `…`? `` with the most similar known word, or an empty string."""
    match = closest(word, known)
    return f"did you mean `{match}`? " if match else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, or None if no word is similar."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def unknown_word(noun: str, word: str, known: Iterable[str], more: str = "") -> str:
    """Return an error about a word: what was meant or, if none is similar, all that it can be.

    ``more`` says what else it can be.
    """
    known = [*known]
    hint = did_you_mean(word, known) or f"write one of {', '.join(known)}"
    return f"unknown {noun} {quoted(word)}; {hint.rstrip()}{more}"


def require_regular(path: str | Path) -> None:
    """Raise CastigateError if a pipe, a socket or a device is at a path: reading one may never end.

    A folder passes; reading it fails at once. Raise OSError if nothing is there.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise CastigateError(f"{path} is a pipe or a device; give the name of a file")
