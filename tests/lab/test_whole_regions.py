"""The survey asks all open inputs of a pair, and reports a single exception among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lab import open_regions
from lab.open_regions import whole
from lab.tallies import tally_answers
from reports.behaviors.explanation import explain, sentence
from specs.cases import Case
from specs.selection import case_named

pytest.importorskip("numba", reason="the fast form needs the extra `fast`")
CASE = case_named("onnx-cast:25/float32/uint8")
# NaNs and infinities of both signs, and a few thousand values out of range.
RANGES = [(0x7F7FF000, 0x7F801000), (0xFF7FF000, 0xFF801000)]
OPEN = 4 * 0x1000
ODD = 0x7F800123


class LowBits:
    """Answers 1 to the pattern ``odd``, else 0; asserts that no row ends within a vector."""

    def __init__(self, odd: int | None = None) -> None:
        self.odd = odd

    def cast(self, case: Case, bits: Any) -> Any:
        assert bits.size % 64 == 0
        return np.where(bits == self.odd, 1, 0).astype(np.uint8)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_regions, "_open_ranges", lambda _: RANGES)
    monkeypatch.setattr(open_regions, "CHUNK", 1000)
    # The uncompiled form counts the same.
    monkeypatch.setattr(open_regions.tally_numba, "tally_answers", tally_answers)


def sentences(odd: int | None) -> list[str]:
    found = whole(LowBits(odd), CASE)
    return [sentence(found, line) for line in explain(found)]


def test_every_open_input_is_counted() -> None:
    assert sentences(None) == [f"every open input: gives zero: 100 % of {OPEN:,} inputs"]


def test_an_exception_that_the_telling_inputs_do_not_show_is_told() -> None:
    lines = sentences(ODD)
    [line] = [line for line in lines if "unexplained" in line]
    assert "NaN: unexplained: gives zero, but not for 1 of " in line
    assert line.endswith(f"{ODD:#010x} → 0x01")


def test_open_ranges_are_all_that_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    ranges = open_regions._open_ranges(open_regions.ruling(CASE))
    # Fractions are dropped, so values from 256 and from -1 on are open; infinities and NaNs follow.
    assert ranges == [(0x43800000, 0x80000000), (0xBF800000, 0x100000000)]
