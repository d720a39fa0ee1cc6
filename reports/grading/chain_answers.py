"""What a chain of casts allows, in the words that single casts have."""

from __future__ import annotations

from collections.abc import Iterator

from oracles.reference.chain_ends import Ends
from specs.formats import Format


def ends_words(target: Format, allowed: Ends) -> Iterator[str]:
    """Hex patterns, or the names that ``describe_allowed`` has for what is no pattern."""
    if allowed.is_open:
        yield "anything"
    if allowed.is_rejected:
        yield "error"
    for code in sorted(allowed.codes):
        yield target.hexadecimal(code)
    for sign in sorted(allowed.nans):
        yield "any-nan" if sign == "any" else f"{sign}nan"
