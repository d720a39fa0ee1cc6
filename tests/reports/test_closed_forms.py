"""Every shipped behavior against its definition in plain integers and fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference.behavior_steps import Evaluation
from oracles.reference.kernels import Word, select_words
from reports.behaviors.regions import behaviors_between, evaluate
from specs.behaviors import Behavior, behaviors
from specs.formats import Format, format_named, formats
from tests.reports.behavior_definitions import ANY_NAN, CONSTANTS, KINDS, defined, meaning

NUMERIC = [dtype.name for dtype in formats().values() if dtype.is_numeric]
BYTES = [(one, other) for one in NUMERIC if format_named(one).bits <= 8 for other in NUMERIC]
SHORTS = [
    ("float16", "int8"),
    ("float16", "bool"),
    ("float16", "float8e4m3fn"),
    ("bfloat16", "uint64"),
    ("bfloat16", "float16"),
    ("int16", "int8"),
    ("int16", "float8e8m0"),
    ("uint16", "int32"),
]
WIDE = [
    (one, other)
    for one in ("float64", "float32", "int64", "uint64", "int32", "uint32")
    for other in NUMERIC
]
SEED = 20_261_121


def pair_ids(pairs: list[tuple[str, str]]) -> list[str]:
    return [f"{source}-{target}" for source, target in pairs]


def mismatches(
    behavior: Behavior, source: Format, target: Format, inputs: NDArray[Any]
) -> list[str]:
    """The first inputs on which a behavior differs from its definition, as messages."""
    answers, is_defined = evaluate(behavior, source, target, inputs)
    assert answers.dtype == target.storage
    found = []
    for code, answer, has_answer in zip(
        inputs.tolist(), answers.tolist(), is_defined.tolist(), strict=True
    ):
        expected = defined(behavior.name, meaning(source, code), target)
        if not has_answer:
            right = expected is None
        elif expected == ANY_NAN:
            right = any(answer in nans for nans in target.nan_codes)
        else:
            right = answer == expected
        if not right:
            found.append(
                f"{behavior.name}: {code:#x} -> {answer:#x} ({has_answer}), not {expected}"
            )
    return found[:3]


def check_all_behaviors(names: tuple[str, str], inputs: NDArray[Any]) -> None:
    source, target = map(format_named, names)
    candidates = behaviors_between(source, target)
    assert candidates
    assert [
        line for behavior in candidates for line in mismatches(behavior, source, target, inputs)
    ] == []


@pytest.mark.ci_runs_one_of(16)
@pytest.mark.parametrize("names", BYTES, ids=pair_ids(BYTES))
def test_all_patterns_of_up_to_eight_bits(names: tuple[str, str]) -> None:
    source = format_named(names[0])
    check_all_behaviors(names, np.arange(source.mask + 1, dtype=np.uint64).astype(source.storage))


@pytest.mark.nightly
@pytest.mark.parametrize("names", SHORTS, ids=pair_ids(SHORTS))
def test_all_patterns_of_sixteen_bits(names: tuple[str, str]) -> None:
    check_all_behaviors(names, np.arange(1 << 16, dtype=np.uint16))


@pytest.mark.ci_runs_one_of(6)
@pytest.mark.parametrize("names", WIDE, ids=pair_ids(WIDE))
def test_special_and_random_patterns_of_more_bits(names: tuple[str, str]) -> None:
    # For the target bool, the quick tier has little but special and random patterns.
    inputs = quick_inputs(names[0], "bool", SEED, 200)
    check_all_behaviors(
        names, np.unique(np.concatenate([inputs[:: 1 + inputs.size // 500], near_ends(names)]))
    )


def near_ends(names: tuple[str, str]) -> NDArray[Any]:
    """Patterns around each power of two from 2^-1 to 2^66, and around these plus 1/2."""
    source = format_named(names[0])
    if source.is_integral:
        return np.array([0, source.mask], source.storage)
    field = source.entry.bias
    powers = [(field + place) << source.entry.mantissa for place in range(-1, 67)]
    halves = [
        power + (1 << max(0, source.entry.mantissa - place - 1))
        for place, power in zip(range(-1, 67), powers, strict=True)
    ]
    near = [code + step for code in (*powers, *halves) for step in (-1, 0, 1)]
    return np.array([code | sign for code in near for sign in (0, source.sign_bit)], source.storage)


def test_behaviors_and_definitions_have_the_same_names() -> None:
    known = {name for kind in KINDS.values() for name in kind} | set(CONSTANTS)
    assert known == set(behaviors())


def test_every_behavior_applies_to_some_pair() -> None:
    pairs = [(format_named(one), format_named(other)) for one in NUMERIC for other in NUMERIC]
    applied = {behavior.name for pair in pairs for behavior in behaviors_between(*pair)}
    assert applied == set(behaviors())


@pytest.mark.parametrize(
    "names", [("float8e5m2", "int16"), ("int8", "float8e8m0"), ("float8e4m3fnuz", "float4e2m1")]
)
def test_words_and_arrays_give_the_same_answers(names: tuple[str, str]) -> None:
    source, target = map(format_named, names)
    inputs = np.arange(256, dtype=np.uint8)
    for behavior in behaviors_between(source, target):
        answers, is_defined = evaluate(behavior, source, target, inputs)
        for code in range(256):
            word, has_answer = Evaluation(source, target, Word(code), select_words).answer(behavior)
            assert bool(has_answer) == is_defined[code]
            assert not has_answer or int(word) == answers[code]


def test_a_complex_source_is_asked_about_its_real_part() -> None:
    source, part, target = map(format_named, ("complex128", "float64", "int8"))
    real = quick_inputs("float64", "bool", SEED, 100)
    pairs = np.stack([real, real[::-1]], axis=1).copy().view("V16").reshape(-1)
    for behavior in behaviors_between(source, target):
        for one, other in zip(
            evaluate(behavior, source, target, pairs),
            evaluate(behavior, part, target, real),
            strict=True,
        ):
            assert np.array_equal(one, other)
