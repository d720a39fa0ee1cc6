"""The requests that judging cases will surely make, sent to the backend in one message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.judging.backend_judge import BackendJudge
from conformance.judging.bitcasts import requested_tensors
from conformance.judging.quick_inputs import inputs_of
from conformance.judging.shape_choice import shapes_of
from conformance.judging.shapes import shape_plan
from oracles.protocol import AheadRequest, WithAskAhead
from specs.bitcast_ruling import bitcast_ruling
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.operations import is_bitcast
from specs.ruling import ruling


def ask_ahead(judge: BackendJudge, cases: Sequence[Case]) -> None:
    """Send what judging these cases begins with, if the backend takes requests ahead."""
    oracle = judge.backend.oracle
    if isinstance(oracle, WithAskAhead):
        requests = [each for case in cases for each in _requests(judge, case)]
        if len(requests) > 1:
            oracle.ask_ahead(requests)


def _requests(judge: BackendJudge, case: Case) -> Iterator[AheadRequest]:
    if case.source in judge.broken or case.target in judge.broken:
        return
    if is_bitcast(case):
        rules = bitcast_ruling(case)
        for tensor in requested_tensors(rules, judge.settings.seed):
            yield AheadRequest("bitcast", case, tensor)
    elif receiver_of(case.document) is None:
        yield from _cast_requests(judge, case)


def _cast_requests(judge: BackendJudge, case: Case) -> Iterator[AheadRequest]:
    """The cast of all inputs in one row and, as if all answers were right, of some in shapes."""
    rules, settings = ruling(case), judge.settings
    inputs = inputs_of(case, rules, settings.seed, settings.max_examples, judge.few_shapes)
    yield AheadRequest("cast", case, inputs)
    if rules.is_rejection or case.example is not None:
        return
    shapes = shapes_of(f"{case.source}/{case.target}", judge.few_shapes)
    plan = shape_plan(case.document, case.version, shapes, inputs.size)
    if plan.picks:
        yield AheadRequest("cast_batch", case, plan.batch(inputs))
