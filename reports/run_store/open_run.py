"""Opens complete runs for readers of their tables and answers, and complete shards for merging."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reports.judgement import (
    AnswerDigest,
    AnswerExample,
    DatumArray,
    InputsAndAnswers,
    decode_array,
)
from reports.run_store.storage import Folder, explain_read_errors, folder_at, reason_of
from reports.run_store.store import RunStore, read_record
from reports.run_store.tables import ALL_SCHEMAS, DIGESTS_TABLE, NEVER_NULL, SCHEMAS
from specs import VERSION
from specs.errors import CastigateError

REPAIR_ADVICE = "copy the whole folder again, or run again into another --out"
UNPARSABLE = (pa.ArrowException, UnicodeDecodeError)
"""Errors of pyarrow about damaged bytes; the second is about names of columns."""
ROWS_AT_ONCE = 1 << 12
"""Rows that are read at a time. As Python objects, 2^16 cases take a hundred megabytes, and the
cells that stay lie between them, so that little of it can be used again."""


def open_run(out: str, *, allows_edited: bool = False) -> RunStore:
    """Open a complete run that has all tables.

    With ``allows_edited``, its own documents and house rules may have other texts than those of
    their names that this process knows, by which its cases are then shown.

    Raise CastigateError if there is no run, for an unfinished run or a shard, and if a table is
    missing, of another version, or damaged in its footer. Rows are not read.
    """
    store = _open_complete(out, allows_edited=allows_edited)
    if store.record.shard is not None:
        raise CastigateError(
            f"{store.folder.display_name} is shard {store.record.shard} of a run; "
            "join all shards with `castigate merge` first"
        )
    for table in SCHEMAS:
        _open_table(store.folder, table).close()
    return store


def open_shard(out: str) -> RunStore:
    """Open a complete shard, to be merged with the other shards of its run.

    Raise CastigateError for a whole run, an unfinished one, or no run, and for a shard of which a
    part is missing, or that another version of Castigate wrote.
    """
    store = _open_complete(out)
    folder = store.folder.display_name
    if store.record.shard is None:
        raise CastigateError(f"{folder} is a whole run; only shards can be merged")
    if missing := store.missing_parts():
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CastigateError(
            f"{missing[0]}{more} is missing; copy the whole shard again, "
            "or run it again into another --out"
        )
    if store.record.suite != VERSION:
        raise CastigateError(
            f"{folder} was made by castigate {store.record.suite}, this is {VERSION}; "
            "merge with the version that made it"
        )
    return store


def read_batches(
    store: RunStore, table: str, columns: Sequence[str] | None = None, rows: int = ROWS_AT_ONCE
) -> Iterator[Any]:
    """Yield the rows of a table of a complete run as record batches, in order.

    Each batch has at most ``rows`` rows, with the given ``columns``, or all if that is None. Raise
    CastigateError if the table is missing or damaged, which may show after some batches.
    """
    with _open_table(store.folder, table) as file:
        yield from _batches(store, table, file, range(file.num_row_groups), columns, rows)


@dataclass(frozen=True)
class RowGroup:
    """Some rows of a table that are stored together; ``read`` yields them as record batches."""

    rows: int
    read: Callable[[], Iterator[Any]]


def row_groups(store: RunStore, table: str) -> Iterator[RowGroup]:
    """Yield the row groups of a table of a complete run, of which any may be left unread.

    Raise CastigateError as ``read_batches`` does, but only for what is read.
    """
    with _open_table(store.folder, table) as file:
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            yield RowGroup(rows, partial(_batches, store, table, file, [number]))


def _batches(
    store: RunStore,
    table: str,
    file: Any,
    groups: Sequence[int],
    columns: Sequence[str] | None = None,
    rows: int = ROWS_AT_ONCE,
) -> Iterator[Any]:
    missing = sum(file.metadata.row_group(number).num_rows for number in groups)
    try:
        # Each thread of Arrow would keep what it frees apart from all others, and saves no time.
        batches = file.iter_batches(rows, row_groups=[*groups], columns=columns, use_threads=False)
        for batch in batches:
            missing -= batch.num_rows
            for name in NEVER_NULL[table]:
                if name in batch.schema.names and batch[name].null_count:
                    raise _damage_error(store.folder, table, f"a row has no `{name}`")
            yield batch
    except (OSError, *UNPARSABLE) as error:
        raise _damage_error(store.folder, table, reason_of(error)) from None
    if missing:
        # A damaged page may make the reader stop early without an error.
        raise _damage_error(store.folder, table, f"{missing} rows are missing")


def read_digests(
    store: RunStore, *, has_examples: bool = True
) -> Iterator[tuple[tuple[str, str], AnswerDigest]]:
    """Yield the digests of answers of a complete run, by backend and case or check, in its order.

    There are none if the run has no such table. Raise CastigateError if it is damaged.
    """
    if DIGESTS_TABLE not in store.folder.names():
        return
    columns = ["backend", "name", "asked", "answers", *(["given", "got"] if has_examples else [])]
    for batch in read_batches(store, DIGESTS_TABLE, columns):
        for backend, name, asked, answers, *examples in zip(
            *(batch[column].to_pylist() for column in columns), strict=True
        ):
            shown = tuple(map(AnswerExample, *examples)) if examples else ()
            yield (backend, name), AnswerDigest(asked, answers, shown)


def check_cases(store: RunStore) -> None:
    """Read all cases of a complete run; raise CastigateError if a page of them is damaged."""
    for _ in read_batches(store, "cases.parquet"):
        pass


def _open_complete(out: str, *, allows_edited: bool = False) -> RunStore:
    folder = folder_at(out)
    record = read_record(folder, allows_edited=allows_edited)
    if not record.complete:
        raise CastigateError(
            f"{folder.display_name} holds an unfinished run; "
            "go on with it by `castigate run … --resume`"
        )
    return RunStore(folder, record)


def _open_table(folder: Folder, table: str) -> Any:
    """Open a table as a ParquetFile.

    Raise CastigateError if it is missing, damaged, or has other columns.
    """
    named = folder.display_path(table)
    try:
        with explain_read_errors(folder, table):
            file = _parsed_table(folder, table)
    except FileNotFoundError:
        raise CastigateError(f"{named} is missing; {REPAIR_ADVICE}") from None
    if not file.schema_arrow.equals(ALL_SCHEMAS[table]):
        file.close()
        raise CastigateError(
            f"{named} does not have the columns of castigate {VERSION}; "
            "read it with the version that wrote it"
        )
    return file


def _parsed_table(folder: Folder, table: str) -> Any:
    """Open a table as a ParquetFile, whose footer is parsed.

    Raise CastigateError if its bytes are damaged, and OSError if they cannot be read.
    """
    stream = folder.open_file(table)
    try:
        return pq.ParquetFile(stream, page_checksum_verification=True)
    except UNPARSABLE as error:
        raise _damage_error(folder, table, reason_of(error)) from None
    except OSError as error:
        # For bytes that it cannot parse, pyarrow also raises OSError, without an errno.
        if error.errno is not None or not folder.is_local:
            raise
        raise _damage_error(folder, table, reason_of(error)) from None


def _damage_error(folder: Folder, table: str, reason: str) -> CastigateError:
    named, reason = folder.display_path(table), reason.rstrip(". ")
    return CastigateError(f"{named} is cut short or damaged: {reason}; {REPAIR_ADVICE}")


CACHED_ARRAYS = 64
ARRAY_COLUMNS = ("digest", "dtype", "data")
ARRAYS_AT_ONCE = 8
"""Arrays that are read at a time: one has up to three megabytes."""
FASTEST = 1
"""The level of zlib: differences of patterns compress well at any."""


@dataclass(frozen=True)
class CaseRow:
    """A case in a run's tables: its verdict, and the digests of its inputs and answers, if any."""

    backend: str
    case: str
    verdict: str
    asked: str | None
    answers: str | None


class RunAnswers:
    """The arrays of inputs and answers of a run in memory; if ``digests`` are given, only these.

    They are held compressed; the last few that were used are cached decoded.
    """

    def __init__(self, store: RunStore, digests: Container[str] | None = None) -> None:
        self.store = store
        self._compressed: dict[str, tuple[str, bytes]] = {
            digest.as_py(): (dtype.as_py(), zlib.compress(data.as_py(), FASTEST))
            for batch in read_batches(store, "answers.parquet", ARRAY_COLUMNS, ARRAYS_AT_ONCE)
            for digest, dtype, data in zip(*batch.columns, strict=True)
            if digests is None or digest.as_py() in digests
        }
        self.array = lru_cache(CACHED_ARRAYS)(self._decode)
        """Returns the array of a digest; raises CastigateError if it is missing or damaged."""

    def cases(self, backend: str) -> Iterator[CaseRow]:
        """Yield the cases of one backend, in the order of the run."""
        columns = ("backend", "case", "verdict", "asked", "answers")
        for batch in read_batches(self.store, "cases.parquet", columns):
            for row in batch.to_pylist():
                if row["backend"] == backend:
                    yield CaseRow(**row)

    def answered(self, asked: str | None, answers: str | None) -> InputsAndAnswers | None:
        """Return the arrays of inputs and answers with two digests; None if one digest is None."""
        if asked is None or answers is None:
            return None
        return InputsAndAnswers(self.array(asked), self.array(answers))

    def values(self, digest: str) -> NDArray[Any]:
        """Return the patterns or texts of a digest; raise CastigateError if missing or damaged."""
        return self.array(digest).values

    def _decode(self, digest: str) -> DatumArray:
        try:
            dtype, data = self._compressed[digest]
        except KeyError:
            where = self.store.folder.display_path("answers.parquet")
            raise CastigateError(f"{where} lacks an array that a case refers to") from None
        try:
            return decode_array(dtype, zlib.decompress(data))
        except (ValueError, CastigateError):
            raise _damage_error(
                self.store.folder, "answers.parquet", f"an array is none of {dtype}"
            ) from None
