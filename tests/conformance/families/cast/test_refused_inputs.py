"""Inputs that a document requires to be refused, among others that must be answered."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from conformance.families.cast.baseline import (
    MOST_ALONE,
    Baseline,
    GradedAnswers,
    baseline_of,
    without_refused,
)
from conformance.families.cast.refusals import both
from conformance.families.reference import Reference
from conformance.sweep.plan import completed
from oracles.backend.requests import Cast
from oracles.reference.expect_by_kernels import expect
from reports.judgement import Judgement
from specs.cases import Case
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance.feeding import answering, feed, judged, planted
from tests.conformance.sweep.swept import Bound, Planted, swept

TRAPS = "wasm-convert:2.0/float32/int32/operator:trunc"
CLAMPS = case_named("wasm-convert:2.0/float32/int32/operator:trunc_sat")
NAN, TOO_LARGE, LARGEST = 0x7FC0_0000, 0x4F00_0000, 0x4EFF_FFFF
RIGHT = Reference()
LO, HI = TOO_LARGE - 0x3000, TOO_LARGE + 0x5000
"""Patterns around the first that must be refused."""


def clamps(case: Case, bits: Any) -> Any:
    return RIGHT.cast(CLAMPS, bits)


def is_refused(bits: Any) -> Any:
    values = bits.view(np.float32)
    return ~((values >= -(2.0**31)) & (values < 2.0**31))


def test_a_backend_that_refuses_each_of_them_conforms() -> None:
    asked: list[Cast] = []
    found = judged(TRAPS, answering(cast=RIGHT.cast), asked=asked)
    assert found.verdict == "conforms"
    assert found.message.endswith("inputs that must be refused were asked, each alone")
    rows = [each.bits for each in asked if isinstance(each, Cast)]
    assert all(bits.size == 1 for bits in rows if is_refused(bits).any())
    alone = [int(bits[0]) for bits in rows if bits.size == 1 and is_refused(bits).any()]
    assert {TOO_LARGE, 0x7F80_0000, 0x7F80_0001, 0x7FFF_FFFF, 0xCF00_0001} <= {*alone}
    assert len(alone) <= MOST_ALONE
    assert {LARGEST, 0xCF00_0000} <= {code for bits in rows for code in bits.ravel().tolist()}


def test_a_backend_that_answers_them_all_breaks_the_rule_on_each() -> None:
    found = judged(TRAPS, answering(cast=clamps))
    assert found.verdict == "violates"
    [wrong] = found.divergences
    assert (wrong.rule, wrong.level, wrong.allowed) == ("trunc", "required", ("error",))
    assert wrong.count > 100


def test_a_mode_that_is_ignored_answers_what_must_be_refused() -> None:
    unsafe = case_named("numpy-astype:2.4/int32/float16/casting:unsafe")

    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(unsafe, bits)

    found = judged("numpy-astype:2.4/int32/float16/casting:same_value", answering(cast=cast))
    assert found.verdict == "violates"
    assert {wrong.allowed for wrong in found.divergences} == {("error",)}


@pytest.mark.parametrize("code", [TOO_LARGE, 0x7F80_0000, 0xFFFF_FFFF])
def test_one_that_is_answered_is_found(code: int) -> None:
    def cast(case: Case, bits: Any) -> Any:
        return clamps(case, bits) if (bits == code).all() else RIGHT.cast(case, bits)

    found = judged(TRAPS, answering(cast=cast))
    assert found.verdict == "violates"
    [wrong] = found.divergences
    assert (wrong.count, wrong.smallest) == (1, code)


def test_an_error_on_another_input_names_it() -> None:
    def cast(case: Case, bits: Any) -> Any:
        if (bits == LARGEST).any():
            raise ArithmeticError("trap")
        return RIGHT.cast(case, bits)

    found = judged(TRAPS, answering(cast=cast))
    assert found.verdict == "error"
    assert f"0x{LARGEST:x}" in found.message


def test_a_wrong_value_is_found_beside_them() -> None:
    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) + (bits == LARGEST)

    [wrong] = judged(TRAPS, answering(cast=cast)).divergences
    assert (wrong.count, wrong.smallest) == (1, LARGEST)


@pytest.mark.parametrize("oracle", [Planted, Bound])
def test_a_sweep_passes_over_chunks_that_are_refused(oracle: type[Planted]) -> None:
    [found] = swept(oracle(TRAPS), [TRAPS], LO, HI)
    assert (found.verdict, found.inputs, found.problems) == ("conforms", HI - LO, ())


@pytest.mark.parametrize("oracle", [Planted, Bound])
def test_a_sweep_finds_every_answer_to_inputs_that_must_be_refused(oracle: type[Planted]) -> None:
    [found] = swept(oracle(CLAMPS.id), [TRAPS], LO, HI)
    [wrong] = found.divergences
    assert (wrong.count, wrong.smallest, wrong.allowed) == (HI - TOO_LARGE, TOO_LARGE, ("error",))


@pytest.mark.parametrize("oracle", [Planted, Bound])
def test_a_sweep_finds_zeros_too(oracle: type[Planted]) -> None:
    first, last = 0x7FC0_0000, 0x7FC0_5000
    [wrong] = swept(oracle(CLAMPS.id), [TRAPS], first, last)[0].divergences
    assert (wrong.count, wrong.answer, wrong.allowed) == (last - first, 0, ("error",))


def test_checks_of_the_pair_have_a_baseline_without_them() -> None:
    found = feed(baseline_of(planted(), case_named(TRAPS)), answering(cast=RIGHT.cast))
    assert isinstance(found, Baseline)
    assert found.inputs.size > 1000
    assert not is_refused(found.inputs).any()


def test_answers_of_both_kinds_are_in_rising_order() -> None:
    def graded(*inputs: int) -> GradedAnswers:
        bits = np.array(inputs, np.uint32)
        return GradedAnswers(
            bits, bits + 1, (bits % 3).astype(np.uint8), (bits % 2).astype(np.uint8)
        )

    found, wanted = both(graded(1, 5, 9), graded(2, 7)), graded(1, 2, 5, 7, 9)
    for column in fields(GradedAnswers):
        assert getattr(found, column.name).tolist() == getattr(wanted, column.name).tolist()


def test_a_sweep_finds_wrong_values_in_a_chunk_that_is_refused() -> None:
    def change(bits: Any, answers: Any) -> Any:
        return answers + (bits == LARGEST)

    [wrong] = swept(Planted(TRAPS, change), [TRAPS], LO, HI)[0].divergences
    assert (wrong.count, wrong.smallest) == (1, LARGEST)


def test_a_sweep_keeps_what_was_found_of_inputs_asked_alone() -> None:
    quick = judged(TRAPS, answering(cast=clamps))
    nothing = Judgement(quick.case, quick.backend, "conforms", inputs=1 << 32, reaches_ends=True)
    kept = completed(quick, nothing)
    assert (kept.divergences, kept.reaches_ends) == (quick.divergences, False)
    assert completed(quick, quick).divergences == quick.divergences
    assert completed(nothing, nothing).reaches_ends


def test_the_reference_refuses_a_row_with_one_of_them() -> None:
    bits = np.array([0, LARGEST, NAN], np.uint32)
    case = case_named(TRAPS)
    with pytest.raises(ValueError, match="trunc refuses 0x7fc00000"):
        RIGHT.cast(case, bits)
    call = RIGHT.bind(case, bits)
    with pytest.raises(ValueError, match="trunc refuses 0x7fc00000"):
        call()
    bits[2] = 0xBF00_0000
    assert call().tolist() == RIGHT.cast(case, bits).tolist() == [0, 0x7FFF_FF80, 0]


def test_the_ends_of_the_range_are_asked_although_fractions_fill_the_places() -> None:
    rules = ruling(case_named("numpy-astype:2.4/float64/int64/casting:same_value"))
    beyond = np.float64(2.0**63).view(np.uint64)
    fractions = np.arange(1, 4000).astype(np.float64) + 0.5
    whole = np.concatenate(
        [fractions, fractions - 0.5, np.array([2.0**62, 2.0**63, 2.0**80, np.inf])]
    )
    inputs = np.sort(whole.view(np.uint64))
    _, refused = without_refused(rules, inputs, expect(rules, inputs))
    assert beyond in refused.spread(rules.source).inputs


def test_integers_that_are_powers_of_two_are_asked_alone() -> None:
    """An infinity becomes 0x80000000 as an int32, and so does -2^31 in its lower half."""
    rules = ruling(case_named("numpy-astype:2.4/int64/float16/casting:same_value"))
    inputs = np.arange(-(1 << 20), 1 << 20).astype(np.uint64)
    inputs = np.sort(np.append(inputs, np.array([1 << 31, -(1 << 31)]).astype(np.uint64)))
    _, refused = without_refused(rules, inputs, expect(rules, inputs))
    asked = refused.spread(rules.source).inputs.astype(np.int64).tolist()
    assert {1 << 31, -(1 << 31), 1 << 16, -(1 << 17)} <= {*asked}
