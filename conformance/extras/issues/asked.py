"""Asks backends the inputs of the docket's threads, and judges the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from conformance.driver import drive
from conformance.extras.issues.docket import ReportedInput, docket
from conformance.extras.issues.threads import (
    Decided,
    DecidedThread,
    Missing,
    Today,
    different,
    judged_today,
)
from conformance.families import explain_of, tensor_of
from conformance.families.cast.explanation import input_row
from conformance.families.chains.program import CastChains
from conformance.families.family import ShapedTensor
from conformance.families.family import WrittenQuestion as Asked
from conformance.families.value_spelling import TensorDatum, tensor, tensor_words
from conformance.judging.asking import Ask, ask, in_step
from conformance.judging.values import ask_values, no_answer
from oracles.backend.client import Client
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, Raised
from oracles.protocol import chain_roads_of
from oracles.registry import Backend
from specs.cases import Case, shape_of
from specs.chains import Chain, Company
from specs.formats import format_named
from specs.operations import takes_named_tensors
from specs.ruling import ruling

COPIES = 67
"""The length of a row that repeats one input, so that each kernel uses its vectors and its rest."""
AnswersOrMissing = list[Any] | Missing
"""The distinct answers to one input, errors among them, as JSON holds them; or why none came."""


def threads_about(backend: str, threads: Iterable[DecidedThread]) -> list[DecidedThread]:
    """Return the threads to ask a backend: those about it, or all if the docket has none."""
    known = {system for each in docket() for system in each.systems}
    return [each for each in threads if backend in each.thread.systems or backend not in known]


def ask_backends(
    threads: Sequence[DecidedThread], backends: Sequence[Backend]
) -> list[DecidedThread]:
    """Ask each backend the questions of its threads; return all threads with the judged answers."""
    found: dict[str, dict[str, list[Today]]] = {each.thread.link: {} for each in threads}
    for backend in backends:
        judges = {
            (each.thread.link, number): _ask(backend, decided)
            for each in threads_about(backend.name, threads)
            for number, decided in enumerate(each.questions)
        }
        for (link, _), today in drive(in_step(judges), Client(backend)).items():
            found[link].setdefault(backend.name, []).append(today)
    return [DecidedThread(each.thread, each.questions, found[each.thread.link]) for each in threads]


def _ask(backend: Backend, decided: Decided) -> Ask[Today]:
    """Ask a backend a question; return the judged answer, or why there is none.

    Of several answers to the same input, a wrong one counts.
    """
    if isinstance(decided.asked, Chain):
        found = yield from _ask_chain(backend, decided.asked, decided)
    elif takes_named_tensors(decided.asked):
        found = yield from _ask_element(decided.question, decided.asked)
    elif (shaped := tensor_of(decided.asked)) is not None:
        found = yield from _ask_shaped(shaped, decided.asked, decided.input)
    else:
        found = yield from _ask_cast(decided.asked, decided.input)
    return found if isinstance(found, Missing) else judged_today(decided, found)


def _ask_cast(case: Case, given: Any) -> Ask[AnswersOrMissing]:
    rules = ruling(case)
    word = str(given["text"] if isinstance(given, dict) else given)
    bits = np.repeat(input_row(case, [word]), COPIES)
    match (yield from ask_values(case, bits)):
        case Answered(answers):
            return different(answers, rules.target.name)
        case Declined(text):
            return Missing(text)
        case missing:
            return [_error(no_answer(missing))]


def _ask_element(question: ReportedInput, case: Case) -> Ask[AnswersOrMissing]:
    scales = (None if each is None else str(each) for each in (question.scale, question.zero))
    asked = explain_of(case)(case, Asked([str(question.input)], *scales))
    match (yield from asked.ask()):
        case {"unsupported": text}:
            return Missing(str(text))
        case dict() as missing:
            return [_error(missing)]
        case answer:
            return [answer]


def _ask_chain(backend: Backend, chain: Chain, decided: Decided) -> Ask[AnswersOrMissing]:
    roads = chain_roads_of(backend.oracle)
    road = decided.question.road if backend.name in decided.reported else ""
    road = road or (roads[0] if roads else "")
    if road not in roads:
        return Missing(f"{backend.name} makes no chains" + (f" on {road}" if road else ""))
    row = np.repeat(input_row(chain.steps[0], [decided.input]), COPIES)
    match (yield from ask(CastChains(chain.steps[0], Company((chain,), road), [row]))):
        case Answered([answers]):
            return different(answers, chain.target)
        case Declined(text):
            return Missing(text)
        case Raised() | Malformed() | Crashed() as missing:
            return [_error(no_answer(missing))]
    raise AssertionError("a program of one chain has one answer")


def _ask_shaped(shaped: ShapedTensor, case: Case, given: Any) -> Ask[AnswersOrMissing]:
    given = TensorDatum(**given) if isinstance(given, dict) else given
    bits = tensor(format_named(case.source), given, "input", shape_of(case))
    match (yield from ask(shaped.request(case, bits))):
        case Answered(answer):
            return [tensor_words(format_named(case.target), answer)]
        case Declined(text):
            return Missing(text)
        case missing:
            return [_error(no_answer(missing))]


def _error(words: Mapping[str, str]) -> dict[str, str]:
    return {"error": ": ".join(next(iter(words.items())))}
