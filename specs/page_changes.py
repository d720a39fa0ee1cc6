"""Compares a page with its encoded edition: which lines changed, and which ranges moved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specs.coverage import SECTION, Coverage, encoders, sections_of
from specs.errors import Location
from specs.loader import Document
from specs.model.page_lines import LineSpan, PageDigests, align, line_digests


@dataclass(frozen=True)
class MovedRange:
    """A document's range of lines that a new edition of the page moves or changes.

    ``now`` is the range in the new edition; None if its text (of a section, an end) changed.
    """

    document: Document
    label: str
    location: Location
    before: LineSpan
    now: LineSpan | None


@dataclass(frozen=True)
class PageChange:
    """The difference of a page's new edition: lines that are gone, new lines, and moved ranges."""

    gone: list[LineSpan]
    new: list[LineSpan]
    moved: list[MovedRange]


def compare_page(found: Coverage, text: str) -> PageChange | None:
    """Compare the text of a page's new edition with the encoded one; None if no line differs."""
    old, new = found.page, PageDigests(found.page.name, line_digests(text))
    if new.digests == old.digests:
        return None
    old_lines, new_lines = old.texts(old.whole), new.texts(new.whole)
    new_line_of = align(old.digests, new.digests, old_lines, new_lines).repeated
    unchanged = set(new_line_of.values())
    moved = []
    for document in found.documents:
        for label, location, before in _ranges(document):
            lines = [new_line_of.get(line) for line in old.texts(before)]
            first, last = (lines[0], lines[-1]) if lines else (None, None)
            now = LineSpan(first, last) if first is not None and last is not None else None
            if now is not None and label != SECTION and lines != new.texts(now):
                now = None
            if now != before:
                moved.append(MovedRange(document, label, location, before, now))
    return PageChange(
        old.spans(line for line in old_lines if line not in new_line_of),
        new.spans(line for line in new_lines if line not in unchanged),
        moved,
    )


def _ranges(document: Document) -> Iterator[tuple[str, Location, LineSpan]]:
    """Yield each range of lines in a document, after the label of its owner and its location."""
    for name, section in sections_of(document).items():
        yield SECTION, ("versions", name, "section"), section
    for encoder in encoders(document):
        for span in encoder.spans or ():
            yield encoder.label, (*encoder.location, "lines"), span
    for index, exclusion in enumerate(document.entry.not_encoded):
        for span in exclusion.lines:
            yield "not-encoded", ("not-encoded", index, "lines"), span
