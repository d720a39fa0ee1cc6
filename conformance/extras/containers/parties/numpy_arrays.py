"""Arrays of numpy, with its dtypes or those of ml_dtypes, for the parties that use them."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.extras.containers.parties.party import BIG, big_endian, tensor
from oracles.adapters.ml_dtypes import ML_DTYPES, MlDtypes
from oracles.adapters.numpy import Numpy
from oracles.adapters.numpy_arrays import NumpyArrays
from oracles.protocol import Bits, NotInstalled, Tensor
from specs.cases import Case

NAMES = {numpy_name: name for name, numpy_name in ML_DTYPES.items()}


class Arrays:
    """Makes numpy arrays from patterns, and returns the patterns of numpy arrays."""

    def __init__(self) -> None:
        self._adapter: NumpyArrays
        try:
            self._adapter = MlDtypes()
        except NotInstalled:
            self._adapter = Numpy()
        self.version = self._adapter.version

    def array(self, case: Case, bits: Bits) -> Bits:
        """Return an array of the case's dtype that shares the memory of ``bits``.

        For a big-endian case it is a big-endian copy. Raises Unsupported if there is no such dtype,
        or none in that byte order.
        """
        dtype = self._adapter.dtype(case.source)
        if BIG in case.modes:
            return big_endian(bits, dtype)
        return bits.view(dtype)

    def read(self, array: Any) -> Tensor:
        """Return the tensor that an array of either byte order holds."""
        found = np.asarray(array)
        if found.dtype.kind != "V" and not found.dtype.isnative:
            found = found.byteswap().view(found.dtype.newbyteorder())
        return tensor(self.name(found.dtype), found)

    def name(self, dtype: np.dtype[Any]) -> str:
        """Return Castigate's name of a numpy dtype, or numpy's own if Castigate has none."""
        if dtype.kind == "V" and dtype.name not in NAMES:
            return dtype.str[1:]
        return NAMES.get(dtype.name, dtype.name)

    def expression(self, dtype: str) -> str:
        """Return numpy's or ml_dtypes' expression for a dtype, as scripts use it."""
        return self._adapter.expression(dtype)
