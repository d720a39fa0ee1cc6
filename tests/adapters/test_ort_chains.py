"""onnxruntime's chains: many in one model get the answers that each gets in its own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from conformance.families.chains.composition import chain_inputs
from oracles.protocol import Unsupported
from specs.chains import Chain, Company, chain_named, chains_of, lossy

ort = pytest.importorskip("oracles.adapters.ort")
pytest.importorskip("onnxruntime")
INPUTS = 300


@pytest.fixture(scope="module")
def adapter() -> Any:
    return ort.Ort()


def answers(adapter: Any, chains: list[Chain], road: str) -> list[Any]:
    bits = {f"{at}": chain_inputs(each.dtypes, INPUTS)[:: 1 + at] for at, each in enumerate(chains)}
    found: list[Any] = adapter.chains(chains[0].steps[0], Company(tuple(chains), road), bits)
    return found


def can_be_made(adapter: Any, chain: Chain, road: str) -> bool:
    try:
        answers(adapter, [chain], road)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("road", ort.CHAIN_ROADS)
def test_company_changes_no_answer(adapter: Any, road: str) -> None:
    chance = random.Random(road)
    every = list(lossy(chains_of("onnx-cast", "25", has_all_modes=False)))
    some = [each for each in chance.sample(every, 40) if can_be_made(adapter, each, road)]
    assert len(some) > 8
    together = answers(adapter, some, road)
    for at, (chain, found) in enumerate(zip(some, together, strict=True)):
        bits = {"0": chain_inputs(chain.dtypes, INPUTS)[:: 1 + at]}
        [alone] = adapter.chains(chain.steps[0], Company((chain,), road), bits)
        np.testing.assert_array_equal(found, alone, err_msg=f"{chain} on {road}")


@pytest.mark.parametrize("road", ort.CHAIN_ROADS)
def test_a_script_shows_the_answer_of_each_road(adapter: Any, road: str) -> None:
    chain = chain_named("onnx-cast:25/float32/bfloat16/int8")
    bits = {"0": np.array([0x42D58000], np.uint32)}
    company = Company((chain,), road)
    [answer] = adapter.chains(chain.steps[0], company, bits)
    script = adapter.reproduce_chains(chain.steps[0], company, bits)
    said: list[str] = []
    exec(compile(script, road, "exec"), {"print": lambda *words: said.append(" ".join(words))})
    assert said == [f"0x42d58000 -> {int(answer[0]):#x}"]


def test_a_road_that_has_no_kernel_is_declined(adapter: Any) -> None:
    chain = chain_named("onnx-cast:25/int4/int8/int4")
    bits = {"0": np.arange(16, dtype=np.uint8)}
    with pytest.raises(Unsupported, match="Reshape"):
        adapter.chains(chain.steps[0], Company((chain,), "level:all,before:reshape"), bits)


def test_constants_are_folded_at_load_so_that_they_make_no_chains() -> None:
    assert ort.Ort("folded").chain_roads == ()
