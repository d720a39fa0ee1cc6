"""The table of mistakes that backends may make in casts: one row, a ``Wrong``, per mistake.

Rows are tried in the order of ``WRONGS``, then of ``TRIED_LAST``. The rows defined here answer by a
behavior of ``specs/behaviors.yaml``, or do the arithmetic of a conversion wrongly. The others come
from ``rule_wrongs``, ``codec_wrongs`` and ``text_wrongs``. A new row is an entry of ``WRONGS``; a
function makes the rows that differ in a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import get_args

import numpy as np

from oracles.protocol import Mask
from oracles.reference.behavior_steps import constant
from reports.behaviors.regions import applies_to, evaluate, has_behaviors
from reports.findings import bit_arithmetic
from reports.findings.bit_arithmetic import is_negative, moved_bits, negated
from reports.findings.codec_wrongs import CODEC_WRONGS, no_limit
from reports.findings.rule_wrongs import (
    ROUNDING_WORDS,
    converted,
    other_modes,
    other_versions,
    taken_for_others,
    taken_for_twins,
    through_others,
    through_usual,
    truncated_after_usual,
)
from reports.findings.wrong import (
    REFERENCE,
    CaseFormats,
    GivenAnswers,
    Patterns,
    RowAnswers,
    RowsOfTable,
    Tells,
    Wrong,
    allowed,
    behavior_of_c,
    computing,
    everywhere,
    following,
    if_answered,
    is_same,
    reading,
    right,
    rounded,
    without_example,
)
from reports.grading.allowed_answers import is_nan
from specs.behaviors import ConstantAnswer, Via, behaviors
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.vocabulary import Rounding

KEPT = 1 << 12
"""The most cases whose rows are cached."""
BYTE = 8
SINGLE = format_named("float32")
NEGATIVE: Mapping[str, str] = {
    "zero": "-0",
    "one": "-1",
    "maximum": "the lowest value",
    "infinity": "-infinity",
}
"""Maps constant behaviors to words for their answer to a negative input, if it takes the sign."""
ROUNDED_FIRST = {
    "nearest": "via-float32-nearest",
    "nearest-clamp": "via-float32-nearest-clamp",
    "nearest-nan": "via-float32-nearest-nan",
}
"""Maps behaviors to those that first round to float32, which can move numbers out of range."""


@cache
def form(name: str, *, has_sign: bool = False) -> Wrong:
    """Return the row for backends that answer by the behavior ``name``.

    With ``has_sign``, which only keys of ``NEGATIVE`` can have, the answers to negative inputs are
    negated.
    """
    behavior = behaviors()[name]
    is_constant = any(isinstance(step, ConstantAnswer) for step in behavior.steps)
    return replace(
        _by_behavior(name, behavior.says, lambda _: name, has_sign=has_sign),
        tells="constant" if is_constant else "form",
        says_of_negative=f"gives {NEGATIVE[name]}" if has_sign else "",
    )


def _by_behavior(
    name: str, says: str, behavior_of: Callable[[CaseFormats], str], *, has_sign: bool = False
) -> Wrong:
    """Return the row for backends that answer a pair by the behavior that ``behavior_of`` names.

    ``name`` and ``says`` are the name and the sentence of the row. With ``has_sign``, the answers
    to negative inputs are negated.
    """

    def answers(given: GivenAnswers) -> RowAnswers:
        source, target, inputs = given.source, given.target, given.inputs
        behavior = behaviors()[behavior_of(given)]
        if source.kind == "text":
            [code] = [constant(target, each.answer) for each in behavior.steps
                      if isinstance(each, ConstantAnswer)]  # fmt: skip
            codes, defined = np.full(inputs.shape, code, target.storage), everywhere(given)
        else:
            codes, defined = evaluate(behavior, source, target, inputs)
        if has_sign:
            codes = np.where(is_negative(source, inputs), negated(target, codes), codes)
        return RowAnswers(codes, defined)

    def matches(given: GivenAnswers, level: str) -> Mask:
        source, target = given.source, given.target
        codes, defined = answers(given)
        # Of a NaN that comes out as a NaN only the sign can be wrong.
        both_nan = given.nans & is_nan(target, given.answers)
        found: Mask = defined & is_same(target, codes, given.answers) & ~both_nan
        if has_sign:
            # A constant may have any sign where the input is a NaN.
            found |= given.nans & is_same(target, negated(target, codes), given.answers)
        again = ROUNDED_FIRST.get(behavior_of(given))
        if again and source.is_numeric:
            codes, _ = evaluate(behaviors()[again], source, target, given.inputs)
            found |= _at_end(target, codes) & is_same(target, codes, given.answers) & ~both_nan
        return found

    return Wrong(name, says, answers, matches=matches, tells="what")


def _at_end(target: Format, codes: Patterns) -> Mask:
    """Mark the patterns of a float that are infinities, NaNs, or the largest or lowest value."""
    magnitudes = codes & np.dtype(target.storage).type(target.mask ^ target.sign_bit)
    ends: Mask = (magnitudes >= target.max_code) | is_nan(target, codes)
    return ends


@cache
def _forms(source: Format, target: Format, tells: Tells) -> tuple[Wrong, ...]:
    """Return the rows of kind ``tells`` for the behaviors that apply to a pair of formats.

    Behaviors that first convert to another float are left out. For a text source, only behaviors
    with a constant answer have a row.
    """
    is_text = source.kind == "text"
    like = format_named("float64") if is_text else source
    if not has_behaviors(like, target) or (is_text and tells != "constant"):
        return ()
    # ``through`` says more than a form that rounds to another float first.
    names = (
        name
        for name, each in behaviors().items()
        if applies_to(each, like, target) and not any(isinstance(step, Via) for step in each.steps)
    )
    return tuple(each for each in map(form, names) if each.tells == tells)


def _constants(asked: CaseFormats) -> Iterator[Wrong]:
    constants = _forms(asked.source, asked.target, "constant")
    if asked.target.kind == "float" and asked.target.is_signed:
        yield from (form(each.name, has_sign=True) for each in constants if each.name in NEGATIVE)
    yield from constants


def _forms_of_input(asked: CaseFormats) -> Iterable[Wrong]:
    return _forms(asked.source, asked.target, "form")


_as_c = replace(
    _by_behavior(
        "as-c-on-x86",
        "converts to integers as C on x86-64: truncates to int32 or int64 (its minimum when out of"
        " range or NaN) and keeps the low bits",
        lambda asked: behavior_of_c(asked.source, asked.target),
    ),
    applies=lambda asked: asked.target.is_integral and has_behaviors(asked.source, asked.target),
)


@computing(
    "nan-sign",
    "gives a NaN of the wrong sign",
    lambda asked: asked.target.has_signed_nan,
    matches=lambda given, level: given.nans & is_nan(given.target, given.answers),
    changes_nans=True,
)
def _nan_sign(given: GivenAnswers) -> RowAnswers:
    codes, answered = right(given.case, given.inputs)
    return RowAnswers(negated(given.target, codes), answered & given.nans)


@computing(
    "unchanged",
    "gives the input back as it is",
    lambda asked: asked.source == asked.target,
    tells="what",
)
def _unchanged(given: GivenAnswers) -> RowAnswers:
    return RowAnswers(given.inputs, everywhere(given))


@computing(
    "reversed-bytes-of-answers",
    "gives its answers with their bytes in reverse order",
    lambda asked: asked.target.bits > BYTE,
    matches=lambda given, level: allowed(given.case, given.inputs, given.answers.byteswap(), level),
)
def bytes_of_answers_reversed(given: GivenAnswers) -> RowAnswers:
    """Return the right answers with the bytes of each in reverse order."""
    codes, answered = right(without_example(given.case), given.inputs)
    return RowAnswers(codes.byteswap(), answered)


bytes_of_inputs_reversed = reading(
    "reversed-bytes-of-inputs",
    "reads its inputs with their bytes in reverse order",
    lambda given: given.inputs.byteswap(),
    applies=lambda asked: asked.source.bits > BYTE,
)


def other_rounding(word: Rounding) -> Wrong:
    """Return the row for backends that round by ``word``, whatever the document requires."""

    @computing(f"rounds-{word}", ROUNDING_WORDS[word], _rounds)
    @if_answered
    def row(given: GivenAnswers) -> RowAnswers:
        return RowAnswers(rounded(given.case, word, given.inputs), ~given.nans)

    return row


def _rounds(asked: CaseFormats) -> bool:
    are_integral = asked.source.is_integral and asked.target.is_integral
    return asked.is_numeric and asked.target.kind != "boolean" and not are_integral


@computing(
    "rounds-nearest-up",
    "rounds to nearest, ties toward +infinity",
    lambda asked: _rounds(asked) and asked.source.kind == "float" and asked.source.is_signed,
)
@if_answered
def _ties_up(given: GivenAnswers) -> RowAnswers:
    """Return the answers of backends that add a half and round down.

    Of positive numbers these are those with ties away from zero. So are those of a negative number,
    if it is moved toward zero by one pattern: the neighbor of a tie is no tie.
    """
    inputs, source = given.inputs, given.source
    down, up, away = (
        rounded(given.case, each, inputs) for each in ("floor", "ceil", "nearest-away")
    )
    one = inputs.dtype.type(1)
    moved = is_negative(source, inputs) & ~given.nans & (inputs != source.sign_bit)
    beside = rounded(given.case, "nearest-away", np.where(moved, inputs - one, inputs))
    return RowAnswers(np.where(moved & (down != up), beside, away), ~given.nans)


@cache
def low_bits_ignored(count: int) -> Wrong:
    """Return the row for backends that read the lowest ``count`` bits of an input as zero."""
    bits = "bit" if count == 1 else f"{count} bits"
    return reading(
        f"ignores-{count}-low-bits",
        f"ignores the lowest {bits} of its inputs",
        lambda given: given.inputs & ~given.inputs.dtype.type((1 << count) - 1),
        has_nans=False,
    )


def _low_bits_ignored(asked: CaseFormats) -> Iterator[Wrong]:
    if asked.is_numeric:
        yield from map(low_bits_ignored, range(1, asked.source.entry.mantissa or asked.source.bits))


@cache
def few_sticky_bits(kept: int) -> Wrong:
    """Return the row for backends that see too few bits to distinguish numbers from ties.

    Of the bits below the halfway bit, they look only at the lowest ``kept`` ones.
    """
    bits = "bit" if kept == 1 else f"{kept} bits"
    return reading(
        f"sticky-{kept}-bits",
        f"tells numbers above a tie from the tie by the lowest {bits} of its inputs only",
        lambda given: bit_arithmetic.without_middle_bits(
            given.source, given.target, kept, given.inputs
        ),
        has_nans=False,
    )


def _few_sticky_bits(asked: CaseFormats) -> Iterator[Wrong]:
    if asked.is_between_floats:
        yield from map(few_sticky_bits, range(1, _lost_digits(asked) - 1))


def _lost_digits(asked: CaseFormats) -> int:
    source, target = asked.source.entry, asked.target.entry
    return source.mantissa - target.mantissa if target.mantissa else 0


def exponent_bits(how: str, says: str) -> Wrong:
    """Return the row for backends that round to float8e8m0 by the exponent bits of a float32.

    ``how`` is a mode of ``rounded_exponents``; if it is empty, the case's ``round_mode`` is used.
    ``says`` is the sentence of the row.
    """

    def exponents(given: GivenAnswers) -> Patterns | None:
        patterns, mode = converted(given.case, "float32", given.inputs), given.case.mode
        if patterns is None:
            return None
        word, saturates = how or mode.get("round_mode", ""), mode.get("saturate") == "1"
        return bit_arithmetic.rounded_exponents(patterns, word, saturates)

    def answers(given: GivenAnswers) -> RowAnswers | None:
        found, source = exponents(given), given.source
        if found is None:
            return None
        defined = found <= given.target.mask
        if how and source.kind == "float" and source.entry.infinity:
            # Which way it rounds says nothing about infinity.
            defined = defined & (given.inputs != source.infinity_code)
        return RowAnswers(found.astype(given.target.storage), defined)

    def matches(given: GivenAnswers, level: str) -> Mask | None:
        found = exponents(given)
        return None if found is None else found == given.answers

    return Wrong(
        "-".join(filter(None, ("exponent-bits", how))),
        says,
        answers,
        lambda asked: asked.target.name == "float8e8m0",
        matches,
        alike="exponent-bits",
    )


EXPONENT_BITS = tuple(
    exponent_bits(how, f"rounds {words}")
    for how, words in {
        "": "by the exponent bits, also those of zero, subnormals and infinity",
        "half-even": "to nearest by the exponent bits, ties to even, whatever the mode",
        "half-up": "to nearest by the exponent bits, ties up, whatever the mode",
    }.items()
)


def _is_small(dtype: Format) -> bool:
    """Whether a format is bfloat16 or a float of at most 8 bits; some backends move their bits."""
    return dtype.kind == "float" and (dtype.bits <= 8 or dtype.name == "bfloat16")


def _moves_bits(asked: CaseFormats) -> bool:
    is_to_small = _is_small(asked.target) and asked.target.entry.mantissa > 0
    return _is_small(asked.source) or is_to_small


def _moved_to_float32(given: GivenAnswers) -> Patterns | None:
    if _is_small(given.source):
        return moved_bits(given.source, SINGLE, given.inputs)
    return _as_float32(given)


def _as_float32(given: GivenAnswers) -> Patterns | None:
    """Return the inputs as float32; None if the document does not define that, or refuses some.

    NaNs of a format like IEEE's are converted as ``nan_as_float32`` does.
    """
    source, patterns = given.source, converted(given.case, "float32", given.inputs)
    if patterns is not None and source.name != "float32" and source.entry.nan == "ieee":
        patterns = patterns.copy()
        patterns[given.nans] = bit_arithmetic.nan_as_float32(source, given.inputs[given.nans])
    return patterns


FROM_FLOAT32 = following(
    "moves-bits",
    "converts small floats by moving their bits, through float32, zeros, subnormal numbers,"
    " infinities, NaNs and what is out of range as if they were normal",
    lambda case: replace(case, source="float32", example=None),
    _moved_to_float32,
)
"""The row that ``_bits_moved`` uses for targets that are not small."""


def _matches_moved_bits(given: GivenAnswers, level: str) -> Mask | None:
    if not _is_small(given.target):
        return FROM_FLOAT32.explains(given, level)
    found = _bits_moved.answers(given)
    return None if found is None else found.codes == given.answers


@computing(
    FROM_FLOAT32.name,
    FROM_FLOAT32.says,
    _moves_bits,
    matches=_matches_moved_bits,
    says_in_part="converts small floats by moving their bits, through float32, as if they were"
    " normal",
)
def _bits_moved(given: GivenAnswers) -> RowAnswers | None:
    """Move the bits of a small source to float32, and those of float32 to a small target.

    Return None if the document does not define a conversion to or from float32 that this needs.
    """
    if not _is_small(given.target):
        return FROM_FLOAT32.answers(given)
    patterns = _moved_to_float32(given)
    if patterns is None:
        return None
    return RowAnswers(moved_bits(SINGLE, given.target, patterns), everywhere(given))


def _may_flush(asked: CaseFormats) -> bool:
    if asked.source.kind == "text":
        return asked.target.kind == "float"
    return asked.source.kind == "float" and asked.source.entry.zero == "signed"


@computing("flushes-subnormals", "flushes subnormal inputs and results to zero", _may_flush)
@if_answered
def _subnormals_flushed(given: GivenAnswers) -> RowAnswers:
    source, target, inputs = given.source, given.target, given.inputs
    if source.kind == "text":
        return RowAnswers(*bit_arithmetic.flushed(target, REFERENCE.cast(given.case, inputs)))
    affected = bit_arithmetic.subnormals(source, target, inputs)
    zeros = inputs & np.dtype(source.storage).type(source.sign_bit)
    codes, answered = right(given.case, np.where(affected, zeros, inputs))
    return RowAnswers(codes, affected & answered)


def _subnormals_read_as_normal(given: GivenAnswers) -> Patterns | None:
    """Return the inputs as float32, with an implicit one in front of subnormal mantissas."""
    source, inputs = given.source, given.inputs
    step = inputs.dtype.type(1 << source.entry.mantissa)
    magnitudes = inputs & inputs.dtype.type(source.mask ^ source.sign_bit)
    affected = (magnitudes != 0) & (magnitudes < step)
    # A field of 1 has the same exponent, but is normal. Halved, it is what a field of 0 would be.
    patterns = converted(given.case, SINGLE.name, np.where(affected, inputs | step, inputs))
    if patterns is None:
        return None
    return np.where(affected, patterns - patterns.dtype.type(1 << 23), patterns)


_subnormals_as_normal = following(
    "subnormals-as-normal",
    "reads subnormal inputs as if they were normal",
    lambda case: replace(case, source=SINGLE.name, example=None),
    _subnormals_read_as_normal,
    applies=lambda asked: (
        asked.source.kind == "float"
        and asked.source.entry.zero == "signed"
        and asked.source.entry.mantissa > 0
        and asked.source.entry.bias < SINGLE.entry.bias
    ),
)


@computing(
    "clamps-in-the-source-dtype",
    "clamps to the target's range in the source dtype, where the ends of that range are rounded",
    lambda asked: asked.source.kind == "float" and asked.target.kind == "integer",
)
def _clamped_in_source(given: GivenAnswers) -> RowAnswers:
    codes, affected = bit_arithmetic.clamped_in_source(given.source, given.target, given.inputs)
    return RowAnswers(codes, affected & ~given.nans)


def _may_clamp_first(asked: CaseFormats) -> bool:
    target = asked.target
    return target.kind == "float" and target.bits <= 8 and target.max_code + 1 < target.sign_bit


@computing(
    "clamps-before-rounding",
    "clamps to the largest value before it rounds: NaN too, but not what then rounds up to the next"
    " pattern",
    _may_clamp_first,
)
def _clamped_first(given: GivenAnswers) -> RowAnswers | None:
    patterns = _as_float32(given)
    if patterns is None:
        return None
    return RowAnswers(*bit_arithmetic.clamped_first(given.target, patterns))


WRAPPED_FROM = -64
"""Only targets with a larger lowest exponent are tried: float32 must reach 2^64 below it."""


@computing(
    "wraps-the-shift",
    "makes subnormal numbers by a shift modulo 64, so that values 2^64 below them do not become"
    " zero",
    lambda asked: (
        asked.is_between_floats
        and bool(asked.target.nan_codes)
        and asked.target.lowest_exponent > WRAPPED_FROM
    ),
)
def _shift_wrapped(given: GivenAnswers) -> RowAnswers | None:
    patterns = _as_float32(given)
    if patterns is None:
        return None
    scaled, affected = bit_arithmetic.with_wrapped_shifts(given.target, patterns)
    return RowAnswers(bit_arithmetic.nearest(SINGLE, given.target, scaled), affected)


@computing(
    "halves-large-integers",
    "halves unsigned integers beyond the signed range before it converts them, and loses their"
    " lowest bit",
    lambda asked: (
        asked.source.kind == "integer"
        and not asked.source.is_signed
        and asked.target.kind == "float"
    ),
)
@if_answered
def _halved_first(given: GivenAnswers) -> RowAnswers:
    storage = given.inputs.dtype.type
    halves, answered = right(without_example(given.case), given.inputs >> storage(1))
    is_large = given.inputs > storage(given.source.mask >> 1)
    return RowAnswers(bit_arithmetic.doubled(given.target, halves), is_large & answered)


@computing(
    "rounds-subnormals-twice",
    "rounds subnormal results twice: first to as many digits as normal ones have",
    lambda asked: asked.is_between_floats and _lost_digits(asked) > 0,
)
@if_answered
def _subnormals_rounded_twice(given: GivenAnswers) -> RowAnswers:
    source, target = given.source, given.target
    first, affected = bit_arithmetic.rounded_as_normal(source, target, given.inputs)
    codes, answered = right(without_example(given.case), first)
    return RowAnswers(codes, affected & answered)


@computing(
    "wrong-sign",
    "gives the right magnitude with the wrong sign",
    lambda asked: asked.target.is_signed,
)
@if_answered
def _wrong_sign(given: GivenAnswers) -> RowAnswers:
    codes, answered = right(given.case, given.inputs)
    return RowAnswers(negated(given.target, codes), answered & ~given.nans)


WRONGS: tuple[Wrong | RowsOfTable, ...] = (
    *CODEC_WRONGS,
    _nan_sign,
    _as_c,
    _constants,
    through_usual,
    *EXPONENT_BITS,
    _unchanged,
    other_modes,
    other_versions,
    _forms_of_input,
    taken_for_twins,
    no_limit,
    _bits_moved,
    bytes_of_answers_reversed,
    bytes_of_inputs_reversed,
    _subnormals_flushed,
    _subnormals_as_normal,
    _clamped_in_source,
    _clamped_first,
    _shift_wrapped,
    _halved_first,
    _subnormals_rounded_twice,
    _wrong_sign,
)
"""The rows for targets other than texts; of rows that explain equally much, the first is taken."""
TRIED_LAST: tuple[Wrong | RowsOfTable, ...] = (
    taken_for_others,
    *map(other_rounding, get_args(Rounding)),
    _ties_up,
    truncated_after_usual,
    through_others,
    _low_bits_ignored,
    _few_sticky_bits,
)
"""The rows tried only where the others leave answers unexplained, because there are hundreds."""


def wrongs_of(case: Case) -> Iterator[Wrong]:
    """Yield the rows of ``WRONGS`` that apply to a case; for a text target, of ``TEXT_WRONGS``."""
    asked = CaseFormats(case)
    if asked.target.kind != "text":
        yield from _applying(WRONGS, asked)
        return
    from reports.findings.text_wrongs import TEXT_WRONGS  # Few casts give texts.

    yield from _applying(TEXT_WRONGS, asked)


def wrongs_tried_last(case: Case) -> Iterator[Wrong]:
    """Yield the rows of ``TRIED_LAST`` that apply to a case."""
    yield from _applying(TRIED_LAST, CaseFormats(case))


@lru_cache(KEPT)
def every_wrong(case: Case) -> frozenset[Wrong]:
    """Return all rows that apply to a case, including those of ``TRIED_LAST``."""
    return frozenset((*wrongs_of(case), *wrongs_tried_last(case)))


def _applying(rows: Iterable[Wrong | RowsOfTable], asked: CaseFormats) -> Iterator[Wrong]:
    for row in rows:
        if not isinstance(row, Wrong):
            yield from row(asked)
        elif row.applies(asked):
            yield row
