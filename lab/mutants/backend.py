"""Makes each mutant a backend: ``--backend lab.mutants.backend:NAME``."""

from __future__ import annotations

from functools import partial
from typing import Any

from lab.mutants.mutant import MutantOracle, mutant_named


def __getattr__(name: str) -> Any:
    """Return the constructor of the mutant of a name; raise AttributeError for other names."""
    if "@" not in name:
        raise AttributeError(name)
    return partial(MutantOracle, mutant_named(name))
