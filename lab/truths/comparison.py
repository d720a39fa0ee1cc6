"""Compare a truth's answers with what the reference allows, and with what is known to differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lab.truths.questions import Answers, Mask, Patterns, Question, Truth, question_of
from oracles.reference import expect_by_exact
from oracles.reference.expect_by_kernels import KernelExpectations
from oracles.reference.expectations import Expected, has_branch
from reports.grading.allowed_answers import ALLOWED, describe_allowed, grade_answers, is_nan
from specs.branches import Ruling
from specs.outcomes import Exactly

BY_DEFINITION = 300
"""The number of inputs of each ruling that are also checked against the exact definition."""
SHOWN = 3
"""The number of inputs that are shown for each failure."""


@dataclass(frozen=True)
class Compared:
    """The question to a truth and its inputs, with the answers that the reference expects."""

    truth: str
    case: str
    ruling: Ruling
    question: Question
    inputs: Patterns
    expected: Expected


DEFINITION = "definition"
"""The name under which comparisons of the kernels with the definition ``exact`` are counted."""
Right = Literal["the reference", "neither"]
"""Which side is right; ``neither`` if both follow conventions, and these differ."""


@dataclass(frozen=True)
class Known:
    """A known disagreement: the truths, the reason, the side that is right, and the exact inputs.

    ``predicts`` returns the inputs on which the truth's answer is not allowed, None if the entry
    is about other questions.
    """

    name: str
    truths: tuple[str, ...]
    right: Right
    reason: str
    predicts: Callable[[Compared], Mask | None]


@dataclass
class Counts:
    """How many answers of a truth were compared, and with what result."""

    compared: int = 0
    agree: int = 0
    open: int = 0
    known: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Add the counts of other answers."""
        self.compared += other.compared
        self.agree += other.agree
        self.open += other.open
        self.known.update(other.known)
        self.failures += other.failures


Key = tuple[str, str, str]
"""A truth, the kinds of the pair, and the rounding."""


def compare(compared: Compared, answers: Answers, table: Sequence[Known]) -> Counts:
    """Count the answers that a ruling allows; a difference that the table lacks is a failure.

    So is an entry of the table that predicts a difference where there is none. Arithmetic decides
    neither inputs that a document requires to be refused, nor the bits of a NaN that it fixes.
    """
    ruling, inputs = compared.ruling, compared.inputs
    branches = compared.expected.branch_indices
    is_refused = has_branch(branches, ruling.refused_branches)
    is_fixed_nan = has_branch(branches, _fixed_nans(ruling)) & is_nan(ruling.target, answers.codes)
    known = answers.known & ~is_refused & ~is_fixed_nan
    is_open = has_branch(compared.expected.branch_indices, ruling.open_branches)
    grades = grade_answers(ruling, inputs, compared.expected, answers.codes)
    judged = known & ~is_open
    differs = judged & (grades != ALLOWED)
    counts = Counts(
        compared=int(known.sum()),
        agree=int((judged & ~differs).sum()),
        open=int((known & is_open).sum()),
    )
    unexplained = differs.copy()
    for entry in table:
        if compared.truth not in entry.truths:
            continue
        predicted = entry.predicts(compared)
        if predicted is None:
            continue
        counts.known[entry.name] += int((unexplained & predicted).sum())
        unexplained &= ~predicted
        counts.failures += _failures(
            f"`{entry.name}` predicts a difference where there is none",
            compared,
            answers,
            predicted & judged & ~differs,
        )
    counts.failures += _failures("an unknown difference", compared, answers, unexplained)
    return counts


def _fixed_nans(ruling: Ruling) -> tuple[int, ...]:
    """Return the indices of the branches that require one pattern for all NaNs."""
    return tuple(
        index
        for index, branch in enumerate(ruling.branches)
        if branch.input_class == "nan" and isinstance(branch.outcome, Exactly)
    )


def _failures(what: str, compared: Compared, answers: Answers, where: Mask) -> Iterator[str]:
    found = np.flatnonzero(where)
    if not found.size:
        return
    ruling, source, target = compared.ruling, compared.question.source, compared.question.target
    shown = []
    for at in found[:: max(1, found.size // SHOWN)][:SHOWN]:
        code, answer = int(compared.inputs[at]), int(answers.codes[at])
        allowed = describe_allowed(
            ruling, expect_by_exact.allow(ruling, code), code, level="recommended"
        )
        shown.append(
            f"{source.hexadecimal(code)} gives {target.hexadecimal(answer)},"
            f" the reference {' or '.join(allowed)}"
        )
    yield (
        f"{compared.truth}: {what}: {found.size:,} inputs of {compared.case}"
        f" ({compared.question}): {'; '.join(shown)}"
    )


def compare_pair(
    rulings: Iterable[tuple[str, Ruling]],
    truths: Sequence[Truth],
    table: Sequence[Known],
    inputs_of: Callable[[int | None], Patterns],
) -> dict[Key, Counts]:
    """Compare all truths with all rulings of a pair; count by truth, kind of pair and rounding.

    Each of the ``rulings`` comes with the id of a case. ``inputs_of`` returns the inputs of the
    pair, at most as many as its argument if that is given.
    """
    counts: dict[Key, Counts] = {}
    kernels = KernelExpectations()
    by_question: dict[Question, list[tuple[str, Ruling]]] = {}
    for case, ruling in rulings:
        by_question.setdefault(question_of(ruling), []).append((case, ruling))
    for question, asking in by_question.items():
        answering = [truth for truth in truths if truth.can_answer(question)]
        for most in dict.fromkeys(truth.most_inputs for truth in answering):
            inputs = inputs_of(most)
            with np.errstate(all="ignore"):
                answers = {
                    truth.name: truth.answer(question, inputs)
                    for truth in answering
                    if truth.most_inputs == most
                }
            for case, ruling in asking:
                expected = kernels.expect(ruling, inputs)
                found = {DEFINITION: check_definition(case, ruling, inputs, expected)}
                for name, given in answers.items():
                    compared = Compared(name, case, ruling, question, inputs, expected)
                    found[name] = compare(compared, given, table)
                for name, each in found.items():
                    key = name, question.kind, question.rounding
                    counts.setdefault(key, Counts()).add(each)
    return counts


def check_definition(case: str, ruling: Ruling, inputs: Patterns, expected: Expected) -> Counts:
    """Compare the answers that the kernels allow for some inputs with those of the definition.

    The proof does so on all inputs, but of the documents' rulings only.
    """
    some = np.unique(np.linspace(0, inputs.size - 1, BY_DEFINITION).astype(np.intp))
    there, here = expect_by_exact.expect(ruling, inputs[some]), expected.at(some)
    same = (
        (there.branch_indices == here.branch_indices)
        & (there.codes == here.codes)
        & (there.others == here.others)
    )
    counts = Counts(compared=some.size, agree=int(same.sum()))
    if not same.all():
        code = int(inputs[some][~same][0])
        counts.failures.append(
            f"{case}: definition and kernels differ on {ruling.source.hexadecimal(code)}"
        )
    return counts
