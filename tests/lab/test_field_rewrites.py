"""Rewrites of the field, judged by their texts and by installed optimizers."""

from __future__ import annotations

import pytest

from conformance.extras.removable_casts.judged_rewrites import RewrittenChains
from conformance.extras.removable_casts.rewrites import rewrites
from conformance.extras.removable_casts.rewrites_page import page, summary_lines
from lab.removable.rewrites import (
    Changes,
    changes_by_text,
    decided,
    paths_left,
    questions_of,
)
from oracles.adapters.onnx_optimizers import OnnxOptimizer, Rewriter
from oracles.protocol import Unsupported
from specs.chains import chain_named

pytest.importorskip("bitwuzla")
SHORT = ("torch-cached-converts", "torch-pointless-convert-emulated", "onnxruntime-propagate-casts")


def by_text() -> list[Changes]:
    return [each for each in changes_by_text() if each.name in SHORT]


@pytest.mark.nightly
def test_rules_are_judged_by_what_they_leave() -> None:
    """Decides thousands of chains, on which only the lab's page depends."""
    changes = by_text()
    found = dict(decided(questions_of(changes), jobs=2))
    rules = {each.name: each.judged(found) for each in changes}
    cached = rules["torch-cached-converts"]
    assert cached.answers == {"never required": 2}
    assert cached.worst is not None
    assert cached.worst.instead == ""
    assert set(rules["torch-pointless-convert-emulated"].answers) == {"always"}
    assert rules["onnxruntime-propagate-casts"].answers == {"always": 1, "never recommended": 1}
    every = RewrittenChains(date="2026-01-02", rules=tuple(rules.values()), installed=())
    text = page(every)
    assert "| `torch-cached-converts` | plain-cast:open | 2 of 3,375 | 0 | 0 | 0 | 2 | 0 |" in text
    assert "left is nothing, which gives" in text
    assert all(f"| `{name}` |" in text for name in rewrites().rewrites)
    said = [*summary_lines(every.rules)]
    assert any("2 of 3,375 chains, 2 wrong, 0 not as recommended" in line for line in said)


def test_what_an_optimizer_leaves_is_read_from_its_models() -> None:
    """The optimizer drops the first cast of each chain, and refuses int8."""
    onnx = pytest.importorskip("onnx")

    def rewrite(model: object, level: str) -> object:
        graph = model.graph  # type: ignore[attr-defined]
        if any(each.type.tensor_type.elem_type == onnx.TensorProto.INT8 for each in graph.output):
            raise Unsupported("int8")
        for number in reversed(range(0, len(graph.node), 2)):
            graph.node[number + 1].input[0] = graph.node[number].input[0]
            del graph.node[number]
        return model

    optimizer = OnnxOptimizer(Rewriter("onnx", lambda: rewrite, "", ""))
    paths = ("float32/float16/float32", "float32/int32/int8", "float64/float32/float16")
    chains = [chain_named(f"onnx-cast:25/{path}") for path in paths]
    left, refused = paths_left(optimizer, chains, "level:default")
    assert refused == 1
    assert {chain.id: [case.target for case in casts] for chain, casts in left.items()} == {
        chains[0].id: ["float32"],
        chains[2].id: ["float16"],
    }
