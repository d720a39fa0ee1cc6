"""The client of one backend: sends requests, and returns a checked reply to each.

The requests of a round travel in one message if the backend runs in a process of ours, because a
round trip costs as much as a small cast. A message that ends the process is forgotten, and each of
its requests is sent alone: then the search for the inputs at fault begins with one request, and the
others get the replies that they would have had.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from oracles.backend.isolated_oracle import IsolatedOracle
from oracles.backend.loading import is_isolated
from oracles.backend.replies import (
    Answer,
    Answered,
    Crashed,
    Declined,
    Reply,
    attempt,
    checked,
    malformed,
    stored,
)
from oracles.backend.requests import (
    Bitcast,
    Cast,
    CastAtOnce,
    CastBatch,
    MakeCall,
    Request,
    Road,
    Script,
    SharesMemory,
)
from oracles.memory_layouts import copied
from oracles.protocol import (
    Bits,
    Returned,
    Unsupported,
    WithBitcast,
    WithBitcastMemory,
    WithCall,
    WithCastAtOnce,
    WithReproduce,
    WithReproduceBitcast,
    WithReproduceCall,
    WithRoad,
)
from oracles.registry import Backend
from oracles.tensor_batch import BatchAnswers, TensorBatch
from specs.cases import Case
from specs.formats import format_named

ANY_BYTE = 0xFF
"""What a bool may hold after a bitcast, which moves bytes: no document says which."""
NOTHING = BatchAnswers(np.zeros(0, np.uint8), 0)


@dataclass(frozen=True)
class BatchReply:
    """The replies to the tensors of a batch, in their order.

    ``elements`` has all answers in one row, if every tensor was answered in the same message. Else
    there is a reply for each tensor, up to the first that was neither answered nor declined.
    """

    batch: TensorBatch
    elements: Bits | None = None
    replies: Sequence[Answer] = ()

    def each(self) -> Iterator[Answer]:
        """Yield the reply to each tensor."""
        if self.elements is None:
            yield from self.replies
        else:
            whole = BatchAnswers(self.elements, len(self.batch.shapes))
            yield from map(Answered, whole.split(self.batch))


class Client:
    """Puts requests to one backend; the only place where a backend is asked anything."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._oracle: Any = backend.oracle
        self._own: Callable[[Bits], Bits] = _unchanged if is_isolated(backend) else copied
        """Copies inputs and answers where a backend could change them, in this process."""

    def send(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies to all requests, in their order."""
        shared: dict[Hashable, int] = {}
        sent: list[Request] = []
        places = []
        for request in requests:
            place = shared.setdefault(self._key(request), len(sent))
            if place == len(sent):
                sent.append(request)
            places.append(place)
        known = [None] * len(sent)
        if isinstance(self._oracle, IsolatedOracle) and len(sent) > 1:
            known = self._oracle.answer_together(sent)
        replies = [attempt(partial(self._value, *pair)) for pair in zip(sent, known, strict=True)]
        return [replies[place] for place in places]

    def road(self, case: Case) -> str:
        """Return what selects the kernel that answers a case; empty if the backend fails to say.

        The case itself, when it is asked, reports the error. Raises ProcessDied.
        """
        match attempt(lambda: self._road(case)):
            case Answered(road):
                return road
            case Crashed(death):
                raise death
        return ""

    def _key(self, request: Request) -> Hashable:
        """Equal for two requests that need only one answer."""
        if isinstance(request, CastBatch) and request.is_shared:
            digest = blake2b(request.batch.elements.tobytes()).digest()
            road = self.road(request.case) or request.case.id
            return road, tuple(request.batch.shapes), digest
        return id(request)

    def _value(self, request: Request, known: Any) -> Any:
        """Return the checked answer to a request, which is sent unless it is known already.

        Raises what the backend raised, or ``Unanswered`` if the answer is malformed.
        """
        if isinstance(known, BaseException):
            raise known
        oracle = self._oracle
        target = format_named(request.case.target)
        match request:
            case Cast(case, bits):
                return self._cast(case, bits, known)
            case CastBatch(case, batch):
                return self._batch(case, batch, known)
            case CastAtOnce(case, tensors):
                if not isinstance(oracle, WithCastAtOnce):
                    raise Unsupported(f"{oracle.name} is asked by one thread only")
                return oracle.cast_at_once(case, tensors)
            case Bitcast(case, bits):
                if known is None:
                    if not isinstance(oracle, WithBitcast):
                        raise Unsupported(f"{oracle.name} has no bitcast")
                    known = oracle.bitcast(case, bits.copy())
                return stored(target, known, ANY_BYTE if target.kind == "boolean" else None)
            case SharesMemory(case, bits):
                if not isinstance(oracle, WithBitcastMemory):
                    raise Unsupported(f"{oracle.name} does not say where a bitcast's result lies")
                return oracle.bitcast_shares_memory(case, bits.copy()) if known is None else known
            case MakeCall(case, call, members):
                if known is None:
                    if not isinstance(oracle, WithCall):
                        raise Unsupported(f"{oracle.name} makes no calls of {case.document}")
                    own = {name: self._own(bits) for name, bits in members.items()}
                    known = oracle.call(case, call, own)
                if not isinstance(known, Returned):
                    raise malformed(f"the answer is {type(known).__name__}, not a Returned")
                return known
            case Script(shown):
                return self._script(shown) if known is None else known
            case Road(case):
                return self.road(case) if known is None else known

    def _cast(self, case: Case, bits: Bits, known: Any = None) -> Bits:
        answer = self._oracle.cast(case, self._own(bits)) if known is None else known
        return self._own(checked(format_named(case.target), bits, answer))

    def _batch(self, case: Case, batch: TensorBatch, known: BatchAnswers | None) -> BatchReply:
        """Cast the tensors of a batch; those that are not answered together are cast alone."""
        target, oracle = format_named(case.target), self._oracle

        def together(rest: TensorBatch) -> BatchAnswers:
            is_slow = isinstance(oracle, IsolatedOracle)
            return oracle.cast_batch(case, rest) if is_slow else NOTHING

        answers = together(batch) if known is None else known
        if answers.count == len(batch.shapes):
            whole = attempt(partial(stored, target, answers.elements))
            if isinstance(whole, Answered):
                return BatchReply(batch, answers.elements)
        replies: list[Answer] = []
        tensors = list(batch.tensors())
        while len(replies) < len(tensors):
            rest = batch.after(len(replies))
            for answer in answers.split(rest):
                replies.append(attempt(partial(checked, target, tensors[len(replies)], answer)))
                if not isinstance(replies[-1], Answered | Declined):
                    return BatchReply(batch, None, replies)
            if len(replies) < len(tensors):
                # The first tensor that was not answered together: alone it tells why.
                replies.append(attempt(partial(self._cast, case, tensors[len(replies)])))
                if not isinstance(replies[-1], Answered | Declined):
                    break
                answers = together(batch.after(len(replies)))
        return BatchReply(batch, None, replies)

    def _script(self, shown: Cast | Bitcast | MakeCall) -> str:
        oracle = self._oracle
        match shown:
            case Bitcast(case, bits) if isinstance(oracle, WithReproduceBitcast):
                return str(oracle.reproduce_bitcast(case, bits.copy()))
            case MakeCall(case, call, members) if isinstance(oracle, WithReproduceCall):
                own = {name: bits.copy() for name, bits in members.items()}
                return str(oracle.reproduce_call(case, call, own))
            case Cast(case, bits) if isinstance(oracle, WithReproduce):
                return str(oracle.reproduce(case, bits.copy()))
        return ""

    def _road(self, case: Case) -> str:
        return self._oracle.road(case) if isinstance(self._oracle, WithRoad) else case.id


def _unchanged(bits: Bits) -> Bits:
    return bits
