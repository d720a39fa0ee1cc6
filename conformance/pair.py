"""A dtype pair: all its cases side by side, and then what is checked of the pair as a whole.

Cases of a pair share inputs, expectations and compiled programs. Side by side, their requests
travel together; the checks that follow compare with the answers that the cases got. A case has the
judge of its family; checks of a pair are those of ``CHECKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from conformance.families import judge_of
from conformance.families.cast.baseline import Baseline, NoBaseline
from conformance.families.cast.invariances import Invariances
from conformance.families.cast.judge import Examined, conclude, follow_all
from conformance.judging.asking import Ask, in_step
from conformance.judging.subject import Subject
from conformance.judging.verdicts import broken_adapter
from reports.case_patterns import CHAINS, INVARIANCES, VARIANTS
from reports.judgement import Judgement, SharedArrays
from specs.cases import Case


def judge_pair(
    subject: Subject,
    judged: Sequence[Case],
    checks: Sequence[str] = (),
    cases: Sequence[Case] = (),
    first: Subject | None = None,
) -> Ask[list[Judgement]]:
    """Judge the cases ``judged`` of a pair, then do ``checks``; return judgements in this order.

    The name of a check begins with a key of ``CHECKS``. Checks use ``cases``, which are all cases
    of the pair. ``first`` is the first backend of the framework, with which the check of variants
    compares; other checks need none.
    """
    examined = yield from in_step({case: _examine(subject, case) for case in judged})
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
    for kind, names in groupby(checks, lambda check: check.partition("/")[0]):
        judgements += yield from CHECKS[kind](subject, [*names], cases, known, first)
    return judgements


Known = Mapping[Case, Baseline | NoBaseline]
"""Row answers by case, or why it has none; cases of which a judge keeps no answers are absent."""
Names = Sequence[str]
Check = Callable[[Subject, Names, Sequence[Case], Known, Subject | None], Ask[list[Judgement]]]


def _invariances(
    subject: Subject, names: Names, cases: Sequence[Case], known: Known, _first: Subject | None
) -> Ask[list[Judgement]]:
    [name] = names
    found = yield from Invariances(subject, cases, known).judge()
    return [replace(found, check=name)]


def _roads(
    subject: Subject, names: Names, cases: Sequence[Case], known: Known, first: Subject | None
) -> Ask[list[Judgement]]:
    assert first is not None
    [name] = names
    # Imported here, because few runs have two variants of one framework.
    from conformance.families.cast.variants import judge_variants

    found = yield from judge_variants(first, subject, cases, known)
    return [replace(found, check=name)]


def _chains(
    subject: Subject, names: Names, cases: Sequence[Case], _known: Known, _first: Subject | None
) -> Ask[list[Judgement]]:
    from conformance.families.chains.judge import judge_chains  # Few runs ask chains.

    return judge_chains(subject, names, cases)


CHECKS: Mapping[str, Check] = {INVARIANCES: _invariances, VARIANTS: _roads, CHAINS: _chains}
"""The checks of a pair by the first part of their names; one call does those of one kind."""


def _examine(subject: Subject, case: Case) -> Ask[Examined | Judgement]:
    if (broken := broken_adapter(subject, case)) is not None:
        return broken
    examined: Examined | Judgement = yield from judge_of(case)(subject, case)
    return examined
