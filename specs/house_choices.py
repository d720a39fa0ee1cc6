"""Applies house rules to a ruling: they decide its open branches, and all others stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specs.behaviors import behaviors
from specs.branches import Branch, Ruling
from specs.cases import Case
from specs.errors import DocumentError
from specs.formats import Format, format_named
from specs.house_rules import ChoiceEntry, HouseRules
from specs.model.vocabulary import CODE_WORDS, INPUT_CLASSES, OTHERWISE, Atom, Rounding
from specs.outcomes import Anything, Behaves, Outcome, Round, outcome_of
from specs.totality import can_have, partition_atoms, possible_atoms


def choice_for(rules: HouseRules, source: Format, target: Format) -> tuple[str, ChoiceEntry] | None:
    """Return the name and the entry of the choice that house rules make for a pair, if any.

    Raise DocumentError if there are several.
    """
    found = [
        (name, choice)
        for name, choice in rules.entry.choices.items()
        if choice.speaks_of(source, target)
    ]
    if len(found) > 1:
        names = " and ".join(name for name, _ in found)
        message = f"{names} both speak of {source.name} to {target.name}; narrow one `when`"
        raise rules.source.error(("choices", found[1][0]), message)
    return found[0] if found else None


def decided(rules: HouseRules, case: Case, ruling: Ruling) -> Ruling:
    """Return the ruling of a case with its open branches decided by house rules.

    It is ``ruling`` itself if no choice is for the pair, or no branch is open. Raise DocumentError
    if several choices are for the pair, an open input gets no possible answer, no input class has
    just the inputs of an answer, or answers round in several ways.
    """
    source, target = format_named(case.source), format_named(case.target)
    found = choice_for(rules, source, target)
    if found is None or not ruling.open_branches or ruling.partition is None:
        return ruling
    name, choice = found
    branches = list(_decided_branches(rules, name, choice, ruling))
    roundings = {each.outcome.rounding for each in branches if isinstance(each.outcome, Round)}
    if len(roundings) > 1:
        ways = ", ".join(sorted(roundings))
        raise _error(rules, name, f"{case.id} would round in more than one way: {ways}")
    rounding: Rounding = roundings.pop() if roundings else ruling.rounding
    partition = partition_atoms(source, target, tuple(each.input_class for each in branches))
    assert partition.gap is None, (case.id, partition.gap)
    if partition.overlap is not None:
        # Two answers for parts of what `otherwise` takes, of which no class takes just one.
        raise _error(rules, name, f"its answers for {case.id} are for no input class of their own")
    used = tuple(branches[index] for index in partition.used)
    return replace(ruling, branches=used, partition=partition, rounding=rounding)


def _decided_branches(
    rules: HouseRules, name: str, choice: ChoiceEntry, ruling: Ruling
) -> Iterator[Branch]:
    for branch, taken in zip(ruling.branches, _atoms_by_branch(ruling), strict=True):
        if not isinstance(branch.outcome, Anything):
            yield branch
            continue
        for word, parts in _answered(rules, name, choice, ruling, taken):
            outcome = answer_outcome(rules, name, word, ruling.source, ruling.target)
            impossible = [each for each in parts if not says_of(outcome, each, ruling)]
            if impossible:
                message = (
                    f"`{word}` says nothing of an input of {ruling.source.name} that is "
                    f"{impossible[0]}; add an answer for its class to `then`"
                )
                raise _error(rules, name, message)
            input_class = _class_of(ruling, branch, taken, parts)
            if input_class is None:
                message = (
                    f"no input class is exactly those inputs from {ruling.source.name} to "
                    f"{ruling.target.name} that {branch.rule} leaves open and that `{word}` is "
                    f"for; use the class `{branch.input_class}`"
                )
                raise _error(rules, name, message)
            yield replace(
                branch,
                input_class=input_class,
                outcome=outcome,
                level="required",
                rule=rules.rule_name(name),
                clause=choice.clause,
            )


def _atoms_by_branch(ruling: Ruling) -> list[frozenset[Atom]]:
    found: list[set[Atom]] = [set() for _ in ruling.branches]
    for atom, index in ruling.branch_of.items():
        found[index].add(atom)
    return [frozenset(each) for each in found]


def _answered(
    rules: HouseRules, name: str, choice: ChoiceEntry, ruling: Ruling, taken: frozenset[Atom]
) -> Iterator[tuple[str, frozenset[Atom]]]:
    """Yield the words of a choice that answer atoms of an open branch, each with these atoms.

    ``taken`` are all atoms of the branch. Raise DocumentError if one has no answer.
    """
    left = set(taken)
    for input_class, word in choice.answers.items():
        if input_class == OTHERWISE:
            continue
        parts = frozenset(filter(INPUT_CLASSES[input_class], left))
        if parts:
            yield word, parts
        left -= parts
    if left and OTHERWISE not in choice.answers:
        one = next(atom for atom in possible_atoms(ruling.source, ruling.target) if atom in left)
        message = (
            f"it says nothing of an input of {ruling.source.name} to {ruling.target.name} that is "
            f"{one}; add its class, or `otherwise`, to `then`"
        )
        raise _error(rules, name, message)
    if left:
        yield choice.answers[OTHERWISE], frozenset(left)


def _class_of(
    ruling: Ruling, branch: Branch, taken: frozenset[Atom], parts: frozenset[Atom]
) -> str | None:
    """Return an input class that takes, of the pair's atoms, exactly ``parts``, or None.

    ``taken`` are the atoms of ``branch``. The result is the branch's own class if ``parts`` are all
    of these, or if that class is `otherwise` and no other fits.
    """
    if parts == taken:
        return branch.input_class
    possible = possible_atoms(ruling.source, ruling.target)
    for word, takes in INPUT_CLASSES.items():
        if parts == frozenset(filter(takes, possible)):
            return word
    return OTHERWISE if branch.input_class == OTHERWISE else None


def answer_outcome(
    rules: HouseRules, name: str, word: str, source: Format, target: Format
) -> Outcome:
    """Return the outcome of a word of a choice; a behavior only if the target is integral.

    ``name`` is the choice's. Raise DocumentError if the word is no answer for this pair.
    """
    if target.is_integral and word in behaviors() and word not in CODE_WORDS:
        behavior = behaviors()[word]
        if source.kind not in behavior.from_ or target.kind not in behavior.to:
            message = f"`{word}` is no behavior of casts from {source.name} to {target.name}"
            raise _error(rules, name, message)
        if any(format_named(each).kind == "float" for each in behavior.on_the_way):
            message = f"`{word}` rounds to another float first, which no house rule may require"
            raise _error(rules, name, message)
        return Behaves(word)
    try:
        return outcome_of(word, target)
    except (DocumentError, ValueError):
        message = f"`{word}` is no answer of {target.name}; castigate explain shows what it has"
        raise _error(rules, name, message) from None


def says_of(outcome: Outcome, atom: Atom, ruling: Ruling) -> bool:
    """Return whether an outcome gives an answer to inputs of an atom, in the pair of a ruling."""
    return can_have(outcome, atom, ruling.source, ruling.target)


def _error(rules: HouseRules, name: str, message: str) -> DocumentError:
    return rules.source.error(("choices", name), f"{name}: {message}")
