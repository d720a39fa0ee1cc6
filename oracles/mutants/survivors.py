"""Why mutants survive the tier quick, by kind; docs/limitations.md says the same to users."""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN_REASON = "not explained yet"
REASONS: Mapping[str, str] = {
    "*+behind-a-million": "rows of more than a million elements are asked at the tier full only",
    "*+after-a-minute": "no clock is varied, and a pair takes less than a minute",
    "*+at-every-1000th-call": "the tier quick makes a few hundred calls per pair",
    "*+of-one-pattern": "one pattern of a wide source is met by chance only",
    "*+of-one-pattern-in-a-million": "one pattern in a million is met by chance only",
}
"""Sentences by shell patterns of `KIND: FAULT+CONDITION`; the first that matches counts."""
