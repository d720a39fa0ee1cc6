"""Asks one release of a framework a case: some inputs, or all of the tier quick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.driver import BackendJudge, drive
from conformance.families import family_of
from conformance.families.bitcast.explanation import bitcast_tensor
from conformance.families.cast.explanation import input_row
from conformance.families.family import Question
from conformance.judging.scripts import script
from conformance.judging.subject import Settings
from oracles.backend.launch_config import launch_configs
from oracles.backend.loading import close, load_isolated
from reports.findings.finding_text import counted, datum_words
from reports.judgement import Judgement
from reports.problem_words import joined_words
from reports.problems import Datum, WrongValues
from specs.cases import Case
from specs.formats import format_named
from specs.operations import is_bitcast


@dataclass(frozen=True)
class ReleaseAnswer:
    """An answer as data that can be compared, in words, and a script that shows it."""

    compared: Any
    words: tuple[str, ...]
    script: str


def answer_of_release(
    case: Case, inputs: Sequence[str], backend: str, python: str | None, seconds: float
) -> ReleaseAnswer:
    """Ask one release, in the Python where it is installed, or in this one."""
    pythons = [f"{backend}={python}"] if python is not None else []
    loaded = load_isolated(backend, launch_configs([backend], pythons, seconds)[backend])
    try:
        judge = BackendJudge(loaded, None, Settings())
        if not inputs and not is_bitcast(case):
            judgement = judge.judge(case)
            compared = [judgement.verdict, *_told(judgement)]
            words = tuple(_problem_lines(case, judgement)) or (judgement.verdict,)
            return ReleaseAnswer(compared, words, judgement.reproduction)
        family = family_of(case)
        asked = [[word] for word in inputs] if family.is_by_input else [inputs]
        explained = [family.explain(case, Question(each)) for each in asked]
        answers = [drive(each.ask(), judge.client) for each in explained]
        shown = input_row(case, inputs) if family.is_by_input else bitcast_tensor(case, inputs)
        words = tuple(_answer_lines(case, inputs, answers))
        return ReleaseAnswer(
            answers, words, drive(script(judge.subject, case, shown), judge.client)
        )
    finally:
        close(loaded)


def _told(judgement: Judgement) -> Iterator[str]:
    """Yield what is compared of two releases: the answers to equal inputs, and all problems.

    Answers to open inputs count as well. Verdicts and the ledger's keys would not do: a backend
    that does not claim the document has none of these.
    """
    if judgement.answered is not None:
        yield judgement.answered.inputs.digest
        yield judgement.answered.answers.digest
    yield joined_words(judgement.problems)


def _problem_lines(case: Case, judgement: Judgement) -> Iterator[str]:
    wrong = [each for each in judgement.problems if isinstance(each, WrongValues)]
    for each in wrong:
        given, got = _words(case.source, each.smallest), _words(case.target, each.answer)
        yield f"{judgement.verdict}: {counted(each.count, 'input')}, such as {given}: {got}"
    if not wrong and judgement.problems:
        yield f"{judgement.verdict}: {joined_words(judgement.problems)}"


def _words(dtype: str, datum: Datum) -> str:
    form = format_named(dtype)
    return datum_words(dtype, datum if isinstance(datum, str) else form.hexadecimal(datum))


def _answer_lines(case: Case, inputs: Sequence[str], answers: Sequence[Any]) -> Iterator[str]:
    for word, answer in zip(inputs or ("",), answers, strict=False):
        match answer:
            case {"text": text}:
                said = datum_words(case.target, str(text))
            case {"shape": shape}:
                said = f"shape {shape}: {' '.join(answer.get('bits', ()))}"
            case dict():
                said = ": ".join(next(iter(answer.items())))
            case _:
                said = datum_words(case.target, str(answer))
        yield f"{word} gives {said}" if word else said
