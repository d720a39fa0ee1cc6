"""The suite as pytest collects it: a node per backend, an item per case, and some per pair."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pytest

from conformance.judging.questions import Question
from conformance.suite.failures import Failures
from conformance.suite.findings_summary import FindingsSummary
from conformance.suite.ledger_check import compared_with_ledger, heed_ledger
from oracles.registry import Backend
from reports.counterexample.failure_text import failure_text
from reports.diff.totals import count_record

FAILURES = pytest.StashKey[Failures]()
SUMMARY = pytest.StashKey[FindingsSummary]()
"""The summary of this process; xdist's workers have none."""
ENDINGS = (pytest.exit.Exception, KeyboardInterrupt)
"""The exceptions that end the whole run."""
OUTCOMES = (pytest.fail.Exception, pytest.xfail.Exception)


class Suite(pytest.File):
    """The root of the suite's items: all questions to all backends of a run."""

    def __init__(self, *, asked: Sequence[tuple[Backend, list[Question]]], **more: Any) -> None:
        super().__init__(**more)
        self.asked = asked

    def collect(self) -> Iterator[BackendNode]:
        """One node per backend."""
        for backend, questions in self.asked:
            yield BackendNode.from_parent(
                self, name=backend.name, backend=backend, questions=questions
            )


class BackendNode(pytest.Collector):
    """All questions to one backend."""

    def __init__(self, *, backend: Backend, questions: list[Question], **more: Any) -> None:
        super().__init__(**more)
        self.backend = backend
        self.questions = questions
        self.relative_path = os.path.relpath(self.path, self.session.path)

    def collect(self) -> Iterator[JudgedItem]:
        """One item per question, with its name."""
        for question in self.questions:
            item: JudgedItem = JudgedItem.from_parent(
                self, name=question.name, backend=self.backend, question=question
            )
            yield item


class JudgedItem(pytest.Item):
    """One case, or one pair, on one backend."""

    def __init__(self, *, backend: Backend, question: Question, **more: Any) -> None:
        super().__init__(**more)
        self.backend = backend
        self.question = question

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """The suite's file, whose path is made once, and the item's name."""
        assert isinstance(self.parent, BackendNode)
        return self.parent.relative_path, None, f"{self.parent.name} {self.name}"

    def runtest(self) -> None:
        """Judge, and report the verdict as pytest's pass, skip, xfail or failure."""
        case, judgement = self.question.judge()
        self.config.stash[FAILURES].add(judgement)
        record = {"item": self.name, **count_record(case, judgement)}
        self.user_properties.append((self.question.record, record))
        compared = compared_with_ledger(self, self.backend, case, judgement)
        if (summary := self.config.stash.get(SUMMARY, None)) is not None:
            summary.add(judgement, compared)
        ledger_message = heed_ledger(self, self.backend, case, judgement, compared)
        match judgement.verdict:
            case "unsupported":
                pytest.skip(judgement.message)
            case "differs":
                rules = ", ".join(dict.fromkeys(each.rule for each in judgement.broken_rules))
                pytest.xfail(
                    f"differs from a document it does not claim: {rules or judgement.message}"
                )
                # Only under --runxfail does xfail return; nothing may be excused then.
                pytest.fail(failure_text(case, judgement), pytrace=False)
            case "deviates" if self.config.getoption("--level") == "required":
                return
            case "violates" | "deviates" | "error" | "crashed" | "not-run":
                pytest.fail(failure_text(case, judgement) + ledger_message, pytrace=False)

    def run(self) -> None:
        """Judge, and send pytest the two reports that it needs: an item has no set-up."""
        send = self.ihook.pytest_runtest_logreport
        self.ihook.pytest_runtest_logstart(nodeid=self.nodeid, location=self.location)
        call = pytest.CallInfo.from_call(self.runtest, "call", reraise=ENDINGS)
        send(report=self.ihook.pytest_runtest_makereport(item=self, call=call))
        ending = pytest.TestReport(
            nodeid=self.nodeid,
            location=self.location,
            keywords={},
            outcome="passed",
            longrepr=None,
            when="teardown",
            user_properties=self.user_properties,
        )
        send(report=ending)
        self.ihook.pytest_runtest_logfinish(nodeid=self.nodeid, location=self.location)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a verdict's message as it is, and an error of the suite with its traceback."""
        if isinstance(excinfo.value, OUTCOMES):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """The path and name of the item; the line says nothing."""
        assert self.parent is not None
        # Where a mark skips an item, pytest asks for a line.
        return self.path, 0, f"{self.parent.name} {self.name}"
