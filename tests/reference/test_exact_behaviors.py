"""The definition of behaviors against the kernels, which share nothing with it."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import few_patterns
from oracles.reference.exact_rulings import answer_of_behavior
from reports.behaviors.regions import behaviors_between, evaluate
from specs.behaviors import Behavior, behaviors
from specs.formats import format_named
from tests.reference.thinned import thinned

SOURCES = ("float64", "float32", "bfloat16", "float8e5m2", "float8e4m3fnuz", "int64", "uint8")
TARGETS = ("bool", "int4", "uint8", "int16", "uint32", "int64", "uint64")
EVERY = [
    (source, target, behavior)
    for source in SOURCES
    for target in TARGETS
    for behavior in behaviors_between(format_named(source), format_named(target))
]


@pytest.mark.ci_runs_one_of(5)
@pytest.mark.parametrize(
    ("source", "target", "behavior"), EVERY, ids=lambda each: getattr(each, "name", each)
)
def test_a_behavior_is_what_the_kernels_compute(
    source: str, target: str, behavior: Behavior
) -> None:
    one, other = format_named(source), format_named(target)
    inputs = thinned(few_patterns(source, target, 150), 1_500)
    answers, is_defined = evaluate(behavior, one, other, inputs)
    found = [answer_of_behavior(behavior, one, other, code) for code in inputs.tolist()]
    assert [each is not None for each in found] == is_defined.tolist()
    wanted = np.array([each or 0 for each in found], np.uint64)
    np.testing.assert_array_equal(np.where(is_defined, answers, 0).astype(np.uint64), wanted)


def test_every_behavior_for_whole_targets_is_compared() -> None:
    whole = {each.name for each in behaviors().values() if {"integer", "boolean"} & {*each.to}}
    assert {behavior.name for _, _, behavior in EVERY} == whole
