"""What a case allows for one input."""

from __future__ import annotations

from dataclasses import dataclass

from specs.ruling import Branch


@dataclass(frozen=True, slots=True)
class Allowed:
    """The branch that takes an input, and the patterns it allows where it names patterns."""

    place: int
    branch: Branch
    codes: tuple[int, ...] = ()
