"""Compares what Castigate allows with what a model of the pages says, by kinds of difference."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from lab.page_model.numbers import Answer


class Verdict(NamedTuple):
    """The patterns that Castigate allows for one element; None if it allows all.

    The ``strong`` ones break no recommendation. If ``is_recommended``, all other patterns break no
    more than one.
    """

    allowed: frozenset[int] | None
    strong: frozenset[int]
    is_recommended: bool


@dataclass
class Kinds:
    """Differences by kind, each with the first example and the cases in which it occurs."""

    compared: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    cases: dict[str, set[str]] = field(default_factory=dict)

    def add(self, kind: str, case: str, example: str) -> None:
        self.counts[kind] += 1
        self.examples.setdefault(kind, example)
        self.cases.setdefault(kind, set()).add(case)


def relation(answer: Answer, verdict: Verdict) -> str | None:
    """How a verdict differs from the model's answer; None if it does not."""
    if verdict == (answer.admitted, answer.preferred, answer.is_implied):
        return None
    if verdict.allowed is None:
        if answer.admitted is None:
            return None
        return "open, though implied" if answer.is_implied else "open, though the page decides"
    if answer.admitted is None:
        return "(page silent) recommended" if verdict.is_recommended else "required, page silent"
    assert answer.preferred is not None
    if not verdict.allowed & answer.admitted:
        return "CONTRADICTION"
    if verdict.allowed - answer.admitted and answer.admitted - verdict.allowed:
        return "crossing"
    if verdict.allowed < answer.admitted:
        is_preferred = answer.preferred <= verdict.allowed
        if is_preferred and verdict.is_recommended:
            return "(recommends the preferred)"
        return "requires the preferred" if is_preferred else "stricter"
    if verdict.allowed > answer.admitted:
        return "looser"
    if answer.is_implied != verdict.is_recommended:
        return "only recommended" if verdict.is_recommended else "required, though implied"
    if verdict.strong != answer.preferred:
        return "(recommends otherwise)"
    return None


def note(kinds: Kinds, case: str, answer: Answer, verdict: Verdict, element: str) -> None:
    """Count an element, and its kind if model and verdict differ."""
    kinds.compared += 1
    found = relation(answer, verdict)
    if found is None:
        return
    kind = f"{found} | {answer.why}"
    if kind in kinds.examples:
        kinds.counts[kind] += 1
        kinds.cases[kind].add(case)
    else:
        sets = (
            f"model {_hex(answer.admitted)} preferred {_hex(answer.preferred)}; "
            f"Castigate {_hex(verdict.allowed)} strong {_hex(verdict.strong)}"
        )
        kinds.add(kind, case, f"{case} {element}: {sets}")


def _hex(patterns: frozenset[int] | None) -> str:
    return (
        "-" if patterns is None else "{" + ",".join(f"{each:#x}" for each in sorted(patterns)) + "}"
    )


def show(title: str, kinds: Kinds, seconds: float) -> None:
    total = kinds.counts.total()
    line = f"{title}: {kinds.compared:,} compared, {total:,} differ, {seconds:.0f} s"
    print(f"## {line}", flush=True)
    for kind, times in kinds.counts.most_common():
        print(
            f"{times:>8} in {len(kinds.cases[kind])} cases: {kind}\n         {kinds.examples[kind]}"
        )
