"""Positions of bit patterns and marks on the line of a dtype."""

from __future__ import annotations

import numpy as np
import pytest

from reports.findings.intervals import number_line, segments
from specs.formats import format_named, formats

END = 1 << 10


@pytest.mark.parametrize(
    ("name", "runs", "expected"),
    [
        ("float32", [(0, 0)], (0, 1)),
        ("float32", [(0, 0xFFFFFFFF)], (0, END)),
        ("float32", [(0x3F800000, 0x3F800000), (0xFFFFFFFF, 0xFFFFFFFF)], (254, 255, 1023, END)),
        # Adjacent runs share a segment, and so do runs within one step.
        ("float32", [(0, 5), (7, 9), (1 << 22, 1 << 22)], (0, 2)),
        ("uint64", [(1 << 63, (1 << 64) - 1)], (512, END)),
        ("float8e5m2", [(0x7D, 0x7F)], (500, 512)),
        ("int2", [(1, 1), (3, 3)], (256, 512, 768, END)),
        ("bool", [(1, 1)], (512, END)),
    ],
)
def test_runs_cover_the_steps_of_their_patterns(
    name: str, runs: list[tuple[int, int]], expected: tuple[int, ...]
) -> None:
    first, last = (np.array(ends, np.uint64) for ends in zip(*runs, strict=True))
    assert segments(format_named(name), first, last) == expected


def test_patterns_of_128_bits_have_a_step() -> None:
    codes = np.array([0, 1 << 127], object)
    assert segments(format_named("complex128"), codes, codes) == (0, 1, 512, 513)


def test_marks_name_notable_values() -> None:
    marks = {name: dict(number_line(form)["marks"]) for name, form in formats().items()}
    assert marks["float16"] == {0: "0", 240: "1", 496: "∞", 512: "−0", 752: "−1", 1008: "−∞"}
    assert marks["float8e4m3fnuz"][512] == "NaN"
    assert marks["int8"] == {0: "0", 508: "max", 512: "lowest", 1020: "−1"}
    assert marks["bool"] == {0: "false", 512: "true"}
    assert marks["string"] == {}
    assert number_line(format_named("float8e4m3fn"))["nans"] == [(508, 512), (1020, END)]
