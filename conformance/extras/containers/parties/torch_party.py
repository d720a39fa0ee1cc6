"""torch: safetensors, `torch.save`, DLPack, and pairs of float4 codes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.extras.containers.parties.dlpack_memory import DlpackExporter, exported
from conformance.extras.containers.parties.party import BIG, ContainerRoad, Party, tensor
from conformance.extras.containers.parties.safetensors_files import safetensors_road
from oracles.adapters.refusals import first_line, load
from oracles.adapters.torch_tensors import PAIRED, VIEWED, TorchTensors
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import formats

MAKE = "import torch\nx = torch.from_numpy(bits).view(torch.{dtype})\n"
SHOW = "print(y.dtype, tuple(y.shape))\ny = y.contiguous().view(-1).view(torch.uint8).numpy()\n"


class TorchParty(Party):
    """Writes and reads containers by torch's tensors on the CPU."""

    name = "torch"

    def __init__(self) -> None:
        self._torch: Any = load("torch", "torch")
        self._tensors = TorchTensors(self._torch)
        self.version = str(self._torch.__version__)
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how torch writes and reads safetensors, its own files, DLPack and packed rows."""
        return {
            "safetensors": safetensors_road("torch", self._made, self._read, MAKE, SHOW),
            "torch-save": ContainerRoad(
                self._save,
                self._load,
                "import io\n"
                + MAKE
                + "file = io.BytesIO()\ntorch.save(x, file)\ncontent = file.getvalue()\n",
                "import io, torch\ny = torch.load(io.BytesIO(content))\n" + SHOW,
            ),
            "dlpack": ContainerRoad(
                self._export,
                self._import,
                MAKE + "content = x\n",
                "import torch\ny = torch.from_dlpack(content)\n" + SHOW,
            ),
            "packed-low-first": ContainerRoad(self._pack, self._unpack),
        }

    def dtype_expression(self, dtype: str) -> str:
        """Return torch's name of a dtype without the prefix ``torch.``."""
        return VIEWED.get(dtype, dtype)

    def _made(self, case: Case, bits: Bits) -> Any:
        if BIG in case.modes:
            raise Unsupported("torch has no tensors of the other byte order")
        return self._tensors.tensor(case.source, bits)

    def _read(self, found: Any) -> Tensor:
        dtype = self._tensors.name(found.dtype)
        if dtype not in formats():
            return tensor(dtype, found.view(self._torch.uint8).numpy().copy())
        return tensor(dtype, self._tensors.bits(dtype, found.contiguous()).copy())

    def _save(self, case: Case, bits: Bits) -> bytes:
        file = io.BytesIO()
        self._torch.save(self._made(case, bits), file)
        return file.getvalue()

    def _load(self, case: Case, content: bytes) -> Tensor:
        return self._read(self._torch.load(io.BytesIO(content), weights_only=True))

    def _export(self, case: Case, bits: Bits) -> bytes:
        """Serialize the tensor that torch exports; raise Unsupported if it exports no such dtype.

        Old releases raise RuntimeError for a dtype, and for other reasons too. So one element
        decides: only if torch does not export that either, the dtype is unsupported.
        """
        try:
            return exported(self._made(case, bits))
        except BufferError as error:
            raise Unsupported(first_line(error)) from None
        except RuntimeError:
            try:
                exported(self._made(case, bits.reshape(-1)[:1].copy()))
            except RuntimeError as error:
                raise Unsupported(first_line(error)) from None
            raise

    def _import(self, case: Case, content: bytes) -> Tensor:
        exporter = DlpackExporter(content)
        return self._read(self._torch.from_dlpack(exporter).clone())

    def _pack(self, case: Case, bits: Bits) -> bytes:
        """Return the number of elements in 8 bytes, then torch's packed bytes of the row.

        Raises Unsupported unless ``bits`` is a row of float4e2m1, the only dtype that torch packs.
        """
        if case.source not in PAIRED or bits.ndim != 1:
            raise Unsupported("torch packs rows of float4e2m1 only")
        pairs: Bits = self._made(case, bits).view(self._torch.uint8).numpy()
        return len(bits).to_bytes(8, "little") + pairs.tobytes()

    def _unpack(self, case: Case, content: bytes) -> Tensor:
        count = int.from_bytes(content[:8], "little")
        if case.source not in PAIRED or count % 2:
            raise Unsupported("torch packs pairs of float4e2m1 only")
        packed = np.frombuffer(content[8:], np.uint8).copy()
        return self._read(self._torch.from_numpy(packed).view(self._torch.float4_e2m1fn_x2))
