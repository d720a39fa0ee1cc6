"""Definition and kernels sort inputs into the same classes; `representable` is checked by value."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from oracles.reference import exact, expect_by_kernels, kernels
from oracles.reference.expect_by_kernels import Facts
from oracles.reference.kernels import select_arrays
from specs.formats import Format, format_named, formats, value_of
from specs.model.vocabulary import INPUT_CLASSES, ROUNDINGS, Rounding
from specs.totality import possible_atoms

pytestmark = pytest.mark.ci_runs_one_of(3)

NUMERIC = [form for form in formats().values() if form.is_numeric]
SOURCES = ["float16", "bfloat16", "int16", "uint16", *(f.name for f in NUMERIC if f.bits <= 8)]
TARGETS = [form.name for form in NUMERIC]
STRIDE = 97
"""One of this many patterns of a 16-bit source is tested; odd, so that all low bits occur."""


def patterns(source: Format) -> range:
    return range(0, source.mask + 1, STRIDE if source.bits == 16 else 1)


def finite_codes(fmt: Format) -> list[int]:
    codes = range(fmt.mask + 1)
    return [code for code in codes if isinstance(exact.decode(fmt, code), exact.Number)]


@cache
def values(name: str) -> frozenset[object]:
    """Every value of a format of at most 16 bits, as fractions, without any rounding."""
    fmt = format_named(name)
    return frozenset(value_of(fmt, code) for code in finite_codes(fmt))


def facts_of(source: Format, target: Format, rounding: Rounding) -> Facts:
    inputs = np.array(patterns(source), np.uint64)
    parts = kernels.unpack(source, inputs, select_arrays)
    converted = kernels.convert(target, rounding, parts, select_arrays)
    fraction = kernels.has_fraction(parts, select_arrays)
    return Facts(parts, converted, fraction, source.has_signed_nan, target.has_zero)


@pytest.mark.parametrize("source_name", SOURCES)
def test_representable_means_that_the_target_has_the_value(source_name: str) -> None:
    source = format_named(source_name)
    for target_name in TARGETS:
        target = format_named(target_name)
        if target.bits > 16:
            continue
        for code in patterns(source):
            datum = exact.decode(source, code)
            found = exact.atom_of(source, target, "nearest-even", datum).representable
            is_number = isinstance(datum, exact.Number)
            minus_zero = is_number and datum.sign == 1 and datum.significand == 0
            expected = (
                is_number and not minus_zero and value_of(source, code) in values(target_name)
            )
            assert found == expected, f"{source_name} {code:#x} to {target_name}"


@pytest.mark.parametrize("source_name", SOURCES)
def test_definition_and_kernels_put_inputs_into_the_same_classes(source_name: str) -> None:
    source = format_named(source_name)
    for number, target_name in enumerate(TARGETS):
        target = format_named(target_name)
        rounding = list(ROUNDINGS.values())[number % len(ROUNDINGS)]
        facts = facts_of(source, target, rounding)
        atoms = [
            exact.atom_of(source, target, rounding, exact.decode(source, code))
            for code in patterns(source)
        ]
        assert set(atoms) <= set(possible_atoms(source, target)), target_name
        for name, holds in expect_by_kernels.CLASSES.items():
            by_kernels = np.broadcast_to(np.asarray(holds(facts), bool), len(atoms))
            by_definition = [INPUT_CLASSES[name](atom) for atom in atoms]
            assert by_kernels.tolist() == by_definition, (
                f"{name}, {source_name} to {target_name}, {rounding}"
            )
