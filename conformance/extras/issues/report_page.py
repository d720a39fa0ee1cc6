"""The page of a report: the threads of the docket, decided by the answers that a run holds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformance.extras.issues.docket import docket
from conformance.extras.issues.threads import (
    VERDICTS,
    Decided,
    DecidedThread,
    Missing,
    Today,
    decide,
    different,
    judged_today,
)
from conformance.extras.issues.words import counts, question_words, standing, verdict_words
from reports.html.site import Page
from reports.run_store.open_run import RunAnswers, read_batches
from reports.run_store.store import RunStore

NOT_ASKED = Missing("the run did not ask this input")
Stored = Mapping[tuple[str, str], tuple[str | None, str | None]]
"""The digests of the inputs and the answers of a case, by backend and case."""


def issues_page(store: RunStore) -> Page:
    """Return a run's page about the docket: a row for each thread, the most urgent first."""
    versions = store.record.versions
    threads = [decide(each) for each in docket()]
    stored = _stored(store, {one.question.case for each in threads for one in each.questions})
    held = RunAnswers(store, {digest for pair in stored.values() for digest in pair if digest})
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
    rows = [
        (
            each,
            "; ".join(verdict_words(one, versions) for one in each.verdicts),
            standing(each),
            [(one.question.case, question_words(one, today)) for one, today in each.answered],
        )
        for each in decided
    ]
    content = {"rows": rows, "counts": counts(decided), "asked": {case for _, case in stored}}
    return Page("docket", "Docket", __package__, content)


def _stored(store: RunStore, cases: set[str]) -> Stored:
    columns = ("backend", "case", "asked", "answers")
    return {
        (row["backend"], row["case"]): (row["asked"], row["answers"])
        for batch in read_batches(store, "cases.parquet", columns)
        for row in batch.to_pylist()
        if row["case"] in cases
    }


def _today(backend: str, decided: Decided, stored: Stored, held: RunAnswers) -> Today:
    """Judge a backend's stored answers to the input of a question.

    Return ``NOT_ASKED`` if the run has none.
    """
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
