"""The solver proves the kernels, and finds a counterexample for every fault planted in them."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.proof import smt_statement
from lab.proof.bit_vectors import Solving, Truth, Vector
from lab.proof.obligations import Group, Obligation, groups
from lab.proof.smt_queries import Statement, prove, prove_by_solver, statements
from lab.proof.smt_traces import translated
from oracles.reference import behavior_steps, expect_by_exact, expect_by_kernels, kernel_terms
from oracles.reference.kernel_terms import Trace, select_terms
from oracles.reference.kernels import WIDTH, Word, select_words
from specs.outcomes import Wrap
from tests.lab.proof.planted import plant
from tests.reference.distinct import numeric_rulings
from tests.reference.programs import STEPS, Step, run
from tests.search import examples

pytest.importorskip("bitwuzla", reason="the proof needs a solver")

SECONDS = 3600.0
"""A time limit that no question reaches, on a busy machine either."""
SPREAD = [(group, statement) for group in groups() for statement in statements(group)][::25]


def group_of(source: str, target: str, rounding: str) -> Group:
    (found,) = (
        group
        for group in groups()
        if (group.source.name, group.target.name, group.rounding) == (source, target, rounding)
    )
    return found


def case_id(group: Group, statement: str) -> str:
    return f"{group.source.name}-{group.target.name}-{group.rounding}-{statement}"


def is_counterexample(group: Group, found: str) -> bool:
    """Whether kernels and definition really differ on the input that was found."""
    code = int(found.partition(":")[0], 16)
    for _, rules in group.rulings:
        branch_index, first, second = expect_by_kernels.decide(rules, Word(code), select_words)
        allowed = expect_by_exact.allow(rules, code)
        codes = allowed.codes or (0,)
        if (int(branch_index), int(first), int(second)) != (
            allowed.branch_index,
            codes[0],
            codes[-1],
        ):
            return True
    return False


def test_every_ruling_that_is_not_open_is_in_one_group() -> None:
    grouped = [rules for group in groups() for _, rules in group.rulings]
    every = [rules for rules in numeric_rulings().values() if not rules.is_open]
    assert len(grouped) == len(set(grouped)) == len(every)
    assert set(grouped) == set(every)


@pytest.mark.ci_runs_one_of(9)
@pytest.mark.parametrize(
    ("group", "statement"), SPREAD, ids=[case_id(group, statement) for group, statement in SPREAD]
)
def test_kernels_are_proved(group: Group, statement: Statement) -> None:
    obligation = prove(group, statement, SECONDS)
    assert (obligation.verdict, obligation.found) == ("proved", "")
    assert obligation.inputs == f"2^{group.source.bits}"


@pytest.mark.parametrize("target", ["uint32", "uint64"])
def test_negative_floats_that_wrap_in_a_wide_unsigned_integer_are_proved(target: str) -> None:
    group = group_of("float16", target, "toward-zero")
    assert any(branch.outcome == Wrap() for _, rules in group.rulings for branch in rules.branches)
    obligation = prove(group, "smt-lib", SECONDS)
    assert (obligation.verdict, obligation.found) == ("proved", "")


def test_infinity_is_proved_as_the_neighbor_above_the_largest_float() -> None:
    group = group_of("float64", "float32", "floor")
    _, rules = next(each for each in group.rulings if each[0].startswith("c-conversions:C11/"))
    just_above_the_largest, largest, infinity = 0x47EFFFFFE0000001, 0x7F7FFFFF, 0x7F800000
    assert expect_by_exact.allow(rules, just_above_the_largest).codes == (largest, infinity)
    obligation = prove(group, "exact integers", SECONDS)
    assert (obligation.verdict, obligation.found) == ("proved", "")


FAULTS = {
    "ties away": ("increment = guard & (sticky | lsb)", "increment = guard",
        ("float32", "float16", "nearest-even")),
    "ties to odd": ("increment = guard & (sticky | lsb)",
        "increment = guard & (sticky | (lsb ^ 1))", ("float64", "float8e4m3fn", "nearest-even")),
    "shift capped one too low": ("MORE_THAN_ALL = WIDTH + 1", "MORE_THAN_ALL = WIDTH",
        ("float32", "float16", "nearest-even")),
    "shift of a wide source capped one too low": ("MORE_THAN_ALL = WIDTH + 1",
        "MORE_THAN_ALL = WIDTH", ("float64", "float8e5m2", "nearest-even")),
    "overflow one too late": ("overflow = (code > largest) & (tiny ^ True)",
        "overflow = (code > largest + 1) & (tiny ^ True)", ("bfloat16", "float16", "nearest-even")),
    "overflow one too late without infinities": ("overflow = (code > largest) & (tiny ^ True)",
        "overflow = (code > largest + 1) & (tiny ^ True)",
        ("float32", "float8e4m3fnuz", "nearest-even")),
    "an integer overflows one too late": ("overflow = large | (rounded > bound)",
        "overflow = large | (rounded > bound + 1)", ("float16", "int8", "nearest-even")),
    "the largest value beyond itself": (
        "beyond = ((truncated > largest) | ((truncated == largest) & inexact))",
        "beyond = ((truncated > largest) | (truncated == largest))",
        ("float32", "float8e8m0", "toward-zero")),
    "odd without the sticky bit": ("increment = (lsb ^ 1) & some", "increment = (lsb ^ 1) & guard",
        ("float32", "float16", "odd")),
    "wrap without mask": ("code = select(parts.sign == 1, 0 - rounded, rounded) & target.mask",
        "code = select(parts.sign == 1, 0 - rounded, rounded)", ("int64", "int8", "toward-zero")),
    "a NaN lost": ("nan = magnitude > source.infinity_code",
        "nan = magnitude > source.infinity_code + 1", ("float64", "float16", "nearest-even")),
    "another NaN": ("nan = pattern == source.sign_bit", "nan = pattern == source.sign_bit + 1",
        ("float8e5m2fnuz", "float16", "toward-zero")),
    "floor as ceil": ("increment = parts.sign & some", "increment = (parts.sign ^ 1) & some",
        ("int64", "float32", "floor")),
    "subnormals one binade low": ("field = select(field == 0, 1, field)",
        "field = select(field == 0, 0, field)", ("float16", "float32", "toward-zero")),
    "a negative zero that is a NaN": ("signed = signed & ((code == 0) ^ True)",
        "signed = signed & ((code > 0) | True)", ("float32", "float8e5m2fnuz", "nearest-even")),
    "fractions of one half missed": ("shift = select(below_one, 0, parts.exponent - (OFFSET - 1))",
        "shift = select(below_one, 0, parts.exponent - (OFFSET - 2))",
        ("float64", "int4", "toward-zero")),
    "the lowest integer out of range": (
        "bound = select(parts.sign == 1, target.sign_bit, target.max_code)",
        "bound = parts.sign - parts.sign + target.max_code", ("int64", "int8", "toward-zero")),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_has_a_counterexample(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong, pair = FAULTS[fault]
    group = group_of(*pair)
    plant(monkeypatch, right, wrong)
    obligation = prove(group, "exact integers", SECONDS)
    assert obligation.verdict == "counterexample"
    assert " by kernels, " in obligation.found
    assert is_counterexample(group, obligation.found)


@pytest.mark.parametrize("fault", ["ties away", "shift of a wide source capped one too low"])
def test_smt_lib_finds_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong, pair = FAULTS[fault]
    group = group_of(*pair)
    plant(monkeypatch, right, wrong)
    obligation = prove(group, "smt-lib", SECONDS)
    assert obligation.verdict == "counterexample"
    assert is_counterexample(group, obligation.found)


def test_an_input_class_that_is_too_wide_has_a_counterexample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = group_of("float32", "float8e8m0", "toward-zero")
    monkeypatch.setitem(expect_by_kernels.CLASSES, "negative", lambda f: f.finite & f.minus)
    obligation = prove(group, "exact integers", SECONDS)
    assert obligation.verdict == "counterexample"
    assert int(obligation.found.partition(":")[0], 16) == 0x80000000


def test_a_statement_that_is_too_weak_has_a_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    def anything(value: Any, code: Any, rounding: Any) -> Truth:
        return value.solving.truth(True)

    monkeypatch.setattr(smt_statement, "is_rounding", anything)
    obligation = prove(group_of("float16", "bfloat16", "nearest-even"), "exact integers", SECONDS)
    assert obligation.verdict == "counterexample"
    assert obligation.found.endswith("the statement or the trace is at fault")


def test_a_wrongly_simplified_trace_has_a_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        kernel_terms.BOUNDS, "right", lambda value, shift: (0, value[1] >> shift[1])
    )
    obligation = prove(
        group_of("bfloat16", "float4e2m1", "nearest-even"), "exact integers", SECONDS
    )
    assert obligation.verdict == "counterexample"
    assert obligation.found.endswith("the statement or the trace is at fault")


def test_an_obligation_that_times_out_is_open() -> None:
    group = group_of("float64", "int64", "toward-zero")
    for seconds in (0.0, 0.3):
        obligation = prove(group, "exact integers", seconds)
        assert (obligation.verdict, obligation.found) == ("open", "")
        assert obligation.seconds < SECONDS / 4


@examples(40)
@given(STEPS, st.sampled_from([4, 32, WIDTH]), st.integers(0, 2**64 - 1))
def test_a_translated_trace_computes_the_same_as_words(
    steps: list[Step], bits: int, full_pattern: int
) -> None:
    pattern = full_pattern >> (WIDTH - bits)
    trace = Trace(bits)
    words, truths = run(steps, trace.input(), select_terms)
    expected_words, expected_truths = run(steps, Word(pattern), select_words)
    solving = Solving()
    vector = solving.unknown("pattern", bits)
    terms = translated(trace, vector)
    wrong = [
        Vector(solving, terms[word.index], WIDTH) != int(expected)
        for word, expected in zip(words, expected_words, strict=True)
    ]
    wrong += [
        Truth(solving, terms[truth.index]) ^ bool(expected)
        for truth, expected in zip(truths, expected_truths, strict=True)
    ]
    question = (vector == pattern) & solving.any_of(wrong)
    assert solving.find(question, vector, SECONDS) == "none"


@pytest.mark.nightly
def test_obligations_are_in_order_for_any_number_of_processes() -> None:
    reported: list[Obligation] = []
    serial, parallel = (
        prove_by_solver(1, SECONDS, reported.append, 60),
        prove_by_solver(2, every=60),
    )
    assert reported == serial
    assert [replace(one, seconds=0) for one in serial] == [
        replace(one, seconds=0) for one in parallel
    ]
    assert [(one.rulings, one.statement) for one in serial] == [
        (group.name, statement) for group in groups()[::60] for statement in statements(group)
    ]
    assert {one.verdict for one in serial} == {"proved"}


REDUCED = "stablehlo-reduce-precision"


def reductions_of(dtype: str) -> Group:
    """The rulings of a dtype's reductions of precision that go through another float."""
    group = group_of(dtype, dtype, "toward-zero")
    ours = [each for each in group.rulings if each[0].startswith(REDUCED) and each[1].on_the_way]
    assert len(ours) >= 4
    return replace(group, rulings=tuple(ours))


REDUCTIONS = {
    name: replace(group, rulings=((name, rules),))
    for group in map(reductions_of, ("float16", "bfloat16", "float32", "float64"))
    for name, rules in group.rulings
}


@pytest.mark.ci_runs_one_of(len(REDUCTIONS))
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_proved_by_smt_libs_conversions(name: str) -> None:
    obligation = prove(REDUCTIONS[name], "exact integers", SECONDS)
    assert (obligation.verdict, obligation.found) == ("proved", "")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "lowest = format.lowest_exponent + OFFSET",
            "lowest = format.lowest_exponent + OFFSET + 1",
        ),
        ("MASK - (1 << (TOP - format.precision))", "MASK - (1 << (WIDTH - format.precision))"),
        ("zero = select(state.minus, format.sign_bit, rounded.pattern & 0)", "zero = 0"),
        ('if subnormals == "kept" else', "if True else"),
    ],
)
def test_a_fault_in_a_reduction_has_a_counterexample(
    right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = inspect.getsource(behavior_steps)
    assert text.count(right) == 1
    module = ModuleType("planted_steps")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(text.replace(right, wrong), module.__name__, "exec"), module.__dict__)
    module.__dict__["WIDTH"] = WIDTH
    monkeypatch.setattr(expect_by_kernels, "pattern_of_behavior", module.pattern_of_behavior)
    group = reductions_of("float32")
    obligation = prove(group, "exact integers", SECONDS)
    assert obligation.verdict == "counterexample"
    assert is_counterexample(group, obligation.found)
