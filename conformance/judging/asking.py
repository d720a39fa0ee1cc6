"""Judges as generators: they yield requests, get replies, and return what they conclude.

What a judge knows without a request is a ``Subject``: facts about a backend, and the run's options.

A judge does no input and output. It yields all requests that it can make so far, and gets as many
replies, in their order. So a test can feed a judge a list of replies, one message can carry the
requests of several judges, and one piece of code (``conformance/driver.py``) decides how requests
travel. One judge delegates to another by ``yield from``, and ``in_step`` runs many side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from oracles.backend.replies import Reply
from oracles.backend.requests import Request
from oracles.claims import Claim, is_held_to
from reports.drawn_tensors import TIMES_FULL, TIMES_GATE
from reports.grading.allowed_answers import Expectations
from reports.judgement import Verdict
from reports.run_store.record import Selection
from specs.cases import Case

JudgeResult = TypeVar("JudgeResult")
Key = TypeVar("Key")


@dataclass(frozen=True, eq=False)
class FirstVariant:
    """A request to the first backend of the same framework, with which another is compared."""

    request: Request


Requests = Sequence[Request | FirstVariant]
Ask = Generator[Requests, Sequence[Reply], JudgeResult]
"""A judge, or a part of one: yields requests, gets their replies in order, returns a result."""


def ask(request: Request) -> Ask[Reply]:
    """Yield one request, and return its reply."""
    [reply] = yield [request]
    return reply


def ask_all(requests: Requests) -> Ask[Sequence[Reply]]:
    """Yield requests of one round, and return their replies."""
    return (yield requests)


def in_step(judges: Mapping[Key, Ask[JudgeResult]]) -> Ask[dict[Key, JudgeResult]]:
    """Run judges side by side, and return their results by key.

    Each round has the next requests of all judges that have not ended.
    """
    results: dict[Key, JudgeResult] = {}
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


def on_first_variant(judge: Ask[JudgeResult]) -> Ask[JudgeResult]:
    """Run a judge, with its requests sent to the framework's first backend; return its result."""
    try:
        requests = next(judge)
        while True:
            replies = yield [
                each if isinstance(each, FirstVariant) else FirstVariant(each) for each in requests
            ]
            requests = judge.send(replies)
    except StopIteration as done:
        result: JudgeResult = done.value
        return result


@dataclass(frozen=True)
class Settings:
    """Holds the options of a whole run."""

    seed: int = 0
    max_examples: int = 1000
    asked_for: frozenset[str] = frozenset()
    """The documents that the user named, as ``name`` or ``name:version``."""
    tier: str = "quick"
    isolates_sweeps: bool = False
    """Whether no backend is trusted, as in a gate: then none runs in the process that judges it,
    not even for the sweeps of the tier ``full``."""
    selection: Selection = field(default_factory=Selection)
    hides_unclaimed: bool = False
    """Whether scripts are hidden for documents that the backend does not claim."""
    keeps_all_answers: bool = True
    """Whether a run stores answers also of cases that do not fail."""
    has_turns: bool = False
    """Whether a case that repeats another is left to some seeds, unless all is asked of it."""
    shows_usual_scales: bool = False
    """Whether the example of a wrong element has an ordinary scale if one is wrong. A run shows the
    simplest bits instead, which ledgers list."""
    documents: tuple[str, ...] = ()
    """The texts of the users' own documents that are selected."""
    rules: tuple[tuple[str, str], ...] = ()
    """The names and texts of the house rules that apply, in pairs."""

    def is_full(self, case: Case) -> bool:
        """Return whether a case is judged at the tier ``full``."""
        choice = self.selection.choice(case.id)
        return (self.tier if choice is None else choice.tier) == "full"

    def asks_all(self, case: Case) -> bool:
        """Return whether to ask a case in all listed tensors: at the tier ``full`` and in gates."""
        return self.is_full(case) or self.isolates_sweeps

    def draws(self, case: Case, few: int) -> int:
        """Return how many tensors to draw where the tier quick of a run draws a ``few``."""
        if self.is_full(case):
            return few * TIMES_FULL
        return few * TIMES_GATE if self.isolates_sweeps else few


@dataclass(frozen=True)
class Subject:
    """What judges know of a backend without a request.

    ``broken`` has a fault message for each dtype whose bits the adapter changes or loses.
    ``row_limits`` are the numbers of elements above which the backend's code changes.
    """

    name: str
    claimed: tuple[Claim, ...]
    broken: Mapping[str, str]
    is_believed: bool
    """Whether judges rely on the adapter's statements: that each shape is compiled, and which cases
    share a kernel."""
    compiles_shapes: bool
    row_limits: tuple[int, ...]
    chain_roads: tuple[str, ...]
    """The ways in which the backend runs several casts as one program, the users' own way first."""
    settings: Settings
    expectations: Expectations
    offers: Callable[[str], bool] = lambda _: True
    """Whether the backend has a method, by the method's name."""

    @property
    def few_shapes(self) -> bool:
        """Whether to use few shapes: at tier quick, if an adapter compiles each and is believed."""
        return self.settings.tier == "quick" and self.compiles_shapes and self.is_believed

    def claims(self, case: Case) -> bool:
        """Return whether a rule that the backend breaks in a case counts against it.

        It does if the backend claims the version, or if the user named the version, or the document
        of which the backend claims none.
        """
        return is_held_to(self.claimed, self.settings.asked_for, case.document, case.version)

    def graded(self, case: Case, levels: Collection[str], is_open: bool) -> Verdict:
        """Return the verdict on a case whose broken rules have these ``levels``, if any.

        ``is_open`` is whether the document leaves the whole case open.
        """
        if not levels:
            return "open" if is_open else "conforms"
        if not self.claims(case):
            return "differs"
        return "violates" if "required" in levels else "deviates"

    def failed(self, case: Case) -> Verdict:
        """Return the verdict on an error or a malformed answer where an answer is due."""
        return "error" if self.claims(case) else "differs"
