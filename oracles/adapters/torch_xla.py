"""torch_xla: ``Tensor.to(dtype)`` and the builder's ``bitcast``, run by XLA on the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from oracles.adapters.lazy_import import load, require_variant
from oracles.adapters.plain_modes import require_plain
from oracles.adapters.torch_tensors import Tensors
from oracles.adapters.torch_xla_script import reproduction
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

TYPES: Mapping[str, str] = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8e4m3fn": "f8e4m3fn",
    "float8e5m2": "f8e5m2",
    "int64": "s64",
    "int32": "s32",
    "int16": "s16",
    "int8": "s8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "pred",
    "complex64": "c64",
    "complex128": "c128",
}
"""XLA's names of the dtypes that torch_xla has on its device."""

ENVIRONMENT: Mapping[str, str] = {"PJRT_DEVICE": "CPU", "NPROC": "1"}
"""Where XLA runs, and how many threads it starts; both are read once, when the device is made."""


class TorchXla:
    """A cast by ``to``, a bitcast by XLA's ``BitcastConvert``, each in a program of its own."""

    name = "torch_xla"
    claims: tuple[str, ...] = ("cinn-cast:torch-xla",)
    compiles_shapes = True

    def __init__(self, variant: str | None = None) -> None:
        os.environ.update(ENVIRONMENT)
        self._torch: Any = load("torch", "torch_xla")
        self._xla: Any = load("torch_xla", "torch_xla")
        require_variant(self.name, variant, VARIANTS)
        self.version = f"{self._xla.__version__}+torch.{self._torch.__version__}"
        self._torch.set_num_threads(1)
        self._tensors = Tensors(self._torch)
        register = load("torch_xla.core.xla_op_registry", "torch_xla").register
        self._bitcast: Any = register("bitcast", lambda x, to_type: x.bitcast(to_type))

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``to`` on the device."""
        self._require_cast(case)
        target = self._tensors.castable(case.target)
        y = self._sent(case.source, bits).to(target)
        if y.dtype != target:
            raise TypeError(f"asked for {target}, got {y.dtype}")
        return self._received(case.target, y)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``bitcast``, which adds a last dimension, or takes it away."""
        require_plain(case, "torch_xla's bitcast")
        for dtype in (case.source, case.target):
            _require(dtype)
        x = self._sent(case.source, bits)
        return self._received(case.target, self._bitcast(x, to_type=TYPES[case.target]))

    def road(self, case: Case) -> str:
        """The pair alone: ``to`` knows nothing of documents, versions and modes."""
        self._require_cast(case)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """A call that casts; XLA keeps its program for as long as the length stays the same."""
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits into a tensor of the dtype on the device, and out again."""
        _require(dtype)
        return self._received(dtype, self._sent(dtype, bits))

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks torch_xla the same, without this project."""
        self._require_cast(case)
        return reproduction(self.version, case, bits, ENVIRONMENT, TYPES)

    def _require_cast(self, case: Case) -> None:
        require_plain(case, "torch_xla's Tensor.to")
        for dtype in (case.source, case.target):
            _require(dtype)

    def _sent(self, dtype: str, bits: Bits) -> Any:
        """The tensor on the device, computed: what is asked of it is a program of its own."""
        entry = format_named(dtype)
        if entry.is_integral:
            x = self._tensors.tensor(dtype, bits).to("xla")
        elif entry.kind == "float":
            x = self._read_as(dtype, bits)
        else:
            parts = bits.copy().reshape(*bits.shape, 1).view(_carrier(entry.entry.part))
            x = self._torch.view_as_complex(self._read_as(entry.entry.part, parts))
        self._xla.sync()
        return x

    def _read_as(self, dtype: str, bits: Bits) -> Any:
        # On their way to the device NaNs of float16 turn quiet, and complex128 loses its imaginary
        # parts: the patterns go as integers, and XLA reads them as what they are.
        carried = self._tensors.tensor(_carrier(dtype), bits).to("xla")
        return self._bitcast(carried, to_type=TYPES[dtype])

    def _received(self, dtype: str, tensor: Any) -> Bits:
        """The patterns of a tensor on the device, once that is computed."""
        self._xla.sync()
        entry = format_named(dtype)
        if entry.is_integral:
            codes = tensor.cpu()
        elif entry.kind == "float":
            codes = self._bitcast(tensor, to_type=TYPES[_carrier(dtype)]).cpu()
        else:
            parts = self._torch.view_as_real(tensor)
            codes = self._bitcast(parts, to_type=TYPES[_carrier(entry.entry.part)]).cpu()
        found: Bits = codes.numpy().reshape(-1).view(entry.storage).reshape(tensor.shape)
        return found


def _require(dtype: str) -> None:
    if dtype not in TYPES:
        raise Unsupported(f"torch_xla has no {dtype} on its device")


def _carrier(dtype: str) -> str:
    """The integer whose patterns go to the device and back as they are."""
    return f"int{format_named(dtype).bits}"
