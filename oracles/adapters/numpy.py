"""numpy's ``astype`` and ``view`` between its own dtypes, and its ``astype`` of the array API."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.array_api import CALLS, CASTS, Namespace, standard_claims
from oracles.adapters.array_api_carriers import DOCUMENT, carriers_in
from oracles.adapters.carriers import Carrying
from oracles.adapters.dtype_table import names_in
from oracles.adapters.numpy_arrays import NumpyArrays
from oracles.adapters.numpy_carriers import CARRIERS
from oracles.adapters.refusals import require_variant
from oracles.protocol import Bits, Returned, Unsupported
from specs.cases import Call, Case

VARIANTS: tuple[str, ...] = ()

DTYPES = tuple(names_in("numpy"))

HEADER = """\
# numpy {version}: {case}
import numpy as np

"""

NAMESPACE = Namespace("numpy", HEADER, "np", "bits.view(np.{})", "{}")

SAME_VALUE_SINCE = (2, 4)


class Numpy(Carrying, NumpyArrays):
    """Casts by ``astype`` in a casting mode, bitcasts by ``view``, and makes ``astype`` calls."""

    name = "numpy"
    header = HEADER
    dtypes = DTYPES
    carriers = CARRIERS
    carriers_of: ClassVar[Mapping[str, Mapping[str, str]]] = {DOCUMENT: carriers_in("np")}

    def __init__(self, variant: str | None = None) -> None:
        require_variant(self.name, variant, VARIANTS)
        super().__init__()
        self.version = np.__version__
        self.claims = (
            _own_document(),
            "numpy-carriers",
            *standard_claims(np.__array_api_version__, (CASTS, CALLS, DOCUMENT)),
        )

    def casting(self, case: Case) -> str:
        """Return the casting mode that a case names, or ``unsafe``, numpy's own default.

        Raises Unsupported as ``require_plain`` does, unless the casting mode is the only parameter.
        """
        if set(case.mode) == {"casting"}:
            return case.mode["casting"]
        return super().casting(case)

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make an ``astype`` call of the array API standard; return its result and the array.

        The array is as the call left it. Raises Unsupported for any other call, and for a dtype or
        a kind of argument that numpy lacks.
        """
        return NAMESPACE.make(self.names, call, bits, self.dtype, nullcontext())

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that makes an ``astype`` of the array API standard.

        Raises Unsupported for any other call, and for a kind of argument that numpy lacks.
        """
        return NAMESPACE.call_script(self.version, case, call, bits)

    def dtype(self, dtype: str) -> np.dtype[Any]:
        """Return the dtype of the same name; raise Unsupported if numpy has none."""
        if dtype not in DTYPES:
            raise Unsupported(f"numpy has no dtype {dtype}")
        return np.dtype(dtype)

    def dtype_text(self, dtype: str) -> str:
        """Return the Python expression of this dtype, as ``expression`` does."""
        return self.expression(dtype)

    def expression(self, dtype: str) -> str:
        """Return the Python expression of this dtype in scripts.

        Raises Unsupported if numpy has no such dtype.
        """
        return f"np.{self.dtype(dtype).name}"


def _own_document() -> str:
    """Return the claim of the version of ``numpy-astype`` that describes the installed numpy."""
    installed = tuple(int(part) for part in np.__version__.split(".")[:2])
    return f"numpy-astype:{'2.4' if installed >= SAME_VALUE_SINCE else '2.3'}"
