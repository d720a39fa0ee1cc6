"""numpy's ``astype`` and ``view`` between its own dtypes and those of ml_dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracles.adapters.dtype_table import names_in
from oracles.adapters.numpy_arrays import NumpyArrays
from oracles.adapters.refusals import first_line, load, require_variant
from oracles.protocol import Bits, Unsupported
from specs.cases import Case

VARIANTS: tuple[str, ...] = ()

ML_DTYPES: Mapping[str, str] = names_in("ml")
"""By dtype that ml_dtypes adds, its name there; numpy has all others, under the same names."""

HEADER = """\
# ml_dtypes {version}: {case}
import ml_dtypes
import numpy as np

"""


class MlDtypes(NumpyArrays):
    """Casts by ``astype`` and bitcasts by ``view`` between dtypes of numpy and ml_dtypes."""

    name = "ml_dtypes"
    # No document describes what ``astype`` does between these dtypes.
    claims: tuple[str, ...] = ()
    header = HEADER

    def __init__(self, variant: str | None = None) -> None:
        self._ml_dtypes: Any = load("ml_dtypes", "ml-dtypes")
        require_variant(self.name, variant, VARIANTS)
        super().__init__(ml_dtypes=self._ml_dtypes)
        self.version = f"{self._ml_dtypes.__version__}+numpy.{np.__version__}"

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one ``astype``, which ignores modes such as ``saturate``.

        Raises Unsupported for modes that ``require_plain`` refuses, for a dtype that the installed
        ml_dtypes lacks, and for a pair of dtypes that ``astype`` refuses.
        """
        try:
            return super().cast(case, bits)
        except TypeError as error:
            raise Unsupported(first_line(error)) from None

    def dtype(self, dtype: str) -> np.dtype[Any]:
        """Return numpy's dtype object of a dtype, which may be one that ml_dtypes adds.

        Raises Unsupported if the installed ml_dtypes lacks it.
        """
        if dtype == "string":
            return np.dtype(np.str_)
        if dtype not in ML_DTYPES:
            return np.dtype(dtype)
        scalar_type: Any = getattr(self._ml_dtypes, ML_DTYPES[dtype], None)
        if scalar_type is None:
            version = self._ml_dtypes.__version__
            raise Unsupported(f"ml_dtypes {version} has no {ML_DTYPES[dtype]}")
        found: np.dtype[Any] = np.dtype(scalar_type)
        return found

    def expression(self, dtype: str) -> str:
        """Return the Python expression of this dtype in scripts."""
        if dtype == "string":
            return "np.str_"
        return f"ml_dtypes.{ML_DTYPES[dtype]}" if dtype in ML_DTYPES else f"np.{dtype}"
