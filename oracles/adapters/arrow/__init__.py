"""Arrow: ``cast`` of arrays by pyarrow, with the checks of ``CastOptions`` on or off."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from oracles.adapters.columns import Columns
from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import ScriptedOperation, Statements
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

DTYPES = {
    "bool": "bool_",
    **{name: name for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64")},
    **{name: name for name in ("uint8", "uint16", "uint32", "uint64")},
}
"""By dtype, the function of pyarrow that returns it."""

HEADER = """\
# pyarrow {version}: {case}
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

"""


class Arrow(Columns):
    """Casts by ``pyarrow.compute.cast``; without options, overflow and truncation are allowed."""

    name = title = "arrow"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "pyarrow.compute.cast"}
    claims: tuple[str, ...] = ("arrow-cast:26",)
    dtypes = DTYPES
    options: ClassVar[Mapping[str, str]] = {
        "allow_int_overflow": "True",
        "allow_float_truncate": "True",
    }

    def __init__(self, variant: str | None = None) -> None:
        self._pa: Any = load_own("pyarrow", __file__)
        require_variant(self.name, variant, VARIANTS)
        super().__init__(pa=self._pa, pc=load_own("pyarrow.compute", __file__))
        self.version = str(self._pa.__version__)
        self._has_kernel = lru_cache(None)(self._casts)

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that are no options, and for a cast that Arrow lacks."""
        super().require_parameters(operation, case)
        for dtype in (case.source, case.target):
            self.require_dtype(operation, dtype)
        if not self._has_kernel(case.source, case.target):
            raise Unsupported(f"Arrow casts no {case.source} to {case.target}")

    def _casts(self, source: str, target: str) -> bool:
        try:
            self._pa.nulls(0, self._type(source)).cast(self._type(target))
        except self._pa.ArrowNotImplementedError:
            return False
        return True

    def _type(self, dtype: str) -> Any:
        return getattr(self._pa, DTYPES[dtype])()

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of an array of this dtype, made from the array ``bits``."""
        return f"pa.array(bits.reshape(-1).view(np.{dtype}))"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f'y.to_numpy(zero_copy_only=False).view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that make the options once, and cast an array."""
        options = ", ".join(f"{name}={value}" for name, value in self.chosen(case).items())
        once = f"options = pc.CastOptions(pa.{DTYPES[case.target]}(), {options})\n"
        return Statements("y = pc.cast(x, options=options)\n", once)
