"""Finds the regions of each target in which a backend does not obey house rules.

A region is NaN, an infinity, what overflows, or all else that a target leaves open. Only what the
rules decide counts: whether a backend follows the document is another question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import quick_inputs
from conformance.judging.asking import Ask
from conformance.judging.values import ask_values, no_answer
from oracles.backend.replies import Answered
from oracles.protocol import Bits
from oracles.reference import expect_by_staircase
from oracles.reference.expectations import has_branch
from reports.counterexample.drawing import datum_columns
from reports.grading.allowed_answers import NOT_ALLOWED, grade_answers
from specs.branches import Ruling
from specs.cases import JOINT, Case
from specs.editions import editions
from specs.house_rules import HouseRules
from specs.loader import documents
from specs.model.vocabulary import OTHERWISE
from specs.outcomes import Anything
from specs.ruling import ruling
from specs.totality import partition_atoms

SOURCE = "float32"
MAX_EXAMPLES = 1000
"""Random inputs of a pair, as many as in a run."""
REGIONS = {
    "nan": "NaN",
    "inf": "inf",
    "-inf": "-inf",
    "overflow": "above the range",
    "-overflow": "below the range",
    OTHERWISE: "in the range",
}
"""Input classes that divide the inputs of every pair, and their names."""


@dataclass(frozen=True)
class Obedience:
    """Whether a backend obeys in one case, in ``words``; ``example`` is its first wrong answer.

    If there is no answer at all, ``words`` is the kind of failure, such as ``error``, and
    ``example`` the reason.
    """

    case: Case
    words: str
    example: str = ""


def asked_cases(rules: HouseRules) -> list[Case]:
    """Return, for each target, the first case that house rules decide, of their first document.

    It is of the document's newest version. The source is float32; if the rules decide nothing from
    it, the source of the first case that they decide.
    """
    document = documents()[f"{rules.entry.documents[0]}{JOINT}{rules.name}"]
    *_, newest = editions(document)
    first: dict[tuple[str, str], Case] = {}
    for case in newest.cases():
        if ruling(case).meaning != ruling(case.asked).meaning:
            first.setdefault((case.source, case.target), case)
    sources = [source for source, _ in first]
    chosen = SOURCE if SOURCE in sources else next(iter(sources), SOURCE)
    return [case for case in first.values() if case.source == chosen]


def judge(rules: HouseRules, case: Case) -> Ask[Obedience]:
    """Request a case with the inputs of the tier quick in one row; say where a backend obeys."""
    inputs = quick_inputs(case.source, case.target, 0, MAX_EXAMPLES)
    match (yield from ask_values(case, inputs)):
        case Answered(answers):
            return _obedience(rules, case, inputs, answers)
        case missing:
            [(kind, text)] = no_answer(missing).items()
            return Obedience(case, kind, text)


def _obedience(rules: HouseRules, case: Case, inputs: Bits, answers: Bits) -> Obedience:
    by_rules = ruling(case)
    source, target = by_rules.source, by_rules.target
    expected = expect_by_staircase.expect(by_rules, inputs)
    of_rules = [
        index
        for index, branch in enumerate(by_rules.branches)
        if branch.rule.startswith(rules.rule_name(""))
    ]
    is_decided = has_branch(expected.branch_indices, of_rules)
    is_wrong = grade_answers(by_rules, inputs, expected, answers) == NOT_ALLOWED
    wrong = np.flatnonzero(is_decided & is_wrong)
    if not wrong.size:
        return Obedience(case, "obeys")
    regions = _regions(by_rules, inputs)
    broken = np.unique(regions[wrong])
    given, gives, wanted = (
        datum_columns(form, int(codes[wrong[0]]))[-1]
        for form, codes in ((source, inputs), (target, answers), (target, expected.codes))
    )
    example = f"{target.name} of {given} is {gives}, not {wanted}"
    if broken.size == np.unique(regions[is_decided]).size:
        return Obedience(case, "breaks", example)
    names = [*REGIONS.values()]
    return Obedience(case, f"obeys but for {', '.join(names[each] for each in broken)}", example)


def _regions(by_rules: Ruling, inputs: Bits) -> NDArray[np.uint8]:
    """Return the region of each input, as its index in ``REGIONS``."""
    branch = replace(by_rules.branches[0], outcome=Anything(), recommended=None)
    partition = partition_atoms(by_rules.source, by_rules.target, tuple(REGIONS))
    branches = tuple(replace(branch, input_class=each) for each in REGIONS)
    divided = replace(by_rules, branches=branches, partition=partition)
    return expect_by_staircase.expect(divided, inputs).branch_indices


def grouped(found: Sequence[Obedience]) -> Iterator[tuple[list[str], Obedience]]:
    """Yield, for each distinct ``words`` of results, their targets and the first such result."""
    for words in dict.fromkeys(each.words for each in found):
        alike = [each for each in found if each.words == words]
        yield [each.case.target for each in alike], alike[0]
