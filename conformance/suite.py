"""The suite as pytest sees it: one node per backend, one item per case, and some per pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from conformance.full import FullMeeting
from conformance.invariances import Invariances
from conformance.ledger import met
from conformance.meet import Meeting
from conformance.variants import Variants, first_of
from oracles.registry import Backend
from reports.counterexample import block
from reports.judgement import Judgement
from reports.totals import broken, recorded
from specs.cases import Case
from specs.operations import is_bitcast

AnyMeeting = Meeting | FullMeeting
Judged = tuple[Case, Judgement]
RECORD, INVARIANCE = "castigate", "castigate-invariance"
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
        plain = [each.meeting if isinstance(each, FullMeeting) else each for each in self.meetings]
        for meeting, own in zip(self.meetings, plain, strict=True):
            yield BackendNode.from_parent(
                self,
                name=own.backend.name,
                meeting=meeting,
                own=own,
                first=first_of(plain, own),
                cases=self.cases,
            )


class BackendNode(pytest.Collector):
    """All cases of one backend."""

    def __init__(
        self,
        *,
        meeting: AnyMeeting,
        own: Meeting,
        first: Meeting | None,
        cases: list[Case],
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.meeting = meeting
        self.own = own
        self.first = first
        self.cases = cases

    def collect(self) -> Iterator[JudgedItem]:
        """One item per case, named by its id; after those of a pair, what is asked of the pair."""
        for (source, target), group in groupby(self.cases, lambda one: (one.source, one.target)):
            pair = list(group)
            for case in pair:
                yield self._item(case.id, RECORD, partial(self._judged, case))
            if all(map(is_bitcast, pair)):
                continue
            name, judge = f"invariances/{source}/{target}", Invariances(self.own, pair).judge
            yield self._item(name, INVARIANCE, judge)
            if self.first is not None:
                name = f"variants/{self.first.backend.name}/{source}/{target}"
                yield self._item(name, INVARIANCE, Variants(self.first, self.own, pair).judge)

    def _judged(self, case: Case) -> Judged:
        return case, self.meeting.judge(case)

    def _item(self, name: str, record: str, judge: Callable[[], Judged]) -> JudgedItem:
        item: JudgedItem = JudgedItem.from_parent(
            self, name=name, backend=self.own.backend, record=record, judge=judge
        )
        return item


class JudgedItem(pytest.Item):
    """One case, or one pair, on one backend."""

    def __init__(
        self, *, backend: Backend, record: str, judge: Callable[[], Judged], **more: Any
    ) -> None:
        super().__init__(**more)
        self.backend = backend
        self.record = record
        self.judge = judge

    def runtest(self) -> None:
        """Come to a verdict and turn it into pytest's words."""
        case, judgement = self.judge()
        self.user_properties.append((self.record, {"item": self.name, **recorded(case, judgement)}))
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
