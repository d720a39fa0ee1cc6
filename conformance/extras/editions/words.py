"""Changes between editions as lines of text, and as data for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import TextWrapper
from typing import Any

from conformance.extras.editions.case_changes import AN_ANSWER, EditionChange, ListedInputs
from conformance.extras.editions.edition_changes import ChangeGroup, EditionChanges, RuleListChange
from conformance.extras.editions.edition_pairs import CasePair, EditionPair
from conformance.extras.editions.effects import Answering, Effect
from conformance.extras.editions.input_set import EVERY_INPUT
from reports.counterexample.drawing import datum_with_value
from reports.findings.finding_text import counted, datum_words, dtype_pairs_words
from reports.grading.divergences import simplicity
from reports.problems import ShownDatum
from specs.cases import Case
from specs.formats import format_named

WIDTH = 100
"""Columns of a terminal."""
MOST_BLOCKS = 6
"""The most pairs of rules whose changes are shown in full."""
Groups = Sequence[Sequence[ChangeGroup]]
EFFECTS = ((True, "breaks"), (False, "mends"))
"""What a change does to a backend, in a word: make its answers wrong, or right."""
NAMED = 10
"""The columns of the word that begins a line."""


def change_lines(
    title: str, changes: EditionChanges, backends: Sequence[Answering]
) -> Iterator[str]:
    """Yield lines about the changes: how many, then each pair of rules with its simplest input.

    Pairs of dtypes that only one edition lists have one line for each rule. ``title`` names both
    editions, and ``backends`` are those whose answers were looked at.
    """
    yield from _wrapped("", f"{title}: {_headline(changes)}")
    yield from _other_lines(changes)
    blocks = _blocks(_without(changes.groups, {*changes.listed, *changes.unlisted}))
    for shown in blocks[:MOST_BLOCKS]:
        yield ""
        yield from _block_lines(shown)
    if more := blocks[MOST_BLOCKS:]:
        yield ""
        names = ", ".join(map(_rules, more))
        yield from _wrapped("", f"{counted(len(more), 'more change')} (--json has all): {names}")
    for word, pairs in (("listed", changes.listed), ("unlisted", changes.unlisted)):
        if groups := _of_pairs(changes.groups, set(pairs)):
            yield ""
            yield f"pairs {word} now, by rule:"
            yield from _brief_lines(groups)
    for each in changes.rules:
        yield ""
        yield from _rule_list_lines(each)
    if changes.is_by_rules:
        operation = changes.pairs[0].old.document.entry.operation
        told = f"documents of `{operation}` are compared by their rules, not input by input"
        yield from _wrapped("", told)
    if blocks and backends:
        yield ""
        yield from _backend_lines(blocks, backends)


def _of_pairs(groups: Iterable[ChangeGroup], pairs: set[tuple[str, str]]) -> list[ChangeGroup]:
    """Return the groups with only their cases of some pairs of dtypes; none without a case."""
    found = []
    for group in groups:
        cases = tuple(each for each in group.cases if _dtypes(each.cases) in pairs)
        if cases:
            effects = tuple(each for each in group.effects if _dtypes(each.cases) in pairs)
            found.append(ChangeGroup(group.change, cases, effects))
    return found


def _without(groups: Iterable[ChangeGroup], pairs: set[tuple[str, str]]) -> list[ChangeGroup]:
    groups = list(groups)
    every = {_dtypes(each.cases) for group in groups for each in group.cases}
    return _of_pairs(groups, every - pairs)


def _dtypes(cases: CasePair) -> tuple[str, str]:
    return cases.new.source, cases.new.target


def _brief_lines(groups: Sequence[ChangeGroup]) -> Iterator[str]:
    """Yield a line for each two rules: how many cases they take, and the simplest input."""
    for block in _blocks(groups):
        cases = {each.cases for group in block for each in group.cases}
        given, was, now = _example(block[0])
        told = f"{_rules(block)}: {counted(len(cases), 'case')}, such as {given}: {was} → {now}"
        yield from _wrapped("  ", told)


def _headline(changes: EditionChanges) -> str:
    compared = counted(changes.compared, "case")
    if not changes.changed:
        return f"none of {compared} changes"
    change = "changes" if changes.changed == 1 else "change"
    return f"{changes.changed:,} of {compared} {change}"


def _other_lines(changes: EditionChanges) -> Iterator[str]:
    """Yield lines about added and removed pairs and cases, renamed rules and changed sections."""
    for word, pairs in (("listed", changes.listed), ("unlisted", changes.unlisted)):
        if pairs:
            told = f"{counted(len(pairs), 'pair')}: {dtype_pairs_words(pairs)}"
            yield from _named(word, told)
    for word, cases in (("new", changes.new), ("gone", changes.gone)):
        if cases:
            yield from _named(word, f"{counted(len(cases), 'case')}, such as {cases[0].id}")
    if changes.renamed:
        told = f"{counted(changes.renamed, 'case')} by other rules or clauses"
        yield from _named("same", told)
    if changes.entries:
        yield from _named("besides", ", ".join(changes.entries))


def _blocks(groups: Iterable[ChangeGroup]) -> list[list[ChangeGroup]]:
    """Return the groups of the same two rules together, in the order of their first group."""
    blocks: dict[tuple[str, str], list[ChangeGroup]] = {}
    for each in groups:
        blocks.setdefault((each.change.old.rule, each.change.new.rule), []).append(each)
    return [*blocks.values()]


def _rules(block: Sequence[ChangeGroup]) -> str:
    change = block[0].change
    old, new = change.old.rule, change.new.rule
    return old if old == new else f"{old} → {new}"


def _block_lines(block: Sequence[ChangeGroup]) -> Iterator[str]:
    cases = dict.fromkeys(each.cases for group in block for each in group.cases)
    pairs = dict.fromkeys(map(_dtypes, cases))
    told = f"{_rules(block)}: {counted(len(cases), 'case')}, {dtype_pairs_words(pairs)}"
    yield from _wrapped("", told)
    was, now = (
        "; ".join(dict.fromkeys(clauses))
        for clauses in (
            [each.change.old.clause for each in block],
            [each.change.new.clause for each in block],
        )
    )
    if was == now:
        yield from _named("clause", was)
    else:
        yield from _named("was by", was)
        yield from _named("now by", now)
    for group in block:
        yield from _group_lines(group)
    yield from _effect_lines([effect for group in block for effect in group.effects])


def _group_lines(group: ChangeGroup) -> Iterator[str]:
    given, was, now = _example(group)
    levels = group.change.old.level, group.change.new.level
    changed = f", {levels[0]} → {levels[1]}" if levels[0] != levels[1] else ""
    told = f"{was} as before" if was == now else f"{was} → {now}"
    yield from _named(group.change.direction, f"{given}: {told}{changed}")
    yield from _named("", _extent(group))


def _example(group: ChangeGroup) -> tuple[str, str, str]:
    """Return words for the simplest input, for what was allowed, and for what is allowed now."""
    simplest = group.simplest
    case = simplest.cases.new
    given = _shown(case.source, simplest.inputs.simplest)
    return f"{given} of {_pair(case)}", *allowed_words(simplest)


def _extent(group: ChangeGroup) -> str:
    """Return words for the changed inputs of the simplest case, and how many cases change so."""
    inputs = group.simplest.inputs
    among = counted(inputs.count, "input")
    if isinstance(inputs, ListedInputs):
        among = f"{inputs.count:,} of {counted(inputs.compared, 'listed input')}"
    where = inputs.words()
    told = f"every input ({inputs.count:,})" if where == EVERY_INPUT else f"{among}: {where}"
    return told if len(group.cases) == 1 else f"{told}; so in {counted(len(group.cases), 'case')}"


def allowed_words(change: EditionChange) -> tuple[str, str]:
    """Return words for what was and for what is allowed for the simplest input of a change."""
    target = change.cases.new.target
    was, now = (
        _allowed(target, allowed, best)
        for allowed, best in (
            (change.was, change.was_best),
            (change.now, change.now_best),
        )
    )
    return was, now


def _allowed(target: str, allowed: Sequence[str], best: Sequence[str]) -> str:
    every, recommended = (
        " or ".join(each if each == AN_ANSWER else datum_words(target, each) for each in words)
        for words in (allowed, best)
    )
    return every if every == recommended else f"{every}, recommended {recommended}"


def _effect_lines(effects: Sequence[Effect]) -> Iterator[str]:
    """Yield which backends give answers that become wrong, and which ones that become right."""
    for breaks, word in EFFECTS:
        here = [each for each in effects if each.breaks == breaks]
        claimed = _by_backend(each for each in here if each.is_claimed)
        others = [_name(each) for each, *_ in _by_backend(e for e in here if not e.is_claimed)]
        told = [_reaches(claimed)]
        if claimed:
            told.append(_sample(min(claimed[0], key=_simplicity)))
        if others:
            told.append(f"without a claim {', '.join(others)}")
        if here:
            yield from _named(word, "; ".join(filter(None, told)))


def _by_backend(effects: Iterable[Effect]) -> list[list[Effect]]:
    found: dict[str, list[Effect]] = {}
    for each in effects:
        found.setdefault(each.backend, []).append(each)
    return [*found.values()]


def _name(effect: Effect) -> str:
    return f"{effect.backend} {effect.version}"


def _simplicity(effect: Effect) -> tuple[int, int, int]:
    return simplicity(format_named(effect.cases.new.source), effect.simplest)


def _reaches(by_backend: Iterable[Sequence[Effect]]) -> str:
    """Return how many inputs of how many cases concern each backend; equal numbers stand once."""
    names: dict[str, list[str]] = {}
    for effects in by_backend:
        total = sum(each.inputs for each in effects)
        least = "" if all(each.is_whole for each in effects) else "at least "
        reach = f"{least}{counted(total, 'input')} in {_cases(effects)}"
        names.setdefault(reach, []).append(_name(effects[0]))
    return "; ".join(f"{', '.join(each)}: {reach}" for reach, each in names.items())


def _cases(effects: Sequence[Effect]) -> str:
    return counted(len({each.cases for each in effects}), "case")


def _sample(effect: Effect) -> str:
    case = effect.cases.new
    answer = "an error" if effect.answer is None else _shown(case.target, effect.answer)
    given = _shown(case.source, effect.simplest)
    return f"{effect.backend} gives {answer} for {given} of {_pair(case)}"


def _backend_lines(blocks: Groups, backends: Sequence[Answering]) -> Iterator[str]:
    """Yield in how many cases each backend that claims the document breaks, and who answered."""
    effects = [
        each for block in blocks for group in block for each in group.effects if each.is_claimed
    ]
    for breaks, word in EFFECTS:
        here = _by_backend(each for each in effects if each.breaks == breaks)
        told = ", ".join(f"{_name(each[0])} in {_cases(each)}" for each in here)
        if len(blocks) > 1 or not here:
            yield from _wrapped("", f"{word} {told or 'no backend that claims the document'}")
    if recorded := [each for each in backends if each.date]:
        versions = ", ".join(f"{each.name} {each.version}" for each in recorded)
        told = f"recorded {recorded[0].date}, in default modes (--backend NAME asks anew)"
        yield from _wrapped("", f"{told}: {versions}")


def _rule_list_lines(change: RuleListChange) -> Iterator[str]:
    cases = [each.new for each in change.cases]
    pairs = dict.fromkeys((each.source, each.target) for each in cases)
    yield from _wrapped("", f"{counted(len(cases), 'case')}, {dtype_pairs_words(pairs)}")
    for word, rules in (("gone", change.gone), ("new", change.new)):
        for each in rules:
            yield from _named(word, f"{each.rule}, {each.level}: {each.inputs}")
    for name in change.edited:
        yield from _named("edited", name)
    yield from _named("such as", cases[0].id)


def _named(word: str, text: str) -> list[str]:
    return _wrapped(f"  {word:<{NAMED}}"[: NAMED + 2], text, " " * (NAMED + 2))


def _wrapped(start: str, text: str, more: str = "    ") -> list[str]:
    wrapper = TextWrapper(
        width=WIDTH,
        initial_indent=start,
        subsequent_indent=more,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(text)


def _shown(dtype: str, datum: ShownDatum) -> str:
    form = format_named(dtype)
    return datum_with_value(form, datum)


def _pair(case: Case) -> str:
    modes = "".join(f", {name}:{value}" for name, value in case.modes)
    return f"{case.source} to {case.target}{modes}"


def change_records(
    changes: EditionChanges, backends: Sequence[Answering]
) -> Iterator[dict[str, Any]]:
    """Yield an object about both editions, then one for each change and each change of rules.

    ``backends`` are those whose answers were looked at.
    """
    yield {
        "kind": "editions",
        "editions": [_edition_names(each) for each in changes.pairs],
        "compared_by": "rules" if changes.is_by_rules else "inputs",
        "backends": [
            {"name": each.name, "version": each.version, "recorded": each.date or None}
            for each in backends
        ],
        "cases": changes.compared,
        "changed": changes.changed,
        "renamed": changes.renamed,
        "listed": [list(each) for each in changes.listed],
        "unlisted": [list(each) for each in changes.unlisted],
        "new": [each.id for each in changes.new],
        "gone": [each.id for each in changes.gone],
        "besides": list(changes.entries),
    }
    for group in changes.groups:
        yield {
            "kind": "change",
            "direction": group.change.direction,
            "old": group.change.old._asdict(),
            "new": group.change.new._asdict(),
            "inputs": group.count,
            "cases": [_case_record(each) for each in group.cases],
            "backends": [_effect_record(each) for each in group.effects],
        }
    for change in changes.rules:
        yield {
            "kind": "rules",
            "gone": [each._asdict() for each in change.gone],
            "new": [each._asdict() for each in change.new],
            "edited": list(change.edited),
            "cases": [_case_ids(each) for each in change.cases],
        }


def _edition_names(pair: EditionPair) -> dict[str, str]:
    old, new = (f"{each.document.name}:{each.version}" for each in pair)
    return {"old": old, "new": new}


def _case_ids(cases: CasePair) -> dict[str, str]:
    return {"old": cases.old.id, "new": cases.new.id}


def _case_record(each: EditionChange) -> dict[str, Any]:
    inputs = each.inputs
    return {
        **_case_ids(each.cases),
        "inputs": inputs.count,
        "of": inputs.compared if isinstance(inputs, ListedInputs) else None,
        "where": inputs.words(),
        "simplest": _datum(each.cases.new.source, inputs.simplest),
        "was": list(each.was),
        "was_recommended": list(each.was_best),
        "now": list(each.now),
        "now_recommended": list(each.now_best),
    }


def _effect_record(effect: Effect) -> dict[str, Any]:
    case = effect.cases.new
    answer = {"error": True} if effect.answer is None else _datum(case.target, effect.answer)
    return {
        "backend": effect.backend,
        "version": effect.version,
        "claimed": effect.is_claimed,
        "effect": "breaks" if effect.breaks else "mends",
        "verdict": effect.verdict,
        **_case_ids(effect.cases),
        "inputs": effect.inputs,
        "compared": effect.compared,
        "all": effect.is_whole,
        "simplest": _datum(case.source, effect.simplest),
        "answer": answer,
    }


def _datum(dtype: str, datum: ShownDatum) -> Any:
    return {"text": datum} if isinstance(datum, str) else format_named(dtype).hexadecimal(datum)
