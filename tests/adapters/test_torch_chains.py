"""torch's chains: eager ones equal their steps; scripts print the answers of inductor's roads."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from conformance.families.chains.composition import chain_inputs
from oracles.adapters.torch import Torch
from oracles.protocol import Bits, NotInstalled, Unsupported
from specs.chains import Chain, Company, chain_named, chains_of, lossy

pytest.importorskip("torch")
BEYOND_FLOAT16 = 0x4788B800  # 70000
INFINITY = 0x7F800000


def make(adapter: Any, chain: Chain, road: str, bits: Bits) -> Bits:
    [answer] = adapter.chains(chain.steps[0], Company((chain,), road), {"0": bits})
    return np.asarray(answer)


def test_eager_chains_are_their_steps_one_after_another() -> None:
    adapter, made = Torch(), 0
    chance = random.Random(11)
    for chain in chance.sample(list(lossy(chains_of("onnx-cast", "25"))), 60):
        bits = chain_inputs(chain.dtypes, 300)
        try:
            first, second = chain.steps
            alone = adapter.cast(second, adapter.cast(first, bits))
        except Unsupported:
            continue
        np.testing.assert_array_equal(make(adapter, chain, "eager", bits), alone, str(chain))
        made += 1
    assert made > 10


@pytest.fixture(scope="module")
def compiled() -> Any:
    try:
        return Torch("compile")
    except NotInstalled as missing:
        pytest.skip(str(missing))


def test_each_road_of_inductor_is_what_its_script_shows(compiled: Any) -> None:
    """By default inductor keeps what float16 loses; with emulation it rounds to float16."""
    chain = chain_named("onnx-cast:25/float32/float16/float32")
    bits = np.array([BEYOND_FLOAT16], np.uint32)
    default, emulated = compiled.chain_roads
    assert make(compiled, chain, emulated, bits).tolist() == [INFINITY]
    for road in (default, emulated):
        answer = make(compiled, chain, road, bits)
        company = Company((chain,), road)
        script = compiled.reproduce_chains(chain.steps[0], company, {"0": bits})
        said: list[str] = []
        exec(compile(script, road, "exec"), {"print": lambda *words, out=said: out.append(words)})
        assert [words[-1] for words in said] == [hex(int(answer[0]))]


def test_a_dtype_that_torch_lacks_is_declined() -> None:
    chain = chain_named("onnx-cast:25/float32/float4e2m1/float32")
    with pytest.raises(Unsupported, match="torch"):
        make(Torch(), chain, "eager", np.zeros(2, np.uint32))


def test_a_variant_that_casts_nothing_has_no_roads() -> None:
    assert Torch("view").chain_roads == ()
