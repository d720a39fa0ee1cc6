"""The suite as pytest sees it: one node per backend, one item per case, and some per pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.judging.questions import AnyMeeting, Question, by_backend
from conformance.suite.ledger_check import met
from oracles.registry import Backend
from reports.counterexample.failure_text import block
from reports.diff.totals import broken, recorded
from specs.cases import Case

OUTCOMES = (pytest.fail.Exception, pytest.xfail.Exception)


class Suite(pytest.File):
    """All backends of a run."""

    def __init__(self, *, meetings: list[AnyMeeting], cases: list[Case], **more: Any) -> None:
        super().__init__(**more)
        self.meetings = meetings
        self.cases = cases

    def collect(self) -> Iterator[BackendNode]:
        """One node per backend."""
        for backend, asked in by_backend(self.meetings, self.cases):
            yield BackendNode.from_parent(self, name=backend.name, backend=backend, asked=asked)


class BackendNode(pytest.Collector):
    """All that is asked of one backend."""

    def __init__(
        self, *, backend: Backend, asked: Callable[[], Iterator[Question]], **more: Any
    ) -> None:
        super().__init__(**more)
        self.backend = backend
        self.asked = asked

    def collect(self) -> Iterator[JudgedItem]:
        """One item per question, named as that is."""
        for question in self.asked():
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

    def runtest(self) -> None:
        """Come to a verdict and turn it into pytest's words."""
        case, judgement = self.question.judge()
        record = {"item": self.name, **recorded(case, judgement)}
        self.user_properties.append((self.question.record, record))
        aside = met(self, self.backend, case, judgement)
        match judgement.verdict:
            case "unsupported":
                pytest.skip(judgement.message)
            case "differs":
                rules = ", ".join(dict.fromkeys(str(rule) for rule, *_ in broken(judgement)))
                what = rules or judgement.message
                pytest.xfail(f"differs from a document it does not claim: {what}")
                # Reached under --runxfail only, where nothing may be excused.
                pytest.fail(block(case, judgement), pytrace=False)
            case "deviates" if self.config.getoption("--level") == "required":
                return
            case "violates" | "deviates" | "error" | "crashed" | "not-run":
                pytest.fail(block(case, judgement) + aside, pytrace=False)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What pytest shows: our own words as they are, the suite's own faults with their trace."""
        if isinstance(excinfo.value, OUTCOMES):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Where the item stands: it has no line, only a name."""
        assert self.parent is not None
        return self.path, None, f"{self.parent.name} {self.name}"
