"""The end of a command: counts of verdicts, the exit code, and the last screen.

A user who waited for a run looks at its end first: a line per backend, and as many findings as
fit. Those that do not fit into a terminal of 40 lines and 100 columns are counted; the report, or
``--verbose``, has all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from reports.case_patterns import kind_of_check
from reports.findings.finding import Findings
from reports.findings.finding_text import counted, finding_lines, findings_heading
from reports.findings.roads import alike_roads, finding_key
from reports.judgement import FAILING, IN_TURN, NOT_RUN, VERDICTS, Judgement
from reports.outputs.table import in_columns
from reports.problems import wrong_inputs
from specs.cases import Case
from specs.loader import documents


def count_record(case: Case, judgement: Judgement) -> dict[str, Any]:
    """Return a judgement's names, verdict, counts and broken rules as plain data for ``Totals``."""
    return {
        "case": case.id,
        "check": judgement.check,
        "backend": judgement.backend,
        "document": case.document,
        "version": case.version,
        "verdict": judgement.verdict,
        "inputs": judgement.inputs,
        "open": judgement.open_inputs,
        "wrong": judgement.wrong,
        "message": judgement.message,
        "broken": [
            [each.rule, each.clause, each.level, wrong_inputs(each)]
            for each in judgement.broken_rules
        ],
    }


LEFT_TO_OTHERS = (
    "not-run: another version or carrier is asked; each --seed asks a seventh, --tier full all"
)


class Totals:
    """Counts the verdicts on cases and on dtype pairs, and the inputs of the cases."""

    def __init__(self) -> None:
        self.verdicts: dict[tuple[str, str, str], Counter[str]] = {}
        """By backend, document and version."""
        self.pair_verdicts: dict[tuple[str, str], Counter[str]] = {}
        """By backend and kind of check on dtype pairs."""
        self.open_pairs: list[tuple[str, str, str]] = []
        """Backend, check and message of each check on a dtype pair with the verdict `open`."""
        self.inputs = 0
        self.has_turns = False
        """Whether some cases were left to other seeds."""
        self.reasons: dict[str, Counter[str]] = {}
        """By backend, the messages of cases that it does not support."""

    def add(self, record: dict[str, Any]) -> None:
        """Count a judgement on a case or a dtype pair, given as its ``count_record``."""
        backend, check, verdict = record["backend"], record["check"], record["verdict"]
        if check:
            kind = kind_of_check(check)
            self.pair_verdicts.setdefault((backend, kind), Counter())[verdict] += 1
            if verdict == "open":
                self.open_pairs.append((backend, check, record["message"]))
            return
        row = (backend, record["document"], record["version"])
        self.verdicts.setdefault(row, Counter())[verdict] += 1
        self.inputs += record["inputs"]
        if verdict == "unsupported":
            self.reasons.setdefault(backend, Counter())[record["message"]] += 1
        self.has_turns |= record["message"].startswith(IN_TURN)

    @property
    def judged(self) -> int:
        """The number of cases that backends were asked and did not decline."""
        rows = self.verdicts.values()
        return sum(row.total() - sum(row[verdict] for verdict in NOT_RUN) for row in rows)

    @property
    def judged_pairs(self) -> int:
        """The number of checks on dtype pairs that are not `unsupported`."""
        return sum(row.total() - row["unsupported"] for row in self.pair_verdicts.values())

    @property
    def exit_code(self) -> int:
        """The exit code: 1 if a case or a check fails, else 3 if no case was judged, else 0."""
        rows = (*self.verdicts.values(), *self.pair_verdicts.values())
        if any(row[verdict] for row in rows for verdict in FAILING):
            return 1
        return 0 if self.judged else 3

    def lines(self) -> Iterator[str]:
        """Yield a line per backend with how many of its cases and checks have each verdict.

        Roads of a framework with the same counts share a line. Of a backend that supports none the
        line has the most frequent reason. If cases were left to other seeds, a last line says so.
        """
        counts: dict[str, Counter[str]] = {}
        for (backend, *_), row in [*self.verdicts.items(), *self.pair_verdicts.items()]:
            counts.setdefault(backend, Counter()).update(row)
        words = {backend: self._words(backend, row) for backend, row in sorted(counts.items())}
        for backends in alike_roads(words):
            yield f"{', '.join(backends)}: {words[backends[0]]}"
        if self.has_turns:
            yield LEFT_TO_OTHERS

    def _words(self, backend: str, row: Mapping[str, int]) -> str:
        """Return the counts of a backend's verdicts and, if it supports nothing, the reason."""
        words = ", ".join(f"{row[each]:,} {each}" for each in VERDICTS if row[each])
        is_all = set(row) == {"unsupported"} and backend in self.reasons
        return f"{words}: {self.reasons[backend].most_common(1)[0][0]}" if is_all else words

    def verdict_table(self) -> Iterator[str]:
        """Yield a table: a row per backend and version of a document, a column per verdict.

        Versions are in their document's order; verdicts that do not occur have no column.
        """
        counts = {
            (backend, f"{document}:{version}"): row
            for (backend, document, version), row in sorted(
                self.verdicts.items(), key=_edition_order
            )
        }
        return _counts_in_columns("document", counts)

    def pair_table(self) -> Iterator[str]:
        """Yield a table: a row per backend and kind of check on dtype pairs."""
        return _counts_in_columns("pairs", dict(sorted(self.pair_verdicts.items())))

    def open_lines(self) -> Iterator[str]:
        """Yield a line for each check on a dtype pair with the verdict `open`."""
        for backend, check, message in sorted(self.open_pairs):
            yield f"{backend} {check}: {message}"


def _edition_order(item: tuple[tuple[str, str, str], Counter[str]]) -> tuple[str, str, int]:
    backend, document, version = item[0]
    return backend, document, list(documents()[document].entry.versions).index(version)


def _counts_in_columns(title: str, counts: Mapping[tuple[str, str], Counter[str]]) -> Iterator[str]:
    occurring = [verdict for verdict in VERDICTS if any(row[verdict] for row in counts.values())]
    rows = [
        [*names, *(str(row[verdict] or "") for verdict in occurring)]
        for names, row in counts.items()
    ]
    return in_columns([["backend", title, *occurring], *rows], range(2, 2 + len(occurring)))


COLUMNS = 100
ROWS = 32
"""Rows for all backends together; the command's own last words take the others of 40."""
INDENT = "      "
"""Stands before the continuation lines of a line that is too long."""


@dataclass(frozen=True)
class BackendScreen:
    """A backend's heading, findings and closing lines, which a command prints at its end.

    Each finding has lines of its own, and the most important finding comes first.
    """

    heading: str
    findings: Sequence[Sequence[str]] = ()
    last: Sequence[str] = ()
    noun: str = "finding"
    """The noun for each of ``findings``; a gate also shows reasons against a certificate."""

    def lines(self, most: int) -> Iterator[str]:
        """Yield the lines with the first ``most`` findings; the other findings are only counted."""
        yield from wrapped(self.heading)
        for finding in self.findings[:most]:
            for line in finding:
                yield from wrapped(line)
        if (left := len(self.findings) - most) > 0:
            yield f"  and {counted(left, f'more {self.noun}')}"
        for line in self.last:
            yield from wrapped(line)


def last_screen(backends: Sequence[BackendScreen], rows: int | None = ROWS) -> list[str]:
    """Return the lines of all backends, with as many findings of each as fit into ``rows`` lines.

    At most the same number of each is shown, or all if ``rows`` is None. Other lines are not cut.
    """
    most = max((len(each.findings) for each in backends), default=0)
    while True:
        lines = [line for each in backends for line in each.lines(most)]
        if rows is None or len(lines) <= rows or most == 0:
            return lines
        most -= 1


def findings_screens(findings: Findings, versions: Mapping[str, str]) -> Iterator[BackendScreen]:
    """Yield a screen for each backend in ``findings``; ``versions`` are the backends' versions.

    Roads of a framework with the same findings share one.
    """
    keys = {name: (versions[name], *map(finding_key, found)) for name, found in findings.items()}
    for first, *alike in alike_roads(keys):
        others = {name: found for name, found in findings.items() if name not in alike}
        lines = [list(finding_lines(others, each)) for each in findings[first]]
        names = ", ".join([first, *alike])
        yield BackendScreen(findings_heading(names, versions[first], findings[first]), lines)


def wrapped(line: str) -> list[str]:
    """Break a line into lines of at most ``COLUMNS`` characters, indented as it is."""
    margin = line[: len(line) - len(line.lstrip())]
    return wrap(
        line,
        COLUMNS,
        subsequent_indent=f"{margin}{INDENT}",
        break_long_words=False,
        break_on_hyphens=False,
    )
