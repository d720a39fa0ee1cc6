"""Complete runs for those who read them, and complete shards for those who join them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reports.run_store.storage import Place, place_of, reading, why
from reports.run_store.store import RunStore, read_record
from reports.run_store.tables import SCHEMAS
from specs.errors import CastigateError
from specs.release import VERSION

AGAIN = "copy the whole folder again, or run again into another --out"


def open_run(out: str) -> RunStore:
    """A complete run whose tables can be read."""
    store = _complete(out)
    if store.record.shard is not None:
        raise CastigateError(
            f"{store.place.given} is shard {store.record.shard} of a run; "
            "join all shards with `castigate merge` first"
        )
    for table in SCHEMAS:
        _opened(store.place, table).close()
    return store


def open_shard(out: str) -> RunStore:
    """A complete shard, whose parts can be read."""
    store = _complete(out)
    if store.record.shard is None:
        raise CastigateError(f"{store.place.given} is a whole run; only shards can be merged")
    return store


def batches(store: RunStore, table: str, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """A table of a complete run as record batches, in the order of its rows."""
    with _opened(store.place, table) as file:
        missing = file.metadata.num_rows
        try:
            for batch in file.iter_batches(columns=columns):
                missing -= batch.num_rows
                yield batch
        except (OSError, pa.ArrowException) as error:
            raise _damaged(store.place, table, why(error)) from None
    if missing:
        # A damaged page may make the reader stop early and say nothing.
        raise _damaged(store.place, table, f"{missing} rows are missing")


def check_cases(store: RunStore) -> None:
    """Read all cases of a complete run; an error where one of their pages is damaged."""
    for _ in batches(store, "cases.parquet"):
        pass


def _complete(out: str) -> RunStore:
    place = place_of(out)
    record = read_record(place)
    if not record.complete:
        raise CastigateError(
            f"{place.given} holds an unfinished run; go on with it by `castigate run … --resume`"
        )
    return RunStore(place, record)


def _opened(place: Place, table: str) -> Any:
    """A table that is there, opens, and has the columns it must have."""
    try:
        with reading(place, table):
            file = pq.ParquetFile(place.opened(table), page_checksum_verification=True)
    except FileNotFoundError:
        raise CastigateError(f"{place.named(table)} is missing; {AGAIN}") from None
    except pa.ArrowException as error:
        raise _damaged(place, table, why(error)) from None
    if not file.schema_arrow.equals(SCHEMAS[table]):
        file.close()
        raise CastigateError(
            f"{place.named(table)} has not the columns of castigate {VERSION}; "
            "read it with the version that wrote it"
        )
    return file


def _damaged(place: Place, table: str, reason: str) -> CastigateError:
    return CastigateError(
        f"{place.named(table)} is cut short or damaged: {reason.rstrip('. ')}; {AGAIN}"
    )
