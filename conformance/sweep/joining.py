"""Joins judgements on consecutive parts of a case's inputs; any grouping gives the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import reduce

from conformance.running.plan import Sweep, Tier, is_swept, quick_tasks, sweeps
from reports.diff.divergences import simplicity
from reports.diff.failure_runs import Runs
from reports.diff.judgement import NEXT_SCRIPT, Divergence, Judgement
from reports.diff.verdicts import BY_SEVERITY, Verdict
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import Ruling, ruling

JoinRuns = Callable[[Runs, Runs], Runs]


def worst(*verdicts: Verdict) -> Verdict:
    """The verdict that counts."""
    return max(verdicts, key=BY_SEVERITY.index)


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
        reaches_ends=one.reaches_ends and later.reaches_ends,
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
        reaches_ends=swept.reaches_ends,
        divergences=swept.divergences,
        reproduction=_both_scripts(quick, swept),
    )


def _both_scripts(quick: Judgement, swept: Judgement) -> str:
    """The script of a sweep's wrong values, and that of a fault which the quick tier has found."""
    if not (swept.reproduction and quick.faults):
        return swept.reproduction or quick.reproduction
    scripts = quick.reproduction.split(NEXT_SCRIPT)
    of_faults = scripts[1:] if quick.divergences else scripts
    return NEXT_SCRIPT.join(filter(None, [swept.reproduction, *of_faults]))


def _key(divergence: Divergence) -> tuple[str, str, str]:
    return divergence.rule, divergence.clause, divergence.level


def _order(key: tuple[str, str, str]) -> tuple[bool, tuple[str, str, str]]:
    return key[2] != "required", key


def _both(case: str, one: Divergence, later: Divergence, runs: JoinRuns) -> Divergence:
    source = format_named(case.split("/")[1])
    simpler = min(one, later, key=lambda each: simplicity(source, each.smallest))
    return replace(simpler, count=one.count + later.count, runs=runs(one.runs, later.runs))


def _reproduction(divergences: tuple[Divergence, ...], one: Judgement, later: Judgement) -> str:
    """The script of the judgement that holds the smallest input of the worst divergence."""
    for each in (one, later):
        if each.divergences and _has_same_smallest(divergences[0], each.divergences[0]):
            return each.reproduction
    return ""


def _has_same_smallest(divergence: Divergence, other: Divergence) -> bool:
    return _key(divergence) == _key(other) and divergence.smallest == other.smallest


Read = Callable[[str], list[Judgement]]
"""The judgements of a task by its name."""


def assembled(
    read: Read, backend: str, backends: Iterable[str], cases: list[Case], tier: Tier
) -> Iterator[tuple[Case, Judgement]]:
    """Every case with its judgement, in the order of the cases; after each pair its checks."""
    for task in quick_tasks(backend, backends, cases):
        stored = read(task.name)
        quick, checks = stored[: len(task.cases)], stored[len(task.cases) :]
        swept: dict[tuple[str, Ruling], Judgement] = {}
        if tier == "full":
            roads = {judgement.case: judgement.road for judgement in quick}
            for sweep in sweeps(task.cases, roads):
                for case, judgement in zip(sweep.cases, _joined(read, backend, sweep), strict=True):
                    key = (sweep.road, ruling(case))
                    before = swept.get(key)
                    swept[key] = (
                        judgement if before is None else joined(before, judgement, Runs.merged)
                    )
        for case, judgement in zip(task.cases, quick, strict=True):
            if swept and is_swept(case) and (values := swept.get((judgement.road, ruling(case)))):
                judgement = completed(judgement, values)
            yield case, judgement
        by_id = {case.id: case for case in task.cases}
        for check in checks:
            yield by_id[check.case], check


def _joined(read: Read, backend: str, sweep: Sweep) -> list[Judgement]:
    """The parts of a sweep as one judgement per ruling."""
    parts = (read(task.name) for task in sweep.tasks(backend))
    return reduce(
        lambda before, part: [joined(*pair) for pair in zip(before, part, strict=True)], parts
    )
