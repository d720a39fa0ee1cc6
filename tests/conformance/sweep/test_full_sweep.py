"""One fault among all 2**32 inputs of a real cast is found: its count, its ends, its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.sweep.engine import sweep
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend
from reports.grading.chunk_comparison import fastest_comparison
from reports.judgement import Judgement
from specs.cases import Case
from specs.selection import case_named

pytest.importorskip("numba", reason="without the extra `fast` a sweep of 2**32 takes long")
torch = pytest.importorskip("oracles.adapters.torch")
pytest.importorskip("torch", reason="the casts are torch's")

Spoil = Callable[[int, Any], None]
"""Takes the first input of a chunk and its right answers, of which it spoils some."""


class Spoilt:
    """Answers as torch does, but for the answers that ``spoil`` changes."""

    name = "spoilt"
    version = "0"

    def __init__(self, spoil: Spoil) -> None:
        self.torch = torch.Torch()
        self.spoil = spoil

    def cast(self, case: Case, bits: Any) -> Any:
        return self.bind(case, bits)()

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        bind = getattr(self.torch, "bind", None)
        call = bind(case, bits) if bind else lambda: self.torch.cast(case, bits)

        def spoilt() -> Any:
            answers = call()
            self.spoil(int(bits[0]), answers)
            return answers

        return spoilt


def swept(name: str, spoil: Spoil) -> Judgement:
    backend_judge = BackendJudge(Backend("spoilt", Spoilt(spoil)), {}, Settings())
    visit = Dense(1 << 32)
    [found] = sweep(
        backend_judge,
        [case_named(name)],
        visit,
        0,
        visit.size,
        fastest_comparison(),
        lambda *news: None,
    )
    assert found.inputs == 1 << 32
    return found


def between(first: int, last: int, change: Callable[[Any], Any]) -> Spoil:
    """Change the answers to all inputs from ``first`` to ``last``."""

    def spoil(start: int, answers: Any) -> None:
        begin, end = max(first - start, 0), min(last + 1 - start, answers.size)
        if begin < end:
            answers[begin:end] = change(answers[begin:end])

    return spoil


def ties_away(start: int, answers: Any) -> None:
    """Round every tie between 1 and 2 up."""
    if 0x3F80_0000 <= start < 0x4000_0000:
        ties = np.arange(0x1000, answers.size, 0x2000)
        answers[ties] = 0x3C01 + (start - 0x3F80_0000 + ties >> 13)


Found = dict[tuple[str, str], list[tuple[int, int]]]
"""The runs of each broken rule at each level."""


HALF = "onnx-cast:13/float32/float16"
INTEGER = "onnx-cast:13/float32/int32"
TO_EITHER = "openvino-convert:1/float32/int32"
"""A fraction is truncated, or rounded to nearest, ties to even."""
FLOAT = "onnx-cast:13/int32/float32"
OF_HALF, OF_INTEGER, OF_FLOAT = "float-to-float", "float-to-integer", "integer-to-float"
REQUIRED, RECOMMENDED = "required", "recommended"
FROM_2_TO_21 = 0x4A00_0000
"""The pattern of 2^21, from which on four patterns of float32 have the same whole part."""
OVER_2_TO_24 = (1 << 24) + 4


def one(code: int) -> list[tuple[int, int]]:
    return [(code, code)]


FAULTS: dict[str, tuple[str, Spoil, Found, str]] = {
    "one pattern": (HALF, between(0xB5C0_FFEE, 0xB5C0_FFEE, lambda answers: answers ^ 1),
                    {(OF_HALF, RECOMMENDED): one(0xB5C0_FFEE)}, "deviates"),
    # 65520 is the first that overflows.
    "infinity one pattern too early": (
        HALF, between(0x477F_EFFF, 0x477F_EFFF, lambda answers: answers + 1),
        {(OF_HALF, RECOMMENDED): one(0x477F_EFFF)}, "deviates"),
    # Every other of the 1024 ties must round down.
    "ties of a binade away from zero": (
        HALF, ties_away, {(OF_HALF, RECOMMENDED): [
            (tie, tie) for tie in range(0x3F80_1000, 0x4000_0000, 0x4000)]}, "deviates"),
    "negative overflow to the lowest": (
        HALF, between(0xC77F_F000, 0xFF7F_FFFF, lambda answers: answers - 1),
        {(OF_HALF, REQUIRED): [(0xC77F_F000, 0xFF7F_FFFF)]}, "violates"),
    "NaN of another sign and payload": (
        HALF, between(0x7F80_0001, 0x7FFF_FFFF, lambda answers: answers * 0 + 0xFC01), {},
        "conforms"),
    "infinity for NaN": (
        HALF, between(0xFF80_0001, 0xFFFF_FFFF, lambda answers: answers * 0 + 0xFC00),
        {(OF_HALF, RECOMMENDED): [(0xFF80_0001, 0xFFFF_FFFF)]}, "deviates"),
    "the largest that fits": (
        INTEGER, between(0x4EFF_FFFF, 0x4EFF_FFFF, lambda answers: answers + 1),
        {(OF_INTEGER, REQUIRED): one(0x4EFF_FFFF)}, "violates"),
    "the last of a chunk": (
        INTEGER, between(0x4E9F_FFFF, 0x4E9F_FFFF, lambda answers: answers ^ 1),
        {(OF_INTEGER, REQUIRED): one(0x4E9F_FFFF)}, "violates"),
    "two whole numbers with their fractions": (
        INTEGER, between(FROM_2_TO_21 + 8, FROM_2_TO_21 + 15, lambda answers: answers + 1),
        {(OF_INTEGER, REQUIRED): one(FROM_2_TO_21 + 8) + one(FROM_2_TO_21 + 12),
         (OF_INTEGER, RECOMMENDED): [(FROM_2_TO_21 + 9, FROM_2_TO_21 + 11),
                                     (FROM_2_TO_21 + 13, FROM_2_TO_21 + 15)]}, "violates"),
    # The answers to 2^21 + 2.75, 3.5 and 3.75 are rounded to nearest then.
    "whole numbers with fractions that may be rounded up": (
        TO_EITHER, between(FROM_2_TO_21 + 8, FROM_2_TO_21 + 15, lambda answers: answers + 1),
        {(OF_INTEGER, REQUIRED): one(FROM_2_TO_21 + 8) + one(FROM_2_TO_21 + 12),
         (OF_INTEGER, RECOMMENDED): [(FROM_2_TO_21 + 9, FROM_2_TO_21 + 10),
                                     *one(FROM_2_TO_21 + 13)]}, "violates"),
    "the last integer": (
        FLOAT, between(0xFFFF_FFFF, 0xFFFF_FFFF, lambda answers: answers ^ 1),
        {(OF_FLOAT, REQUIRED): one(0xFFFF_FFFF)}, "violates"),
    "two periods of integers": (
        FLOAT, between(OVER_2_TO_24, OVER_2_TO_24 + 7, lambda answers: answers + 1),
        {(OF_FLOAT, REQUIRED): [(even, even) for even in range(OVER_2_TO_24, OVER_2_TO_24 + 7, 2)],
         (OF_FLOAT, RECOMMENDED): [
             (odd, odd) for odd in range(OVER_2_TO_24 + 1, OVER_2_TO_24 + 8, 2)]}, "violates"),
}  # fmt: skip
BEYOND_INTEGERS = (0x8000_0000 - 0x4F00_0000) + (1 << 32) - 0xCF00_0001
OPEN = {HALF: 0, INTEGER: BEYOND_INTEGERS, TO_EITHER: BEYOND_INTEGERS, FLOAT: 0}


@pytest.mark.ci_runs_one_of(16)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_among_all_inputs_is_found(name: str) -> None:
    case, spoil, expected, verdict = FAULTS[name]
    found = swept(case, spoil)
    assert found.verdict == verdict
    assert found.open_inputs == OPEN[case]
    assert [(each.rule, each.level) for each in found.divergences] == list(expected)
    for divergence, known in zip(found.divergences, expected.values(), strict=True):
        assert divergence.count == sum(last + 1 - first for first, last in known)
        assert divergence.runs.total == len(known)
        ends = zip(divergence.runs.first.tolist(), divergence.runs.last.tolist(), strict=True)
        assert list(ends) == known
