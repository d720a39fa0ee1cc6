"""Reads the answers that a complete run stores, by backend and case."""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from reports.run_store.answer_arrays import DatumArray, InputsAndAnswers, decode_array
from reports.run_store.open_run import read_batches
from reports.run_store.store import RunStore
from specs.errors import CastigateError

CACHED_ARRAYS = 64
ARRAY_COLUMNS = ("digest", "dtype", "data")
ROWS_AT_ONCE = 64
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
    """The answers of a run. All arrays are held compressed; the last few used are cached decoded.

    With ``digests``, only these arrays are read.
    """

    def __init__(self, store: RunStore, digests: Container[str] | None = None) -> None:
        self.store = store
        self._compressed: dict[str, tuple[str, bytes]] = {
            digest.as_py(): (dtype.as_py(), zlib.compress(data.as_py(), FASTEST))
            for batch in read_batches(store, "answers.parquet", ARRAY_COLUMNS, rows=ROWS_AT_ONCE)
            for digest, dtype, data in zip(*batch.columns, strict=True)
            if digests is None or digest.as_py() in digests
        }
        self.array = lru_cache(CACHED_ARRAYS)(self._decode)
        """The array of a digest."""

    def cases(self, backend: str) -> Iterator[CaseRow]:
        """The cases of one backend, in the order of the run."""
        columns = ("backend", "case", "verdict", "asked", "answers")
        for batch in read_batches(self.store, "cases.parquet", columns):
            for row in batch.to_pylist():
                if row["backend"] == backend:
                    yield CaseRow(**row)

    def answered(self, asked: str | None, answers: str | None) -> InputsAndAnswers | None:
        """The arrays of a case from the digests in its row; None if it has none."""
        if asked is None or answers is None:
            return None
        return InputsAndAnswers(self.array(asked), self.array(answers))

    def values(self, digest: str) -> NDArray[Any]:
        """The patterns or texts of a digest."""
        return self.array(digest).values

    def _decode(self, digest: str) -> DatumArray:
        try:
            dtype, data = self._compressed[digest]
        except KeyError:
            where = self.store.folder.display_path("answers.parquet")
            raise CastigateError(f"{where} lacks an array that a case refers to") from None
        return decode_array(dtype, zlib.decompress(data))
