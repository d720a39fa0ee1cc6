"""Decides the threads of the docket by the answers that a run holds, for its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from conformance.exchange.docket_words import question_words, standing, verdict_words
from conformance.exchange.docketed import (
    VERDICTS,
    Decided,
    DecidedThread,
    Missing,
    Today,
    decide,
    different,
    judged_today,
)
from reports.html.docket import DocketQuestion, DocketRow
from reports.run_store.answers import RunAnswers
from reports.run_store.open_run import open_run, read_batches
from reports.run_store.store import RunStore
from specs.docket import docket

NOT_ASKED = Missing("the run did not ask this input")
Stored = Mapping[tuple[str, str], tuple[str, str]]
"""The digests of the inputs and the answers of a case, by backend and case."""


def docket_rows(run: str) -> list[DocketRow]:
    """A row for each thread, the most urgent verdicts first."""
    store = open_run(run)
    versions = {each.name: each.version for each in store.record.backends}
    threads = [decide(each) for each in docket()]
    stored = _stored(store, {one.question.case for each in threads for one in each.questions})
    held = RunAnswers(store, {digest for pair in stored.values() for digest in pair})
    decided = [
        DecidedThread(
            each.thread,
            each.questions,
            {
                name: [_today(name, one, stored, held) for one in each.questions]
                for name in versions
                if name in each.thread.systems
            },
        )
        for each in threads
    ]
    decided.sort(key=lambda each: [*VERDICTS].index(each.verdict.verdict))
    return [_row(each, versions) for each in decided]


def _stored(store: RunStore, cases: set[str]) -> Stored:
    columns = ("backend", "case", "asked", "answers")
    return {
        (row["backend"], row["case"]): (row["asked"], row["answers"])
        for batch in read_batches(store, "cases.parquet", columns)
        for row in batch.to_pylist()
        if row["case"] in cases and row["asked"] and row["answers"]
    }


def _today(backend: str, decided: Decided, stored: Stored, held: RunAnswers) -> Today:
    """Judge a backend's stored answer to the input of a question, or return why it is missing."""
    answered = held.answered(*stored.get((backend, decided.question.case), (None, None)))
    if answered is None:
        return NOT_ASKED
    given = decided.input
    asked = given["text"] if isinstance(given, dict) else int(given, 16)
    [where] = np.nonzero(answered.inputs.values == asked)
    if not where.size:
        return NOT_ASKED
    answers = answered.answers.values[where]
    return judged_today(decided, different(answers, decided.asked.target))


def _row(decided: DecidedThread, versions: Mapping[str, str]) -> DocketRow:
    thread = decided.thread
    return DocketRow(
        thread.link,
        thread.name,
        thread.entry.opened,
        thread.entry.report,
        decided.verdict.verdict,
        tuple(verdict_words(each, versions) for each in decided.verdicts),
        standing(decided),
        tuple(_questions(decided.questions, decided.today)),
    )


def _questions(
    questions: Sequence[Decided], today: Mapping[str, Sequence[Today]]
) -> list[DocketQuestion]:
    return [
        DocketQuestion(
            each.question.case,
            question_words(each, {name: answers[number] for name, answers in today.items()}),
        )
        for number, each in enumerate(questions)
    ]
