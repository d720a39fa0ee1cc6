"""The requests that judging cases will surely make, sent to the backend in one message."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from conformance.judging.backend_judge import BackendJudge
from conformance.judging.bitcasts import contents, promised_memory, requested_tensors
from conformance.judging.calls import requested_calls
from conformance.judging.quick_inputs import inputs_of
from conformance.judging.shape_choice import shapes_of
from conformance.judging.shapes import shape_plan
from oracles.protocol import (
    AheadRequest,
    WithAskAhead,
    WithBitcast,
    WithBitcastMemory,
    WithCall,
)
from oracles.tensor_batch import TensorBatch
from specs.bitcast_ruling import bitcast_ruling
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.operations import is_bitcast
from specs.ruling import ruling


def ask_ahead(judge: BackendJudge, cases: Sequence[Case]) -> None:
    """Send what judging these cases begins with, if the backend takes requests ahead."""
    oracle = judge.backend.oracle
    if isinstance(oracle, WithAskAhead):
        requests = [*_merged(_requests(judge, case) for case in cases)]
        if sum(len(each.cases) for each in requests) > 1:
            oracle.ask_ahead(requests)


def _merged(by_case: Iterable[Iterable[AheadRequest]]) -> Iterator[AheadRequest]:
    """The requests of all cases, each for all the cases that make it."""
    alike: defaultdict[Hashable, list[AheadRequest]] = defaultdict(list)
    for requests in by_case:
        times: Counter[Hashable] = Counter()
        for request in requests:
            # A case that makes a request twice wants two answers.
            times[key := _key(request)] += 1
            alike[key, times[key]].append(request)
    for first, *others in alike.values():
        yield replace(first, cases=[*first.cases, *(each.cases[0] for each in others)])


def _key(request: AheadRequest) -> Hashable:
    """Equal only if the requests are, as long as all of them exist."""
    tensors = request.tensors
    if isinstance(tensors, TensorBatch):
        return request.method, tuple(tensors.shapes), tensors.elements.tobytes()
    return request.method, request.call, id(tensors)


def _requests(judge: BackendJudge, case: Case) -> Iterator[AheadRequest]:
    if case.source in judge.broken or case.target in judge.broken:
        return
    if is_bitcast(case):
        yield from _bitcast_requests(judge, case)
        return
    rules, settings = ruling(case), judge.settings
    inputs = inputs_of(case, rules, settings.seed, settings.max_examples, judge.few_shapes)
    asks_once = rules.is_rejection or case.example is not None
    shapes = () if asks_once else shapes_of(f"{case.source}/{case.target}", judge.few_shapes)
    # As if all answers were right: then all inputs may stand in the shapes.
    batch = shape_plan(case.document, case.version, shapes, inputs.size).batch(inputs)
    if receiver_of(case.document) is None:
        yield AheadRequest("cast", [case], inputs)
        if batch.shapes:
            yield AheadRequest("cast_batch", [case], batch)
    elif isinstance(judge.backend.oracle, WithCall):
        for call, members in requested_calls(case, inputs, batch.tensors()):
            yield AheadRequest("call", [case], members, call)


def _bitcast_requests(judge: BackendJudge, case: Case) -> Iterator[AheadRequest]:
    oracle, rules, seed = judge.backend.oracle, bitcast_ruling(case), judge.settings.seed
    if isinstance(oracle, WithBitcast):
        for tensor in requested_tensors(rules, seed):
            yield AheadRequest("bitcast", [case], tensor)
    if isinstance(oracle, WithBitcastMemory) and promised_memory(case, rules) is not None:
        yield AheadRequest("bitcast_shares_memory", [case], next(contents(rules, seed)))
