"""Proves house rules: total over what they speak of, and free of conflicts with documents.

House rules speak of a pair as a whole, as "saturates" does, though only the open inputs are judged
by them. If a document requires something else of the inputs that it decides, no backend could
follow both, and the rules are wrong about what the document leaves open.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from conformance.families.cast.quick_inputs import every_pattern, few_patterns
from oracles.reference import exact_rulings
from oracles.reference.exact import atom_of, decode
from reports.findings.finding_text import datum_words
from reports.grading.allowed_answers import NOT_ALLOWED, grade_pattern
from specs.branches import Ruling
from specs.cases import Case
from specs.editions import editions
from specs.formats import Format
from specs.house_rules import ChoiceEntry, HouseRules, answer_outcome, choice_for
from specs.loader import documents, with_house_rules
from specs.model.vocabulary import OTHERWISE, Atom, Rounding
from specs.outcomes import Behaves, Exactly, Outcome, Rejected
from specs.ruling import rule_case, ruling
from specs.totality import can_have, partition_atoms

INPUTS = 200
"""About how many inputs of a pair are compared with what the document requires."""


@dataclass(frozen=True)
class HouseProof:
    """A document with house rules: its number of cases, and of those that the rules decide."""

    document: str
    cases: int
    decided: int


def prove_house_rules(rules: HouseRules) -> Iterator[HouseProof]:
    """Yield a proof per document of house rules, once all hold; raise DocumentError if one fails.

    It fails if the rules are not total, contradict what a document requires, or have a choice that
    decides no case of any document.
    """
    unused = set(rules.entry.choices)
    found: list[HouseProof] = []
    proved: set[Hashable] = set()  # by their meaning, which documents share
    for name in rules.entry.documents:
        cases = decided = 0
        document = with_house_rules(documents()[name], rules)
        for each in editions(document):
            for case in each.cases():
                page, with_rules = ruling(case.asked), rule_case(document, case)
                cases += 1
                is_decided = page.meaning != with_rules.meaning
                decided += is_decided
                choice = choice_for(rules, page.source, page.target)
                assert choice is not None, case.id
                if is_decided:
                    unused.discard(choice[0])
                if page.meaning not in proved:
                    proved.add(page.meaning)
                    _contradict_nothing(rules, *choice, case, page)
        found.append(HouseProof(document.name, cases, decided))
    for choice_name in sorted(unused):
        message = f"{choice_name}: the documents leave nothing open there; remove the choice"
        raise rules.source.error(("choices", choice_name), message)
    yield from found


def _contradict_nothing(
    rules: HouseRules, name: str, choice: ChoiceEntry, case: Case, page: Ruling
) -> None:
    """Raise DocumentError if a choice gives an input another answer than the page requires.

    ``name`` is that of the choice, and ``page`` the ruling without house rules. Of a source of more
    than 8 bits, about ``INPUTS`` inputs are compared.
    """
    if page.partition is None or page.is_open or page.is_rejection:
        return
    alone = _choice_alone(rules, name, choice, page)
    inputs = _inputs_by_atom(page.source, page.target, page.rounding)
    # Where a mode refuses a number, no rules say what its cast gives.
    compared = {
        code: branch
        for atom, index in page.branch_of.items()
        if (branch := page.branches[index]).level == "required"
        and not isinstance(branch.outcome, Rejected)
        and atom in alone.branch_of
        for code in inputs.get(atom, ())
    }
    for code, branch in sorted(compared.items(), key=lambda each: each[0]):
        [chosen] = exact_rulings.allow(alone, code).codes
        if grade_pattern(page, exact_rulings.allow(page, code), chosen) == NOT_ALLOWED:
            given = datum_words(page.source.name, page.source.hexadecimal(code))
            gives = datum_words(page.target.name, page.target.hexadecimal(chosen))
            message = (
                f"{name}: it contradicts {branch.rule} of {case.asked.id}, which does not allow "
                f"{gives} for {given}; narrow `when`, or leave {case.asked.document} out"
            )
            raise rules.source.error(("choices", name), message)


@lru_cache(maxsize=256)
def _inputs_by_atom(source: Format, target: Format, rounding: Rounding) -> dict[Atom, list[int]]:
    """Return the inputs of a pair that are compared, by their atoms, for the rulings of it."""
    if source.bits <= 8:
        inputs = every_pattern(source)
    else:
        inputs = few_patterns(source.name, target.name, INPUTS)
    found: dict[Atom, list[int]] = {}
    for code in inputs.tolist():
        atom = atom_of(source, target, rounding, decode(source, code))
        found.setdefault(atom, []).append(code)
    return found


def _choice_alone(rules: HouseRules, name: str, choice: ChoiceEntry, page: Ruling) -> Ruling:
    """Return the ruling of one choice alone, over the inputs for which it names one pattern.

    It is a copy of ``page``, the ruling without house rules, with other branches.
    """
    answers = sorted(choice.answers.items(), key=lambda each: each[0] == OTHERWISE)
    branches = tuple(
        replace(
            page.branches[0],
            input_class=input_class,
            outcome=answer_outcome(rules, name, word, page.source, page.target),
            recommended=None,
        )
        for input_class, word in answers
    )
    partition = partition_atoms(page.source, page.target, tuple(each for each, _ in answers))
    kept = tuple(
        tuple(atom for atom in taken if _names_pattern(branch.outcome, atom, page))
        for branch, taken in zip(branches, partition.atoms_of, strict=True)
    )
    used = [index for index, taken in enumerate(kept) if taken]
    return replace(
        page,
        branches=tuple(branches[index] for index in used),
        partition=replace(partition, atoms_of=kept),
    )


def _names_pattern(outcome: Outcome, atom: Atom, page: Ruling) -> bool:
    names_pattern = isinstance(outcome, Behaves | Exactly)
    return names_pattern and can_have(outcome, atom, page.source, page.target)
