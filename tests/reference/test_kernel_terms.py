"""A traced kernel computes what the kernel itself computes on words and on arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracles.reference import expect_by_kernels
from oracles.reference.kernel_terms import BOUNDS, Trace, select_terms
from oracles.reference.kernels import WIDTH, Word, select_arrays, select_words
from tests.reference.distinct import numeric_rulings
from tests.reference.programs import STEPS, Step, evaluate, run

RULINGS = {name: rules for name, rules in numeric_rulings().items() if not rules.is_open}


@given(STEPS, st.sampled_from([4, 8, 32, WIDTH]), st.integers(0, 2**64 - 1))
def test_terms_words_and_arrays_agree_on_any_program(
    steps: list[Step], bits: int, given_pattern: int
) -> None:
    pattern = given_pattern >> (WIDTH - bits)
    trace = Trace(bits)
    words, truths = run(steps, trace.input(), select_terms)
    values = evaluate(trace, pattern)
    on_words = run(steps, Word(pattern), select_words)
    on_arrays = run(steps, np.array([pattern], np.uint64), select_arrays)
    for traced, word, array in zip(words, on_words[0], on_arrays[0], strict=True):
        assert values[traced.index] == int(word) == int(array[0])
        assert not traced.node.truth
    for traced, truth, array in zip(truths, on_words[1], on_arrays[1], strict=True):
        assert bool(values[traced.index]) == truth == bool(array[0])
        assert traced.node.truth


@given(STEPS, st.integers(0, 2**32 - 1))
def test_a_trace_without_simplification_computes_the_same(steps: list[Step], pattern: int) -> None:
    short, full = Trace(32), Trace(32, simplify=False)
    short_words, full_words = (
        run(steps, trace.input(), select_terms)[0] for trace in (short, full)
    )
    short_values, full_values = evaluate(short, pattern), evaluate(full, pattern)
    assert [short_values[term.index] for term in short_words] == [
        full_values[term.index] for term in full_words
    ]


@given(STEPS)
def test_equal_operations_are_one_node(steps: list[Step]) -> None:
    trace = Trace(WIDTH)
    first, _ = run(steps, trace.input(), select_terms)
    size = len(trace.nodes)
    second, _ = run(steps, trace.input(), select_terms)
    assert len(trace.nodes) == size
    assert [term.index for term in first] == [term.index for term in second]


def test_a_result_that_does_not_depend_on_the_input_is_a_constant() -> None:
    pattern = Trace(8).input()
    for term, value in [
        (pattern & 0, 0),
        (pattern >> 8, 0),
        (pattern < 256, 1),
        ((pattern | 256) > 255, 1),
        (select_terms(pattern == 256, 3, 4), 4),
        ((pattern & 0) - 1, 2**64 - 1),
        (pattern << 64, 0),
    ]:
        assert term.node.operation == "constant"
        assert term.node.bounds == (value, value)


ENDS = st.one_of(st.integers(0, 70), st.integers(2**64 - 70, 2**64 - 1))
INTERVALS = st.builds(
    lambda low, length: (low, min(low + length, 2**64 - 1)), ENDS, st.integers(0, 4)
)
EXACT: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "left": lambda value, shift: value << shift if shift < WIDTH else 0,
    "right": lambda value, shift: value >> min(shift, WIDTH),
    "equal": operator.eq,
    "less": operator.lt,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


@pytest.mark.parametrize("operation", EXACT)
@given(left=INTERVALS, right=INTERVALS)
@example(left=(3, 3), right=(63, 64))
def test_bounds_are_the_least_and_the_greatest_result(
    operation: str, left: tuple[int, int], right: tuple[int, int]
) -> None:
    """But for bitwise operations and for shifts that may be too far, whose bounds may be wider."""
    compute = EXACT[operation]
    pairs = product(range(left[0], left[1] + 1), range(right[0], right[1] + 1))
    results = [int(compute(first, second)) for first, second in pairs]
    low, high = BOUNDS[operation](left, right)
    may_be_too_far = operation == "left" and right[0] < WIDTH <= right[1]
    if operation in ("and", "or", "xor") or may_be_too_far:
        assert all(low <= result % 2**WIDTH <= high for result in results)
    elif min(results) >> WIDTH == max(results) >> WIDTH:
        assert (low, high) == (min(results) % 2**WIDTH, max(results) % 2**WIDTH)
    else:
        assert (low, high) == (0, 2**WIDTH - 1)


def test_an_operation_that_changes_nothing_adds_no_node() -> None:
    pattern = Trace(8).input()
    for term in (
        *(pattern & 255, pattern | 0, pattern ^ 0, pattern + 0, 0 + pattern, pattern - 0),
        *(pattern << 0, pattern >> 0, select_terms(pattern > 3, pattern, pattern)),
    ):
        assert term.index == pattern.index


def test_branching_on_data_and_mixing_words_with_truths_raise() -> None:
    pattern = Trace(8).input()
    with pytest.raises(TypeError, match="a kernel must not branch on data"):
        assert pattern > 3
    with pytest.raises(TypeError, match="`and` mixes a word and a truth"):
        _ = pattern & (pattern > 3)


@pytest.mark.ci_runs_one_of(5)
@pytest.mark.parametrize("name", [*RULINGS][::9])
def test_a_traced_ruling_decides_as_on_words_and_arrays(name: str) -> None:
    rules = RULINGS[name]
    generator = np.random.default_rng(3)
    shift = np.uint64(WIDTH - rules.source.bits)
    inputs = generator.integers(0, 2**64 - 1, 40, np.uint64, endpoint=True) >> shift
    on_arrays = expect_by_kernels.decide(rules, inputs, select_arrays)
    trace = Trace(rules.source.bits)
    results = expect_by_kernels.decide(rules, trace.input(), select_terms)
    for at, code in enumerate(inputs.tolist()):
        values = evaluate(trace, code)
        on_words = expect_by_kernels.decide(rules, Word(code), select_words)
        for traced, word, array in zip(results, on_words, on_arrays, strict=True):
            assert values[traced.index] == int(word) == int(array[at])
