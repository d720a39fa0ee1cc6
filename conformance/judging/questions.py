"""Lists the questions to a backend by name: every case, then the questions about its pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from conformance.judging.backend_judge import BackendJudge, Settings
from conformance.judging.invariances import Invariances
from conformance.judging.requests_ahead import ask_ahead
from conformance.judging.road_agreement import RoadAgreement, first_of
from conformance.sweep.full_tier import FullJudge
from oracles.registry import Backend
from reports.case_patterns import pair_checks
from reports.diff.judgement import Judgement
from specs.cases import Case
from specs.operations import is_bitcast

AnyJudge = BackendJudge | FullJudge
Judged = tuple[Case, Judgement]
RECORD, INVARIANCE = "castigate", "castigate-invariance"


@dataclass(frozen=True)
class Question:
    """One judgement to be made, of a case or of a pair; ``record`` is the key of its result."""

    name: str
    pair: str
    record: str
    judge: Callable[[], Judged]


def judges_of(backends: Iterable[Backend], settings: Settings, cases: list[Case]) -> list[AnyJudge]:
    """Create the judge of each backend."""
    plain = [BackendJudge(backend, None, settings) for backend in backends]
    return [FullJudge(own, cases) for own in plain] if settings.tier == "full" else [*plain]


def by_backend(
    backend_judges: Sequence[AnyJudge], cases: Sequence[Case]
) -> Iterator[tuple[Backend, Callable[[], Iterator[Question]]]]:
    """Yield each backend with a function that lists its questions."""
    plain = [each.quick_judge if isinstance(each, FullJudge) else each for each in backend_judges]
    for backend_judge, own in zip(backend_judges, plain, strict=True):
        yield own.backend, partial(_questions, backend_judge, own, first_of(plain, own), cases)


def _questions(
    backend_judge: AnyJudge, own: BackendJudge, first: BackendJudge | None, cases: Sequence[Case]
) -> Iterator[Question]:
    """All questions to one backend; ``first`` is the road that it is compared with, if any."""
    for (source, target), group in groupby(cases, lambda one: (one.source, one.target)):
        asked, pair = list(group), f"{source}/{target}"
        begin = _once(partial(ask_ahead, own, asked))
        for case in asked:
            yield Question(case.id, pair, RECORD, partial(_judged, backend_judge, case, begin))
        if all(map(is_bitcast, asked)):
            continue
        judges: list[Callable[[], Judged]] = [Invariances(own, asked).judge]
        if first is not None:
            judges.append(RoadAgreement(first, own, asked).judge)
        names = pair_checks(pair, first.backend.name if first is not None else "")
        for name, judge in zip(names, judges, strict=True):
            yield Question(name, pair, INVARIANCE, partial(_checked, name, judge))


def _checked(name: str, judge: Callable[[], Judged]) -> Judged:
    case, judgement = judge()
    return case, replace(judgement, check=name)


def _judged(backend_judge: AnyJudge, case: Case, begin: Callable[[], None]) -> Judged:
    begin()
    return case, backend_judge.judge(case)


def _once(call: Callable[[], None]) -> Callable[[], None]:
    """A function that makes a call the first time only."""
    calls = iter((call,))
    return lambda: next(calls, lambda: None)()
