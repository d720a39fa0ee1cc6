"""The patterns of wide sources that are cast to texts: where what is written changes its form.

A number of digits ends at powers of ten, which a logarithm just misses, and notations switch there.
Integers are written in blocks of digits, whose leading zeros must stay. Floats are written with the
fewest digits that read back, from one to as many as the format needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log10

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format

Words = NDArray[np.uint64]

SMALL_INTEGERS = np.arange(257)
BLOCKS = 2, 3, 4, 8, 9
"""Sizes of the blocks of digits that routines write at once."""
SWITCHES = 25
"""The largest power of ten, of either sign, at which any routine switches to exponents."""
EVERY = 4
"""One in this many of the powers beyond ``SWITCHES`` is asked."""
DECIMALS = 6
"""Random decimals of each number of digits."""
WHOLE = 64
"""Random integers that are as large as a float's last odd one, or up to 2^``DOUBLED`` as large."""
DOUBLED = 12


def numbers_to_write(source: Format, chance: np.random.Generator) -> Words:
    """Patterns of a source of 32 or 64 bits, of both signs where it has them."""
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
    """Each power of ten, and the integers beside it."""
    for power in range(len(str(source.max_code))):
        yield from (10**power + step for step in (-1, 0, 1))


def _with_blocks(source: Format, chance: np.random.Generator) -> Iterator[int]:
    """Integers with a block of digits that is zero or one, of each size and at each place.

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
    """Random numbers of each number of digits that a format may need, near one."""
    for count in range(1, ceil(source.precision * log10(2)) + 2):
        for _ in range(DECIMALS):
            digits = int(chance.integers(10 ** (count - 1), 10**count))
            yield f"{digits}e{int(chance.integers(-SWITCHES, SWITCHES + 1)) - count}"


def _around_powers_of_ten(source: Format, powers: range) -> Words:
    """The patterns at, below and above powers of ten."""
    codes = _codes(source, np.array([float(f"1e{power}") for power in powers]))
    return np.concatenate([codes - np.uint64(1), codes, codes + np.uint64(1)])


def _codes(source: Format, values: NDArray[np.float64]) -> Words:
    return values.astype(source.name).view(source.storage).astype(np.uint64)
