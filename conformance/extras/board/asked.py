"""The pairs of the first screen, and what backends answer to the telling input of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from conformance.extras.board.board_file import AskedAnswer
from conformance.families.value_spelling import datum
from reports.counterexample.drawing import value_text
from reports.findings.cells import Cell
from reports.grading.allowed_answers import is_nan
from reports.run_store.open_run import RunAnswers
from specs.cases import JOINT
from specs.formats import Format, format_named
from specs.model.strict_model import StrictModel, explain_validation_error
from specs.model.yaml_file import read_yaml
from specs.operations import operation_of

if TYPE_CHECKING:
    from reports.judgement import Verdict

FILE = Path(__file__).with_name("asked_pairs.yaml")
COMMON = "onnx-cast"
"""The document whose case a cell shows if the backend claims no document of the pair."""
ABOUT = "about "
"""``value_text`` writes this before a rounded number; a cell leaves it out for room."""
DtypePair = tuple[str, str]
"""The names of a source and of a target dtype."""


class AskedEntry(StrictModel):
    """An entry of the file: the telling input, why it tells, and the names of some answers."""

    input: str
    asks: Annotated[str, Field(min_length=1)]
    words: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class AskedInput:
    """A pair of the first screen.

    ``input`` is spelled as people do, and ``code`` is its pattern. ``words`` names answers by their
    patterns.
    """

    source: Format
    target: Format
    input: str
    code: int
    asks: str
    words: Mapping[int, str]

    @property
    def pair(self) -> DtypePair:
        """The names of the dtypes."""
        return self.source.name, self.target.name

    def word(self, answer: int) -> str:
        """Return the word for an answer: a name such as ``wraps``, or else the value."""
        if answer in self.words:
            return self.words[answer]
        if self.target.kind == "float" and is_nan(self.target, np.array([answer]))[0]:
            return "NaN"
        return value_text(self.target, answer).removeprefix(ABOUT).lower()


@cache
def asked_pairs() -> Mapping[DtypePair, AskedInput]:
    """Return the pairs of the first screen, the most asked first.

    Raise DocumentError if their file is invalid.
    """
    source = read_yaml(FILE)
    try:
        entries = TypeAdapter(dict[str, AskedEntry]).validate_python(source.data)
    except ValidationError as error:
        raise source.error(*explain_validation_error(source, error)) from None
    found = (_asked(name, entry) for name, entry in entries.items())
    return {each.pair: each for each in found}


def _asked(name: str, entry: AskedEntry) -> AskedInput:
    source, target = map(format_named, name.split("/"))
    words = {int(pattern, 16): word for pattern, word in entry.words.items()}
    spelled = entry.input
    return AskedInput(source, target, spelled, int(datum(source, spelled, name)), entry.asks, words)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A case of an asked pair on one backend, with the digests of its inputs and answers."""

    pair: DtypePair
    document: str
    case: str
    verdict: str
    asked: str | None
    answers: str | None

    @classmethod
    def of(cls, cell: Cell) -> Candidate | None:
        """Return the candidate that a cell is.

        None if its pair is not asked, or if it is no plain cast by a document alone.
        """
        pair = (cell.source, cell.target)
        if pair not in asked_pairs() or JOINT in cell.document:
            return None
        case = cell.as_case
        if case.example is not None or operation_of(case) != "cast":
            return None
        return cls(pair, cell.document, cell.case, cell.verdict, cell.asked, cell.answers)


def answers_of(
    candidates: Iterable[Candidate], claim_order: Callable[[str], int], held: RunAnswers
) -> tuple[AskedAnswer | None, ...]:
    """Return a backend's answer to each asked pair; None where the run has no case of it.

    ``candidates`` are the cases of the backend, and ``held`` has their answers. A case that has the
    answer is shown before all others, and then those of the documents that ``claim_order`` puts
    first.
    """
    by_pair: dict[DtypePair, list[Candidate]] = {}
    for each in candidates:
        by_pair.setdefault(each.pair, []).append(each)

    def rank(one: Candidate) -> tuple[bool, int, bool]:
        return one.answers is None, claim_order(one.document), one.document != COMMON

    return tuple(
        _shown(asked, sorted(by_pair.get(pair, ()), key=rank), held)
        for pair, asked in asked_pairs().items()
    )


def _shown(asked: AskedInput, ranked: list[Candidate], held: RunAnswers) -> AskedAnswer | None:
    if not ranked:
        return None
    for each in ranked:
        word = _word(asked, each, held)
        if word:
            return _answer(word, each)
    return _answer("", ranked[0])


def _answer(word: str, shown: Candidate) -> AskedAnswer:
    return AskedAnswer(word=word, case=shown.case, verdict=cast("Verdict", shown.verdict))


def _word(asked: AskedInput, candidate: Candidate, held: RunAnswers) -> str:
    """Return the word for a stored answer to the telling input; empty if there is none."""
    answered = held.answered(candidate.asked, candidate.answers)
    if answered is None:
        return ""
    where = np.flatnonzero(answered.inputs.values == asked.code)
    if not where.size:
        return ""
    return asked.word(int(answered.answers.values[where[0]]))
