"""jax with 64-bit dtypes enabled: numpy's files by jax.numpy, safetensors, DLPack, bitcasts."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.extras.containers.parties.dlpack_memory import DlpackExporter, exported
from conformance.extras.containers.parties.numpy_arrays import Arrays
from conformance.extras.containers.parties.party import ContainerRoad, Party
from conformance.extras.containers.parties.safetensors_files import safetensors_road
from oracles.adapters.refusals import first_line, load
from oracles.memory_layouts import is_packed
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import format_named

MAKE = (
    "import jax, ml_dtypes, jax.numpy as jnp\n"
    'jax.config.update("jax_enable_x64", True)\n'
    "x = jnp.asarray(bits.view({dtype}))\n"
)
START = 'import jax, jax.numpy as jnp\njax.config.update("jax_enable_x64", True)\n'


class JaxParty(Party):
    """Writes and reads containers by jax's arrays on the CPU."""

    name = "jax"

    def __init__(self) -> None:
        os.environ["NPROC"] = "1"
        os.environ["JAX_PLATFORMS"] = "cpu"
        self._jax: Any = load("jax", "jax")
        self._numpy: Any = load("jax.numpy", "jax")
        self._jax.config.update("jax_enable_x64", True)
        self._arrays = Arrays()
        self.version = str(self._jax.__version__)
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how jax writes and reads numpy's files, safetensors, DLPack and packed rows."""
        write = "import io\nfile = io.BytesIO()\njnp.{call}\ncontent = file.getvalue()\n"
        return {
            "npy": ContainerRoad(
                self._save,
                self._load,
                MAKE + write.replace("{call}", "save(file, x)"),
                START + "import io\ny = np.asarray(jnp.load(io.BytesIO(content)))\n",
            ),
            "npz": ContainerRoad(
                self._savez,
                self._load_npz,
                MAKE + write.replace("{call}", "savez(file, x=x)"),
                START + 'import io\ny = np.asarray(jnp.load(io.BytesIO(content))["x"])\n',
            ),
            "safetensors": safetensors_road(
                "flax", self._made, self._arrays.read, MAKE, "y = np.asarray(y)\n"
            ),
            "dlpack": ContainerRoad(
                self._export,
                self._import,
                MAKE + "content = x\n",
                START + "y = np.asarray(jnp.from_dlpack(content))\n",
            ),
            "packed-low-first": ContainerRoad(self._pack, self._unpack),
        }

    def dtype_expression(self, dtype: str) -> str:
        """Return numpy's or ml_dtypes' expression for a dtype, as scripts use it."""
        return self._arrays.expression(dtype)

    def _made(self, case: Case, bits: Bits) -> Any:
        if case.modes:
            raise Unsupported("jax has no arrays of the other byte order")
        try:
            return self._numpy.asarray(self._arrays.array(case, bits))
        except TypeError as error:
            raise Unsupported(first_line(error)) from None

    def _save(self, case: Case, bits: Bits) -> bytes:
        file = io.BytesIO()
        self._numpy.save(file, self._made(case, bits))
        return file.getvalue()

    def _load(self, case: Case, content: bytes) -> Tensor:
        return self._arrays.read(self._numpy.load(io.BytesIO(content)))

    def _savez(self, case: Case, bits: Bits) -> bytes:
        file = io.BytesIO()
        self._numpy.savez(file, x=self._made(case, bits))
        return file.getvalue()

    def _load_npz(self, case: Case, content: bytes) -> Tensor:
        return self._arrays.read(self._numpy.load(io.BytesIO(content))["x"])

    def _export(self, case: Case, bits: Bits) -> bytes:
        try:
            return exported(self._made(case, bits))
        except (BufferError, self._jax.errors.JaxRuntimeError) as error:
            raise Unsupported(first_line(error)) from None

    def _import(self, case: Case, content: bytes) -> Tensor:
        exporter = DlpackExporter(content)
        return self._arrays.read(np.array(self._numpy.from_dlpack(exporter)))

    def _pack(self, case: Case, bits: Bits) -> bytes:
        """Return the number of elements in 8 bytes, then the row's elements bitcast to bytes.

        Raises Unsupported unless ``bits`` is a row of elements of 2 or 4 bits that fills whole
        bytes.
        """
        entry = format_named(case.source)
        count = 8 // entry.bits if is_packed(entry) else 0
        if bits.ndim != 1 or count * entry.bits != 8 or len(bits) % count:
            raise Unsupported("a bitcast to bytes takes rows of whole bytes")
        groups = self._made(case, bits).reshape(-1, count)
        packed = self._jax.lax.bitcast_convert_type(groups, self._numpy.uint8)
        return len(bits).to_bytes(8, "little") + np.asarray(packed).tobytes()

    def _unpack(self, case: Case, content: bytes) -> Tensor:
        count = int.from_bytes(content[:8], "little")
        packed = np.frombuffer(content[8:], np.uint8)
        if packed.size * 8 != count * format_named(case.source).bits:
            raise Unsupported("a bitcast from bytes gives rows of whole bytes")
        dtype = self._made(case, np.zeros(0, np.uint8)).dtype
        found = self._jax.lax.bitcast_convert_type(self._numpy.asarray(packed), dtype)
        return self._arrays.read(np.asarray(found).reshape(-1))
