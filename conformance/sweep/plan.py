"""Which roads are swept, by which cases their answers are judged, and how the parts join.

A sweep is judged part by part; any grouping of consecutive parts joins to the same judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from oracles.reference.sweep_inputs import SequenceKind, sequence_kinds
from reports.grading.divergences import simplicity
from reports.grading.failure_runs import Runs
from reports.judgement import BY_SEVERITY, NEXT_SCRIPT, Judgement, Verdict
from reports.problems import Problem, WrongValues
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format, format_named
from specs.loader import document_named
from specs.ruling import ruling


@dataclass(frozen=True)
class Sweep:
    """A road, the first case of each ruling that shares it, and in ``way`` the kind of inputs."""

    road: str
    cases: tuple[Case, ...]
    way: SequenceKind

    @property
    def source(self) -> Format:
        return format_named(self.cases[0].source)

    @property
    def target(self) -> Format:
        return format_named(self.cases[0].target)


def is_swept(case: Case) -> bool:
    """Whether the full tier requests more inputs of a case than the quick tier."""
    if case.example is not None or document_named(case.document).entry.operation != "cast":
        return False
    rules = ruling(case)
    return (
        rules.source.is_numeric
        and rules.source.bits > EXHAUSTIVE_BITS
        and rules.target.is_numeric
        and not rules.is_rejection
        and not rules.is_open
    )


def sweeps(cases: Iterable[Case], roads: Mapping[str, str]) -> list[Sweep]:
    """Return the sweeps of a backend; ``roads`` has the known roads by case id.

    Cases without a road are left out, as are those that the full tier does not sweep.
    """
    found: dict[tuple[str, str, str], dict[Ruling, Case]] = {}
    for case in cases:
        road = roads.get(case.id, "")
        if road and is_swept(case):
            pair = (case.source, case.target, road)
            found.setdefault(pair, {}).setdefault(ruling(case), case)
    return [
        Sweep(road, tuple(rulings.values()), way)
        for (source, _, road), rulings in found.items()
        for way in sequence_kinds(format_named(source))
    ]


REFUSED = ("error",)
"""The allowed answers to inputs that must be refused."""
JoinRuns = Callable[[Runs, Runs], Runs]


def worst(*verdicts: Verdict) -> Verdict:
    """Return the most severe of some verdicts."""
    return max(verdicts, key=BY_SEVERITY.index)


def joined(one: Judgement, later: Judgement, runs: JoinRuns = Runs.joined) -> Judgement:
    """Join two judgements on one case, ``later`` on the inputs that come after those of ``one``.

    ``runs`` joins their runs of inputs. If the inputs of both interleave, as those of different
    sequences do, it must be ``Runs.merged``.
    """
    found = {_key(divergence): divergence for divergence in one.divergences}
    for divergence in later.divergences:
        key = _key(divergence)
        found[key] = _both(one.case, found[key], divergence, runs) if key in found else divergence
    divergences = tuple(found[key] for key in sorted(found, key=_order))
    return replace(
        one,
        verdict=worst(one.verdict, later.verdict),
        problems=(*_others(one, later), *divergences),
        inputs=one.inputs + later.inputs,
        open_inputs=one.open_inputs + later.open_inputs,
        reaches_ends=one.reaches_ends and later.reaches_ends,
        reproduction=_reproduction(divergences, one, later),
    )


def completed(quick: Judgement, swept: Judgement) -> Judgement:
    """Join a case's judgement at the quick tier with the judgement of its sweep.

    If the sweep has any inputs, its counts and wrong values replace those of the quick tier. Of the
    latter, wrong answers to inputs that must be refused remain if the sweep does not break their
    rule.
    """
    verdict = worst(quick.verdict, swept.verdict)
    not_refused = tuple(_not_refused(quick, swept))
    if not swept.inputs:
        problems = (*_others(quick, swept), *quick.divergences)
        return replace(quick, verdict=verdict, problems=problems)
    return replace(
        quick,
        verdict=verdict,
        problems=(*_others(quick, swept), *swept.divergences, *not_refused),
        inputs=swept.inputs,
        open_inputs=swept.open_inputs,
        reaches_ends=swept.reaches_ends and not not_refused,
        reproduction=_both_scripts(quick, swept),
    )


def _not_refused(quick: Judgement, swept: Judgement) -> Iterator[WrongValues]:
    """Yield wrong answers of the quick tier to inputs that must be refused.

    Left out are those that break a rule which answers of the sweep break too. After an error, a
    sweep requests only the other inputs of the call again, and so may miss these.
    """
    known = set(map(_key, swept.divergences))
    for each in quick.divergences:
        if each.allowed == REFUSED and _key(each) not in known:
            yield each


def _others(one: Judgement, later: Judgement) -> tuple[Problem, ...]:
    """Return all problems of two judgements but wrong values; if both have the same ones, once."""
    first, second = (
        tuple(each for each in judgement.problems if not isinstance(each, WrongValues))
        for judgement in (one, later)
    )
    return first if first == second else (*first, *second)


def _both_scripts(quick: Judgement, swept: Judgement) -> str:
    """Return the script of a sweep's wrong values, then those of faults found at the quick tier.

    Without the former, return all scripts of the quick tier.
    """
    if not (swept.reproduction and quick.faults):
        return swept.reproduction or quick.reproduction
    scripts = quick.reproduction.split(NEXT_SCRIPT)
    of_faults = scripts[1:] if quick.divergences else scripts
    return NEXT_SCRIPT.join(filter(None, [swept.reproduction, *of_faults]))


def _key(divergence: WrongValues) -> tuple[str, str, str]:
    return divergence.rule, divergence.clause, divergence.level


def _order(key: tuple[str, str, str]) -> tuple[bool, tuple[str, str, str]]:
    return key[2] != "required", key


def _both(case: str, one: WrongValues, later: WrongValues, runs: JoinRuns) -> WrongValues:
    source = format_named(case.split("/")[1])
    simpler = min(one, later, key=lambda each: simplicity(source, each.smallest))
    return replace(simpler, count=one.count + later.count, runs=runs(one.runs, later.runs))


def _reproduction(divergences: tuple[WrongValues, ...], one: Judgement, later: Judgement) -> str:
    """Return the script of the judgement that holds the smallest input of the worst divergence.

    It is empty if there is no divergence.
    """
    for each in (one, later):
        if each.divergences and _has_same_smallest(divergences[0], each.divergences[0]):
            return each.reproduction
    return ""


def _has_same_smallest(divergence: WrongValues, other: WrongValues) -> bool:
    return _key(divergence) == _key(other) and divergence.smallest == other.smallest
