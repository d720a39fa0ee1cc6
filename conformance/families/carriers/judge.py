"""Judges a carrier as a cast is judged, by what its document says of each input.

A night asks each carrier of a claimed document in one of ``TURNS`` consecutive seeds, so that a
week of nights asks all.
"""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from conformance.families.carriers.steps import faulty_step
from conformance.families.cast.judge import conclude, examine, follow_all
from conformance.judging.asking import Ask, Subject
from reports.judgement import IN_TURN, Judgement, SharedArrays
from reports.problems import Note, WrongValues
from specs.cases import Case

TURNS = 7
"""A night asks one in this many carriers."""


def judge_carrier(subject: Subject, case: Case) -> Ask[Judgement]:
    """Judge a carrier; of one with wrong values, say which step is at fault."""
    if (why := _left_out(subject, case)) is not None:
        return Judgement(case.id, subject.name, "not-run", (Note(f"{IN_TURN}, {why}"),))
    examined = yield from examine(subject, case)
    if examined.judgement is not None:
        return examined.judgement
    followed = yield from follow_all(subject, [examined])
    judged = yield from conclude(subject, examined, followed[case], SharedArrays())
    is_wrong = any(isinstance(each, WrongValues) for each in judged.problems)
    if examined.graded is None or not is_wrong or not examined.graded.fails.any():
        return judged
    step = yield from faulty_step(subject, case, examined.graded)
    return replace(judged, problems=(*judged.problems, step))


def _left_out(subject: Subject, case: Case) -> str | None:
    """Return why this seed does not ask a case; None if it does.

    A document that the backend does not claim is about operations of others: it is asked by name.
    """
    settings, turn = subject.settings, crc32(case.id.encode()) % TURNS
    names = {case.document, f"{case.document}:{case.version}"}
    if not settings.has_turns or settings.asks_all(case) or names & settings.asked_for:
        return None
    if not subject.claims(case):
        return f"with --document {case.document}, which {subject.name} does not claim"
    if (turn - settings.seed) % TURNS:
        return f"with --seed {turn}, as other carriers are with others"
    return None
