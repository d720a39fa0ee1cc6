"""``castigate export vectors``: writes what casts may answer as files for other languages."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import JobsOption, pair_named, parse_local_folder
from conformance.extras.vectors.files import VectorFolder, small_formats
from conformance.extras.vectors.index import INDEX, SCHEMA, Index
from conformance.extras.vectors.tensors import tensor_files
from conformance.families import SMALL_TENSORS
from reports.gate.canonical_json import canonical_bytes
from reports.run_store.storage import filled_at_once
from specs.cases import Case
from specs.editions import Edition, edition, editions
from specs.errors import CastigateError
from specs.loader import Document, document_and_version, documents, yardsticks
from specs.operations import operation_of

LIMIT = 20_000
FIRST = ("small-floats", "ieee-casts", "plain-cast")
"""Yardsticks after which files are named that several documents share."""
OPERATIONS = ("cast", *SMALL_TENSORS)
"""The operations of documents that have vectors."""


def export_vectors(
    to: Annotated[
        Path,
        typer.Option(
            "--to", "--out", metavar="DIR", parser=parse_local_folder, help="A new folder."
        ),
    ],
    document: Annotated[
        list[str] | None,
        typer.Option(
            "--document",
            metavar="NAME[:VERSION]",
            help="Only this document or yardstick, such as ieee-casts or onnx-cast:19"
            " (repeatable; default: all, the newest versions).",
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            "--pair",
            "--pairs",
            metavar="SOURCE/TARGET",
            help="Only this pair, such as float32/e4m3fn (repeatable).",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            metavar="LINES", min=100, help="Most lines of a cast that has too many to tell all."
        ),
    ] = LIMIT,
    with_headers: Annotated[
        bool, typer.Option("--c-headers", help="Write a C header beside each file.")
    ] = False,
    jobs: JobsOption = None,
) -> None:
    """Write what casts may answer as text files, and an index of them.

    Each file tells of every input, or of the most telling ones, what may come out. A few lines of
    any language read it: docs/vectors.md. Exit code 3 if nothing could be written.
    """
    cases = selected_cases(document or (), [pair_named(each) for each in pair or ()])
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise CastigateError(f"{to} is not empty; give a new folder as --to")
    try:
        with filled_at_once(to) as folder:
            index = write_vectors(
                folder,
                cases,
                limit,
                jobs or os.cpu_count() or 1,
                with_headers=with_headers,
            )
    except OSError as error:
        raise CastigateError(f"cannot write {to}: {error.strerror}; give another --to") from None
    whole = sum(each.covers == "all" for each in index.files)
    lines = sum(each.lines for each in index.files)
    typer.echo(
        f"{to}: {len(index.files):,} files of {len(cases):,} cases, {lines:,} lines;"
        f" {whole:,} tell of every input"
    )
    for each in index.left_out:
        typer.echo(f"left out {len(each.cases):,} cases, such as {each.cases[0]}: {each.why}")
    raise typer.Exit(0 if index.files else 3)


def write_vectors(
    folder: Path, cases: Collection[Case], limit: int, jobs: int, *, with_headers: bool
) -> Index:
    """Write the files of cases and their index into an empty folder; return the index."""
    vectors = VectorFolder(folder, limit, with_headers)
    vectors.add_casts((case for case in cases if operation_of(case) == "cast"), jobs)
    for each in tensor_files(cases):
        vectors.add_tensors(each)
    for form in small_formats(cases):
        vectors.add_values(form)
    index = vectors.index()
    (folder / INDEX).write_bytes(index.as_json())
    (folder / SCHEMA).write_bytes(canonical_bytes(Index.model_json_schema()))
    return index


def selected_cases(names: Collection[str], pairs: Collection[tuple[str, str]]) -> list[Case]:
    """Return the cases of documents and yardsticks, of all if none is named.

    ``pairs`` restricts them unless it is empty. Raise CastigateError if nothing is left, or a
    document has no vectors.
    """
    found = [
        case
        for each in (_named(names) if names else _newest())
        for case in each.cases()
        if not pairs or (case.source, case.target) in pairs
    ]
    if not found:
        asked = " or ".join(f"{source}/{target}" for source, target in pairs)
        raise CastigateError(
            f"no document that was named has {asked}; castigate specs DOCUMENT shows its pairs"
        )
    return found


def _named(names: Collection[str]) -> Iterator[Edition]:
    for name in dict.fromkeys(names):
        document, version = document_and_version(name, takes_yardsticks=True)
        if document.entry.operation not in OPERATIONS:
            raise CastigateError(
                f"{document.name} has no vectors: calls of a module are no function of bits; name"
                " the document of its casts"
            )
        yield edition(document, version) if version else _newest_of(document)


def _newest() -> Iterator[Edition]:
    """Yield the versions of yardsticks, and the newest one of each document of casts."""
    shipped = yardsticks()
    for name in (*FIRST, *(name for name in shipped if name not in FIRST)):
        yield from editions(shipped[name])
    for each in documents().values():
        if each.entry.operation in OPERATIONS:
            yield _newest_of(each)


def _newest_of(document: Document) -> Edition:
    return [*editions(document)][-1]
