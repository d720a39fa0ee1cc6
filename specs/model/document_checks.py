"""Checks of a document that need no case: unknown names, missing sections, malformed tables.

Every check yields pairs of a location in the YAML file and a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specs.cases import FORM, MEMBER
from specs.errors import Location, did_you_mean, unknown_word
from specs.formats import Format, every_format, format_named
from specs.model.document import (
    ABSENT,
    BLOCK_OPERATIONS,
    CLASS_WORDS,
    ELEMENTS,
    FOLLOWED,
    HEX,
    KIND_WORDS,
    NOT,
    PAIR_WORDS,
    RANKS,
    SECTIONS,
    SHAPE_WORDS,
    SHAPED,
    TILE_RANKS,
    ChangedCellsEntry,
    DocumentEntry,
    ExampleEntry,
    OutcomeEntry,
    ParameterEntry,
    RuleEntry,
    TableCell,
    TableEntry,
    TensorConditions,
    VersionEntry,
)
from specs.model.step_entry import STEPS

Errors = Iterator[tuple[Location, str]]
MACHINE_WORD = 64
"""The bits of the widest patterns that are kept as integers; wider ones are raw bytes."""


def document_errors(entry: DocumentEntry) -> Errors:
    """Yield every error in a document that can be found without resolving its cases."""
    for name, parameter in entry.parameters.items():
        yield from _parameter_errors(entry, ("parameters", name), parameter)
    yield from _call_errors(entry)
    yield from _operation_errors(entry)
    for name, rule in entry.rules.items():
        yield from _rule_errors(entry, ("rules", name), rule)
    for name, tensor_rule in entry.tensors.items():
        yield from _tensor_errors(entry, ("tensors", name, "when"), tensor_rule.when)
    for name, version in entry.versions.items():
        yield from _version_errors(entry, ("versions", name), name, version)
    for name, example in entry.examples.items():
        yield from _example_errors(entry, ("examples", name), example)
    for section, names, reserved in (
        ("groups", entry.groups, (*every_format(), *KIND_WORDS)),
        ("pair-groups", entry.pair_groups, PAIR_WORDS),
    ):
        for name in names:
            if name in reserved:
                message = f"`{name}` is a built-in word; give the group another name"
                yield (section, name), message
    for name in entry.pair_groups:
        if name.startswith(NOT):
            message = f"`{name}` would mean all pairs outside of a group; leave out `{NOT}`"
            yield ("pair-groups", name), message


def _unknown_version(entry: DocumentEntry, version: str) -> str:
    return f"unknown version `{version}`; the versions are {', '.join(entry.versions)}"


def _parameter_errors(
    entry: DocumentEntry, location: Location, parameter: ParameterEntry
) -> Errors:
    if parameter.default not in parameter.values:
        message = f"default `{parameter.default}` is not one of the parameter's `values`"
        yield (*location, "default"), message
    for value, conditions in parameter.only.items():
        if value not in parameter.values:
            yield (*location, "only"), unknown_word("value", value, parameter.values)
        yield from _condition_errors(entry, (*location, "only", value), conditions)
    if parameter.since is not None and parameter.since not in entry.versions:
        yield (*location, "since"), _unknown_version(entry, parameter.since)
    yield from _condition_errors(entry, (*location, "affects"), parameter.affects)


def _rule_errors(entry: DocumentEntry, location: Location, rule: RuleEntry) -> Errors:
    yield from _condition_errors(entry, (*location, "when"), rule.when)
    if [rule.then, rule.table, rule.gives, rule.blocks or None].count(None) != 3:
        yield location, "a rule needs one of `then`, `table`, `gives` and `blocks`, and not more"
    if rule.table is not None:
        yield from _table_errors(entry, (*location, "table"), rule.table)
    if rule.changed is not None:
        yield from _changed_errors(entry, (*location, "changed"), rule, rule.changed)


def _tensor_errors(entry: DocumentEntry, location: Location, when: TensorConditions) -> Errors:
    for word in when.version or ():
        if word not in entry.versions:
            yield (*location, "version"), _unknown_version(entry, word)
    for key, words, known in (
        ("rank", when.rank, RANKS),
        ("elements", when.elements, ELEMENTS),
        ("tile-rank", when.tile_rank, TILE_RANKS),
    ):
        for word in words:
            if word not in known:
                yield (*location, key), unknown_word("word", word, known)


def _operation_errors(entry: DocumentEntry) -> Errors:
    """Yield errors for sections, steps and outcomes that are missing or of another operation."""
    for section in SECTIONS:
        if (entry.operation in section.operations) != (getattr(entry, section.name) is not None):
            yield ("operation",), section.mismatch.format(entry.operation)
    is_shaped = entry.operation in SHAPED
    if is_shaped and entry.tensors:
        message = f"a {entry.operation} document has no rules under `tensors`; delete them"
        yield ("operation",), message
    is_of_blocks = entry.operation in BLOCK_OPERATIONS
    for name, rule in entry.rules.items():
        if is_of_blocks != bool(rule.blocks):
            message = "rules of blocks say `blocks`, and no other rules do"
            yield ("rules", name), message
    if not is_shaped and not is_of_blocks and not entry.tensors:
        message = f"a {entry.operation} document needs rules under `tensors`"
        yield ("operation",), f"{message}, which say what happens to a tensor's shape"
    yield from _step_errors(entry)
    for name, rule in entry.rules.items():
        location = ("rules", name, "then")
        for cell in _cells(rule.then):
            if isinstance(cell, OutcomeEntry):
                yield from _outcome_errors(entry, location, cell)
            for word in _outcome_words(cell):
                if word not in ("error", "unspecified") and is_shaped != (word in SHAPE_WORDS):
                    yield location, f"`{word}` is not an outcome of a {entry.operation}"
        if is_shaped and (rule.then is None or isinstance(rule.then, dict)):
            message = f"the outcome of a {entry.operation} is one word for all inputs"
            yield ("rules", name), f"{message}: write `then: WORD`"


def _step_errors(entry: DocumentEntry) -> Errors:
    """Yield errors for rules that lack a required step, or have a step of another operation."""
    steps = STEPS.get(entry.operation, ())
    for name, rule in entry.rules.items():
        if rule.step is None and steps:
            yield ("rules", name), f"a rule of {entry.operation} needs `step` and `gives`"
        if rule.step is not None and rule.step not in steps:
            known = f"; it has {', '.join(steps)}" if steps else ""
            message = f"{entry.operation} has no step `{rule.step}`{known}"
            yield ("rules", name, "step"), message


def _cells(then: TableCell | dict[str, TableCell] | None) -> Iterator[TableCell]:
    cells = then.values() if isinstance(then, dict) else [then]
    yield from (cell for cell in cells if cell is not None)


def _outcome_words(cell: TableCell) -> list[str]:
    if isinstance(cell, OutcomeEntry):
        return cell.either or [cell.is_ or "unspecified"]
    return [cell]


def _outcome_errors(entry: DocumentEntry, location: Location, outcome: OutcomeEntry) -> Errors:
    """Yield errors for fields of an outcome that have no meaning beside its word."""
    words = set(_outcome_words(outcome))
    if outcome.class_ is not None and "error" not in words:
        yield location, "`class` is allowed beside `error` only"
    if outcome.bits != "kept" and not words & {*SHAPE_WORDS}:
        yield location, f"`bits` is allowed beside {', '.join(SHAPE_WORDS)} only"
    if outcome.dtype == "target" and (entry.operation, outcome.is_) != ("call", "unspecified"):
        yield location, "`dtype` is allowed beside the `unspecified` of a call only"


def _call_errors(entry: DocumentEntry) -> Errors:
    receiver = entry.receiver
    if (entry.operation == "call") != (receiver is not None):
        message = "`operation: call` and a section `receiver` require each other"
        yield ("operation",), f"{message}; add the one that is missing"
    if (receiver is None) != (not entry.forms):
        message = "`receiver` and `forms` require each other; `forms` lists the calls on a receiver"
        yield ("forms",), message
    if receiver is not None:
        is_layer = receiver.is_ == "layer"
        if is_layer != bool(receiver.members):
            yield ("receiver",), "a layer needs `members`; other receivers have none"
        if receiver.runs is not None and not is_layer:
            yield ("receiver", "runs"), "`runs` is allowed for a layer only"
        if receiver.unchanged is not None and is_layer:
            message = "`unchanged` is not allowed for a layer, which may be converted in place"
            yield ("receiver", "unchanged"), message
    for name, form in entry.forms.items():
        yield from _condition_errors(entry, ("forms", name, "when"), form.when)
    for name, member in receiver.members.items() if receiver is not None else ():
        yield from _condition_errors(entry, ("receiver", "members", name, "when"), member.when)


def _example_errors(entry: DocumentEntry, location: Location, example: ExampleEntry) -> Errors:
    for version in example.versions:
        if version not in entry.versions:
            yield (*location, "versions"), _unknown_version(entry, version)
    for name, value in example.with_.items():
        if name not in entry.parameters:
            yield (*location, "with"), unknown_word("parameter", name, entry.parameters)
        elif value not in entry.parameters[name].values:
            values = entry.parameters[name].values
            yield (*location, "with"), unknown_word(f"value of `{name}`", value, values)
    for dtype, codes in ((example.from_, example.table), (example.to, example.table.values())):
        fmt = format_named(dtype)
        for code in codes:
            if not HEX.fullmatch(code):
                message = f"`{code}` is not a quoted hex pattern such as '0x7f'"
                yield (*location, "table"), message
            elif int(code, 16) > fmt.mask or not _has_worked_patterns(fmt):
                yield (*location, "table"), f"`{code}` is not a pattern of {dtype}"


def _has_worked_patterns(fmt: Format) -> bool:
    """Return whether a worked example can have patterns of a format; complex128 is too wide.

    Only examples decide casts of complex numbers: no input class and no outcome is about them.
    """
    return fmt.is_numeric or (fmt.kind == "complex" and fmt.bits <= MACHINE_WORD)


def _condition_errors(
    entry: DocumentEntry, location: Location, conditions: dict[str, list[str]]
) -> Errors:
    types = (*every_format(), *entry.groups, *KIND_WORDS)
    pairs = (*PAIR_WORDS, *entry.pair_groups)
    known: dict[str, tuple[str, ...]] = {
        "from": types,
        "to": types,
        "pair": (*pairs, *(f"{NOT}{word}" for word in pairs)),
    }
    for name, parameter in entry.parameters.items():
        known[name] = (*parameter.values, ABSENT)
    for section in SECTIONS:
        if getattr(entry, section.name) is not None:
            known |= section.conditions
    if entry.receiver is not None:
        known |= {FORM: tuple(entry.forms), MEMBER: (*entry.receiver.members, ABSENT)}
    for key, words in conditions.items():
        if key not in known:
            yield (*location, key), unknown_word("condition", key, known)
            continue
        for word in words:
            if word not in known[key]:
                noun = "dtype or group" if key in ("from", "to") else "word"
                yield (*location, key), unknown_word(noun, word, known[key])


def _table_errors(entry: DocumentEntry, location: Location, table: TableEntry) -> Errors:
    known: list[tuple[str, ...]] = []
    for name in table.columns:
        if name != "to" and name not in entry.parameters:
            yield (*location, "columns"), f"`{name}` is neither `to` nor a parameter"
            return
        known.append(
            tuple(every_format()) if name == "to" else tuple(entry.parameters[name].values)
        )
    for column in table.x:
        if len(column) != len(table.columns):
            yield (
                (*location, "x"),
                f"column {column} needs {len(table.columns)} words, one for each name in `columns`"
                f" ({', '.join(table.columns)}); it has {len(column)}",
            )
            continue
        for word, words in zip(column, known, strict=True):
            if word not in words:
                yield (*location, "x"), unknown_word("column", word, words)
    classes = (*table.names, *entry.row_names, *CLASS_WORDS)
    for row, cells in table.rows.items():
        if row not in classes:
            hint = did_you_mean(row, classes)
            message = f"unknown row `{row}`; {hint}a row is an input class or a name in `row-names`"
            yield (*location, "rows", row), message
        if isinstance(cells, list) and len(cells) != len(table.x):
            yield (
                (*location, "rows", row),
                f"row `{row}` needs {len(table.x)} cells, one per column in `x`;"
                f" it has {len(cells)}",
            )


def _changed_errors(
    entry: DocumentEntry, location: Location, rule: RuleEntry, changed: ChangedCellsEntry
) -> Errors:
    """Yield errors if `changed` does not name exactly the cells that differ from an older table.

    That is the table of the rule under `from` in ``changed``.
    """
    before = entry.rules.get(changed.from_)
    if before is None or before.table is None or rule.table is None:
        yield (*location, "from"), f"`{changed.from_}` is not a rule with a table"
        return
    if (before.table.x, list(before.table.rows)) != (rule.table.x, list(rule.table.rows)):
        message = f"the table of `{changed.from_}` has different rows or columns"
        yield (*location, "from"), message
        return
    heads = ["/".join(column) for column in rule.table.x]
    differing: dict[str, list[str]] = {}
    for row, cells in rule.table.rows.items():
        new_cells = _one_per_column(cells, heads)
        old_cells = _one_per_column(before.table.rows[row], heads)
        cells_by_head = zip(heads, new_cells, old_cells, strict=True)
        columns = [head for head, new, old in cells_by_head if new != old]
        if columns:
            differing[row] = columns
    if differing != changed.cells:
        text = "; ".join(f"{row}: {', '.join(columns)}" for row, columns in differing.items())
        message = f"`cells` must name exactly the cells that differ: {text or 'none'}"
        yield (*location, "cells"), message


def _one_per_column(cells: TableCell | list[TableCell], heads: list[str]) -> list[TableCell]:
    return cells if isinstance(cells, list) else [cells] * len(heads)


def raw_errors(data: Mapping[str, Any]) -> Errors:
    """Yield errors in plain data that pydantic would report at another place.

    They are numbers where an outcome or a pattern belongs, and pairs in place of a group's name.
    """
    for name, version in _entries(data, "versions"):
        if not isinstance(version.get("pairs", ""), str):
            message = "`pairs` is the name of a group: write `pairs: NAME`, and"
            group = "`pair-groups: {NAME: {float32: [int8]}}` beside `versions`"
            yield ("versions", name, "pairs"), f"{message} {group}"
    for name, rule in _entries(data, "rules"):
        yield from _numbers(("rules", name, "then"), rule.get("then"))
        if isinstance(table := rule.get("table"), dict):
            yield from _numbers(("rules", name, "table", "rows"), table.get("rows"))
    for name, worked in _entries(data, "examples"):
        yield from _numbers(("examples", name, "table"), worked.get("table"))


def _entries(data: Mapping[str, Any], section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = data.get(section)
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if isinstance(entry, dict):
            yield name, entry


def _numbers(location: Location, value: object) -> Errors:
    match value:
        case bool():
            return
        case int():
            key = next(each for each in reversed(location) if isinstance(each, str))
            yield location, f"`{key}` has a number; write a pattern in quotes, such as '0x7f'"
        case list():
            for index, each in enumerate(value):
                yield from _numbers((*location, index), each)
        case dict():
            for key, each in value.items():
                if key != "lines":
                    yield from _numbers((*location, key), each)


def _version_errors(
    entry: DocumentEntry, location: Location, name: str, version: VersionEntry
) -> Errors:
    if version.extends is not None:
        earlier = list(entry.versions)[: list(entry.versions).index(name)]
        if version.extends not in earlier:
            yield (*location, "extends"), f"`{version.extends}` is not a version above this one"
    elif version.from_ is None or version.to is None:
        yield location, "a version without `extends` needs `from` and `to`, also with `pairs`"
    if (version.follows is not None) != any(r.then == FOLLOWED for r in entry.rules.values()):
        message = "a version's `follows` and a rule with `then: followed` require each other"
        yield location, message
    if version.pairs is not None and version.pairs not in entry.pair_groups:
        message = (
            f"unknown pair group `{version.pairs}`; define it, as in "
            f"`pair-groups: {{{version.pairs}: {{float32: [int8]}}}}`"
        )
        yield (*location, "pairs"), message
    named = (*(version.rules or ()), *version.add, *version.remove)
    for rule in (*named, *version.replace, *version.replace.values()):
        if rule not in entry.rules:
            yield location, unknown_word("rule", rule, entry.rules)
    inherited = _inherited(entry, version.extends)
    for rule in (*version.remove, *version.replace):
        if inherited is not None and rule not in inherited:
            yield location, f"`{rule}` is not inherited, so it cannot be removed or replaced"
    for rule in version.add:
        if rule in version.remove:
            yield location, f"`{rule}` is both added and removed; delete one of the two"


def _inherited(entry: DocumentEntry, version: str | None) -> set[str] | None:
    """Return the names of a version's rules; None if it is None, or it or a base is unknown."""
    if version is None or version not in entry.versions:
        return None
    changes = entry.versions[version]
    base = set(entry.rules) if changes.extends is None else _inherited(entry, changes.extends)
    start = set(changes.rules) if changes.rules is not None else base
    if start is None:
        return None
    replaced = {changes.replace.get(rule, rule) for rule in start if rule not in changes.remove}
    return replaced | set(changes.add)
