"""Asks a backend to cast rows of numbers, by the first case of a pair of dtypes that it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from conformance.driver import drive
from conformance.families.cast.quick_inputs import one_of_each
from conformance.judging.asking import ask
from oracles.backend.client import Client
from oracles.backend.replies import Answered, Declined
from oracles.backend.requests import Cast
from oracles.protocol import Bits
from oracles.registry import Backend
from specs.cases import Case
from specs.formats import format_named
from specs.loader import documents
from specs.operations import operation_of
from specs.ruling import ruling
from specs.selection import cases_of_pair

COMMON = "onnx-cast"
"""The document whose case is asked first of a backend that claims no cast of the pair."""
VECTOR = 64
"""The least length of a row: a kernel's code for a shorter rest may give other answers."""


class LostBackendError(Exception):
    """A backend failed to answer inputs of a pair that it can answer; the message says how."""


@dataclass(frozen=True)
class BackendCase:
    """A backend, and the case that it is asked for a pair of dtypes."""

    backend: Backend
    case: Case

    @property
    def name(self) -> str:
        """The name of the backend."""
        return self.backend.name

    def answers(self, inputs: Bits) -> Bits:
        """Return the answers to a row of inputs; raise LostBackendError if there are none.

        The backend gets the row padded by copies of the last input, to a power of two from
        ``VECTOR`` on.
        """
        size = max(VECTOR, 1 << (inputs.size - 1).bit_length())
        row = np.concatenate([inputs, np.resize(inputs[-1:], size - inputs.size)])
        match drive(ask(Cast(self.case, row)), Client(self.backend)):
            case Answered(answers):
                found: Bits = answers[: inputs.size]
                return found
            case missing:
                raise LostBackendError(f"{self.name}: {missing.text}")


def asked_of(backend: Backend, source: str, target: str) -> BackendCase | str:
    """Return the backend with the first case of a pair that it answers, or the reason why none.

    Cases of documents that it claims come first, unless it claims all; then that of ``COMMON``,
    then those of others. If a case ends in an error instead of a refusal, that error is the reason.
    """
    reasons = []
    for case in _cases(backend, source, target):
        match drive(ask(Cast(case, one_of_each(format_named(source)))), Client(backend)):
            case Answered():
                return BackendCase(backend, case)
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
    """Return the first case of a pair in which the document wants no input refused, or None.

    The case with default modes is tried first. Calls, worked examples and operations other than
    casts give None too.
    """
    for case in cases_of_pair(document, version, source, target):
        if operation_of(case) != "cast" or case.example is not None:
            return None
        rules = ruling(case)
        if not rules.is_rejection and not rules.refused_branches:
            return case
    return None
