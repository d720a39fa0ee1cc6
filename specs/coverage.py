"""Which parts of a document encode which lines of its page, and which lines nothing encodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel

from specs.calls import FORM
from specs.editions import edition
from specs.errors import DocumentError
from specs.loader import DOCUMENTS, Document, document_named, load_document
from specs.model.document import ConflictEntry, NamedTestsEntry, PointedEntry, PromiseEntry
from specs.model.page_lines import Alignment, Page, Span, align, digests_of, page_beside
from specs.model.yaml_source import Location

SECTION = "section"
"""How a version's section is called among ranges; lines may come and go within it."""
Kind = Literal[
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
KINDS: dict[str, Kind] = {
    "rules": "rule",
    "tensors": "tensor rule",
    "forms": "call form",
    "examples": "example",
    "parameters": "parameter",
    "versions": "version",
    "receiver": "section",
    "bitcast": "section",
}
"""What stands in each section of a document; some are one thing as a whole."""


@dataclass(frozen=True)
class Encoder:
    """A part of a document that points at lines; ``spans`` is None where it should and does not."""

    document: Document
    kind: Kind
    name: str
    location: Location
    clause: str | None
    level: str
    spans: tuple[Span, ...] | None
    versions: tuple[str, ...]

    @property
    def rule(self) -> str:
        """Its name among the rules that a verdict says are broken."""
        return f"{FORM}:{self.name}" if self.kind == "call form" else self.name

    @property
    def has_clause(self) -> bool:
        """Whether it is a rule or stands within one; the others describe what rules are about."""
        return self.clause is not None or self.location[0] == "rules"

    @property
    def label(self) -> str:
        """Its kind and name, as a message puts them."""
        return f"{self.kind} {self.name}"

    def error(self, message: str) -> DocumentError:
        """An error about it; the place adds the rule's name by itself."""
        named = self.location[0] == "rules" and self.kind == "rule"
        told = message if named else f"{self.label}: {message}"
        return self.document.source.error((*self.location, "lines"), told)


@dataclass(frozen=True)
class Replaced:
    """A line of one version's section in the place of one that an encoder points at."""

    encoder: Encoder
    line: int


@dataclass
class Coverage:
    """A page, line by line: what encodes it, or why nothing does."""

    page: Page
    documents: tuple[Document, ...]
    encoders: dict[int, list[Encoder]] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    replaced: dict[int, Replaced] = field(default_factory=dict)

    def add(self, line: int, encoder: Encoder) -> None:
        """Let an encoder count for a line, once."""
        known = self.encoders.setdefault(line, [])
        if encoder not in known:
            known.append(encoder)

    def uncovered(self) -> list[int]:
        """The lines with text that nothing encodes and that nothing excuses."""
        texts = self.page.texts(self.page.whole)
        return [line for line in texts if line not in self.encoders and line not in self.reasons]

    def why_uncovered(self, line: int) -> str:
        """What to look at where a line is not encoded: mostly the line whose place it took."""
        replaced = self.replaced.get(line)
        if replaced is None:
            return "no rule points at it"
        return f"it replaces line {replaced.line}, which {replaced.encoder.label} encodes"


@cache
def encoders(document: Document) -> tuple[Encoder, ...]:
    """Every part of a document that points at its page, or has a clause and must."""
    return tuple(_encoders(document))


def _encoders(document: Document) -> Iterator[Encoder]:
    promised = {id(promise): name for name, promise in document.entry.promises().items()}
    named: dict[Location, str] = {}
    for location, part in _parts(document.entry):
        section, name = str(location[0]), str(location[min(1, len(location) - 1)])
        kind, versions = KINDS[section], _versions(document, section, name)
        if isinstance(part, NamedTestsEntry):
            kind, name = "demanded test", str(location[2])
        if isinstance(part, PromiseEntry):
            kind, name = "promise", promised[id(part)]
        own = {"call form": f"{FORM}:{name}", "version": f"version {name}"}
        named[location] = own.get(kind, name)
        if isinstance(part, ConflictEntry):
            # It may set versions against each other, so it counts where it points and nowhere else.
            kind, name, versions = "conflict note", named[location[:-2]], ()
        clause, level = getattr(part, "clause", None), getattr(part, "level", None)
        if clause is not None or part.lines is not None:
            given = part.lines, versions
            yield Encoder(document, kind, name, location, clause, level or "", *given)


def _parts(part: object, location: Location = ()) -> Iterator[tuple[Location, PointedEntry]]:
    """Everything within a part of a document that can point at lines, and where it stands."""
    inside: list[tuple[str | int, object]] = []
    if isinstance(part, BaseModel):
        fields = type(part).model_fields.items()
        inside = [(field.alias or name, getattr(part, name)) for name, field in fields]
    elif isinstance(part, dict):
        inside = list(part.items())
    elif isinstance(part, list):
        inside = list(enumerate(part))
    if isinstance(part, PointedEntry):
        yield location, part
    for key, value in inside:
        yield from _parts(value, (*location, key))


def _versions(document: Document, section: str, name: str) -> tuple[str, ...]:
    """The versions that have what stands under a name in a section of a document."""
    entry, every = document.entry, tuple(document.entry.versions)
    match section:
        case "rules":
            return tuple(each for each in every if name in edition(document, each).rules)
        case "tensors":
            return tuple(entry.tensors[name].when.version or every)
        case "examples":
            return tuple(entry.examples[name].versions)
        case "parameters":
            since = entry.parameters[name].since
            return every if since is None else every[every.index(since) :]
        case "versions":
            return tuple(_heirs(document, name))
    return every


def by_kind(some: Iterable[Encoder], first: Document) -> dict[tuple[Document, str], list[Encoder]]:
    """Encoders by document and kind, rules first; kinds in the plural where there are several."""

    def order(each: Encoder) -> tuple[bool, str, int]:
        is_other = each.document is not first
        return is_other, each.document.name, get_args(Kind).index(each.kind)

    kinds: dict[tuple[Document, Kind], dict[str, Encoder]] = {}
    for each in sorted(some, key=order):
        kinds.setdefault((each.document, each.kind), {}).setdefault(each.name, each)
    return {
        (document, f"{kind}{'s' if len(named) > 1 else ''}"): list(named.values())
        for (document, kind), named in kinds.items()
    }


@cache
def lines_of_rules(document: Document) -> dict[str, dict[str, tuple[Span, ...]]]:
    """The lines of each clause of each rule, by the names under which verdicts report rules."""
    found: dict[str, dict[str, tuple[Span, ...]]] = {}
    for each in encoders(document):
        if each.clause is not None:
            found.setdefault(each.rule, {})[each.clause] = each.spans or ()
    return found


def _heirs(document: Document, version: str) -> list[str]:
    """A version and those that extend it, however far."""
    heirs = [version]
    for name, entry in document.entry.versions.items():
        if entry.extends in heirs:
            heirs.append(name)
    return heirs


def sisters(document: Document) -> tuple[Document, ...]:
    """The documents of one folder that encode one page, the given one among them."""
    own = document.source.path
    named = re.compile(
        rf"^seed:\s+(['\"]?){re.escape(document.entry.seed)}\1\s*(#.*)?$".encode(), re.M
    )
    found = []
    for path in sorted(own.parent.glob("*.yaml")):
        if path == own:
            found.append(document)
        elif named.search(path.read_bytes()):
            found.append(_read(path))
    return tuple(found) if document in found else (document, *found)


def _is_pointed_at(document: Document) -> bool:
    """Whether any part of any document of a page says which lines it encodes."""
    return any(each.spans is not None for sister in sisters(document) for each in encoders(sister))


def _read(path: Path) -> Document:
    if path.parent == DOCUMENTS:
        return document_named(path.stem.replace("_", "-"))
    return load_document(path)


@cache
def coverage(document: Document) -> Coverage | None:
    """The page of a document and what encodes it; None where no document points at its lines."""
    page = page_beside(document.source.path, document.entry.seed)
    if page is None or not _is_pointed_at(document):
        return None
    found = Coverage(page, sisters(document))
    for each in found.documents:
        sections = _sections(each)
        for encoder in encoders(each):
            for line in page.texts(*encoder.spans or ()):
                home = _home(sections, line)
                found.add(line, encoder)
                for other in encoder.versions if home in encoder.versions else ():
                    if home is not None and other in sections:
                        _repeat(found, encoder, line, sections[home], sections[other])
        for excuse in each.entry.not_encoded:
            for line in page.texts(*excuse.lines):
                home = _home(sections, line)
                found.reasons.setdefault(line, excuse.reason)
                if home is not None:
                    for section in sections.values():
                        repeated = _beside(page, sections[home], section).repeated
                        if line in repeated:
                            found.reasons.setdefault(repeated[line], excuse.reason)
    return found


def _repeat(found: Coverage, encoder: Encoder, line: int, home: Span, section: Span) -> None:
    """Let an encoder count for the line of another version's section that repeats its line."""
    if home == section:
        return
    beside = _beside(found.page, home, section)
    if line in beside.repeated:
        found.add(beside.repeated[line], encoder)
    elif line in beside.replaced:
        found.replaced.setdefault(beside.replaced[line], Replaced(encoder, line))


@cache
def _beside(page: Page, old: Span, new: Span) -> Alignment:
    old_lines, new_lines = page.texts(old), page.texts(new)
    return align(page.digests, page.digests, old_lines, new_lines)


def _sections(document: Document) -> dict[str, Span]:
    return {
        name: version.section
        for name, version in document.entry.versions.items()
        if version.section is not None
    }


def page_sections(
    document: Document, page: Page, version: str | None = None
) -> list[tuple[str, Span]]:
    """A page's parts with their titles, in the order of the page; or that of one version."""
    sections = sorted((span, name) for name, span in _sections(document).items())
    if version is not None and sections:
        return [(_title(name, span), span) for span, name in sections if name == version]
    parts, after = [], 1
    for span, name in sections:
        parts += [("", Span(after, span.first - 1)), (_title(name, span), span)]
        after = span.last + 1
    parts.append(("", Span(after, page.whole.last)))
    return [each for each in parts if page.texts(each[1])]


def _title(version: str, span: Span) -> str:
    return f"version {version}, lines {span}"


def _home(sections: dict[str, Span], line: int) -> str | None:
    """The version in whose section a line stands."""
    return next((name for name, (first, last) in sections.items() if first <= line <= last), None)


def mistakes_in_lines(document: Document) -> Iterator[DocumentError]:
    """Each mistake in what a document says of its page's lines; the page's gaps come last."""
    if not _is_pointed_at(document):
        return
    found = coverage(document)
    if found is None:
        seed = document.entry.seed
        beside = f"{seed}.sha256"
        yield document.source.error(
            ("seed",),
            f"rules point at lines of `{seed}`, but there is no {beside} beside this file;"
            f" write it by castigate specs page {seed} > {beside}",
        )
        return
    yield from _bad_sections(document, found.page)
    for encoder in encoders(document):
        yield from _bad_pointer(encoder, found.page)
    yield from _bad_excuses(document, found)
    yield from _gaps(document, found)


def _bad_sections(document: Document, page: Page) -> Iterator[DocumentError]:
    sections = _sections(document)
    if sections and len(sections) < len(document.entry.versions):
        for name in document.entry.versions:
            if name not in sections:
                message = f"version {name} has no `section`, unlike others; give it one as well"
                yield document.source.error(("versions", name), message)
    end = 0
    for name, section in sorted(sections.items(), key=lambda each: each[1]):
        location = ("versions", name, "section")
        if section.last > page.whole.last:
            yield document.source.error(location, _outside(section, page))
        if section.first <= end:
            message = f"the section {section} overlaps another version's; correct one of them"
            yield document.source.error(location, message)
        end = section.last


def _outside(span: Span, page: Page) -> str:
    return (
        f"lines {span} are outside of {page.name}, which has {page.whole.last} lines;"
        " correct the range"
    )


def _bad_spans(spans: Iterable[Span], page: Page) -> Iterator[str]:
    for span in spans:
        if span.last > page.whole.last:
            yield _outside(span, page)
            continue
        for line in dict.fromkeys(span):
            if not page.has_text(line):
                yield (
                    f"line {line} of {page.name} is blank; begin and end the range {span}"
                    " at lines with text"
                )


def _bad_pointer(encoder: Encoder, page: Page) -> Iterator[DocumentError]:
    if encoder.spans is None:
        yield encoder.error(
            f"its clause has no `lines`; point at lines of {page.name}, or write `lines: none`"
            " where the clause names another source"
        )
        return
    for message in _bad_spans(encoder.spans, page):
        yield encoder.error(message)
    for span in encoder.spans if encoder.versions else ():
        for home in dict.fromkeys(_home(_sections(encoder.document), line) for line in span):
            if home is not None and home not in encoder.versions:
                yield encoder.error(
                    f"lines {span} stand in the section of version {home}, which has no such"
                    f" {encoder.kind}; point into a section of {', '.join(encoder.versions)}"
                )


def _bad_excuses(document: Document, found: Coverage) -> Iterator[DocumentError]:
    pointed: dict[int, Encoder] = {}
    for each in found.documents:
        for encoder in encoders(each):
            for line in found.page.texts(*encoder.spans or ()):
                pointed.setdefault(line, encoder)
    for at, excuse in enumerate(document.entry.not_encoded):
        location: Location = ("not-encoded", at, "lines")
        for message in _bad_spans(excuse.lines, found.page):
            yield document.source.error(location, message)
        for line in found.page.texts(*excuse.lines):
            if line in pointed:
                other = pointed[line]
                where = "" if other.document is document else f" of {other.document.name}"
                message = (
                    f"line {line} is listed here, and {other.label}{where} encodes it;"
                    " take it out of one of the two"
                )
                yield document.source.error(location, message)
                break


def _gaps(document: Document, found: Coverage) -> Iterator[DocumentError]:
    gaps = found.uncovered()
    if gaps:
        more = f" (and {len(gaps) - 1} more)" if len(gaps) > 1 else ""
        yield document.source.error(
            ("seed",),
            f"line {gaps[0]} of {found.page.name}{more} is not encoded:"
            f" {found.why_uncovered(gaps[0])}; point at it from a rule's `lines` or list it under"
            f" `not-encoded`; castigate specs --coverage {document.source.path} shows the page",
        )


@dataclass(frozen=True)
class Moved:
    """A range that a page's new edition has elsewhere; ``now`` is None where its text changed."""

    document: Document
    label: str
    location: Location
    before: Span
    now: Span | None


@dataclass(frozen=True)
class PageChange:
    """What a page's new edition changed: lines that are gone, lines that are new, and ranges."""

    gone: list[Span]
    new: list[Span]
    moved: list[Moved]


def changes(found: Coverage, text: str) -> PageChange | None:
    """Compare a page with the edition that its documents encode; None where no line differs."""
    page = found.page
    now = Page(page.name, digests_of(text))
    if now.digests == page.digests:
        return None
    old_lines, new_lines = page.texts(page.whole), now.texts(now.whole)
    kept = align(page.digests, now.digests, old_lines, new_lines).repeated
    arrived = set(kept.values())
    moved = []
    for document in found.documents:
        for label, location, span in _ranges(document):
            lines = [kept.get(line) for line in page.texts(span)]
            first, last = (lines[0], lines[-1]) if lines else (None, None)
            target = Span(first, last) if first is not None and last is not None else None
            if target is not None and label != SECTION and lines != now.texts(target):
                target = None
            if target != span:
                moved.append(Moved(document, label, location, span, target))
    return PageChange(
        page.spans(line for line in old_lines if line not in kept),
        now.spans(line for line in new_lines if line not in arrived),
        moved,
    )


def _ranges(document: Document) -> Iterator[tuple[str, Location, Span]]:
    """Every range of lines in a document: what has it, and where it stands."""
    for name, section in _sections(document).items():
        yield SECTION, ("versions", name, "section"), section
    for encoder in encoders(document):
        for span in encoder.spans or ():
            yield encoder.label, (*encoder.location, "lines"), span
    for at, excuse in enumerate(document.entry.not_encoded):
        for span in excuse.lines:
            yield "not-encoded", ("not-encoded", at, "lines"), span
