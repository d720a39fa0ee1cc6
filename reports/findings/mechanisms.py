"""Mechanisms: how a backend may have come to a wrong answer, and which answers each explains.

Most say what the backend does instead of what the document wants: it rounds twice, ignores a
parameter, or follows another version. The others are the closed forms of ``specs/behaviors.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from math import ldexp
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oracles.reference import expect_by_exact, expect_by_kernels
from oracles.reference.exact import Number, decode
from oracles.reference.exact_text import NUMBER
from oracles.reference.expectations import Expected
from oracles.reference.reference_oracle import Reference
from reports.behaviors.closed_forms import applies_to, evaluate, has_behaviors
from reports.diff.allowed_answers import grade_answers, is_nan
from reports.diff.grades import ALLOWED, NOT_ALLOWED, NOT_RECOMMENDED
from reports.findings.bit_arithmetic import moved_bits, nan_as_float32, rounded_exponents
from reports.findings.failing_inputs import Mask
from specs.behaviors import Answer, Via, behaviors
from specs.cases import Case
from specs.editions import edition
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.ruling import Ruling, ruling

BETWEEN = ("float32", "float16", "bfloat16", "float64")
"""The dtypes through which a backend may convert."""
DIGITS = range(6, 18)
"""How many significant digits a backend may write."""


@dataclass(frozen=True)
class RoundsTwice:
    """Converts to another dtype first, and that result to the target."""

    through: str
    tells_where = True

    @property
    def name(self) -> str:
        return f"rounds-twice-through-{self.through}"

    @property
    def says(self) -> str:
        return f"rounds twice, through {self.through}"


@dataclass(frozen=True)
class NanSign:
    """Gives a NaN, but of another sign than the document wants."""

    tells_where = True
    name = "nan-sign"
    says = "gives a NaN of the wrong sign"


@dataclass(frozen=True)
class Unchanged:
    """Gives the input back, where source and target are the same."""

    tells_where = False
    name = "unchanged"
    says = "gives the input back as it is"


@dataclass(frozen=True)
class OtherMode:
    """Answers as if a parameter had another value."""

    parameter: str
    value: str
    tells_where = True

    @property
    def name(self) -> str:
        return f"as-{self.parameter}-{self.value}"

    @property
    def says(self) -> str:
        return f"answers as with {self.parameter} = {self.value} where it has another value"


@dataclass(frozen=True)
class OtherVersion:
    """Answers as another version of the document requires."""

    document: str
    version: str
    tells_where = True

    @property
    def name(self) -> str:
        return f"as-{self.document}-{self.version}"

    @property
    def says(self) -> str:
        return f"answers as {self.document}:{self.version} requires, in other versions too"


@dataclass(frozen=True)
class ClosedForm:
    """Answers what a behavior answers."""

    behavior: str
    tells_where = False

    @property
    def name(self) -> str:
        return self.behavior

    def behavior_of(self, source: Format, target: Format) -> str:
        """The behavior by which it answers a pair."""
        return self.behavior

    @property
    def is_constant(self) -> bool:
        """Whether the answer is the same for every input."""
        return any(isinstance(step, Answer) for step in behaviors()[self.behavior].steps)

    @property
    def says(self) -> str:
        return behaviors()[self.behavior].says


@dataclass(frozen=True)
class Exponent:
    """Writes numbers as text with an exponent."""

    tells_where = True
    name = "writes-an-exponent"
    says = "writes numbers with an exponent"


@dataclass(frozen=True)
class Printf:
    """Writes numbers as text with so many significant digits, like C's ``printf``."""

    digits: int
    tells_where = True

    @property
    def name(self) -> str:
        return f"printf-{self.digits}g"

    @property
    def says(self) -> str:
        return f"writes numbers as printf does with %.{self.digits}g"


@dataclass(frozen=True)
class ExponentBits:
    """Rounds to a power of two by the bits of a float32, subnormal numbers included.

    It rounds as the case's mode says, or whatever that is by ``rounding``.
    """

    rounding: Literal["", "half-even", "half-up"] = ""
    tells_where = True

    @property
    def name(self) -> str:
        return "-".join(filter(None, ("exponent-bits", self.rounding)))

    @property
    def says(self) -> str:
        match self.rounding:
            case "half-even":
                return "rounds to nearest by the exponent bits, ties to even, whatever the mode"
            case "half-up":
                return "rounds to nearest by the exponent bits, ties up, whatever the mode"
            case _:
                return "rounds by the exponent bits, also those of zero, subnormals and infinity"


@dataclass(frozen=True)
class MovesBits:
    """Converts small floats by moving their bits, through float32."""

    tells_where = True
    name = "moves-bits"
    says = (
        "converts small floats by moving their bits, through float32, zeros, subnormal numbers,"
        " infinities, NaNs and what is out of range as if they were normal"
    )


@dataclass(frozen=True)
class ConvertsAsC:
    """Converts to integers as compilers do on x86-64 where C leaves it undefined."""

    tells_where = False
    is_constant = False
    name = "as-c-on-x86"
    says = (
        "converts to integers as C on x86-64: truncates to int32 or int64 (its minimum when out of"
        " range or NaN) and keeps the low bits"
    )

    def behavior_of(self, source: Format, target: Format) -> str:
        """The behavior by which it answers a pair."""
        if source.kind != "float":
            return "wrap"
        return "via-int32" if target.bits < 32 or target.name == "int32" else "via-int64"


ROUNDED_FIRST = {
    "nearest": "via-float32-nearest",
    "nearest-clamp": "via-float32-nearest-clamp",
    "nearest-nan": "via-float32-nearest-nan",
}
"""Behaviors, and the same of what was rounded to float32: it may be the first beyond the range."""
FOLLOWS_OTHER_RULES = (OtherMode, OtherVersion)
"""Mechanisms that are no cause unless they also tell where the answers are wrong."""
Mechanism = (
    NanSign
    | RoundsTwice
    | Unchanged
    | OtherMode
    | OtherVersion
    | ClosedForm
    | Exponent
    | Printf
    | ExponentBits
    | MovesBits
    | ConvertsAsC
)


def candidates(case: Case) -> Iterator[Mechanism]:
    """The mechanisms that can explain answers to a case; of two that explain alike, the first."""
    source, target = format_named(case.source), format_named(case.target)
    document = document_named(case.document)
    if target.kind == "text":
        yield from map(Printf, DIGITS)
        yield Exponent()
        return
    if target.has_signed_nan:
        yield NanSign()
    if target.name == "float8e8m0":
        yield from (ExponentBits(), ExponentBits("half-even"), ExponentBits("half-up"))
    if target.is_integral:
        yield ConvertsAsC()
    forms = list(_closed_forms(source, target))
    yield from (form for form in forms if form.is_constant)
    yield from (RoundsTwice(each) for each in BETWEEN if each not in (case.source, case.target))
    if source == target:
        yield Unchanged()
    for name, parameter in edition(document, case.version).parameters():
        for value in parameter.values:
            if case.mode.get(name, value) != value:
                yield OtherMode(name, value)
    for version in document.entry.versions:
        if version != case.version:
            yield OtherVersion(case.document, version)
    yield from (form for form in forms if not form.is_constant)
    if _is_small(source) or (_is_small(target) and target.entry.mantissa):
        yield MovesBits()


def _closed_forms(source: Format, target: Format) -> Iterator[ClosedForm]:
    if has_behaviors(source, target):
        for name, behavior in behaviors().items():
            # ``RoundsTwice`` says more than a form that rounds to another float first.
            is_double = any(isinstance(step, Via) for step in behavior.steps)
            if applies_to(behavior, source, target) and not is_double:
                yield ClosedForm(name)


def other_case(mechanism: Mechanism, case: Case) -> Case | None:
    """The case whose rules a mechanism follows instead, if it is one of that kind."""
    # A worked example is one of its own case: no other has the same input.
    case = replace(case, example=None)
    match mechanism:
        case RoundsTwice(through):
            return replace(case, source=through)
        case OtherMode(parameter, value):
            modes = tuple((name, value if name == parameter else old) for name, old in case.modes)
            return replace(case, modes=modes)
        case OtherVersion(_, version):
            return replace(case, version=version)
    return None


def explained(
    mechanism: Mechanism, case: Case, inputs: NDArray[Any], answers: NDArray[Any], level: str
) -> Mask:
    """Which answers a mechanism gives, so that by it they break no rule of that level."""
    source, target = format_named(case.source), format_named(case.target)
    match mechanism:
        case RoundsTwice() | OtherMode() | OtherVersion():
            other = other_case(mechanism, case)
            given = _inputs_of_other(mechanism, case, inputs)
            if other is None or given is None:
                return np.zeros(inputs.shape, bool)
            found = _allowed(other, given, answers, level)
            if not isinstance(mechanism, RoundsTwice) or source.kind == "text":
                return found
            # A second rounding does not change NaNs.
            return found & ~is_nan(source, inputs)
        case NanSign():
            return is_nan(source, inputs) & is_nan(target, answers)
        case Unchanged():
            return _equal(target, inputs, answers)
        case ExponentBits():
            rounded = _rounded_exponents(mechanism, case, inputs)
            return rounded == answers if rounded is not None else np.zeros(inputs.shape, bool)
        case MovesBits():
            return _explained_by_moves(case, inputs, answers, level)
        case Exponent():
            plain = np.array([_without_exponent(each) for each in answers], object)
            return _allowed(case, inputs, plain, level)
        case Printf(digits):
            texts = [_printf(source, code, digits) for code in inputs.tolist()]
            printed: Mask = np.array(texts, object) == answers
            return printed
        case ClosedForm() | ConvertsAsC():
            behavior = mechanism.behavior_of(source, target)
            codes, defined = evaluate(behaviors()[behavior], source, target, inputs)
            # Of a NaN that comes out as a NaN only the sign can be wrong.
            both_nan = is_nan(source, inputs) & is_nan(target, answers)
            if mechanism.is_constant and target.is_signed and target.kind == "float":
                # Whatever the sign, it is the same constant.
                magnitude = np.dtype(target.storage).type(target.mask ^ target.sign_bit)
                codes, answers = codes & magnitude, answers & magnitude
            found = defined & _equal(target, codes, answers) & ~both_nan
            if behavior in ROUNDED_FIRST:
                again, _ = evaluate(behaviors()[ROUNDED_FIRST[behavior]], source, target, inputs)
                found |= _at_end(target, again) & _equal(target, again, answers) & ~both_nan
            return found


def predicted_failures(mechanism: Mechanism, case: Case, inputs: NDArray[Any]) -> Mask | None:
    """On which inputs a mechanism breaks a rule of its own case; None if that is not computed."""
    source, target = format_named(case.source), format_named(case.target)
    rules = answered_ruling(case)
    if rules is None or not (source.is_numeric and target.is_numeric):
        return None
    match mechanism:
        case RoundsTwice() | OtherMode() | OtherVersion():
            other = other_case(mechanism, case)
            given = _inputs_of_other(mechanism, case, inputs)
            if other is None or given is None or answered_ruling(other) is None:
                return None
            codes, defined = Reference().cast(other, given), np.ones(inputs.shape, bool)
        case ClosedForm() | ConvertsAsC():
            behavior = behaviors()[mechanism.behavior_of(source, target)]
            codes, defined = evaluate(behavior, source, target, inputs)
        case ExponentBits():
            rounded = _rounded_exponents(mechanism, case, inputs)
            if rounded is None:
                return None
            codes, defined = rounded.astype(target.storage), rounded <= target.mask
        case MovesBits():
            patterns = _moved_to_float32(case, inputs)
            if patterns is None:
                return None
            if _is_small(target):
                codes = moved_bits(format_named("float32"), target, patterns)
            else:
                codes = Reference().cast(replace(case, source="float32", example=None), patterns)
            defined = np.ones(inputs.shape, bool)
        case Unchanged():
            codes, defined = inputs, np.ones(inputs.shape, bool)
        case _:
            return None
    is_wrong = grade_answers(rules, inputs, expected_of(rules, inputs), codes) != ALLOWED
    # No mechanism says which of several NaNs comes out.
    failures: Mask = defined & is_wrong & ~is_nan(source, inputs)
    return failures


def _is_small(dtype: Format) -> bool:
    """Whether a dtype is a float that some backends convert by moving its bits."""
    return dtype.kind == "float" and (dtype.bits <= 8 or dtype.name == "bfloat16")


def _rounded_exponents(
    mechanism: ExponentBits, case: Case, inputs: NDArray[Any]
) -> NDArray[np.uint16] | None:
    """The exponents to which a mechanism rounds; None if float32 inputs are not defined."""
    patterns = _converted(case, "float32", inputs)
    if patterns is None:
        return None
    return rounded_exponents(patterns, mechanism.rounding or case.mode.get("round_mode", ""))


def _explained_by_moves(
    case: Case, inputs: NDArray[Any], answers: NDArray[Any], level: str
) -> Mask:
    """Which answers come from moving bits, on the way to float32 or from there."""
    target, patterns = format_named(case.target), _moved_to_float32(case, inputs)
    if patterns is None:
        return np.zeros(inputs.shape, bool)
    if _is_small(target):
        moved: Mask = moved_bits(format_named("float32"), target, patterns) == answers
        return moved
    return _allowed(replace(case, source="float32", example=None), patterns, answers, level)


def _moved_to_float32(case: Case, inputs: NDArray[Any]) -> NDArray[Any] | None:
    """The inputs as float32, small floats by moving their bits; None if that is not defined."""
    source, target = format_named(case.source), format_named("float32")
    if _is_small(source):
        return moved_bits(source, target, inputs)
    patterns = _converted(case, target.name, inputs)
    if patterns is not None and source is not target and source.entry.nan == "ieee":
        nans = is_nan(source, inputs)
        patterns = patterns.copy()
        patterns[nans] = nan_as_float32(source, inputs[nans])
    return patterns


def _at_end(target: Format, codes: NDArray[Any]) -> Mask:
    """Which patterns are infinities, NaNs, or the largest values."""
    magnitudes = codes & np.dtype(target.storage).type(target.mask ^ target.sign_bit)
    ends: Mask = (magnitudes >= target.max_code) | is_nan(target, codes)
    return ends


def _converted(case: Case, dtype: str, inputs: NDArray[Any]) -> NDArray[Any] | None:
    """The inputs of a case in another dtype; None if the document does not define that."""
    if case.source == dtype:
        return inputs
    first = replace(case, target=dtype, modes=(), example=None)
    return Reference().cast(first, inputs) if answered_ruling(first) is not None else None


def _inputs_of_other(mechanism: Mechanism, case: Case, inputs: NDArray[Any]) -> NDArray[Any] | None:
    """The inputs that the other case is asked; None if the document does not define them."""
    if not isinstance(mechanism, RoundsTwice):
        return inputs
    return _converted(case, mechanism.through, inputs)


@lru_cache(1 << 14)
def known_ruling(case: Case) -> Ruling | None:
    """The ruling of a case; None for a bitcast, and for a case that the document has no longer."""
    try:
        return ruling(case)
    except (CastigateError, KeyError):
        return None


def answered_ruling(case: Case) -> Ruling | None:
    """The ruling of a case that its document wants answered; None if there is no such case."""
    rules = known_ruling(case)
    return None if rules is None or rules.is_rejection or rules.is_open else rules


def expected_of(rules: Ruling, inputs: NDArray[Any]) -> Expected:
    """Compute what a ruling allows for each input, by the kernels where they can tell."""
    is_numeric = rules.source.is_numeric and rules.target.is_numeric and not rules.worked
    expect = expect_by_kernels.expect if is_numeric else expect_by_exact.expect
    return expect(rules, inputs)


def _allowed(case: Case, inputs: NDArray[Any], answers: NDArray[Any], level: str) -> Mask:
    """Which answers break no rule of another case; where that is open, what is usual is due."""
    rules = answered_ruling(case)
    if rules is None:
        return np.zeros(inputs.shape, bool)
    expected = expected_of(rules, inputs)
    grades = grade_answers(rules, inputs, expected, answers)
    found: Mask = grades < (NOT_ALLOWED if level == "required" else NOT_RECOMMENDED)
    is_open = np.isin(expected.branch_indices, rules.open_branches)
    if is_open.any():
        found &= ~is_open
        is_float = rules.target.kind == "float"
        usual: ClosedForm | ConvertsAsC = ClosedForm("nearest") if is_float else ConvertsAsC()
        behavior = behaviors()[usual.behavior_of(rules.source, rules.target)]
        if applies_to(behavior, rules.source, rules.target):
            codes, defined = evaluate(behavior, rules.source, rules.target, inputs)
            found |= is_open & defined & _equal(rules.target, codes, answers)
    return found


def _equal(target: Format, codes: NDArray[Any], answers: NDArray[Any]) -> Mask:
    """Which patterns are equal; all NaNs are."""
    equal: Mask = codes == answers
    if target.nan_codes:
        equal |= is_nan(target, codes) & is_nan(target, answers)
    return equal


def _without_exponent(text: Any) -> Any:
    """A number's text in plain notation; any other answer as it is."""
    if not (isinstance(text, str) and NUMBER.fullmatch(text)):
        return text
    return f"{Decimal(text):f}"


def _printf(dtype: Format, code: int, digits: int) -> str:
    """A number as text with so many significant digits; empty for NaNs and infinities."""
    number = decode(dtype, code)
    if not isinstance(number, Number):
        return ""
    # No format has more digits or a wider range than Python's own floats.
    magnitude = ldexp(number.significand, number.exponent)
    return f"{-magnitude if number.sign else magnitude:.{digits}g}"
