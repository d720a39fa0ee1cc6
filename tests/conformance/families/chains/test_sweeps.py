"""Chains at the tier full: every pattern is asked, and rare wrong answers are found and counted.

A source of 16 bits stands in for one of 32, in blocks of 2^12.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.families.chains import sweeps as chain_sweeps
from conformance.families.chains.judge import judge_chains
from conformance.families.reference import Reference
from oracles.protocol import Bits
from reports.judgement import Judgement
from reports.problems import Refused, WrongEnd
from specs.chains import chain_named
from tests.conformance.feeding import answering, feed, planted

NAME = "onnx-cast:25/float16/float8e4m3fn/saturate:0/float16"
ROAD = "level:all"


class Company(Reference):
    """The reference, but for a range of inputs that end otherwise when casts are in company."""

    def __init__(self, wrong: range, steps_too: bool = False, dies_at: int = -1) -> None:
        super().__init__()
        self.wrong, self.steps_too, self.dies_at = wrong, steps_too, dies_at
        self.asked: list[Bits] = []

    def chains(self, case: Any, company: Any, bits: Any) -> list[Bits]:
        self.asked.append(bits["0"])
        if self.dies_at in bits["0"] and bits["0"].size < 1 << 16:
            raise ValueError("no more")
        [end] = super().chains(case, company, bits)
        return [self.changed(bits["0"], end)]

    def cast(self, case: Any, bits: Bits) -> Bits:
        end = super().cast(case, bits)
        # This is the second step of the chain.
        return end ^ 1 if self.steps_too and case.source == "float8e4m3fn" else end

    def changed(self, inputs: Bits, end: Bits) -> Bits:
        if self.steps_too:
            return end
        where = np.isin(inputs, [*self.wrong]) & (inputs >= 0)
        return np.where(where, end ^ np.uint16(1), end)


@pytest.fixture(autouse=True)
def _sixteen_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_sweeps, "SWEPT_BITS", 16)
    monkeypatch.setattr(chain_sweeps, "BLOCK", 1 << 12)
    monkeypatch.setattr(chain_sweeps, "MOST_KEPT", 3)


def judge(backend: Company, tier: str = "full") -> Judgement:
    subject = planted(chain_roads=(ROAD,), tier=tier)
    answer = answering(cast=backend.cast, chains=backend.chains)
    chain = chain_named(NAME)
    [found] = feed(judge_chains(subject, [f"chains/{NAME}"], [chain.direct]), answer)
    return found


def test_every_pattern_is_asked_once_in_blocks() -> None:
    backend = Company(range(0))
    found = judge(backend)
    assert found.verdict == "conforms"
    assert found.inputs == (1 << 16) * 2
    blocks = backend.asked[1:]
    assert [each.size for each in blocks] == [1 << 12] * 16
    np.testing.assert_array_equal(np.concatenate(blocks), np.arange(1 << 16))


def test_the_tier_quick_sweeps_nothing() -> None:
    backend = Company(range(0))
    assert judge(backend, "quick").inputs == 1 << 16
    assert len(backend.asked) == 1


def test_all_wrong_inputs_are_counted_and_a_few_are_kept() -> None:
    backend = Company(range(0x3C00, 0x3C00 + 5000))  # two blocks
    found = judge(backend)
    assert found.verdict == "violates"
    [wrong] = found.problems
    assert isinstance(wrong, WrongEnd)
    assert (wrong.wrong, wrong.inputs) == (5000, 1 << 16)
    assert wrong.roads == (ROAD,)
    assert wrong.given.startswith("0x3c00 (1)")
    assert wrong.got.startswith("0x3c01")


def test_what_the_steps_alone_give_too_is_no_chains_fault() -> None:
    assert judge(Company(range(0), steps_too=True)).verdict == "conforms"


def test_an_error_ends_the_sweep_and_is_told() -> None:
    backend = Company(range(0), dies_at=0x5000)
    found = judge(backend)
    assert found.verdict == "error"
    [refused] = found.problems
    assert isinstance(refused, Refused)
    assert found.inputs == (1 << 16) + 0x5000
