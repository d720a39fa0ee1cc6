"""What was found out about parts of a case's inputs, as one: associative, in rising order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reports.divergences import simplicity
from reports.judgement import Divergence, Judgement, Verdict
from reports.runs import Runs
from specs.formats import format_named

JoinRuns = Callable[[Runs, Runs], Runs]

WORSE: tuple[Verdict, ...] = (
    "open",
    "conforms",
    "differs",
    "deviates",
    "violates",
    "not-run",
    "unsupported",
    "error",
    "crashed",
)
"""Verdicts from the best to the worst: what one part of the inputs met, the case has met."""


def worst(*verdicts: Verdict) -> Verdict:
    """The verdict that counts."""
    return max(verdicts, key=WORSE.index)


def joined(one: Judgement, later: Judgement, runs: JoinRuns = Runs.joined) -> Judgement:
    """Two judgements on the same case; the later is on the inputs that come next.

    Inputs of different visits lie among each other: their ``runs`` are ``Runs.merged``.
    """
    found = {_key(divergence): divergence for divergence in one.divergences}
    for divergence in later.divergences:
        key = _key(divergence)
        found[key] = _both(one.case, found[key], divergence, runs) if key in found else divergence
    divergences = tuple(found[key] for key in sorted(found, key=_order))
    messages = dict.fromkeys(part for part in (one.message, later.message) if part)
    return replace(
        one,
        verdict=worst(one.verdict, later.verdict),
        message="; ".join(messages),
        inputs=one.inputs + later.inputs,
        open_inputs=one.open_inputs + later.open_inputs,
        divergences=divergences,
        reproduction=_reproduction(divergences, one, later),
    )


def completed(quick: Judgement, swept: Judgement) -> Judgement:
    """A case's judgement, whose values were swept after it had been judged at the quick tier."""
    verdict = worst(quick.verdict, swept.verdict)
    messages = dict.fromkeys(part for part in (quick.message, swept.message) if part)
    if not swept.inputs:
        return replace(quick, verdict=verdict, message="; ".join(messages))
    return replace(
        quick,
        verdict=verdict,
        message="; ".join(messages),
        inputs=swept.inputs,
        open_inputs=swept.open_inputs,
        divergences=swept.divergences,
        reproduction=swept.reproduction or quick.reproduction,
    )


def _key(divergence: Divergence) -> tuple[str, str, str]:
    return divergence.rule, divergence.clause, divergence.level


def _order(key: tuple[str, str, str]) -> tuple[bool, tuple[str, str, str]]:
    return key[2] != "required", key


def _both(case: str, one: Divergence, later: Divergence, runs: JoinRuns) -> Divergence:
    source = format_named(case.split("/")[1])
    simpler = min(one, later, key=lambda each: simplicity(source, each.smallest))
    return replace(simpler, count=one.count + later.count, runs=runs(one.runs, later.runs))


def _reproduction(divergences: tuple[Divergence, ...], one: Judgement, later: Judgement) -> str:
    """The script of the judgement that has met the smallest input of the worst divergence."""
    for each in (one, later):
        if each.divergences and _met(divergences[0], each.divergences[0]):
            return each.reproduction
    return ""


def _met(divergence: Divergence, other: Divergence) -> bool:
    return _key(divergence) == _key(other) and divergence.smallest == other.smallest
