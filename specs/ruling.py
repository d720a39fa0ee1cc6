"""What a document says to one case: which rule takes which inputs, proved total and unambiguous."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

from specs.cases import Case
from specs.document import Cell, ExampleEntry, OutcomeEntry, RuleEntry
from specs.editions import Edition, edition
from specs.errors import DocumentError
from specs.formats import Format, format_named
from specs.load import Document, document_named
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
from specs.pairs import is_exact, rounds
from specs.vocabulary import (
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


@dataclass(frozen=True)
class Branch:
    """One line of a ruling: the inputs it takes, what it allows, and the rule that says so."""

    input_class: str
    outcome: Outcome
    level: Level
    rule: str
    clause: str
    recommended: Outcome | None = None


@dataclass(frozen=True)
class Ruling:
    """What comes out of a case: its branches, and which branch takes each atom."""

    source: Format
    target: Format
    rounding: Rounding
    branches: tuple[Branch, ...]
    taken: tuple[tuple[Atom, int], ...] = field(repr=False)
    worked: tuple[tuple[int, int], ...] = ()

    @cached_property
    def branch_of(self) -> dict[Atom, int]:
        """The branch that takes an atom."""
        return dict(self.taken)

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
    where = edition(document, case.version)
    if case.example is not None:
        return _example(document.entry.examples[case.example], case)
    target = format_named(case.target)
    branches = list(_branches(where, case, target))
    return _proved(document, case, branches)


def _branches(where: Edition, case: Case, target: Format) -> Iterator[Branch]:
    for name in where.rules:
        rule = where.document.entry.rules[name]
        if not where.matches(rule.when, case):
            continue
        for input_class, cell in _cells(rule, case):
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


def _cells(rule: RuleEntry, case: Case) -> Iterator[tuple[str, Cell]]:
    if rule.table is None:
        yield from (
            rule.then.items()
            if isinstance(rule.then, dict)
            else [(OTHERWISE, rule.then or "unspecified")]
        )
        return
    table = rule.table
    column = case.target if table.columns == "to" else case.mode.get(table.columns)
    if column not in table.x:
        return
    position = table.x.index(column)
    for input_class, cells in table.rows.items():
        yield input_class, cells[position] if isinstance(cells, list) else cells


def _branch(name: str, rule: RuleEntry, input_class: str, cell: Cell, target: Format) -> Branch:
    given = cell if isinstance(cell, OutcomeEntry) else OutcomeEntry.model_validate({"is": cell})
    if given.either is not None:
        outcome: Outcome = Either(tuple(_option(word, target) for word in given.either))
    else:
        outcome = outcome_of(given.is_ or "unspecified", target)
    if given.and_recommended and not isinstance(outcome, PlainText):
        raise DocumentError("`and-recommended` goes with `plain-text` only")
    level = given.level or rule.level
    return Branch(
        input_class,
        outcome,
        "unspecified" if isinstance(outcome, Anything) else level,
        name,
        given.clause or rule.clause,
        outcome_of(given.and_recommended, target) if given.and_recommended else None,
    )


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
    """Let every atom of the source be taken by exactly one branch, or say which is not."""
    source, target = format_named(case.source), format_named(case.target)
    if not branches:
        raise document.source.error(("rules",), f"gap: no rule applies to {case.id}")
    fallbacks = [branch for branch in branches if branch.input_class == OTHERWISE]
    if len(fallbacks) > 1:
        raise _overlap(document, case, fallbacks, "all other inputs")
    taken: list[tuple[Atom, Branch]] = []
    for atom, places in _takers(source, tuple(branch.input_class for branch in branches)):
        takers = [branches[place] for place in places]
        if not takers:
            named = ", ".join(sorted({branch.rule for branch in branches}))
            raise document.source.error(
                ("rules", branches[0].rule),
                f"gap: {case.id}: no rule takes an input that is {atom} (rules here: {named})",
            )
        if len(takers) > 1:
            raise _overlap(document, case, takers, f"an input that is {atom}")
        taken.append((atom, takers[0]))
    for atom, branch in taken:
        if not _fits(branch.outcome, atom, source, target):
            raise document.source.error(
                ("rules", branch.rule),
                f"{case.id}: the outcome of `{branch.input_class}` cannot be had of {atom}",
            )
    if not taken and not isinstance(fallbacks[0].outcome, Rejected | Anything):
        raise document.source.error(
            ("rules", fallbacks[0].rule), f"{case.id}: no number can be had of {source.name}"
        )
    refusing = {isinstance(branch.outcome, Rejected) for branch in branches}
    if len(refusing) > 1:
        raise document.source.error(
            ("rules", branches[0].rule), f"{case.id} is refused for some inputs only"
        )
    taking = {id(branch) for _, branch in taken}
    used = [branch for branch in branches if id(branch) in taking] or fallbacks
    roundings = {branch.outcome.rounding for branch in used if isinstance(branch.outcome, Round)}
    if len(roundings) > 1:
        raise document.source.error(
            ("rules", used[0].rule),
            f"{case.id} rounds in two ways at once: {', '.join(sorted(roundings))}",
        )
    place_of = {id(branch): place for place, branch in enumerate(used)}
    return Ruling(
        source,
        target,
        roundings.pop() if roundings else "toward-zero",
        tuple(used),
        tuple((atom, place_of[id(branch)]) for atom, branch in taken),
    )


@cache
def _takers(source: Format, classes: tuple[str, ...]) -> tuple[tuple[Atom, tuple[int, ...]], ...]:
    """For each atom of a source the places of the classes that take it, `otherwise` last of all."""
    fallbacks = tuple(place for place, word in enumerate(classes) if word == OTHERWISE)
    explicit = [
        (place, INPUT_CLASSES[word]) for place, word in enumerate(classes) if word != OTHERWISE
    ]
    return tuple(
        (atom, tuple(place for place, takes in explicit if takes(atom)) or fallbacks)
        for atom in atoms(source)
    )


def _fits(outcome: Outcome, atom: Atom, source: Format, target: Format) -> bool:
    """Whether an input and a target can have an outcome at all."""
    match outcome:
        case Value():
            return target.is_numeric and atom.is_finite and _is_kept(atom, source, target)
        case Round() | Wrap():
            return atom.is_finite and target.is_numeric
        case Either(options=options):
            return all(_fits(option, atom, source, target) for option in options)
        case Exactly() | Nan():
            return target.is_numeric
        case PlainText() | ParsesTo():
            return target.kind == "text"
        case Same():
            return source == target
        case Rejected() | Anything():
            return True


def _is_kept(atom: Atom, source: Format, target: Format) -> bool:
    """Whether the target has the very value: nothing is rounded and nothing is out of range."""
    if is_exact(source, target):
        return True
    if atom.zone == "overflow":
        return False
    if target.is_integral and atom.whole:
        return True  # a whole number does not round back into range
    return source.is_numeric and not rounds(source, target) and atom.zone != "beyond"


def _overlap(document: Document, case: Case, takers: list[Branch], what: str) -> DocumentError:
    named = " and ".join(f"{branch.rule} ({branch.input_class})" for branch in takers)
    return document.source.error(
        ("rules", takers[1].rule), f"overlap: {case.id}: {named} both take {what}"
    )


def _example(example: ExampleEntry, case: Case) -> Ruling:
    assert case.example is not None
    worked = tuple((int(given, 16), int(out, 16)) for given, out in example.table.items())
    branches = tuple(
        Branch("worked", Exactly(output), example.level, case.example, example.clause)
        for _, output in worked
    )
    return Ruling(
        format_named(case.source), format_named(case.target), "toward-zero", branches, (), worked
    )
