"""mlx on the CPU: ``astype`` and ``view`` of arrays, blocks by ``quantize``, and carriers.

The variant `compile` asks casts and carriers in functions that ``mx.compile`` fuses, for which mlx
runs the machine's C++ compiler.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from oracles.adapters.block_libraries import BlockCase
from oracles.adapters.carriers import Carrying
from oracles.adapters.mlx.blocks import MlxBlocks
from oracles.adapters.mlx.carriers import CARRIERS
from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import ScriptedOperation, Statements, call_steps
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named

COMPILE = "compile"
VARIANTS: tuple[str, ...] = (COMPILE,)

DTYPES: Mapping[str, str] = {
    **{name: name for name in ("float64", "float32", "float16", "bfloat16", "complex64")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (64, 32, 16, 8)},
    "bool": "bool_",
}
"""By dtype, mlx's name of it."""

HEADER = """\
# mlx {version}: {case}
import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)

"""


class Mlx(Carrying, MlxBlocks):
    """Casts by ``astype``, reads bits by ``view``, makes blocks and carries values."""

    name = "mlx"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {
        "cast": "astype of mlx",
        "bitcast": "view of mlx",
    }
    claims: tuple[str, ...] = (*MlxBlocks.claims, "mlx-carriers")
    carriers = CARRIERS

    def __init__(self, variant: str | None = None) -> None:
        mlx: Any = load_own("mlx.core", __file__)
        require_variant(self.name, variant, VARIANTS)
        MlxBlocks.__init__(self)
        mlx.set_default_device(mlx.cpu)
        Carrying.__init__(self, mx=mlx)
        if variant == COMPILE:
            self.maker = ("mx.compile", "")
            self.claims = ("mlx-carriers",)

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that mlx lacks."""
        if dtype not in DTYPES:
            raise Unsupported(f"mlx has no dtype {dtype}")

    def dtype_text(self, dtype: str) -> str:
        """Return the Python expression of this dtype."""
        return f"mx.{DTYPES[dtype]}"

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of an array of this dtype, made from ``bits``."""
        return f"mx.array(bits.copy()).view(mx.{DTYPES[dtype]})"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f"np.array(y.view(mx.{format_named(dtype).storage}))"

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that cast ``x``, or view it, by a compiled call in `compile`."""
        call = "view" if operation == "bitcast" else "astype"
        return call_steps(f"x.{call}(mx.{DTYPES[case.target]})", *self.maker)

    def lines(self, asked: BlockCase) -> list[str]:
        """Return the lines that make or decode blocks; raise Unsupported in `compile`."""
        if self.maker[0]:
            raise Unsupported(f"mlx:{COMPILE} makes no blocks; mlx does")
        return super().lines(asked)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return what ``view`` makes of bits, in its shape; raise Unsupported as ``require``."""
        return self.answer("bitcast", case, bits)
