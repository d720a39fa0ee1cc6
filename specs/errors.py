"""The errors a user can cause: one line each, what is wrong, where, and what to do."""

from __future__ import annotations


class CastigateError(Exception):
    """Something the user gave is wrong; the message is one line fit for stderr."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.encode("utf-8", "backslashreplace").decode().split()))


class DocumentError(CastigateError):
    """A document in YAML that cannot be taken as it stands."""
