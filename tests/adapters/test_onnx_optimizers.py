"""Optimizers of ONNX models: the reference executes the graphs that they leave, node by node."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from conformance.families.chains.composition import chain_inputs
from conformance.families.reference import Reference
from oracles.adapters.onnx_models import ModelBuilder
from oracles.adapters.onnx_optimizers import REWRITERS, GraphCasts, OnnxOptimizer, Rewriter
from oracles.protocol import Bits, NotInstalled, Unsupported
from specs.chains import Chain, Company, chain_named, chains_of, lossy
from specs.selection import case_named

onnx = pytest.importorskip("onnx")
NARROWING = "onnx-cast:25/float64/float32/float16"
TWICE_ROUNDED = np.array([0x4011120000000001], np.uint64)
BY_STEPS, BY_ONE = 0x4444, 0x4445


def optimizer(rewriter: Rewriter) -> Any:
    try:
        return OnnxOptimizer(rewriter)
    except NotInstalled as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=REWRITERS, ids=lambda each: each.name or each.package)
def adapter(request: pytest.FixtureRequest) -> Any:
    return optimizer(request.param)


def made(adapter: Any, chain: Chain, road: str, bits: Bits) -> Bits:
    [answer] = adapter.chains(chain.steps[0], Company((chain,), road), {"0": bits})
    return np.asarray(answer)


def planted(drop: int) -> Rewriter:
    """An optimizer that removes the node at index ``drop``."""

    def rewrite(model: Any, level: str) -> Any:
        name = model.graph.node[drop].input[0]
        del model.graph.node[drop]
        model.graph.node[drop].input[0] = name
        return model

    return Rewriter("onnx", lambda: rewrite, "", "", name="planted")


def test_what_is_left_is_executed_and_nothing_else() -> None:
    chain = chain_named(NARROWING)
    careless = OnnxOptimizer(planted(drop=0))
    careful = OnnxOptimizer(Rewriter("onnx", lambda: lambda model, level: model, "", ""))
    assert made(careless, chain, "level:default", TWICE_ROUNDED).tolist() == [BY_ONE]
    assert made(careful, chain, "level:default", TWICE_ROUNDED).tolist() == [BY_STEPS]


def test_no_optimizer_removes_a_cast_whose_value_is_an_output(adapter: Any) -> None:
    road = next(each for each in adapter.chain_roads if "middle:output" in each)
    assert made(adapter, chain_named(NARROWING), road, TWICE_ROUNDED).tolist() == [BY_STEPS]


def test_a_script_shows_what_is_left_on_each_road(
    adapter: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chain = chain_named(NARROWING)
    for road in adapter.chain_roads:
        company, bits = Company((chain,), road), {"0": TWICE_ROUNDED}
        answer = int(made(adapter, chain, road, TWICE_ROUNDED)[0])
        script = adapter.reproduce_chains(chain.steps[0], company, bits)
        assert sum(map(bool, script.splitlines())) <= 15, script
        said: list[str] = []
        exec(compile(script, road, "exec"), {"print": said.append})
        [graph] = said
        assert graph.count("= Cast") == len(adapter.left(company)[0]), script
        words = f"the casts of the model make {BY_STEPS:#x}, and those that are left {answer:#x}."
        assert words in script


def test_a_script_says_so_where_the_casts_that_are_left_may_make_anything() -> None:
    """128 fits int16, whose low byte is required; a cast straight to int8 leaves it open."""
    careless = OnnxOptimizer(planted(drop=0))
    chain = chain_named("onnx-cast:25/float32/int16/int8")
    company, bits = Company((chain,), "level:default"), {"0": np.array([0x43000000], np.uint32)}
    script = careless.reproduce_chains(chain.steps[0], company, bits)
    assert "make 0x80, and those that are left may make anything." in script


def test_company_changes_no_answer(adapter: Any) -> None:
    chance = random.Random(adapter.name)
    every = chance.sample(list(lossy(chains_of("onnx-cast", "25", has_all_modes=False))), 15)
    for road in adapter.chain_roads:
        alone: dict[Chain, Bits] = {}
        for chain in every:
            # onnxruntime writes no model for which it lacks a kernel.
            with suppress(Unsupported):
                alone[chain] = made(adapter, chain, road, chain_inputs(chain.dtypes, 300))
        assert len(alone) > 4
        bits = {f"{at}": chain_inputs(each.dtypes, 300) for at, each in enumerate(alone)}
        first = next(iter(alone)).steps[0]
        together = adapter.chains(first, Company(tuple(alone), road), bits)
        for chain, found in zip(alone, together, strict=True):
            np.testing.assert_array_equal(found, alone[chain], err_msg=f"{chain} on {road}")


@pytest.mark.parametrize(
    ("case", "given", "answer"),
    [
        ("onnx-cast:25/float32/float16", 0x3F800000, 0x3C00),
        ("onnx-cast:25/float32/float8e4m3fn/saturate:0", 0x7F800000, 0x7F),
        ("onnx-cast:25/float32/float8e8m0/saturate:1/round_mode:down", 0x3FC00000, 0x7F),
    ],
)
def test_a_single_cast_keeps_its_modes(adapter: Any, case: str, given: int, answer: int) -> None:
    bits = np.array([[given]], np.uint32)
    assert adapter.cast(case_named(case), bits).tolist() == [[answer]]


class TestGraphs:
    """The interpreter, on graphs that an optimizer might leave."""

    @staticmethod
    def run(text: str, bits: Bits) -> Any:
        casts = GraphCasts(onnx, Reference())
        model = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["": 25]>\n{text}')
        return casts.run(model, {"x": bits})

    def test_attributes_that_are_left_out_are_the_documents_defaults(self) -> None:
        bits = np.array([0x3FC00000], np.uint32)  # 1.5
        up = self.run("g (float[n] x) => (float8e8m0[n] y) { y = Cast<to = 24>(x) }", bits)
        assert up["y"].tolist() == [0x80]

    def test_a_move_of_bits_is_no_cast(self) -> None:
        text = "g (float[n] x) => (float16[n] y) { a = Identity(x) y = Cast<to = 10>(a) }"
        assert self.run(text, np.array([0x3F800000], np.uint32))["y"].tolist() == [0x3C00]

    def test_another_node_is_not_executed(self) -> None:
        text = "g (float[n] x) => (float[n] y) { y = Neg(x) }"
        with pytest.raises(Unsupported, match="node Neg"):
            self.run(text, np.zeros(1, np.uint32))

    def test_an_output_of_another_dtype_than_the_graph_says(self) -> None:
        text = "g (float[n] x) => (double[n] y) { y = Cast<to = 10>(x) }"
        with pytest.raises(TypeError, match="asked for float64, got float16"):
            self.run(text, np.zeros(1, np.uint32))


def test_an_old_opset_names_dtypes_by_text() -> None:
    adapter = OnnxOptimizer(planted(drop=0))
    with pytest.raises(Unsupported, match="only as a number"):
        adapter.cast(case_named("onnx-cast:1/float32/float16"), np.zeros(1, np.uint32))


def test_the_builder_refuses_dtypes_that_the_package_lacks() -> None:
    with pytest.raises(Unsupported, match="FLOAT8E3M4"):
        ModelBuilder(onnx).element_type("float8e3m4")
