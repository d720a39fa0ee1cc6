"""The folder of `castigate nightly`: all runs, and reports of the last ones in all formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count

from conformance.extras import Addon, pages_of
from reports.changes.change import BackendChanges
from reports.findings.report import Report
from reports.html.site import write_site
from reports.outputs.write_outputs import RENDERERS, write_output
from reports.run_store.open_run import check_cases, open_run
from reports.run_store.storage import Folder, folder_at, is_unfinished
from specs.errors import CastigateError

PAST = 30
"""Runs in the report: a month of nights."""


@dataclass(frozen=True)
class Nights:
    """A folder with a run per night in `runs`, and their report in `report`."""

    out: str | os.PathLike[str]
    """A path or a URL."""

    @property
    def folder(self) -> Folder:
        """The folder of the runs and their report."""
        return folder_at(os.fspath(self.out))

    @property
    def runs(self) -> str:
        """The path or URL of the folder of the runs."""
        return self.folder.display_path("runs")

    @property
    def report(self) -> str:
        """The path or URL of the folder of the HTML report."""
        return self.folder.display_path("report")

    def next_run(self, now: datetime) -> str:
        """Return the path or URL of a new folder, not yet made, for a run that starts ``now``.

        It is named by the time, and a number follows if that name is taken.
        """
        name = f"{now:%Y%m%d-%H%M%S}"
        taken = set(self.folder.names("runs"))
        numbered = (f"{name}-{number:02}" for number in count(2))
        free = next(each for each in chain([name], numbered) if each not in taken)
        return f"{self.runs}/{free}"

    def render(
        self,
        warn: Callable[[str], None],
        addons: Collection[Addon] = (),
        steps: Sequence[BackendChanges] = (),
    ) -> Report:
        """Write the report of the last ``PAST`` complete runs in all formats, and return it.

        The report has the pages that ``pages_of`` returns for ``addons``. It begins with ``steps``,
        what changed for each backend; without any, the last two runs are compared. ``warn`` gets a
        line about each run that is not complete or cannot be read. Raises CastigateError if no run
        is complete.
        """
        runs = list(self._complete(warn))[-PAST:]
        if not runs:
            raise CastigateError(f"{self.runs} holds no complete run; there is nothing to report")
        report = write_site(runs, self.report, lambda run: pages_of(run, addons), steps)
        for name in RENDERERS:
            write_output(report, name, self.folder.display_path(name))
        return report

    def _complete(self, warn: Callable[[str], None]) -> Iterator[str]:
        """Yield the folders of the complete runs, the oldest first; warn about each other run.

        Files whose names mark them as unfinished are left out without a warning.
        """
        complete = []
        for name in self.folder.names("runs"):
            if is_unfinished(name):
                continue
            run = f"{self.runs}/{name}"
            try:
                store = open_run(run)
                check_cases(store)
                complete.append((store.record.started, run))
            except CastigateError as error:
                warn(f"left out: {error}")
        yield from (run for _, run in sorted(complete))
