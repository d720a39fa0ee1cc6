"""Polars: ``Series.cast``, strict or not, and with values that wrap around."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from oracles.adapters.columns import Columns
from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import ScriptedOperation, Statements
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

DTYPES = {
    "bool": "Boolean",
    **{f"float{bits}": f"Float{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64)},
}

HEADER = """\
# polars {version}: {case}
import numpy as np
import polars as pl

"""

REFUSE_NULLS = """\
if y.null_count():
    raise ValueError(f"the cast gives {y.null_count()} nulls")
"""


class Polars(Columns):
    """Casts by ``Series.cast``; without options, values wrap around. A null is an error."""

    name = title = "polars"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "polars.Series.cast"}
    claims: tuple[str, ...] = ("polars-cast:2",)
    dtypes = DTYPES
    options: ClassVar[Mapping[str, str]] = {"strict": "True", "wrap_numerical": "True"}

    def __init__(self, variant: str | None = None) -> None:
        pl: Any = load_own("polars", __file__)
        require_variant(self.name, variant, VARIANTS)
        super().__init__(pl=pl)
        self.version = str(pl.__version__)

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a series of this dtype, made from the array ``bits``."""
        return f"pl.Series(bits.reshape(-1).view(np.{dtype}))"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, a series of this dtype."""
        return f'y.to_numpy().view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that cast a series, and refuse its nulls if it may have some."""
        options = self.chosen(case)
        text = ", ".join(f"{name}={value}" for name, value in options.items())
        refuse = "" if options["strict"] == "True" else REFUSE_NULLS
        return Statements(f"y = x.cast(pl.{DTYPES[case.target]}, {text})\n{refuse}")
