"""Mistakes in a document that need no case to be seen: words that nothing stands behind."""

from __future__ import annotations

from collections.abc import Iterator

from specs.calls import FORM, MEMBER
from specs.formats import format_named, formats
from specs.model.document import (
    ABSENT,
    BY_BITS,
    CLASS_WORDS,
    ELEMENTS,
    HEX,
    KIND_WORDS,
    LASTS,
    PAIR_WORDS,
    RANKS,
    SHAPE_WORDS,
    TILE_RANKS,
    WIDTHS,
    Cell,
    DocumentEntry,
    ExampleEntry,
    OutcomeEntry,
    TableEntry,
    VersionEntry,
)
from specs.model.yaml_source import Location
from specs.suggestions import nearest


def mistakes(entry: DocumentEntry) -> Iterator[tuple[Location, str]]:
    """Each mistake with the place where it stands."""
    for name, parameter in entry.parameters.items():
        if parameter.default not in parameter.values:
            yield ("parameters", name, "default"), f"`{parameter.default}` is not among the values"
        if parameter.since is not None and parameter.since not in entry.versions:
            yield ("parameters", name, "since"), f"there is no version `{parameter.since}`"
        yield from _bad_conditions(entry, ("parameters", name, "affects"), parameter.affects)
    yield from _bad_calls(entry)
    yield from _bad_operation(entry)
    for name, rule in entry.rules.items():
        location = ("rules", name)
        yield from _bad_conditions(entry, (*location, "when"), rule.when)
        if (rule.then is None) == (rule.table is None):
            yield location, "a rule has either `then` or `table`"
        if rule.table is not None:
            yield from _bad_table(entry, (*location, "table"), rule.table)
        if rule.changed is not None:
            yield from _bad_changes(entry, (*location, "changed"), name)
    for name, tensor_rule in entry.tensors.items():
        for word in tensor_rule.when.version or ():
            if word not in entry.versions:
                message = f"there is no version `{word}`"
                yield ("tensors", name, "when", "version"), message
        for field, known in (("rank", RANKS), ("elements", ELEMENTS), ("tile_rank", TILE_RANKS)):
            for word in getattr(tensor_rule.when, field):
                if word not in known:
                    yield (
                        ("tensors", name, "when", field.replace("_", "-")),
                        f"unknown word `{word}`; the words are {', '.join(known)}",
                    )
    for name, version in entry.versions.items():
        yield from _bad_version(entry, ("versions", name), name, version)
    for name, example in entry.examples.items():
        yield from _bad_example(entry, ("examples", name), example)
    for word in entry.groups:
        if word in (*formats(), *KIND_WORDS):
            yield ("groups", word), f"`{word}` is a word already; give the group another name"
    for word in entry.pair_groups:
        if word in PAIR_WORDS:
            yield ("pair-groups", word), f"`{word}` is a word already; give the group another name"


def _bad_operation(entry: DocumentEntry) -> Iterator[tuple[Location, str]]:
    """A section that the operation needs and lacks, or has and does not need."""
    if (entry.operation == "bitcast") != (entry.bitcast is not None):
        yield ("operation",), "a document of bitcasts, and no other, has a section `bitcast`"
    if (entry.operation == "bitcast") == bool(entry.tensors):
        yield ("operation",), "every document but one of bitcasts has rules under `tensors`"
    for name, rule in entry.rules.items():
        for outcome in _outcomes(rule.then):
            yield from _idle_fields(entry, ("rules", name, "then"), outcome)
        for word in _words(rule.then):
            if word not in ("error", "unspecified") and (
                (entry.operation == "bitcast") != (word in SHAPE_WORDS)
            ):
                yield ("rules", name, "then"), f"`{word}` is no outcome of a {entry.operation}"
        if entry.operation == "bitcast" and (rule.then is None or isinstance(rule.then, dict)):
            yield ("rules", name), "the outcome of a bitcast is one word"


def _cells(then: Cell | dict[str, Cell] | None) -> Iterator[Cell]:
    cells = then.values() if isinstance(then, dict) else [then]
    yield from (cell for cell in cells if cell is not None)


def _words(then: Cell | dict[str, Cell] | None) -> Iterator[str]:
    for cell in _cells(then):
        if isinstance(cell, OutcomeEntry):
            yield from cell.either or [cell.is_ or "unspecified"]
        else:
            yield cell


def _outcomes(then: Cell | dict[str, Cell] | None) -> Iterator[OutcomeEntry]:
    yield from (cell for cell in _cells(then) if isinstance(cell, OutcomeEntry))


def _idle_fields(
    entry: DocumentEntry, location: Location, outcome: OutcomeEntry
) -> Iterator[tuple[Location, str]]:
    """Fields of an outcome that its word gives no meaning."""
    if outcome.class_ is not None and "error" not in (outcome.is_, *(outcome.either or ())):
        yield location, "`class` goes with `error` only"
    if outcome.bits != "kept" and not {outcome.is_, *(outcome.either or ())} & {*SHAPE_WORDS}:
        yield location, f"`bits` goes with {', '.join(SHAPE_WORDS)} only"
    if outcome.dtype == "target" and (entry.operation, outcome.is_) != ("call", "unspecified"):
        yield location, "`dtype` goes with the `unspecified` of a call only"


def _bad_calls(entry: DocumentEntry) -> Iterator[tuple[Location, str]]:
    if (entry.operation == "call") != (entry.receiver is not None):
        yield ("operation",), "a document of calls, and no other, has a `receiver`"
    if (entry.receiver is None) != (not entry.forms):
        yield ("forms",), "a `receiver` is called in `forms`"
    if entry.receiver is not None and (entry.receiver.is_ == "layer") != bool(
        entry.receiver.members
    ):
        yield ("receiver",), "a layer, and nothing else, has `members`"
    if entry.receiver is not None:
        is_layer = entry.receiver.is_ == "layer"
        if entry.receiver.runs is not None and not is_layer:
            yield ("receiver", "runs"), "a layer, and nothing else, runs"
        if entry.receiver.unchanged is not None and is_layer:
            yield ("receiver", "unchanged"), "a layer may be changed where it stands"
    for name, form in entry.forms.items():
        yield from _bad_conditions(entry, ("forms", name, "when"), form.when)
    for name, member in entry.receiver.members.items() if entry.receiver is not None else ():
        yield from _bad_conditions(entry, ("receiver", "members", name, "when"), member.when)


def _bad_example(
    entry: DocumentEntry, location: Location, example: ExampleEntry
) -> Iterator[tuple[Location, str]]:
    for version in example.versions:
        if version not in entry.versions:
            yield (*location, "versions"), f"there is no version `{version}`"
    for name, value in example.with_.items():
        if name not in entry.parameters:
            yield (*location, "with"), f"there is no parameter `{name}`"
        elif value not in entry.parameters[name].values:
            yield (*location, "with"), f"`{name}` has no value `{value}`"
    for dtype, codes in ((example.from_, example.table), (example.to, example.table.values())):
        form = format_named(dtype)
        for code in codes:
            if not HEX.fullmatch(code):
                message = f"`{code}` is not a quoted hex pattern such as '0x7f'"
                yield (*location, "table"), message
            elif int(code, 16) > form.mask or not form.is_numeric:
                yield (*location, "table"), f"`{code}` is no pattern of {dtype}"


def _bad_conditions(
    entry: DocumentEntry, location: Location, conditions: dict[str, list[str]]
) -> Iterator[tuple[Location, str]]:
    types = (*formats(), *entry.groups, *KIND_WORDS)
    pairs = (*PAIR_WORDS, *entry.pair_groups)
    known: dict[str, tuple[str, ...]] = {
        "from": types,
        "to": types,
        "pair": (*pairs, *(f"not-{word}" for word in pairs)),
    }
    for name, parameter in entry.parameters.items():
        known[name] = (*parameter.values, ABSENT)
    if entry.receiver is not None:
        known |= {FORM: tuple(entry.forms), MEMBER: (*entry.receiver.members, ABSENT)}
    if entry.bitcast is not None:
        known |= {"width": WIDTHS, "rank": RANKS, "last": LASTS}
        known |= {f"last{BY_BITS}": LASTS, "elements": ELEMENTS[:2]}
    for key, words in conditions.items():
        if key not in known:
            yield (*location, key), f"unknown condition `{key}`; {nearest(key, known)}".rstrip("; ")
            continue
        for word in words:
            if word not in known[key]:
                hint = nearest(word, known[key])
                what = "dtype or group" if key in ("from", "to") else "word"
                yield (*location, key), f"unknown {what} `{word}`; {hint}".rstrip("; ")


def _bad_table(
    entry: DocumentEntry, location: Location, table: TableEntry
) -> Iterator[tuple[Location, str]]:
    known: list[tuple[str, ...]] = []
    for name in table.columns:
        if name != "to" and name not in entry.parameters:
            yield (*location, "columns"), f"`{name}` is neither `to` nor a parameter"
            return
        known.append(tuple(formats()) if name == "to" else tuple(entry.parameters[name].values))
    for column in table.x:
        if len(column) != len(table.columns):
            yield (
                (*location, "x"),
                f"the column {column} has {len(column)} words, `columns` names"
                f" {len(table.columns)}: {', '.join(table.columns)}",
            )
            continue
        for word, words in zip(column, known, strict=True):
            if word not in words:
                hint = nearest(word, words)
                yield (*location, "x"), f"unknown column `{word}`; {hint}".rstrip("; ")
    classes = (*table.names, *entry.row_names, *CLASS_WORDS)
    for row, cells in table.rows.items():
        if row not in classes:
            hint = nearest(row, classes)
            message = f"unknown row `{row}`; {hint}a row is an input class or listed in `row-names`"
            yield (*location, "rows", row), message
        if isinstance(cells, list) and len(cells) != len(table.x):
            yield (
                (*location, "rows", row),
                f"the row `{row}` has {len(cells)} cells, the header {len(table.x)}",
            )


def _bad_changes(
    entry: DocumentEntry, location: Location, name: str
) -> Iterator[tuple[Location, str]]:
    """Cells that are marked as changed and are not, or the other way round."""
    rule = entry.rules[name]
    assert rule.changed is not None
    before = entry.rules.get(rule.changed.from_)
    if before is None or before.table is None or rule.table is None:
        yield (*location, "from"), f"`{rule.changed.from_}` is no rule with a table"
        return
    if (before.table.x, list(before.table.rows)) != (rule.table.x, list(rule.table.rows)):
        yield (*location, "from"), f"the table of `{rule.changed.from_}` has other rows or columns"
        return
    heads = ["/".join(column) for column in rule.table.x]
    found: dict[str, list[str]] = {}
    for row, cells in rule.table.rows.items():
        pairs = zip(_row(cells, heads), _row(before.table.rows[row], heads), strict=True)
        changed = [head for head, (new, old) in zip(heads, pairs, strict=True) if new != old]
        if changed:
            found[row] = changed
    if found != rule.changed.cells:
        cells = "; ".join(f"{row}: {', '.join(columns)}" for row, columns in found.items())
        yield (*location, "cells"), f"the cells that differ are {cells or 'none'}"


def _row(cells: Cell | list[Cell], heads: list[str]) -> list[Cell]:
    """A row's cells; one cell may stand for all columns."""
    return cells if isinstance(cells, list) else [cells] * len(heads)


def _bad_version(
    entry: DocumentEntry, location: Location, name: str, version: VersionEntry
) -> Iterator[tuple[Location, str]]:
    if version.extends is not None:
        earlier = list(entry.versions)[: list(entry.versions).index(name)]
        if version.extends not in earlier:
            yield (*location, "extends"), f"`{version.extends}` is no version above this one"
    elif version.from_ is None or version.to is None:
        yield location, "a version that extends none needs `from` and `to`"
    if version.pairs is not None and version.pairs not in entry.pair_groups:
        yield (*location, "pairs"), f"`{version.pairs}` is not among the pair groups"
    named = (*(version.rules or ()), *version.add, *version.remove)
    for rule in (*named, *version.replace, *version.replace.values()):
        if rule not in entry.rules:
            yield location, f"there is no rule `{rule}`; {nearest(rule, entry.rules)}".rstrip("; ")
    inherited = _inherited(entry, version.extends)
    for rule in (*version.remove, *version.replace):
        if inherited is not None and rule not in inherited:
            yield (
                location,
                f"`{rule}` is not inherited, so that it can be neither removed nor replaced",
            )
    for rule in version.add:
        if rule in version.remove:
            yield location, f"`{rule}` is both added and removed"


def _inherited(entry: DocumentEntry, version: str | None) -> set[str] | None:
    """The rules that a version passes on; None where its own line is broken."""
    if version is None or version not in entry.versions:
        return None
    made = entry.versions[version]
    base = set(entry.rules) if made.extends is None else _inherited(entry, made.extends)
    kept = set(made.rules) if made.rules is not None else base
    if kept is None:
        return None
    replaced = {made.replace.get(rule, rule) for rule in kept if rule not in made.remove}
    return replaced | set(made.add)
