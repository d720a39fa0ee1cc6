"""Faults in a part of a 64-bit source, which no tier sweeps, are met by the quick tier's inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from conformance.kinds.quick_inputs import RANGES, quick_inputs
from oracles.protocol import Bits

Fault = Callable[[Bits], Bits]
"""Which inputs a fault concerns."""
MANTISSA = 52
BIAS = 1023


def float_range(sign: int, exponent: int, part: int) -> Fault:
    """The float64 inputs of a part of a binade."""
    wanted = (sign << 11 | exponent + BIAS) * RANGES + part
    return lambda codes: codes >> np.uint64(MANTISSA - 3) == wanted


def integer_range(place: int, part: int) -> Fault:
    """The integers of a part of a binade."""
    width = max((1 << place) // RANGES, 1)
    first = (1 << place) + part * width
    return lambda codes: (codes >= first) & (codes <= first + width - 1)


@pytest.mark.parametrize("seed", [0, 1])
def test_each_part_of_each_binade_of_float64_has_all_remainders_of_float32(seed: int) -> None:
    inputs = quick_inputs("float64", "float32", seed, 0)
    rest = inputs & np.uint64((1 << 29) - 1)
    is_odd = (inputs >> np.uint64(29) & np.uint64(1)).astype(bool)
    tie = 1 << 28
    for remainder in (0, tie - 1, tie, tie + 1):
        for odd in (False, True):
            there = inputs[(rest == remainder) & (is_odd == odd)]
            for sign in (0, 1):
                for exponent in range(-126, 128):
                    for part in range(RANGES):
                        concerned = float_range(sign, exponent, part)(there)
                        assert concerned.any(), (remainder, odd, sign, exponent, part)


@pytest.mark.parametrize("target", ["float32", "float64", "int32", "uint64", "int8"])
def test_each_part_of_each_binade_of_int64_has_inputs(target: str) -> None:
    inputs = quick_inputs("int64", target, 0, 0)
    for codes in (inputs, ~inputs + np.uint64(1)):
        for place in range(63):
            for part in range(min(RANGES, 1 << place)):
                assert integer_range(place, part)(codes).any(), (place, part)


@pytest.mark.parametrize(("source", "dropped"), [("int64", 30), ("float64", 28)])
def test_each_bit_alone_decides_beside_a_tie(source: str, dropped: int) -> None:
    """A cast to float32 that loses one of the bits below the midpoint rounds such inputs wrong."""
    inputs = quick_inputs(source, "float32", 0, 0)
    for place in range(dropped):
        if source == "float64":
            rest = inputs & np.uint64((1 << 29) - 1)
            found = rest == (1 << 28 | 1 << place)
        else:
            lengths = np.floor(np.log2(np.maximum(inputs, 1).astype(float))).astype(np.uint64)
            unit = np.uint64(1) << np.maximum(lengths, 24) - np.uint64(23)
            tie = unit >> np.uint64(1)
            found = (inputs & (unit - np.uint64(1))) == (tie | np.uint64(1 << place))
            found &= (tie > 1 << place) & (inputs < 1 << 62)
        assert found.any(), place
