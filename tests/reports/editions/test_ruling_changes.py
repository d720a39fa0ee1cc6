"""The changed inputs of two rulings are those that a comparison of each input finds."""

from __future__ import annotations

from collections import defaultdict

import pytest

from reports.editions.input_set import InputSet
from reports.editions.ruling_changes import RuleChange, ruling_changes
from specs.branches import Ruling
from specs.edition_pairs import edition_pairs, match_cases
from specs.ruling import ruling
from tests.reports.editions.by_definition import direction

EDITIONS = (
    ("onnx-cast:24", "onnx-cast:25"),
    ("onnx-cast:19", "onnx-cast:21"),
    ("onnx-cast:9", "onnx-cast:13"),
    ("numpy-astype:2.3", "numpy-astype:2.4"),
    ("cinn-cast:tvm", "cinn-cast:1.0"),
    ("wasm-convert:2.0", "wasm-convert:3.0"),
)
HALVES = ("float16/int8", "bfloat16/bool")
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
