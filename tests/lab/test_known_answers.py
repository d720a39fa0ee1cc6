"""The table of known answers describes answers by behaviors, and lists few others."""

from __future__ import annotations

import numpy as np

from lab.known_answers import describe_pair
from specs.formats import format_named
from tests.reports.test_known_answers import FLOAT32, floats

INT8, BOOL = format_named("int8"), format_named("bool")


def test_answers_are_described_by_the_behavior_that_gives_them_all() -> None:
    inputs = floats(0.5, 1.5, -3.7, 127, 128, 300, -129, 3e9, -3e9, np.inf, -np.inf, np.nan)
    # By hand: through int32, whose minimum stands for what does not fit, then the low byte.
    wraps = np.array([0, 1, -3, 127, -128, 44, 127, 0, 0, 0, 0, 0], np.int8).view(np.uint8)
    clamps = np.array([0, 1, -3, 127, 127, 127, -128, 127, -128, 127, -128, 0], np.int8)
    pair = describe_pair(FLOAT32, INT8, inputs, wraps)
    assert [*pair.does] == ["via-int32"]
    assert pair.answer(FLOAT32, INT8, int(floats(555)[0])) == 555 % 256
    pair = describe_pair(FLOAT32, INT8, inputs, clamps.view(np.uint8))
    assert pair.answer(FLOAT32, INT8, int(floats(555)[0])) == 127
    assert pair.answer(FLOAT32, INT8, int(floats(-1e9)[0])) == 0x80


def test_what_no_behavior_gives_is_listed_if_it_is_little_and_else_unknown() -> None:
    inputs = np.arange(2, dtype=np.uint8)
    pair = describe_pair(BOOL, INT8, inputs, np.array([5, 9], np.uint8))
    assert [pair.answer(BOOL, INT8, each) for each in (0, 1)] == [5, 9]
    many = np.arange(1000, dtype=np.uint32) + np.uint32(0x3F800000)
    odd = np.where(many % 3 == 0, 7, 9).astype(np.uint8)
    pair = describe_pair(FLOAT32, INT8, many, odd)
    assert pair.answer(FLOAT32, INT8, int(many[3])) is None
