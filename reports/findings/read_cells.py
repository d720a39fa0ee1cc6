"""Reads the cells of a complete run from its two tables."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from reports.diff.failure_runs import KEPT_RUNS
from reports.findings.cells import Broken, Cell, Key, Stretch
from reports.findings.number_line import segments
from reports.run_store.open_run import AGAIN, batches
from reports.run_store.store import RunStore
from specs.errors import CastigateError
from specs.formats import Format, format_named

SHOWN_RUNS = 6
"""Runs of a rule that are written out, before the very last."""


def cells(store: RunStore) -> Iterator[Cell]:
    """The cells of a run in the order of its table, each with the runs that belong to it."""
    rows = _Rows(store)
    for batch in batches(store, "cases.parquet"):
        for row in batch.to_pylist():
            broken = tuple(_broken(row, each, rows) for each in row.pop("broken"))
            yield Cell(**row, broken=broken)


def verdicts(store: RunStore) -> Iterator[tuple[Key, str]]:
    """Only the verdicts of a run."""
    for batch in batches(store, "cases.parquet", ("backend", "case", "verdict")):
        backends, cases, told = (batch[name].to_pylist() for name in batch.schema.names)
        yield from zip(zip(backends, cases, strict=True), told, strict=True)


class _Rows:
    """The rows of ``divergences.parquet``, which stand in the order of the cases' broken rules."""

    def __init__(self, store: RunStore) -> None:
        self.named = store.place.named("divergences.parquet")
        self.batches = batches(store, "divergences.parquet")
        self.waiting: Any = None

    def take(self, count: int, owner: tuple[str, str, str, str]) -> Any:
        """The next rows, which must all be of the backend, case, rule and level that is asked."""
        parts, missing = [], count
        while missing:
            if self.waiting is None or not self.waiting.num_rows:
                self.waiting = next(self.batches, None)
                if self.waiting is None:
                    break
            part = self.waiting.slice(0, missing)
            self.waiting = self.waiting.slice(part.num_rows)
            missing -= part.num_rows
            parts.append(part)
        rows = pa.Table.from_batches(parts).combine_chunks() if parts else None
        if missing or rows is None or _owners(rows) != {owner}:
            raise CastigateError(
                f"{self.named} does not belong to its cases.parquet: the runs of "
                f"{owner[1]} are not where they should be; {AGAIN}"
            )
        return rows


def _owners(rows: Any) -> set[tuple[str, ...]]:
    """Whose the rows are; in a table that is in order it is enough to look at both ends."""
    return {
        tuple(rows[name][place].as_py() for name in ("backend", "case", "rule", "level"))
        for place in (0, -1)
    }


def _broken(row: dict[str, Any], told: dict[str, Any], rows: _Rows) -> Broken:
    source, target = format_named(row["source"]), format_named(row["target"])
    told["allowed"] = tuple(told["allowed"])
    if not told["runs"]:
        return Broken(**told, digest="", segments=(), stretches=())
    owner = row["backend"], row["case"], told["rule"], told["level"]
    listed = rows.take(min(told["runs"], KEPT_RUNS), owner).drop_columns(
        ["backend", "case", "rule", "level"]
    )
    return Broken(
        **told,
        digest=_digest(listed, told["wrong"]),
        segments=_segments(source, listed),
        stretches=tuple(_stretches(source, target, listed)),
    )


def _digest(listed: Any, wrong: int) -> str:
    """A short name of runs and answers; the offsets of slices do not enter into it."""
    digest = sha256(f"{wrong}".encode())
    for name, column in zip(listed.column_names, listed.columns, strict=True):
        if column.null_count == len(column):
            continue
        is_plain = not (column.null_count or pa.types.is_string(column.type))
        told = column.to_numpy().tobytes() if is_plain else repr(column.to_pylist()).encode()
        digest.update(name.encode() + told)
    return digest.hexdigest()[:16]


def _segments(source: Format, listed: Any) -> tuple[int, ...]:
    if source.kind == "text":
        return ()
    if not listed["text"].null_count:
        wide = np.array([int(text, 16) for text in listed["text"].to_pylist()], object)
        return segments(source, wide, wide)
    first, last = (listed[name].drop_null().to_numpy() for name in ("first", "last"))
    return segments(source, first, last)


def _stretches(source: Format, target: Format, listed: Any) -> Iterator[Stretch]:
    """The first few runs, and the last."""
    rows = listed.slice(0, SHOWN_RUNS).to_pylist()
    if listed.num_rows > SHOWN_RUNS:
        rows += listed.slice(listed.num_rows - 1).to_pylist()
    for row in rows:
        given = row["text"]
        answer, last_answer = row["answer_text"], row["last_answer_text"]
        yield Stretch(
            source.hexadecimal(row["first"]) if given is None else given,
            source.hexadecimal(row["last"]) if given is None else given,
            row["count"],
            target.hexadecimal(row["answer"]) if answer is None else answer,
            target.hexadecimal(row["last_answer"]) if last_answer is None else last_answer,
            row["slope"],
            row["straight"],
        )
