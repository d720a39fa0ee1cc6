"""Faults that hand-written codecs of small floats have: what they answer, and on which inputs.

Faulty answers are computed from right ones, moved, scaled or truncated as faulty arithmetic would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format

CODECS = "small-floats"
"""The yardstick by which codecs are judged."""
Cast = Callable[[NDArray[Any]], NDArray[Any]]
"""Returns the right answers to some inputs."""
NEAR_BIASES = (1, -1, 2, -2)
"""By how much a bias may be wrong."""

Fault = Literal[
    "subnormals-become-zero",
    "below-normal-becomes-zero",
    "subnormals-as-normal",
    "specials-as-numbers",
    "minus-zero-lost",
    "carry-lost",
    "saturates-early",
    "no-limit",
]
ENCODING: Mapping[Fault, str] = {
    "subnormals-become-zero": "makes subnormal results zero",
    "below-normal-becomes-zero": "makes numbers below the smallest normal one zero",
    "minus-zero-lost": "loses the sign of -0",
    "carry-lost": "loses the carry where a mantissa rounds up to the next power of two",
    "saturates-early": "never gives the largest value: it saturates one step too early",
    "no-limit": "does not check the range: what is beyond it keeps its low bits",
}
"""The sentences of faults in encoding."""
DECODING: Mapping[Fault, str] = {
    "subnormals-become-zero": "reads subnormal codes as zero",
    "subnormals-as-normal": "reads subnormal codes as if they were normal",
    "specials-as-numbers": "reads the codes of NaN and infinity as numbers",
    "minus-zero-lost": "loses the sign of -0",
}
"""The sentences of faults in decoding."""


@dataclass(frozen=True)
class CodecFault:
    """Encodes or decodes small floats with a fault."""

    name: Fault
    encodes: bool
    tells_where = True

    @property
    def is_last_resort(self) -> bool:
        """Whether mechanisms that say more are tried first."""
        return self.name == "no-limit"

    @property
    def says(self) -> str:
        return (ENCODING if self.encodes else DECODING)[self.name]


@dataclass(frozen=True)
class OtherBias:
    """Encodes or decodes by another exponent bias than the format has."""

    bias: int
    known: int
    encodes: bool
    tells_where = True
    name = "another-bias"
    is_last_resort = False

    @property
    def says(self) -> str:
        return f"takes {self.bias} for the exponent's bias, which is {self.known}"


class Faulty(NamedTuple):
    """The answers by a fault, and which inputs it concerns."""

    codes: NDArray[Any]
    concerned: NDArray[np.bool_]


def codec_candidates(source: Format, target: Format) -> Iterator[CodecFault | OtherBias]:
    """The faults that a codec of a pair can have."""
    encodes = target.entry.mantissa < source.entry.mantissa
    small = target if encodes else source
    for name in ENCODING if encodes else DECODING:
        # If the NaN has the pattern of -0, a mechanism that says it becomes -0 tells more.
        if name != "specials-as-numbers" or source.entry.nan != "negative-zero":
            yield CodecFault(name, encodes)
    for difference in NEAR_BIASES:
        yield OtherBias(small.entry.bias + difference, small.entry.bias, encodes)


def codec_answers(
    mechanism: CodecFault | OtherBias,
    source: Format,
    target: Format,
    inputs: NDArray[Any],
    cast: Cast,
    truncate: Cast,
) -> Faulty:
    """Return the answers of a faulty codec; ``truncate`` rounds toward zero in every mode."""
    values = _Values(source, target, inputs, cast(inputs), cast, truncate)
    if isinstance(mechanism, OtherBias):
        return _with_bias(values, mechanism.bias - mechanism.known, mechanism.encodes)
    return FAULTS[mechanism.name](values)


class _Values(NamedTuple):
    """Inputs, and the right answers to them."""

    source: Format
    target: Format
    inputs: NDArray[Any]
    right: NDArray[Any]
    cast: Cast
    truncate: Cast

    @property
    def signs(self) -> NDArray[Any]:
        """The sign bit of each input, as that of an answer."""
        negative = self.inputs & _word(self.source, self.source.sign_bit)
        signs: NDArray[Any] = np.where(negative != 0, _word(self.target, self.target.sign_bit), 0)
        return signs.astype(self.right.dtype)

    @property
    def zeros(self) -> NDArray[Any]:
        """A zero for each input, with the input's sign if the target has -0."""
        has_two = self.target.entry.zero == "signed"
        return self.signs if has_two else np.zeros_like(self.right)

    def magnitudes_in(self) -> NDArray[Any]:
        """The inputs without their signs."""
        found: NDArray[Any] = self.inputs & _word(
            self.source, self.source.mask ^ self.source.sign_bit
        )
        return found

    def magnitudes_out(self) -> NDArray[Any]:
        """The right answers without their signs."""
        found: NDArray[Any] = self.right & _word(
            self.target, self.target.mask ^ self.target.sign_bit
        )
        return found

    def are_numbers(self) -> NDArray[np.bool_]:
        """Which inputs are finite and not zero."""
        magnitudes = self.magnitudes_in()
        found: NDArray[np.bool_] = (magnitudes != 0) & (magnitudes <= self.source.max_code)
        return found

    def binades_lower(self, count: NDArray[Any]) -> NDArray[Any]:
        """The inputs divided by powers of two, as far as they are normal."""
        steps = count.astype(self.inputs.dtype) << _word(self.source, self.source.entry.mantissa)
        found: NDArray[Any] = self.inputs - steps
        return found


def _word(form: Format, number: int) -> Any:
    return np.dtype(form.storage).type(number)


def _subnormals_become_zero(values: _Values) -> Faulty:
    source, target = values.source, values.target
    if target.entry.mantissa < source.entry.mantissa:
        magnitudes, least = values.magnitudes_out(), 1 << target.entry.mantissa
    else:
        magnitudes, least = values.magnitudes_in(), 1 << source.entry.mantissa
    return Faulty(values.zeros, (magnitudes != 0) & (magnitudes < least) & values.are_numbers())


def _below_normal_becomes_zero(values: _Values) -> Faulty:
    """Flush before rounding: numbers that would round up to the smallest normal become zero too."""
    source, target = values.source, values.target
    field = target.lowest_exponent + source.entry.bias
    below = values.magnitudes_in() < max(field, 0) << source.entry.mantissa
    return Faulty(values.zeros, below & values.are_numbers())


def _subnormals_as_normal(values: _Values) -> Faulty:
    source, target = values.source, values.target
    concerned = (values.magnitudes_in() < 1 << source.entry.mantissa) & values.are_numbers()
    # One more in the exponent field reads the code as normal; one less in the answer halves it.
    normal = values.cast(values.inputs + _word(source, 1 << source.entry.mantissa))
    return Faulty(normal - _word(target, 1 << target.entry.mantissa), concerned)


def _specials_as_numbers(values: _Values) -> Faulty:
    source, target = values.source, values.target
    special = values.magnitudes_in() > source.max_code
    lower = np.where(special, values.inputs - _word(source, 1 << source.entry.mantissa), 0)
    doubled = values.cast(lower.astype(values.inputs.dtype)) + _word(
        target, 1 << target.entry.mantissa
    )
    return Faulty(doubled, special)


def _minus_zero_lost(values: _Values) -> Faulty:
    target = values.target
    # In a format with one zero, the pattern of -0 is a NaN.
    is_zero = (values.right == target.sign_bit) & (target.entry.zero == "signed")
    return Faulty(np.zeros_like(values.right), is_zero)


def _carry_lost(values: _Values) -> Faulty:
    target = values.target
    mantissa, step = target.entry.mantissa, _word(target, 1 << target.entry.mantissa)
    # In the highest binade the next power of two is out of range, so such numbers are halved first.
    is_high = values.magnitudes_in() >= _start_of_highest(values)
    scaled = values.binades_lower(is_high)
    rounded, cut = values.cast(scaled), values.truncate(scaled)
    fraction = _word(target, (1 << mantissa) - 1)
    carries = (rounded == cut + _word(target, 1)) & (rounded & fraction == 0)
    is_normal = (cut & _word(target, target.mask ^ target.sign_bit)) >= step
    lost = (cut & ~fraction) + np.where(is_high, step, 0).astype(step.dtype)
    is_within = values.magnitudes_in() < _start_of_highest(values, 1)
    return Faulty(lost, carries & is_normal & is_within & values.are_numbers())


def _start_of_highest(values: _Values, further: int = 0) -> int:
    """The input of the first number in the highest binade of the target, or in one after it."""
    target, source = values.target, values.source
    field = (target.max_code >> target.entry.mantissa) - target.entry.bias
    return (field + further + source.entry.bias) << source.entry.mantissa


def _saturates_early(values: _Values) -> Faulty:
    target = values.target
    largest = values.magnitudes_out() == target.max_code
    beyond = values.cast(np.array([values.source.max_code], values.inputs.dtype))[0]
    if beyond == target.max_code:
        codes = _word(target, target.max_code - 1) | values.signs
    else:
        codes = beyond | values.signs
    return Faulty(codes, largest)


def _no_limit(values: _Values) -> Faulty:
    source, target = values.source, values.target
    start = _start_of_highest(values) - (1 << source.entry.mantissa)
    fields = (values.magnitudes_in() >> _word(source, source.entry.mantissa)).astype(np.int64)
    count = np.maximum(fields - (start >> source.entry.mantissa), 0)
    codes = values.cast(values.binades_lower(count)).astype(np.int64)
    magnitude = target.mask ^ target.sign_bit
    moved = ((codes & magnitude) + (count << target.entry.mantissa)) & magnitude
    concerned = (count > 0) & values.are_numbers()
    return Faulty(moved.astype(values.right.dtype) | values.signs, concerned)


def _with_bias(values: _Values, difference: int, encodes: bool) -> Faulty:
    """The value times two to the power of the difference when encoding, divided when decoding."""
    source, target = values.source, values.target
    if encodes:
        steps = np.int64(difference) << source.entry.mantissa
        moved = values.magnitudes_in().astype(np.int64) + steps
        within = (moved >= 1 << source.entry.mantissa) & (moved <= source.max_code)
        signs = values.inputs & _word(source, source.sign_bit)
        scaled = np.where(within, moved, 0).astype(values.inputs.dtype) | signs
        is_normal = values.magnitudes_in() >= 1 << source.entry.mantissa
        return Faulty(values.cast(scaled), within & is_normal & values.are_numbers())
    steps = np.int64(-difference) << target.entry.mantissa
    moved = values.magnitudes_out().astype(np.int64) + steps
    within = (moved >= 1 << target.entry.mantissa) & (moved <= target.max_code)
    codes = np.where(within, moved, 0).astype(values.right.dtype) | values.signs
    return Faulty(codes, within & values.are_numbers())


FAULTS: Mapping[Fault, Callable[[_Values], Faulty]] = {
    "subnormals-become-zero": _subnormals_become_zero,
    "below-normal-becomes-zero": _below_normal_becomes_zero,
    "subnormals-as-normal": _subnormals_as_normal,
    "specials-as-numbers": _specials_as_numbers,
    "minus-zero-lost": _minus_zero_lost,
    "carry-lost": _carry_lost,
    "saturates-early": _saturates_early,
    "no-limit": _no_limit,
}
