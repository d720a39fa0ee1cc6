"""TensorFlow and paddle, whose tensors travel as safetensors and by DLPack."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.extras.containers.parties.dlpack_memory import DlpackExporter, exported, of_capsule
from conformance.extras.containers.parties.numpy_arrays import Arrays
from conformance.extras.containers.parties.party import BIG, ContainerRoad, Party, tensor
from conformance.extras.containers.parties.safetensors_files import safetensors_road
from oracles.adapters.dtype_table import names_in
from oracles.adapters.paddle_tensors import PaddleTensors, load_paddle
from oracles.adapters.refusals import first_line, load
from oracles.adapters.tensorflow import ENVIRONMENT
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import formats

TF_MAKE = "import ml_dtypes, tensorflow as tf\nx = tf.constant(bits.view({dtype}))\n"
PADDLE_MAKE = "import ml_dtypes, paddle\nx = paddle.to_tensor(bits.view({dtype}))\n"
NO_ORDER = "{} has no tensors of the other byte order"


class TensorFlowParty(Party):
    """Writes and reads containers by TensorFlow's eager tensors on the CPU."""

    name = "tensorflow"

    def __init__(self) -> None:
        os.environ.update(ENVIRONMENT)
        self._tf: Any = load("tensorflow", "tensorflow")
        self._arrays = Arrays()
        self.version = str(self._tf.__version__)
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how TensorFlow writes and reads ``safetensors`` and ``dlpack``."""
        return {
            "safetensors": safetensors_road(
                "tensorflow", self._made, self._read, TF_MAKE, "y = y.numpy()\n"
            ),
            "dlpack": ContainerRoad(
                self._export,
                self._import,
                TF_MAKE + "content = x\n",
                "import tensorflow as tf\n"
                "y = tf.experimental.dlpack.from_dlpack(content.__dlpack__()).numpy()\n",
            ),
        }

    def dtype_expression(self, dtype: str) -> str:
        """Return numpy's or ml_dtypes' expression for a dtype, as scripts use it."""
        return self._arrays.expression(dtype)

    def _made(self, case: Case, bits: Bits) -> Any:
        if BIG in case.modes:
            raise Unsupported(NO_ORDER.format("TensorFlow"))
        try:
            return self._tf.constant(self._arrays.array(case, bits))
        except (TypeError, ValueError) as error:
            raise Unsupported(first_line(error)) from None

    def _read(self, found: Any) -> Tensor:
        return self._arrays.read(found.numpy())

    def _export(self, case: Case, bits: Bits) -> bytes:
        return of_capsule(self._tf.experimental.dlpack.to_dlpack(self._made(case, bits)))

    def _import(self, case: Case, content: bytes) -> Tensor:
        exporter = DlpackExporter(content)
        found = self._tf.experimental.dlpack.from_dlpack(exporter.__dlpack__())
        return self._arrays.read(found.numpy().copy())


class PaddleParty(Party):
    """Writes and reads containers by paddle's dynamic tensors on the CPU."""

    name = "paddle"

    def __init__(self) -> None:
        self._paddle: Any = load_paddle()
        self._tensors = PaddleTensors(self._paddle)
        self.version = str(self._paddle.__version__)
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how paddle writes and reads ``safetensors`` and ``dlpack``."""
        return {
            "safetensors": safetensors_road(
                "paddle", self._made, self._read, PADDLE_MAKE, "y = y.numpy()\n"
            ),
            "dlpack": ContainerRoad(
                self._export,
                self._import,
                PADDLE_MAKE + "content = x\n",
                "import paddle\ny = paddle.from_dlpack(content).clone().numpy()\n",
            ),
        }

    def dtype_expression(self, dtype: str) -> str:
        """Return numpy's or ml_dtypes' expression for a dtype, as scripts use it."""
        added = names_in("ml")
        return f"ml_dtypes.{added[dtype]}" if dtype in added else f"np.{dtype}"

    def _made(self, case: Case, bits: Bits) -> Any:
        if BIG in case.modes:
            raise Unsupported(NO_ORDER.format("paddle"))
        self._tensors.dtype(case.source)
        return self._tensors.tensor(case.source, np.ascontiguousarray(bits).reshape(bits.shape))

    def _read(self, found: Any) -> Tensor:
        dtype = self._tensors.name(found)
        if dtype not in formats():
            raise ValueError(f"the tensor has the dtype {dtype}")
        return tensor(dtype, self._tensors.bits(dtype, found.contiguous()).copy())

    def _export(self, case: Case, bits: Bits) -> bytes:
        return exported(self._made(case, bits))

    def _import(self, case: Case, content: bytes) -> Tensor:
        exporter = DlpackExporter(content)
        return self._read(self._paddle.from_dlpack(exporter).clone())
