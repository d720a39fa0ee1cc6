"""Regions in words: intervals of values hold exactly the failing inputs, and read well."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.behaviors.regions import classify, region_phrase
from reports.findings.cells import FailingInputs
from reports.findings.intervals import _finite, _intervals, region_words
from reports.grading.failure_runs import gather
from specs.formats import Format, format_named
from tests.reports.common import steps

NARROW = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e8m0", "int8", "uint8")


def failing(source: Format, codes: list[int]) -> FailingInputs:
    inputs = np.array(sorted(codes), source.storage)
    answers, groups = np.zeros(inputs.size, np.uint8), np.ones(inputs.size, np.uint8)
    [(_, runs)] = gather(inputs, answers, groups)
    first, last = (column.astype(np.uint64) for column in (runs.first, runs.last))
    count = last - first + np.uint64(1)
    return FailingInputs(inputs.size, replace(runs, first=first, last=last), count)


def every(source: Format) -> np.ndarray:
    return np.arange(1 << source.bits, dtype=source.storage)


@given(name=st.sampled_from(NARROW), data=st.data())
def test_intervals_hold_the_failing_values_and_no_others(name: str, data: st.DataObject) -> None:
    source = format_named(name)
    codes = data.draw(st.sets(st.integers(0, source.mask), min_size=1))
    for sign, patterns in _finite(source).items():
        found = _intervals(source, patterns, failing(source, sorted(codes)), every(source))
        inside = {magnitude for each in found for magnitude in range(each.low, each.high + 1)}
        sign_bit = source.sign_bit if source.kind == "float" else 0
        expected = {
            source.mask + 1 - code if patterns.falls else code & ~sign_bit
            for code in codes
            if patterns.first <= code <= patterns.last
        }
        assert inside == expected, sign


@pytest.mark.parametrize(
    ("name", "codes", "words"),
    [
        ("float8e4m3fn", range(0x7E, 0x7F), "x = 448"), ("float8e4m3fn", [0x7E, 0xFE], "|x| = 448"),
        ("float8e4m3fn", range(0x38, 0x7F), "x ≥ 1"), ("float8e4m3fn", range(1, 0x38), "0 < x < 1"),
        ("float8e4m3fn", range(0x81, 0xB8), "-1 < x < 0"),
        ("float8e4m3fn", range(0xF0, 0xFF), "x ≤ -128"),
        ("float8e4m3fn", range(0xB8, 0xC1), "-2 ≤ x ≤ -1"), ("float8e4m3fn", [0x80], "-0"),
        ("float8e4m3fn", [0, 0x80], "zeros"), ("float8e4m3fn", [0x7F], "+NaN"),
        ("float8e4m3fn", [0x7F, 0xFF], "NaN"),
        ("float8e5m2", [0x7C, 0xFC, 0], "infinities and 0"),
        ("float8e5m2", [0x7D], "+NaN whose payload is in the lowest bit"),
        ("float8e5m2", [0x7E, 0x7F, 0xFE, 0xFF], "quiet NaN"),
        ("float8e5m2", [0xFD, 0xFF], "-NaN from 0xfd to 0xff, in part"),
        ("float8e5m2", [0x7F], "+NaN 0x7f"),
        ("float8e8m0", [0], "x = 2^-127"), ("int8", [0xFF, 1], "|x| = 1"),
        ("int8", [0x80], "x = -128"), ("uint8", range(16, 32), "16 ≤ x < 32"),
        ("uint8", [1, 3, 5, 7], "4 intervals with 1 ≤ x ≤ 7"), ("bool", [1], "x = 1"),
    ],
)  # fmt: skip
def test_regions_read_well(name: str, codes: list[int], words: str) -> None:
    source = format_named(name)
    asked = every(source) if source.bits > 1 else np.array([0, 1], np.uint8)
    region = region_words(source, failing(source, list(codes)), asked)
    assert sorted(region.split(" and ")) == sorted(words.split(" and "))


@pytest.mark.parametrize(
    ("name", "some", "others", "words"),
    [
        ("float16", [0x3C00, 0xBC00], [0x7BFF, 0x7C00], "for values in range"),  # 1 and -1
        ("float16", [0x7E00], [0xFE00, 0x3C00], "for +NaN"),
        ("string", ["1", "-.5e3"], ["x", ""], "for numbers"),
        ("string", ["x", ""], ["1", "-.5e3"], "for texts that are no numbers"),
    ],
)
def test_inputs_that_a_mechanism_spoils_are_named_by_what_others_are_not(
    name: str, some: list[int | str], others: list[int | str], words: str
) -> None:
    source, target = format_named(name), format_named("float8e4m3fn")
    numbers, by_number = classify(source, target, np.array([*some, *others], source.storage))
    classes = [by_number[number] for number in numbers.tolist()]
    assert region_phrase(source, set(classes[: len(some)]), set(classes)) == words


def test_a_sweep_tells_its_regions_without_a_list_of_inputs() -> None:
    source = format_named("float32")
    first, last = np.array([0x43F00000], np.uint64), np.array([0x43F7FFFF], np.uint64)
    runs = replace(steps(1), first=first, last=last)
    one = FailingInputs(1 << 19, runs, np.array([1 << 19], np.uint64))
    assert region_words(source, one, None) == "480 ≤ x < 496"


@pytest.mark.parametrize(
    ("codes", "words"),
    [([20, 30], "20 ≤ x ≤ 30"), ([10, 30], "x = 10 and x = 30"), ([40, 50], "x ≥ 40")],
)
def test_failing_inputs_are_one_interval_if_nothing_between_was_asked(
    codes: list[int], words: str
) -> None:
    source = format_named("uint8")
    asked = np.array([0, 10, 20, 30, 40, 50], np.uint8)
    assert region_words(source, failing(source, codes), asked) == words
