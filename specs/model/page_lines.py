"""A document's page by its lines: ranges of them, and digests that stand for the text.

The text of a page belongs to its authors and is not shipped. ``SEED.sha256`` beside a document has
one line for each line of the page: the first 12 hex digits of the sha256 of its text without
trailing white space, and nothing where the page's line is blank.
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

from specs.errors import CastigateError, DocumentError

RANGE = re.compile(r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?")
NO_LINES = "none"
DIGEST = re.compile(r"([0-9a-f]{12})?")


class Span(NamedTuple):
    """Some lines of a page, from the first to the last."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def _span(word: object) -> Span:
    matched = RANGE.fullmatch(str(word)) if isinstance(word, str | int) else None
    if matched is None or int(matched[2] or matched[1]) < int(matched[1]):
        raise ValueError(
            f"`{word}` is no range of lines; write 57, 57-145, a list of such, or none"
        )
    return Span(int(matched[1]), int(matched[2] or matched[1]))


def _spans(value: object) -> tuple[Span, ...]:
    if value == NO_LINES:
        return ()
    return tuple(map(_span, value if isinstance(value, list) else [value]))


_RANGE_SCHEMA = {
    "anyOf": [{"type": "integer"}, {"pattern": f"^{RANGE.pattern}$", "type": "string"}]
}
LineRange = Annotated[Span, BeforeValidator(_span), WithJsonSchema(_RANGE_SCHEMA)]
Lines = Annotated[
    tuple[Span, ...],
    BeforeValidator(_spans),
    WithJsonSchema(
        {"anyOf": [{"const": NO_LINES}, _RANGE_SCHEMA, {"items": _RANGE_SCHEMA, "type": "array"}]}
    ),
]


def cited(spans: Sequence[Span]) -> str:
    """Ranges as a person reads them: `line 57`, `lines 57-145, 150`; empty where there are none."""
    several = len(spans) > 1 or any(first != last for first, last in spans)
    return f"line{'s' if several else ''} {', '.join(map(str, spans))}" if spans else ""


def numbers(spans: Iterable[Span]) -> Iterator[int]:
    """The numbers of all lines in some ranges."""
    for span in spans:
        yield from range(span.first, span.last + 1)


@dataclass(frozen=True, eq=False)
class Page:
    """A page by the digests of its lines; ``digests[0]`` is line 1, and empty where it is blank."""

    name: str
    digests: tuple[str, ...]

    @cached_property
    def whole(self) -> Span:
        """All lines of the page."""
        return Span(1, len(self.digests))

    def has_text(self, line: int) -> bool:
        """Whether the page has that line, and it is not blank."""
        return line <= len(self.digests) and bool(self.digests[line - 1])

    def texts(self, *spans: Span) -> list[int]:
        """The numbers of the lines of some ranges that have text."""
        return [line for line in numbers(spans) if self.has_text(line)]

    def spans(self, lines: Iterable[int]) -> list[Span]:
        """Lines as ranges; blank lines between two of them do not end a range."""
        ordered = sorted(set(lines))
        place = {line: at for at, line in enumerate(self.texts(self.whole))}
        runs = groupby(enumerate(ordered), lambda each: place[each[1]] - each[0])
        return [Span(run[0], run[-1]) for run in ([line for _, line in each] for _, each in runs)]


def digests_of(text: str) -> tuple[str, ...]:
    """The digests of a page's lines."""
    lines = text.removesuffix("\n").split("\n")
    return tuple(
        sha256(line.rstrip().encode()).hexdigest()[:12] if line.strip() else "" for line in lines
    )


def page_beside(document: Path, seed: str) -> Page | None:
    """The digests that lie beside a document, if there are any of its page."""
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
                f"{path}:{number}: `{digest}` is no digest of a line;"
                f" write the file again by castigate specs page {seed}"
            )
    return Page(seed, tuple(digests))


def read_page(path: Path) -> str:
    """The text of the user's own copy of a page."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CastigateError(f"{path} cannot be read as UTF-8 text: {error}") from None


@dataclass(frozen=True)
class Alignment:
    """Two stretches of lines compared: which lines repeat, and which took another's place."""

    repeated: dict[int, int]
    replaced: dict[int, int]


def align(
    old: Sequence[str], new: Sequence[str], old_lines: Sequence[int], new_lines: Sequence[int]
) -> Alignment:
    """Compare lines by their digests; blank lines are no part of it."""
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
