"""What an oracle is: it takes bit patterns of a case and gives bit patterns back."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from specs.cases import Case

Bits = NDArray[Any]
"""Bit patterns in the storage of a format (``Format.storage``), of any shape."""


class Unsupported(Exception):
    """The oracle does not offer what the case asks for; the message is its reason."""


class NotInstalled(Exception):
    """The oracle's framework is not here; the message says how to get it."""


@runtime_checkable
class Oracle(Protocol):
    """The least an adapter must offer; ``claims`` may be absent and then means every document."""

    name: str
    version: str

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case: the same shape, in the target format's storage."""
        ...
