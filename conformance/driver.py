"""The driver: sends the requests of judges to the clients of backends, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial

from conformance.families.reference import Reference
from conformance.judging.asking import (
    Ask,
    FirstVariant,
    JudgeResult,
    Requests,
    Settings,
    Subject,
)
from conformance.pair import judge_pair
from oracles.backend.client import Client
from oracles.backend.replies import Reply
from oracles.protocol import chain_roads_of, compiles_per_shape, offers, row_limits_of
from oracles.registry import Backend, is_builtin
from oracles.smoke_check import smoke
from reports.grading.allowed_answers import Expectations
from reports.judgement import Judgement
from specs.cases import Case


def drive(judge: Ask[JudgeResult], client: Client, first: Client | None = None) -> JudgeResult:
    """Send a judge's requests to ``client``, round by round; return the judge's result.

    Only requests in a ``FirstVariant`` go to ``first``, the client of the framework's first
    backend.
    """
    try:
        requests = next(judge)
        while True:
            requests = judge.send(_replies(requests, client, first))
    except StopIteration as done:
        result: JudgeResult = done.value
        return result


def _replies(requests: Requests, client: Client, first: Client | None) -> Sequence[Reply]:
    """Send each request of a round to the client that it is for; return the replies in order."""
    there = [each.request for each in requests if isinstance(each, FirstVariant)]
    here = [each for each in requests if not isinstance(each, FirstVariant)]
    replies = iter(client.send(here) if here else ())
    if not there:
        return [*replies]
    assert first is not None
    of_first = iter(first.send(there))
    return [next(of_first if isinstance(each, FirstVariant) else replies) for each in requests]


class BackendJudge:
    """Judges cases of one backend in this process, through a client of its own.

    ``broken`` is the smoke check's result: a message for each dtype whose bits the adapter changes
    or loses. If it is None, the check runs when its result is first needed.
    """

    def __init__(
        self, backend: Backend, broken: Mapping[str, str] | None, settings: Settings
    ) -> None:
        self.backend = backend
        self.client = Client(backend)
        self.settings = settings
        if broken is not None:
            self.broken = broken

    @cached_property
    def broken(self) -> Mapping[str, str]:
        """A message for each dtype whose bits the adapter changes or loses."""
        return smoke(self.backend)

    @cached_property
    def subject(self) -> Subject:
        """The facts about the backend that judges need not request."""
        oracle = self.backend.oracle
        return Subject(
            self.backend.name,
            self.backend.claimed,
            self.broken,
            # A gate trusts the statements of built-in adapters only.
            not self.settings.isolates_sweeps or is_builtin(self.backend.name),
            compiles_per_shape(oracle),
            row_limits_of(oracle),
            chain_roads_of(oracle),
            self.settings,
            Expectations(independent=isinstance(oracle, Reference)),
            partial(offers, oracle),
        )

    def judge(self, case: Case) -> Judgement:
        """Judge one case, and return its judgement."""
        [judgement] = self.judge_pair([case])
        return judgement

    def judge_pair(
        self,
        judged: Sequence[Case],
        checks: Sequence[str] = (),
        cases: Sequence[Case] = (),
        first: BackendJudge | None = None,
    ) -> list[Judgement]:
        """Judge ``judged``, cases of a pair, then do ``checks``; return judgements in this order.

        Checks use ``cases``, all cases of the pair. The check of variants compares with ``first``,
        the framework's first backend.
        """
        if first is None:
            return drive(judge_pair(self.subject, judged, checks, cases), self.client)
        asked = judge_pair(self.subject, judged, checks, cases, first.subject)
        return drive(asked, self.client, first.client)
