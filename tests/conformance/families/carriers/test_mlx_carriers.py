"""mlx's compiled road: what it fuses, and what it declines."""

from __future__ import annotations

import pytest

from oracles.adapters.mlx import Mlx
from oracles.protocol import Unsupported
from specs.selection import case_named
from tests.adapters.common import bits_of, onnx_case, run_script_here

PRODUCT = case_named("mlx-carriers:0.32/float32/float32/carrier:multiply-by-one")
BLOCKS = case_named("mx-blocks:1/float32/float8e4m3fn/rule:round-up/block:32")


@pytest.fixture(scope="module")
def compiled() -> Mlx:
    pytest.importorskip("mlx.core")
    return Mlx("compile")


def test_a_carrier_is_compiled(compiled: Mlx) -> None:
    bits = bits_of("float32", [0x80000000, 0x3F800001])
    assert compiled.carry(PRODUCT, bits).tolist() == bits.tolist()
    script = compiled.reproduce_carry(PRODUCT, bits)
    assert "mx.compile(" in script
    assert run_script_here(script) == ["0x80000000 -> 0x80000000", "0x3f800001 -> 0x3f800001"]


def test_a_cast_is_compiled(compiled: Mlx) -> None:
    case, tie = onnx_case("float32", "bfloat16"), bits_of("float32", [0x3F818000])
    assert compiled.cast(case, tie).tolist() == [0x3F82]
    assert "mx.compile(" in compiled.reproduce(case, tie)


def test_statements_and_blocks_are_not_compiled(compiled: Mlx) -> None:
    store = case_named("mlx-carriers:0.32/float32/float32/carrier:set-items")
    with pytest.raises(Unsupported, match="compiles no statements"):
        compiled.carry(store, bits_of("float32", [0]))
    with pytest.raises(Unsupported, match="mlx:compile makes no blocks; mlx does"):
        compiled.quantize(BLOCKS, {"x": bits_of("float32", [0] * 32)})
