"""Judges as generators: they yield requests, get replies, and return what they conclude.

A judge does no input and output. It yields the requests that it wants answered next, all that it
knows of, and gets as many replies, in their order. So a judge can be tested by a list of replies,
several judges can be answered by one message, and one piece of code (``conformance/driver.py``)
decides how requests travel. Judges compose: one delegates to another by ``yield from``, and
``in_step`` runs many side by side.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from oracles.backend.replies import Reply
from oracles.backend.requests import Request

Result = TypeVar("Result")
Key = TypeVar("Key")


@dataclass(frozen=True, eq=False)
class FirstVariant:
    """A request to the first backend of the same framework, with which another is compared."""

    request: Request


Requests = Sequence[Request | FirstVariant]
Ask = Generator[Requests, Sequence[Reply], Result]
"""A judge, or a part of one: yields requests, gets their replies in order, returns a result."""


def ask(request: Request) -> Ask[Reply]:
    """Yield one request, and return its reply."""
    [reply] = yield [request]
    return reply


def in_step(judges: Mapping[Key, Ask[Result]]) -> Ask[dict[Key, Result]]:
    """Run judges side by side, and return their results by key.

    Each round has the next requests of all judges that have not ended.
    """
    results: dict[Key, Result] = {}
    wanted: dict[Key, Requests] = {}

    def go_on(key: Key, replies: Sequence[Reply] | None) -> None:
        judge = judges[key]
        try:
            wanted[key] = next(judge) if replies is None else judge.send(replies)
        except StopIteration as done:
            wanted.pop(key, None)
            results[key] = done.value

    for key in judges:
        go_on(key, None)
    while wanted:
        replies = yield [request for requests in wanted.values() for request in requests]
        at = 0
        for key, requests in [*wanted.items()]:
            own = replies[at : (at := at + len(requests))]
            go_on(key, own)
    return {key: results[key] for key in judges}


def on_first_variant(judge: Ask[Result]) -> Ask[Result]:
    """Run a judge, with its requests sent to the framework's first backend; return its result."""
    try:
        requests = next(judge)
        while True:
            replies = yield [
                each if isinstance(each, FirstVariant) else FirstVariant(each) for each in requests
            ]
            requests = judge.send(replies)
    except StopIteration as done:
        result: Result = done.value
        return result
