"""A case and its id: document, version, source, target, and one segment per mode."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

JOINT = "+"
"""The character between a document's name and that of house rules, in the name of both."""


@dataclass(frozen=True)
class Case:
    """One question to an oracle; ``mode`` has the parameters that affect the pair."""

    document: str
    version: str
    source: str
    target: str
    modes: tuple[tuple[str, str], ...] = ()
    example: str | None = field(default=None)

    @property
    def mode(self) -> dict[str, str]:
        """The values of the parameters by name."""
        return dict(self.modes)

    @cached_property
    def id(self) -> str:
        """The path that identifies the case in options, results and reports."""
        segments = [f"{self.document}:{self.version}", self.source, self.target]
        segments += [f"{name}:{value}" for name, value in self.modes]
        if self.example is not None:
            segments.append(f"example:{self.example}")
        return "/".join(segments)

    @property
    def asked(self) -> Case:
        """The case that a backend is asked: the document's own, also for one with house rules."""
        page, joint, _ = self.document.partition(JOINT)
        return replace(self, document=page) if joint else self

    def __str__(self) -> str:
        return self.id
