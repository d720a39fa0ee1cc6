"""The client of one backend: sends requests, and returns a checked reply to each.

The requests of a round travel in one message if the backend runs in a process of ours, because a
round trip costs as much as a small cast. If a message ends the process, each of its requests is
sent alone: then the search for the inputs at fault begins with one request, and the others get the
replies that they would have had.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from oracles.backend.isolated_oracle import IsolatedOracle
from oracles.backend.loading import is_isolated
from oracles.backend.replies import (
    Answer,
    Answered,
    BatchReply,
    Crashed,
    Declined,
    Reply,
    attempt,
    checked,
    no_answer,
    stored,
)
from oracles.backend.requests import (
    Cast,
    CastAtOnce,
    CastBatch,
    MethodRequest,
    Request,
    Road,
    Script,
)
from oracles.memory_layouts import BatchAnswers, TensorBatch, copied
from oracles.protocol import Bits, Unsupported, WithRoad
from oracles.registry import Backend
from specs.cases import Case
from specs.formats import format_named

NOTHING = BatchAnswers(np.zeros(0, np.uint8), 0)


class Client:
    """Sends requests to one backend; judges reach backends only through a client."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._oracle: Any = backend.oracle
        self._own: Callable[[Bits], Bits] = _unchanged if is_isolated(backend) else copied
        """Copies inputs and answers if the backend, in this process, could change them."""

    def send(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies to some requests, in their order; raise only KeyboardInterrupt."""
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
        """Return the road of a case; an empty text if the backend declines the case.

        If the backend names no roads, or if naming this one raises another error, return the case's
        id: the cast may still work, and without a road it would not be swept. Raises ProcessDied if
        the backend's process dies.
        """
        match attempt(lambda: self._road(case)):
            case Answered(road):
                return road
            case Declined():
                return ""
            case Crashed(death):
                raise death
        return case.id

    def _key(self, request: Request) -> Hashable:
        """Return a key of a request; requests with equal keys share one answer.

        Only batches that are ``is_shared`` can have equal keys: by road, shapes and elements. If
        naming the road fails, the case's id replaces it, because the cast may still work.
        """
        if isinstance(request, CastBatch) and request.is_shared:
            digest = blake2b(request.batch.elements.tobytes()).digest()
            named = attempt(partial(self._road, request.case))
            road = named.value if isinstance(named, Answered) else ""
            return road or request.case.id, tuple(request.batch.shapes), digest
        return id(request)

    def _value(self, request: Request, known: Any) -> Any:
        """Return the checked answer to a request, which is sent only if ``known`` is None.

        Otherwise ``known`` is the answer, or the exception in its place, from a message of several
        requests; tensors of a batch that it does not answer are sent. Raises what the backend
        raised, or ``Unanswered`` if the answer is malformed.
        """
        if isinstance(known, BaseException):
            raise known
        match request:
            case CastBatch(case, batch):
                return self._batch(case, batch, known)
            case Script() if known is None:
                return "" if self._method(request) is None else str(self._call(request))
            case Script():
                return known
            case Road(case):
                return self.road(case) if known is None else known
        return self._checked(request, known)

    def _checked(self, request: MethodRequest, known: Any = None) -> Any:
        answer = request.checked(self._call(request) if known is None else known)
        # A copy: an oracle in this process may use one buffer for all its answers.
        return self._own(answer) if isinstance(answer, np.ndarray) else answer

    def _call(self, request: Request) -> Any:
        """Call the method that a request names; raise ``Unsupported`` if the oracle has none."""
        case, method = request.case, self._method(request)
        if method is None:
            lacks = request.lacks.format(document=case.document)
            raise Unsupported(f"{self._oracle.name} {lacks}")
        if isinstance(request, CastAtOnce):
            return method(case, request.each, request.beside)
        own = {name: self._own(bits) for name, bits in request.tensors.items()}
        if request.made is not None:
            return method(case, request.made, own)
        return method(case, own.get("", own)) if own else method(case)

    def _method(self, request: Request) -> Callable[..., Any] | None:
        return getattr(self._oracle, request.method, None)

    def _batch(self, case: Case, batch: TensorBatch, known: BatchAnswers | None) -> BatchReply:
        """Return the replies to a batch's tensors; one without an answer or error is cast alone.

        ``known`` has the answers of an earlier message, or is None.
        """
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
                # The first tensor without an answer: unless the backend raised an error for it,
                # casting it alone shows why.
                alone = partial(self._checked, Cast(case, tensors[len(replies)]))
                error = answers.error
                replies.append(attempt(alone) if error is None else no_answer(error))
                if not isinstance(replies[-1], Answered | Declined):
                    break
                answers = together(batch.after(len(replies)))
        return BatchReply(batch, None, replies)

    def _road(self, case: Case) -> str:
        return self._oracle.road(case) if isinstance(self._oracle, WithRoad) else case.id


def _unchanged(bits: Bits) -> Bits:
    return bits
