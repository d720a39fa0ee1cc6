"""Every shipped form against its definition in plain integers and fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.judging.quick_inputs import quick_inputs
from oracles.reference.machine_words import Word, select_words
from reports.behaviors.closed_forms import behaviors_between, evaluate
from reports.behaviors.steps import Evaluation
from specs.behaviors import Behaviour, behaviours
from specs.formats import Format, format_named, formats
from tests.reports.behaviour_definitions import ANY_NAN, CONSTANTS, KINDS, defined, meaning

NUMERIC = [form.name for form in formats().values() if form.is_numeric]
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


def ids(pairs: list[tuple[str, str]]) -> list[str]:
    return [f"{source}-{target}" for source, target in pairs]


def wrong(form: Behaviour, source: Format, target: Format, inputs: NDArray[Any]) -> list[str]:
    """The inputs on which a form is not what its definition says."""
    answers, told = evaluate(form, source, target, inputs)
    assert answers.dtype == target.storage
    found = []
    for code, answer, is_told in zip(inputs.tolist(), answers.tolist(), told.tolist(), strict=True):
        wanted = defined(form.name, meaning(source, code), target)
        if not is_told:
            right = wanted is None
        elif wanted == ANY_NAN:
            right = any(answer in nans for nans in target.nan_codes)
        else:
            right = answer == wanted
        if not right:
            found.append(f"{form.name}: {code:#x} -> {answer:#x} ({is_told}), not {wanted}")
    return found[:3]


def check(names: tuple[str, str], inputs: NDArray[Any]) -> None:
    source, target = map(format_named, names)
    forms = behaviors_between(source, target)
    assert forms
    assert [line for form in forms for line in wrong(form, source, target, inputs)] == []


@pytest.mark.parametrize("names", BYTES, ids=ids(BYTES))
def test_all_patterns_of_up_to_eight_bits(names: tuple[str, str]) -> None:
    source = format_named(names[0])
    check(names, np.arange(source.mask + 1, dtype=np.uint64).astype(source.storage))


@pytest.mark.parametrize("names", SHORTS, ids=ids(SHORTS))
def test_all_patterns_of_sixteen_bits(names: tuple[str, str]) -> None:
    check(names, np.arange(1 << 16, dtype=np.uint16))


@pytest.mark.parametrize("names", WIDE, ids=ids(WIDE))
def test_telling_patterns_of_more_bits(names: tuple[str, str]) -> None:
    # Against bool the quick tier has next to nothing but special patterns and random ones.
    inputs = quick_inputs(names[0], "bool", SEED, 200)
    check(names, np.unique(np.concatenate([inputs[:: 1 + inputs.size // 1500], near_ends(names)])))


def near_ends(names: tuple[str, str]) -> NDArray[Any]:
    """Around every power of two from 2^-1 to 2^66: its neighbours and what lies half a step off."""
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


def test_every_form_is_defined_and_every_definition_is_of_a_form() -> None:
    known = {name for kind in KINDS.values() for name in kind} | set(CONSTANTS)
    assert known == set(behaviours())


def test_every_form_speaks_of_some_pair() -> None:
    pairs = [(format_named(one), format_named(other)) for one in NUMERIC for other in NUMERIC]
    spoken = {form.name for pair in pairs for form in behaviors_between(*pair)}
    assert spoken == set(behaviours())


@pytest.mark.parametrize(
    "names", [("float8e5m2", "int16"), ("int8", "float8e8m0"), ("float8e4m3fnuz", "float4e2m1")]
)
def test_python_words_and_arrays_say_the_same(names: tuple[str, str]) -> None:
    source, target = map(format_named, names)
    inputs = np.arange(256, dtype=np.uint8)
    for form in behaviors_between(source, target):
        answers, told = evaluate(form, source, target, inputs)
        for code in range(256):
            word, is_told = Evaluation(source, target, Word(code), select_words).answer(form)
            assert bool(is_told) == told[code]
            assert not is_told or int(word) == answers[code]


def test_of_complex_numbers_the_real_part_is_asked() -> None:
    source, part, target = map(format_named, ("complex128", "float64", "int8"))
    real = quick_inputs("float64", "bool", SEED, 100)
    pairs = np.stack([real, real[::-1]], axis=1).copy().view("V16").reshape(-1)
    for form in behaviors_between(source, target):
        for one, other in zip(
            evaluate(form, source, target, pairs), evaluate(form, part, target, real), strict=True
        ):
            assert np.array_equal(one, other)
