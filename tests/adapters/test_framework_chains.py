"""Chains by large frameworks: scripts print each road's answers; company changes no answer."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from conformance.families.chains.composition import chain_inputs
from oracles.adapters.scripted import Chained
from oracles.protocol import Bits, NotInstalled, Unsupported
from oracles.registry import load_backend
from specs.cases import Case
from specs.chains import Chain, Company, chain_named
from specs.errors import CastigateError
from tests.adapters.common import kept_environment

BACKENDS = (
    "onnx",
    "jax",
    "jax:jit",
    "tensorflow",
    "tensorflow:function",
    "tensorflow:xla",
    "openvino:cpu",
    "openvino:cpu-dynamic",
    "tvm",
    "tvm:static",
)
CHAINS = tuple(
    chain_named(f"onnx-cast:25/{path}")
    for path in (
        "float32/float16/float32",
        "float32/int32/bool",
        "int32/float32/bfloat16",
        "float32/bfloat16/int8",
        "float64/float32/float16",
    )
)


@pytest.fixture(scope="module", params=BACKENDS)
def adapter(request: pytest.FixtureRequest) -> Any:
    with kept_environment():
        try:
            yield load_backend(request.param).oracle
        except (CastigateError, NotInstalled) as missing:
            pytest.skip(str(missing))


def ends(adapter: Any, chains: tuple[Chain, ...], road: str, bits: list[Bits]) -> list[Bits]:
    # An input belongs to the chain whose number it has, in whichever order the inputs come.
    given = {f"{number}": bits[number] for number in reversed(range(len(bits)))}
    found: list[Bits] = adapter.chains(chains[0].steps[0], Company(chains, road), given)
    return found


def test_chains_of_other_documents_are_answered(adapter: Any) -> None:
    """Their versions are no numbers of an opset."""
    for edition in ("numpy-astype:2.3", "openvino-convert:1"):
        chain = chain_named(f"{edition}/float32/int32/float64")
        bits = np.array([1.5, -2.5], np.float32).view(np.uint32)
        answers = [ends(adapter, (chain,), road, [bits])[0] for road in adapter.chain_roads]
        assert [each.view(np.float64).tolist() for each in answers] == [[1.0, -2.0]] * len(answers)


def test_a_chain_from_a_dtype_that_is_missing_is_refused(adapter: Any) -> None:
    if not isinstance(adapter, Chained):
        pytest.skip("what the framework says of it comes through")
    dtypes = ("float6e2m3", "float32", "float16")
    chain = Chain(tuple(Case("plain-cast", "open", *pair) for pair in pairwise(dtypes)))
    for road in adapter.chain_roads:
        with pytest.raises(Unsupported, match="float6e2m3"):
            ends(adapter, (chain,), road, [np.arange(4, dtype=np.uint8)])


def test_company_changes_no_answer(adapter: Any) -> None:
    inputs = [chain_inputs(chain.dtypes, 300)[: 97 + at] for at, chain in enumerate(CHAINS)]
    for road in adapter.chain_roads:
        together = ends(adapter, CHAINS, road, inputs)
        for chain, own, found in zip(CHAINS, inputs, together, strict=True):
            [alone] = ends(adapter, (chain,), road, [own])
            np.testing.assert_array_equal(found, alone, f"{chain} on {road}")


def test_a_script_shows_the_answer_of_each_road(
    adapter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    bits = np.array([0x4788B800, 0x3F80068E, 0x42D58000], np.uint32)  # 70000, 1.0002, 106.75
    for road in adapter.chain_roads:
        for chain in (each for each in CHAINS if each.source == "float32"):
            company = Company((chain,), road)
            script = adapter.reproduce_chains(chain.steps[0], company, {"0": bits})
            with kept_environment(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numpy warns of overflow
                exec(compile(script, road, "exec"), {"__name__": "script"})
            said = [line for line in capsys.readouterr().out.splitlines() if "->" in line]
            [answers] = ends(adapter, (chain,), road, [bits])
            shown = [int(line.partition("-> ")[2], 16) for line in said]
            assert shown == answers.tolist(), f"{chain} on {road}"


def test_a_mode_or_dtype_that_is_missing_is_declined(adapter: Any) -> None:
    # No framework has a rounding mode here, and TensorFlow has no float8e8m0.
    name = "pypto-cast:0.2/float32/float16/int8/mode:CAST_CEIL"
    if adapter.name == "tensorflow":
        name = "onnx-cast:25/float32/float8e8m0/float32"
    chain = chain_named(name)
    with pytest.raises(Unsupported):
        ends(adapter, (chain,), adapter.chain_roads[0], [np.zeros(2, np.uint32)])
