"""Asks backends for surveys of where they agree, in rows of whole vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from conformance.driver import drive
from conformance.exchange.portability import Agreement, Allows, Mask, Survey
from conformance.families.cast.quick_inputs import one_of_each
from conformance.judging.asking import ask
from oracles.backend.client import Client
from oracles.backend.replies import Answered, Declined
from oracles.backend.requests import Cast
from oracles.protocol import Bits
from oracles.registry import Backend
from reports.grading.allowed_answers import Expectations, grade_answers
from reports.grading.grades import NOT_ALLOWED
from specs.cases import Case
from specs.formats import format_named
from specs.loader import document_and_version, documents
from specs.operations import operation_of
from specs.ruling import ruling
from specs.selection import cases_of_pair

COMMON = "onnx-cast"
"""The document whose case is asked of a backend that claims no cast of the pair."""
VECTOR = 64
"""The shortest row, since a kernel's code for a row's tail may answer otherwise than its body."""


class LostError(Exception):
    """A backend failed on a pair that it answered before; the message says how."""


@dataclass(frozen=True)
class Asked:
    """A backend, and the case that it is asked for a pair of dtypes."""

    backend: Backend
    case: Case

    @property
    def name(self) -> str:
        """The name of the backend."""
        return self.backend.name

    def answers(self, inputs: Bits) -> Bits:
        """The answers to a row, padded to a power of two; raise LostError if there are none."""
        size = max(VECTOR, 1 << (inputs.size - 1).bit_length())
        row = np.concatenate([inputs, np.resize(inputs[-1:], size - inputs.size)])
        match drive(ask(Cast(self.case, row)), Client(self.backend)):
            case Answered(answers):
                found: Bits = answers[: inputs.size]
                return found
            case missing:
                raise LostError(f"{self.name}: {missing.text}")


def asked_of(backend: Backend, source: str, target: str) -> Asked | str:
    """The backend with the case that it is asked for a pair; a reason if it answers none.

    That is the case of default modes of a document that it claims, else of ``COMMON``, else of any.
    """
    reasons = []
    for case in _cases(backend, source, target):
        match drive(ask(Cast(case, one_of_each(format_named(source)))), Client(backend)):
            case Answered():
                return Asked(backend, case)
            case Declined(text):
                reasons.append(text)
            case missing:
                return missing.text
    return reasons[0] if reasons else f"no document lists {source} to {target}"


def _cases(backend: Backend, source: str, target: str) -> Iterator[Case]:
    cases = [
        case
        for name, document in documents().items()
        for version in [[*document.entry.versions][-1]]
        if (case := case_between(name, version, source, target)) is not None
    ]

    claimed = [each for each in cases if backend.claims(each.document, each.version)]
    if len(claimed) == len(cases):
        # A backend without claims of its own claims every document.
        claimed = []
    yield from claimed
    others = [each for each in cases if each not in claimed]
    yield from sorted(others, key=lambda each: each.document != COMMON)


def case_between(document: str, version: str, source: str, target: str) -> Case | None:
    """The first case of a pair that answers every input; None if none does.

    Default modes come first. A bitcast, a call or a worked example gives None.
    """
    for case in cases_of_pair(document, version, source, target):
        if operation_of(case) != "cast" or case.example is not None:
            return None
        rules = ruling(case)
        if not rules.is_rejection and not rules.refused_branches:
            return case
    return None


def allows_of(case: Case) -> Allows:
    """Return a function that tells which answers a case allows."""
    rules, expectations = ruling(case), Expectations(independent=False)

    def allows(inputs: Bits, answers: Bits) -> Mask:
        expected = expectations.of(rules, inputs)
        found: Mask = grade_answers(rules, inputs, expected, answers) != NOT_ALLOWED
        return found

    return allows


def documents_of(words: Sequence[str], source: str, target: str) -> dict[str, Case | None]:
    """The case of a pair in each document named, by default of its newest version, or None."""
    found = {}
    for word in words:
        document, version = document_and_version(word)
        version = version or [*document.entry.versions][-1]
        found[f"{document.name}:{version}"] = case_between(document.name, version, source, target)
    return found


def drive_survey(
    asked: Survey, parties: Sequence[Asked], on_asked: Callable[[int], None] = lambda count: None
) -> Agreement:
    """Answer a survey; ``on_asked`` gets the number of inputs of each row."""
    with ThreadPoolExecutor(len(parties)) as pool:
        try:
            inputs = next(asked)
            while True:
                answers = list(pool.map(Asked.answers, parties, repeat(inputs)))
                on_asked(inputs.size)
                inputs = asked.send(answers)
        except StopIteration as done:
            found: Agreement = done.value
            return found
