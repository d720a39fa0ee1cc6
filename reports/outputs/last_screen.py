"""The last screen of a command: a line per backend, and as many findings as fit.

A user who waited for a run looks at its end first. Findings that do not fit into a terminal of 40
lines and 100 columns are counted; the report, or ``--verbose``, has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from reports.findings.finding import Findings
from reports.findings.finding_text import counted, finding_lines, findings_heading

COLUMNS = 100
ROWS = 32
"""Rows for all backends together; the command's own last words take the others of 40."""
INDENT = "      "
"""Stands before the continuation lines of a line that is too long."""


@dataclass(frozen=True)
class BackendScreen:
    """A heading, the lines of each finding, the most important first, and last words."""

    heading: str
    findings: Sequence[Sequence[str]] = ()
    last: Sequence[str] = ()
    noun: str = "finding"
    """The noun for each of ``findings``; a gate also shows reasons against a certificate."""

    def lines(self, most: int) -> Iterator[str]:
        """The lines, with at most this number of findings; the others are counted."""
        yield from _wrapped(self.heading)
        for finding in self.findings[:most]:
            for line in finding:
                yield from _wrapped(line)
        if (left := len(self.findings) - most) > 0:
            yield f"  and {counted(left, f'more {self.noun}')}"
        for line in self.last:
            yield from _wrapped(line)


def last_screen(backends: Sequence[BackendScreen], rows: int | None = ROWS) -> list[str]:
    """The lines of all backends, each with the same highest number of findings that fits."""
    most = max((len(each.findings) for each in backends), default=0)
    while True:
        lines = [line for each in backends for line in each.lines(most)]
        if rows is None or len(lines) <= rows or most == 0:
            return lines
        most -= 1


def findings_screens(findings: Findings, versions: Mapping[str, str]) -> Iterator[BackendScreen]:
    """Yield a screen for each backend in ``findings``."""
    for backend, found in findings.items():
        lines = [list(finding_lines(findings, each)) for each in found]
        yield BackendScreen(findings_heading(backend, versions[backend], found), lines)


def _wrapped(line: str) -> list[str]:
    margin = line[: len(line) - len(line.lstrip())]
    return wrap(
        line,
        COLUMNS,
        subsequent_indent=f"{margin}{INDENT}",
        break_long_words=False,
        break_on_hyphens=False,
    )
