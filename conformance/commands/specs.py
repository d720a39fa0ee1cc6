"""``castigate specs``: shows documents, proves them, and checks them against their pages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from pkgutil import resolve_name
from textwrap import wrap
from typing import Annotated

import typer

from conformance.commands.document_listing import (
    clauses_of,
    document_details,
    document_listing,
)
from conformance.commands.options import BackendOption, PythonOption, TimeoutOption
from conformance.extras import SPECS_WORDS
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import launch_configs
from reports.findings.finding_text import counted
from specs.coverage import Coverage, MovedRange, by_kind, compare_page, coverage, page_sections
from specs.editions import Edition, edition, editions
from specs.errors import CastigateError
from specs.lint import Proof, prove
from specs.loader import (
    Document,
    document_and_version,
    document_word,
    documents,
    load_document,
)
from specs.model.document import RuleEntry, json_schema
from specs.model.page_lines import LineSpan, cite_lines, line_digests, read_page
from specs.rule_words import rule_lines
from specs.ruling import matching_rules

WIDTH = 80
"""Columns of a listing of a page."""
RULE_WIDTH = 110
"""Columns of what a rule says, which begins behind the name of the rule."""
RULE_KINDS = ("rule", "rules")
"""Most encoders are rules, so a listing omits this word before their names."""


def specs_command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="DOCUMENT[:VERSION]|diff|lint|schema|page",
            help="A document to show (with --coverage also a YAML file); `diff` compares two"
            " editions; `lint` proves documents; `schema` prints their JSON schema; `page` prints"
            " the digests of a page's lines.",
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|EDITION",
            help="With `lint`: YAML files. With `page`: the page. With `diff`: the old and the new"
            " edition, as DOCUMENT:VERSION or YAML file.",
        ),
    ] = None,
    show_coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Show which rules encode which lines of the page."),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --coverage: your copy of the page. Show its text beside the rules, or what"
            " changed in it and which rules to check.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print a JSON object per document, with a DOCUMENT its rules and cases; with"
            " `diff` one per change.",
        ),
    ] = False,
    backend: BackendOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show documents, versions, cases and rules, compare editions, or prove documents.

    The exit code of `diff` is 0 if nothing changes, and 1 if something does.
    """
    files = [*map(Path, words or ())]
    if files and what not in ("diff", "lint", "page"):
        raise CastigateError("only `castigate specs lint` and `castigate specs page` take files")
    if page is not None and not show_coverage:
        raise CastigateError("--page needs --coverage; add it, or leave --page out")
    if as_json and (show_coverage or what in ("lint", "schema", "page")):
        raise CastigateError("--json lists documents; give a DOCUMENT, or leave --json out")
    if (backend or python) and what != "diff":
        raise CastigateError(
            "--backend and --python are for `castigate specs diff`; leave them out"
        )
    if show_coverage:
        _show_coverage(what, page)
        return
    has_changed = False
    match what:
        case None:
            lines = list_documents(as_json)
        case "diff":
            diff_editions = resolve_name(SPECS_WORDS["diff"])  # Other words ask no backend.
            found = diff_editions(words or (), launch_configs(backend or (), python or (), timeout))
            lines, has_changed = found.lines(as_json=as_json), not found.changes.is_same
        case "lint":
            given = [load_document(path) for path in files]
            lines = list_proofs([prove(document) for document in given or documents().values()])
        case "schema":
            lines = iter([json.dumps(json_schema(), indent=2)])
        case "page":
            if len(files) != 1:
                raise CastigateError("`castigate specs page` takes one page; add its FILE")
            lines = iter(line_digests(read_page(files[0])))
        case _:
            word = document_word(what)
            document, version = document_and_version(word, takes_yardsticks=True)
            if as_json:
                lines = iter([document_details(document, version).model_dump_json()])
            else:
                lines = list_version(document, version) if version else list_document(document)
    for line in lines:
        typer.echo(line)
    if has_changed:
        raise typer.Exit(1)


def _show_coverage(what: str | None, copy: Path | None) -> None:
    """Show a document's page line by line; exit with 1 if a line is not covered.

    ``what`` names the document or is the path of a YAML file. If ``copy``, the user's copy of the
    page, differs from the page, the differences are shown instead, and the exit code is 1. Raises
    CastigateError if ``what`` is None or the document has no coverage.
    """
    if what is None:
        raise CastigateError(
            "--coverage needs a document; write castigate specs --coverage DOCUMENT"
        )
    version: str | None = None
    if what.endswith(".yaml"):
        document = load_document(Path(what))
    else:
        document, version = document_and_version(what)
    changed = list_changes(document, copy) if copy is not None else []
    for line in changed or list_page(document, version, copy):
        typer.echo(line)
    if changed or known_coverage(document).uncovered():
        raise typer.Exit(1)


def list_documents(as_json: bool = False) -> Iterator[str]:
    """Yield a line per document, or with ``as_json`` a JSON object."""
    for found in map(document_listing, documents().values()):
        if as_json:
            yield found.model_dump_json(exclude_none=True)
        else:
            versions = ", ".join(version.version for version in found.versions)
            counts = f"{found.cases:>6} cases  versions {versions}"
            yield f"{found.document:<20} {counts}  ({found.title})"


def list_document(document: Document) -> Iterator[str]:
    """Yield lines on a document: versions, then what its ``clauses_of`` say, and conflicts."""
    entry = document.entry
    yield f"{entry.title} ({document.name}), sha256 {document.digest}"
    yield ""
    for version in editions(document):
        yield f"  {document.name}:{version.version:<6} {_count_cases(version)}"
    yield ""
    clauses = clauses_of(document)
    width = max(map(len, clauses))
    for name, clause in clauses.items():
        lines = f" ({cite_lines(clause.lines)})" if clause.lines else ""
        yield f"  {name:<{width}}  {clause.level:<12} {clause.clause}{lines}"
        if isinstance(clause, RuleEntry):
            for line in rule_lines(clause):
                yield from _wrapped(f"  {'':<{width}}  ", line, RULE_WIDTH)
        for conflict in clause.conflict:
            yield f"  {'':<{width}}  conflict with {conflict.with_}: {conflict.about}"
            yield f"  {'':<{width}}  taken: {conflict.taken}"


def list_version(document: Document, name: str) -> Iterator[str]:
    """Yield lines on a version: counts, dtypes, parameters, attributes, cases with their rules."""
    version = edition(document, name)
    yield f"{document.name}:{name}: {_count_cases(version)}"
    yield f"  from {' '.join(version.sources)}"
    yield f"  to   {' '.join(version.targets)}"
    for key, parameter in version.parameters():
        yield f"  {key}: {' '.join(parameter.values)} (default {parameter.default})"
    yield from (f"  attribute {key}: {kind}" for key, kind in version.attributes)
    yield ""
    for case in version.cases():
        yield f"  {case.id}  {', '.join(matching_rules(document, case).rules)}"


def _count_cases(version: Edition) -> str:
    kinds: Counter[str] = Counter()
    for case in version.cases():
        if case.example is not None:
            kinds["examples"] += 1
        elif (case.source, case.target) in version.listed:
            kinds["of listed pairs"] += 1
        else:
            rejected = matching_rules(version.document, case).is_rejection
            kinds["rejections" if rejected else "of pairs not listed"] += 1
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    pairs, cases = counted(len(version.listed), "listed pair"), counted(kinds.total(), "case")
    return f"{pairs}, {cases} ({counts})"


def list_proofs(proofs: Iterable[Proof]) -> Iterator[str]:
    """Yield a line per document with the numbers of versions, cases and rules that were proved."""
    for proof in proofs:
        covered = (
            "" if proof.lines is None else f"; all {proof.lines} lines of the page are covered"
        )
        cases, versions = counted(proof.cases, "case"), counted(proof.versions, "version")
        are = "is" if proof.cases == 1 else "are"
        yield (
            f"{proof.document}: {cases} of {versions} {are} total and unambiguous under"
            f" {counted(proof.rules, 'rule')}{covered}"
        )


def known_coverage(document: Document) -> Coverage:
    """Return the coverage of a document's page; raise CastigateError if there is none."""
    found = coverage(document)
    if found is None:
        raise CastigateError(
            f"{document.name} cites no lines of `{document.entry.seed}`, only clauses in words, so"
            " it has no coverage to show; see castigate specs for other documents"
        )
    return found


def list_page(document: Document, version: str | None, copy: Path | None) -> Iterator[str]:
    """Yield a page's ranges of lines, each with what encodes it or the reason why nothing does.

    ``copy`` is the user's copy of the page, whose text is shown below each range; it must be the
    text that the document encodes. With ``version`` only its part of the page is shown.
    """
    found = known_coverage(document)
    text = read_page(copy).split("\n") if copy is not None else None
    page = found.page
    shown = page_sections(document, page, version)
    yield f"{document.name} encodes {page.name}, {counted(page.whole.last, 'line')}"
    for title, span in shown:
        yield ""
        if title:
            yield title
        yield "    lines  encoded by"
        encoders = partial(_encoders_of_line, document, found)
        for encoded, group in groupby(page.texts(span), encoders):
            lines = list(group)
            start = f"{LineSpan(lines[0], lines[-1])!s:>9}  "
            for names in encoded:
                yield from _wrapped(start, names)
                start = " " * len(start)
            if text is not None:
                yield from (f"{line:>9} | {text[line - 1].rstrip()}" for line in lines)
    yield ""
    yield _summary(found, [line for _, span in shown for line in page.texts(span)])


def _encoders_of_line(document: Document, found: Coverage, line: int) -> list[str]:
    """Return texts with a line's encoders, one per document, or one on why it has none."""
    if line in found.encoders:
        by_document: dict[str, list[str]] = {}
        for (owner, kind), encoders in by_kind(found.encoders[line], document).items():
            prefix = "" if owner is document else f"{owner.name}: "
            names = ", ".join(encoder.name for encoder in encoders)
            by_document.setdefault(prefix, []).append(
                names if kind in RULE_KINDS else f"{kind} {names}"
            )
        return [f"{prefix}{'; '.join(names)}" for prefix, names in by_document.items()]
    if line in found.reasons:
        return [f"(not encoded: {found.reasons[line]})"]
    return [f"NOT COVERED: {found.why_uncovered(line)}"]


def _summary(found: Coverage, lines: list[int]) -> str:
    encoded = sum(line in found.encoders for line in lines)
    missing = len(set(lines) & set(found.uncovered()))
    excused = len(lines) - encoded - missing
    return (
        f"{counted(len(lines), 'line')} with text: {encoded:,} encoded, {excused:,} not encoded"
        f" for a reason, {missing:,} not covered"
    )


def _wrapped(start: str, text: str, width: int = WIDTH) -> list[str]:
    return wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
        break_long_words=False,
    )


def list_changes(document: Document, copy: Path) -> list[str]:
    """Return lines on how a user's copy of a page differs from the encoded one; none if equal."""
    found = known_coverage(document)
    text = read_page(copy)
    change = compare_page(found, text)
    if change is None:
        return []
    lines = text.split("\n")
    listing = [f"{copy} is not the {found.page.name} that the rules encode.", ""]
    if change.gone:
        listing += _wrapped("", f"Gone or changed: lines {', '.join(map(str, change.gone))}")
    if change.new:
        listing.append("New in the copy:")
    for span in change.new:
        for line in range(span.first, span.last + 1):
            if lines[line - 1].strip():
                listing.append(f"{line:>9} | {lines[line - 1].rstrip()}")
    touched = [each for each in change.moved if each.now is None]
    moved = [each for each in change.moved if each.now is not None]
    if touched:
        listing += ["", "Check these, whose text changed:"]
        listing += [_range(each) for each in touched]
    if moved:
        listing += ["", "The text of these is the same, on other lines:"]
        listing += [f"{_range(each)} -> {each.now}" for each in moved]
    name = found.page.name
    listing += ["", f"Then renew the digests: castigate specs page {copy} > {name}.sha256"]
    return listing


def _range(moved: MovedRange) -> str:
    source = moved.document.source
    return f"  {source.path.name}:{source.line(moved.location)}: {moved.label}: {moved.before}"
