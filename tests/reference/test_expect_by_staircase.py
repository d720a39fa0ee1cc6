"""Expectations read off a staircase are those of the definition."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import expect_by_exact, expect_by_staircase
from specs.outcomes import Behaves, Either, Exactly, Round, Same, Value, Wrap
from tests.reference.distinct import numeric_rulings

SEED = 20_261_125
NAMES_PATTERNS = (Behaves, Either, Exactly, Round, Same, Value, Wrap)
RULINGS = {name: rules for name, rules in numeric_rulings().items() if not rules.worked}


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("name", [*RULINGS][::9])
def test_staircase_and_definition_expect_the_same(name: str) -> None:
    rules = RULINGS[name]
    inputs = quick_inputs(rules.source.name, rules.target.name, SEED, 300)
    inputs = inputs[:: max(1, inputs.size // 3000)]
    by_definition = expect_by_exact.expect(rules, inputs)
    by_step = expect_by_staircase.expect(rules, inputs)
    assert np.array_equal(by_step.branch_indices, by_definition.branch_indices)
    named = np.array([isinstance(branch.outcome, NAMES_PATTERNS) for branch in rules.branches])
    here = named[by_definition.branch_indices]
    assert np.array_equal(by_step.codes[here], by_definition.codes[here])
    assert np.array_equal(by_step.others[here], by_definition.others[here])
