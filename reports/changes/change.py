"""A change: cases that changed in the same way, in one sentence with one input."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from reports.case_patterns import compress
from reports.findings.finding_text import counted, dtype_pairs_words, few
from specs.formats import format_named, formats

ChangeKind = Literal["worse", "better", "otherwise", "unsupported", "supported"]
KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
"""The kinds of changes, in the order in which they are shown."""
KIND_MEANINGS: Mapping[ChangeKind, str] = {
    "worse": "answers that were right are wrong, or a failure is more severe",
    "better": "answers that were wrong are right, or a failure is less severe",
    "otherwise": "other answers, which are allowed or wrong as before",
    "unsupported": "the backend no longer supports the case",
    "supported": "the backend supports the case now, and breaks no rule",
}
KIND_WORDS: Mapping[ChangeKind, str] = {
    "worse": "worse",
    "better": "better",
    "otherwise": "otherwise",
    "unsupported": "no longer supported",
    "supported": "newly supported",
}
SEVERITY: Mapping[str, int] = {"deviates": 1, "violates": 2, "error": 3, "crashed": 4}
"""How severe a failing verdict is; every other has 0."""
RIGHT = "right"
"""Stands for the cause on a side where nothing is wrong."""
UNCLAIMED = "wrong by a document that it does not claim"
MOST_CAUSES = 2
"""The most causes of one side that a sentence names; of more, the others are counted."""


@dataclass(frozen=True)
class Example:
    """An input of a case, and what came of it before and now, in words.

    ``given`` is empty where no single input shows the change.
    """

    case: str
    given: str
    before: str
    now: str

    def __str__(self) -> str:
        given = f"{self.given}: " if self.given else ""
        return f"{given}{self.before} → {self.now}"


@dataclass(frozen=True)
class CaseChange:
    """How one case, or one check on a dtype pair, changed.

    ``before`` and ``now`` say what was wrong on each side, in the sentences of the findings that
    the other side does not have, or else that nothing was. ``findings`` are the names of these.
    ``moved`` are the causes that came with a case that is worse, or went with one that is better.
    ``inputs`` counts the answers that changed, if they are kept.
    """

    name: str
    kind: ChangeKind
    before: tuple[str, ...]
    now: tuple[str, ...]
    findings: tuple[str, ...] = ()
    moved: frozenset[str] = frozenset()
    example: Example | None = None
    inputs: int = 0

    @property
    def pair(self) -> tuple[str, str]:
        """The first and the last dtype of the name."""
        dtypes = [each for each in self.name.split("/") if each in formats()]
        return dtypes[0], dtypes[-1]

    @property
    def group(self) -> tuple[object, ...]:
        """What the cases of one change have in common: the causes that came, or that went."""
        match self.kind:
            case "worse" | "better":
                return self.kind, self.moved, self.before == self.now
            case "otherwise" if not self.findings and UNCLAIMED in (*self.before, *self.now):
                return self.kind, UNCLAIMED
            case "otherwise":
                return self.kind, self.before, self.now
        return (self.kind,)


@dataclass(frozen=True)
class Change:
    """The cases that changed in the same way."""

    cases: tuple[CaseChange, ...]

    @property
    def kind(self) -> ChangeKind:
        """Whether the cases are worse, better or otherwise, or are supported no longer or now."""
        return self.cases[0].kind

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """The names of the findings before and now, each once."""
        return tuple(dict.fromkeys(name for each in self.cases for name in each.findings))

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of the cases, and the names of the checks."""
        return tuple(each.name for each in self.cases)

    @cached_property
    def says(self) -> str:
        """One sentence: what is now and what was before, the finding that came or went first."""
        if all(each.before == each.now for each in self.cases):
            return f"other inputs or answers than before: {_causes([self.cases[0].now])}"
        if self.cases[0].group == (self.kind, UNCLAIMED):
            return "other answers to documents that it does not claim"
        before = _causes(each.before for each in self.cases)
        now = _causes(each.now for each in self.cases)
        match self.kind:
            case "worse":
                return f"now {now}; before: {before}"
            case "better":
                return f"no longer {before}; now: {now}"
            case "unsupported":
                return f"before: {before}"
            case "supported":
                # Beside answers that a claimed document judges, others say nothing more.
                claimed = [each.now for each in self.cases if each.now != (UNCLAIMED,)]
                return f"now: {_causes(claimed) or now}"
        return f"before: {before}; now: {now}"

    @cached_property
    def example(self) -> Example | None:
        """The example that shows the change best; of equals the last, as of the newest version."""
        shown = [each for each in reversed(self.cases) if each.example is not None]
        return min(shown, key=_convincing).example if shown else None

    @property
    def inputs(self) -> int:
        """How many kept answers changed in all cases together."""
        return sum(each.inputs for each in self.cases)

    @property
    def reach(self) -> str:
        """How far the change reaches: cases, documents, dtypes, and the findings."""
        documents = [*dict.fromkeys(re.split("[:/]", name)[0] for name in self.names)]
        pairs = dtype_pairs_words(dict.fromkeys(each.pair for each in self.cases))
        names = f" ({few(self.findings)})" if self.findings else ""
        return f"{counted(len(self.cases), 'case')} of {few(documents)}, {pairs}{names}"

    @cached_property
    def patterns(self) -> list[str]:
        """The cases as few patterns, as ledgers write them."""
        return compress(self.names)


def _causes(sides: Iterable[Sequence[str]]) -> str:
    """Join the causes that all cases have on one side, the most frequent first."""
    counts = Counter(text for side in sides for text in side)
    named = [text for text, _ in counts.most_common()]
    more = len(named) - MOST_CAUSES
    return "; or ".join([*named[:MOST_CAUSES], *([f"{more} more"] if more > 0 else [])])


def _convincing(change: CaseChange) -> tuple[bool | int, ...]:
    """The sort key of cases by how well they show a change: numbers first, then what is short."""
    assert change.example is not None
    return (
        not change.example.given,
        format_named(change.pair[0]).kind == "text",
        len(change.example.given),
    )


@dataclass(frozen=True)
class BackendChanges:
    """What changed for one backend, whose version is ``now``, since another run or its ledger.

    ``since`` names that, as in `since 1.31.1`. ``same`` counts the compared cases and checks that
    did not change. ``notes`` are closing lines, as about what to do next. Without ``has_cases``,
    only checks were compared.
    """

    backend: str
    now: str
    since: str
    changes: tuple[Change, ...]
    same: int
    notes: tuple[str, ...] = ()
    has_cases: bool = True

    @cached_property
    def counts(self) -> dict[ChangeKind, int]:
        """How many cases and checks changed, by the kinds that occur."""
        return {
            kind: sum(len(each.cases) for each in self.of(kind)) for kind in KINDS if self.of(kind)
        }

    def of(self, kind: ChangeKind) -> list[Change]:
        """Return the changes of one kind, those of most cases first."""
        return [each for each in self.changes if each.kind == kind]

    @property
    def is_worse(self) -> bool:
        """Whether a case is worse."""
        return bool(self.of("worse"))


def kind_of(rise: int, more: int) -> ChangeKind:
    """Return the kind of a change by the rise of severity, or else by how much more is wrong."""
    for each in (rise, more):
        if each:
            return "worse" if each > 0 else "better"
    return "otherwise"


def more_causes(now: Iterable[str], before: Iterable[str]) -> int:
    """Return 1 if findings have all causes of those before and others, -1 if only some; else 0."""
    new, old = _single_causes(now), _single_causes(before)
    return (new > old) - (new < old)


def causes_only_in(these: Iterable[str], those: Iterable[str]) -> frozenset[str]:
    """Return the causes of ``these`` findings that ``those`` lack; all, if they lack none."""
    own = _single_causes(these)
    return frozenset(own - _single_causes(those) or own)


def _single_causes(names: Iterable[str]) -> set[str]:
    """Split the names of findings; those with several causes join their names by plus signs."""
    return {cause for name in names for cause in name.split("+")}


def only_in(these: Mapping[str, str], those: Mapping[str, str]) -> list[str]:
    """Return the names in ``these`` that are not in ``those``; all, if both have the same."""
    return [name for name in these if name not in those or these.keys() == those.keys()]


def grouped(found: Sequence[CaseChange]) -> tuple[Change, ...]:
    """Group changed cases, those of most cases first within a kind."""
    groups: dict[tuple[object, ...], list[CaseChange]] = {}
    for each in found:
        groups.setdefault(each.group, []).append(each)
    changes = [Change(tuple(cases)) for cases in groups.values()]
    return tuple(sorted(changes, key=lambda each: (KINDS.index(each.kind), -len(each.cases))))
