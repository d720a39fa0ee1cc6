"""Computes which answers each mechanism gives to the inputs of a case."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from math import ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.behavior_steps import constant
from oracles.reference.exact import Number, decode
from oracles.reference.exact_text import NUMBER
from oracles.reference.expectations import has_branch
from oracles.reference.reference_oracle import Casts, with_nans
from reports.behaviors.closed_forms import applies_to, evaluate, real_format, real_patterns
from reports.findings.asked_inputs import AskedInputs, answered_ruling, expected_of
from reports.findings.bit_arithmetic import (
    clamped_first,
    clamped_in_source,
    doubled,
    flushed,
    moved_bits,
    nan_as_float32,
    nearest,
    negated,
    rounded_as_normal,
    rounded_exponents,
    subnormals,
    with_wrapped_shifts,
    without_middle_bits,
)
from reports.findings.candidates import case_between, other_case
from reports.findings.codec_mechanisms import CODECS, CodecFault, Faulty, OtherBias, codec_answers
from reports.findings.failing_inputs import Mask
from reports.findings.mechanisms import (
    ClosedForm,
    ConvertsAsC,
    Exponent,
    ExponentBits,
    FewStickyBits,
    Flawed,
    IgnoresLowBits,
    LosesInnerZeros,
    Mechanism,
    MovesBits,
    NanSign,
    OtherMode,
    OtherRounding,
    OtherVersion,
    Printf,
    ReversedBytes,
    RoundsTwice,
    TakenFor,
    Unchanged,
    is_small,
)
from reports.grading.allowed_answers import grade_answers, is_nan
from reports.grading.grades import ALLOWED, NOT_ALLOWED, NOT_RECOMMENDED
from specs.behaviors import Answer, behaviors
from specs.branches import Ruling, rounded_otherwise
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.vocabulary import Rounding
from specs.ruling import ruling

REFERENCE = Casts()
"""Shared by all cases, because it caches its answers to all patterns of narrow dtypes."""
MOST_PLACES = 400
"""No number of a format has more digits before its point, or more zeros after it."""
PRINTED = 8
"""Arrays of patterns whose values are cached: all numbers of digits are tried on each."""
INNER_ZEROS = re.compile(r"(?<=[0-9])0+(?=[1-9])")
"""The zeros of a number in plain notation that have other digits on both sides."""
ROUNDED_FIRST = {
    "nearest": "via-float32-nearest",
    "nearest-clamp": "via-float32-nearest-clamp",
    "nearest-nan": "via-float32-nearest-nan",
}
"""Behaviors, and the same after rounding to float32, which can move numbers out of the range."""


def explained(
    mechanism: Mechanism, case: Case, inputs: NDArray[Any], answers: NDArray[Any], level: str
) -> Mask:
    """Which answers a mechanism explains: according to it, they break no rule of this level."""
    source, target = format_named(case.source), format_named(case.target)
    match mechanism:
        case RoundsTwice() | OtherMode() | OtherVersion() | TakenFor():
            other = other_case(mechanism, case)
            given = _inputs_of_other(mechanism, case, inputs)
            if other is None or given is None:
                return np.zeros(inputs.shape, bool)
            found = _allowed(other, given, answers, level)
            if not isinstance(mechanism, RoundsTwice) or source.kind == "text":
                return found
            # A second rounding does not change NaNs.
            return found & ~is_nan(source, inputs)
        case OtherRounding(rounding):
            rules = answered_ruling(case)
            if rules is None:
                return np.zeros(inputs.shape, bool)
            codes = _rounded(rules, rounding, inputs)
            return _equal(target, codes, answers) & ~is_nan(source, inputs)
        case IgnoresLowBits(count):
            read = _without_low_bits(inputs, count)
            return _allowed(_without_example(case), read, answers, level) & ~_is_nan(source, inputs)
        case FewStickyBits(kept):
            read = without_middle_bits(source, target, kept, inputs)
            return _allowed(_without_example(case), read, answers, level) & ~_is_nan(source, inputs)
        case NanSign():
            return is_nan(source, inputs) & is_nan(target, answers)
        case Unchanged():
            return _equal(target, inputs, answers)
        case ReversedBytes(of):
            if of == "answers":
                return _allowed(case, inputs, answers.byteswap(), level)
            return _allowed(_without_example(case), inputs.byteswap(), answers, level)
        case ExponentBits():
            rounded = _rounded_exponents(mechanism, case, inputs)
            return rounded == answers if rounded is not None else np.zeros(inputs.shape, bool)
        case MovesBits():
            return _explained_by_moves(case, inputs, answers, level)
        case Flawed():
            flawed = _flawed_codes(mechanism, case, inputs)
            if flawed is None:
                return np.zeros(inputs.shape, bool)
            codes, affected = flawed
            return affected & _equal(target, codes, answers)
        case CodecFault() | OtherBias():
            faulty = _codec_answers(mechanism, case, inputs)
            return faulty.concerned & _equal(target, faulty.codes, answers)
        case Exponent():
            plain = np.array([_without_exponent(each) for each in answers], object)
            return _allowed(case, inputs, plain, level)
        case Printf():
            written = np.array([_may_print(mechanism, each) for each in answers], bool)
            texts, _ = _texts(mechanism, case, inputs[written])
            written[written] = texts == answers[written]
            return written
        case LosesInnerZeros():
            texts, _ = _texts(mechanism, case, inputs)
            shortened: Mask = texts == answers
            return shortened
        case ClosedForm() | ConvertsAsC():
            codes, defined = _codes_of_form(mechanism, source, target, inputs)
            # Of a NaN that comes out as a NaN only the sign can be wrong.
            both_nan = _is_nan(source, inputs) & is_nan(target, answers)
            found = defined & _equal(target, codes, answers) & ~both_nan
            if isinstance(mechanism, ClosedForm) and mechanism.has_sign_of_input:
                # A constant may have any sign where the input is a NaN.
                found |= _is_nan(source, inputs) & _equal(target, negated(target, codes), answers)
            behavior = mechanism.behavior_of(source, target)
            if behavior in ROUNDED_FIRST and source.is_numeric:
                again, _ = evaluate(behaviors()[ROUNDED_FIRST[behavior]], source, target, inputs)
                found |= _at_end(target, again) & _equal(target, again, answers) & ~both_nan
            return found


def predicted_failures(mechanism: Mechanism, case: Case, asked: AskedInputs) -> Mask | None:
    """On which inputs a mechanism would break a rule of the case; None if that is not computable.

    Where ``Exponent`` writes an exponent is read from the backend's answers, not predicted.
    """
    rules, inputs, answers = asked.rules, asked.inputs, asked.answers
    source, target = rules.source, rules.target
    match mechanism:
        case Exponent():
            codes, defined = answers, np.array(["e" in each.lower() for each in answers], bool)
            some = inputs[defined], answers[defined]
            defined[defined] = explained(mechanism, case, *some, "recommended")
        case Printf() | LosesInnerZeros():
            codes, defined = _texts(mechanism, case, inputs)
        case NanSign():
            right, answered = _right(case, inputs)
            codes, defined = negated(target, right), answered & _is_nan(source, inputs)
        case RoundsTwice() | OtherMode() | OtherVersion() | TakenFor():
            other = other_case(mechanism, case)
            given = _inputs_of_other(mechanism, case, inputs)
            if other is None or given is None or answered_ruling(other) is None:
                return None
            codes, defined = _right(other, given)
        case OtherRounding(rounding):
            codes, defined = _rounded(rules, rounding, inputs), ~_is_nan(source, inputs)
        case IgnoresLowBits(count):
            read = _without_low_bits(inputs, count)
            codes, defined = _right(_without_example(case), read)
            defined = defined & ~_is_nan(source, inputs)
        case FewStickyBits(kept):
            read = without_middle_bits(source, target, kept, inputs)
            codes, defined = _right(_without_example(case), read)
            defined = defined & ~_is_nan(source, inputs)
        case ClosedForm() | ConvertsAsC():
            codes, defined = _codes_of_form(mechanism, source, target, inputs)
        case ExponentBits():
            rounded = _rounded_exponents(mechanism, case, inputs)
            if rounded is None:
                return None
            codes, defined = rounded.astype(target.storage), rounded <= target.mask
            if mechanism.rounding and source.kind == "float" and source.entry.infinity:
                # Which way it rounds says nothing about infinity.
                defined = defined & (inputs != source.infinity_code)
        case MovesBits():
            patterns = _moved_to_float32(case, inputs)
            if patterns is None:
                return None
            if is_small(target):
                codes = moved_bits(format_named("float32"), target, patterns)
                defined = np.ones(inputs.shape, bool)
            else:
                from_float32 = replace(case, source="float32", example=None)
                codes, defined = _right(from_float32, patterns)
        case Flawed():
            flawed = _flawed_codes(mechanism, case, inputs)
            if flawed is None:
                return None
            codes, defined = flawed
        case CodecFault() | OtherBias():
            codes, defined = _codec_answers(mechanism, case, inputs)
        case ReversedBytes(of):
            read = inputs.byteswap() if of == "inputs" else inputs
            codes, defined = _right(_without_example(case), read)
            codes = codes.byteswap() if of == "answers" else codes
        case Unchanged():
            codes, defined = inputs, np.ones(inputs.shape, bool)
    if not isinstance(mechanism, NanSign):
        # No other mechanism says which of several NaNs comes out, or rounds NaNs.
        both_nan = _is_nan(source, inputs) & is_nan(target, codes)
        defined = (
            defined
            & ~both_nan
            & (~_is_nan(source, inputs) | (not isinstance(mechanism, RoundsTwice)))
        )
    if target.is_numeric:
        grades = grade_answers(rules, inputs, asked.expected, codes)
        failures: Mask = defined & (grades != ALLOWED)
        return failures
    failures = np.zeros(inputs.shape, bool)
    some = inputs[defined]
    failures[defined] = (
        grade_answers(rules, some, expected_of(rules, some), codes[defined]) != ALLOWED
    )
    return failures


def _right(case: Case, inputs: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """The reference's answers, and which inputs the document does not require to be refused."""
    rules = ruling(_without_example(case))
    answered = np.ones(inputs.shape, bool)
    if not rules.refuses_some:
        return REFERENCE.cast(case, inputs), answered
    answered = ~has_branch(expected_of(rules, inputs).branch_indices, rules.refused_branches)
    codes = np.zeros(inputs.shape, rules.target.storage)
    codes[answered] = REFERENCE.cast(case, inputs[answered])
    return codes, answered


def _codec_answers(mechanism: CodecFault | OtherBias, case: Case, inputs: NDArray[Any]) -> Faulty:
    """The answers of a codec with a fault, and which inputs the fault concerns."""
    rules = ruling(case)
    return codec_answers(
        mechanism,
        rules.source,
        rules.target,
        inputs,
        lambda given: REFERENCE.cast(case, given),
        lambda given: _rounded(rules, "toward-zero", given),
    )


def _rounded(rules: Ruling, rounding: Rounding, inputs: NDArray[Any]) -> NDArray[Any]:
    """The answers that a ruling would require with another rounding."""
    other = rounded_otherwise(rules, rounding)
    found = expected_of(other, inputs)
    return with_nans(other, replace(found, codes=found.codes.copy()))


def _without_low_bits(inputs: NDArray[Any], count: int) -> NDArray[Any]:
    cleared: NDArray[Any] = inputs & ~inputs.dtype.type((1 << count) - 1)
    return cleared


def _is_nan(dtype: Format, patterns: NDArray[Any]) -> Mask:
    """Which patterns are NaNs; no text is one."""
    return is_nan(dtype, patterns) if dtype.nan_codes else np.zeros(patterns.shape, bool)


def _codes_of_form(
    mechanism: ClosedForm | ConvertsAsC, source: Format, target: Format, inputs: NDArray[Any]
) -> tuple[NDArray[Any], Mask]:
    """The answers of a behavior, and for which inputs they are defined."""
    behavior = behaviors()[mechanism.behavior_of(source, target)]
    if source.kind == "text":
        [code] = [
            constant(target, step.answer) for step in behavior.steps if isinstance(step, Answer)
        ]
        codes = np.full(inputs.shape, code, target.storage)
        defined = np.ones(inputs.shape, bool)
    else:
        codes, defined = evaluate(behavior, source, target, inputs)
    if isinstance(mechanism, ClosedForm) and mechanism.has_sign_of_input:
        codes = np.where(is_negative(source, inputs), negated(target, codes), codes)
    return codes, defined


def is_negative(source: Format, inputs: NDArray[Any]) -> Mask:
    """Which inputs have a minus sign; of complex numbers, which real parts."""
    if source.kind == "text":
        return np.array([text.startswith("-") for text in inputs.tolist()], bool)
    signs = real_patterns(source, inputs) & np.uint64(real_format(source).sign_bit)
    found: Mask = signs != 0
    return found


def _texts(
    mechanism: Printf | LosesInnerZeros, case: Case, inputs: NDArray[Any]
) -> tuple[NDArray[Any], Mask]:
    """The texts that a mechanism writes, and for which inputs it writes one."""
    source = format_named(case.source)
    if isinstance(mechanism, Printf):
        how = f".{mechanism.digits}{mechanism.conversion}"
        values = _values(source, inputs.tobytes())
        written = ["" if value is None else format(value, how) for value in values]
    else:
        wholes = (code - ((code & source.sign_bit) << 1) for code in inputs.tolist())
        written = [INNER_ZEROS.sub("", str(whole)) for whole in wholes]
    texts = np.array(written, object)
    return texts, texts != ""


def _without_example(case: Case) -> Case:
    """The case without its worked example, whose rules cover only the inputs of the example."""
    return replace(case, example=None)


def _rounded_exponents(
    mechanism: ExponentBits, case: Case, inputs: NDArray[Any]
) -> NDArray[np.uint16] | None:
    """The exponents to which a mechanism rounds; None if float32 inputs are not defined."""
    patterns = _converted(case, "float32", inputs)
    if patterns is None:
        return None
    mode = mechanism.rounding or case.mode.get("round_mode", "")
    return rounded_exponents(patterns, mode, case.mode.get("saturate") == "1")


def _flawed_codes(
    mechanism: Flawed, case: Case, inputs: NDArray[Any]
) -> tuple[NDArray[Any], Mask] | None:
    """The answers of arithmetic with a flaw, and which inputs the flaw can affect.

    None if the document does not define the conversions that it does first.
    """
    source, target = format_named(case.source), format_named(case.target)
    match mechanism.name:
        case "flushes-subnormals":
            if answered_ruling(case) is None:
                return None
            if source.kind == "text":
                return flushed(target, REFERENCE.cast(case, inputs))
            affected = subnormals(source, target, inputs)
            zeros = inputs & np.dtype(source.storage).type(source.sign_bit)
            codes, answered = _right(case, np.where(affected, zeros, inputs))
            return codes, affected & answered
        case "halves-large-integers":
            if answered_ruling(case) is None:
                return None
            halves, answered = _right(_without_example(case), inputs >> inputs.dtype.type(1))
            is_large = inputs > inputs.dtype.type(source.mask >> 1)
            return doubled(target, halves), is_large & answered
        case "rounds-subnormals-twice":
            if answered_ruling(case) is None:
                return None
            rounded, affected = rounded_as_normal(source, target, inputs)
            codes, answered = _right(_without_example(case), rounded)
            return codes, affected & answered
        case "wrong-sign":
            if answered_ruling(case) is None:
                return None
            right, answered = _right(case, inputs)
            return negated(target, right), answered & ~_is_nan(source, inputs)
        case "clamps-in-the-source-dtype":
            codes, affected = clamped_in_source(source, target, inputs)
            return codes, affected & ~is_nan(source, inputs)
    patterns = _as_float32(case, inputs)
    if patterns is None:
        return None
    if mechanism.name == "clamps-before-rounding":
        return clamped_first(target, patterns)
    scaled, affected = with_wrapped_shifts(target, patterns)
    return nearest(format_named("float32"), target, scaled), affected


def _explained_by_moves(
    case: Case, inputs: NDArray[Any], answers: NDArray[Any], level: str
) -> Mask:
    """Which answers come from moving bits, on the way to float32 or from there."""
    target, patterns = format_named(case.target), _moved_to_float32(case, inputs)
    if patterns is None:
        return np.zeros(inputs.shape, bool)
    if is_small(target):
        moved: Mask = moved_bits(format_named("float32"), target, patterns) == answers
        return moved
    return _allowed(replace(case, source="float32", example=None), patterns, answers, level)


def _moved_to_float32(case: Case, inputs: NDArray[Any]) -> NDArray[Any] | None:
    """The inputs as float32, small floats by moving their bits; None if that is not defined."""
    source, target = format_named(case.source), format_named("float32")
    if is_small(source):
        return moved_bits(source, target, inputs)
    return _as_float32(case, inputs)


def _as_float32(case: Case, inputs: NDArray[Any]) -> NDArray[Any] | None:
    """The inputs as float32, NaNs with their signs; None if the document does not define that."""
    source, patterns = format_named(case.source), _converted(case, "float32", inputs)
    if patterns is not None and source.name != "float32" and source.entry.nan == "ieee":
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
    if case.document == CODECS:
        # Every pair that rounds has modes there; the codec rounds by those of the case.
        first = case_between(case, case.source, dtype) or first
    rules = answered_ruling(first)
    return None if rules is None or rules.refuses_some else REFERENCE.cast(first, inputs)


def _inputs_of_other(mechanism: Mechanism, case: Case, inputs: NDArray[Any]) -> NDArray[Any] | None:
    """The inputs that the other case is asked; None if the document does not define them."""
    if not isinstance(mechanism, RoundsTwice):
        return inputs
    return _converted(case, mechanism.through, inputs)


def _allowed(case: Case, inputs: NDArray[Any], answers: NDArray[Any], level: str) -> Mask:
    """Which answers break no rule of another case; where it is open, the usual answer is due."""
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
    """Which patterns are equal; all NaNs count as equal."""
    equal: Mask = codes == answers
    if target.nan_codes:
        equal |= is_nan(target, codes) & is_nan(target, answers)
    return equal


def _without_exponent(text: Any) -> Any:
    """A number's text in plain notation; any other answer as it is."""
    if not (isinstance(text, str) and NUMBER.fullmatch(text)):
        return text
    try:
        number = Decimal(text)
    except InvalidOperation:  # of an exponent of hundreds of digits
        return text
    return f"{number:f}" if abs(number.adjusted()) <= MOST_PLACES else text


def _may_print(how: Printf, text: str) -> bool:
    """Whether a text has as many digits as ``printf`` writes; this is faster than writing one."""
    if how.conversion == "g":
        return True
    return len(text.partition(".")[2]) == how.digits and "e" not in text


@lru_cache(PRINTED)
def _values(dtype: Format, inputs: bytes) -> tuple[float | None, ...]:
    """The values of patterns as floats; None for NaNs and infinities."""
    return tuple(_number(dtype, code) for code in np.frombuffer(inputs, dtype.storage).tolist())


def _number(dtype: Format, code: int) -> float | None:
    number = decode(dtype, code)
    if not isinstance(number, Number):
        return None
    # No format has more digits or a wider range than Python's own floats.
    magnitude = ldexp(number.significand, number.exponent)
    return -magnitude if number.sign else magnitude
