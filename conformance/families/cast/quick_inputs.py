"""Chooses the inputs of the quick tier: all patterns up to 16 bits; of wider sources a selection.

It also chooses the few inputs of a case whose answers tell most, to fill tensors of all kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from math import ceil, log10
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.breakpoints import Words, breakpoints, distinct, ties, ties_after
from oracles.protocol import Bits
from oracles.reference.expectations import Expected
from oracles.reference.staircase import stretches
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format, format_named

UNSWEPT_BITS = 64
"""No tier requests all patterns of sources of this width, so more of them are selected."""
RANGES = 8
"""Equal parts of each binade; a source that no tier sweeps has inputs in each of them."""
FLIPPED, FLIPPED_SWEPT = 64, 16
"""Patterns beside ties of a 64-bit source, and of a 32-bit one, of which each bit is flipped."""
SAMPLED_STEPS = 512
"""Breakpoints that are sampled where a wide target has too many to visit all."""
COARSE, COARSE_INTEGER = 1, 5
"""Leading binary digits of which all values are inputs: of a float, those after the first one."""
LOWEST_STEPS, STEPS_BY_RULE = 8, 64
"""Numbers of lowest and of evenly spaced target values, whose ties have each bit flipped."""
TIES_WITH_PAIRS, TIES_WITH_CHANCE, TIMES = 4, 12, 256
"""How many ties have each two bits and each stretch of bits flipped, and how many random low bits.

``TIMES`` is how often bits are drawn for each of the latter.
"""
GRIDS = (7, 10)
"""Digits of bfloat16 and float16 after the first; some values of each are inputs."""
ON_GRIDS = 128
AROUND = 12
"""Patterns per breakpoint: a value and a midpoint, each with both neighbors, of both signs."""


def inputs_of(
    case: Case, ruling: Ruling, seed: int, max_examples: int, few_shapes: bool = False
) -> Bits:
    """Return the inputs of the quick tier on which a case is judged.

    Numbers come in the order of their patterns, and a worked example's inputs as in the document. A
    case that must be refused needs only two inputs, as does one from complex numbers. Where each
    shape costs a compilation (``few_shapes``), a refused case gets the same inputs as the pair's
    other cases, to reuse their program.
    """
    if case.example is not None:
        return np.array([given for given, _ in ruling.worked], ruling.source.storage)
    needs_two_inputs = ruling.is_rejection and not few_shapes
    if needs_two_inputs or not (ruling.source.is_numeric or ruling.source.kind == "text"):
        return one_of_each(ruling.source)
    if ruling.on_the_way and ruling.source.bits > EXHAUSTIVE_BITS:
        return inputs_through(ruling.source, ruling.target, ruling.on_the_way, seed, max_examples)
    return quick_inputs(case.source, case.target, seed, max_examples)


@lru_cache(maxsize=8)
def inputs_through(
    source: Format, target: Format, on_the_way: tuple[Format, ...], seed: int, max_examples: int
) -> Bits:
    """Return the quick tier's inputs for a cast that goes through the formats ``on_the_way``.

    They are those of casts to the target and to each of these formats, and the ends of the
    staircase's stretches.
    """
    parts = [
        quick_inputs(source.name, each.name, seed, max_examples).astype(np.uint64)
        for each in (target, *on_the_way)
    ]
    ends = [(each.first, each.last) for each in stretches(source, target, on_the_way)]
    parts.append(np.array(ends, np.uint64).ravel())
    return distinct(np.concatenate(parts)).astype(source.storage)


def few_inputs(case: Case, ruling: Ruling, most: int) -> Bits:
    """Return at most about ``most`` inputs of a case: all specials, then breakpoints.

    A worked example, a source without numbers and one with at most ``most`` patterns have all
    inputs of the quick tier with seed 0, but not the ``max_examples`` random ones.
    """
    source = ruling.source
    if case.example is not None or not source.is_numeric or 1 << source.bits <= most:
        return inputs_of(case, ruling, 0, 0)
    ways = [each.name for each in (ruling.target, *ruling.on_the_way)]
    parts = [few_patterns(source.name, name, most // len(ways)) for name in ways]
    return distinct(np.concatenate(parts)) if ruling.on_the_way else parts[0]


@lru_cache(maxsize=8)
def few_patterns(source_name: str, target_name: str, most: int) -> Bits:
    """Return at most about ``most`` patterns of a wide source: all specials, then breakpoints."""
    source, target = format_named(source_name), format_named(target_name)
    codes = _specials(source)
    if target.is_numeric:
        chance = np.random.default_rng(crc32(f"{source_name}/{target_name}".encode()))
        steps = _steps(source, target, chance)
        room = max(2, (most - codes.size) // AROUND)
        if steps.size > room:
            steps = steps[np.linspace(0, steps.size - 1, room).astype(np.intp)]
        codes = distinct(np.concatenate([codes, breakpoints(source, target, steps)]))
    return codes.astype(source.storage)


@cache
def one_of_each(source: Format) -> Bits:
    """Return a zero and a one, enough for a case that refuses all values; of complex, two zeros."""
    if source.kind == "text":
        return np.array(["0", "1"], object)
    if source.kind == "complex":
        return np.zeros(2, source.storage)
    return np.array(sorted({0, source.one_code}), source.storage)


@lru_cache(maxsize=8)
def quick_inputs(source_name: str, target_name: str, seed: int, max_examples: int) -> Bits:
    """Return the quick tier's inputs for a pair, the same for every document and mode.

    The random ones depend on ``seed``, and their number on ``max_examples``.
    """
    source, target = format_named(source_name), format_named(target_name)
    chance = np.random.default_rng([seed, crc32(f"{source_name}/{target_name}".encode())])
    if source.kind == "text":
        from conformance.families.cast.text_inputs import texts

        return np.array(texts(target, chance, max_examples), object)
    if source.bits <= EXHAUSTIVE_BITS:
        return every_pattern(source)
    parts = [_specials(source)]
    if target.is_numeric:
        parts.append(breakpoints(source, target, _steps(source, target, chance)))
        parts.append(_beside_ties(source, target, seed))
        # The other parts have generators of their own, so that the random inputs stay what they
        # were.
        if source.bits >= UNSWEPT_BITS:
            parts.append(_with_flipped_bits(source, parts[-1], FLIPPED, chance))
        else:
            own = np.random.default_rng([seed, 1])
            parts.append(_with_flipped_bits(source, parts[-1], FLIPPED_SWEPT, own))
            parts.append(_coarse(source, seed))
        parts.append(_above_ties(source, target, seed))
    elif target.kind == "text":
        own = np.random.default_rng([seed, 3])
        parts.append(numbers_to_write(source, own))
    if source.bits >= UNSWEPT_BITS and source.is_integral:
        codes = _even_and_odd(source, RANGES, chance)
        parts += [codes, source.mask - codes] if source.is_signed else [codes]
    parts.append(chance.integers(0, source.mask, max_examples, np.uint64, endpoint=True))
    return distinct(np.concatenate(parts)).astype(source.storage)


def _steps(source: Format, target: Format, chance: np.random.Generator) -> NDArray[np.uint64]:
    """Return the codes of the target values near which to choose inputs.

    They are all codes of a narrow target, and a sample of a wide one. Where the cast rounds, the
    sample has an even and an odd code of each binade, or of several ranges of it if no tier sweeps
    the source. Between integers nothing rounds, so that a sample and the ends are enough.
    """
    if target.bits <= EXHAUSTIVE_BITS and not (source.is_integral and target.is_integral):
        return np.arange(target.max_code + 1, dtype=np.uint64)
    sample = chance.integers(0, target.max_code, SAMPLED_STEPS, np.uint64, endpoint=True)
    fields = range(target.entry.mantissa, target.bits) if target.kind == "float" else range(64)
    edges = [code for place in fields if (code := 1 << place) <= target.max_code]
    near = [code + step for code in (0, 1, *edges, target.max_code) for step in (-1, 0, 1)]
    inside = [code for code in near if 0 <= code <= target.max_code]
    ranges = RANGES if source.bits >= UNSWEPT_BITS else 1
    both = _even_and_odd(target, ranges, chance) if _rounds(source, target) else sample
    return np.unique(np.concatenate([sample, both, np.array(inside, np.uint64)]))


def _rounds(source: Format, target: Format) -> bool:
    """Return whether a source has values between two of the target's."""
    if target.is_integral:
        return source.kind == "float"
    digits = source.bits - source.is_signed if source.is_integral else source.precision
    return digits > target.precision


def _even_and_odd(target: Format, ranges: int, chance: np.random.Generator) -> NDArray[np.uint64]:
    """Return an even and an odd code of each of ``ranges`` equal parts of each binade.

    The midpoints after them are rounded in opposite ways.
    """
    mantissa = target.entry.mantissa if target.kind == "float" else target.bits
    starts = [1 << place for place in range(mantissa)]
    sizes = starts.copy()
    if target.kind == "float":
        normal = [field << mantissa for field in range(1, 1 << target.entry.exponent)]
        starts += normal
        sizes += [1 << mantissa] * len(normal)
    # A binade with fewer patterns than ranges has a range for each pattern.
    widths = np.array([max(size // ranges, 1) for size in sizes], np.uint64)
    parts = np.arange(ranges, dtype=np.uint64)
    bounds = np.array(starts, np.uint64)[:, None] + parts * widths[:, None]
    bounds = bounds[parts < np.array(sizes, np.uint64)[:, None]]
    widths = np.repeat(widths, np.minimum(np.array(sizes, np.uint64), ranges).astype(np.intp))
    codes = bounds + chance.integers(0, widths, dtype=np.uint64)
    both = np.concatenate([codes & ~np.uint64(1), codes | np.uint64(1)])
    return np.asarray(both[both <= target.max_code], np.uint64)


def _with_flipped_bits(
    source: Format, codes: NDArray[np.uint64], count: int, chance: np.random.Generator
) -> NDArray[np.uint64]:
    """Draw up to ``count`` of ``codes``; return each once per bit, with this bit flipped.

    So near a tie one bit alone decides.
    """
    some = chance.choice(codes, min(count, codes.size), replace=False)
    bits = np.uint64(1) << np.arange(source.bits, dtype=np.uint64)
    return np.asarray(some[:, None] ^ bits, np.uint64).ravel()


def _beside_ties(source: Format, target: Format, seed: int) -> NDArray[np.uint64]:
    """Return patterns beside ties, with one bit of the tie flipped and of some ties more.

    The ties are spread over the target's range; some are at its lowest values.
    """
    chance = np.random.default_rng([seed, 3])
    most = max(target.max_code // STEPS_BY_RULE, 1)
    spread = np.array([target.max_code * step // STEPS_BY_RULE for step in range(STEPS_BY_RULE)])
    spread = spread.astype(np.uint64) + chance.integers(0, most, STEPS_BY_RULE, np.uint64)
    lowest = np.arange(min(LOWEST_STEPS, target.max_code), dtype=np.uint64)
    found = ties(source, target, np.unique(np.concatenate([lowest, spread])))
    if not found.size:
        return found
    bits = np.uint64(1) << np.arange(source.bits, dtype=np.uint64)
    pairs = np.unique(bits[:, None] | bits)
    last, first = np.tril_indices(source.bits)
    stretches = (bits[last] << np.uint64(1)) - bits[first]
    some, more = (
        found[np.linspace(0, found.size - 1, count).astype(np.intp)]
        for count in (TIES_WITH_PAIRS, TIES_WITH_CHANCE)
    )
    below = (more & (~more + np.uint64(1))) - np.uint64(1)
    any_bits = chance.integers(0, source.mask, (more.size, TIMES), np.uint64)
    flipped = [
        (found[:, None] ^ bits).ravel(),
        (some[:, None] ^ np.concatenate([pairs, stretches])).ravel(),
        (more[:, None] | any_bits & below[:, None]).ravel(),
    ]
    return np.asarray(np.concatenate(flipped), np.uint64)


def _above_ties(source: Format, target: Format, seed: int) -> NDArray[np.uint64]:
    """Return a tie of each binade and sign, with each single bit below its lowest set bit added.

    A kernel merges these bits into one, which says that something is left. If it omits some, a
    value above an even value's tie rounds down. How many such bits there are depends on the
    exponent, so every binade counts.
    """
    codes = _even_and_odd(target, 1, np.random.default_rng([seed, 4]))
    found = ties(source, target, np.unique(codes[codes & np.uint64(1) == 0]))
    if not found.size:
        return found
    bits = np.uint64(1) << np.arange(source.bits, dtype=np.uint64)
    lowest = found & (~found + np.uint64(1))
    above = (found[:, None] | bits)[bits < lowest[:, None]]
    if not source.is_signed:
        return above
    negative = (
        above | np.uint64(source.sign_bit) if source.kind == "float" else ~above + np.uint64(1)
    )
    return np.concatenate([above, negative & np.uint64(source.mask)])


@lru_cache(maxsize=4)
def _coarse(source: Format, seed: int) -> NDArray[np.uint64]:
    """Return values of a 32-bit source with few digits, as data has them: most low bits are zero.

    Of a float they are, with each sign, the values of each binade with ``COARSE`` digits,
    subnormals with few digits, some values of narrower floats, and small integers. Of an integer
    they are odd numbers of ``COARSE_INTEGER`` bits at each place, and their negatives.
    """
    if source.is_integral:
        odd = np.arange(1, 1 << COARSE_INTEGER, 2, dtype=np.uint64)
        places = np.arange(source.bits - COARSE_INTEGER, dtype=np.uint64)
        values = (odd[:, None] << places).ravel()
        return np.concatenate([values, np.uint64(source.mask) - values + np.uint64(1)])
    mantissa = source.entry.mantissa
    rows = np.arange((source.max_code >> mantissa) + 1 << COARSE, dtype=np.uint64)
    parts = [rows << np.uint64(mantissa - COARSE)]
    # The leading digits of a subnormal determine how far it is shifted; tables have a row for each
    # leading byte.
    odd = np.arange(1, 1 << COARSE_INTEGER, 2, dtype=np.uint64)
    places = np.arange(mantissa - COARSE_INTEGER + 1, dtype=np.uint64)
    parts.append((odd[:, None] << places).ravel())
    leading = np.arange(1, 1 << 8, dtype=np.uint64)[:, None]
    bytes_in = leading << np.arange(0, mantissa, 8, dtype=np.uint64)
    parts.append(bytes_in[bytes_in < 1 << mantissa])
    chance = np.random.default_rng([seed, 2])
    for digits in GRIDS:
        some = chance.integers(0, source.max_code, ON_GRIDS, np.uint64)
        parts.append(some >> np.uint64(mantissa - digits) << np.uint64(mantissa - digits))
    whole = SMALL_INTEGERS.astype(np.float32)
    parts.append(whole.view(source.storage).astype(np.uint64))
    codes = np.concatenate(parts)
    return np.concatenate([codes, codes | np.uint64(source.sign_bit)])


@cache
def every_pattern(source: Format) -> Bits:
    """Return all patterns of a source in a read-only array, the same one at each call.

    So what is computed from it can be cached.
    """
    patterns = np.arange(1 << source.bits, dtype=source.storage)
    patterns.flags.writeable = False
    return patterns


@cache
def _specials(source: Format) -> NDArray[np.uint64]:
    """Return the ends of a source, NaNs of each kind, single bits and their neighbors.

    Of a float, each power of two is among them.
    """
    codes = {0, 1, source.mask, source.sign_bit, source.max_code, source.lowest_code}
    for place in range(source.bits):
        for step in (-1, 0, 1):
            codes.add(((1 << place) + step) & source.mask)
            codes.add((source.mask + 1 - (1 << place) + step) & source.mask)
    if source.kind == "float":
        codes.update(_float_specials(source))
    return np.array(sorted(codes), np.uint64)


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


SMALL_INTEGERS = np.arange(257)
BLOCKS = 2, 3, 4, 8, 9
"""Sizes of the blocks of digits that routines write at once."""
SWITCHES = 25
"""The largest power of ten, of either sign, at which any routine switches to exponents."""
EVERY = 4
"""One in this many of a float's powers of ten is an input, besides those up to ``SWITCHES``."""
DECIMALS = 6
"""Random decimals of each number of digits."""
WHOLE = 64
"""Random integers as large as a float's last odd one, or up to 2^``DOUBLED`` times as large."""
DOUBLED = 12


def numbers_to_write(source: Format, chance: np.random.Generator) -> Words:
    """Return patterns of a 32-bit or 64-bit source whose casts to text are likely to go wrong.

    Integers have both signs, if the source is signed. Of a float, decimals and powers of ten near
    one have both; whole numbers and far powers are positive.
    """
    if source.is_integral:
        found = [*SMALL_INTEGERS.tolist(), *_powers_of_ten(source), *_with_blocks(source, chance)]
        values = np.array([value for value in found if value <= source.max_code], np.uint64)
        negated = (np.uint64(0) - values) & np.uint64(source.mask)
        return np.concatenate([values, negated]) if source.is_signed else values
    last = 1 << source.precision
    whole = chance.integers(last // 2, last, WHOLE) * 2.0 ** chance.integers(0, DOUBLED, WHOLE)
    decimals = np.array([float(text) for text in _decimals(source, chance)])
    near = _around_powers_of_ten(source, range(-SWITCHES, SWITCHES + 1))
    signed = np.concatenate([_codes(source, decimals), near])
    ends = np.finfo(source.name)
    least, most = (int(np.log10(end)) for end in (ends.smallest_subnormal, ends.max))
    far = _around_powers_of_ten(source, range(least, most + 1, EVERY))
    positive = _codes(source, np.concatenate([SMALL_INTEGERS, whole]))
    return np.concatenate([signed, signed | np.uint64(source.sign_bit), positive, far])


def _powers_of_ten(source: Format) -> Iterator[int]:
    for power in range(len(str(source.max_code))):
        yield from (10**power + step for step in (-1, 0, 1))


def _with_blocks(source: Format, chance: np.random.Generator) -> Iterator[int]:
    """Yield integers with a block of digits that is zero or one, of each size and at each place.

    Before the block stands a one or a random integer; behind it zeros, a one, or random digits. The
    largest integer that ends with nines only, from the block on, is there too.
    """
    length = len(str(source.max_code))
    for size in BLOCKS:
        for low in range(0, length - size, size):
            unit, above = 10**low, 10 ** (low + size)
            drawn = 1 + int(chance.integers(source.max_code, dtype=np.uint64)) // above
            behind = int(chance.integers(unit, dtype=np.uint64))
            for first, block, rest in (
                (1, 0, behind), (drawn, 0, 0), (drawn, 0, 1), (drawn, 0, behind), (drawn, 1, behind)
            ):  # fmt: skip
                yield first * above + block * unit + rest % unit
            # Division by multiplying is off by one just below a multiple of a large number first.
            yield source.max_code // above * above - 1


def _decimals(source: Format, chance: np.random.Generator) -> Iterator[str]:
    """Yield random decimals of each number of digits that a format may need, as texts.

    They lie between 10^-26 and 10^25.
    """
    for count in range(1, ceil(source.precision * log10(2)) + 2):
        for _ in range(DECIMALS):
            digits = int(chance.integers(10 ** (count - 1), 10**count))
            yield f"{digits}e{int(chance.integers(-SWITCHES, SWITCHES + 1)) - count}"


def _around_powers_of_ten(source: Format, powers: range) -> Words:
    """Return the pattern of ten to each of ``powers``, the one below and the one above."""
    codes = _codes(source, np.array([float(f"1e{power}") for power in powers]))
    return np.concatenate([codes - np.uint64(1), codes, codes + np.uint64(1)])


def _codes(source: Format, values: NDArray[np.float64]) -> Words:
    return values.astype(source.name).view(source.storage).astype(np.uint64)


MOST = 40
LEAST_OF_A_RULE = 3
LONGEST_TEXT = 400
PAIRS_KEPT = 1 << 10
TARGET_STEPS = 5
"""Number of target values after which the tie is chosen as an input."""
FARTHER = 8
"""About how many target values are tried for ties after an even and the next odd value."""


def telling_inputs(rules: Ruling, inputs: Bits, expected: Expected) -> NDArray[np.intp]:
    """Return the indices of up to ``MOST`` inputs: NaNs, ties, ends, and some of each branch.

    There must be ``inputs``, and numbers in rising order. How many there are of each does not
    depend on the seed from which they were drawn. Texts longer than ``LONGEST_TEXT`` are left out.
    """
    branch_indices = expected.branch_indices
    if rules.source.kind == "text":
        # numpy gives each text of an array as much room as its longest one takes.
        told = np.array([len(text) <= LONGEST_TEXT for text in inputs])
        branch_indices = np.where(told, branch_indices, len(rules.branches))
    found_at = (np.flatnonzero(branch_indices == at) for at in range(len(rules.branches)))
    branches = [members for members in found_at if members.size]
    found = {index: None for members in branches for index in _spread(members, LEAST_OF_A_RULE)}
    if rules.source.is_numeric and not rules.worked:
        codes = _telling_codes(rules.source, rules.target)
        indices = np.searchsorted(inputs, codes).clip(max=inputs.size - 1)
        found.update(dict.fromkeys(indices[inputs[indices] == codes].tolist()))
    share = max(LEAST_OF_A_RULE, (MOST - len(found)) // len(branches))
    found.update({index: None for members in branches for index in _spread(members, share)})
    return np.array(sorted([*found][:MOST]), np.intp)


def _spread(members: NDArray[np.intp], most: int) -> list[int]:
    """Return up to ``most`` of the members, evenly spread, with the first and the last."""
    places = np.linspace(0, members.size - 1, min(most, members.size)).astype(np.intp)
    spread: list[int] = members[places].tolist()
    return spread


@lru_cache(PAIRS_KEPT)
def _telling_codes(source: Format, target: Format) -> Bits:
    """Return the patterns of the source's NaNs, ties, the ends of both formats' ranges, and one."""
    telling = [*_nans(source), *_ties(source, target), *_ends(source), source.one_code]
    telling += _ends_of_answers(source, target)
    return np.array(telling, source.storage)


def _nans(source: Format) -> Iterator[int]:
    """Yield the first, the middle and the last NaN of each sign; the middle one is quiet."""
    for codes in source.nan_codes:
        yield from (codes[0], codes[len(codes) // 2], codes[-1])


def _ties(source: Format, target: Format) -> list[int]:
    """Return ties over the target's range and after an even and an odd value, some also negated.

    Only a float's are negated. Ties after an even and an odd value are rounded in opposite ways.
    """
    if not target.is_numeric:
        return []
    spread = [target.max_code * step // (TARGET_STEPS - 1) for step in range(TARGET_STEPS)]
    found = ties(source, target, spread).tolist()
    of_both = [*found[:1], *_ties_of_both_parities(source, target)]
    negative = [code | source.sign_bit for code in of_both] if source.kind == "float" else []
    return [*found, *of_both, *(negative if source.is_signed else [])]


def _ties_of_both_parities(source: Format, target: Format) -> list[int]:
    """Return the ties after an even value and the next odd one, near one or two or else farther on.

    The list is empty if there are none.
    """
    even = target.one_code & ~1 if target.kind == "float" else 2
    step = max(2, (target.max_code - even) // FARTHER & ~1)
    codes = np.arange(even, target.max_code - 1, step, dtype=np.uint64)
    both = [ties_after(source, target, codes + np.uint64(parity)) for parity in (0, 1)]
    first, second = (patterns.tolist() for patterns, _ in both)
    (_, has_first), (_, has_second) = both
    found = np.flatnonzero(has_first & has_second)
    return [first[found[0]], second[found[0]]] if found.size else []


def _ends_of_answers(source: Format, target: Format) -> list[int]:
    """Return inputs at which answers become the smallest and the largest, and those just beyond.

    Of the largest ones both signs, because a backend may treat overflow of one sign otherwise.
    """
    if not target.is_numeric:
        return []
    near = breakpoints(source, target, [1, target.max_code]).tolist()
    found = [code for code in near if 1 < code < source.max_code]
    ends = [*found[1::3], *found[2::3]]
    largest = sorted(ends)[-2:] if source.kind == "float" and source.is_signed else []
    return [*ends, *(code | source.sign_bit for code in largest)]


def _ends(source: Format) -> Iterator[int]:
    """Yield zero, the smallest and largest value of each sign, and the largest subnormals."""
    ends = [0, 1, source.max_code]
    if source.kind == "float" and source.entry.mantissa:
        ends.append((1 << source.entry.mantissa) - 1)
    for code in ends:
        yield code
        if source.kind == "float" and source.is_signed:
            yield code | source.sign_bit
    if source.is_integral:
        yield source.lowest_code
