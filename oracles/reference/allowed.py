"""What a case allows for one input."""

from __future__ import annotations

from typing import NamedTuple

from specs.ruling import Branch


class Allowed(NamedTuple):
    """The branch that takes an input, and the patterns it allows where it names patterns."""

    place: int
    branch: Branch
    codes: tuple[int, ...] = ()
