"""Resolves versions: each has its inherited dtypes, listed pairs and rules, and yields its cases.

Some rules are about a tensor as a whole: its rank, number of elements, and tile rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from math import prod

from specs.cases import FORM, MEMBER, Case
from specs.formats import Format, every_format, format_named, formats, is_exact, rounds
from specs.house_rules import choice_for
from specs.loader import Document, document_named
from specs.model.document import (
    ABSENT,
    ELEMENTS,
    NOT,
    RANKS,
    TILE_RANKS,
    ParameterEntry,
    TensorRuleEntry,
)
from specs.operations import of_family

SHAPE_CONDITIONS = ("width", "rank", "last", "last-by-bits", "elements")
"""The keys of conditions on a tensor's shape; only a case that has a shape meets them."""


@dataclass(frozen=True, eq=False)
class Edition:
    """One version of a document, with what it inherits from the versions that it extends.

    ``listed`` has the pairs that the version lists, and ``rules`` the names of its rules.
    """

    document: Document
    version: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    listed: frozenset[tuple[str, str]]
    rules: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]

    def parameters(self) -> Iterator[tuple[str, ParameterEntry]]:
        """Yield the parameters that this version has, as pairs of name and entry."""
        order = list(self.document.entry.versions)
        for name, parameter in self.document.entry.parameters.items():
            if parameter.since is None or order.index(self.version) >= order.index(parameter.since):
                yield name, parameter

    def matches(self, conditions: dict[str, list[str]], case: Case) -> bool:
        """Return whether all conditions hold for a case.

        The keys of ``conditions`` are `from`, `to`, `pair` and names of modes. One of a key's words
        must fit the case; of `pair`, all. A case of an unlisted pair matches only if `pair` has the
        word `unlisted`.
        """
        for key, words in conditions.items():
            match key:
                case "from":
                    holds = case.source in self._dtypes(tuple(words))
                case "to":
                    holds = case.target in self._dtypes(tuple(words))
                case "pair":
                    source, target = format_named(case.source), format_named(case.target)
                    holds = all(self._pair_matches(source, target, word) for word in words)
                case _:
                    holds = case.mode.get(key, ABSENT) in words
            if not holds:
                return False
        pair_words = conditions.get("pair", [])
        return "unlisted" in pair_words or (case.source, case.target) in self.listed

    def rules_between(self, source: str, target: str) -> list[str]:
        """Return the rules whose `from` and `to` match a pair, whatever their other conditions."""
        return [
            name
            for name, sources, targets in self._rule_dtypes
            if source in sources and target in targets
        ]

    @cached_property
    def _rule_dtypes(self) -> list[tuple[str, frozenset[str], frozenset[str]]]:
        """Each rule with the sources and targets that its `from` and `to` name."""
        rules = self.document.entry.rules
        return [
            (
                name,
                self._dtypes(tuple(rules[name].when.get("from", ("any",)))),
                self._dtypes(tuple(rules[name].when.get("to", ("any",)))),
            )
            for name in self.rules
        ]

    @cache  # noqa: B019 (editions live as long as their documents)
    def _dtypes(self, words: tuple[str, ...]) -> frozenset[str]:
        known = every_format().values()
        return frozenset(fmt.name for fmt in known if any(self._names(word, fmt) for word in words))

    def _names(self, word: str, fmt: Format) -> bool:
        groups = self.document.entry.groups
        return (
            word in (fmt.name, fmt.kind, "any")
            or (word == "numeric" and fmt.is_numeric)
            or (word in groups and fmt.name in groups[word])
        )

    def _pair_matches(self, source: Format, target: Format, word: str) -> bool:
        """Return whether a word of a `pair` condition holds."""
        if word.startswith(NOT):
            return not self._pair_matches(source, target, word.removeprefix(NOT))
        match word:
            case "listed" | "unlisted":
                return ((source.name, target.name) in self.listed) == (word == "listed")
            case "same" | "different":
                return (source == target) == (word == "same")
            case "exact" | "inexact":
                return is_exact(source, target) == (word == "exact")
            case "rounds":
                return rounds(source, target)
        return target.name in self.document.entry.pair_groups[word].get(source.name, [])

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each pair that has cases: of all dtypes, or of those that the document names.

        With house rules, only the listed pairs for which these have a choice have cases.
        """
        every = self.document.entry.scope == "every-dtype"
        pairs = product(formats(), formats()) if every else product(self.sources, self.targets)
        house = self.document.house
        if house is None:
            yield from pairs
            return
        for pair in pairs:
            if pair in self.listed and choice_for(house, *map(format_named, pair)) is not None:
                yield pair

    def _call_modes(self, pair: Case) -> Iterator[list[tuple[str, str]]]:
        """Yield the modes of a pair of calls: its forms, then the layer members if there are any.

        Each list has the choices for one mode, as pairs of its name and a value. Documents of other
        operations have none.
        """
        entry = self.document.entry
        members = entry.receiver.members if entry.receiver is not None else {}
        for mode, entries in ((FORM, entry.forms), (MEMBER, members)):
            if entries:
                conditions = {key: each.when for key, each in entries.items()}
                yield [(mode, key) for key, when in conditions.items() if self.matches(when, pair)]

    def cases(self) -> Iterator[Case]:
        """Yield each case of this version with its modes spelled out, then its worked examples.

        Of a pair, the case of default modes is the first.
        """
        name = self.document.name
        cases = of_family(self.document.entry.operation, "cases")
        if cases is not None:
            yield from cases(self)
            return
        for source, target in self.pairs():
            pair = Case(name, self.version, source, target)
            parameter_modes = [
                [
                    (key, value)
                    for value in parameter.default_first
                    if self.matches(parameter.only.get(value, {}), pair)
                ]
                for key, parameter in self.parameters()
                if self.matches(parameter.affects, pair)
            ]
            for modes in product(*self._call_modes(pair), *parameter_modes):
                yield Case(name, self.version, source, target, modes)
        for example_name, example in self.document.entry.examples.items():
            if self.version in example.versions:
                order = [key for key, _ in self.parameters() if key in example.with_]
                modes = tuple((key, example.with_[key]) for key in order)
                yield Case(name, self.version, example.from_, example.to, modes, example_name)


@cache
def edition(document: Document, version: str) -> Edition:
    """Resolve a version with the versions that it extends; raise KeyError if it is unknown."""
    if document.page is not None:
        return replace(edition(document.page, version), document=document)
    entry = document.entry.versions[version]
    base = edition(document, entry.extends) if entry.extends else None
    sources = (*(entry.from_ or (base.sources if base else ())), *entry.add_types)
    targets = (*(entry.to or (base.targets if base else ())), *entry.add_types)
    if entry.pairs is not None:
        group = document.entry.pair_groups[entry.pairs]
        listed = frozenset((source, target) for source in group for target in group[source])
    elif base is not None and not (entry.from_ or entry.to or entry.add_types):
        listed = base.listed
    else:
        listed = frozenset(product(sources, targets))
    inherited = base.rules if base else tuple(document.entry.rules)
    start = entry.rules if entry.rules is not None else inherited
    rules = [entry.replace.get(rule, rule) for rule in start if rule not in entry.remove]
    return Edition(
        document=document,
        version=version,
        sources=sources,
        targets=targets,
        listed=listed,
        rules=(*rules, *entry.add),
        attributes=tuple((dict(base.attributes if base else ()) | entry.attributes).items()),
    )


def editions(document: Document) -> Iterator[Edition]:
    """Yield every version of a document, in the document's order."""
    for version in document.entry.versions:
        yield edition(document, version)


@dataclass(frozen=True)
class TensorRule:
    """The rule for a tensor's shape; ``keeps_shape`` is false if the shape is left open."""

    rule: str
    clause: str
    level: str
    keeps_shape: bool


def tensor_rule(document: str, version: str, shape: tuple[int, ...]) -> TensorRule:
    """Return a shipped document's rule for a tensor of this shape.

    The document must have tensor rules; the tensor's tile rank counts as that of its output.
    """
    size = prod(shape)
    rank = str(len(shape)) if len(shape) < 5 else "5-or-more"
    elements = "none" if size == 0 else "some"
    if size > 2**31 - 1:
        elements = "more-than-int32-max"
    return _rule_of_class(document, version, rank, elements)


@cache
def _rule_of_class(document: str, version: str, rank: str, elements: str) -> TensorRule:
    entry = document_named(document).entry
    name, rule = next(
        (name, rule)
        for name, rule in entry.tensors.items()
        if _takes(rule, version, rank, elements, TILE_RANKS[0])
    )
    keeps_shape = rule.then == "same-shape"
    level = rule.level if keeps_shape else "unspecified"
    return TensorRule(name, rule.clause, level, keeps_shape)


def prove_tensors(document: Document) -> None:
    """Raise DocumentError unless one rule alone takes each tensor, and each rule takes a tensor."""
    used = set()
    versions = document.entry.versions
    for version, rank, elements, tile_rank in product(versions, RANKS, ELEMENTS, TILE_RANKS):
        takers = [
            name
            for name, rule in document.entry.tensors.items()
            if _takes(rule, version, rank, elements, tile_rank)
        ]
        tensor = (
            f"a tensor of rank {rank} with {elements} elements, tile rank {tile_rank},"
            f" in version {version}"
        )
        if not takers:
            raise document.source.error(("tensors",), f"gap: no tensor rule takes {tensor}")
        if len(takers) > 1:
            raise document.source.error(
                ("tensors", takers[1]), f"overlap: {' and '.join(takers)} both take {tensor}"
            )
        used.update(takers)
    for name in document.entry.tensors:
        if name not in used:
            raise document.source.error(
                ("tensors", name),
                f"tensor rule {name} takes no tensor; widen its conditions or delete it",
            )


def _takes(rule: TensorRuleEntry, version: str, rank: str, elements: str, tile_rank: str) -> bool:
    when = rule.when
    if when.version is not None and version not in when.version:
        return False
    return rank in when.rank and elements in when.elements and tile_rank in when.tile_rank
