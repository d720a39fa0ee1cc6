"""The suite as pytest collects it: a node per backend, an item per case, and some per pair."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import pytest

from conformance.pytest_plugin.failures import FailureFolder
from conformance.pytest_plugin.findings_summary import FindingsSummary
from conformance.pytest_plugin.judging import JudgedBackend, PooledJudging
from conformance.pytest_plugin.ledger_check import compared_with_ledger, complaint, excuse
from conformance.pytest_plugin.xdist_workers import is_worker, report_error
from conformance.running.plan import Task
from reports.counterexample.failure_text import failure_text
from reports.judgement import Judgement
from reports.ledger.listing import LedgerComparison
from reports.outputs.totals import count_record
from specs.cases import Case
from specs.errors import CastigateError

RECORD, INVARIANCE = "castigate", "castigate-invariance"
"""The properties of a report that hold the record of a case, and that of a check."""
FAILURES = pytest.StashKey[FailureFolder]()
JUDGING = pytest.StashKey[PooledJudging]()
SUMMARY = pytest.StashKey[FindingsSummary]()
"""The summary of this process; xdist's workers have none."""
ENDINGS = (pytest.exit.Exception, KeyboardInterrupt)
"""The exceptions that end the whole run."""
OUTCOMES = (pytest.fail.Exception, pytest.xfail.Exception)


class Ending(NamedTuple):
    """How an item ends for pytest, and why."""

    outcome: Literal["passed", "skipped", "xfailed", "failed"]
    reason: str = ""


class Suite(pytest.File):
    """The root of the suite's items: every case and check of all backends of a run."""

    def __init__(self, *, backends: Sequence[JudgedBackend], **more: Any) -> None:
        super().__init__(**more)
        self.backends = backends

    def collect(self) -> Iterator[BackendNode]:
        """Yield one node per backend."""
        for backend in self.backends:
            with ending_the_run(self.config):
                tasks = [*self.config.stash[JUDGING].tasks(backend.name)]
            yield BackendNode.from_parent(self, name=backend.name, backend=backend, tasks=tasks)


class BackendNode(pytest.Collector):
    """Every case and check of one backend."""

    def __init__(self, *, backend: JudgedBackend, tasks: list[Task], **more: Any) -> None:
        super().__init__(**more)
        self.backend = backend
        self.tasks = tasks
        self.relative_path = os.path.relpath(self.path, self.session.path)

    def collect(self) -> Iterator[JudgedItem]:
        """Yield one item per case of a pair, and then one per check of the pair."""
        for task in self.tasks:
            for name in (*(case.id for case in task.cases), *task.checks):
                item: JudgedItem = JudgedItem.from_parent(self, name=name, backend=self.backend)
                yield item


class JudgedItem(pytest.Item):
    """One case, or one check of a pair, on one backend."""

    def __init__(self, *, backend: JudgedBackend, **more: Any) -> None:
        super().__init__(**more)
        self.backend = backend

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """The suite's file as a relative path, no line, and the backend's and the item's names."""
        assert isinstance(self.parent, BackendNode)
        return self.parent.relative_path, None, f"{self.parent.name} {self.name}"

    def runtest(self) -> None:
        """Judge, and report the verdict as pytest's pass, skip, xfail or failure."""
        _raise(self.judged())

    def judged(self) -> Ending:
        """Judge the item, record the judgement, and return how the item ends for pytest.

        That depends on the ledger too: a known failure is an expected one.
        """
        with ending_the_run(self.config):
            case, judgement = self.config.stash[JUDGING].judgement((self.backend.name, self.name))
        self.config.stash[FAILURES].add(judgement)
        record = {"item": self.name, **count_record(case, judgement)}
        self.user_properties.append((INVARIANCE if judgement.check else RECORD, record))
        compared = compared_with_ledger(self, self.backend, case, judgement)
        if (summary := self.config.stash.get(SUMMARY, None)) is not None:
            summary.add(judgement, compared)
        return self._ending(case, judgement, compared)

    def _ending(
        self, case: Case, judgement: Judgement, compared: LedgerComparison | None
    ) -> Ending:
        excuses = not self.config.getoption("runxfail")
        status, note = "", ""
        if compared is not None:
            status = compared.status
            if status != "known":
                note = complaint(self.backend, self.name, compared)
            elif excuses:
                return Ending("xfailed", excuse(self, self.backend, compared))
        match judgement.verdict:
            case _ if status in ("changed", "stale"):
                pass
            case "conforms" | "open":
                return Ending("passed")
            case "deviates" if self.config.getoption("--level") == "required":
                return Ending("passed")
            case "unsupported" | "not-run":
                return Ending("skipped", judgement.message)
            case "differs" if excuses:
                rules = ", ".join(dict.fromkeys(each.rule for each in judgement.broken_rules))
                reason = rules or judgement.message
                return Ending("xfailed", f"differs from a document it does not claim: {reason}")
        return Ending("failed", failure_text(case, judgement) + note)

    def run(self) -> None:
        """Judge the item, and send pytest the two reports that its plugins need.

        They are those of the call and of the teardown: an item has no set-up.
        """
        hook = self.ihook
        hook.pytest_runtest_logstart(nodeid=self.nodeid, location=self.location)
        call = pytest.CallInfo.from_call(self.judged, "call", reraise=ENDINGS)
        if call.excinfo is None and call.result.outcome == "failed":
            raised = pytest.CallInfo.from_call(partial(_raise, call.result), "call")
            raised.start, raised.stop, raised.duration = call.start, call.stop, call.duration
            call = raised
        report = hook.pytest_runtest_makereport(item=self, call=call)
        hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logreport(report=self._report("passed"))
        hook.pytest_runtest_logfinish(nodeid=self.nodeid, location=self.location)

    def report_of(self, call: pytest.CallInfo[Any]) -> pytest.TestReport | None:
        """Return the report of an item that ``run`` has judged and that did not fail; else None.

        Only a failure raises an exception, because pytest formats the traceback of each one.
        """
        match None if call.excinfo else call.result:
            case Ending("passed"):
                return self._report("passed", call)
            case Ending("skipped", reason):
                return self._report("skipped", call, (str(self.path), None, f"Skipped: {reason}"))
            case Ending("xfailed", reason):
                report = self._report("skipped", call, reason)
                report.wasxfail = reason
                return report
        return None

    def _report(
        self,
        outcome: Literal["passed", "skipped"],
        call: pytest.CallInfo[Ending] | None = None,
        longrepr: Any = None,
    ) -> pytest.TestReport:
        """Make the report of a call; without a call, the report that ends the item."""
        report = pytest.TestReport(
            nodeid=self.nodeid,
            location=self.location,
            keywords={},
            outcome=outcome,
            longrepr=longrepr,
            when="teardown" if call is None else "call",
            user_properties=self.user_properties,
        )
        if call is not None:
            report.duration, report.start, report.stop = call.duration, call.start, call.stop
        return report

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a verdict's message as it is, and an error of the suite with its traceback."""
        if isinstance(excinfo.value, OUTCOMES):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return for pytest the suite's file, line 0, and the names of the backend and the item."""
        assert self.parent is not None
        # Where a mark skips an item, pytest asks for a line.
        return self.path, 0, f"{self.parent.name} {self.name}"


@contextmanager
def ending_the_run(config: pytest.Config) -> Iterator[None]:
    """End the whole run with one line if the block raises CastigateError.

    That is where a backend cannot be judged at all.
    """
    try:
        yield
    except CastigateError as error:
        if is_worker(config):
            report_error(config, str(error))
        pytest.exit(f"castigate: {error}", pytest.ExitCode.USAGE_ERROR)


def _raise(ending: Ending) -> Any:
    match ending:
        case Ending("skipped", reason):
            pytest.skip(reason)
        case Ending("xfailed", reason):
            pytest.xfail(reason)
        case Ending("failed", reason):
            pytest.fail(reason, pytrace=False)
