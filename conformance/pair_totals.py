"""What the items of pairs came to: verdicts counted, and the open sets that were found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from reports.summary import counted_table


class PairTotals:
    """Counts judgements on pairs, per backend and kind of item."""

    def __init__(self) -> None:
        self.verdicts: dict[tuple[str, str], Counter[str]] = {}
        self.sets: list[tuple[str, str, str]] = []

    def add(self, record: dict[str, Any]) -> None:
        """Count what was recorded of a judgement."""
        kind, _, _ = str(record["item"]).rsplit("/", 2)
        row = (record["backend"], kind)
        self.verdicts.setdefault(row, Counter())[record["verdict"]] += 1
        if record["verdict"] == "open":
            self.sets.append((record["backend"], record["item"], record["message"]))

    @property
    def judged(self) -> int:
        """Pairs that a backend has answered in some way."""
        return sum(row.total() - row["unsupported"] for row in self.verdicts.values())

    def table(self, width: int) -> str:
        """The verdicts, backend after backend."""
        return counted_table("pairs", dict(sorted(self.verdicts.items())), width)

    def open_lines(self) -> Iterator[str]:
        """Where the answers to open inputs are sets, a line per pair."""
        for backend, item, message in sorted(self.sets):
            yield f"{backend} {item}: {message}"
