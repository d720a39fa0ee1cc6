"""Answers where backends agree on a pair of dtypes: by asking them, or by a run's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from itertools import repeat

import numpy as np

from conformance.extras.portable.pairs import KnownAgreement, PortablePair
from conformance.extras.portable.requirements import (
    Required,
    Requirement,
    checked_requirements,
    unchecked,
)
from conformance.extras.portable.survey import Agreement, Allows, Parties, Survey, survey
from conformance.families.cast.quick_inputs import quick_inputs
from conformance.pair_answers import BackendCase, asked_of, case_between
from oracles.protocol import Bits, Mask
from oracles.registry import Backend
from reports.grading.allowed_answers import NOT_ALLOWED, Expectations, grade_answers
from reports.run_store.open_run import CaseRow, RunAnswers
from reports.run_store.store import RunStore
from specs.cases import JOINT, Case
from specs.errors import CastigateError
from specs.formats import EXHAUSTIVE_BITS, format_named
from specs.loader import document_and_version
from specs.ruling import ruling
from specs.selection import case_named

SEED, MAX_EXAMPLES = 0, 1000
"""The seed and the number of random inputs of tier quick, as a run has them by default."""
WHOLE_BITS = 32
"""The widest sources of which every input can be asked."""


@dataclass(frozen=True)
class PairQuestion:
    """A pair of dtypes to survey, with the documents, by name, that must allow the answers.

    ``required`` has intervals on which all must agree. ``whole`` asks for every input of sources of
    up to ``WHOLE_BITS`` bits; those of up to ``EXHAUSTIVE_BITS`` are always asked whole.
    """

    source: str
    target: str
    documents: tuple[str, ...] = ()
    required: tuple[Required, ...] = ()
    whole: bool = False

    @property
    def name(self) -> str:
        """The pair in words, such as ``float32 to int8``."""
        return f"{self.source} to {self.target}"

    @property
    def asks_all(self) -> bool:
        """Whether every input of the source is asked."""
        bits = format_named(self.source).bits
        return bits <= EXHAUSTIVE_BITS or (self.whole and bits <= WHOLE_BITS)

    @property
    def inputs(self) -> int | None:
        """The number of all inputs of the source; None if only some are asked."""
        return 1 << format_named(self.source).bits if self.asks_all else None


@dataclass(frozen=True)
class Surveyed:
    """The results for a pair and its required intervals, and the backends' versions by name."""

    pair: PortablePair
    versions: Mapping[str, str]
    requirements: tuple[Requirement, ...] = ()


def of_backends(
    backends: Sequence[Backend], question: PairQuestion, on_asked: Callable[[int], None]
) -> Surveyed:
    """Ask backends the same inputs of a pair, and return where they agree.

    Backends that answer no case of the pair, and documents without one, are left out. If no backend
    is left, or fewer than two of both together, nothing is surveyed. ``on_asked`` is called with
    the number of inputs of each row. Raise LostBackendError if a backend fails during the survey,
    and CastigateError for an unknown document.
    """
    found = {each.name: asked_of(each, question.source, question.target) for each in backends}
    asked = [each for each in found.values() if isinstance(each, BackendCase)]
    absent = {name: reason for name, reason in found.items() if isinstance(reason, str)}
    versions = {each.name: each.version for each in backends}
    cases = {each.name: each.case for each in asked}

    def answered(parties: Parties) -> Agreement:
        inputs = quick_inputs(question.source, question.target, SEED, MAX_EXAMPLES)
        required = [each.ranks for each in question.required]
        whole = question.whole and question.asks_all
        return drive_survey(survey(parties, inputs, whole, required), asked, on_asked)

    return _surveyed(question, cases, absent, versions, answered, exact_ends=True)


def _surveyed(
    question: PairQuestion,
    cases: Mapping[str, Case],
    absent: dict[str, str],
    versions: Mapping[str, str],
    answered: Callable[[Parties], Agreement],
    exact_ends: bool,
) -> Surveyed:
    source, target = format_named(question.source), format_named(question.target)
    documents = documents_of(question.documents, question.source, question.target)
    for name, case in documents.items():
        if case is None:
            absent[name] = f"it lists no cast from {question.name} that answers every input"
    known = {name: case for name, case in documents.items() if case is not None}
    asked = {name: case.id for name, case in cases.items()}
    if not cases or len(cases) + len(known) < 2:
        missing = PortablePair(
            source=source.name, target=target.name, backends=asked, documents=tuple(known),
            absent=absent, every_input=False, exact_ends=False, asked=0, agreeing=0, agree=(),
            ranges=(), range_count=0,
        )  # fmt: skip
        return Surveyed(missing, versions, unchecked(question.required, absent))
    parties = Parties(source, target, {name: allows_of(case) for name, case in known.items()})
    found = answered(parties)
    rounding = ruling(next(iter(cases.values()))).rounding
    described = KnownAgreement(found, parties, tuple(cases), rounding)
    pair = described.pair(asked, absent, exact_ends and not found.is_whole)
    if absent:
        return Surveyed(pair, versions, unchecked(question.required, absent))
    lines = checked_requirements(question.required, found, tuple(cases), parties)
    return Surveyed(pair, versions, tuple(lines))


def of_run(
    store: RunStore, names: Sequence[str], questions: Sequence[PairQuestion]
) -> Iterator[Surveyed]:
    """Yield the results of pairs by the answers that a run stores.

    ``names`` are the backends to compare, by default all of the run. Without ``questions``, the
    pairs are all that at least two of them answered. Raise CastigateError for a backend that the
    run does not have, and for an unknown document.
    """
    known = store.record.versions
    for name in names:
        if name not in known:
            raise CastigateError(
                f"{store.folder.display_name} has no backend `{name}`; it has {', '.join(known)}"
            )
    held = RunAnswers(store)
    chosen = [*names] or [*known]
    rows = {name: rows_by_pair(held, name) for name in chosen}
    pairs = dict.fromkeys(pair for each in rows.values() for pair in each)
    for question in questions or [PairQuestion(*pair) for pair in pairs]:
        own = {
            name: each[question.source, question.target]
            for name, each in rows.items()
            if (question.source, question.target) in each
        }
        absent = {name: "the run holds no answers of it" for name in chosen if name not in own}
        if questions or len(own) > 1:
            versions = {name: known[name] for name in chosen}
            yield survey_stored(held, question, own, absent, versions)


def rows_by_pair(held: RunAnswers, backend: str) -> dict[tuple[str, str], CaseRow]:
    """Return a backend's first case with stored answers for each pair of numeric dtypes.

    Cases with house rules and worked examples are left out.
    """
    found: dict[tuple[str, str], CaseRow] = {}
    for row in held.cases(backend):
        if row.asked is None or row.answers is None:
            continue
        case = case_named(row.case)
        if JOINT in case.document or case.example is not None:
            continue
        if format_named(case.source).is_numeric and format_named(case.target).is_numeric:
            found.setdefault((case.source, case.target), row)
    return found


def survey_stored(
    held: RunAnswers,
    question: PairQuestion,
    rows: Mapping[str, CaseRow],
    absent: dict[str, str],
    versions: Mapping[str, str],
) -> Surveyed:
    """Survey a pair by stored answers, on the inputs that all backends in ``rows`` were asked.

    ``rows`` has each backend's case in the run, and ``absent`` why other backends have none.
    Documents without a case of the pair are added to ``absent``.
    """
    cases = {name: case_named(row.case) for name, row in rows.items()}
    required = [each.ranks for each in question.required]

    def answered(parties: Parties) -> Agreement:
        return stored_agreement(held, parties, [*rows.values()], required)

    return _surveyed(question, cases, absent, versions, answered, exact_ends=False)


def stored_agreement(
    held: RunAnswers, parties: Parties, rows: Sequence[CaseRow], required: Sequence[range] = ()
) -> Agreement:
    """Return where the stored answers of several cases agree, on the inputs common to all.

    ``rows`` has the case of each backend, and ``required`` the ranges of ranks to check.
    """
    inputs, answers = _common(held, rows)
    asked = survey(parties, inputs, required=required, refines=False)
    order = np.searchsorted(inputs, next(asked))
    try:
        asked.send([each[order] for each in answers])
    except StopIteration as done:
        found: Agreement = done.value
        return found
    raise AssertionError("a survey that refines nothing asks once")


def _common(held: RunAnswers, rows: Sequence[CaseRow]) -> tuple[Bits, list[Bits]]:
    """Return the inputs that all rows have, in rising order, and each row's answers to them."""
    columns = []
    for row in rows:
        assert row.asked is not None
        assert row.answers is not None
        inputs, first = np.unique(held.values(row.asked), return_index=True)
        columns.append((inputs, held.values(row.answers)[first]))
    if len({row.asked for row in rows}) == 1:
        return columns[0][0], [answers for _, answers in columns]
    shared = partial(np.intersect1d, assume_unique=True)
    common: Bits = reduce(shared, (inputs for inputs, _ in columns))
    return common, [answers[np.searchsorted(inputs, common)] for inputs, answers in columns]


def allows_of(case: Case) -> Allows:
    """Return a function of inputs and answers: a mask of the answers that the case allows."""
    rules, expectations = ruling(case), Expectations(independent=False)

    def allows(inputs: Bits, answers: Bits) -> Mask:
        expected = expectations.of(rules, inputs)
        found: Mask = grade_answers(rules, inputs, expected, answers) != NOT_ALLOWED
        return found

    return allows


def documents_of(words: Sequence[str], source: str, target: str) -> dict[str, Case | None]:
    """Return the case of a pair by ``document:version``, or None if ``case_between`` finds none.

    ``words`` name documents, and maybe versions; the newest is the default. Raise CastigateError
    for an unknown document or version.
    """
    found = {}
    for word in words:
        document, version = document_and_version(word)
        version = version or [*document.entry.versions][-1]
        found[f"{document.name}:{version}"] = case_between(document.name, version, source, target)
    return found


def drive_survey(
    asked: Survey,
    parties: Sequence[BackendCase],
    on_asked: Callable[[int], None] = lambda count: None,
) -> Agreement:
    """Run a survey with the answers of backends, and return its result.

    Raise LostBackendError if a backend fails. ``on_asked`` is called with the number of inputs of
    each row.
    """
    with ThreadPoolExecutor(len(parties)) as pool:
        try:
            inputs = next(asked)
            while True:
                answers = list(pool.map(BackendCase.answers, parties, repeat(inputs)))
                on_asked(inputs.size)
                inputs = asked.send(answers)
        except StopIteration as done:
            found: Agreement = done.value
            return found
