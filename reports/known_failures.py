"""Known failures, as ledgers, policies and earlier runs list them: verdict or rule, and region.

The region is a digest of all that is wrong. It is made from the fields of problems that hold data,
never from words: every sentence, of ours or of a framework, may be put otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from reports.case_patterns import INVARIANCES, kind_of_check
from reports.grading.failure_runs import WORD
from reports.judgement import BREAKS_RULE, NO_ANSWER, VERDICT_OF_LEVEL, Judgement
from reports.problems import (
    NAMES,
    BrokenAdapter,
    BrokenPromise,
    BrokenRule,
    ChangesWithShape,
    Fault,
    NotRefused,
    Problem,
    Refused,
    WrongByAnyReading,
    WrongElement,
    WrongShape,
    WrongTensor,
    WrongValues,
)
from specs.cases import Case

DIGITS = 16
"""Hex digits of a region."""
VARIES = "varies"
"""The region that stands for every region."""
DATA: Mapping[type[Any], tuple[str, ...]] = {
    WrongShape: ("given", "got", "wanted"),
    WrongElement: ("shape", "index", "got", "wanted"),
    WrongByAnyReading: ("readings",),
    ChangesWithShape: ("shape",),
    WrongTensor: ("tensor", "given", "got", "allowed", "wrong", "inputs"),
    NotRefused: ("given", "got", "error_class"),
    BrokenPromise: ("promise", "facts"),
    Refused: ("kind", "error"),
    BrokenAdapter: ("dtype",),
}
"""The fields that tell problems of a class apart; the others hold words, or follow from these."""
SPELLED = ("given", "got", "wanted", "allowed")
"""The fields that may hold words: of these only the bit patterns count."""
PATTERN = re.compile(r"\b0x[0-9a-f]+")
FACTS: Mapping[str, int] = {"returned": 0, "layer": 1, "layer's input": 1}
"""How many of the facts of these promises go into a region; of all others every one does."""


@dataclass(frozen=True)
class KnownFailure:
    """One way in which a case fails: ``what`` is the verdict, or the broken rule.

    ``inputs`` counts the inputs with wrong values of a cast, and ``region`` is the digest of all
    that is wrong. The region ``VARIES`` stands for every region.
    """

    what: str
    inputs: int = 0
    region: str = VARIES

    def __str__(self) -> str:
        if self.region == VARIES:
            return f"{self.what} {VARIES}"
        return f"{self.what} {self.inputs} {self.region}"

    def covers(self, found: KnownFailure) -> bool:
        """Return whether ``found`` has this ``what`` and region; ``VARIES`` covers every region."""
        return self.what == found.what and self.region in (VARIES, found.region)


def parse_failure(text: str) -> KnownFailure:
    """Parse a failure that ``str`` wrote; raise ValueError for other texts."""
    match text.split():
        case [what, region]:
            return KnownFailure(what, 0, region)
        case [what, inputs, region]:
            return KnownFailure(what, int(inputs), region)
    raise ValueError(f"`{text}` is no failure")


def failures(
    case: Case, judgement: Judgement, *, with_drawn: bool = True
) -> tuple[KnownFailure, ...]:
    """Return the ways in which a judgement fails; none if it does not fail.

    There is one for an error or a crash, else one for the broken rules of each level: `violates`
    for required rules, `deviates` for recommended ones. The region leaves out how a process died,
    which varies with the machine. Of the broken rules of a check, it has only the names.

    Unless ``with_drawn``, what drawn tensors alone show is left out, as another seed may not meet
    it: all of a check of invariances, and rules that are broken in drawn tensors.
    """
    verdict = judgement.verdict
    if not with_drawn and judgement.check and kind_of_check(judgement.check) == INVARIANCES:
        return ()
    roles = {case.target: "target", case.source: "source"}
    if verdict in NO_ANSWER:
        errors = [each for each in judgement.problems if isinstance(each, Fault | BrokenAdapter)]
        region = _digest(verdict, [_data(each, roles) for each in errors if verdict == "error"])
        return (KnownFailure(verdict, 0, region),)
    if verdict not in BREAKS_RULE:
        return ()
    by_verdict: dict[str, list[BrokenRule]] = {}
    for broken in judgement.broken_rules:
        if not with_drawn and _is_drawn(broken):
            continue
        by_verdict.setdefault(VERDICT_OF_LEVEL[broken.level], []).append(broken)
    found = []
    for name, parts in by_verdict.items():
        values = [each for each in parts if isinstance(each, WrongValues)]
        inputs = sum(each.count for each in values)
        if judgement.check:
            data: list[Any] = [each.rule for each in parts]
        else:
            others = [each for each in parts if not isinstance(each, WrongValues)]
            data = [*_wrong_values(values), *(_data(each, roles) for each in others)]
        found.append(KnownFailure(name, inputs, _digest(name, data)))
    return tuple(found)


def _wrong_values(broken: Sequence[WrongValues]) -> list[list[int]]:
    """Return what a region has of wrong values: their number and the sum of their checksums.

    No rule is named, and none has a share of its own: where one document follows another, or a
    version divides a rule, the same wrong answers are the same failure.
    """
    if not broken:
        return []
    checksum = sum(each.runs.checksum for each in broken) & WORD
    return [[sum(each.count for each in broken), checksum]]


def problems_region(case: Case, problems: Sequence[Problem]) -> str:
    """Return a digest of what is wrong with a failing case besides wrong values, without words."""
    roles = {case.target: "target", case.source: "source"}
    faults = [each for each in problems if isinstance(each, Fault | BrokenAdapter)]
    return _digest("", [_data(each, roles) for each in faults])


def _is_drawn(problem: BrokenRule) -> bool:
    return isinstance(problem, WrongTensor) and bool(problem.where)


def _digest(verdict: str, data: Sequence[Any]) -> str:
    return sha256(json.dumps([verdict, *data]).encode()).hexdigest()[:DIGITS]


def _data(problem: BrokenRule | BrokenAdapter, roles: Mapping[str, str]) -> list[Any]:
    """Return the fields of a problem that go into a region.

    ``roles`` maps the dtypes of the case to the words `source` and `target`, which replace them in
    the facts of a ``BrokenPromise``.
    """
    if isinstance(problem, WrongTensor) and _is_drawn(problem):
        # Each seed draws other tensors, so which elements are wrong is chance.
        return [NAMES[type(problem)], problem.rule, problem.tensor]
    found: list[Any] = [NAMES[type(problem)], getattr(problem, "rule", "")]
    for name in DATA.get(type(problem), ()):
        value = getattr(problem, name)
        if isinstance(problem, BrokenPromise) and name == "facts":
            value = [
                re.sub(r"\w+", lambda word: roles.get(word[0], word[0]), each)
                for each in value[: FACTS.get(problem.promise)]
            ]
        elif isinstance(problem, WrongByAnyReading):
            value = [_data(each, roles) for each in value]
        elif name in SPELLED and isinstance(value, str):
            value = PATTERN.findall(value)
        elif name == "allowed":
            value = [PATTERN.findall(each) for each in value]
        found.append(value)
    return found
