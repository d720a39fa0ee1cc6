"""What was found out about parts of a case's inputs, as one: associative, in rising order."""

from __future__ import annotations

from dataclasses import replace

from conformance.divergences import simplicity
from reports.judgement import Divergence, Judgement, Verdict
from specs.formats import format_named

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


def joined(one: Judgement, later: Judgement) -> Judgement:
    """Two judgements on the same case; the later is on the inputs that come next."""
    found = {_key(divergence): divergence for divergence in one.divergences}
    for divergence in later.divergences:
        key = _key(divergence)
        found[key] = _both(one.case, found[key], divergence) if key in found else divergence
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


def _key(divergence: Divergence) -> tuple[str, str, str]:
    return divergence.rule, divergence.clause, divergence.level


def _order(key: tuple[str, str, str]) -> tuple[bool, tuple[str, str, str]]:
    return key[2] != "required", key


def _both(case: str, one: Divergence, later: Divergence) -> Divergence:
    source = format_named(case.split("/")[1])
    simpler = min(one, later, key=lambda each: simplicity(source, each.smallest))
    return replace(simpler, count=one.count + later.count, runs=one.runs.joined(later.runs))


def _reproduction(divergences: tuple[Divergence, ...], one: Judgement, later: Judgement) -> str:
    """The script of the judgement that has met the smallest input of the worst divergence."""
    for each in (one, later):
        if each.divergences and _met(divergences[0], each.divergences[0]):
            return each.reproduction
    return ""


def _met(divergence: Divergence, other: Divergence) -> bool:
    return _key(divergence) == _key(other) and divergence.smallest == other.smallest
