"""Whether a cast may be left out: the solver and all patterns give the same answer."""

from __future__ import annotations

import random

import numpy as np
import pytest

from conformance.families.chains.composition import compose_arrays
from lab.proof.smt_chains import Removal
from lab.removable.casts import contradicts, decide
from oracles.reference.chain_ends import ends
from specs.chains import Chain, chain_named, chains_of
from specs.formats import format_named
from specs.ruling import ruling

pytest.importorskip("bitwuzla")
SECONDS = 3600.0
"""A time limit that no question reaches, on a busy machine either."""


def removal_of(chain: Chain) -> Removal:
    return Removal(chain.rulings, [ruling(chain.direct)])


@pytest.mark.ci_runs_one_of(6)
@pytest.mark.parametrize("seed", range(6))
def test_the_solver_and_all_patterns_agree(seed: int) -> None:
    narrow = [
        chain for chain in chains_of("onnx-cast", "25") if format_named(chain.source).bits <= 8
    ]
    chain = random.Random(seed).choice(narrow)
    removal = removal_of(chain)
    for question in (removal.contradiction, removal.is_open, removal.weakening):
        solved, tried = removal.solve(question, SECONDS), removal.exhaust(question)
        assert (solved == "none") == (tried == "none"), chain.id


def test_the_solver_finds_an_input_of_which_less_is_required() -> None:
    chain = chain_named("onnx-cast:25/float8e5m2/float8e4m3fn/saturate:1/float4e2m1")
    removal = removal_of(chain)
    for code in (removal.solve(removal.weakening, SECONDS), removal.exhaust(removal.weakening)):
        assert isinstance(code, int)
        assert ends(chain.rulings, code).level == "required"
        assert ends([ruling(chain.direct)], code).level == "recommended"


@pytest.mark.parametrize(
    ("name", "removable"),
    [
        ("onnx-cast:25/float32/float64/float16", "always"),
        ("onnx-cast:25/float32/float64/int8", "defined"),
        ("onnx-cast:25/float64/float32/float16", "never"),
        ("onnx-cast:25/float32/int32/bool", "never"),
        ("onnx-cast:25/int8/int32/int8", "always"),
        ("onnx-cast:25/int64/int32/int8", "always"),
        ("onnx-cast:25/float32/float32/int8", "always"),
    ],
)
def test_which_casts_may_be_left_out(name: str, removable: str) -> None:
    assert decide(chain_named(name)).removable == removable


def test_a_counterexample_contradicts_by_the_definition() -> None:
    found = decide(chain_named("onnx-cast:25/float64/float32/float16"))
    assert found.counterexample is not None
    chain, code = chain_named(found.chain), int(found.counterexample.input, 16)
    target = format_named(chain.target)
    assert contradicts(target, ends(chain.rulings, code), ends([ruling(chain.direct)], code))
    assert found.level == "recommended"


def test_arrays_and_definition_see_the_same_contradictions() -> None:
    chance = random.Random(9)
    narrow = [c for c in chains_of("onnx-cast", "25") if format_named(c.source).bits <= 8]
    for chain in chance.sample(narrow, 60):
        inputs = np.arange(1 << format_named(chain.source).bits, dtype=np.uint8)
        direct = [ruling(chain.direct)]
        kept = compose_arrays(chain.rulings, inputs).allows_all_of(compose_arrays(direct, inputs))
        for code, holds in enumerate(np.broadcast_to(kept, inputs.shape).tolist()):
            own = ends(chain.rulings, code)
            expected = not contradicts(format_named(chain.target), own, ends(direct, code))
            assert holds == expected, (chain.id, code)
