"""Resolves a case to its ruling: which rule takes which inputs, and the outcome of each.

Every ruling is proved total and unambiguous when it is made. Where single inputs have no rules,
the family of the operation finds the rules of a case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple, TypeVar

from specs.branches import AnswerDue, Branch, Ruling
from specs.cases import Case
from specs.editions import Edition, edition
from specs.errors import CastigateError, DocumentError, Location
from specs.formats import Format, format_named
from specs.house_rules import decided
from specs.loader import Document, document_named
from specs.model.document import (
    ABSENT,
    FOLLOWED,
    SHAPED,
    ExampleEntry,
    RuleEntry,
    TableCell,
    outcome_entry,
)
from specs.model.vocabulary import INPUT_CLASSES, OTHERWISE, Rounding, atoms
from specs.operations import is_by_input, of_family
from specs.outcomes import (
    Anything,
    Behaves,
    Either,
    Exactly,
    Nan,
    Outcome,
    ParsesTo,
    PlainText,
    Rejected,
    Round,
    Wrap,
    outcome_of,
)
from specs.totality import first_impossible, partition_atoms

EVERY_INPUT = "every input"
ANSWER = "answer"
"""The outcome word of a rule about the whole case: it requires an answer, so an error breaks it."""


Renamed = TypeVar("Renamed", Branch, AnswerDue)
RULINGS_KEPT = 512
"""How many rulings are cached: cases come pair by pair, and each needs its ruling many times."""


@lru_cache(RULINGS_KEPT)
def ruling(case: Case) -> Ruling:
    """Return the ruling of a case of a shipped document; raise as ``rule_case`` does."""
    return rule_case(document_named(case.document), case)


def rule_case(document: Document, case: Case) -> Ruling:
    """Resolve a case of a document to its ruling.

    Raise DocumentError if the rules leave a gap, overlap, round in several ways, or have an outcome
    that is impossible. Raise CastigateError if single inputs of the case have no rules.
    """
    operation = document.entry.operation
    if operation in SHAPED:
        message = f"{case.id} is a {operation}; run `castigate explain` to see its result"
        raise CastigateError(message)
    if not is_by_input(operation):
        message = f"{case.id} is no cast: it asks to {operation} tensors"
        raise CastigateError(f"{message}; use castigate run or pytest conformance")
    version = edition(document, case.version)
    if case.example is not None:
        return _example(document.entry.examples[case.example], case)
    target = format_named(case.target)
    rules = [
        (name, rule)
        for name in version.rules_between(case.source, case.target)
        if version.matches((rule := document.entry.rules[name]).when, case)
    ]
    if any(rule.then == FOLLOWED for _, rule in rules):
        return _followed(document, case, rules)
    branches = list(_branches(version, case, target, rules))
    found = replace(_prove(document, case, branches), answer_due=_answer_due(document, case, rules))
    if document.house is None:
        return found
    return decided(document.house, case, found)


def _followed(document: Document, case: Case, rules: list[tuple[str, RuleEntry]]) -> Ruling:
    """Return the ruling of the same cast in the document that this version follows.

    A mode that the case lacks is the default there.

    ``rules`` are those of this version that apply to the case. It must be a single one, whose name
    the branches get; raise DocumentError if there are several.
    """
    if len(rules) > 1:
        names = " and ".join(name for name, _ in rules)
        raise document.source.error(("rules", rules[1][0]), f"overlap: {case.id}: {names}")
    name, rule = rules[0]
    followed = str(document.entry.versions[case.version].follows)
    other, _, version = followed.partition(":")
    there = edition(document_named(other), version)
    pair = Case(other, version, case.source, case.target)
    modes = tuple(
        (key, case.mode.get(key, parameter.default))
        for key, parameter in there.parameters()
        if there.matches(parameter.affects, pair)
    )
    found = ruling(replace(pair, modes=modes))

    def named(part: Renamed) -> Renamed:
        return replace(part, rule=name, clause=f"{rule.clause}: {followed}, {part.clause}")

    branches = tuple(map(named, found.branches))
    return replace(
        found, branches=branches, answer_due=found.answer_due and named(found.answer_due)
    )


def _answer_due(
    document: Document, case: Case, rules: list[tuple[str, RuleEntry]]
) -> AnswerDue | None:
    due = [AnswerDue(name, rule.clause, rule.level) for name, rule in rules if rule.then == ANSWER]
    if len(due) > 1:
        message = f"overlap: {due[0].rule} and {due[1].rule} both require an answer to {case.id}"
        raise document.source.error(("rules", due[1].rule), message)
    return due[0] if due else None


def _branches(
    version: Edition, case: Case, target: Format, rules: list[tuple[str, RuleEntry]]
) -> Iterator[Branch]:
    for name, rule in rules:
        if rule.then == ANSWER:
            continue
        for place, input_class, cell in _cells(version, rule, case):
            if not _occurs(input_class, case.source):
                continue
            try:
                yield _branch(name, rule, input_class, cell, target)
            except DocumentError as error:
                message = f"{case.id}: `{place[-1]}`: {error}"
                raise version.document.source.error(("rules", name, *place), message) from None


@cache
def _occurs(input_class: str, source: str) -> bool:
    return input_class == OTHERWISE or any(
        map(INPUT_CLASSES[input_class], atoms(format_named(source)))
    )


def _cells(
    version: Edition, rule: RuleEntry, case: Case
) -> Iterator[tuple[Location, str, TableCell]]:
    """Yield the input classes of a rule with their outcomes, after their places in the rule.

    Of a table they are those in the case's column, if it has one.
    """
    table = rule.table
    if table is None:
        if isinstance(rule.then, dict):
            yield from ((("then", word), word, cell) for word, cell in rule.then.items())
        else:
            yield ("then",), OTHERWISE, rule.then or "unspecified"
        return
    mode = {"to": case.target, **case.mode}
    column = [mode.get(name, ABSENT) for name in table.columns]
    if column not in table.x:
        return
    index = table.x.index(column)
    for row, cells in table.rows.items():
        cell = cells[index] if isinstance(cells, list) else cells
        # The page may have a name of its own for the input class of a row.
        input_class = table.names.get(row) or version.document.entry.row_names.get(row, row)
        yield ("table", "rows", row), input_class, cell


def _place(document: Document, case: Case, branch: Branch) -> Location:
    """Return the location, in its rule, of the outcome that gave a branch."""
    version, rule = edition(document, case.version), document.entry.rules[branch.rule]
    cells = _cells(version, rule, case)
    return next(place for place, input_class, _ in cells if input_class == branch.input_class)


def _branch(
    name: str, rule: RuleEntry, input_class: str, cell: TableCell, target: Format
) -> Branch:
    entry = outcome_entry(cell)
    if entry.either is not None:
        outcome: Outcome = Either(tuple(_option(word, target) for word in entry.either))
    else:
        outcome = outcome_of(entry.is_ or "unspecified", target)
    match outcome:
        case Rejected():
            outcome = Rejected(entry.class_)
        case Anything():
            converts = entry.dtype == "target"
            outcome = Anything(converts, entry.level if converts else None)
    recommended = outcome_of(entry.and_recommended, target) if entry.and_recommended else None
    if recommended is not None and not _can_recommend(recommended, outcome):
        raise DocumentError(
            f"`and-recommended: {entry.and_recommended}` does not narrow what `is` or `either`"
            " allows; name a text, a NaN of one sign, or the first of two patterns"
        )
    level = entry.level or rule.level
    return Branch(
        input_class,
        outcome,
        "unspecified" if isinstance(outcome, Anything) else level,
        name,
        entry.clause or rule.clause,
        recommended,
    )


def _can_recommend(recommended: Outcome, outcome: Outcome) -> bool:
    """Return whether a recommended outcome narrows another one.

    It does if it is a text that reads back instead of plain text, a NaN of one sign instead of any,
    or the first of several patterns.
    """
    match recommended, outcome:
        case ParsesTo(), PlainText():
            return True
        case Nan(sign=sign), Nan(sign="any"):
            return sign != "any"
        case Exactly(), Either(options=options):
            # The reference and exported tests answer with the first of the two.
            return recommended == options[0] and all(isinstance(one, Exactly) for one in options)
    return False


def _option(word: str, target: Format) -> Exactly | Round | Wrap | Behaves:
    outcome = outcome_of(word, target)
    if not isinstance(outcome, Exactly | Round | Wrap | Behaves):
        raise DocumentError(
            f"`{word}` is not allowed in `either`; list two patterns, roundings, ways through "
            "another float, or `wrap`"
        )
    return outcome


def _prove(document: Document, case: Case, branches: list[Branch]) -> Ruling:
    """Make a ruling of branches; raise DocumentError unless they are total and unambiguous.

    Every kind of input must be taken by exactly one branch, whose outcome it can have. All must
    round in one way, and only casts of numbers may have the outcome `error` for some inputs.
    """
    source, target = format_named(case.source), format_named(case.target)

    def error(branch: Branch, message: str) -> DocumentError:
        return document.source.error(("rules", branch.rule), message)

    if not branches:
        is_listed = (case.source, case.target) in edition(document, case.version).listed
        advice = (
            "add a rule whose `when` holds there"
            if is_listed
            else "the version does not list this pair; add a rule with `when: {pair: unlisted}`"
        )
        raise document.source.error(("rules",), f"gap: no rule applies to {case.id}; {advice}")
    classes = tuple(branch.input_class for branch in branches)
    partition = partition_atoms(source, target, classes)
    if partition.overlap is not None:
        inputs, indices = partition.overlap
        takers = [branches[index] for index in indices]
        named = " and ".join(f"{branch.rule} ({branch.input_class})" for branch in takers)
        raise error(takers[1], f"overlap: {case.id}: {named} both take {inputs}")
    if partition.gap is not None:
        named = ", ".join(sorted({branch.rule for branch in branches}))
        message = f"gap: {case.id}: no rule takes {partition.gap} (rules here: {named})"
        message = f"{message}; add its class, or `otherwise`, to one of these"
        raise error(branches[0], message)
    for branch, taken in zip(branches, partition.atoms_of, strict=True):
        atom = first_impossible(branch.outcome, taken, source, target)
        if atom is not None:
            place = _place(document, case, branch)
            message = f"the outcome of `{place[-1]}` is impossible for {atom}"
            if place == ("then",):
                message = f"{message}; give each input class its own outcome"
            location = ("rules", branch.rule, *place)
            raise document.source.error(location, f"{case.id}: {message}")
    is_of_numbers = source.is_numeric and target.is_numeric
    refuses_some = len({isinstance(branch.outcome, Rejected) for branch in branches}) > 1
    if refuses_some and not (is_of_numbers and document.entry.operation == "cast"):
        message = "the outcome is `error` for some inputs only, which is for casts of numbers"
        raise error(branches[0], f"{case.id}: {message}")
    if not partition.used and not isinstance(branches[0].outcome, Rejected | Anything):
        message = f"{source.name} has no numbers, so its outcome is `error` or `unspecified`"
        raise error(branches[0], f"{case.id}: {message}")
    used = [branches[index] for index in partition.used or (0,)]
    roundings = {_rounding(branch.outcome) for branch in used} - {None}
    if len(roundings) > 1:
        ways = ", ".join(sorted(filter(None, roundings)))
        raise error(used[0], f"{case.id} rounds in more than one way: {ways}; keep one")
    return Ruling(
        source, target, next(filter(None, roundings), "toward-zero"), tuple(used), partition
    )


def _rounding(outcome: Outcome) -> Rounding | None:
    """Return how an outcome rounds, or None; the first of two options decides what is in range."""
    match outcome:
        case Round(rounding=rounding) | Either(options=(Round(rounding=rounding), *_)):
            return rounding
    return None


def _example(example: ExampleEntry, case: Case) -> Ruling:
    assert case.example is not None
    worked = tuple((int(source, 16), int(target, 16)) for source, target in example.table.items())
    branches = tuple(
        Branch("worked", Exactly(output), example.level, case.example, example.clause)
        for _, output in worked
    )
    return Ruling(
        format_named(case.source), format_named(case.target), "toward-zero", branches, None, worked
    )


class CaseRule(NamedTuple):
    """A rule, the inputs of a case that it covers, and whether it leaves their results open.

    If no single input has a result of its own, ``inputs`` says in the words of the document what
    the rule is about. ``is_rejection`` says that the rule of such a case requires an error; it is
    false where single inputs have rules.
    """

    rule: str
    level: str
    clause: str
    inputs: str
    is_open: bool
    is_rejection: bool = False


@dataclass(frozen=True)
class MatchingRules:
    """The names of the rules that apply to a case.

    ``is_rejection`` says that they require an error for the whole case.
    """

    rules: tuple[str, ...]
    is_rejection: bool


def case_rules(document: Document, case: Case) -> Iterator[CaseRule]:
    """Yield each rule of a case, once for each class of inputs that it takes.

    A rule that only requires some answer takes none. Raise DocumentError if the rules leave a gap,
    overlap, or have another fault.
    """
    rules_of = of_family(document.entry.operation, "rules")
    yield from _of_inputs(rule_case(document, case)) if not rules_of else rules_of(document, case)


def _of_inputs(ruling: Ruling) -> Iterator[CaseRule]:
    for branch in ruling.branches:
        covers_all = ruling.is_open or len(ruling.branches) == 1
        inputs = EVERY_INPUT if covers_all else branch.input_class
        is_open = isinstance(branch.outcome, Anything)
        yield CaseRule(branch.rule, branch.level, branch.clause, inputs, is_open)


def matching_rules(document: Document, case: Case) -> MatchingRules:
    """Return the rules of a case; raise DocumentError if they leave a gap or have another fault."""
    rules_of = of_family(document.entry.operation, "rules")
    if rules_of:
        found = [*rules_of(document, case)]
        names = dict.fromkeys(each.rule for each in found)
        return MatchingRules(tuple(names), any(each.is_rejection for each in found))
    ruling = rule_case(document, case)
    rules = dict.fromkeys(branch.rule for branch in ruling.branches)
    if ruling.answer_due is not None:
        rules[ruling.answer_due.rule] = None
    return MatchingRules(tuple(rules), ruling.is_rejection)
