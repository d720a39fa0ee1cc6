"""Mistakes of hand-written codecs of small floats: one row, a ``Wrong``, per mistake.

The answers of these rows are computed from right ones, which are moved, scaled or truncated as
faulty arithmetic would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np

from oracles.protocol import Mask
from oracles.reference.exact_text import NUMBER
from reports.findings.wrong import (
    REFERENCE,
    Applies,
    CaseFormats,
    GivenAnswers,
    Patterns,
    RowAnswers,
    Wrong,
    magnitudes_of,
    reading,
    rounded,
)

CODECS = "small-floats"
"""The yardstick by which codecs are judged."""
NEAR_BIASES = (1, -1, 2, -2)
"""The differences from the right bias that are tried."""
MOST_DIGITS = 20
"""The most digits after which codecs may stop to read: a word of 64 bits has as many."""


class _Coded(GivenAnswers):
    """Inputs of a codec, and the right answers to them."""

    @cached_property
    def right(self) -> Patterns:
        """The right answers to the given inputs."""
        return self.cast(self.inputs)

    def cast(self, inputs: Patterns) -> Patterns:
        """Return the right answers to any inputs of the case."""
        return REFERENCE.cast(self.case, inputs)

    def truncated(self, inputs: Patterns) -> Patterns:
        """Return the answers to any inputs of the case, rounded toward zero whatever the mode."""
        return rounded(self.case, "toward-zero", inputs)

    @property
    def signs(self) -> Patterns:
        """The target's sign bit for each negative input, and 0 for the others."""
        negative = self.inputs & self.read(self.source.sign_bit)
        signs: Patterns = np.where(negative != 0, self.written(self.target.sign_bit), 0)
        return signs.astype(self.right.dtype)

    @property
    def zeros(self) -> Patterns:
        """A zero for each input, with the input's sign if the target has -0."""
        has_two = self.target.entry.zero == "signed"
        return self.signs if has_two else np.zeros_like(self.right)

    @property
    def magnitudes_in(self) -> Patterns:
        """The patterns of the inputs without their sign bits."""
        return magnitudes_of(self.source, self.inputs)

    @property
    def magnitudes_out(self) -> Patterns:
        """The patterns of the right answers without their sign bits."""
        return magnitudes_of(self.target, self.right)

    @property
    def are_numbers(self) -> Mask:
        """The mask of the inputs that are finite and not zero."""
        magnitudes = self.magnitudes_in
        found: Mask = (magnitudes != 0) & (magnitudes <= self.source.max_code)
        return found

    @property
    def source_step(self) -> int:
        """The source's smallest normal pattern: adding it to a pattern raises the exponent by 1."""
        return 1 << self.source.entry.mantissa

    @property
    def target_step(self) -> int:
        """The target's smallest normal pattern: adding it to a pattern raises the exponent by 1."""
        return 1 << self.target.entry.mantissa

    def read(self, number: int) -> Any:
        """Convert a number to the numpy type of the inputs."""
        return np.dtype(self.source.storage).type(number)

    def written(self, number: int) -> Any:
        """Convert a number to the numpy type of the answers."""
        return np.dtype(self.target.storage).type(number)

    def binades_lower(self, count: Patterns) -> Patterns:
        """Return each input divided by two to the power of its ``count``.

        This is right as far as the results are normal.
        """
        steps = count.astype(self.inputs.dtype) << self.read(self.source.entry.mantissa)
        found: Patterns = self.inputs - steps
        return found

    def start_of_highest(self, further: int = 0) -> int:
        """Return the smallest positive input in the target's highest binade.

        With ``further``, return that of the binade so many binades higher.
        """
        field = (self.target.max_code >> self.target.entry.mantissa) - self.target.entry.bias
        return (field + further + self.source.entry.bias) << self.source.entry.mantissa


def _is_of_floats(asked: CaseFormats) -> bool:
    return asked.case.document == CODECS and asked.is_between_floats


def _encodes(asked: CaseFormats) -> bool:
    return _is_of_floats(asked) and asked.target.entry.mantissa < asked.source.entry.mantissa


def _decodes(asked: CaseFormats) -> bool:
    return _is_of_floats(asked) and not _encodes(asked)


def _decodes_specials(asked: CaseFormats) -> bool:
    return _decodes(asked) and asked.source.entry.nan != "negative-zero"


def _row(
    name: str, says: str, applies: Applies
) -> Callable[[Callable[[_Coded], RowAnswers]], Wrong]:
    """Return a decorator that makes a row of the function that computes a codec's answers."""
    return lambda codes: Wrong(
        name, says, lambda given: codes(_Coded(given.case, given.inputs, given.answers)), applies
    )


@_row("subnormals-become-zero", "makes subnormal results zero", _encodes)
def _subnormal_results_as_zero(coded: _Coded) -> RowAnswers:
    magnitudes = coded.magnitudes_out
    is_subnormal = (magnitudes != 0) & (magnitudes < coded.target_step)
    return RowAnswers(coded.zeros, is_subnormal & coded.are_numbers)


@_row("subnormals-become-zero", "reads subnormal codes as zero", _decodes)
def _subnormal_codes_as_zero(coded: _Coded) -> RowAnswers:
    return RowAnswers(coded.zeros, (coded.magnitudes_in < coded.source_step) & coded.are_numbers)


@_row("below-normal-becomes-zero", "makes numbers below the smallest normal one zero", _encodes)
def _below_normal_as_zero(coded: _Coded) -> RowAnswers:
    """Flush before rounding: numbers that would round up to the smallest normal one become zero."""
    field = coded.target.lowest_exponent + coded.source.entry.bias
    below = coded.magnitudes_in < max(field, 0) << coded.source.entry.mantissa
    return RowAnswers(coded.zeros, below & coded.are_numbers)


@_row("subnormals-as-normal", "reads subnormal codes as if they were normal", _decodes)
def _subnormals_as_normal(coded: _Coded) -> RowAnswers:
    concerned = (coded.magnitudes_in < coded.source_step) & coded.are_numbers
    # One more in the exponent field reads the code as normal; one less in the answer halves it.
    normal = np.where(concerned, coded.inputs + coded.read(coded.source_step), coded.inputs)
    return RowAnswers(coded.cast(normal) - coded.written(coded.target_step), concerned)


@_row("specials-as-numbers", "reads the codes of NaN and infinity as numbers", _decodes_specials)
def _specials_as_numbers(coded: _Coded) -> RowAnswers:
    special = coded.magnitudes_in > coded.source.max_code
    lower = np.where(special, coded.inputs - coded.read(coded.source_step), 0)
    halves = coded.cast(lower.astype(coded.inputs.dtype))
    return RowAnswers(halves + coded.written(coded.target_step), special)


def _without_minus_zero(coded: _Coded) -> RowAnswers:
    # In a format with one zero, the pattern of -0 is a NaN.
    has_two = coded.target.entry.zero == "signed"
    return RowAnswers(np.zeros_like(coded.right), (coded.right == coded.target.sign_bit) & has_two)


@_row("carry-lost", "loses the carry where a mantissa rounds up to the next power of two", _encodes)
def _carry_lost(coded: _Coded) -> RowAnswers:
    step = coded.written(coded.target_step)
    # In the highest binade the next power of two is out of range, so such numbers are halved first.
    is_high = coded.magnitudes_in >= coded.start_of_highest()
    scaled = coded.binades_lower(is_high)
    nearest, cut = coded.cast(scaled), coded.truncated(scaled)
    fraction = coded.written(coded.target_step - 1)
    carries = (nearest == cut + coded.written(1)) & (nearest & fraction == 0)
    is_normal = magnitudes_of(coded.target, cut) >= step
    lost = (cut & ~fraction) + np.where(is_high, step, 0).astype(step.dtype)
    is_within = coded.magnitudes_in < coded.start_of_highest(1)
    return RowAnswers(lost, carries & is_normal & is_within & coded.are_numbers)


@_row("saturates-early", "never gives the largest value: it saturates one step too early", _encodes)
def _saturates_early(coded: _Coded) -> RowAnswers:
    largest = coded.target.max_code
    beyond = coded.cast(np.array([coded.source.max_code], coded.inputs.dtype))[0]
    code = coded.written(largest - 1) if beyond == largest else beyond
    return RowAnswers(code | coded.signs, coded.magnitudes_out == largest)


@_row("no-limit", "does not check the range: what is beyond it keeps its low bits", _encodes)
def no_limit(coded: _Coded) -> RowAnswers:
    """Encode numbers beyond the range with more exponent bits, and keep the low bits of the result.

    Other rows say more than this one, so it is tried after them.
    """
    source, target = coded.source.entry, coded.target.entry
    start = coded.start_of_highest() - coded.source_step
    fields = (coded.magnitudes_in >> coded.read(source.mantissa)).astype(np.int64)
    count = np.maximum(fields - (start >> source.mantissa), 0)
    codes = coded.cast(coded.binades_lower(count)).astype(np.int64)
    magnitude = coded.target.mask ^ coded.target.sign_bit
    moved = ((codes & magnitude) + (count << target.mantissa)) & magnitude
    return RowAnswers(
        moved.astype(coded.right.dtype) | coded.signs, (count > 0) & coded.are_numbers
    )


def _encoded_with_bias(difference: int) -> Callable[[_Coded], RowAnswers]:
    """Return a function that encodes the inputs times two to the power of ``difference``."""

    def codes(coded: _Coded) -> RowAnswers:
        moved = coded.magnitudes_in.astype(np.int64) + difference * coded.source_step
        within = (moved >= coded.source_step) & (moved <= coded.source.max_code)
        signs = coded.inputs & coded.read(coded.source.sign_bit)
        scaled = np.where(within, moved, 0).astype(coded.inputs.dtype) | signs
        is_normal = coded.magnitudes_in >= coded.source_step
        return RowAnswers(coded.cast(scaled), within & is_normal & coded.are_numbers)

    return codes


def _decoded_with_bias(difference: int) -> Callable[[_Coded], RowAnswers]:
    """Return a function that divides the right answers by two to the power of ``difference``."""

    def codes(coded: _Coded) -> RowAnswers:
        moved = coded.magnitudes_out.astype(np.int64) - difference * coded.target_step
        within = (moved >= coded.target_step) & (moved <= coded.target.max_code)
        scaled = np.where(within, moved, 0).astype(coded.right.dtype) | coded.signs
        return RowAnswers(scaled, within & coded.are_numbers)

    return codes


@cache
def other_bias(bias: int, known: int, encodes: bool) -> Wrong:
    """Return the row for codecs that take ``bias`` for the exponent's bias, which is ``known``.

    ``encodes`` says whether these are encoders or decoders.
    """
    says = f"takes {bias} for the exponent's bias, which is {known}"
    row = _row("another-bias", says, _encodes if encodes else _decodes)
    return row((_encoded_with_bias if encodes else _decoded_with_bias)(bias - known))


def _other_biases(asked: CaseFormats) -> Iterator[Wrong]:
    if _is_of_floats(asked):
        encodes = _encodes(asked)
        bias = (asked.target if encodes else asked.source).entry.bias
        yield from (other_bias(bias + difference, bias, encodes) for difference in NEAR_BIASES)


@cache
def digits_read(count: int) -> Wrong:
    """Return the row for codecs that take every digit of a text after ``count`` ones for a zero.

    They count from the first digit that is not zero.
    """
    digits = "digit" if count == 1 else f"{count} digits"

    def cut(text: str) -> str:
        match = NUMBER.fullmatch(text)
        if match is None:
            return text
        end = match.end(2) if match[3] is None else match.end(3)
        number, seen = list(text), 0
        for place in range(match.start(2), end):
            if seen == count and number[place] != ".":
                number[place] = "0"
            seen += number[place] in "123456789" or (seen > 0 and number[place] == "0")
            seen = min(seen, count)
        return "".join(number)

    return reading(
        f"reads-{count}-digits",
        f"reads only the first {digits} of a number",
        lambda given: np.array([cut(text) for text in given.inputs], object),
        has_nans=False,
    )


def _digits_read(asked: CaseFormats) -> Iterator[Wrong]:
    if asked.case.document == CODECS and asked.source.kind == "text":
        yield from map(digits_read, range(1, MOST_DIGITS + 1))


MINUS_ZERO = "minus-zero-lost", "loses the sign of -0"
CODEC_WRONGS = (
    _subnormal_results_as_zero,
    _below_normal_as_zero,
    _row(*MINUS_ZERO, _encodes)(_without_minus_zero),
    _carry_lost,
    _saturates_early,
    _subnormal_codes_as_zero,
    _subnormals_as_normal,
    _specials_as_numbers,
    _row(*MINUS_ZERO, _decodes)(_without_minus_zero),
    _other_biases,
    _digits_read,
)
"""The rows of codecs, all but ``no_limit``, which is tried later."""
