"""Other pairs of dtypes that are asked between two rows of a pair.

A run asks pair after pair, so a backend that keeps something under a key without the dtype (a
compiled kernel, a buffer, an answer) never shows it: its first question about a pair sets all of
that right. Here a row of another pair, of the same shape and width where there is one, comes
immediately before a row of the pair itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from conformance.kinds.baseline import Baseline
from conformance.kinds.probes import TURNED, Probe, ProbePlan
from oracles.backend.requests import Cast, Request
from specs.cases import Case
from specs.formats import Format, format_named
from specs.ruling import ruling
from specs.selection import first_cases

LENGTH = TURNED + 1
"""No other row of a pair has this length."""


def neighbors(case: Case, is_full: bool) -> list[Case]:
    """Return cases of the same edition with another source or target, of equal width if possible.

    At the tier quick the case's id chooses one of each kind; at full all are asked.
    """
    known = first_cases(case.document, case.version).values()
    source, target = format_named(case.source), format_named(case.target)
    others = [
        [each for each in known if each.target == case.target and _is_other(source, each.source)],
        [each for each in known if each.source == case.source and _is_other(target, each.target)],
    ]
    if is_full:
        return [each for kind in others for each in kind]
    found = (_first_answered(kind, crc32(case.id.encode())) for kind in others)
    return [each for each in found if each is not None]


def _first_answered(cases: Sequence[Case], number: int) -> Case | None:
    """Return the first case from some place on that the document does not want refused."""
    start = number % len(cases) if cases else 0
    turned = (*cases[start:], *cases[:start])
    return next((each for each in turned if not ruling(each).is_rejection), None)


def _is_other(own: Format, name: str) -> bool:
    other = format_named(name)
    return other != own and other.bits == own.bits


def in_turn(row: Baseline, is_full: bool) -> list[tuple[Request, ProbePlan]]:
    """Return a cast of each neighbor, and the row of the pair that is to be asked after it.

    The neighbor gets the same patterns, since both sources are equally wide.
    """
    count = row.inputs.size
    turns: list[tuple[Request, ProbePlan]] = []
    for number, case in enumerate(neighbors(row.case, is_full)):
        probe = Probe((LENGTH,), number % count, after=f"{case.source} to {case.target}")
        plan = ProbePlan.of([probe], count)
        turns.append((Cast(case, probe.tensor(row.inputs)), plan))
    return turns
