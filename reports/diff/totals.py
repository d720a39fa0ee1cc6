"""What a run came to: verdicts counted, broken rules counted, and the exit code that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from reports.diff.judgement import Judgement
from reports.diff.summary_tables import Breach, BrokenRule, Row, breach_table, verdict_table
from specs.cases import Case
from specs.loader import documents


def recorded(case: Case, judgement: Judgement) -> dict[str, Any]:
    """What is kept of a judgement to be counted, also when it comes from another process."""
    return {
        "case": case.id,
        "backend": judgement.backend,
        "document": case.document,
        "version": case.version,
        "verdict": judgement.verdict,
        "inputs": judgement.inputs,
        "open": judgement.open_inputs,
        "wrong": judgement.wrong,
        "message": judgement.message,
        "broken": list(broken(judgement)),
    }


def broken(judgement: Judgement) -> Iterator[list[str | int]]:
    """Each broken rule with its clause, its level and the number of inputs."""
    for divergence in judgement.divergences:
        yield [divergence.rule, divergence.clause, divergence.level, divergence.count]
    for fault in judgement.faults:
        yield [fault.rule, fault.clause, fault.level, 0]


class Totals:
    """Counts judgements."""

    def __init__(self) -> None:
        self.verdicts: dict[Row, Counter[str]] = {}
        self.breaches: dict[BrokenRule, Breach] = {}
        self.inputs = 0

    def add(self, record: dict[str, Any]) -> None:
        """Count what was recorded of a judgement."""
        row = (record["backend"], record["document"], record["version"])
        self.verdicts.setdefault(row, Counter())[record["verdict"]] += 1
        self.inputs += record["inputs"]
        for rule, clause, level, inputs in record["broken"]:
            key = (record["backend"], record["document"], rule, clause, level)
            breach = self.breaches.setdefault(key, Breach(example=record["case"]))
            breach.cases += 1
            breach.inputs += inputs

    @property
    def judged(self) -> int:
        """Cases that a backend has answered in some way."""
        return sum(row.total() - row["unsupported"] - row["not-run"] for row in self._rows)

    @property
    def exit_code(self) -> int:
        """0 every claimed rule holds, 1 one does not, 3 nothing was judged."""
        failed = ("violates", "deviates", "error", "crashed")
        if any(row[verdict] for row in self._rows for verdict in failed):
            return 1
        return 0 if self.judged else 3

    @property
    def _rows(self) -> list[Counter[str]]:
        return list(self.verdicts.values())

    def breach_table(self, width: int) -> str:
        """The broken rules, the worst of each backend first."""
        worst = sorted(
            self.breaches.items(),
            key=lambda item: (item[0][0], item[0][4] != "required", -item[1].cases),
        )
        return breach_table(dict(worst), width)

    def verdict_table(self, width: int) -> str:
        """The verdicts, version after version."""
        return verdict_table(dict(sorted(self.verdicts.items(), key=_order)), width)


def _order(item: tuple[Row, Counter[str]]) -> tuple[str, str, int]:
    backend, document, version = item[0]
    return backend, document, list(documents()[document].entry.versions).index(version)
