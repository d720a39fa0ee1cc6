"""``Word`` behaves as numpy's uint64 does."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.reference.kernels import Word, select_arrays, select_words

WORDS = st.integers(0, 2**64 - 1)
SHIFTS = st.integers(0, 70)


@pytest.mark.parametrize(
    "operation", [operator.add, operator.sub, operator.and_, operator.or_, operator.xor]
)
@given(left=WORDS, right=WORDS)
def test_arithmetic_wraps_as_in_numpy(operation: Callable[..., Any], left: int, right: int) -> None:
    arrays = operation(np.array([left], np.uint64), np.array([right], np.uint64))
    assert int(operation(Word(left), Word(right))) == int(arrays[0])


@pytest.mark.parametrize("operation", [operator.lshift, operator.rshift])
@given(value=WORDS, shift=SHIFTS)
def test_shifts_by_64_or_more_give_zero(
    operation: Callable[..., Any], value: int, shift: int
) -> None:
    arrays = operation(np.array([value], np.uint64), np.array([shift], np.uint64))
    word = operation(Word(value), Word(shift))
    assert int(word) == int(arrays[0])
    assert shift < 64 or int(word) == 0


@given(left=WORDS, right=WORDS)
def test_comparison_and_select_agree_with_numpy(left: int, right: int) -> None:
    a, b = np.array([left], np.uint64), np.array([right], np.uint64)
    assert (Word(left) < Word(right)) == bool((a < b)[0])
    assert (Word(left) > Word(right)) == bool((a > b)[0])
    assert (Word(left) == Word(right)) == bool((a == b)[0])
    chosen = select_arrays(a < b, a, b)
    assert int(select_words(Word(left) < Word(right), Word(left), Word(right))) == int(chosen[0])


@pytest.mark.parametrize(("then", "otherwise"), [(2**63, 0), (2**64 - 1, 2**63 - 1), (5, 2**63)])
def test_integers_beyond_the_signed_ones_are_selected_as_words(then: int, otherwise: int) -> None:
    found = select_arrays(np.array([True, False]), then, otherwise)
    assert (found.dtype, found.tolist()) == (np.uint64, [then, otherwise])
