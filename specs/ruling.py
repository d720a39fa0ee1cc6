"""What a document says to one case: which rule takes which inputs, proved total and unambiguous."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

from specs.cases import Case
from specs.editions import Edition, edition
from specs.errors import CastigateError, DocumentError
from specs.formats import Format, format_named
from specs.loader import Document, document_named
from specs.model.document import ABSENT, Cell, ExampleEntry, OutcomeEntry, RuleEntry
from specs.model.vocabulary import (
    CODE_WORDS,
    INPUT_CLASSES,
    NAN_SIGNS,
    OTHERWISE,
    ROUNDINGS,
    Atom,
    Level,
    Rounding,
    atoms,
)
from specs.outcomes import (
    Anything,
    Either,
    Exactly,
    Nan,
    Outcome,
    ParsesTo,
    PlainText,
    Rejected,
    Round,
    Same,
    Value,
    Wrap,
)
from specs.totality import Sorting, sort_atoms, unfit

PLAIN: dict[str, Outcome] = {
    "value": Value(),
    "wrap": Wrap(),
    "same": Same(),
    "plain-text": PlainText(reads_back=False),
    "plain-value": PlainText(reads_back=True),
    "parses-to": ParsesTo(),
    "error": Rejected(),
    "unspecified": Anything(),
}
ANSWER = "answer"
"""The outcome of a rule about the case as a whole: some answer is due, so an error breaks it."""


@dataclass(frozen=True)
class Branch:
    """One line of a ruling: the inputs it takes, what it allows, and the rule that says so.

    ``recommended`` is the part of the outcome that an answer should lie in, where there is one.
    """

    input_class: str
    outcome: Outcome
    level: Level
    rule: str
    clause: str
    recommended: Outcome | None = None

    @property
    def strictest(self) -> Outcome:
        """What an answer must be for nothing at all to be broken."""
        return self.recommended or self.outcome


@dataclass(frozen=True)
class AnswerDue:
    """The rule that forbids to refuse a case."""

    rule: str
    clause: str
    level: Level


@dataclass(frozen=True)
class Ruling:
    """What comes out of a case: its branches, and which branch takes each atom."""

    source: Format
    target: Format
    rounding: Rounding
    branches: tuple[Branch, ...]
    sorting: Sorting | None = field(repr=False)
    worked: tuple[tuple[int, int], ...] = ()
    answer_due: AnswerDue | None = None

    @property
    def branch_of(self) -> dict[Atom, int]:
        """The branch that takes an atom; an example knows none."""
        return self.sorting.branch_of if self.sorting is not None else {}

    @cached_property
    def open_places(self) -> tuple[int, ...]:
        """The branches that leave their inputs open."""
        return tuple(
            place
            for place, branch in enumerate(self.branches)
            if isinstance(branch.outcome, Anything)
        )

    @cached_property
    def is_rejection(self) -> bool:
        """Whether the document wants the case refused as a whole."""
        return all(isinstance(branch.outcome, Rejected) for branch in self.branches)

    @cached_property
    def is_open(self) -> bool:
        """Whether the document leaves the case open as a whole."""
        return len(self.open_places) == len(self.branches)

    @cached_property
    def is_open_dtype(self) -> bool:
        """Whether even the dtype that a call gives is open."""
        return self.branches[0].outcome == Anything() and self.is_open

    @cached_property
    def error_class(self) -> str | None:
        """The class of error that the document names for a case that it wants refused."""
        outcome = self.branches[0].outcome
        return outcome.error_class if isinstance(outcome, Rejected) else None

    @cached_property
    def meaning(self) -> Hashable:
        """What it comes to, in whatever words: rulings of one meaning judge alike."""
        branches = tuple(
            (branch.input_class, branch.outcome, branch.level, branch.recommended)
            for branch in self.branches
        )
        return self.source, self.target, self.rounding, branches, self.worked

    @cached_property
    def identity(self) -> int:
        """A hash that is computed once."""
        return hash((self.source, self.target, self.rounding, self.branches, self.worked))

    def __hash__(self) -> int:
        return self.identity


def ruling(case: Case) -> Ruling:
    """The ruling of a case of a shipped document."""
    return rule_case(document_named(case.document), case)


def rule_case(document: Document, case: Case) -> Ruling:
    """Resolve a case, or raise an error that names the rules that leave a gap or overlap."""
    if document.entry.bitcast is not None:
        raise CastigateError(f"{case.id} is a bitcast: `castigate explain` shows what it gives")
    where = edition(document, case.version)
    if case.example is not None:
        return _example(document.entry.examples[case.example], case)
    target = format_named(case.target)
    rules = [
        (name, rule)
        for name in where.rules_between(case.source, case.target)
        if where.matches((rule := document.entry.rules[name]).when, case)
    ]
    branches = list(_branches(where, case, target, rules))
    return replace(_proved(document, case, branches), answer_due=_answer_due(document, case, rules))


def _answer_due(
    document: Document, case: Case, rules: list[tuple[str, RuleEntry]]
) -> AnswerDue | None:
    due = [AnswerDue(name, rule.clause, rule.level) for name, rule in rules if rule.then == ANSWER]
    if len(due) > 1:
        message = f"overlap: {due[0].rule} and {due[1].rule} both demand an answer to {case.id}"
        raise document.source.error(("rules", due[1].rule), message)
    return due[0] if due else None


def _branches(
    where: Edition, case: Case, target: Format, rules: list[tuple[str, RuleEntry]]
) -> Iterator[Branch]:
    for name, rule in rules:
        if rule.then == ANSWER:
            continue
        for input_class, cell in _cells(where, rule, case):
            if not _occurs(input_class, case.source):
                continue
            try:
                yield _branch(name, rule, input_class, cell, target)
            except DocumentError as error:
                raise where.document.source.error(("rules", name), f"{error}, {case.id}") from None


@cache
def _occurs(input_class: str, source: str) -> bool:
    """Whether any input of a source can fall into a class."""
    return input_class == OTHERWISE or any(
        map(INPUT_CLASSES[input_class], atoms(format_named(source)))
    )


def _cells(where: Edition, rule: RuleEntry, case: Case) -> Iterator[tuple[str, Cell]]:
    if rule.table is None:
        yield from (
            rule.then.items()
            if isinstance(rule.then, dict)
            else [(OTHERWISE, rule.then or "unspecified")]
        )
        return
    table = rule.table
    mode = {"to": case.target, **case.mode}
    column = [mode.get(name, ABSENT) for name in table.columns]
    if column not in table.x:
        return
    position = table.x.index(column)
    for row, cells in table.rows.items():
        yield where.row_class(table, row), cells[position] if isinstance(cells, list) else cells


def _branch(name: str, rule: RuleEntry, input_class: str, cell: Cell, target: Format) -> Branch:
    given = cell if isinstance(cell, OutcomeEntry) else OutcomeEntry.model_validate({"is": cell})
    if given.either is not None:
        outcome: Outcome = Either(tuple(_option(word, target) for word in given.either))
    else:
        outcome = outcome_of(given.is_ or "unspecified", target)
    match outcome:
        case Rejected():
            outcome = Rejected(given.class_)
        case Anything():
            converts = given.dtype == "target"
            outcome = Anything(converts, given.level if converts else None)
    recommended = outcome_of(given.and_recommended, target) if given.and_recommended else None
    if recommended is not None and not _is_part(recommended, outcome):
        message = "`and-recommended` names a part of what `is` or `either` allows: "
        raise DocumentError(f"{message}a text, a NaN of one sign, or the first of two patterns")
    level = given.level or rule.level
    return Branch(
        input_class,
        outcome,
        "unspecified" if isinstance(outcome, Anything) else level,
        name,
        given.clause or rule.clause,
        recommended,
    )


def _is_part(recommended: Outcome, outcome: Outcome) -> bool:
    """Whether a recommendation narrows an outcome in a way that answers are graded by."""
    match recommended, outcome:
        case ParsesTo(), PlainText():
            return True
        case Nan(sign=sign), Nan(sign="any"):
            return sign != "any"
        case Exactly(), Either(options=options):
            # The first of two is the one that the reference and exported tests answer with.
            return recommended == options[0] and all(isinstance(one, Exactly) for one in options)
    return False


def _option(word: str, target: Format) -> Exactly | Round | Wrap:
    outcome = outcome_of(word, target)
    if not isinstance(outcome, Exactly | Round | Wrap):
        raise DocumentError(f"`{word}` cannot stand in `either`, which lists patterns")
    return outcome


@cache
def outcome_of(word: str, target: Format) -> Outcome:
    """An outcome word as an outcome for a target."""
    if word in ROUNDINGS:
        return Round(ROUNDINGS[word])
    if word in NAN_SIGNS:
        if not target.nan_codes:
            raise DocumentError(f"{target.name} has no NaN")
        if word != "nan" and not target.has_signed_nan:
            raise DocumentError(f"a NaN of {target.name} has no sign")
        return Nan(NAN_SIGNS[word])
    if word in CODE_WORDS:
        if word in ("inf", "-inf") and not target.entry.infinity:
            raise DocumentError(f"{target.name} has no infinity")
        if word == "zero" and target.entry.zero == "none":
            raise DocumentError(f"{target.name} has no zero")
        if word == "-zero" and target.entry.zero != "signed":
            raise DocumentError(f"{target.name} has no negative zero")
        return Exactly(CODE_WORDS[word](target))
    if word in PLAIN:
        return PLAIN[word]
    code = int(word, 16)
    if code > target.mask:
        raise DocumentError(f"`{word}` is wider than {target.name}")
    return Exactly(code)


def _proved(document: Document, case: Case, branches: list[Branch]) -> Ruling:
    """Let every input be taken by exactly one branch that can be had of it, or say which is not."""
    source, target = format_named(case.source), format_named(case.target)
    error = partial(_error, document)
    if not branches:
        raise document.source.error(("rules",), f"gap: no rule applies to {case.id}")
    sorting = sort_atoms(source, target, tuple(branch.input_class for branch in branches))
    if sorting.overlap is not None:
        what, places = sorting.overlap
        takers = [branches[place] for place in places]
        named = " and ".join(f"{branch.rule} ({branch.input_class})" for branch in takers)
        raise error(takers[1], f"overlap: {case.id}: {named} both take {what}")
    if sorting.gap is not None:
        named = ", ".join(sorted({branch.rule for branch in branches}))
        message = f"gap: {case.id}: no rule takes {sorting.gap} (rules here: {named})"
        raise error(branches[0], message)
    for branch, taken in zip(branches, sorting.atoms_of, strict=True):
        wrong = unfit(branch.outcome, taken, source, target)
        if wrong is not None:
            message = f"the outcome of `{branch.input_class}` cannot be had of {wrong}"
            raise error(branch, f"{case.id}: {message}")
    if len({isinstance(branch.outcome, Rejected) for branch in branches}) > 1:
        raise error(branches[0], f"{case.id} is refused for some inputs only")
    if not sorting.used and not isinstance(branches[0].outcome, Rejected | Anything):
        # A source without numbers: nothing can be said of its values.
        raise error(branches[0], f"{case.id}: no number can be had of {source.name}")
    kept = [branches[place] for place in sorting.used or (0,)]
    roundings = {branch.outcome.rounding for branch in kept if isinstance(branch.outcome, Round)}
    if len(roundings) > 1:
        ways = ", ".join(sorted(roundings))
        raise error(kept[0], f"{case.id} rounds in two ways at once: {ways}")
    return Ruling(
        source,
        target,
        roundings.pop() if roundings else "toward-zero",
        tuple(kept),
        sorting,
    )


def _error(document: Document, branch: Branch, message: str) -> DocumentError:
    return document.source.error(("rules", branch.rule), message)


def _example(example: ExampleEntry, case: Case) -> Ruling:
    assert case.example is not None
    worked = tuple((int(given, 16), int(out, 16)) for given, out in example.table.items())
    branches = tuple(
        Branch("worked", Exactly(output), example.level, case.example, example.clause)
        for _, output in worked
    )
    return Ruling(
        format_named(case.source), format_named(case.target), "toward-zero", branches, None, worked
    )
