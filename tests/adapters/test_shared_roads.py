"""Which cases share a road, and so their answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from oracles.adapters import onnx_models
from oracles.protocol import Unsupported, WithRoad
from specs.cases import Case
from specs.editions import editions
from specs.loader import documents
from tests.adapters.common import ADAPTERS, ROADS, Road, bits_of, onnx_case


def all_cases(source: str) -> list[Case]:
    """What every document asks of a source."""
    made = (one for document in documents().values() for one in editions(document))
    return [case for one in made for case in one.cases() if case.source == source]


def refusal(ask: Callable[[], Any]) -> str | None:
    """Why the oracle does not offer what it was asked for, if so."""
    try:
        ask()
    except Unsupported as error:
        return str(error)
    return None


class TestRoads:
    @pytest.mark.parametrize("source", ["float32", "int4", "float8e5m2"])
    @pytest.mark.parametrize("road", ROADS[:3])
    def test_one_road_one_model(self, road: Road, source: str) -> None:
        oracle = ADAPTERS[road[0]].make(road[1])
        models: dict[str, set[bytes]] = defaultdict(set)
        for case in all_cases(source):
            with suppress(Unsupported):
                graph = onnx_models.cast_graph(case)
                model = oracle._models.with_input(graph, 1).SerializeToString()
                models[oracle.road(case)].add(model)
        assert [name for name, made in models.items() if len(made) != 1] == []
        assert len(set().union(*models.values())) == len(models) > 100

    @pytest.mark.parametrize(("name", "targets"), [("torch", 20), ("ml_dtypes", 31)])
    def test_one_road_one_pair(self, name: str, targets: int) -> None:
        oracle = ADAPTERS[name].make()
        roads: set[str] = set()
        for case in all_cases("float32"):
            with suppress(Unsupported):
                assert oracle.road(case) == f"float32->{case.target}"
                roads.add(oracle.road(case))
        assert len(roads) == targets

    @pytest.mark.parametrize("road", ROADS[:3])
    def test_what_a_model_depends_on(self, road: Road) -> None:
        oracle = ADAPTERS[road[0]].make(road[1])
        assert isinstance(oracle, WithRoad)
        plain = onnx_case("float32", "float8e8m0", 25, saturate="1", round_mode="up")
        name = "opset 25, float32->float8e8m0, saturate=1, round_mode=up"
        assert oracle.road(plain) == name
        others = [
            onnx_case("float32", "float8e8m0", 24, saturate="1", round_mode="up"),
            onnx_case("float32", "float8e8m0", 25, saturate="0", round_mode="up"),
            onnx_case("float32", "float8e8m0", 25, saturate="1", round_mode="down"),
            onnx_case("float32", "float8e5m2", 25, saturate="1", round_mode="up"),
            onnx_case("float16", "float8e8m0", 25, saturate="1", round_mode="up"),
        ]
        assert len({oracle.road(case) for case in (plain, *others)}) == 6

    def test_documents_that_build_the_same_model_share_its_road(self) -> None:
        modes = (("mode", "CAST_NONE"), ("satmode", "off"))
        pypto = Case("pypto-cast", "0.2", "float32", "float16", modes)
        for name in ADAPTERS:
            oracle = ADAPTERS[name].make()
            assert oracle.road(pypto) == oracle.road(onnx_case("float32", "float16"))

    def test_a_road_refuses_only_what_cast_refuses(self, oracle: Any) -> None:
        refused, zero = 0, bits_of("float32", [0])
        for case in all_cases("float32"):
            reason = refusal(partial(oracle.road, case))
            if reason is not None:
                refused += 1
                assert refusal(partial(oracle.cast, case, zero)) == reason
        assert refused

    def test_a_road_refuses_a_mode_and_a_dtype_that_are_not_there(self, oracle: Any) -> None:
        with pytest.raises(Unsupported, match=r"takes no .*: CAST_FLOOR$"):
            oracle.road(onnx_case("float32", "float16", mode="CAST_FLOOR"))
        if oracle.name == "torch":
            for pair in (("float32", "int4"), ("int4", "float32")):
                with pytest.raises(Unsupported, match="no dtype castable as int4"):
                    oracle.road(onnx_case(*pair))
