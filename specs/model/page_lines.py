"""A document's source page as numbered lines: ranges of them, and digests in place of the text.

The text of a page belongs to its authors and is not shipped. ``SEED.sha256`` beside a document has
one line for each line of the page: the first 12 hex digits of the sha256 of its text without
trailing white space, or nothing where the page's line is blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, WithJsonSchema

from specs.errors import CastigateError, DocumentError, require_regular
from specs.model.strict_model import StrictModel

RANGE = re.compile(r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?")
NO_LINES = "none"
DIGEST = re.compile(r"([0-9a-f]{12})?")


class LineSpan(NamedTuple):
    """A range of lines of a page, first and last included."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def _parse_span(value: object) -> LineSpan:
    match = RANGE.fullmatch(str(value)) if isinstance(value, str | int) else None
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise ValueError(
            f"`{value}` is not a range of lines; write 57, 57-145, a list of these, or none"
        )
    return LineSpan(int(match[1]), int(match[2] or match[1]))


def _parse_spans(value: object) -> tuple[LineSpan, ...]:
    if value == NO_LINES:
        return ()
    return tuple(map(_parse_span, value if isinstance(value, list) else [value]))


_RANGE_SCHEMA = {
    "anyOf": [{"type": "integer"}, {"pattern": f"^{RANGE.pattern}$", "type": "string"}]
}
LineRange = Annotated[LineSpan, BeforeValidator(_parse_span), WithJsonSchema(_RANGE_SCHEMA)]
LineSpans = Annotated[
    tuple[LineSpan, ...],
    BeforeValidator(_parse_spans),
    WithJsonSchema(
        {"anyOf": [{"const": NO_LINES}, _RANGE_SCHEMA, {"items": _RANGE_SCHEMA, "type": "array"}]}
    ),
]


def cite_lines(spans: Sequence[LineSpan]) -> str:
    """Format ranges for a reader: `line 57`, `lines 57-145, 150`; empty if there are none."""
    is_plural = len(spans) > 1 or any(first != last for first, last in spans)
    return f"line{'s' if is_plural else ''} {', '.join(map(str, spans))}" if spans else ""


def line_numbers(spans: Iterable[LineSpan]) -> Iterator[int]:
    """Yield the number of every line in some ranges."""
    for span in spans:
        yield from range(span.first, span.last + 1)


@dataclass(frozen=True, eq=False)
class PageDigests:
    """The digests of a page's lines: ``digests[0]`` is that of line 1, empty if it is blank."""

    name: str
    digests: tuple[str, ...]

    @cached_property
    def whole(self) -> LineSpan:
        """The range of all lines."""
        return LineSpan(1, len(self.digests))

    def has_text(self, line: int) -> bool:
        """Return whether the page has this line and it is not blank."""
        return line <= len(self.digests) and bool(self.digests[line - 1])

    def texts(self, *spans: LineSpan) -> list[int]:
        """Return the numbers of the lines within some ranges that are not blank."""
        return [line for line in line_numbers(spans) if self.has_text(line)]

    def spans(self, lines: Iterable[int]) -> list[LineSpan]:
        """Group lines with text into ranges; a blank line between two of them does not end one.

        Raise KeyError for a blank line among ``lines``.
        """
        ordered = sorted(set(lines))
        index = {line: at for at, line in enumerate(self.texts(self.whole))}
        # Neighbors in both lists have the same difference between their two indices.
        runs = groupby(enumerate(ordered), lambda each: index[each[1]] - each[0])
        return [
            LineSpan(run[0], run[-1]) for run in ([line for _, line in each] for _, each in runs)
        ]


def line_digests(text: str) -> tuple[str, ...]:
    """Return the digest of each line of a page's text; that of a blank line is empty."""
    lines = text.removesuffix("\n").split("\n")
    return tuple(
        sha256(line.rstrip().encode()).hexdigest()[:12] if line.strip() else "" for line in lines
    )


def page_beside(document: Path, seed: str) -> PageDigests | None:
    """Read the digests of the page ``seed`` beside a document's file; None if there are none.

    Raise DocumentError if they cannot be read, or a line is no digest.
    """
    path = document.parent / f"{seed}.sha256"
    if not path.is_file():
        return None
    try:
        digests = path.read_text(encoding="ascii").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}") from None
    for number, digest in enumerate(digests, 1):
        if not DIGEST.fullmatch(digest):
            raise DocumentError(
                f"{path}:{number}: `{digest}` is not the digest of a line;"
                f" write the file again by castigate specs page {seed}"
            )
    return PageDigests(seed, tuple(digests))


def read_page(path: Path) -> str:
    """Read the user's own copy of a page; raise CastigateError if it is not readable UTF-8 text."""
    try:
        require_regular(path)
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CastigateError(f"{path} cannot be read as UTF-8 text: {error}") from None


@dataclass(frozen=True)
class Alignment:
    """Maps numbers of old lines to those of new ones.

    ``repeated`` has lines with the same text, ``replaced`` those in whose place another text
    stands.
    """

    repeated: dict[int, int]
    replaced: dict[int, int]


def align(
    old: Sequence[str], new: Sequence[str], old_lines: Sequence[int], new_lines: Sequence[int]
) -> Alignment:
    """Align lines of an old and a new text by their digests.

    ``old`` and ``new`` have the digests of all lines, and ``old_lines`` and ``new_lines`` the
    numbers of those to align, counted from 1; none of these may be blank.
    """
    before = [old[line - 1] for line in old_lines]
    after = [new[line - 1] for line in new_lines]
    repeated: dict[int, int] = {}
    replaced: dict[int, int] = {}
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        pairs = zip(old_lines[first:last], new_lines[new_first:new_last], strict=False)
        if kind == "equal":
            repeated.update(pairs)
        elif kind == "replace":
            replaced.update(pairs)
    return Alignment(repeated, replaced)


class PointedEntry(StrictModel):
    """A part of a document that can point at the lines of the page that it encodes."""

    lines: LineSpans | None = None
    """The lines that it encodes, or None. Empty (`none` in YAML) if its clause cites another source
    than the page."""
