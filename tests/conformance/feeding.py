"""Feeds judges with replies: a test answers by functions what a judge requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from conformance.driver import BackendJudge, drive
from conformance.families.cast.invariances import Invariances
from conformance.families.cast.variants import judge_variants
from conformance.judging.asking import Ask, Settings, Subject
from conformance.pair import judge_pair
from oracles.backend.replies import Answered, BatchReply, Declined, Reply, attempt
from oracles.backend.requests import Cast, CastBatch
from oracles.claims import Claim, parse_claim
from reports.grading.allowed_answers import Expectations
from reports.judgement import Judgement
from specs.cases import Case
from specs.loader import documents
from specs.selection import case_named

Result = TypeVar("Result")
Answer = Callable[[Any], Reply]
"""Takes a request, and returns the reply to it."""


def feed(judge: Ask[Result], answer: Answer, asked: list[Any] | None = None) -> Result:
    """Answer all requests of a judge, and return what it concludes; ``asked`` collects them."""
    try:
        requests = next(judge)
        while True:
            if asked is not None:
                asked += requests
            requests = judge.send([answer(each) for each in requests])
    except StopIteration as done:
        result: Result = done.value
        return result


def without_place(message: str) -> str:
    """The message about an error without the line of the file that raised it."""
    return re.sub(r" \(\w+\.py:\d+\)", "", message)


def answering(**methods: Callable[..., Any]) -> Answer:
    """Answer each request by the method that it names; decline it if there is no such method.

    A method returns an answer, or raises what a backend or a malformed answer raises.
    """

    def answer(request: Any) -> Reply:
        if isinstance(request, CastBatch):
            replies = [answer(Cast(request.case, tensor)) for tensor in request.batch.tensors()]
            return Answered(BatchReply(request.batch, None, replies))
        if request.method not in methods:
            return Declined(f"planted has no {request.method}")
        tensors = request.tensors
        given = [tensors.get("", tensors)] if tensors else []
        if request.made is not None:
            given = [request.made, tensors]
        return attempt(partial(methods[request.method], request.case, *given))

    return answer


def planted(
    claims: Sequence[str] | None = None,
    compiles_shapes: bool = False,
    row_limits: tuple[int, ...] = (),
    chain_roads: tuple[str, ...] = (),
    **settings: Any,
) -> Subject:
    """A backend as judges see it; it claims every document, if no claims are given."""
    claimed = tuple(map(Claim, documents())) if claims is None else tuple(map(parse_claim, claims))
    expectations = Expectations(independent=False)
    options = Settings(**settings)
    said = compiles_shapes, row_limits, chain_roads
    return Subject("planted", claimed, {}, True, *said, options, expectations)


def judged(
    name: str, answer: Answer, subject: Subject | None = None, asked: list[Any] | None = None
) -> Judgement:
    """Judge a case of a planted backend."""
    [found] = feed(judge_pair(subject or planted(), [case_named(name)]), answer, asked)
    return found


def check_invariances(judge: BackendJudge, cases: Sequence[Case]) -> Judgement:
    """Check the invariances of a pair alone."""
    return drive(Invariances(judge.subject, cases).judge(), judge.client)


def compare_variants(first: BackendJudge, other: BackendJudge, cases: Sequence[Case]) -> Judgement:
    """Compare the answers of two backends of one framework to a pair."""
    asked = judge_variants(first.subject, other.subject, cases, {})
    return drive(asked, other.client, first.client)
