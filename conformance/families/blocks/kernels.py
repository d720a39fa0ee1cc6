"""Block quantization of whole arrays, in float64.

No step rounds in a way that matters. A number of a block has 24 significant bits at most, a scale
times a global scale 28, and a bound at which a code or scale changes 6. So a bound times a scale is
exact in float64, a number that differs from it differs by more than 2^-40 of it, and the rounded
quotient of the two lies on the same side of the bound as the exact one, or upon it. The square root
of two, a bound of the rule ``nearest-log``, is nearer to no quotient than 2^-50.

A rule for scales that are powers of two is a *threshold* here: the scale is ``2**k`` from
``threshold * 2**k`` on, or above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import frexp, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks.ruling import BlockRuling, block_ruling
from oracles.protocol import Bits, Floats
from specs.cases import Case
from specs.formats import Format
from specs.model.block_entry import WORDS, BlockQuestion, BlockWord

QUESTIONS: tuple[BlockQuestion, ...] = tuple(WORDS)
NUMBER = {question: place for place, question in enumerate(QUESTIONS)}
"""The numbers of questions, by which arrays name them."""
INT8_UNIT = 2.0**-6
POWER_LIMIT = 127


class Threshold(NamedTuple):
    """The magnitude from which a scale is ``2**0``, and whether it is included."""

    magnitude: float
    includes: bool


class Blocks(NamedTuple):
    """Expected results as patterns, with the number of the question that decides each of them.

    Open results may be anything, and have zeros in ``codes``.
    """

    codes: Bits
    asked: NDArray[np.uint8]
    is_open: NDArray[np.bool_]


def _blocks(dtype: str, found: NDArray[Any], asked: Any, is_open: NDArray[np.bool_]) -> Blocks:
    return Blocks(np.where(is_open, 0, found).astype(dtype), asked, is_open)


def _open(ruling: BlockRuling) -> NDArray[np.bool_]:
    answers = ruling.answers
    return np.array([each in answers and answers[each].is_open for each in QUESTIONS])


def threshold(element: Format, word: BlockWord) -> Threshold:
    """Return the threshold of a scale rule for powers of two; raise KeyError for other rules."""
    largest = float(values_of(element)[element.max_code])
    leading = 2.0 ** (frexp(largest)[1] - 1)
    bits = 6 if element.is_integral else element.entry.mantissa
    return {
        "floor": Threshold(leading, True),
        "ceil": Threshold(leading / 2, False),
        "round-up": Threshold(largest / 2, False),
        "round-down": Threshold(largest, True),
        "even": Threshold(leading * (1 - 0.5 ** (bits + 2)), True),
        "nearest": Threshold(largest * 0.75, True),
        "nearest-log": Threshold(largest / sqrt(2), True),
        "round-up-7.25": Threshold(7.25 / 2, False),
    }[str(word)]


@cache
def values_of(fmt: Format) -> Floats:
    """Return the values of all codes of an element or scale dtype, in the order of the codes."""
    codes = np.arange(1 << fmt.bits)
    if fmt.is_integral:
        return codes.astype(np.int8).astype(np.float64) * INT8_UNIT
    return decoded(fmt, codes)


def decoded(fmt: Format, bits: Bits) -> Floats:
    """Return the values of patterns of a float of at most 32 bits."""
    entry = fmt.entry
    codes = bits.astype(np.int64)
    magnitude = codes & (fmt.mask ^ fmt.sign_bit)
    field = magnitude >> entry.mantissa
    mantissa = magnitude & ((1 << entry.mantissa) - 1)
    is_subnormal = (field == 0) & (entry.zero != "none")
    significand = np.where(is_subnormal, mantissa, mantissa | (1 << entry.mantissa))
    power = np.maximum(field, int(entry.zero != "none")) - entry.bias - entry.mantissa
    found = np.ldexp(significand.astype(np.float64), power.astype(np.int32))
    if entry.infinity:
        found[magnitude == fmt.infinity_code] = np.inf
    for nans in fmt.nan_codes:
        found[(codes >= nans.start) & (codes < nans.stop)] = np.nan
    signed: Floats = np.where(codes & fmt.sign_bit, -found, found)
    return signed


def in_blocks(size: int, rows: NDArray[Any]) -> NDArray[Any]:
    """Cut the last dimension into blocks, along a new last one; zeros fill up the last block."""
    missing = -rows.shape[-1] % size
    padded = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)])
    return padded.reshape(*rows.shape[:-1], padded.shape[-1] // size, size)


def out_of_blocks(blocks: NDArray[Any], width: int) -> NDArray[Any]:
    """Undo ``in_blocks``: join the blocks of each row, and keep its first ``width`` elements."""
    *rows, count, size = blocks.shape
    return blocks.reshape(*rows, count * size)[..., :width]


def scales(ruling: BlockRuling, x: Bits, global_scale: float = 1.0) -> Blocks:
    """Return the expected scale of each block along the last dimension of the patterns ``x``."""
    with np.errstate(invalid="ignore"):
        magnitudes = in_blocks(ruling.size, np.abs(decoded(ruling.number, x)))
        largest = magnitudes.max(axis=-1)
    return scales_of(ruling, largest, global_scale)


def scales_of(ruling: BlockRuling, largest: Floats, global_scale: float = 1.0) -> Blocks:
    """Return the expected scales of blocks; ``largest`` is NaN for a block that has a NaN."""
    ordinary = np.where(np.isfinite(largest) & (largest > 0), largest, 1.0)
    word = ruling.word("scale")
    if ruling.scale.entry.mantissa == 0:
        codes, asked = _powers(ruling, ordinary, word)
    else:
        codes, asked = _with_mantissa(ruling, ordinary, word, global_scale)
    for question, holds in (
        ("zero-block", largest == 0),
        ("infinity-block", np.isinf(largest)),
        ("nan-block", np.isnan(largest)),
    ):
        asked[holds] = NUMBER[question]  # type: ignore[index]
    return _blocks(ruling.scale.storage, codes, asked, _open(ruling)[asked])


def _powers(
    ruling: BlockRuling, largest: Floats, word: BlockWord
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    at = threshold(ruling.element, word)
    fraction, exponent = np.frexp(largest / at.magnitude)
    power = exponent.astype(np.int64) - 1 - ((fraction == 0.5) & (not at.includes))
    asked = np.full(largest.shape, NUMBER["scale"], np.uint8)
    asked[power < -POWER_LIMIT] = NUMBER["scale-below-smallest"]
    asked[power > POWER_LIMIT] = NUMBER["scale-above-largest"]
    return np.clip(power, -POWER_LIMIT, POWER_LIMIT) + ruling.scale.entry.bias, asked


def _with_mantissa(
    ruling: BlockRuling, largest: Floats, word: BlockWord, global_scale: float
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    largest_code = values_of(ruling.element)[ruling.element.max_code]
    values = values_of(ruling.scale)[: ruling.scale.max_code + 1]
    quotient = largest / (largest_code * global_scale)
    if word == "round-up":
        codes = np.searchsorted(values, quotient)
    elif word == "round-down":
        codes = np.searchsorted(values, quotient, side="right") - 1
    else:
        codes = nearest_codes(values, quotient, is_even=word == "nearest-even")
    asked = np.full(largest.shape, NUMBER["scale"], np.uint8)
    asked[codes == 0] = NUMBER["scale-below-smallest"]
    asked[quotient > values[-1]] = NUMBER["scale-above-largest"]
    return np.clip(codes, 1, ruling.scale.max_code), asked


def nearest_codes(values: Floats, quotient: Floats, *, is_even: bool = True) -> NDArray[np.intp]:
    """Return the index of the value nearest to each quotient; ties go to even indices.

    Unless ``is_even``, they go up. A quotient that is nearer to a value beyond the last gets the
    index after the last.
    """
    beyond = 2 * values[-1] - values[-2]
    middles = (values + np.append(values[1:], beyond)) / 2
    codes = np.searchsorted(middles, quotient)
    reached = middles[np.minimum(codes, middles.size - 1)] == quotient
    goes_up = reached & (codes % 2 == 1) if is_even else reached
    found: NDArray[np.intp] = codes + goes_up
    return found


def codes(ruling: BlockRuling, x: Bits, scale: Bits, global_scale: float = 1.0) -> Blocks:
    """Return the expected codes of numbers whose blocks have these scales.

    They are open in a block that has a NaN or an infinity, or whose scale is not positive, and
    where the ruling leaves an element's question open.
    """
    patterns = in_blocks(ruling.size, x)
    numbers = decoded(ruling.number, patterns)
    factors = decoded(ruling.scale, scale)[..., np.newaxis] * global_scale
    is_finite = np.isfinite(numbers).all(axis=-1, keepdims=True)
    is_ordinary = is_finite & (factors > 0)  # a NaN is not greater
    with np.errstate(all="ignore"):
        quotients = np.where(is_ordinary, numbers / factors, 0.0)
    found, asked = _codes_of(ruling, quotients, np.signbit(numbers))
    is_nan = np.isnan(numbers).any(axis=-1, keepdims=True)
    asked[np.broadcast_to(~is_ordinary, asked.shape)] = NUMBER["element"]
    asked[np.broadcast_to(~is_finite, asked.shape)] = NUMBER["infinity-block"]
    asked[np.broadcast_to(is_nan, asked.shape)] = NUMBER["nan-block"]
    is_open = ~is_ordinary | _open(ruling)[asked]
    found, asked, is_open = (out_of_blocks(each, x.shape[-1]) for each in (found, asked, is_open))
    return _blocks(ruling.element.storage, found, asked, is_open)


def _codes_of(
    ruling: BlockRuling, quotients: Floats, is_negative: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    fmt = ruling.element
    values = values_of(fmt)[: fmt.max_code + 1]
    places = nearest_codes(values, np.abs(quotients))
    asked = np.full(quotients.shape, NUMBER["element"], np.uint8)
    is_beyond = places > fmt.max_code
    places = np.minimum(places, fmt.max_code)
    if fmt.is_integral:
        asked[is_beyond & ~is_negative] = NUMBER["element-above-largest"]
        asked[is_beyond & is_negative] = NUMBER["element-lowest"]
        return np.where(is_negative, -places, places) & fmt.mask, asked
    asked[is_beyond] = NUMBER["element-above-largest"]
    asked[is_negative & (places == 0)] = NUMBER["element-negative-zero"]
    return places | np.where(is_negative, fmt.sign_bit, 0), asked


def allowed_codes(ruling: BlockRuling, blocks: Blocks) -> Sequence[Bits]:
    """Return arrays of allowed codes: one, or two if an integer's lowest code is allowed somewhere.

    The second has the lowest code there, and is like the first elsewhere.
    """
    lowest = blocks.asked == NUMBER["element-lowest"]
    if not lowest.any():
        return (blocks.codes,)
    return blocks.codes, np.where(lowest, ruling.element.sign_bit, blocks.codes).astype(
        blocks.codes.dtype
    )


def products(ruling: BlockRuling, x: Bits, scale: Bits, global_scale: float = 1.0) -> Blocks:
    """Return the expected numbers of codes times scales; a NaN is the positive one of all ones."""
    number, element = ruling.number, ruling.element
    elements = values_of(element)[in_blocks(ruling.size, x)]
    factors = decoded(ruling.scale, scale)[..., np.newaxis]
    with np.errstate(all="ignore"):
        exact = elements * factors * global_scale
    found, asked = _encoded(number, exact)
    kinds: Mapping[BlockQuestion, NDArray[np.bool_]] = {
        "infinity-code": np.broadcast_to(np.isinf(elements), exact.shape),
        "nan-code": np.broadcast_to(np.isnan(elements), exact.shape),
        "nan-scale": np.broadcast_to(np.isnan(factors), exact.shape),
    }
    sign = np.where(np.signbit(elements), number.sign_bit, 0)
    for question, holds in kinds.items():
        special = number.infinity_code | sign if question == "infinity-code" else nan_of(number)
        found = np.where(holds, special, found)
        asked[holds] = NUMBER[question]
    found, asked = (out_of_blocks(each, x.shape[-1]) for each in (found, asked))
    return _blocks(number.storage, found, asked, _open(ruling)[asked])


def nan_of(number: Format) -> int:
    """Return the pattern of the positive NaN whose other bits are all set."""
    return number.nan_codes[0][-1]


def _encoded(number: Format, exact: Floats) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the pattern nearest to each number, ties to even, and the number of its question.

    Numbers that are not finite give zeros.
    """
    entry = number.entry
    asked: NDArray[np.uint8] = np.full(exact.shape, NUMBER["product"], np.uint8)
    magnitude = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    lowest = number.lowest_exponent
    power = np.maximum(np.frexp(magnitude)[1].astype(np.int64) - 1, lowest) - entry.mantissa
    multiple = np.rint(np.ldexp(magnitude, -power.astype(np.int32))).astype(np.int64)
    rounded = np.ldexp(multiple.astype(np.float64), power.astype(np.int32))
    asked[rounded != magnitude] = NUMBER["product-inexact"]
    field = np.where(multiple >> entry.mantissa, power + entry.mantissa + entry.bias - 1, 0)
    found: NDArray[np.int64] = (field << entry.mantissa) + multiple
    sign = np.where(np.signbit(exact), number.sign_bit, 0)
    is_beyond = found > number.max_code
    asked[is_beyond] = NUMBER["product-above-largest"]
    codes: Any = np.where(is_beyond, number.infinity_code, found) | sign
    return codes, asked


def answer_blocks(case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
    """Return the reference's results, by name, for blocks along the last dimension of ``x``."""
    ruling = block_ruling(case)
    whole = float(tensors["global"].view(np.float32)) if "global" in tensors else 1.0
    if ruling.is_decoding:
        return {"y": products(ruling, tensors["x"], tensors["scale"], whole).codes}
    scale = scales(ruling, tensors["x"], whole).codes
    return {"y": codes(ruling, tensors["x"], scale, whole).codes, "scale": scale}
