"""Answers where backends agree on a pair of dtypes: by asking them, or by a run's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from conformance.exchange.portability import Agreement, Breach, Parties, survey
from conformance.exchange.portable_backends import (
    Asked,
    allows_of,
    asked_of,
    documents_of,
    drive_survey,
)
from conformance.exchange.portable_pairs import Described, PortablePair
from conformance.exchange.required_ranges import Required
from conformance.families.cast.quick_inputs import quick_inputs
from oracles.protocol import Bits
from oracles.registry import Backend
from reports.counterexample.drawing import datum_with_value
from reports.findings.finding_text import counted
from reports.run_store.answers import CaseRow, RunAnswers
from reports.run_store.store import RunStore
from specs.cases import JOINT, Case
from specs.errors import CastigateError
from specs.formats import EXHAUSTIVE_BITS, format_named
from specs.ruling import ruling
from specs.selection import case_named

SEED, MAX_EXAMPLES = 0, 1000
"""The seed and the random inputs of tier quick, as a run asks them by default."""
WHOLE_BITS = 32
"""The widest sources of which every input can be asked."""


@dataclass(frozen=True)
class PairQuestion:
    """A pair of dtypes, documents by name, what is required of it, and whether to ask all."""

    source: str
    target: str
    documents: tuple[str, ...] = ()
    required: tuple[Required, ...] = ()
    whole: bool = False

    @property
    def name(self) -> str:
        """The pair in words."""
        return f"{self.source} to {self.target}"

    @property
    def asks_all(self) -> bool:
        """Whether every input of the source is asked."""
        bits = format_named(self.source).bits
        return bits <= EXHAUSTIVE_BITS or (self.whole and bits <= WHOLE_BITS)

    @property
    def inputs(self) -> int:
        """About how many inputs are asked."""
        return 1 << format_named(self.source).bits if self.asks_all else MAX_EXAMPLES


@dataclass(frozen=True)
class Requirement:
    """Whether what was required holds, as one line and as a flag."""

    text: str
    is_safe: bool


@dataclass(frozen=True)
class Surveyed:
    """A pair in words, the versions of its backends, and whether each requirement holds."""

    pair: PortablePair
    versions: Mapping[str, str]
    requirements: tuple[Requirement, ...] = ()


def of_backends(
    backends: Sequence[Backend], question: PairQuestion, on_asked: Callable[[int], None]
) -> Surveyed:
    """Ask backends where they agree on a pair."""
    found = {each.name: asked_of(each, question.source, question.target) for each in backends}
    asked = [each for each in found.values() if isinstance(each, Asked)]
    absent = {name: reason for name, reason in found.items() if isinstance(reason, str)}
    versions = {each.name: each.version for each in backends}
    cases = {each.name: each.case for each in asked}

    def drive(parties: Parties) -> Agreement:
        inputs = quick_inputs(question.source, question.target, SEED, MAX_EXAMPLES)
        required = [each.ranks for each in question.required]
        whole = question.whole and question.asks_all
        return drive_survey(survey(parties, inputs, whole, required), asked, on_asked)

    return _surveyed(question, cases, absent, versions, drive, exact_ends=True)


def _surveyed(
    question: PairQuestion,
    cases: Mapping[str, Case],
    absent: dict[str, str],
    versions: Mapping[str, str],
    drive: Callable[[Parties], Agreement],
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
        return Surveyed(missing, versions, _unchecked(question, _why(absent)))
    parties = Parties(source, target, {name: allows_of(case) for name, case in known.items()})
    found = drive(parties)
    rounding = ruling(next(iter(cases.values()))).rounding
    described = Described(found, parties, tuple(cases), rounding)
    pair = described.pair(asked, absent, exact_ends and not found.is_whole)
    if absent:
        return Surveyed(pair, versions, _unchecked(question, _why(absent)))
    return Surveyed(pair, versions, tuple(_requirements(question, found, tuple(cases), parties)))


def _why(absent: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in absent.items()) or "one answers it"


def _unchecked(question: PairQuestion, why: str) -> tuple[Requirement, ...]:
    lines = (f"{each.text} is not checked: {why}" for each in question.required)
    return tuple(Requirement(line, is_safe=False) for line in lines)


def _requirements(
    question: PairQuestion, found: Agreement, names: Sequence[str], parties: Parties
) -> Iterator[Requirement]:
    results = zip(question.required, found.breaches, found.checked, strict=True)
    for required, breach, checked in results:
        if breach is not None:
            given = datum_with_value(found.source, breach.code)
            answers = ", ".join(
                f"{name} {datum_with_value(found.target, code)}"
                for name, code in zip(names, breach.answers, strict=True)
            )
            refused = "".join(f"; {each}" for each in _refusals(parties, names, breach))
            line = f"{required.text} is not safe: {given} gives {answers}{refused}"
            yield Requirement(line, is_safe=False)
        elif not checked:
            line = f"{required.text} is not checked: the run asked no input of it; name backends"
            yield Requirement(line, is_safe=False)
        else:
            asked = "every input" if found.is_whole else "by a sample"
            line = f"{required.text} is safe: {counted(checked, 'input')} asked, {asked}"
            yield Requirement(line, is_safe=True)


def _refusals(parties: Parties, names: Sequence[str], breach: Breach) -> Iterator[str]:
    """Say which documents do not allow an answer of a breach, and which backends gave it."""
    given = np.array([breach.code], parties.source.storage)
    for document, allows in parties.documents.items():
        answers = (np.array([code], parties.target.storage) for code in breach.answers)
        pairs = zip(names, answers, strict=True)
        wrong = [name for name, answer in pairs if not allows(given, answer).all()]
        if wrong:
            yield f"{document} does not allow {', '.join(wrong)}"


def of_run(
    store: RunStore, names: Sequence[str], questions: Sequence[PairQuestion]
) -> Iterator[Surveyed]:
    """Survey the pairs of a run by its answers; by default all pairs that two backends answered."""
    known = {each.name: each.version for each in store.record.backends}
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
    """The first case of each pair of numbers whose answers a backend's part of the run holds."""
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
    """Survey a pair by stored answers to the inputs that all of some backends were asked."""
    cases = {name: case_named(row.case) for name, row in rows.items()}
    required = [each.ranks for each in question.required]

    def drive(parties: Parties) -> Agreement:
        return stored_agreement(held, parties, [*rows.values()], required)

    return _surveyed(question, cases, absent, versions, drive, exact_ends=False)


def stored_agreement(
    held: RunAnswers, parties: Parties, rows: Sequence[CaseRow], required: Sequence[range] = ()
) -> Agreement:
    """Return on which of the inputs that all backends were asked their stored answers agree."""
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
    """The inputs that all were asked, in rising order of patterns, and the answers to them."""
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
