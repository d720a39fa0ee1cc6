"""What stands after ``--backend``, taken apart."""

from __future__ import annotations

EXEC = "exec:"


def is_program(name: str) -> bool:
    """Whether a backend is a program that speaks the wire protocol."""
    return name.startswith(EXEC)


def framework_of(name: str) -> str:
    """What the names of a framework's roads have in common; of a program, its whole name."""
    return name if is_program(name) else name.partition(":")[0]
