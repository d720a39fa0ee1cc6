"""Patterns of case ids in policies: ``*`` within a segment, ``**`` over any number of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

EVERY = "**"
"""The pattern of all cases."""


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    parts = {EVERY: ".*", "*": "[^/]*"}
    words = re.split(r"(\*\*|\*)", pattern)
    return re.compile("".join(parts.get(word, re.escape(word)) for word in words))


def matches(pattern: str, case: str) -> bool:
    """Whether a case id is one of those that a pattern stands for."""
    return _expression(pattern).fullmatch(case) is not None


def any_matches(patterns: Iterable[str], case: str) -> bool:
    """Whether one of the patterns stands for a case id."""
    return any(matches(pattern, case) for pattern in patterns)
