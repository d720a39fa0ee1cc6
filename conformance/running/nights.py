"""The folder of a nightly: all runs, the report of the last ones, and its other forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reports.findings.report import Report
from reports.html.site import write_site
from reports.outputs.write_outputs import FORMS, write_output
from reports.run_store.open_run import check_cases, open_run
from reports.run_store.storage import is_unfinished, place_of
from specs.errors import CastigateError

PAST = 30
"""Runs of which the report tells: a month of nights."""
Told = Callable[[str], None]


@dataclass(frozen=True)
class Nights:
    """A folder with a run per night in `runs`, and a report of them in `report`."""

    folder: Path

    @property
    def runs(self) -> Path:
        """Where the runs are."""
        return self.folder / "runs"

    @property
    def report(self) -> Path:
        """Where the pages are."""
        return self.folder / "report"

    def next_run(self, now: datetime) -> Path:
        """The folder of a new run."""
        return self.runs / f"{now:%Y%m%d-%H%M%S}"

    def render(self, told: Told) -> Report:
        """Make the report of the last runs, and all its forms; is told which runs are left out."""
        runs = [str(run) for run in self._complete(told)][-PAST:]
        if not runs:
            raise CastigateError(f"{self.runs} holds no complete run; there is nothing to report")
        report = write_site(runs, self.report)
        for form in FORMS:
            write_output(report, form, self.folder / form)
        return report

    def _complete(self, told: Told) -> Iterator[Path]:
        """The complete runs, the oldest first."""
        found = []
        for name in place_of(str(self.runs)).names():
            if is_unfinished(name):
                continue
            run = self.runs / name
            try:
                store = open_run(str(run))
                check_cases(store)
                found.append((store.record.started, run))
            except CastigateError as error:
                told(f"left out: {error}")
        yield from (run for _, run in sorted(found))
