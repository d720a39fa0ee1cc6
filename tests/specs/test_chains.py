"""Chains of casts: their ids, and how people may spell them."""

from __future__ import annotations

import pytest

from specs.chains import chain_named, chains_of, lossy, steps_of
from specs.errors import CastigateError


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("onnx-cast:25/float32/float16/float32", "onnx-cast:25/float32/float16/float32"),
        ("onnx-cast/f32/half/float", "onnx-cast:25/float32/float16/float32"),
        (
            "onnx-cast:25/float32/float8e4m3fn/saturate:0/float32",
            "onnx-cast:25/float32/float8e4m3fn/saturate:0/float32",
        ),
        # A mode that is left out is the default.
        (
            "onnx-cast/float32/float8_e4m3fn/float16/int8",
            "onnx-cast:25/float32/float8e4m3fn/saturate:1/float16/int8",
        ),
        (
            "pypto-cast/fp32/int32/mode:CAST_RINT/fp32",
            "pypto-cast:0.2/float32/int32/mode:CAST_RINT/float32/mode:CAST_NONE",
        ),
    ],
)
def test_a_chain_is_named_by_its_dtypes_and_the_modes_of_each_step(asked: str, meant: str) -> None:
    assert chain_named(asked).id == meant
    assert chain_named(meant).id == meant


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("onnx/float32/float16/float32", "unknown document `onnx`"),
        ("onnx-cast:7/float32/float16/float32", "has no version `7`"),
        ("onnx-cast:25/float32/float16", "is no chain of casts"),
        ("onnx-cast:25/saturate:0/float32/float16/float32", "is no chain of casts"),
        ("onnx-cast:25/float32/float16/float32/float16/float32", "is no chain of casts"),
        ("onnx-cast:25/float32/string/float32", "no cast from float32 to string for a chain"),
        ("onnx-cast:25/float32/float16/saturate:0/int8", "float32 to float16 with saturate:0"),
        ("onnx-cast:25/float32/int/bool", "may be int64 or int32"),
        ("torch-view/float32/float16/float32", "no cast from float32 to float16 for a chain"),
    ],
)
def test_what_is_no_chain_is_refused_in_one_line(asked: str, words: str) -> None:
    with pytest.raises(CastigateError, match=words) as refused:
        chain_named(asked)
    assert "\n" not in str(refused.value)


def test_the_direct_cast_has_the_modes_of_the_last_step() -> None:
    chain = chain_named("onnx-cast:25/float32/float16/float8e4m3fn/saturate:0")
    assert chain.direct.id == "onnx-cast:25/float32/float8e4m3fn/saturate:0"
    # If the direct pair has no such mode, the direct cast is the pair's only one.
    chain = chain_named("onnx-cast:25/float32/float8e4m3fn/saturate:0/float32")
    assert chain.direct.id == "onnx-cast:25/float32/float32"


def test_every_path_of_listed_numbers_is_a_chain() -> None:
    steps = steps_of("onnx-cast", "25")
    after = {case.source: 0 for case in steps}
    for case in steps:
        after[case.source] += 1
    chains = list(chains_of("onnx-cast", "25"))
    assert len(chains) == sum(after[case.target] for case in steps)
    assert len({chain.id for chain in chains}) == len(chains)
    assert not {"string", "complex64"} & {dtype for chain in chains for dtype in chain.dtypes}
    some = list(chains_of("onnx-cast", "25", has_all_modes=False))
    assert {each.id for each in some} < {each.id for each in chains}
    assert all(
        "saturate:0" not in each.steps[0].id or "saturate:0" not in each.steps[1].id
        for each in some
    )


def test_a_chain_through_a_dtype_that_holds_all_values_loses_nothing() -> None:
    names = {each.id for each in lossy(chains_of("onnx-cast", "25"))}
    assert "onnx-cast:25/float32/float16/float32" in names
    assert "onnx-cast:25/float16/float32/float16" not in names
    assert not list(chains_of("torch-view", "2"))


def test_a_document_that_only_follows_another_has_no_chains() -> None:
    assert list(chains_of("onnx-cast-like", "25")) == []
    assert next(chains_of("onnx-cast", "25"))
