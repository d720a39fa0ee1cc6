"""A dtype pair: all its cases side by side, and then what is checked of the pair as a whole.

Cases of a pair share inputs, expectations and compiled programs. Side by side, their requests
travel together; the checks that follow compare with the answers that the cases got. A case has the
judge of its family; ``_check`` does the checks of a pair.

Many cases *repeat* another: an older version of its document, or a document that follows it, has
the same dtypes and modes. Most of the rules are the same then, and few faults show in such a case
alone. So where the settings have turns, each is asked with one of ``TURNS`` consecutive seeds, and
a week of nights asks all.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from zlib import crc32

from conformance.families import judge_of, request_of
from conformance.families.cast.baseline import Baseline, NoBaseline
from conformance.families.cast.invariances import Invariances
from conformance.families.cast.judge import Examined, conclude, follow_all
from conformance.judging.asking import Ask, Subject, in_step
from conformance.judging.verdicts import broken_adapter
from reports.case_patterns import CHAINS, INVARIANCES, VARIANTS
from reports.judgement import IN_TURN, Judgement, SharedArrays
from reports.problems import Note, Unoffered
from specs.cases import Case
from specs.loader import document_named

TURNS = 7
"""A case that repeats another is asked with one in this many seeds."""


def judge_pair(
    subject: Subject,
    judged: Sequence[Case],
    checks: Sequence[str] = (),
    cases: Sequence[Case] = (),
    first: Subject | None = None,
) -> Ask[list[Judgement]]:
    """Judge the cases ``judged`` of a pair, then do ``checks``; return judgements in this order.

    The name of a check begins with its kind. Checks use ``cases``, which are all cases of the pair.
    ``first`` is the first backend of the framework, with which the check of variants compares;
    other checks need none.

    A case that waits for its turn gets the verdict `not-run`, and no check uses it. It is asked all
    the same if the backend declines the case that it repeats.
    """
    later = _waiting_for_turns(subject, judged)
    examined = yield from in_step(
        {case: _examine(subject, case) for case in judged if case not in later}
    )
    declined = [case for case, leading in later.items() if _is_declined(examined[leading])]
    examined |= yield from in_step({case: _examine(subject, case) for case in declined})
    for case, leading in later.items():
        if case not in examined:
            examined[case] = _not_asked(subject, case, leading)
    examined = {case: examined[case] for case in judged}
    cases = [case for case in cases if case not in later or case in declined]
    waiting = [each for each in examined.values() if isinstance(each, Examined)]
    followed = yield from follow_all(subject, waiting)
    arrays = SharedArrays()
    concluded = yield from in_step(
        {
            each.case: conclude(subject, each, followed[each.case], arrays)
            for each in waiting
            if each.judgement is None
        }
    )
    judgements: list[Judgement] = []
    known: dict[Case, Baseline | NoBaseline] = {}
    for case, each in examined.items():
        if isinstance(each, Judgement):
            judgements.append(each)
            continue
        judgements.append(each.judgement or concluded[case])
        known[case] = each.baseline
    for _, names in groupby(checks, lambda check: check.partition("/")[0]):
        judgements += yield from _check([*names], subject, cases, known, first)
    return judgements


def _check(
    names: Sequence[str],
    subject: Subject,
    cases: Sequence[Case],
    known: Mapping[Case, Baseline | NoBaseline],
    first: Subject | None,
) -> Ask[list[Judgement]]:
    """Do the checks of a pair whose ``names`` begin alike; return a judgement for each.

    ``known`` has row answers by case, or why there are none; cases of which a judge keeps no
    answers are absent.
    """
    kind = names[0].partition("/")[0]
    if kind == CHAINS:
        from conformance.families.chains.judge import judge_chains  # Few runs ask chains.

        return (yield from judge_chains(subject, names, cases))
    [name] = names
    if kind == INVARIANCES:
        found = yield from Invariances(subject, cases, known).judge()
    else:
        assert kind == VARIANTS
        assert first is not None
        # Imported here, because few runs have two variants of one framework.
        from conformance.families.cast.variants import judge_variants

        found = yield from judge_variants(first, subject, cases, known)
    return [replace(found, check=name)]


def _waiting_for_turns(subject: Subject, cases: Sequence[Case]) -> dict[Case, Case]:
    """Return the cases that this seed does not ask, each with the case that it repeats.

    Of cases that repeat each other, one is asked with every seed: first of all one that the backend
    claims, then one of the document that the others follow, then one of its newest version. So are
    those of a version that the user named. An example of a page repeats none.
    """
    settings = subject.settings
    if not settings.has_turns:
        return {}
    alike: dict[Hashable, list[Case]] = {}
    for case in cases:
        if case.example is None and not settings.asks_all(case):
            document = _followed(case) or case.document
            alike.setdefault((document, case.modes), []).append(case)
    later: dict[Case, Case] = {}
    for group in alike.values():
        leading = max(group, key=lambda case: _rank(subject, case))
        later |= {
            case: leading
            for case in group
            if case != leading
            and f"{case.document}:{case.version}" not in settings.asked_for
            and (_turn(case) - settings.seed) % TURNS
        }
    return later


def _rank(subject: Subject, case: Case) -> tuple[bool, bool, int]:
    versions = list(document_named(case.document).entry.versions)
    return subject.claims(case), not _followed(case), versions.index(case.version)


def _followed(case: Case) -> str:
    """Return the document whose rules the case's version takes over; empty if it has its own."""
    follows = document_named(case.document).entry.versions[case.version].follows
    return follows.partition(":")[0] if follows else ""


def _turn(case: Case) -> int:
    return crc32(case.id.encode()) % TURNS


def _is_declined(examined: Examined | Judgement) -> bool:
    judgement = examined if isinstance(examined, Judgement) else examined.judgement
    return judgement is not None and judgement.verdict == "unsupported"


def _not_asked(subject: Subject, case: Case, leading: Case) -> Judgement:
    message = f"{IN_TURN}, with --seed {_turn(case)}, as {leading.id} has its dtypes and modes"
    return Judgement(case.id, subject.name, "not-run", (Note(message),))


def _examine(subject: Subject, case: Case) -> Ask[Examined | Judgement]:
    if (broken := broken_adapter(subject, case)) is not None:
        return broken
    request = request_of(case)
    # Where all requests would be declined, none is made.
    if request is not None and not subject.offers(request.method):
        reason = Unoffered(f"{subject.name} {request.lacks}")
        return Judgement(case.id, subject.name, "unsupported", (reason,))
    examined: Examined | Judgement = yield from judge_of(case)(subject, case)
    return examined
