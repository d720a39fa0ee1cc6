"""The inputs of the quick tier contain those that show faults of wide sources.

The tier sweeps no source of 64 bits. So its inputs must show a fault in any part of a binade.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.families.cast.breakpoints import ties
from conformance.families.cast.quick_inputs import RANGES, quick_inputs, telling_inputs
from conformance.families.reference import Reference
from lab.proof.obligations import groups
from lab.proof.smt_order import number_branches
from oracles.protocol import Bits
from oracles.reference import expect_by_kernels
from oracles.reference.expectations import has_branch
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named

MANTISSA = {"float32": 23, "float64": 52}
DROPPED = (1 << 29) - 1
"""The bits of float64 below those of float32."""
TIE = 1 << 28
WIDE = [
    ("int32", "float32"),
    ("uint32", "float32"),
    ("int64", "float32"),
    ("uint64", "float32"),
    ("int64", "float64"),
    ("uint64", "float64"),
]
SEEDS = pytest.mark.parametrize("seed", [0, 1])


def last_kept_bits(codes: Bits) -> Bits:
    """The lowest bit of float64 that float32 keeps; it decides whether a tie rounds up."""
    return codes >> np.uint64(29) & np.uint64(1)


@SEEDS
@pytest.mark.parametrize(("source", "target"), WIDE)
def test_ties_of_both_kinds_in_every_binade_of_integers(
    source: str, target: str, seed: int
) -> None:
    digits = MANTISSA[target] + 1
    bits = int(source.removeprefix("u").removeprefix("int")) - (not source.startswith("u"))
    asked = set(quick_inputs(source, target, seed, 20).tolist())
    for binade in range(digits, bits):
        unit = 1 << (binade - digits + 1)
        kinds = {
            (code // unit) % 2
            for code in asked
            if code >> binade == 1 and code % unit == unit // 2 and {code - 1, code + 1} <= asked
        }
        assert kinds == {0, 1}, binade


@SEEDS
@pytest.mark.parametrize(
    ("source", "target", "dropped", "fields"),
    [
        ("float64", "float32", 29, range(1023 - 126, 1023 + 128)),
        ("float32", "bfloat16", 16, range(1, 255)),
        ("float32", "float16", 13, range(127 - 14, 127 + 16)),
    ],
)
def test_each_bit_below_an_even_tie_of_every_binade_and_sign(
    source: str, target: str, dropped: int, fields: range, seed: int
) -> None:
    """A kernel that forgets one bit in one binade answers one of these wrongly."""
    bits = 8 * np.dtype(source).itemsize
    asked = quick_inputs(source, target, seed, 20).astype(np.uint64)
    rest = asked & np.uint64((2 << dropped) - 1)
    for place in range(dropped - 1):
        alone = asked[rest == (1 << dropped - 1) + (1 << place)]
        signed_fields = set((alone >> np.uint64(MANTISSA[source])).tolist())
        sign = 1 << bits - 1 - MANTISSA[source]
        assert {*fields, *(field | sign for field in fields)} <= signed_fields, place


@SEEDS
def test_ties_of_both_kinds_in_every_binade_of_float64_for_float32(seed: int) -> None:
    asked = quick_inputs("float64", "float32", seed, 20)
    fields = (asked >> np.uint64(52)).astype(np.int64)
    is_tie = asked & np.uint64(DROPPED) == TIE
    beside = np.isin(asked - np.uint64(1), asked) & np.isin(asked + np.uint64(1), asked)
    for field in range(1023 - 126, 1023 + 128):
        kinds = set(last_kept_bits(asked[is_tie & beside & (fields == field)]).tolist())
        assert kinds == {0, 1}, field - 1023


@pytest.mark.parametrize(("target", "bits"), [("int32", 31), ("int64", 63), ("uint32", 32)])
def test_halves_of_both_kinds_in_every_binade_of_float64_for_integers(
    target: str, bits: int
) -> None:
    asked = quick_inputs("float64", target, 0, 20)
    values = np.abs(asked.view(np.float64)[np.isfinite(asked.view(np.float64))])
    for binade in range(1, min(bits, 52)):
        here = values[(values >= 2.0**binade) & (values < 2.0 ** (binade + 1))]
        halves = here[here % 1 == 0.5]
        assert {int(half) % 2 for half in halves} == {0, 1}, binade


@SEEDS
def test_each_part_of_each_binade_of_float64_has_all_remainders_of_float32(seed: int) -> None:
    inputs = quick_inputs("float64", "float32", seed, 0)
    rest, is_odd = inputs & np.uint64(DROPPED), last_kept_bits(inputs).astype(bool)
    wanted = {
        (sign << 11 | exponent + 1023) * RANGES + part
        for sign in (0, 1)
        for exponent in range(-126, 128)
        for part in range(RANGES)
    }
    for remainder in (0, TIE - 1, TIE, TIE + 1):
        for odd in (False, True):
            there = inputs[(rest == remainder) & (is_odd == odd)]
            found = set((there >> np.uint64(52 - 3)).tolist())
            assert wanted - found == set(), (remainder, odd)


@pytest.mark.parametrize("target", ["float32", "float64", "int32", "uint64", "int8"])
def test_each_part_of_each_binade_of_int64_has_inputs(target: str) -> None:
    inputs = quick_inputs("int64", target, 0, 0)
    for codes in (inputs, ~inputs + np.uint64(1)):
        for place in range(63):
            width = max((1 << place) // RANGES, 1)
            for part in range(min(RANGES, 1 << place)):
                first = (1 << place) + part * width
                assert ((codes >= first) & (codes <= first + width - 1)).any(), (place, part)


@pytest.mark.parametrize(("source", "dropped"), [("int64", 30), ("float64", 28)])
def test_each_bit_alone_decides_beside_a_tie(source: str, dropped: int) -> None:
    """A cast to float32 that loses one of the bits below the midpoint rounds such inputs wrong."""
    inputs = quick_inputs(source, "float32", 0, 0)
    for place in range(dropped):
        if source == "float64":
            found = inputs & np.uint64(DROPPED) == (TIE | 1 << place)
        else:
            lengths = np.floor(np.log2(np.maximum(inputs, 1).astype(float))).astype(np.uint64)
            unit = np.uint64(1) << np.maximum(lengths, 24) - np.uint64(23)
            tie = unit >> np.uint64(1)
            found = (inputs & (unit - np.uint64(1))) == (tie | np.uint64(1 << place))
            found &= (tie > 1 << place) & (inputs < 1 << 62)
        assert found.any(), place


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float64", "float8e4m3fn"),
        ("float64", "float8e8m0"),
        ("float32", "float16"),
        ("float32", "uint8"),
        ("float32", "int4"),
        ("float32", "int8"),
        ("float64", "int16"),
        ("int32", "bfloat16"),
        ("uint64", "float8e5m2"),
    ],
)
def test_both_ends_of_every_step_are_asked(source: str, target: str) -> None:
    """A monotonic backend that is right at both ends of each step is right everywhere."""
    inputs = quick_inputs(source, target, 0, 0)
    are_neighbors = np.diff(inputs) == 1
    rulings = [
        rules
        for group in groups()
        if (group.source.name, group.target.name) == (source, target)
        for _, rules in group.rulings
    ]
    assert rulings
    assert {0, rulings[0].source.mask} <= {int(inputs[0]), int(inputs[-1])}
    for rules in rulings:
        expected = expect_by_kernels.expect(rules, inputs)
        is_number = has_branch(expected.branch_indices, number_branches(rules))
        other = (expected.codes[1:] != expected.codes[:-1]) & is_number[1:] & is_number[:-1]
        other |= is_number[1:] != is_number[:-1]
        assert are_neighbors[other].all()
        assert other.sum() > 10


HALF = case_named("onnx-cast:25/float32/float16")
ROUNDED = case_named("onnx-cast:25/int32/bfloat16")
WIDENED = case_named("onnx-cast:25/float32/float64")
REFERENCE = Reference()


def without_some_bits_of_subnormals(bits: Any) -> Any:
    """Loses three of the bits below a tie where the answer is one of the lowest subnormals."""
    is_small = (bits & 0x7FFFFFFF) < 0x35000000
    return REFERENCE.cast(HALF, np.where(is_small, bits & ~np.uint32(0x700), bits))


def with_bytes_that_add_up(bits: Any) -> Any:
    """Adds the bytes below a tie in 8 bits, so that a sum of 256 becomes 0."""
    is_lost = (bits + (bits >> np.uint32(8) & np.uint32(15))) & np.uint32(255) == 0
    return REFERENCE.cast(HALF, np.where(is_lost, bits & ~np.uint32(0xFFF), bits))


def with_low_halves(bits: Any) -> Any:
    """Loses bit 16 of large integers, as if the bits below a tie were read by halves."""
    is_large = (bits >= 1 << 26) & (bits < 1 << 31)
    return REFERENCE.cast(ROUNDED, np.where(is_large, bits & ~np.uint32(0x10000), bits))


def with_wrong_subnormals(bits: Any) -> Any:
    """Is wrong for subnormals with some leading digits, as if one row of a table were wrong."""
    values = (bits & 0x7FFFFFFF).astype(float)
    digits = values / 2.0 ** np.floor(np.log2(np.maximum(values, 1)))
    is_wrong = (values < 1 << 23) & (digits >= 1.25) & (digits < 1.5) & (values > 15)
    return REFERENCE.cast(WIDENED, bits) ^ is_wrong.astype(np.uint64)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("case", "faulty"),
    [
        (HALF, without_some_bits_of_subnormals),
        (HALF, with_bytes_that_add_up),
        (ROUNDED, with_low_halves),
        (WIDENED, with_wrong_subnormals),
    ],
)
def test_a_cast_that_loses_bits_in_a_part_of_the_range_is_seen(
    case: Case, faulty: Any, seed: int
) -> None:
    inputs = quick_inputs(case.source, case.target, seed, 1000)
    assert (faulty(inputs) != REFERENCE.cast(case, inputs)).any()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "float16"),
        ("float16", "bfloat16"),
        ("float64", "bfloat16"),
        ("float32", "int32"),
        ("float16", "float8e4m3fn"),
        ("int32", "float16"),
    ],
)
def test_small_tensors_hold_ties_that_go_up_and_ties_that_go_down(source: str, target: str) -> None:
    mode = "/saturate:1" if target == "float8e4m3fn" else ""
    rules = ruling(case_named(f"onnx-cast:25/{source}/{target}{mode}"))
    inputs = quick_inputs(source, target, 0, 1000)
    held = inputs[telling_inputs(rules, inputs, expect_by_kernels.expect(rules, inputs))]
    form, narrow = format_named(source), format_named(target)
    codes = np.arange(min(narrow.max_code, 1 << 17))
    for parity in (0, 1):
        halves = ties(form, narrow, codes[codes % 2 == parity])
        normal = halves[halves >= form.one_code // 2]
        assert np.isin(normal.astype(form.storage), held).any()
        if form.kind == "float":
            assert np.isin((normal | form.sign_bit).astype(form.storage), held).any()
