"""Errors that a user can cause: one line each that says what is wrong, where, and what to do."""

from __future__ import annotations

from specs.plain_text import plain_line

IS_A_BUG = "this is a bug in castigate; report it with the lines above"


class CastigateError(Exception):
    """The user's input is wrong; the message is one line that can be printed to stderr."""

    def __init__(self, message: str) -> None:
        super().__init__(plain_line(message))


class DocumentError(CastigateError):
    """A document's YAML is invalid."""
