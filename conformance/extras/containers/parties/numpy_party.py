"""numpy, with the dtypes of ml_dtypes where that is installed."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np

from conformance.extras.containers.parties.dlpack_memory import DlpackExporter, exported
from conformance.extras.containers.parties.numpy_arrays import Arrays
from conformance.extras.containers.parties.party import ContainerRoad, Party
from conformance.extras.containers.parties.safetensors_files import safetensors_road
from oracles.adapters.refusals import first_line
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case

MAKE = "import ml_dtypes\nx = bits.view({dtype})\n"


class NumpyParty(Party):
    """Writes and reads numpy's files, safetensors and DLPack by numpy's arrays."""

    name = "numpy"

    def __init__(self) -> None:
        self._arrays = Arrays()
        self.version = self._arrays.version
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how numpy writes and reads ``npy``, ``npz``, ``safetensors`` and ``dlpack``."""
        return {
            "npy": ContainerRoad(
                self._save,
                self._load,
                "import io\n"
                + MAKE
                + "file = io.BytesIO()\nnp.save(file, x)\ncontent = file.getvalue()\n",
                "import io\ny = np.load(io.BytesIO(content))\n",
            ),
            "npz": ContainerRoad(
                self._savez,
                self._load_npz,
                "import io\n"
                + MAKE
                + "file = io.BytesIO()\nnp.savez(file, x=x)\ncontent = file.getvalue()\n",
                'import io\ny = np.load(io.BytesIO(content))["x"]\n',
            ),
            "safetensors": safetensors_road("numpy", self._arrays.array, self._arrays.read, MAKE),
            "dlpack": ContainerRoad(
                self._export, self._import, MAKE + "content = x\n", "y = np.from_dlpack(content)\n"
            ),
        }

    def dtype_expression(self, dtype: str) -> str:
        """Return numpy's or ml_dtypes' expression for a dtype, as scripts use it."""
        return self._arrays.expression(dtype)

    def _save(self, case: Case, bits: Bits) -> bytes:
        file = io.BytesIO()
        np.save(file, self._arrays.array(case, bits), allow_pickle=False)
        return file.getvalue()

    def _load(self, case: Case, content: bytes) -> Tensor:
        return self._arrays.read(np.load(io.BytesIO(content)))

    def _savez(self, case: Case, bits: Bits) -> bytes:
        file = io.BytesIO()
        np.savez(file, x=self._arrays.array(case, bits), allow_pickle=False)
        return file.getvalue()

    def _load_npz(self, case: Case, content: bytes) -> Tensor:
        return self._arrays.read(np.load(io.BytesIO(content))["x"])

    def _export(self, case: Case, bits: Bits) -> bytes:
        try:
            return exported(self._arrays.array(case, bits))
        except BufferError as error:
            raise Unsupported(first_line(error)) from None

    def _import(self, case: Case, content: bytes) -> Tensor:
        exporter = DlpackExporter(content)
        return self._arrays.read(np.from_dlpack(exporter).copy())
