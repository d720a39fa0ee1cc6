"""The answers that a complete run has kept, by backend and case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from reports.diff.kept_answers import Answered, Kept, kept_of
from reports.run_store.open_run import batches
from reports.run_store.store import RunStore
from specs.errors import CastigateError

ARRAYS_AT_HAND = 64


@dataclass(frozen=True)
class KeptCase:
    """A case as a run's tables tell it; without answers where none came."""

    backend: str
    case: str
    verdict: str
    asked: str | None
    answers: str | None


class KeptAnswers:
    """A run's answers. Arrays stay packed until they are looked at."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self._packed: dict[str, tuple[str, bytes]] = {
            row["digest"]: (row["dtype"], row["data"])
            for batch in batches(store, "answers.parquet")
            for row in batch.to_pylist()
        }
        self.array = lru_cache(ARRAYS_AT_HAND)(self._unpacked)
        """An array, by the digest that rows have of it."""

    def cases(self, backend: str) -> Iterator[KeptCase]:
        """The cases of one backend, in the order of the run."""
        names = ("backend", "case", "verdict", "asked", "answers")
        for batch in batches(self.store, "cases.parquet", names):
            for row in batch.to_pylist():
                if row["backend"] == backend:
                    yield KeptCase(**row)

    def answered(self, asked: str | None, answers: str | None) -> Answered | None:
        """What a case was asked and answered, by the digests that its row has, if it has any."""
        if asked is None or answers is None:
            return None
        return Answered(self.array(asked), self.array(answers))

    def _unpacked(self, digest: str) -> Kept:
        try:
            return kept_of(*self._packed[digest])
        except KeyError:
            where = self.store.place.named("answers.parquet")
            raise CastigateError(f"{where} lacks an array that a case refers to") from None
