"""Grades answers to a quantization, element by element: right, not recommended, or not allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from conformance.families.family import GradedTensor, Rule
from conformance.families.quantization import exact as exact_quantization
from conformance.families.quantization.exact import AllowedCode, AllowedResult
from conformance.families.quantization.kernels import (
    NAN_CODES,
    NO_CODE,
    ExpectedCodes,
    expect,
    values_of,
)
from conformance.families.quantization.ruling import Formula
from oracles.protocol import Bits, Mask
from reports.counterexample.drawing import datum_with_value
from reports.grading.allowed_answers import is_nan
from reports.grading.divergences import index_of_simplest
from specs.cases import Shape
from specs.formats import Format
from specs.model.step_entry import FormulaStep
from specs.outcomes import Nan

EXACT_SAMPLE = 8
"""How many elements of a request the definition judges if the reference gave the answers."""
ORDINARY_SCALES = 2.0**-16, 2.0**16
"""The ends of the range of scales that people meet; an example is taken from there if it can be."""
SIGN_OF_NANS = {code: sign for sign, code in NAN_CODES.items()}
NAN_WORDS = {"any": "any-nan", "+": "+nan", "-": "-nan"}
"""The NaNs of a sign, or of any, as JSON spells them."""
NAN_NAMES = {"any": "any NaN", "+": "+NaN", "-": "-NaN"}
"""The NaNs of a sign, or of any, as a sentence names them."""
OPEN = "anything"
"""The word for the allowed answers where the document says nothing."""


@dataclass(frozen=True, eq=False)
class Elements:
    """Patterns of elements in a row, each with its own scale and zero point.

    ``zero`` is None if there are no zero points.
    """

    x: Bits
    scale: Bits
    zero: Bits | None

    def at(self, where: NDArray[np.intp]) -> Elements:
        """Return the elements at these indices."""
        zero = None if self.zero is None else self.zero[where]
        return Elements(self.x[where], self.scale[where], zero)

    def __iter__(self) -> Iterator[tuple[int, int, int | None]]:
        zeros = [None] * self.x.size if self.zero is None else self.zero.tolist()
        return zip(self.x.tolist(), self.scale.tolist(), zeros, strict=True)


@dataclass(frozen=True, eq=False)
class Graded:
    """Masks of elements: those that break a required or a recommended rule, and the open ones."""

    is_required: Mask
    is_recommended: Mask
    is_open: Mask

    @property
    def is_wrong(self) -> Mask:
        """The mask of the elements that break a required or a recommended rule."""
        return self.is_required | self.is_recommended


def grade(target: Format, expected: ExpectedCodes, answers: Bits) -> Graded:
    """Grade answers, one for each element of ``expected``, by the patterns that it allows."""
    strong = _among(target, expected.strong, answers)
    weaker = _among(target, expected.weaker, answers)
    wrong = ~strong & ~expected.is_open
    is_required = wrong & ~weaker & ~expected.is_recommended
    return Graded(is_required, wrong & ~is_required, expected.is_open)


def _among(target: Format, codes: list[NDArray[np.int64]], answers: Bits) -> Mask:
    given = answers.astype(np.int64)
    found = np.zeros(given.shape, np.bool_)
    for each in codes:
        found |= each == given
        for sign, code in NAN_CODES.items():
            if (here := each == code).any():
                found |= here & is_nan(target, answers, sign)
    return found


def as_code(allowed: AllowedCode) -> int:
    """Return an allowed pattern as it is; for NaNs, their number in ``NAN_CODES``."""
    return NAN_CODES[allowed.sign] if isinstance(allowed, Nan) else allowed


def code_word(target: Format, code: int) -> str:
    """Spell an allowed pattern for JSON: in hex digits, or as `any-nan`, `+nan` or `-nan`."""
    sign = SIGN_OF_NANS.get(code)
    return target.hexadecimal(code) if sign is None else NAN_WORDS[sign]


def simplest_element(
    rules: Formula, elements: Elements, among: Mask, *, prefers_usual: bool
) -> int:
    """Return the index of the simplest ``x`` that a mask marks.

    If it ``prefers_usual``, one under an ordinary scale comes first.
    """
    if not prefers_usual:
        return index_of_simplest(rules.source, elements.x, among)
    low, high = ORDINARY_SCALES
    scales = values_of(rules.scale, elements.scale)
    is_usual = among & (scales >= low) & (scales <= high)
    return index_of_simplest(rules.source, elements.x, is_usual if is_usual.any() else among)


def expect_exactly(rules: Formula, elements: Elements) -> ExpectedCodes:
    """Return the expected codes of few elements, computed one by one by the definition."""
    found = [allowed(rules, *each) for each in elements]

    def columns(
        pick: Callable[[AllowedResult], tuple[AllowedCode, ...]],
    ) -> list[NDArray[np.int64]]:
        most = max((len(pick(each)) for each in found), default=0)
        rows = [
            [*map(as_code, pick(each)), *[NO_CODE] * (most - len(pick(each)))] for each in found
        ]
        return [np.array([row[at] for row in rows], np.int64) for at in range(most)]

    return ExpectedCodes(
        columns(lambda each: each.codes),
        columns(lambda each: each.weaker),
        np.array([each.is_open for each in found], np.bool_),
        np.array([each.level == "recommended" for each in found], np.bool_),
    )


def expect_by_kernels(rules: Formula, elements: Elements) -> ExpectedCodes:
    """Return the expected codes of many elements; cached by formula and the object ``elements``."""
    return _remembered(rules, elements)


@lru_cache(128)
def _remembered(rules: Formula, elements: Elements) -> ExpectedCodes:
    return expect(rules, elements.x, elements.scale, elements.zero)


@lru_cache(1 << 16)
def allowed(rules: Formula, x: int, scale: int, zero: int | None) -> AllowedResult:
    """Return what the definition allows for one element; ``zero`` is None without a zero point.

    The codes of a dynamic quantization are judged as those of a plain one.
    """
    if rules.operation == "dequantize":
        return exact_quantization.dequantized(rules, x, scale, zero)
    return exact_quantization.quantized(rules, x, scale, zero)


def allowed_words(target: Format, found: AllowedResult, *, at_required: bool) -> tuple[str, ...]:
    """Return the allowed patterns in words, with their values.

    If ``at_required``, they include those that break only a recommendation.
    """
    codes = found.codes + (found.weaker if at_required else ())
    return tuple(
        NAN_NAMES[code.sign] if isinstance(code, Nan) else datum_with_value(target, code)
        for code in codes
    )


def rule_of(rules: Formula, found: AllowedResult) -> tuple[str, str]:
    """Return the name and the clause of the rule that best explains a wrong element.

    Steps that changed the value are tried in the order of ``order``, saturation first. If none did,
    it is the rule of the last step taken.
    """
    order: tuple[tuple[FormulaStep, tuple[str, ...]], ...] = (
        ("saturation", ("out-of-range", "infinite", "nan")),
        ("rounding", ("fraction",)),
        ("product", ("inexact",)),
        ("quotient", ("inexact",)),
        ("difference", ("other",)),
        ("zero-point", ("other",)),
    )
    passed = set(found.situations)
    for step, situations in order:
        for situation in situations:
            if (step, situation) in passed:
                outcome = rules.outcomes[step][situation]  # type: ignore[index]
                return outcome.rule, outcome.clause
    step, situation = found.situations[-1]
    outcome = rules.outcome(step, situation)
    return outcome.rule, outcome.clause


def element_words(rules: Formula, x: int, scale: int, zero: int | None) -> str:
    """Return an element in words, with its scale, and with its zero point unless that is None."""
    codes = rules.source if rules.operation == "dequantize" else rules.target
    offset = "" if zero is None else f", zero point {datum_with_value(codes, zero)}"
    return (
        f"{datum_with_value(rules.source, x)}, scale {datum_with_value(rules.scale, scale)}{offset}"
    )


def graded_result(
    name: str,
    form: Format,
    shape: Shape,
    answer: Bits | None,
    expected: ExpectedCodes,
    inputs: tuple[Format, Bits],
    rule: Callable[[int], Rule],
    given: Callable[[int], dict[str, str]],
) -> GradedTensor:
    """Return a result beside its expected patterns; ``answer`` is None if an error came instead.

    An error is wrong for each element that is not open. ``inputs``, ``rule`` and ``given`` are
    those of ``GradedTensor``.
    """

    def allowed(at: int, at_required: bool) -> list[str]:
        if expected.is_open[at]:
            return [OPEN]
        columns = expected.strong + (expected.weaker if at_required else [])
        codes = dict.fromkeys(int(each[at]) for each in columns)
        return [code_word(form, code) for code in codes if code != NO_CODE]

    def wrong(level: str) -> Mask:
        if answer is None:
            of_level = expected.is_recommended == (level == "recommended")
            return np.asarray(~expected.is_open & of_level)
        return graded().is_required if level == "required" else graded().is_recommended

    @cache
    def graded() -> Graded:
        assert answer is not None
        return grade(form, expected, answer.reshape(-1))

    return GradedTensor(
        name, form, shape, answer, expected.is_open, inputs, rule, given, allowed, wrong
    )
