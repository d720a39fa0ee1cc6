"""Finds which answers of backends a change of a document makes wrong, and which right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol

import numpy as np

from conformance.extras.editions.case_changes import EditionChange
from conformance.extras.editions.edition_pairs import CasePair, EditionPair
from oracles.claims import Claim, is_held_to, parse_claim
from oracles.protocol import Bits, Mask
from oracles.registry import BUILTINS
from reports.behaviors.known_answers import KnownFramework, known_answers
from reports.findings.wrong import expected_of
from reports.grading.allowed_answers import ALLOWED, grade_answers, is_nan
from reports.grading.divergences import datum_of, index_of_simplest
from reports.problems import ShownDatum
from specs.branches import Ruling
from specs.editions import Edition
from specs.formats import format_named
from specs.loader import documents
from specs.questions import documents_called
from specs.ruling import rule_case

MOST_INPUTS = 1 << 16
"""The most changed inputs of a case that are all compared with what a backend answers."""
FEW_INPUTS = 1 << 12
"""About how many are compared if there are more."""


class MaskedAnswers(NamedTuple):
    """Answers to inputs: codes, and masks of the errors and of the answers that are known."""

    codes: Bits
    is_error: Mask
    is_known: Mask


class Answering(Protocol):
    """A backend, asked or recorded: its name and version, and what it answers.

    ``has_modes`` is false if the answers are only those to cases of default modes. ``date`` is the
    day of recorded answers, else empty. ``is_held_to`` says whether the backend claims the edition.
    ``answers`` takes the cases of both editions, and inputs. It returns the answers to the case of
    the old edition and those to the case of the new one.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def date(self) -> str: ...
    @property
    def has_modes(self) -> bool: ...
    def is_held_to(self, edition: Edition) -> bool: ...
    def answers(self, cases: CasePair, inputs: Bits) -> tuple[MaskedAnswers, MaskedAnswers]: ...


@dataclass(frozen=True)
class RecordedAnswers:
    """A framework's recorded answers, which are the same for every edition."""

    name: str
    known: KnownFramework

    @property
    def version(self) -> str:
        """The version that gave the answers."""
        return self.known.public_version

    @property
    def date(self) -> str:
        """The day on which the answers were recorded."""
        return self.known.date

    @property
    def has_modes(self) -> bool:
        """False: only casts in default modes are recorded."""
        return False

    def is_held_to(self, edition: Edition) -> bool:
        """Return whether the framework's adapter claims the edition.

        Every framework counts as claiming a document of the user's own, unless it has the name of a
        shipped one.
        """
        name = edition.document.name
        if name not in documents():
            return True
        claims = _claims(self.name)
        if claims is None:
            return name in documents_called(self.name)
        return is_held_to(claims, (), name, edition.version)

    def answers(self, cases: CasePair, inputs: Bits) -> tuple[MaskedAnswers, MaskedAnswers]:
        """Return the recorded answers twice, because both editions ask the same dtypes."""
        case = cases.new
        source, target = format_named(case.source), format_named(case.target)
        pair = self.known.pairs.get(f"{source.name}/{target.name}")
        nothing = np.zeros(inputs.size, bool)
        if pair is None:
            found = MaskedAnswers(np.zeros(inputs.size, target.storage), nothing, nothing)
        else:
            codes, is_known = pair.answers(source, target, inputs)
            found = MaskedAnswers(codes, nothing, is_known)
        return found, found


@cache
def _claims(name: str) -> tuple[Claim, ...] | None:
    """Return the claims of a framework's adapter; None if they depend on what is installed."""
    adapter = BUILTINS[name]
    oracle = getattr(import_module(adapter.module), adapter.attribute)
    claims: tuple[str, ...] | None = getattr(oracle, "claims", None)
    return None if claims is None else tuple(map(parse_claim, claims))


def recorded_backends() -> list[Answering]:
    """Return the frameworks of the table of known answers."""
    return [RecordedAnswers(name, known) for name, known in known_answers().frameworks.items()]


@dataclass(frozen=True)
class Effect:
    """Inputs of a case to which a backend's answer becomes wrong, or right, by a change.

    ``inputs`` counts them, and ``compared`` the changed inputs that were compared; ``is_whole``
    says that these are all. ``answer`` is the answer to ``simplest``, None for an error; of
    different answers under both editions, it is the one that is wrong.
    """

    backend: str
    version: str
    is_claimed: bool
    breaks: bool
    verdict: str
    cases: CasePair
    inputs: int
    compared: int
    is_whole: bool
    simplest: ShownDatum
    answer: ShownDatum | None


def effects(
    change: EditionChange, editions: EditionPair, backends: Sequence[Answering]
) -> Iterator[Effect]:
    """Yield, for each backend, what a change of numbers makes wrong and what it makes right."""
    source, target = (format_named(getattr(change.cases.new, end)) for end in ("source", "target"))
    if not (source.is_numeric and target.is_numeric):
        return
    are_listed = all((source.name, target.name) in each.listed for each in editions)
    # What is recorded of a pair says nothing of a version that lacks it: it may be refused there.
    backends = [each for each in backends if each.has_modes or are_listed]
    is_whole = change.inputs.count <= MOST_INPUTS
    inputs = change.inputs.patterns(MOST_INPUTS if is_whole else FEW_INPUTS)
    rulings = [
        rule_case(edition.document, case)
        for edition, case in zip(editions, change.cases, strict=True)
    ]
    for backend in backends:
        given = backend.answers(change.cases, inputs)
        graded = [
            _is_allowed(rules, inputs, each) for rules, each in zip(rulings, given, strict=True)
        ]
        is_known = graded[0][1] & graded[1][1]
        compared = int(is_known.sum())
        for breaks in (True, False):
            right, wrong = (0, 1) if breaks else (1, 0)
            here = is_known & graded[right][0] & ~graded[wrong][0]
            if not here.any():
                continue
            at = index_of_simplest(source, inputs, here)
            key = (change.change.old, change.change.new)[wrong]
            yield Effect(
                backend=backend.name,
                version=backend.version,
                is_claimed=any(map(backend.is_held_to, editions)),
                breaks=breaks,
                verdict="violates" if key.level == "required" else "deviates",
                cases=change.cases,
                inputs=int(here.sum()),
                compared=compared,
                is_whole=is_whole and compared == inputs.size,
                simplest=datum_of(inputs[at]),
                answer=None if given[wrong].is_error[at] else datum_of(given[wrong].codes[at]),
            )


def _is_allowed(rules: Ruling, inputs: Bits, given: MaskedAnswers) -> tuple[Mask, Mask]:
    """Return which answers a ruling allows and recommends, and for which that is known.

    A recorded NaN stands for any NaN: where the ruling does not allow all, it is not known.
    """
    expected = expected_of(rules, inputs)
    grades = grade_answers(rules, inputs, expected, given.codes)
    is_allowed = grades == ALLOWED
    is_known = given.is_known.copy()
    is_any_nan = is_nan(rules.target, given.codes)
    ends = (code for nans in rules.target.nan_codes for code in {nans[0], nans[-1]})
    for code in (*ends, expected.codes, expected.others):
        one = np.broadcast_to(np.asarray(code, given.codes.dtype), given.codes.shape)
        here = is_any_nan & is_nan(rules.target, one)
        grades = grade_answers(rules, inputs, expected, np.where(here, one, given.codes))
        is_known &= (grades == ALLOWED) == is_allowed
    open_or_refused = np.isin(
        expected.branch_indices, (*rules.open_branches, *rules.refused_branches)
    )
    due = rules.is_open and rules.answer_due is not None
    allows_error = open_or_refused & (not due)
    return np.where(given.is_error, allows_error, is_allowed), is_known
