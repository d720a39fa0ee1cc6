"""numba: ``astype`` in a function that LLVM compiles, once per pair."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import format_named

ROADS: Mapping[str, str] = {"fastmath": "fastmath=True", "parallel": "parallel=True"}
"""By variant, the option of ``njit``."""
VARIANTS: tuple[str, ...] = tuple(ROADS)

DTYPES = (
    *("float64", "float32", "int64", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128"),
)
"""The dtypes; numba's target for CPUs has no float16."""

HEADER = """\
# numba {version}: {case}
import numba
import numpy as np

"""


class Numba(Scripted):
    """Casts by numpy's ``astype`` inside of functions that numba compiles."""

    name = "numba"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "astype in numba"}
    claims: tuple[str, ...] = ("numpy-astype:2.4",)
    dtypes = DTYPES

    def __init__(self, variant: str | None = None) -> None:
        numba: Any = load_own("numba", __file__)
        require_variant(self.name, variant, VARIANTS)
        super().__init__(numba=numba)
        self.version = str(numba.__version__)
        self._options = f"({ROADS[variant]})" if variant else ""

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that numba compiles no loop for."""
        if dtype not in DTYPES:
            raise Unsupported(f"numba has no dtype {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that a plain cast has not, and complex numbers made real."""
        super().require_parameters(operation, case)
        if case.source.startswith("complex") and not case.target.startswith("complex"):
            raise Unsupported("numba's astype makes no complex number a real one")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a contiguous array of this dtype."""
        return f"np.ascontiguousarray(bits).reshape(bits.shape).view(np.{np.dtype(dtype).name})"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f'y.view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that compile the cast of a pair once, and call it on a row."""
        once = (
            f"@numba.njit{self._options}\ndef cast(x):\n"
            f"    return x.astype(np.{np.dtype(case.target).name})\n"
        )
        return Statements("y = cast(x.reshape(-1)).reshape(x.shape)\n", once)
