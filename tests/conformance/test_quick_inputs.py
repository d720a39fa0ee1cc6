"""The quick tier chooses inputs of wide sources."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.kinds.quick_inputs import quick_inputs

MANTISSA = {"float32": 23, "float64": 52}
WIDE = [
    ("int32", "float32"),
    ("uint32", "float32"),
    ("int64", "float32"),
    ("uint64", "float32"),
    ("int64", "float64"),
    ("uint64", "float64"),
]


@pytest.mark.parametrize("seed", [0, 1])
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


@pytest.mark.parametrize("seed", [0, 1])
def test_ties_of_both_kinds_in_every_binade_of_float64_for_float32(seed: int) -> None:
    asked = quick_inputs("float64", "float32", seed, 20)
    fields = (asked >> np.uint64(52)).astype(np.int64)
    dropped = asked & np.uint64((1 << 29) - 1)
    is_tie = dropped == 1 << 28
    beside = np.isin(asked - np.uint64(1), asked) & np.isin(asked + np.uint64(1), asked)
    for field in range(1023 - 126, 1023 + 128):
        here = asked[is_tie & beside & (fields == field)]
        kinds = set(((here >> np.uint64(29)) & np.uint64(1)).tolist())
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
