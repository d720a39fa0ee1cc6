"""Describes what a chain of casts allows by the words that describe single casts."""

from __future__ import annotations

from collections.abc import Iterator

from oracles.reference.chain_ends import Ends
from specs.formats import Format


def ends_words(target: Format, allowed: Ends) -> Iterator[str]:
    """Yield what a chain allows, as words: hex patterns, NaNs, ``error`` or ``anything``.

    The words are those of ``describe_allowed``.
    """
    if allowed.is_open:
        yield "anything"
    if allowed.is_rejected:
        yield "error"
    for code in sorted(allowed.codes):
        yield target.hexadecimal(code)
    for sign in sorted(allowed.nans):
        yield "any-nan" if sign == "any" else f"{sign}nan"
