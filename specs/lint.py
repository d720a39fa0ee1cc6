"""Proves that a document is total and unambiguous: one rule for every input of every case.

If rules point at lines of the page, every line must be encoded or listed as not encoded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from specs.cases import FORM, MEMBER, Case
from specs.coverage import (
    Coverage,
    Encoder,
    coverage,
    encoders,
    has_pointers,
    sections_of,
    version_at,
)
from specs.editions import editions, prove_tensors
from specs.errors import DocumentError, Location
from specs.loader import Document
from specs.model.page_lines import LineSpan, PageDigests
from specs.ruling import matching_rules


@dataclass(frozen=True)
class Proof:
    """The numbers of versions, cases and rules for which a document was proved."""

    document: str
    versions: int
    cases: int
    rules: int
    lines: int | None
    """The number of the page's lines with text, all covered; None if no document points at them."""


def prove(document: Document) -> Proof:
    """Prove a document total and unambiguous, and count what it has.

    Raise DocumentError with file, line and rule if it is not, if a rule takes no input of any case,
    if a call form, member or example belongs to none, if no version lists a pair that
    the document adds, or for the first of ``line_errors``.
    """
    used: set[str] = set()
    modes: set[tuple[str, str]] = set()
    cases = 0
    for edition in editions(document):
        seen: set[Case] = set()
        for case in edition.cases():
            matching = matching_rules(document, case)
            seen.add(case)
            if case.example in document.entry.examples and replace(case, example=None) not in seen:
                raise document.source.error(
                    ("examples", case.example),
                    f"{case.id} is an example of a case that does not exist; correct its"
                    " `from`, `to` or `with`",
                )
            used.update(matching.rules)
            modes.update(case.modes)
            cases += 1
    _require_cases(document, modes)
    for rule in document.entry.rules:
        if rule not in used:
            raise document.source.error(
                ("rules", rule),
                "takes no input of any case; widen its conditions or delete the rule",
            )
    if document.entry.tensors:
        prove_tensors(document)
    for error in line_errors(document):
        raise error
    covered = coverage(document)
    return Proof(
        document.name,
        len(document.entry.versions),
        cases,
        len(document.entry.rules),
        None if covered is None else len(covered.page.texts(covered.page.whole)),
    )


def _require_cases(document: Document, modes: set[tuple[str, str]]) -> None:
    """Raise DocumentError if a call form or a member has no case, or a pair is not listed.

    The pairs are those to which a section adds shapes. ``modes`` are the name and value of every
    mode that some case has.
    """
    entry = document.entry
    members = entry.receiver.members if entry.receiver is not None else {}
    named: tuple[tuple[Location, str, Collection[str]], ...] = (
        (("forms",), FORM, entry.forms),
        (("receiver", "members"), MEMBER, members),
    )
    for location, kind, names in named:
        for name in names:
            if (kind, name) not in modes:
                raise document.source.error(
                    (*location, name),
                    f"{kind} `{name}` makes no case; widen the condition in its `when`",
                )
    listed = {pair for edition in editions(document) for pair in edition.listed}
    for location, source, target in entry.further_pairs():
        if (source, target) not in listed:
            raise document.source.error(
                location, f"no version lists the pair {source} to {target}; list or delete it"
            )


def line_errors(document: Document) -> Iterator[DocumentError]:
    """Yield each error in a document's ranges of lines; last, one for all lines not encoded."""
    if not has_pointers(document):
        return
    found = coverage(document)
    if found is None:
        seed = document.entry.seed
        digests = f"{seed}.sha256"
        yield document.source.error(
            ("seed",),
            f"rules point at lines of `{seed}`, but there is no {digests} beside this file;"
            f" write it by castigate specs page {seed} > {digests}",
        )
        return
    yield from _section_errors(document, found.page)
    for encoder in encoders(document):
        yield from _encoder_errors(encoder, found.page)
    yield from _exclusion_errors(document, found)
    yield from _gap_errors(document, found)


def _section_errors(document: Document, page: PageDigests) -> Iterator[DocumentError]:
    sections = sections_of(document)
    if sections and len(sections) < len(document.entry.versions):
        for name in document.entry.versions:
            if name not in sections:
                message = f"version {name} has no `section`, but other versions do; add one"
                yield document.source.error(("versions", name), message)
    end = 0
    for name, section in sorted(sections.items(), key=lambda each: each[1]):
        location = ("versions", name, "section")
        if section.last > page.whole.last:
            yield document.source.error(location, _outside_message(section, page))
        if section.first <= end:
            message = f"the section {section} overlaps another version's; correct one of them"
            yield document.source.error(location, message)
        end = section.last


def _outside_message(span: LineSpan, page: PageDigests) -> str:
    return (
        f"lines {span} are outside of {page.name}, which has {page.whole.last} lines;"
        " correct the range"
    )


def _span_messages(spans: Iterable[LineSpan], page: PageDigests) -> Iterator[str]:
    """Yield a message about each range that leaves the page, or begins or ends at a blank line."""
    for span in spans:
        if span.last > page.whole.last:
            yield _outside_message(span, page)
            continue
        for line in dict.fromkeys(span):  # once if both ends are the same
            if not page.has_text(line):
                yield (
                    f"line {line} of {page.name} is blank; begin and end the range {span}"
                    " at lines with text"
                )


def _encoder_errors(encoder: Encoder, page: PageDigests) -> Iterator[DocumentError]:
    if encoder.spans is None:
        yield encoder.error(
            f"its clause has no `lines`; point at lines of {page.name}, or write `lines: none`"
            " if the clause cites another source"
        )
        return
    for message in _span_messages(encoder.spans, page):
        yield encoder.error(message)
    sections = sections_of(encoder.document)
    for span in encoder.spans if encoder.versions else ():
        for version in dict.fromkeys(version_at(sections, line) for line in span):
            if version is not None and version not in encoder.versions:
                yield encoder.error(
                    f"lines {span} are in the section of version {version}, which has no such"
                    f" {encoder.kind}; point at lines in a section of {', '.join(encoder.versions)}"
                )


def _exclusion_errors(document: Document, found: Coverage) -> Iterator[DocumentError]:
    """Yield errors in `not-encoded` ranges: they leave the page, or an encoder points there too."""
    encoded: dict[int, Encoder] = {}
    for each in found.documents:
        for encoder in encoders(each):
            for line in found.page.texts(*encoder.spans or ()):
                encoded.setdefault(line, encoder)
    for index, exclusion in enumerate(document.entry.not_encoded):
        location: Location = ("not-encoded", index, "lines")
        for message in _span_messages(exclusion.lines, found.page):
            yield document.source.error(location, message)
        for line in found.page.texts(*exclusion.lines):
            if line in encoded:
                encoder = encoded[line]
                owner = "" if encoder.document is document else f" of {encoder.document.name}"
                message = (
                    f"line {line} is listed as not encoded, but {encoder.label}{owner} encodes it;"
                    " remove it from one of the two"
                )
                yield document.source.error(location, message)
                break


def _gap_errors(document: Document, found: Coverage) -> Iterator[DocumentError]:
    gaps = found.uncovered()
    if gaps:
        more = f" (and {len(gaps) - 1} more)" if len(gaps) > 1 else ""
        yield document.source.error(
            ("seed",),
            f"line {gaps[0]} of {found.page.name}{more} is not encoded:"
            f" {found.why_uncovered(gaps[0])}; point at it from a rule's `lines` or list it under"
            f" `not-encoded`; castigate specs --coverage {document.source.path} shows the page",
        )
