"""The table of mistakes that backends may make in casts: one row, a ``Wrong``, per mistake.

Rows are tried in the order of ``WRONGS``, then of ``TRIED_LAST``. The rows defined here answer by a
behavior of ``specs/behaviors.yaml``, round otherwise, or leave out bits. The others come from
``arithmetic_wrongs``, ``rule_wrongs``, ``codec_wrongs`` and ``text_wrongs``. A new row is an entry
of ``WRONGS``; a function makes the rows that differ in a parameter.
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
from reports.findings.arithmetic_wrongs import (
    ARITHMETIC_WRONGS,
    EXPONENT_BITS,
    integers_through_floats,
)
from reports.findings.codec_wrongs import CODEC_WRONGS, no_limit
from reports.findings.rule_wrongs import (
    ROUNDING_WORDS,
    other_modes,
    other_versions,
    taken_for_others,
    taken_for_twins,
    through_others,
    through_usual,
    truncated_after_usual,
)
from reports.findings.wrong import (
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
    expected_of,
    if_answered,
    is_negative,
    is_same,
    known_ruling,
    magnitudes_of,
    negated,
    nowhere,
    reading,
    right,
    rounded,
    stay_nans,
    without_example,
)
from reports.grading.allowed_answers import is_nan
from specs.behaviors import ConstantAnswer, Via, behaviors
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.vocabulary import Rounding
from specs.outcomes import Nan

KEPT = 1 << 12
"""The most cases whose rows are cached."""
BYTE = 8
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
ROUNDS = {
    "half-away-": "rounds-nearest-away",
    "half-even-": "rounds-nearest-even",
    "truncate-": "rounds-toward-zero",
    "ceil-": "rounds-ceil",
}
"""Maps beginnings of behaviors' names to the names of findings.

What such a behavior gives beyond the range does not show in every pair of dtypes.
"""


@cache
def form(name: str, *, has_sign: bool = False) -> Wrong:
    """Return the row for backends that answer by the behavior ``name``.

    With ``has_sign``, which only keys of ``NEGATIVE`` can have, the answers to negative inputs are
    negated.
    """
    behavior = behaviors()[name]
    is_constant = any(isinstance(step, ConstantAnswer) for step in behavior.steps)
    named = next((each for begin, each in ROUNDS.items() if name.startswith(begin)), name)
    return replace(
        _by_behavior(named, behavior.says, lambda _: name, has_sign=has_sign),
        tells="constant" if is_constant else "form",
        is_behavior=not is_constant,
        # One that loses the sign of a negative input may be what a behavior makes of magnitudes.
        outranks_behaviors=is_constant and (has_sign or name not in NEGATIVE),
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
        both_nan = stay_nans(given)
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
    ends: Mask = (magnitudes_of(target, codes) >= target.max_code) | is_nan(target, codes)
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
    # C makes booleans by a comparison with zero.
    applies=lambda asked: (
        asked.target.kind == "integer" and has_behaviors(asked.source, asked.target)
    ),
)


def _quiet(given: GivenAnswers) -> Patterns:
    quiet: Patterns = given.inputs | given.inputs.dtype.type(1 << given.source.entry.mantissa - 1)
    return quiet


@computing(
    "quiets-nans",
    "makes signaling NaNs quiet",
    lambda asked: asked.source == asked.target and asked.source.entry.nan == "ieee",
    matches=lambda given, level: given.nans & (given.answers == _quiet(given)),
    outranks_behaviors=True,
    changes_nans=True,
)
def _quieted(given: GivenAnswers) -> RowAnswers:
    return RowAnswers(_quiet(given), given.nans)


def _are_nans_but_for_sign(given: GivenAnswers, level: str) -> Mask:
    other = negated(given.target, given.answers)
    return stay_nans(given) & allowed(given.case, given.inputs, other, level)


@computing(
    "nan-sign",
    "gives a NaN of the wrong sign",
    lambda asked: asked.target.has_signed_nan,
    matches=_are_nans_but_for_sign,
    alike="another NaN",
    outranks_behaviors=True,
    changes_nans=True,
)
def _nan_sign(given: GivenAnswers) -> RowAnswers:
    codes, answered = right(given.case, given.inputs)
    wrong = negated(given.target, codes)
    rules = known_ruling(without_example(given.case))
    if rules is not None and given.nans.any():
        # Where both signs are allowed, the right answers have one; the recommended one counts.
        branches = expected_of(rules, given.inputs).branch_indices
        for index, branch in enumerate(rules.branches):
            match branch.recommended:
                case Nan(sign="+" | "-" as sign):
                    other = given.target.nans("-" if sign == "+" else "+")
                    wrong[branches == index] = other[0][0]
    return RowAnswers(wrong, answered & given.nans)


def _are_other_nans(given: GivenAnswers, level: str) -> Mask:
    """Mark NaNs that stay NaNs, unless only the signs of all of them are wrong."""
    stay = stay_nans(given)
    is_otherwise_wrong = (stay & ~_are_nans_but_for_sign(given, level)).any()
    return stay if is_otherwise_wrong else nowhere(given)


_nan_payload = replace(
    _nan_sign,
    name="nan-payload",
    says="gives a NaN of another payload",
    matches=_are_other_nans,
    outranks_behaviors=False,
    is_behavior=True,  # So that it does not take what another row explains better.
)


def _rounds_on_the_way(asked: CaseFormats) -> bool:
    rules = known_ruling(without_example(asked.case))
    return rules is not None and bool(rules.on_the_way)


@computing(
    "unchanged",
    "gives the input back as it is",
    lambda asked: asked.source == asked.target and not _rounds_on_the_way(asked),
    matches=lambda given, level: given.answers == given.inputs,
    tells="what",
    outranks_behaviors=True,
)
def _unchanged(given: GivenAnswers) -> RowAnswers:
    return RowAnswers(given.inputs, everywhere(given))


_left_unrounded = replace(
    _unchanged,
    name="skips-rounding",
    says="leaves out the rounding to a narrower dtype, and gives the input back as it is",
    applies=lambda asked: asked.source == asked.target and _rounds_on_the_way(asked),
)


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

    @computing(f"rounds-{word}", ROUNDING_WORDS[word], _rounds, is_behavior=True)
    @if_answered
    def row(given: GivenAnswers) -> RowAnswers:
        return RowAnswers(rounded(given.case, word, given.inputs), ~given.nans)

    return row


def _rounds(asked: CaseFormats) -> bool:
    are_integral = asked.source.is_integral and asked.target.is_integral
    return asked.is_numeric and asked.target.kind != "boolean" and not are_integral


@computing(
    "rounds-toward-zero",
    "rounds toward zero, beyond the range to the largest value",
    lambda asked: _rounds(asked) and asked.target.entry.infinity,
    is_behavior=True,
)
@if_answered
def _cut_off(given: GivenAnswers) -> RowAnswers:
    """Return answers rounded toward zero, so that only an infinity becomes infinite."""
    source, target = given.source, given.target
    codes = rounded(given.case, "toward-zero", given.inputs)
    is_cut = codes & ~codes.dtype.type(target.sign_bit) == target.infinity_code
    if source.kind == "float" and source.entry.infinity:
        is_cut &= given.inputs & ~given.inputs.dtype.type(source.sign_bit) != source.infinity_code
    return RowAnswers(np.where(is_cut, codes - codes.dtype.type(1), codes), ~given.nans)


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

    def without_middle_bits(given: GivenAnswers) -> Patterns:
        middle = (1 << (given.lost_digits - 1)) - (1 << kept)
        cleared: Patterns = given.inputs & given.inputs.dtype.type(given.source.mask ^ middle)
        return cleared

    return reading(
        f"sticky-{kept}-bits",
        f"tells numbers above a tie from the tie by the lowest {bits} of its inputs only",
        without_middle_bits,
        has_nans=False,
    )


def _few_sticky_bits(asked: CaseFormats) -> Iterator[Wrong]:
    if asked.is_between_floats:
        yield from map(few_sticky_bits, range(1, asked.lost_digits - 1))


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
    _quieted,
    _nan_sign,
    _nan_payload,
    _as_c,
    _constants,
    _left_unrounded,
    through_usual,
    integers_through_floats,
    *EXPONENT_BITS,
    _unchanged,
    other_modes,
    other_versions,
    *map(other_rounding, get_args(Rounding)),
    _cut_off,
    _ties_up,
    _forms_of_input,
    taken_for_twins,
    no_limit,
    bytes_of_answers_reversed,
    bytes_of_inputs_reversed,
    *ARITHMETIC_WRONGS,
    _wrong_sign,
)
"""The rows for targets other than texts; of rows that explain equally much, the first is taken."""
TRIED_LAST: tuple[Wrong | RowsOfTable, ...] = (
    taken_for_others,
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
