"""Judges a carrier: by what its document says of each input, as a cast.

A night asks each carrier in one of ``TURNS`` consecutive seeds, so that a week of nights asks all.
"""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from conformance.families.carriers.steps import faulty_step
from conformance.families.cast.judge import conclude, examine, follow_all
from conformance.judging.asking import Ask
from conformance.judging.subject import Subject
from reports.judgement import IN_TURN, Judgement, SharedArrays
from reports.problems import Note, WrongValues
from specs.cases import Case

TURNS = 7
"""A night asks one in this many carriers."""


def judge_carrier(subject: Subject, case: Case) -> Ask[Judgement]:
    """Judge a carrier; of one with wrong values, say which step is at fault."""
    turn = crc32(case.id.encode()) % TURNS
    if _waits(subject, case) and (turn - subject.settings.seed) % TURNS:
        note = Note(f"{IN_TURN}, with --seed {turn}, as other carriers are with others")
        return Judgement(case.id, subject.name, "not-run", (note,))
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


def _waits(subject: Subject, case: Case) -> bool:
    settings = subject.settings
    names = {case.document, f"{case.document}:{case.version}"}
    return settings.has_turns and not (settings.asks_all(case) or names & settings.asked_for)
