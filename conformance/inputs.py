"""The inputs of the quick tier: every pattern up to 16 bits, the telling ones beyond."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from conformance.texts import texts
from oracles.protocol import Bits
from oracles.reference.breakpoints import breakpoints
from specs.cases import Case
from specs.formats import Format, format_named
from specs.ruling import Ruling

EXHAUSTIVE_BITS = 16
SAMPLED_STEPS = 512
"""How many steps of a staircase too long to walk are visited."""
AROUND = 12
"""Patterns around a step: a value and a midpoint, the pattern before and after, of both signs."""


def inputs_of(
    case: Case, ruling: Ruling, seed: int, max_examples: int, is_dear: bool = False
) -> Bits:
    """All inputs that a case is judged on, in the order of their patterns.

    Where each shape costs a compilation, a pair that one document refuses is asked in the shape in
    which another document has it answered.
    """
    if case.example is not None:
        return np.array([given for given, _ in ruling.worked], ruling.source.storage)
    is_asked_briefly = ruling.is_rejection and not is_dear
    if is_asked_briefly or not (ruling.source.is_numeric or ruling.source.kind == "text"):
        return one_of_each(ruling.source)
    return quick_inputs(case.source, case.target, seed, max_examples)


def few_inputs(case: Case, ruling: Ruling, most: int) -> Bits:
    """As many inputs as a file should hold: all specials, and the breakpoints that still fit."""
    source = ruling.source
    if case.example is not None or not source.is_numeric or 1 << source.bits <= most:
        return inputs_of(case, ruling, 0, 0)
    return _few_patterns(source.name, case.target, most)


@lru_cache(maxsize=8)
def _few_patterns(source_name: str, target_name: str, most: int) -> Bits:
    source, target = format_named(source_name), format_named(target_name)
    codes = set(_specials(source))
    if target.is_numeric:
        chance = np.random.default_rng(crc32(f"{source_name}/{target_name}".encode()))
        steps = _steps(source, target, chance)
        room = max(2, (most - len(codes)) // AROUND)
        if steps.size > room:
            steps = steps[np.linspace(0, steps.size - 1, room).astype(np.intp)]
        codes.update(breakpoints(source, target, steps.tolist()))
    return np.array(sorted(codes), source.storage)


def one_of_each(source: Format) -> Bits:
    """A zero and a one: enough for a request that is to be refused whatever its values."""
    if source.kind == "text":
        return np.array(["0", "1"], object)
    if source.kind == "complex":
        return np.zeros(2, source.storage)
    return np.array(sorted({0, source.one_code}), source.storage)


@lru_cache(maxsize=8)
def quick_inputs(source_name: str, target_name: str, seed: int, max_examples: int) -> Bits:
    """The quick tier's inputs for a pair; they do not depend on document or mode."""
    source, target = format_named(source_name), format_named(target_name)
    chance = np.random.default_rng([seed, crc32(f"{source_name}/{target_name}".encode())])
    if source.kind == "text":
        return np.array(texts(target, chance, max_examples), object)
    if source.bits <= EXHAUSTIVE_BITS:
        return np.arange(1 << source.bits, dtype=source.storage)
    codes = set(_specials(source))
    if target.is_numeric:
        codes.update(breakpoints(source, target, _steps(source, target, chance).tolist()))
    random = chance.integers(0, source.mask, max_examples, np.uint64, endpoint=True)
    known = np.fromiter(codes, np.uint64, len(codes))
    ordered = np.sort(np.concatenate([known, random]))
    # numpy's own way to leave out what repeats takes far longer than to sort.
    new: NDArray[np.bool_] = np.append(True, ordered[1:] != ordered[:-1])
    return np.asarray(ordered[new], source.storage)


def _steps(source: Format, target: Format, chance: np.random.Generator) -> NDArray[np.uint64]:
    """Patterns of non-negative values: all of a narrow target, the ends and a sample of a wide one.

    Between integers nothing rounds, so that only the ends tell.
    """
    if target.bits <= EXHAUSTIVE_BITS and not (source.is_integral and target.is_integral):
        return np.arange(target.max_code + 1, dtype=np.uint64)
    sample = chance.integers(0, target.max_code, SAMPLED_STEPS, np.uint64, endpoint=True)
    fields = range(target.entry.mantissa, target.bits) if target.kind == "float" else range(64)
    edges = [code for place in fields if (code := 1 << place) <= target.max_code]
    near = [code + step for code in (0, 1, *edges, target.max_code) for step in (-1, 0, 1)]
    inside = [code for code in near if 0 <= code <= target.max_code]
    return np.unique(np.concatenate([sample, np.array(inside, np.uint64)]))


def _specials(source: Format) -> Iterator[int]:
    """The ends, the NaN classes, every single bit, every power of two and its neighbours."""
    yield from (0, 1, source.mask, source.sign_bit, source.max_code, source.lowest_code)
    for place in range(source.bits):
        for step in (-1, 0, 1):
            yield ((1 << place) + step) & source.mask
            yield (source.mask + 1 - (1 << place) + step) & source.mask
    if source.kind == "float":
        yield from _float_specials(source)


def _float_specials(source: Format) -> Iterator[int]:
    mantissa = source.entry.mantissa
    for sign in (0, source.sign_bit):
        for field in range(1 << source.entry.exponent):
            power = sign | field << mantissa
            yield from (power, power + 1, power + (1 << mantissa) - 1)
    for nans in source.nan_codes:
        quiet = nans.start - 1 | 1 << (mantissa - 1)
        yield from (nans.start, nans.stop - 1, quiet, quiet + 1, quiet - 1)
        yield from ((nans.start - 1) | 1 << place for place in range(mantissa))
