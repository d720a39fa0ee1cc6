"""Writes where backends agree as a page: a table of the ranges, then each pair in detail."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.exchange.portable_pairs import (
    PortablePair,
    PortablePairs,
    agree_words,
    also_words,
    basis_words,
    does_lines,
)
from specs.release import VERSION


def page(every: PortablePairs, date: str) -> str:
    """Return the page as Markdown."""
    return "\n".join([*_head(every, date), *(line for each in every.pairs for line in _pair(each))])


def _head(every: PortablePairs, date: str) -> Iterator[str]:
    yield "# Where backends agree"
    yield ""
    versions = ", ".join(f"{name} {version}" for name, version in every.versions.items())
    yield (
        f"Made by `castigate portable … --page FILE` (castigate {VERSION}, {date}): {versions}. "
        "All named backends give the same bits on the inputs below; any NaN equals any NaN."
    )
    yield ""
    yield "| pair | backends | agree | asked |"
    yield "|---|---|---|---|"
    for each in every.pairs:
        asked = f"{each.asked:,}" + (", every input" if each.every_input else ", sampled")
        agree = agree_words(each) if each.asked else "–"
        pair = f"{each.source} → {each.target}"
        yield f"| {pair} | {', '.join(each.backends)} | {agree} | {asked} |"


def _pair(pair: PortablePair) -> Iterator[str]:
    yield ""
    yield f"## {pair.source} to {pair.target}"
    yield ""
    words = basis_words(pair)
    yield f"{words[0].upper()}{words[1:]}."
    yield ""
    if pair.asked:
        yield f"- agree: {agree_words(pair)}"
    for each in pair.differ:
        yield f"- differ: {', '.join(each.where)}"
        yield from (f"    - {line}" for line in does_lines(each))
    if pair.elsewhere:
        yield f"- also: {also_words(pair)}"
    for name, reason in pair.absent.items():
        yield f"- absent: {name} ({reason})"
