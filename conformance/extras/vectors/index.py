"""``index.json``: what each file of vectors is about, and what has no file, and why."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from specs.model.strict_model import StrictModel

INDEX = "index.json"
SCHEMA = "index.schema.json"

VectorKind = Literal["casts", "flags", "tensors", "values"]
"""The folder of a file: answers of casts, their flags, small tensors, or the values of codes."""


class DecidingRule(StrictModel):
    """A rule of a document that decides some of a file's inputs, and how firmly it binds."""

    rule: str
    level: str


class VectorFile(StrictModel):
    """One file: its content's digest, and what it tells.

    ``cases`` are all that have these answers; ``rules`` are those of the first. ``covers`` is `all`
    if the file tells of every input, and ``open`` how many of these any answer is right for:
    those that the document leaves open, and, if it ``refuses`` some, those that must be refused.
    ``agreed`` names the references that were computed independently and agree on every line.
    """

    file: str
    sha256: str
    kind: VectorKind
    source: str = ""
    source_bits: int = 0
    target: str = ""
    target_bits: int = 0
    covers: Literal["all", "some"] = "some"
    lines: int = 0
    open: int = 0
    refuses: bool = False
    cases: list[str] = Field(default_factory=list)
    rules: list[DecidingRule] = Field(default_factory=list)
    agreed: list[str] = Field(default_factory=list)


class LeftOut(StrictModel):
    """Cases without a file, for one reason."""

    why: str
    cases: list[str]


class VectorIndex(StrictModel):
    """The content of ``index.json``.

    ``suite`` is the digest of the files of the Castigate that made the vectors.
    """

    vectors: int
    castigate: str
    suite: str
    files: list[VectorFile]
    left_out: list[LeftOut]

    def as_json(self) -> bytes:
        """Return the index as JSON, the same bytes for the same content."""
        return (self.model_dump_json(indent=1) + "\n").encode()
