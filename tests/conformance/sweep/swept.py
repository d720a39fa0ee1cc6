"""Sweeps planted oracles, and converts what a sweep found to values that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.families.reference import Reference
from conformance.judging.asking import Settings
from conformance.sweep import engine, road_answers
from conformance.sweep.engine import sweep
from oracles.reference import expect_by_kernels
from oracles.reference.sweep_inputs import Dense, InputSequence
from oracles.registry import Backend
from reports.grading.chunk_comparison import chunk_comparison, fastest_comparison
from reports.judgement import Judgement
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named

RIGHT = Reference()
SMALL_CHUNK = 1 << 12
SMALL_BLOCK = 3 * SMALL_CHUNK + 5
DENSE = Dense(1 << 32)
Change = Callable[[Any, Any], Any]
"""Takes inputs and right answers; returns what the oracle answers, or raises an error."""


def unchanged(_: Any, answers: Any) -> Any:
    return answers


@dataclass
class Planted:
    """Answers every case as the reference answers the case ``base``, with a change."""

    base: str
    change: Change = unchanged
    name: str = "planted"
    version: str = "0"
    asked: int = field(default=0)

    def cast(self, case: Case, bits: Any) -> Any:
        if bits.size > 1:  # The input of a script is asked once more, alone.
            self.asked += bits.size
        return self.change(bits, RIGHT.cast(case_named(self.base), bits))


class Bound(Planted):
    """Binds calls that return the same array every time."""

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        answers = np.empty(bits.size, format_named(case.target).storage)

        def call() -> Any:
            answers[:] = self.cast(case, bits)
            return answers

        return call


class BoundTo(Planted):
    """Binds calls that return whatever ``change`` returns."""

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        return lambda: self.cast(case, bits)


def swept(
    oracle: Planted,
    names: list[str],
    lo: int,
    hi: int,
    visit: InputSequence = DENSE,
    fast: bool = False,
) -> list[Judgement]:
    reports: list[tuple[int, int]] = []
    backend_judge = BackendJudge(Backend("planted", oracle), {}, Settings())
    cases = [case_named(name) for name in names]
    comparison = fastest_comparison() if fast else chunk_comparison(compiled=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(road_answers, "call_size", lambda source, target: SMALL_CHUNK)
        patch.setattr(road_answers, "SAMPLED_CALL", SMALL_CHUNK)
        patch.setattr(engine, "BLOCK", SMALL_BLOCK)
        patch.setattr(engine, "REPORT_EVERY", 2 * SMALL_CHUNK)
        found = sweep(
            backend_judge, cases, visit, lo, hi, comparison, lambda *news: reports.append(news)
        )
    if all(each.inputs for each in found):
        assert sum(count for count, _ in reports) == hi - lo
        assert sum(wrong for _, wrong in reports) == sum(each.wrong for each in found)
    return found


def plain(value: Any) -> Any:
    """Convert dataclasses and arrays to values that can be compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    return [plain(each) for each in value] if isinstance(value, tuple) else value


# From below to above the end of the target's range or of a binade: no multiples of a chunk.
RANGES = {
    "float32/float16": (0x477F_E3A1, 0x4780_3123),
    "float32/int8": (0x42FF_D001, 0x4300_2345),
    "float32/int32": (0x4EFF_F7FF, 0x4F00_2001),
    "int32/float32": (0x00FF_E111, 0x0100_4321),
    "uint32/float8e4m3fn": (0x0000_0000, 0x0000_2001),
    "float32/float8e8m0": (0xFFFF_C0DE, 0x1_0000_0000),
}


def raising_where_open(name: str, change: Change) -> Change:
    rules = ruling(case_named(name))

    def raising(inputs: Any, answers: Any) -> Any:
        expected = expect_by_kernels.expect(rules, inputs)
        if np.isin(expected.branch_indices, rules.open_branches).any():
            raise ValueError("no")
        return change(inputs, answers)

    return raising
