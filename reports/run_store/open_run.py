"""Opens complete runs for readers of their tables, and complete shards for merging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reports.run_store.storage import Folder, explain_read_errors, folder_at, reason_of
from reports.run_store.store import RunStore, read_record
from reports.run_store.tables import SCHEMAS
from specs.errors import CastigateError
from specs.release import VERSION

REPAIR_ADVICE = "copy the whole folder again, or run again into another --out"
UNPARSABLE = (pa.ArrowException, UnicodeDecodeError)
"""Errors of pyarrow about damaged bytes; the second is about names of columns."""


def open_run(out: str) -> RunStore:
    """Open a complete run; raise an error if a table is missing, damaged or of another version."""
    store = _open_complete(out)
    if store.record.shard is not None:
        raise CastigateError(
            f"{store.folder.display_name} is shard {store.record.shard} of a run; "
            "join all shards with `castigate merge` first"
        )
    for table in SCHEMAS:
        _open_table(store.folder, table).close()
    return store


def open_shard(out: str) -> RunStore:
    """Open a complete shard, whose parts can be read."""
    store = _open_complete(out)
    if store.record.shard is None:
        raise CastigateError(
            f"{store.folder.display_name} is a whole run; only shards can be merged"
        )
    return store


def read_batches(
    store: RunStore, table: str, columns: Sequence[str] | None = None, rows: int = 1 << 16
) -> Iterator[Any]:
    """A table of a complete run as record batches, in row order; raise an error on damage."""
    with _open_table(store.folder, table) as file:
        missing = file.metadata.num_rows
        try:
            for batch in file.iter_batches(rows, columns=columns):
                missing -= batch.num_rows
                yield batch
        except (OSError, *UNPARSABLE) as error:
            raise _damage_error(store.folder, table, reason_of(error)) from None
    if missing:
        # A damaged page may make the reader stop early without an error.
        raise _damage_error(store.folder, table, f"{missing} rows are missing")


def check_cases(store: RunStore) -> None:
    """Read all cases of a complete run; raise an error if a page of them is damaged."""
    for _ in read_batches(store, "cases.parquet"):
        pass


def _open_complete(out: str) -> RunStore:
    folder = folder_at(out)
    record = read_record(folder)
    if not record.complete:
        raise CastigateError(
            f"{folder.display_name} holds an unfinished run; "
            "go on with it by `castigate run … --resume`"
        )
    return RunStore(folder, record)


def _open_table(folder: Folder, table: str) -> Any:
    """Open a table; raise an error if it is missing, damaged, or has other columns."""
    named = folder.display_path(table)
    try:
        with explain_read_errors(folder, table):
            file = _parsed_table(folder, table)
    except FileNotFoundError:
        raise CastigateError(f"{named} is missing; {REPAIR_ADVICE}") from None
    if not file.schema_arrow.equals(SCHEMAS[table]):
        file.close()
        raise CastigateError(
            f"{named} does not have the columns of castigate {VERSION}; "
            "read it with the version that wrote it"
        )
    return file


def _parsed_table(folder: Folder, table: str) -> Any:
    """Parse the footer of a table; raise CastigateError if it is damaged, or else OSError."""
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
