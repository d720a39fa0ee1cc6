"""Parties with one or two containers: torchao's packing, and tinygrad's loaders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from conformance.extras.containers.parties.party import ContainerRoad, Party, tensor
from oracles.adapters.refusals import load
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import format_named

EXTRA = "containers"
TINYGRAD: Mapping[str, str] = {
    "float64": "float64",
    "float32": "float32",
    "float16": "half",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "fp8e4m3",
    "float8e5m2": "fp8e5m2",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint64": "uint64",
    "uint32": "uint32",
    "uint16": "uint16",
    "uint8": "uint8",
    "bool": "bool",
}
"""tinygrad's name of each dtype."""


class TorchaoParty(Party):
    """Packs and unpacks rows of 4-bit elements by torchao's `pack_uint4` and `unpack_uint4`."""

    name = "torchao"

    def __init__(self) -> None:
        self._torch: Any = load("torch", EXTRA)
        self._kernels: Any = load("torchao.prototype.mx_formats.kernels", EXTRA)
        self.version = version("torchao")
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how torchao writes and reads ``packed-low-first``."""
        start = "import torch, torchao.prototype.mx_formats.kernels as kernels\n"
        count = 'count = int.from_bytes(content[:8], "little")\n'
        return {
            "packed-low-first": ContainerRoad(
                self._pack,
                self._unpack,
                start
                + "packed = kernels.pack_uint4(torch.from_numpy(bits))\n"
                + 'content = len(bits).to_bytes(8, "little") + packed.numpy().tobytes()\n',
                start
                + count
                + "packed = torch.frombuffer(bytearray(content[8:]), dtype=torch.uint8)\n"
                + "y = kernels.unpack_uint4(packed).numpy()[:count]\n",
            )
        }

    def _pack(self, case: Case, bits: Bits) -> bytes:
        if case.modes or format_named(case.source).bits != 4 or bits.ndim != 1 or len(bits) % 2:
            raise Unsupported("torchao packs rows of pairs of 4 bits")
        packed = self._kernels.pack_uint4(self._torch.from_numpy(bits.copy()))
        content: bytes = packed.numpy().tobytes()
        return len(bits).to_bytes(8, "little") + content

    def _unpack(self, case: Case, content: bytes) -> Tensor:
        if format_named(case.source).bits != 4:
            raise Unsupported("torchao packs rows of 4 bits")
        count = int.from_bytes(content[:8], "little")
        packed = self._torch.from_numpy(np.frombuffer(content[8:], np.uint8).copy())
        return tensor(case.source, self._kernels.unpack_uint4(packed).numpy()[:count])


class TinygradParty(Party):
    """Reads safetensors, torch's files and GGUF by tinygrad's own readers."""

    name = "tinygrad"

    def __init__(self) -> None:
        # Its other devices need a compiler; this one interprets the few copies that are made.
        os.environ.setdefault("DEV", "PYTHON")
        self._tinygrad: Any = load("tinygrad", EXTRA)
        self._state: Any = load("tinygrad.nn.state", EXTRA)
        self._blocks: Any = load("tinygrad.llm.gguf", EXTRA)
        self.version = version("tinygrad")
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how tinygrad reads ``safetensors``, ``torch-save`` and ``gguf``.

        It writes nothing, as its writers need a compiler.
        """
        start = (
            "import os\nos.environ['DEV'] = 'PYTHON'\nimport tinygrad, tinygrad.nn.state as state\n"
        )
        held = "held = tinygrad.Tensor(content)\n"
        show = "print(y.dtype, y.shape)\ny = y.bitcast(tinygrad.dtypes.uint8).numpy()\n"
        return {
            "safetensors": ContainerRoad(
                None, self._load, "", start + held + 'y = state.safe_load(held)["x"]\n' + show
            ),
            "torch-save": ContainerRoad(
                None, self._torch_load, "", start + held + "y = state.torch_load(held)\n" + show
            ),
            "gguf": ContainerRoad(None, self._gguf_load),
        }

    def _load(self, case: Case, content: bytes) -> Tensor:
        return self._read(self._state.safe_load(self._held(content))["x"])

    def _torch_load(self, case: Case, content: bytes) -> Tensor:
        return self._read(self._state.torch_load(self._held(content)))

    def _gguf_load(self, case: Case, content: bytes) -> Tensor:
        return self._read(self._blocks.gguf_load(self._held(content))[1]["x"])

    def _held(self, content: bytes) -> Any:
        return self._tinygrad.Tensor(content)

    def _read(self, found: Any) -> Tensor:
        names = {getattr(self._tinygrad.dtypes, word): name for name, word in TINYGRAD.items()}
        dtype = names.get(found.dtype)
        if dtype is None:
            raise Unsupported(f"tinygrad reads it as {found.dtype}")
        shape, storage = tuple(found.shape), format_named(dtype).storage
        if 0 in shape:
            return tensor(dtype, np.zeros(shape, storage))
        # tinygrad returns no bytes of dtypes that Python's struct lacks, so read uint8.
        content = bytes(found.bitcast(self._tinygrad.dtypes.uint8).data())
        return tensor(dtype, np.frombuffer(content, storage).reshape(shape))
