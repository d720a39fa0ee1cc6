"""The number of examples that a property is tried on, which the night multiplies."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""The examples of Hypothesis's own default."""


def examples(count: int) -> settings:
    """Settings with this many examples; under a profile with more than usual, in proportion."""
    return settings(max_examples=count * settings().max_examples // USUAL)
