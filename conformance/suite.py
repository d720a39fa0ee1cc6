"""The suite as pytest sees it: one node per backend, one item per case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.full import FullMeeting
from conformance.meet import Meeting
from reports.counterexample import block
from reports.totals import broken, recorded
from specs.cases import Case

AnyMeeting = Meeting | FullMeeting
RECORD = "castigate"
OUTCOMES = (pytest.fail.Exception, pytest.xfail.Exception)


class Suite(pytest.File):
    """All backends of a run."""

    def __init__(
        self, *, meetings: list[Meeting | FullMeeting], cases: list[Case], **more: Any
    ) -> None:
        super().__init__(**more)
        self.meetings = meetings
        self.cases = cases

    def collect(self) -> Iterator[BackendNode]:
        """One node per backend."""
        for meeting in self.meetings:
            yield BackendNode.from_parent(
                self, name=meeting.backend.name, meeting=meeting, cases=self.cases
            )


class BackendNode(pytest.Collector):
    """All cases of one backend."""

    def __init__(self, *, meeting: AnyMeeting, cases: list[Case], **more: Any) -> None:
        super().__init__(**more)
        self.meeting = meeting
        self.cases = cases

    def collect(self) -> Iterator[CaseItem]:
        """One item per case, named by its id."""
        for case in self.cases:
            yield CaseItem.from_parent(self, name=case.id, meeting=self.meeting, case=case)


class CaseItem(pytest.Item):
    """One case on one backend."""

    def __init__(self, *, meeting: AnyMeeting, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self.meeting = meeting
        self.case = case

    def runtest(self) -> None:
        """Judge the case and turn its verdict into pytest's words."""
        judgement = self.meeting.judge(self.case)
        self.user_properties.append((RECORD, recorded(self.case, judgement)))
        match judgement.verdict:
            case "unsupported":
                pytest.skip(judgement.message)
            case "differs":
                rules = ", ".join(dict.fromkeys(str(rule) for rule, *_ in broken(judgement)))
                what = rules or judgement.message
                pytest.xfail(f"differs from a document it does not claim: {what}")
                # Reached under --runxfail only, where nothing may be excused.
                pytest.fail(block(self.case, judgement), pytrace=False)
            case "deviates" if self.config.getoption("--level") == "required":
                return
            case "violates" | "deviates" | "error" | "crashed" | "not-run":
                pytest.fail(block(self.case, judgement), pytrace=False)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What pytest shows: our own words as they are, the suite's own faults with their trace."""
        if isinstance(excinfo.value, OUTCOMES):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Where the item stands: it has no line, only a name."""
        return self.path, None, f"{self.meeting.backend.name} {self.case.id}"
