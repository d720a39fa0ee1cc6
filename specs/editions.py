"""A version with everything it inherits: its types, its listed pairs, its rules, its cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

from specs.bitcast_shapes import condition, shapes_between, widths_of, written_shape
from specs.calls import FORM, MEMBER, SHAPE
from specs.cases import Case
from specs.formats import Format, format_named, formats
from specs.loader import Document
from specs.model.document import ABSENT, BitcastEntry, ParameterEntry, TableEntry
from specs.pair_conditions import is_exact, rounds


@dataclass(frozen=True, eq=False)
class Edition:
    """One version of a document, inheritance resolved."""

    document: Document
    version: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    listed: frozenset[tuple[str, str]]
    rules: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]

    def parameters(self) -> Iterator[tuple[str, ParameterEntry]]:
        """The parameters that this version has."""
        order = list(self.document.entry.versions)
        for name, parameter in self.document.entry.parameters.items():
            if parameter.since is None or order.index(self.version) >= order.index(parameter.since):
                yield name, parameter

    def matches(self, conditions: dict[str, list[str]], case: Case) -> bool:
        """Whether all conditions hold for a case; a rule that names no pair means listed ones."""
        for key, words in conditions.items():
            match key:
                case "from":
                    holds = case.source in self._named(tuple(words))
                case "to":
                    holds = case.target in self._named(tuple(words))
                case "width" | "rank" | "last" | "last-by-bits" | "elements":
                    bitcast = self.document.entry.bitcast
                    holds = bitcast is not None and condition(bitcast, key, case) in words
                case "pair":
                    source, target = format_named(case.source), format_named(case.target)
                    holds = all(self._pair(source, target, word) for word in words)
                case _:
                    holds = case.mode.get(key, ABSENT) in words
            if not holds:
                return False
        pair_words = conditions.get("pair", [])
        return "unlisted" in pair_words or (case.source, case.target) in self.listed

    def row_class(self, table: TableEntry, row: str) -> str:
        """The input class of a table's row, which may have the page's own name."""
        return table.names.get(row) or self.document.entry.row_names.get(row, row)

    def rules_between(self, source: str, target: str) -> list[str]:
        """The rules whose `from` and `to` a pair meets; other conditions are yet to be asked."""
        return [
            name
            for name, sources, targets in self._reach
            if source in sources and target in targets
        ]

    @cached_property
    def _reach(self) -> list[tuple[str, frozenset[str], frozenset[str]]]:
        entries = self.document.entry.rules
        return [
            (
                name,
                self._named(tuple(entries[name].when.get("from", ("any",)))),
                self._named(tuple(entries[name].when.get("to", ("any",)))),
            )
            for name in self.rules
        ]

    @cache  # noqa: B019 (editions live as long as their documents)
    def _named(self, words: tuple[str, ...]) -> frozenset[str]:
        """The dtypes that words of `from` or `to` stand for."""
        known = formats().values()
        return frozenset(form.name for form in known for word in words if self._is(form, word))

    def _is(self, form: Format, word: str) -> bool:
        groups = self.document.entry.groups
        return (
            word in (form.name, form.kind, "any")
            or (word == "numeric" and form.is_numeric)
            or (word in groups and form.name in groups[word])
        )

    def _pair(self, source: Format, target: Format, word: str) -> bool:
        if word.startswith("not-"):
            return not self._pair(source, target, word.removeprefix("not-"))
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
        """Every pair that is a case: all dtypes there are, or only those the document names."""
        if self.document.entry.scope == "every-dtype":
            yield from product(formats(), formats())
        else:
            yield from product(self.sources, self.targets)

    def _calls(self, pair: Case) -> Iterator[list[tuple[str, str]]]:
        """The forms in which a pair is called, and the members it is asked of."""
        entry = self.document.entry
        if entry.receiver is not None:
            yield [
                (FORM, key) for key, form in entry.forms.items() if self.matches(form.when, pair)
            ]
            members = entry.receiver.members
            if members:
                yield [
                    (MEMBER, key)
                    for key, member in members.items()
                    if self.matches(member.when, pair)
                ]

    def _bitcasts(self, bitcast: BitcastEntry) -> Iterator[Case]:
        """Every pair in every shape, then the tests that the page demands."""
        name = self.document.name

        def asked(source: str, target: str, texts: list[str], test: str | None) -> Iterator[Case]:
            widths = widths_of(bitcast, format_named(source), format_named(target))
            for shape in shapes_between(texts, widths):
                modes = ((SHAPE, written_shape(shape)),)
                yield Case(name, self.version, source, target, modes, test)

        for source, target in self.pairs():
            more = bitcast.more.shapes if target in bitcast.more.pairs.get(source, ()) else []
            yield from asked(source, target, [*bitcast.shapes, *more], None)
        for test, demanded in bitcast.demanded.items():
            for source, targets in demanded.pairs.items():
                for target in targets:
                    yield from asked(source, target, demanded.shapes, test)

    def cases(self) -> Iterator[Case]:
        """Every case of this version, modes spelled out, then its examples."""
        name = self.document.name
        if self.document.entry.bitcast is not None:
            yield from self._bitcasts(self.document.entry.bitcast)
            return
        for source, target in self.pairs():
            pair = Case(name, self.version, source, target)
            effective = [
                [(key, value) for value in parameter.values]
                for key, parameter in self.parameters()
                if self.matches(parameter.affects, pair)
            ]
            for modes in product(*self._calls(pair), *effective):
                yield Case(name, self.version, source, target, modes)
        for example_name, example in self.document.entry.examples.items():
            if self.version in example.versions:
                order = [key for key, _ in self.parameters() if key in example.with_]
                modes = tuple((key, example.with_[key]) for key in order)
                yield Case(name, self.version, example.from_, example.to, modes, example_name)


@cache
def edition(document: Document, version: str) -> Edition:
    """Resolve what a version inherits."""
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
    kept = entry.rules if entry.rules is not None else inherited
    rules = [entry.replace.get(rule, rule) for rule in kept if rule not in entry.remove]
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
    """Every version of a document, in its order."""
    for version in document.entry.versions:
        yield edition(document, version)
