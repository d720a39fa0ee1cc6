"""The changed inputs of two rulings are those that a comparison of each input finds."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from conformance.extras.editions.edition_pairs import edition_pairs, match_cases
from conformance.extras.editions.input_set import InputSet
from conformance.extras.editions.ruling_changes import RuleChange, ruling_changes
from conformance.families.cast.quick_inputs import few_patterns
from specs.branches import Ruling, rounded_otherwise
from specs.cases import Case
from specs.loader import load_document
from specs.model.vocabulary import Rounding
from specs.ruling import rule_case, ruling
from tests.conformance.extras.editions.by_definition import direction

EDITIONS = (
    ("onnx-cast:24", "onnx-cast:25"),
    ("onnx-cast:19", "onnx-cast:21"),
    ("onnx-cast:9", "onnx-cast:13"),
    ("numpy-astype:2.3", "numpy-astype:2.4"),
    ("cinn-cast:tvm", "cinn-cast:1.0"),
    ("wasm-convert:2.0", "wasm-convert:3.0"),
)
HALVES = ("float16/int8",)
"""Pairs from 16 bits that are compared besides those from at most 8."""


def patterns(inputs: InputSet) -> set[int]:
    assert inputs.runs is not None
    found = {code for first, last in inputs.runs for code in range(first, last + 1)}
    assert len(found) == inputs.count == sum(last - first + 1 for first, last in inputs.runs)
    return found


def by_direction(changes: dict[RuleChange, InputSet]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for change, inputs in changes.items():
        here = patterns(inputs)
        assert not any(here & others for others in found.values())
        found[change.direction] |= here
        sign = inputs.source.sign_bit if inputs.source.kind == "float" else 0
        simplest = min(here, key=lambda code: (code.bit_count(), code & ~sign, code))
        assert inputs.simplest == simplest
    return found


def by_definition(old: Ruling, new: Ruling) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for code in range(old.source.mask + 1):
        how = direction(old, new, code)
        if how is not None:
            found[how].add(code)
    return found


def assert_same(old: Ruling, new: Ruling) -> bool:
    expected = by_definition(old, new)
    assert by_direction(ruling_changes(old, new)) == expected
    return bool(expected)


@pytest.mark.parametrize(("old", "new"), EDITIONS)
def test_every_input_of_a_narrow_source_is_compared(old: str, new: str) -> None:
    [pair] = edition_pairs(old, new)
    seen, changed = set(), 0
    for cases in match_cases(pair).both:
        before, after = map(ruling, cases)
        meaning = before.meaning, after.meaning
        is_narrow = before.source.bits <= 8 or f"{cases.new.source}/{cases.new.target}" in HALVES
        is_numeric = before.source.is_numeric and before.target.is_numeric
        if is_narrow and is_numeric and cases.new.example is None and meaning not in seen:
            seen.add(meaning)
            if before.meaning != after.meaning:
                changed += assert_same(before, after)
    assert changed or "wasm" in old


def document(tmp_path: Path, source: str, target: str, then: str) -> Ruling:
    """Return the ruling of a cast by a document that has only this one."""
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
    path.write_text(DOCUMENT.format(source=source, target=target, then=then))
    return rule_case(load_document(path), Case("own", "1", source, target))


DOCUMENT = """\
document: own
title: One cast
operation: cast
seed: none
scope: own-dtypes
versions:
  1: {{from: [{source}], to: [{target}], rules: [only]}}
rules:
  only: {{clause: "all", level: required, when: {{}}, then: {{{then}}}}}
tensors:
  every: {{clause: "all", level: required, when: {{}}, then: same-shape}}
"""
CLAMPS = "overflow: max, -overflow: lowest, otherwise: value"
WRAPS = "overflow: wrap, -overflow: lowest, otherwise: value"


def test_answers_that_meet_in_some_periods_are_no_change(tmp_path: Path) -> None:
    """The low byte of 2^23 - 1 integers above 127 is 127, which clamping gives as well."""
    clamps, wraps = (document(tmp_path, "int32", "int8", then) for then in (CLAMPS, WRAPS))
    [(change, inputs)] = ruling_changes(clamps, wraps).items()
    assert change.direction == "other"
    assert inputs.count == (1 << 31) - 128 - ((1 << 23) - 1)
    assert inputs.simplest == 0x80
    assert inputs.words() == "a part of x ≥ 128"


def test_narrow_integers_that_meet_are_found_one_by_one(tmp_path: Path) -> None:
    clamps, wraps = (document(tmp_path, "int8", "uint4", then) for then in (CLAMPS, WRAPS))
    assert assert_same(clamps, wraps)


def test_what_is_recommended_of_the_same_answers_is_compared(tmp_path: Path) -> None:
    nans = "inf: inf, -inf: -inf, overflow: inf, -overflow: -inf, otherwise: nearest-even"
    plain, better = (
        document(tmp_path, "float8e5m2", "float16", f"nan: {nan}, {nans}")
        for nan in ("nan", "{is: nan, and-recommended: +nan}")
    )
    [(change, inputs)] = ruling_changes(plain, better).items()
    assert (change.direction, inputs.words()) == ("stricter", "NaN")
    assert assert_same(better, plain)


def test_another_rounding_changes_half_of_the_midpoints() -> None:
    """Ties to even and ties away differ at the midpoints above each finite even float32."""
    rules = ruling(Case("onnx-cast", "25", "float64", "float32"))
    [(change, inputs)] = ruling_changes(rules, rounded_otherwise(rules, "nearest-away")).items()
    assert change.old == change.new
    largest_even = 0x7F7FFFFE
    assert inputs.count == 2 * (largest_even // 2 + 1)


def holds(inputs: InputSet, code: int) -> bool:
    return any(
        grid.highs[0] <= code >> grid.shift <= grid.highs[1]
        and grid.lows[0] <= code & ((1 << grid.shift) - 1) <= grid.lows[1]
        for grid in inputs.grids
    )


@pytest.mark.parametrize(
    ("source", "target", "rounding"),
    [
        ("float32", "float16", "toward-zero"),
        ("float32", "bfloat16", "odd"),
        ("float32", "float8e5m2", "ceil"),
        ("int64", "float32", "floor"),
    ],
)
def test_inputs_of_wide_sources_change_as_the_definition_says(
    source: str, target: str, rounding: Rounding
) -> None:
    modes = (("saturate", "1"),) if "float8" in target else ()
    old = ruling(Case("onnx-cast", "25", source, target, modes))
    assert_sampled(old, rounded_otherwise(old, rounding))


def assert_sampled(old: Ruling, new: Ruling) -> None:
    changes = ruling_changes(old, new)
    assert all(each.count for each in changes.values())
    changed = 0
    for code in few_patterns(old.source.name, old.target.name, 1500).tolist():
        how = direction(old, new, code)
        found = [change.direction for change, inputs in changes.items() if holds(inputs, code)]
        assert found == ([how] if how else []), hex(code)
        changed += how is not None
    assert changed > 50


def test_a_change_has_inputs_where_the_last_period_of_a_stretch_is_short() -> None:
    pair = "bfloat16", "float8e5m2fnuz"
    old = ruling(Case("onnx-cast", "25", *pair, (("saturate", "1"),)))
    assert_sampled(old, ruling(Case("stablehlo-convert", "1.20", *pair)))
