"""A document's page as lines of text: what encodes each line, and what a new page changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from specs.calls import FORM
from specs.coverage import Coverage, Moved, by_kind, changes, coverage, page_sections
from specs.editions import Edition, edition, editions
from specs.errors import CastigateError
from specs.lint import Proof
from specs.loader import Document, documents
from specs.model.document import FormEntry, PromiseEntry, RuleEntry
from specs.model.page_lines import Span, cited, read_page
from specs.operations import take


def all_documents() -> Iterator[str]:
    """One line per document."""
    for made in documents().values():
        versions = ", ".join(made.entry.versions)
        cases = sum(1 for one in editions(made) for _ in one.cases())
        yield f"{made.name:<20} {cases:>6} cases  versions {versions}  ({made.entry.title})"


def document(made: Document) -> Iterator[str]:
    """A document's versions, then its rules and promises with level and clause, and conflicts."""
    yield f"{made.entry.title} ({made.name}), sha256 {made.digest}"
    yield ""
    for one in editions(made):
        yield f"  {made.name}:{one.version:<6} {_counts(one)}"
    yield ""
    named: dict[str, RuleEntry | PromiseEntry | FormEntry] = {
        **made.entry.rules,
        **made.entry.promises(),
        **{f"{FORM}:{name}": form for name, form in made.entry.forms.items() if form.conflict},
    }
    width = max(map(len, named))
    for name, entry in named.items():
        lines = f" ({cited(entry.lines)})" if entry.lines else ""
        yield f"  {name:<{width}}  {entry.level:<12} {entry.clause}{lines}"
        for conflict in entry.conflict:
            yield f"  {'':<{width}}  conflict with {conflict.with_}: {conflict.about}"
            yield f"  {'':<{width}}  taken: {conflict.taken}"


def version(made: Document, name: str) -> Iterator[str]:
    """A version's types, parameters, counts and cases."""
    one = edition_named(made, name)
    yield f"{made.name}:{name}: {_counts(one)}"
    yield f"  from {' '.join(one.sources)}"
    yield f"  to   {' '.join(one.targets)}"
    for key, parameter in one.parameters():
        yield f"  {key}: {' '.join(parameter.values)} (default {parameter.default})"
    yield from (f"  attribute {key}: {kind}" for key, kind in one.attributes)
    yield ""
    for case in one.cases():
        yield f"  {case.id}  {', '.join(take(made, case).rules)}"


def edition_named(made: Document, name: str) -> Edition:
    """A version of a document, or an error that lists those there are."""
    if name not in made.entry.versions:
        known = ", ".join(made.entry.versions)
        raise CastigateError(f"{made.name} has no version `{name}`; it has {known}")
    return edition(made, name)


def _counts(one: Edition) -> str:
    kinds: Counter[str] = Counter()
    for case in one.cases():
        if case.example is not None:
            kinds["examples"] += 1
        elif (case.source, case.target) in one.listed:
            kinds["of listed pairs"] += 1
        else:
            rejected = take(one.document, case).is_rejection
            kinds["rejections" if rejected else "of pairs not listed"] += 1
    parts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"{len(one.listed)} listed pairs, {kinds.total()} cases ({parts})"


def proofs(made: Iterable[Proof]) -> Iterator[str]:
    """What a lint run proved."""
    for proof in made:
        covered = (
            "" if proof.lines is None else f"; all {proof.lines} lines of the page are covered"
        )
        yield (
            f"{proof.document}: {proof.cases} cases of {proof.versions} versions are total and"
            f" unambiguous under {proof.rules} rules{covered}"
        )


WIDTH = 80
RULES = ("rule", "rules")
"""Most encoders are rules, so their names go without the word."""


def known_coverage(document: Document) -> Coverage:
    """What encodes a document's page, or an error where the page is not known by its lines."""
    found = coverage(document)
    if found is None:
        raise CastigateError(
            f"{document.name} points at no lines of `{document.entry.seed}`: its clauses name the"
            " places in words only"
        )
    return found


def page_listing(document: Document, version: str | None, copy: Path | None) -> Iterator[str]:
    """The page range by range: line numbers, what encodes them, or the reason why nothing does.

    ``copy`` is the user's own copy of the page, whose text is shown beside; it must be the edition
    that the document encodes.
    """
    found = known_coverage(document)
    if version is not None:
        edition_named(document, version)
    text = read_page(copy).split("\n") if copy is not None else None
    page = found.page
    shown = page_sections(document, page, version)
    yield f"{document.name} encodes {page.name}, {page.whole.last:,} lines"
    for title, span in shown:
        yield ""
        if title:
            yield title
        yield "    lines  encoded by"
        for encoded, lines in groupby(page.texts(span), lambda line: _words(document, found, line)):
            run = list(lines)
            start = f"{Span(run[0], run[-1])!s:>9}  "
            for words in encoded:
                yield from _wrapped(start, words)
                start = " " * len(start)
            if text is not None:
                yield from (f"{line:>9} | {text[line - 1].rstrip()}" for line in run)
    yield ""
    yield _total(found, [line for _, span in shown for line in page.texts(span)])


def _words(document: Document, found: Coverage, line: int) -> list[str]:
    """What stands beside a line: the encoders of each document, or why there are none."""
    if line in found.encoders:
        told: dict[str, list[str]] = {}
        for (owner, kind), named in by_kind(found.encoders[line], document).items():
            sister = "" if owner is document else f"{owner.name}: "
            names = ", ".join(each.name for each in named)
            told.setdefault(sister, []).append(names if kind in RULES else f"{kind} {names}")
        return [f"{sister}{'; '.join(words)}" for sister, words in told.items()]
    if line in found.reasons:
        return [f"(not encoded: {found.reasons[line]})"]
    return [f"NOT COVERED: {found.why_uncovered(line)}"]


def _total(found: Coverage, lines: list[int]) -> str:
    encoded = sum(line in found.encoders for line in lines)
    missing = len(set(lines) & set(found.uncovered()))
    excused = len(lines) - encoded - missing
    return (
        f"{len(lines):,} lines with text: {encoded:,} encoded, {excused:,} not encoded for a"
        f" reason, {missing:,} not covered"
    )


def _wrapped(start: str, text: str) -> list[str]:
    return wrap(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
        break_long_words=False,
    )


def change_listing(document: Document, copy: Path) -> list[str]:
    """What differs between the user's copy of a page and the one encoded; empty if nothing does."""
    found = known_coverage(document)
    text = read_page(copy)
    change = changes(found, text)
    if change is None:
        return []
    lines = text.split("\n")
    told = [f"{copy} is not the {found.page.name} that the rules encode.", ""]
    if change.gone:
        told += _wrapped("", f"Gone or changed: lines {', '.join(map(str, change.gone))}")
    if change.new:
        told.append("New in the copy:")
    for span in change.new:
        for line in range(span.first, span.last + 1):
            if lines[line - 1].strip():
                told.append(f"{line:>9} | {lines[line - 1].rstrip()}")
    touched = [each for each in change.moved if each.now is None]
    moved = [each for each in change.moved if each.now is not None]
    if touched:
        told += ["", "Check these, whose text changed:"]
        told += [_range(each) for each in touched]
    if moved:
        told += ["", "The text of these is the same, on other lines:"]
        told += [f"{_range(each)} -> {each.now}" for each in moved]
    name = found.page.name
    told += ["", f"Then renew the digests: castigate specs page {copy} > {name}.sha256"]
    return told


def _range(moved: Moved) -> str:
    source = moved.document.source
    return f"  {source.path.name}:{source.line(moved.location)}: {moved.label}: {moved.before}"
