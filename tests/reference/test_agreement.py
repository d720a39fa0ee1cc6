"""The definition and the kernels agree, pattern by pattern, on every ruling of every document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import exact, expect_by_exact, expect_by_kernels, kernels
from oracles.reference.kernels import Word, select_words
from specs.branches import Ruling
from specs.outcomes import Behaves, Either, Exactly, Round, Same, Value, Wrap
from specs.totality import partition_atoms
from tests.reference.distinct import numeric_rulings, text_rulings

NAMES_PATTERNS = (Behaves, Either, Exactly, Round, Same, Value, Wrap)
RANDOM_PATTERNS = 30_000
SEED = 20_261_120
NARROW = [name for name, rules in numeric_rulings().items() if rules.source.bits <= 16]
WIDE = [name for name, rules in numeric_rulings().items() if rules.source.bits > 16]
FIRST = {
    (rules.source, rules.target, rules.rounding): name
    for name, rules in reversed(numeric_rulings().items())
}
"""The first ruling of each pair and rounding. The others differ from it only in their branches, and
are compared on fewer patterns; `tox -e proof` compares all rulings on all inputs."""
STRIDE = 7
"""Rulings that are not in ``FIRST`` are compared on one of this many patterns."""


def is_first(name: str, rules: Ruling) -> bool:
    return FIRST[rules.source, rules.target, rules.rounding] == name


def first_disagreement(rules: Ruling, inputs: NDArray[Any]) -> str | None:
    """Describe the first input on which definition and kernels differ; None if they agree."""
    defined, computed = (
        expect_by_exact.expect(rules, inputs),
        expect_by_kernels.expect(rules, inputs),
    )
    named = np.array([isinstance(branch.outcome, NAMES_PATTERNS) for branch in rules.branches])
    differs = (defined.branch_indices != computed.branch_indices) | (
        named[defined.branch_indices]
        & ((defined.codes != computed.codes) | (defined.others != computed.others))
    )
    if not differs.any():
        return None
    at = int(np.flatnonzero(differs)[0])
    by_definition, by_kernels = (
        f"{rules.branches[expected.branch_indices[at]].input_class} {expected.codes[at]:#x}"
        for expected in (defined, computed)
    )
    return (
        f"{inputs[at]:#x}: {by_definition} by definition, {by_kernels} by kernels;"
        f" {int(differs.sum())} inputs differ"
    )


@pytest.mark.ci_runs_one_of(48)
@pytest.mark.parametrize("name", NARROW)
def test_definition_and_kernels_agree_on_every_pattern_of_a_narrow_source(name: str) -> None:
    rules = numeric_rulings()[name]
    inputs = np.arange(1 << rules.source.bits, dtype=rules.source.storage)
    if rules.source.bits == 16 and not is_first(name, rules):
        inputs = inputs[NARROW.index(name) % STRIDE :: STRIDE]
    assert first_disagreement(rules, inputs) is None


@pytest.mark.ci_runs_one_of(96)
@pytest.mark.parametrize("name", WIDE)
def test_definition_and_kernels_agree_on_the_quick_inputs_of_a_wide_source(name: str) -> None:
    rules = numeric_rulings()[name]
    inputs = quick_inputs(rules.source.name, rules.target.name, SEED, RANDOM_PATTERNS)
    assert inputs.size >= RANDOM_PATTERNS
    if not is_first(name, rules):
        inputs = inputs[WIDE.index(name) % STRIDE :: STRIDE]
    assert first_disagreement(rules, inputs) is None


@pytest.mark.parametrize("name", text_rulings())
def test_definition_and_kernels_agree_on_numbers_that_become_texts(name: str) -> None:
    rules = text_rulings()[name]
    inputs = quick_inputs(rules.source.name, rules.target.name, SEED, RANDOM_PATTERNS)
    by_definition = expect_by_exact.expect(rules, inputs).branch_indices
    by_kernels = expect_by_kernels.expect_texts(rules, inputs).branch_indices
    assert by_definition.tolist() == by_kernels.tolist()


def test_whole_numbers_and_fractions_that_become_texts_can_be_told_apart() -> None:
    # No document tells them apart today.
    rules, classes = text_rulings()["onnx-cast:9/float16/string"], ("whole", "otherwise")
    branches = tuple(replace(rules.branches[-1], input_class=each) for each in classes)
    partition = partition_atoms(rules.source, rules.target, classes)
    rules = replace(rules, branches=branches, partition=partition)
    inputs = np.array([0x3C00, 0x3E00, 0xC000, 0x0001, 0x8000], np.uint16)
    by_kernels = expect_by_kernels.expect_texts(rules, inputs).branch_indices
    assert by_kernels.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.ci_runs_one_of(9)
@pytest.mark.parametrize("name", [*NARROW[::7], *WIDE[::7]])
def test_kernels_compute_the_same_on_python_integers_as_on_arrays(name: str) -> None:
    rules = numeric_rulings()[name]
    inputs = quick_inputs(rules.source.name, rules.target.name, SEED, 200)
    picked = inputs[:: max(1, inputs.size // 200)]
    expected = expect_by_kernels.expect(rules, picked)
    for at, code in enumerate(picked.tolist()):
        facts = expect_by_kernels.facts_of(rules, Word(code), select_words)
        branch = rules.branches[expected.branch_indices[at]]
        if isinstance(branch.outcome, Round | Value | Wrap):
            rounded = expect_by_kernels.rounded(
                rules.target, facts.parts, rules.rounding, select_words, facts.converted
            )
            assert int(rounded) == expected.codes[at], hex(code)
        if branch.input_class != "otherwise":
            assert expect_by_kernels.CLASSES[branch.input_class](facts), hex(code)


def test_a_fault_in_the_kernels_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = numeric_rulings()["onnx-cast:13/float32/float16"]
    inputs = quick_inputs("float32", "float16", 0, 10)[::50]
    assert first_disagreement(rules, inputs) is None
    original = kernels._round

    def ties_away(parts: Any, drop: Any, rounding: Any, select: Any) -> Any:
        return original(parts, drop, "nearest-away", select)

    monkeypatch.setattr(kernels, "_round", ties_away)
    assert first_disagreement(rules, inputs) is not None


def test_a_fault_in_the_definition_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = numeric_rulings()["onnx-cast:13/float64/bfloat16"]
    inputs = quick_inputs("float64", "bfloat16", 0, 10)[::50]
    original = exact.unit_of

    def without_lowest_bit_of_subnormals(target: Any, number: exact.Number) -> int:
        unit = original(target, number)
        return unit + 1 if unit == target.lowest_exponent - target.entry.mantissa else unit

    monkeypatch.setattr(exact, "unit_of", without_lowest_bit_of_subnormals)
    assert first_disagreement(rules, inputs) is not None
