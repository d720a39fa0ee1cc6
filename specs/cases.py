"""A case and its id: document, version, source, target, and one segment per mode.

A mode may be the shape of a tensor, which has a text, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from specs.calls import SHAPE

Shape = tuple[int, ...]

SCALAR = "scalar"
"""The text of the shape that has no dimensions."""
SHAPES_KEPT = 1024
JOINT = "+"
"""The character between a document's name and that of house rules, in the name of both."""


@dataclass(frozen=True)
class Case:
    """One question to an oracle: a pair in a version of a document, in a mode or as an example."""

    document: str
    version: str
    source: str
    target: str
    modes: tuple[tuple[str, str], ...] = ()
    example: str | None = field(default=None)

    @property
    def mode(self) -> dict[str, str]:
        """The values of all modes by name: of parameters, and of a form, a member or a shape."""
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


def shape_of(case: Case) -> Shape:
    """The shape of a case's input tensor."""
    return parse_shape(case.mode[SHAPE])


@lru_cache(SHAPES_KEPT)
def parse_shape(text: str) -> Shape:
    """Parse a shape as a case id writes it: `scalar`, `0`, `2x3`."""
    return () if text == SCALAR else tuple(map(int, text.split("x")))


def format_shape(shape: Shape) -> str:
    """Format a shape as a case id writes it; the inverse of ``parse_shape``."""
    return "x".join(map(str, shape)) if shape else SCALAR
