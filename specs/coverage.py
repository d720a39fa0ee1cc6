"""Coverage of a document's source page: which part of the document encodes which line.

A part of a document whose `lines` point at the page is an encoder. Several documents may encode one
page together. If the page has a section per version, a line also counts as encoded where the
section of another version repeats it, provided that the encoder applies to that version.

A new edition of the page is compared with the encoded one: which lines changed, and which ranges of
a document moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel

from specs.cases import FORM
from specs.editions import edition
from specs.errors import DocumentError, Location
from specs.loader import DOCUMENTS, Document, document_named, load_document
from specs.model.document import ConflictEntry, NamedTestsEntry, PromiseEntry
from specs.model.page_lines import (
    Alignment,
    LineSpan,
    PageDigests,
    PointedEntry,
    align,
    line_digests,
    page_beside,
)

SECTION = "section"
"""The label of a version's section; a new edition of the page may add lines within it."""
PartKind = Literal[
    "rule",
    "promise",
    "tensor rule",
    "call form",
    "demanded test",
    "example",
    "conflict note",
    "parameter",
    "version",
    "section",
]
KINDS: dict[str, PartKind] = {
    "rules": "rule",
    "tensors": "tensor rule",
    "forms": "call form",
    "examples": "example",
    "parameters": "parameter",
    "versions": "version",
}
"""The kind of part under each top-level key of a document; under other keys it is `section`."""


@dataclass(frozen=True)
class Encoder:
    """A part of a document that points at lines of the page, or should because it has a clause.

    ``spans`` is None if it has no `lines`, and empty for `lines: none`. ``versions`` are those that
    the part applies to; empty for conflict notes, which do not count for repeated lines.
    """

    document: Document
    kind: PartKind
    name: str
    location: Location
    clause: str | None
    level: str
    spans: tuple[LineSpan, ...] | None
    versions: tuple[str, ...]

    @property
    def rule(self) -> str:
        """The name under which verdicts report this part as a broken rule."""
        return f"{FORM}:{self.name}" if self.kind == "call form" else self.name

    @property
    def has_clause(self) -> bool:
        """Whether the part has a clause of its own, or is a rule or part of one."""
        return self.clause is not None or self.location[0] == "rules"

    @property
    def label(self) -> str:
        """The kind and the name of this part, for messages."""
        return f"{self.kind} {self.name}"

    def error(self, message: str) -> DocumentError:
        """Return an error about the `lines` of this part, whose message names the part."""
        if self.location[0] != "rules" or self.kind != "rule":  # else the location adds the rule
            message = f"{self.label}: {message}"
        return self.document.source.error((*self.location, "lines"), message)


@dataclass(frozen=True)
class Replaced:
    """A line of ``encoder`` in whose place the section of another version has other text."""

    encoder: Encoder
    line: int


@dataclass
class Coverage:
    """Maps each line of a page to its encoders, or to the reason why it needs none.

    ``reasons`` are those that documents give under `not-encoded`. ``replaced`` has, for a line of
    a version's section, the encoded line of another section whose text it replaces.
    """

    page: PageDigests
    documents: tuple[Document, ...]
    encoders: dict[int, list[Encoder]] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    replaced: dict[int, Replaced] = field(default_factory=dict)

    def add(self, line: int, encoder: Encoder) -> None:
        """Record that an encoder encodes a line."""
        encoders = self.encoders.setdefault(line, [])
        if encoder not in encoders:
            encoders.append(encoder)

    def uncovered(self) -> list[int]:
        """Return the lines with text that nothing encodes and no `not-encoded` entry lists."""
        lines = self.page.texts(self.page.whole)
        return [line for line in lines if line not in self.encoders and line not in self.reasons]

    def why_uncovered(self, line: int) -> str:
        """Return the likely cause that a line is not encoded."""
        replaced = self.replaced.get(line)
        if replaced is None:
            return "no rule points at it"
        return f"it replaces line {replaced.line}, which {replaced.encoder.label} encodes"


@cache
def encoders(document: Document) -> tuple[Encoder, ...]:
    """Return each part of a document that points at lines of its page, or that has a clause."""
    return tuple(_encoders(document))


def _encoders(document: Document) -> Iterator[Encoder]:
    promise_names = {id(promise): name for name, promise in document.entry.promises().items()}
    names: dict[Location, str] = {}
    for location, part in _parts(document.entry):
        section, name = str(location[0]), str(location[min(1, len(location) - 1)])
        kind, versions = KINDS.get(section, "section"), _versions(document, section, name)
        if isinstance(part, NamedTestsEntry):
            kind, name = "demanded test", str(location[2])
        if isinstance(part, PromiseEntry):
            kind, name = "promise", promise_names[id(part)]
        qualified = {"call form": f"{FORM}:{name}", "version": f"version {name}"}
        names[location] = qualified.get(kind, name)
        if isinstance(part, ConflictEntry):
            # A note may compare versions, so it counts only for the lines that it points at.
            kind, name, versions = "conflict note", names[location[:-2]], ()
        clause, level = getattr(part, "clause", None), getattr(part, "level", None)
        if clause is not None or part.lines is not None:
            yield Encoder(document, kind, name, location, clause, level or "", part.lines, versions)


def _parts(part: object, location: Location = ()) -> Iterator[tuple[Location, PointedEntry]]:
    """Yield location and part for each part that can point at lines, ``part`` itself included."""
    children: list[tuple[str | int, object]] = []
    if isinstance(part, BaseModel):
        fields = type(part).model_fields.items()
        children = [(field.alias or name, getattr(part, name)) for name, field in fields]
    elif isinstance(part, dict):
        children = list(part.items())
    elif isinstance(part, list):
        children = list(enumerate(part))
    if isinstance(part, PointedEntry):
        yield location, part
    for key, value in children:
        yield from _parts(value, (*location, key))


def _versions(document: Document, section: str, name: str) -> tuple[str, ...]:
    """Return the versions to which the part ``name`` under the key ``section`` applies."""
    entry, all_versions = document.entry, tuple(document.entry.versions)
    match section:
        case "rules":
            return tuple(each for each in all_versions if name in edition(document, each).rules)
        case "tensors":
            return tuple(entry.tensors[name].when.version or all_versions)
        case "examples":
            return tuple(entry.examples[name].versions)
        case "parameters":
            since = entry.parameters[name].since
            return all_versions if since is None else all_versions[all_versions.index(since) :]
        case "versions":
            return tuple(_with_extending(document, name))
    return all_versions


def _with_extending(document: Document, version: str) -> list[str]:
    versions = [version]
    for name, entry in document.entry.versions.items():
        if entry.extends in versions:
            versions.append(name)
    return versions


def by_kind(
    encoders: Iterable[Encoder], first: Document
) -> dict[tuple[Document, str], list[Encoder]]:
    """Group encoders by document and kind, those of the document ``first`` before others.

    The kind is in the plural if its group has several; of encoders with one name only one is kept.
    """

    def order(encoder: Encoder) -> tuple[bool, str, int]:
        is_other = encoder.document is not first
        return is_other, encoder.document.name, get_args(PartKind).index(encoder.kind)

    groups: dict[tuple[Document, PartKind], dict[str, Encoder]] = {}
    for encoder in sorted(encoders, key=order):
        group = groups.setdefault((encoder.document, encoder.kind), {})
        group.setdefault(encoder.name, encoder)
    return {
        (document, f"{kind}{'s' if len(group) > 1 else ''}"): list(group.values())
        for (document, kind), group in groups.items()
    }


@cache
def lines_of_rules(document: Document) -> dict[str, dict[str, tuple[LineSpan, ...]]]:
    """Map each name that verdicts report to the clauses of its rule, and each clause to lines."""
    lines: dict[str, dict[str, tuple[LineSpan, ...]]] = {}
    for encoder in encoders(document):
        if encoder.clause is not None:
            lines.setdefault(encoder.rule, {})[encoder.clause] = encoder.spans or ()
    return lines


def documents_of_page(document: Document) -> tuple[Document, ...]:
    """Return all documents in a document's folder that encode the same page, itself included."""
    own_path = document.source.path
    # Searching the text for the page's name saves loading documents of other pages.
    seed_line = re.compile(
        rf"^seed:\s+(['\"]?){re.escape(document.entry.seed)}\1\s*(#.*)?$".encode(), re.M
    )
    found = []
    for path in sorted(own_path.parent.glob("*.yaml")):
        if path == own_path:
            found.append(document)
        elif path.is_file() and seed_line.search(path.read_bytes()):
            found.append(_load(path))
    return tuple(found) if document in found else (document, *found)


def has_pointers(document: Document) -> bool:
    """Return whether a document, or another one of the same page, has any `lines`, even `none`."""
    return any(
        encoder.spans is not None
        for each in documents_of_page(document)
        for encoder in encoders(each)
    )


def _load(path: Path) -> Document:
    """Load a document; a shipped one only once, so that it is the same object everywhere."""
    if path.parent == DOCUMENTS:
        return document_named(path.stem.replace("_", "-"))
    try:
        return load_document(path)
    except DocumentError as error:
        raise DocumentError(
            f"{error} (this file is read because it encodes the same page; correct or move it)"
        ) from None


@cache
def coverage(document: Document) -> Coverage | None:
    """Return which parts encode each line of a document's page.

    Return None if the digests of the page are missing, or no document of the page points at its
    lines.
    """
    page = page_beside(document.source.path, document.entry.seed)
    if page is None or not has_pointers(document):
        return None
    found = Coverage(page, documents_of_page(document))
    for each in found.documents:
        sections = sections_of(each)
        for encoder in encoders(each):
            for line in page.texts(*encoder.spans or ()):
                found.add(line, encoder)
                version = version_at(sections, line)
                if version is None or version not in encoder.versions:
                    continue
                for other in encoder.versions:
                    if other in sections:
                        _add_repeated(found, encoder, line, sections[version], sections[other])
        for exclusion in each.entry.not_encoded:
            for line in page.texts(*exclusion.lines):
                found.reasons.setdefault(line, exclusion.reason)
                version = version_at(sections, line)
                if version is None:
                    continue
                for section in sections.values():
                    repeated = _align_sections(page, sections[version], section).repeated
                    if line in repeated:
                        found.reasons.setdefault(repeated[line], exclusion.reason)
    return found


def _add_repeated(
    found: Coverage, encoder: Encoder, line: int, section: LineSpan, other: LineSpan
) -> None:
    """Record in ``found`` that an encoder also encodes the line of ``other`` that repeats ``line``.

    ``line`` lies in ``section``. If a line of ``other`` replaces it instead, record the
    replacement.
    """
    if section == other:
        return
    alignment = _align_sections(found.page, section, other)
    if line in alignment.repeated:
        found.add(alignment.repeated[line], encoder)
    elif line in alignment.replaced:
        found.replaced.setdefault(alignment.replaced[line], Replaced(encoder, line))


@cache
def _align_sections(page: PageDigests, old: LineSpan, new: LineSpan) -> Alignment:
    old_lines, new_lines = page.texts(old), page.texts(new)
    return align(page.digests, page.digests, old_lines, new_lines)


def sections_of(document: Document) -> dict[str, LineSpan]:
    """Map each version that has a section of the page to the section's range of lines."""
    return {
        name: version.section
        for name, version in document.entry.versions.items()
        if version.section is not None
    }


def page_sections(
    document: Document, page: PageDigests, version: str | None = None
) -> list[tuple[str, LineSpan]]:
    """Return the parts of a page as pairs of title and range, in page order.

    Parts are the sections of versions and, with an empty title, the ranges between them that have
    text. With ``version``, only its section is listed, unless the page has no sections at all.
    """
    sections = sorted((span, name) for name, span in sections_of(document).items())
    if version is not None and sections:
        return [(_title(name, span), span) for span, name in sections if name == version]
    parts, next_line = [], 1
    for span, name in sections:
        parts += [("", LineSpan(next_line, span.first - 1)), (_title(name, span), span)]
        next_line = span.last + 1
    parts.append(("", LineSpan(next_line, page.whole.last)))
    return [(title, span) for title, span in parts if page.texts(span)]


def _title(version: str, span: LineSpan) -> str:
    return f"version {version}, lines {span}"


def version_at(sections: dict[str, LineSpan], line: int) -> str | None:
    """Return the version whose section contains a line; None if no section does."""
    return next((name for name, (first, last) in sections.items() if first <= line <= last), None)


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
