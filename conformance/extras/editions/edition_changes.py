"""All changes between two editions, grouped: the same change of many cases is one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from conformance.extras.editions.case_changes import EditionChange, ListInputs, case_changes
from conformance.extras.editions.edition_pairs import CasePair, EditionPair, match_cases
from conformance.extras.editions.effects import Answering, Effect, effects
from conformance.extras.editions.ruling_changes import RuleChange
from reports.dtype_order import usual_first
from reports.grading.divergences import simplicity
from specs.cases import Case
from specs.editions import Edition
from specs.formats import format_named
from specs.ruling import CaseRule, case_rules, rule_case

RULINGS = ("cast", "call")
"""The operations whose documents have a ruling for each input; of others, rules are compared."""
SAYS_NOTHING_NEW = {"clause", "lines", "note", "conflict", "changed"}
"""The fields of a rule that do not say what it requires."""


@dataclass(frozen=True)
class ChangeGroup:
    """A change of two rules with all cases in which it occurs, the simplest input first.

    ``effects`` are what it means for backends.
    """

    change: RuleChange
    cases: tuple[EditionChange, ...]
    effects: tuple[Effect, ...]

    @property
    def simplest(self) -> EditionChange:
        """The case with the simplest input; of several, that of the most usual dtypes."""
        return self.cases[0]

    @cached_property
    def count(self) -> int:
        """The number of inputs that change, over all cases."""
        return sum(each.inputs.count for each in self.cases)


@dataclass(frozen=True)
class RuleListChange:
    """Cases whose rules differ, where single inputs have no ruling to compare.

    ``gone`` and ``new`` are the rules that only one edition has there, and ``edited`` the names of
    rules of both that require something else now.
    """

    gone: tuple[CaseRule, ...]
    new: tuple[CaseRule, ...]
    edited: tuple[str, ...]
    cases: tuple[CasePair, ...]


@dataclass(frozen=True)
class EditionChanges:
    """The differences between two editions of a document, or between several pairs of them.

    ``compared`` counts the cases of both, and ``renamed`` those of them that allow the same by
    other rules or clauses. ``is_by_rules`` says that rules were compared instead of inputs.
    ``entries`` are the names of shape rules, forms and promises that differ.
    """

    pairs: tuple[EditionPair, ...]
    compared: int
    groups: tuple[ChangeGroup, ...]
    rules: tuple[RuleListChange, ...]
    renamed: int
    gone: tuple[Case, ...]
    new: tuple[Case, ...]
    unlisted: tuple[tuple[str, str], ...]
    listed: tuple[tuple[str, str], ...]
    entries: tuple[str, ...]
    is_by_rules: bool

    @property
    def is_same(self) -> bool:
        """Whether nothing changes: every case of both allows the same, and no other case exists."""
        parts = (self.groups, self.rules, self.gone, self.new, self.listed, self.unlisted)
        return not any((*parts, self.entries))

    @property
    def changed(self) -> int:
        """The number of cases in both editions of which the newer one allows other answers."""
        by_input = {each.cases for group in self.groups for each in group.cases}
        return len(by_input | {pair for each in self.rules for pair in each.cases})


def edition_changes(
    pairs: Iterable[EditionPair], list_inputs: ListInputs, backends: Sequence[Answering] = ()
) -> EditionChanges:
    """Compare editions, each with the one that replaces it.

    ``list_inputs`` lists the inputs of cases whose inputs cannot be compared all. ``backends`` are
    those whose answers are looked at.
    """
    pairs = tuple(pairs)
    found = _FoundChanges(list_inputs, backends)
    is_by_rules = pairs[0].old.document.entry.operation not in RULINGS
    for pair in pairs:
        matched = match_cases(pair)
        found.compared += len(matched.both)
        found.gone += matched.gone
        found.new += matched.new
        found.unlisted |= dict.fromkeys(_listed_only(pair.old, pair.new))
        found.listed |= dict.fromkeys(_listed_only(pair.new, pair.old))
        found.entries |= dict.fromkeys(_changed_entries(pair))
        defaults = _default_cases(pair.new)
        for cases in matched.both:
            if is_by_rules:
                found.add_rules(pair, cases)
            else:
                found.add_rulings(pair, cases, is_default=cases.new in defaults)
    return EditionChanges(
        pairs=pairs,
        compared=found.compared,
        groups=_grouped(found),
        rules=tuple(RuleListChange(*key, tuple(each)) for key, each in found.by_rules.items()),
        renamed=found.renamed,
        gone=tuple(found.gone),
        new=tuple(found.new),
        unlisted=tuple(found.unlisted),
        listed=tuple(found.listed),
        entries=tuple(found.entries),
        is_by_rules=is_by_rules,
    )


RuleLists = tuple[tuple[CaseRule, ...], tuple[CaseRule, ...], tuple[str, ...]]


@dataclass
class _FoundChanges:
    """Collects the changes that comparisons of pairs of editions have found so far."""

    list_inputs: ListInputs
    backends: Sequence[Answering]
    compared: int = 0
    renamed: int = 0
    changes: dict[RuleChange, list[EditionChange]] = field(default_factory=dict)
    effects: dict[RuleChange, list[Effect]] = field(default_factory=dict)
    by_rules: dict[RuleLists, list[CasePair]] = field(default_factory=dict)
    gone: list[Case] = field(default_factory=list)
    new: list[Case] = field(default_factory=list)
    unlisted: dict[tuple[str, str], None] = field(default_factory=dict)
    listed: dict[tuple[str, str], None] = field(default_factory=dict)
    entries: dict[str, None] = field(default_factory=dict)

    def add_rulings(self, pair: EditionPair, cases: CasePair, *, is_default: bool) -> None:
        """Compare two cases input by input; ``is_default`` says that they have default modes."""
        old, new = (
            rule_case(edition.document, case) for edition, case in zip(pair, cases, strict=True)
        )
        changes = list(case_changes(cases, old, new, self.list_inputs))
        backends = [each for each in self.backends if is_default or each.has_modes]
        for each in changes:
            self.changes.setdefault(each.change, []).append(each)
            found = effects(each, pair, backends) if cases.new.example is None else ()
            self.effects.setdefault(each.change, []).extend(found)
        if not changes:
            named = ({(each.rule, each.clause) for each in rules.branches} for rules in (old, new))
            self.renamed += len({*map(frozenset, named)}) > 1

    def add_rules(self, pair: EditionPair, cases: CasePair) -> None:
        """Record which rules two cases do not share, and which shared rules were edited."""
        old, new = (
            list(case_rules(edition.document, case))
            for edition, case in zip(pair, cases, strict=True)
        )
        before, after = ([each._replace(clause="") for each in rules] for rules in (old, new))
        gone = tuple(each for each in before if each not in after)
        added = tuple(each for each in after if each not in before)
        names = {each.rule for each in before} & {each.rule for each in after}
        edited = tuple(sorted(name for name in names if _is_edited(pair, name)))
        if gone or added or edited:
            self.by_rules.setdefault((gone, added, edited), []).append(cases)


def _is_edited(pair: EditionPair, name: str) -> bool:
    entries = [each.document.entry.rules.get(name) for each in pair]
    return bool(_requirement(entries[0]) != _requirement(entries[1]))


def _requirement(entry: BaseModel | None) -> Any:
    return entry.model_dump(exclude=SAYS_NOTHING_NEW) if entry is not None else None


def _listed_only(one: Edition, other: Edition) -> Iterator[tuple[str, str]]:
    """Yield the pairs that only the first edition lists, in the order of usual dtypes."""
    order = usual_first()
    yield from sorted(
        one.listed - other.listed,
        key=lambda pair: tuple(order.get(name, len(order)) for name in pair),
    )


def _changed_entries(pair: EditionPair) -> Iterator[str]:
    """Yield the names of shape rules, forms and promises that two editions do not share."""
    sections: tuple[tuple[str, Callable[[Edition], Mapping[str, BaseModel]]], ...] = (
        ("shape rule", _shape_rules),
        ("form", lambda edition: edition.document.entry.forms),
        ("promise", lambda edition: edition.document.entry.promises()),
    )
    for noun, entries_of in sections:
        before, after = map(entries_of, pair)
        for name in dict.fromkeys((*before, *after)):
            if _requirement(before.get(name)) != _requirement(after.get(name)):
                yield f"{noun} `{name}`"


def _shape_rules(edition: Edition) -> Mapping[str, BaseModel]:
    return {
        name: rule
        for name, rule in edition.document.entry.tensors.items()
        if rule.when.version is None or edition.version in rule.when.version
    }


def _default_cases(edition: Edition) -> set[Case]:
    """Return the case of default modes of each pair, which is the first."""
    first: dict[tuple[str, str], Case] = {}
    for case in edition.cases():
        first.setdefault((case.source, case.target), case)
    return set(first.values())


def _grouped(found: _FoundChanges) -> tuple[ChangeGroup, ...]:
    """Group changes by their rules and direction; what changes the simplest input comes first."""
    groups = [
        ChangeGroup(change, tuple(sorted(cases, key=_order)), tuple(found.effects[change]))
        for change, cases in found.changes.items()
    ]
    return tuple(sorted(groups, key=lambda group: _order(group.simplest)))


def _order(each: EditionChange) -> tuple[Any, ...]:
    order, case = usual_first(), each.cases.new
    source = format_named(case.source)
    places = tuple(order.get(name, len(order)) for name in (case.source, case.target))
    # Numbers come before texts, whose simplicity is their length.
    return source.kind == "text", simplicity(source, each.inputs.simplest), places
