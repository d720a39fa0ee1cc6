"""Pallas, the kernel language of jax: ``astype`` in a kernel, run by its interpreter on the CPU."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from oracles.adapters.dtype_table import names_in
from oracles.adapters.jax_executables import keep_executables
from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.script_text import mask_expression
from oracles.adapters.scripted import Function, Scripted, ScriptedOperation, Statements
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

DTYPES: Mapping[str, str] = {
    dtype: name for dtype, name in names_in("jax").items() if not dtype.startswith("complex")
}
"""The dtypes; the interpreter fills outputs before a kernel runs, but none of complex numbers."""

HEADER = """\
# pallas of jax {version}: {case}
import os

os.environ |= {{"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "NPROC": "1"}}

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

"""
KERNEL = """\
def kernel(x, y):
    y[...] = x[...].astype(y.dtype)


@jax.jit
def cast(x):
    out = jax.ShapeDtypeStruct(x.shape, jnp.{target})
    return pl.pallas_call(kernel, out, interpret=True)(x)


"""
ROW = 1 << 16
"""The elements of every row, because jax compiles a kernel anew for each length.

A row of this length costs little more than a short one.
"""
ROWS = f"np.pad(bits.ravel(), (0, -bits.size % {ROW} or {ROW})).reshape(-1, {ROW})"
"""The rows that hold ``bits``: at least one, also for no bits."""
OWN = "answers = answers[: bits.size].reshape(bits.shape)\n"


class Pallas(Scripted):
    """Casts by ``astype`` in a kernel that jax's ``pallas_call`` interprets.

    It says that a kernel is then lowered as a function of jax, whose casts are StableHLO's.
    """

    name = "pallas"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "astype in a kernel"}
    claims: tuple[str, ...] = ("stablehlo-convert",)

    def __init__(self, variant: str | None = None) -> None:
        require_variant(self.name, variant, VARIANTS)
        # XLA splits a loop by the number of processors, which it reads more than once.
        os.environ["NPROC"] = "1"
        jax: Any = load_own("jax", __file__)
        jax.config.update("jax_platforms", "cpu")
        # By default jax silently narrows 64-bit types.
        jax.config.update("jax_enable_x64", True)
        keep_executables(jax)
        self.version = str(jax.__version__)
        pallas = load_own("jax.experimental.pallas", __file__)
        super().__init__(jax=jax, jnp=jax.numpy, pl=pallas)

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype of which jax has no kernel."""
        if dtype not in DTYPES:
            raise Unsupported(f"pallas has no dtype {dtype}")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of rows of this dtype that begin with ``bits``."""
        return f"[\n    jax.device_put(row.view(jnp.{DTYPES[dtype]}))\n    for row in {ROWS}\n]"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, rows of this dtype."""
        storage = format_named(dtype).storage
        return f'np.concatenate(y).view("{storage}"){mask_expression(dtype)}'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that compile a kernel once, and cast each row by it."""
        once = KERNEL.format(target=DTYPES[case.target])
        return Statements("y = [*map(cast, x)]\n", once)

    def script(self, asked: object, pair: tuple[str, str], steps: Statements, bits: Bits) -> str:
        """Return a script that ends with the statement that binds ``answers`` to those of bits."""
        return super().script(asked, pair, steps, bits) + OWN

    def run(self, make: Function, case: Case, bits: Bits) -> Bits:
        """Run ``make`` on ``bits``; return the patterns of its result in the shape of ``bits``."""
        return _own(super().run(make, case, bits), bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a round trip through an array; raise Unsupported as ``cast``."""
        return _own(super().identity(dtype, bits), bits)


def _own(answers: Bits, bits: Bits) -> Bits:
    """Remove the padding of the last row from answers, and give them the shape of ``bits``."""
    return answers[: bits.size].reshape(bits.shape).copy()
