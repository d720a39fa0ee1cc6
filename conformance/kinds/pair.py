"""A dtype pair: all its cases side by side, and then what is checked of the pair as a whole.

Cases of a pair share inputs, expectations and compiled programs. Side by side, their requests
travel together; the checks that follow compare with the answers that the cases got. This is where
a kind of question enters a run: as a judge of cases in ``_examine``, or of pairs in ``CHECKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from conformance.kinds.asking import Ask, in_step
from conformance.kinds.baseline import Baseline, NoBaseline
from conformance.kinds.bitcast import judge_bitcast
from conformance.kinds.cast import Examined, conclude, examine, follow_all
from conformance.kinds.invariances import Invariances
from conformance.kinds.subject import Subject
from conformance.kinds.variants import judge_variants
from conformance.kinds.verdicts import broken_adapter
from reports.case_patterns import INVARIANCES, VARIANTS
from reports.judgement import Judgement
from reports.run_store.answer_arrays import SharedArrays
from specs.cases import Case
from specs.operations import is_bitcast


def judge_pair(
    subject: Subject,
    judged: Sequence[Case],
    checks: Sequence[str] = (),
    cases: Sequence[Case] = (),
    first: Subject | None = None,
) -> Ask[list[Judgement]]:
    """Judge some cases of a pair, and do some checks among all its ``cases``.

    Two roads are compared with the ``first`` backend of the framework.
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
    for check in checks:
        kind = check.partition("/")[0]
        found = yield from CHECKS[kind](subject, cases, known, first)
        judgements.append(replace(found, check=check))
    return judgements


Known = Mapping[Case, Baseline | NoBaseline]
"""What the cases of a pair were answered, as far as they were judged."""
Check = Callable[[Subject, Sequence[Case], Known, Subject | None], Ask[Judgement]]


def _invariances(
    subject: Subject, cases: Sequence[Case], known: Known, _first: Subject | None
) -> Ask[Judgement]:
    return Invariances(subject, cases, known).judge()


def _roads(
    subject: Subject, cases: Sequence[Case], known: Known, first: Subject | None
) -> Ask[Judgement]:
    assert first is not None
    return judge_variants(first, subject, cases, known)


CHECKS: Mapping[str, Check] = {INVARIANCES: _invariances, VARIANTS: _roads}
"""The checks of a pair, by the first part of their names (``pair_checks``)."""


def _examine(subject: Subject, case: Case) -> Ask[Examined | Judgement]:
    if (broken := broken_adapter(subject, case)) is not None:
        return broken
    if is_bitcast(case):
        return (yield from judge_bitcast(subject, case))
    return (yield from examine(subject, case))
