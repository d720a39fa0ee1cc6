"""``castigate specs diff``: the inputs whose ruling changes from one edition to another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from conformance.driver import drive
from conformance.extras.editions.edition_changes import EditionChanges, edition_changes
from conformance.extras.editions.edition_pairs import CasePair, edition_pairs
from conformance.extras.editions.effects import Answering, MaskedAnswers, recorded_backends
from conformance.extras.editions.words import change_lines, change_records
from conformance.families.cast.quick_inputs import quick_inputs
from conformance.judging.values import ValueAnswer, ask_values
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.client import Client
from oracles.backend.loading import load_all
from oracles.backend.replies import Answered, Raised
from oracles.protocol import Bits
from oracles.registry import Backend
from specs.cases import Case
from specs.editions import Edition, edition
from specs.errors import CastigateError
from specs.formats import format_named
from specs.loader import Document, documents, register_document

MOST_SINGLE = 16
"""How many inputs are asked one by one if a backend gives an error for all of them together."""


@dataclass(frozen=True)
class EditionDiff:
    """The changes between two editions, and the backends whose answers were looked at."""

    title: str
    changes: EditionChanges
    backends: Sequence[Answering]

    def lines(self, *, as_json: bool) -> Iterator[str]:
        """Yield the changes as lines of text, or as JSON."""
        if as_json:
            for record in change_records(self.changes, self.backends):
                yield json.dumps(record, ensure_ascii=False)
        else:
            yield from change_lines(self.title, self.changes, self.backends)


def diff_editions(words: Sequence[str], configs: Mapping[str, LaunchConfig]) -> EditionDiff:
    """Compare the two editions that ``words`` name.

    The backends of ``configs`` are asked; without any, recorded answers of frameworks are taken.
    Raise CastigateError if the words do not name two editions of one operation.
    """
    if len(words) != 2:
        raise CastigateError(
            "`castigate specs diff` takes two editions; write castigate specs diff OLD NEW"
        )
    pairs = edition_pairs(*words)
    with ExitStack() as stack:
        backends: list[Answering] = recorded_backends()
        if configs:
            _register(pairs[0].new.document)
            backends = [ComparedEditions(each) for each in load_all(stack, configs)]
        changes = edition_changes(pairs, _listed_inputs, backends)
    return EditionDiff(" → ".join(words), changes, backends)


def _listed_inputs(cases: CasePair) -> Bits:
    return quick_inputs(cases.new.source, cases.new.target, 0, 0)


def _register(document: Document) -> None:
    """Register a user's own document so that backends can be asked about its cases.

    One with the name of another is not registered: then the cases of that other one are asked.
    """
    if document.name not in documents():
        content = document.source.path.read_text("utf-8")
        register_document(replace(document, content=content))


@dataclass(frozen=True)
class ComparedEditions:
    """An installed backend, which is asked about the cases of both editions."""

    backend: Backend

    @property
    def name(self) -> str:
        """The name by which the user calls it."""
        return self.backend.name

    @property
    def version(self) -> str:
        """The version of the framework."""
        return self.backend.version

    @property
    def date(self) -> str:
        """Empty, since the answers are not recorded."""
        return ""

    @property
    def has_modes(self) -> bool:
        """True: the backend is asked the cases of all modes."""
        return True

    def is_held_to(self, edition: Edition) -> bool:
        """Return whether the backend claims the edition; a user's own counts as claimed."""
        name = edition.document.name
        is_own = name not in documents() or name in documents().own
        return is_own or self.backend.claims(name, edition.version)

    def answers(self, cases: CasePair, inputs: Bits) -> tuple[MaskedAnswers, MaskedAnswers]:
        """Ask the case of each edition, or that of the new one where the old one is not known."""
        new = _given(self.backend, cases.new, inputs)
        return (_given(self.backend, cases.old, inputs) if _is_known(cases.old) else new), new


def _is_known(case: Case) -> bool:
    """Return whether a case is one of a document that is registered under its name."""
    document = documents().get(case.document)
    if document is None or case.version not in document.entry.versions:
        return False
    return case in _cases(edition(document, case.version))


@lru_cache(4)
def _cases(edition: Edition) -> frozenset[Case]:
    return frozenset(edition.cases())


def _given(backend: Backend, case: Case, inputs: Bits) -> MaskedAnswers:
    """Return a backend's answers to inputs; of one that refuses all, to a few of them alone."""
    storage = format_named(case.target).storage
    codes, is_error, is_known = (np.zeros(inputs.size, kind) for kind in (storage, bool, bool))
    if not _is_known(case):
        return MaskedAnswers(codes, is_error, is_known)
    match _values(backend, case, inputs):
        case Answered(bits):
            return MaskedAnswers(bits, is_error, ~is_known)
        case Raised():
            for at in range(0, inputs.size, max(1, -(-inputs.size // MOST_SINGLE))):
                match _values(backend, case, inputs[at : at + 1]):
                    case Answered(bits):
                        codes[at], is_known[at] = bits[0], True
                    case Raised():
                        is_error[at] = is_known[at] = True
    return MaskedAnswers(codes, is_error, is_known)


def _values(backend: Backend, case: Case, inputs: Bits) -> ValueAnswer:
    return drive(ask_values(case, inputs), Client(backend))
