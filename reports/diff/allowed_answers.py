"""Which answers of an array are allowed: bits against outcomes, without tolerance."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference import exact_text, expect_by_exact, expect_by_kernels, expect_by_staircase
from oracles.reference.expectations import Allowed, Expected
from specs.formats import Format
from specs.outcomes import (
    Anything,
    Either,
    Exactly,
    Nan,
    Outcome,
    ParsesTo,
    PlainText,
    Rejected,
    Same,
)
from specs.ruling import Ruling

WORDS = (
    "any-nan",
    "+nan",
    "-nan",
    "anything",
    "error",
    "plain-text",
    "plain-value",
    "parses-to-input",
)
"""What is said of outcomes that are no list of patterns or texts."""


MANY = 1000
"""Inputs from which on it is quicker to make a staircase of them than to look at each."""


class Expectations:
    """What is expected of each input, remembered for the last few rulings.

    ``independent`` asks the definition instead of the kernels: so the backend that answers with the
    kernels is never judged by them.
    """

    def __init__(self, independent: bool) -> None:
        self.independent = independent
        self._known: dict[Ruling, tuple[Bits, Expected]] = {}

    def of(self, ruling: Ruling, inputs: Bits) -> Expected:
        """The expectations of a ruling for these inputs."""
        if ruling.is_open:  # also where nothing is told of the values, complex ones
            nothing = np.zeros(inputs.shape, ruling.target.storage)
            return Expected(np.zeros(inputs.shape, np.uint8), nothing, nothing)
        known = self._known.get(ruling)
        if known is not None and known[0] is inputs:
            return known[1]
        expected = self._expect(ruling, inputs)
        if len(self._known) >= 32:
            self._known.pop(next(iter(self._known)))
        self._known[ruling] = (inputs, expected)
        return expected

    def _expect(self, ruling: Ruling, inputs: Bits) -> Expected:
        if ruling.worked or not (ruling.source.is_numeric and ruling.target.is_numeric):
            return expect_by_exact.expect(ruling, inputs)
        if not self.independent:
            return expect_by_kernels.expect(ruling, inputs)
        many = inputs.size > MANY and _rises(inputs)
        return (
            expect_by_staircase.expect(ruling, inputs)
            if many
            else expect_by_exact.expect(ruling, inputs)
        )


def _rises(inputs: Bits) -> bool:
    return inputs.ndim == 1 and bool((inputs[1:] > inputs[:-1]).all())


def levels_broken(
    ruling: Ruling, inputs: Bits, expected: Expected, answers: Bits
) -> NDArray[np.uint8]:
    """Per input: 0 the answer is allowed, 1 only a recommendation is broken, 2 the branch is."""
    if ruling.is_open:
        return np.zeros(answers.shape, np.uint8)
    if ruling.target.kind == "text":
        return _text_levels(ruling, inputs, expected, answers)
    wrong: NDArray[np.bool_] = (answers != expected.codes) & (answers != expected.others)
    for place, branch in enumerate(ruling.branches):
        match branch.outcome:
            case Anything():
                wrong &= expected.places != place
            case Nan():
                here = expected.places == place
                wrong = np.where(here, ~are_constant(ruling.target, branch.outcome, answers), wrong)
            case Rejected():
                wrong |= expected.places == place
    levels = np.where(wrong, np.uint8(2), np.uint8(0))
    for place, branch in enumerate(ruling.branches):
        if branch.recommended is not None:
            departs = ~are_constant(ruling.target, branch.recommended, answers)
            levels[(levels == 0) & (expected.places == place) & departs] = 1
    return levels


def are_constant(target: Format, outcome: Outcome, answers: Bits) -> NDArray[np.bool_]:
    """Which answers a constant outcome allows: a pattern, one of two, or the NaNs of a sign."""
    match outcome:
        case Nan(sign=sign):
            return is_nan(target, answers, sign)
        case Exactly(code=code):
            return np.asarray(answers == code)
        case Either(options=options):
            one, *_, other = [are_constant(target, option, answers) for option in options] * 2
            return one | other
    raise AssertionError(f"{outcome} is not the same for all inputs")


def is_nan(target: Format, answers: Bits, sign: str) -> NDArray[np.bool_]:
    """Which patterns are NaNs of a sign."""
    found = np.zeros(answers.shape, bool)
    for codes in target.nans(sign):
        found |= (answers >= codes[0]) & (answers <= codes[-1])
    return found


def _text_levels(
    ruling: Ruling, inputs: Bits, expected: Expected, answers: Bits
) -> NDArray[np.uint8]:
    places: list[int] = expected.places.tolist()
    graded = [
        grade_text(ruling, place, given, answer)
        for place, given, answer in zip(places, inputs.tolist(), answers.tolist(), strict=True)
    ]
    return np.array(graded, np.uint8)


@lru_cache(maxsize=1 << 18)
def grade_text(ruling: Ruling, place: int, given: int | str, answer: str) -> int:
    """0 where a text is allowed, 1 where only a recommendation is broken, 2 where the branch is."""
    branch = ruling.branches[place]
    if not exact_text.accepts(ruling.source, branch.outcome, given, answer):
        return 2
    if branch.recommended and not exact_text.accepts(
        ruling.source, branch.recommended, given, answer
    ):
        return 1
    return 0


def grade_code(ruling: Ruling, allowed: Allowed, answer: int) -> int:
    """0 where a pattern is allowed, 1 where it only departs from a recommendation, 2 otherwise."""
    branch = allowed.branch
    if not _allows(ruling.target, branch.outcome, allowed.codes, answer):
        return 2
    recommended = branch.recommended
    if recommended and not _allows(ruling.target, recommended, allowed.codes, answer):
        return 1
    return 0


def _allows(target: Format, outcome: Outcome, codes: tuple[int, ...], answer: int) -> bool:
    match outcome:
        case Nan(sign=sign):
            return any(answer in nans for nans in target.nans(sign))
        case Exactly(code=code):
            return answer == code
    return answer in codes


def allowed_words(
    ruling: Ruling, allowed: Allowed, given: int | str, level: str = "required"
) -> tuple[str, ...]:
    """What is allowed for an input: hex patterns, a text, or one of ``WORDS``.

    Where the rule recommends a part of it, that part is shown to whoever asks at that level.
    """
    outcome = allowed.branch.outcome
    if level == "recommended":
        outcome = allowed.branch.strictest
    match outcome:
        case Exactly(code=code):
            return (ruling.target.hexadecimal(code),)
        case Anything():
            return ("anything",)
        case Nan(sign=sign):
            return (f"{sign}nan" if sign in "+-" else "any-nan",)
        case Rejected():
            return ("error",)
        case Same() if isinstance(given, str):
            return (given,)
        case PlainText(reads_back=wanted):
            return ("plain-value" if wanted else "plain-text",)
        case ParsesTo():
            return ("parses-to-input",)
    return tuple(ruling.target.hexadecimal(code) for code in allowed.codes)
