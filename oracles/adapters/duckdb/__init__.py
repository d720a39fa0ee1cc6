"""DuckDB: ``CAST`` and ``TRY_CAST`` of a column in a query."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from oracles.adapters.columns import Columns
from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import ScriptedOperation, Statements, function_of
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named, is_exact

VARIANTS: tuple[str, ...] = ()

INTEGERS = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}
DTYPES = {
    "bool": "BOOLEAN",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    **{f"int{bits}": name for bits, name in INTEGERS.items()},
    **{f"uint{bits}": f"U{name}" for bits, name in INTEGERS.items()},
}

HEADER = """\
# duckdb {version}: {case}
import duckdb
import numpy as np
import pyarrow as pa

connection = duckdb.connect(config={{"threads": 1}})
"""

QUERY = 'y = connection.cursor().execute("SELECT {} AS y FROM x").fetchnumpy()["y"]\n'

REFUSE_NULLS = """\
if np.ma.is_masked(y):
    raise ValueError(f"the cast gives {np.ma.count_masked(y)} NULLs")
"""


class DuckDB(Columns):
    """Casts of a column of an Arrow table: of numpy's arrays DuckDB makes each NaN a NULL."""

    name = title = "duckdb"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "DuckDB's CAST"}
    claims: tuple[str, ...] = ("duckdb-cast:2.0",)
    dtypes = DTYPES
    options: ClassVar[Mapping[str, str]] = {"function": "CAST"}

    def __init__(self, variant: str | None = None) -> None:
        duckdb: Any = load_own("duckdb", __file__)
        require_variant(self.name, variant, VARIANTS)
        super().__init__(
            pa=load_own("pyarrow", __file__), connection=duckdb.connect(config={"threads": 1})
        )
        self.version = str(duckdb.__version__)

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that are no options, and for casts that need no check.

        DuckDB checks every number whose conversion could overflow. Other documents mean casts that
        do not, so that only those without a possible overflow can be compared with them.
        """
        super().require_parameters(operation, case)
        for dtype in (case.source, case.target):
            self.require_dtype(operation, dtype)
        source, target = format_named(case.source), format_named(case.target)
        may_overflow = target.kind in ("integer", "float") and not is_exact(source, target)
        if may_overflow and not case.mode.keys() & self.options.keys():
            raise Unsupported(f"DuckDB has no unchecked cast {case.source} to {case.target}")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a table with a column ``x``, made from ``bits``."""
        return f'pa.table({{"x": bits.reshape(-1).view(np.{dtype})}})'

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f'np.asarray(y).view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that cast the column of a table, and refuse NULLs."""
        function = self.chosen(case)["function"]
        refuse = "" if function == "CAST" else REFUSE_NULLS
        query = QUERY.format(f"{function}(x AS {DTYPES[case.target]})")
        return Statements(query + refuse)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a query has selected them; raise Unsupported as ``cast`` does."""
        self.require_dtype("copy", dtype)
        select = function_of(self.names, "x", QUERY.format("x"), "y")
        return self.patterns(dtype, select(self.tensor(dtype, bits))).reshape(bits.shape)
