"""A case and its id: document, version, source, target, and one segment per parameter in effect."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Case:
    """One thing an oracle can be asked; ``mode`` holds the parameters that matter for the pair."""

    document: str
    version: str
    source: str
    target: str
    modes: tuple[tuple[str, str], ...] = ()
    example: str | None = field(default=None)

    @property
    def mode(self) -> dict[str, str]:
        """The parameters by name."""
        return dict(self.modes)

    @cached_property
    def id(self) -> str:
        """The path that names this case everywhere."""
        segments = [f"{self.document}:{self.version}", self.source, self.target]
        segments += [f"{name}:{value}" for name, value in self.modes]
        if self.example is not None:
            segments.append(f"example:{self.example}")
        return "/".join(segments)

    def __str__(self) -> str:
        return self.id
