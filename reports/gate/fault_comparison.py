"""Compares failures other than wrong values of casts with the same failures of an earlier run.

Each run draws inputs and tensors of its own. So the smallest tensor in which an answer changes may
be another one. Everything that does not depend on the seed must be the same: the answers to the
inputs that every run asks, the class and the text of an error, and the tensors in which it is
raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from reports.counterexample.drawing import datum_text
from reports.findings.causes import ADDRESS
from reports.findings.cells import Cell, Divergence
from reports.problems import (
    ChangesWithLayout,
    Died,
    DiffersFromVariant,
    Fault,
    Problem,
    Refused,
    Unoffered,
    WrongElement,
)
from specs.formats import EXHAUSTIVE_BITS, Format, format_named

FOLLOWING = ("followed", "script")
"""The fields of problems that follow from the others."""


def broken_rules(cell: Cell) -> tuple[Divergence, ...]:
    """Return a divergence for each rule that a cell breaks.

    The table of checks has only one rule per check; further ones are taken from the check's
    problems, and have no inputs.
    """
    if not cell.check:
        return cell.broken
    found = {each.key: each for each in cell.broken}
    for problem in cell.problems:
        if isinstance(problem, Fault) and problem.rule:
            rule = problem.rule, problem.clause, problem.level
            found.setdefault(rule, Divergence(*rule, 0, 0, "", None, None, (), (), ()))
    return tuple(found.values())


def fails_alike(before: Cell, now: Cell, broken: Divergence | None) -> bool:
    """Return whether ``before`` has a failure of ``now``, apart from what a seed decides.

    The two are the same case or check in an earlier run and in a new one. If ``now`` breaks the
    rule ``broken`` other than by wrong values, ``before`` must do so too, with all problems under
    this rule. If ``broken`` is None, an answer is missing from ``now``. Then ``before`` must have
    the same verdict or problems of that verdict, and all problems by which the answer is missing.
    """
    if broken is not None:
        is_same = broken.key in [each.key for each in broken_rules(before) if each.smallest is None]
    elif before.asked is not None and now.asked is None:
        is_same = False  # Before, the case was answered in one row.
    else:
        is_same = before.verdict == now.verdict or bool(problems_of(before, None, now.verdict))
    if not is_same:
        return False
    source = format_named(now.source)
    old, new = (problems_of(each, broken, now.verdict) for each in (before, now))
    if not _keeps_changes(old, new):
        return False
    return all(any(_is_same(source, one, other) for one in old) for other in new)


def problems_of(cell: Cell, broken: Divergence | None, verdict: str = "") -> list[Problem]:
    """Return the problems of a cell under the rule ``broken``; if it is None, those without a rule.

    Of problems without a rule, those that say what was declined are left out. The verdict `crashed`
    selects the deaths of the process, and any other verdict all but those.
    """
    faults = [each for each in cell.problems if isinstance(each, Fault) and each.rule]
    if broken is not None:
        return [each for each in faults if (each.rule, each.clause, each.level) == broken.key]
    others = [each for each in cell.problems if each not in faults]
    missing = [each for each in others if not isinstance(each, Unoffered)]
    return [each for each in missing if isinstance(each, Died) == (verdict == "crashed")]


def _keeps_changes(old: Sequence[Problem], new: Sequence[Problem]) -> bool:
    """Return whether ``old`` has each ``ChangesWithLayout`` of ``new`` but the first of ``new``.

    The first is in the smallest tensor of its run, and may be of an input that was drawn.
    """
    before, now = (
        [each for each in some if isinstance(each, ChangesWithLayout)] for some in (old, new)
    )
    known = {(each.given, each.in_row, each.elsewhere) for each in before}
    return all((each.given, each.in_row, each.elsewhere) in known for each in now[1:])


def _is_same(source: Format, old: Problem, new: Problem) -> bool:
    """Return whether two problems of a cell are the same, apart from what a seed decides.

    ``source`` is the format of the inputs, ``old`` of the earlier run and ``new`` of the new one.
    """
    match old, new:
        case ChangesWithLayout(), ChangesWithLayout():
            is_other = old.given != new.given
            return is_other or (old.in_row, old.elsewhere) == (new.in_row, new.elsewhere)
        case DiffersFromVariant(), DiffersFromVariant():
            if _is_exhaustive(source):
                return old == new
            is_other = old.given != new.given
            same = (old.there, old.here) == (new.there, new.here)
            return old.road == new.road and (is_other or same)
        case WrongElement(), WrongElement():
            # If bits are random, the same element may be wrong with other bits.
            is_other = old.wanted != new.wanted
            places = (old.shape, old.index, old.followed), (new.shape, new.index, new.followed)
            return places[0] == places[1] and (is_other or old.got == new.got)
        case Refused(), Refused():
            one, other = (
                (each.error, _steady(each.line), each.where, each.kind) for each in (old, new)
            )
            return one == other and _are_same_inputs(source, old.inputs, new.inputs)
        case Died(), Died():
            return _are_same_inputs(source, *(_inputs_of(each.how) for each in (old, new)))
    return type(old) is type(new) and _compared(old) == _compared(new)


def _compared(value: Any) -> Any:
    """Return the parts of a problem, or of its field, that must be equal in two runs."""
    match value:
        case str():
            return _steady(value)
        case tuple():
            return tuple(map(_compared, value))
        case int() | None:
            return value
    names = [each.name for each in fields(value) if each.name not in FOLLOWING]
    return [_compared(getattr(value, name)) for name in names]


def _are_same_inputs(source: Format, old: str, new: str) -> bool:
    """Return whether two texts name the same inputs, or ``new`` names inputs that a seed may draw.

    A seed may draw inputs of a numeric source of more than 16 bits, but not zero or a range that
    begins with it. If only one text is empty, the result is False.
    """
    if old == new:
        return True
    is_drawn = source.kind != "text" and not _is_exhaustive(source)
    return is_drawn and bool(old and new) and not new.startswith(f"on {datum_text(source, 0)}")


def _is_exhaustive(source: Format) -> bool:
    """Return whether every run has all inputs of a source, because it has at most 16 bits."""
    return source.kind != "text" and source.bits <= EXHAUSTIVE_BITS


def _inputs_of(how: str) -> str:
    """Return the beginning of a crash's description that names inputs; empty if it names none."""
    return how.partition(": ")[0] if how.startswith("on ") else ""


def _steady(text: str) -> str:
    """Return a text with addresses and other numbers of six or more digits replaced by ``…``."""
    return ADDRESS.sub("…", text)
