"""torch_xla's ``Tensor.to(dtype)`` and its builder's ``bitcast``, run by XLA on the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from oracles.adapters.dtype_table import names_in
from oracles.adapters.refusals import load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import bits_statement, print_statement
from oracles.adapters.torch_tensors import DTYPES, TorchTensors
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

TYPES: Mapping[str, str] = names_in("xla")
"""XLA's names of the dtypes that torch_xla has on its device."""

ENVIRONMENT: Mapping[str, str] = {"PJRT_DEVICE": "CPU", "NPROC": "1"}
"""Variables that are set in the process: XLA reads them once, when it creates the device."""


class TorchXla:
    """Casts by ``to`` and bitcasts by XLA's ``BitcastConvert``, each in a program of its own."""

    name = "torch_xla"
    claims: tuple[str, ...] = ("cinn-cast:torch-xla",)
    compiles_shapes = True

    def __init__(self, variant: str | None = None) -> None:
        os.environ.update(ENVIRONMENT)
        self._torch: Any = load("torch", "torch-xla")
        self._xla: Any = load("torch_xla", "torch-xla")
        require_variant(self.name, variant, VARIANTS)
        self.version = f"{self._xla.__version__}+torch.{self._torch.__version__}"
        self._torch.set_num_threads(1)
        self._tensors = TorchTensors(self._torch)
        register = load("torch_xla.core.xla_op_registry", "torch-xla").register
        self._bitcast: Any = register("bitcast", lambda x, to_type: x.bitcast(to_type))

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one ``to`` on the device.

        Raises Unsupported for modes that ``require_plain`` refuses or a dtype that torch_xla lacks,
        and TypeError if the result has another dtype than the target.
        """
        self._require_cast(case)
        target = self._tensors.castable(case.target)
        y = self._to_device(case.source, bits).to(target)
        if y.dtype != target:
            raise TypeError(f"asked for {target}, got {y.dtype}")
        return self._from_device(case.target, y)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` after one ``bitcast``, which may add or remove a last dimension.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that torch_xla
        lacks.
        """
        require_plain(case, "torch_xla's bitcast")
        for dtype in (case.source, case.target):
            _require_dtype(dtype)
        x = self._to_device(case.source, bits)
        return self._from_device(case.target, self._bitcast(x, to_type=TYPES[case.target]))

    def bitcast_road(self, case: Case) -> str:
        """Return the pair of dtypes as text; raise Unsupported as ``require_plain`` does."""
        return plain_road(case, "torch_xla's bitcast")

    def road(self, case: Case) -> str:
        """Return the pair of dtypes as text.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that torch_xla
        lacks.
        """
        self._require_cast(case)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call of ``cast``; XLA caches the program of each length."""
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a copy to a tensor of the dtype on the device, and back.

        Raises Unsupported if torch_xla lacks the dtype.
        """
        _require_dtype(dtype)
        return self._from_device(dtype, self._to_device(dtype, bits))

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that casts a tensor on torch_xla.

        Raises Unsupported as ``cast`` does.
        """
        self._require_cast(case)
        environment = str(dict(ENVIRONMENT))
        return (
            HEADER.format(version=self.version, case=case, environment=environment).replace(
                "'", '"'
            )
            + READ_AS
            + f"{bits_statement(case.source, bits)}\n"
            + _input_statements(case.source)
            + CAST.format(target=DTYPES[case.target])
            + f"answers = {_answers_expression(case.target)}\n"
            + print_statement(case.source, case.target, bits)
        )

    def _require_cast(self, case: Case) -> None:
        require_plain(case, "torch_xla's Tensor.to")
        for dtype in (case.source, case.target):
            _require_dtype(dtype)

    def _to_device(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of the patterns on the device, computed at once.

        So the cast of the tensor is a program of its own.
        """
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
        # The transfer to the device quiets float16 NaNs and drops complex128's imaginary parts. So
        # transfer integers, and have XLA reinterpret them.
        carried = self._tensors.tensor(_carrier(dtype), bits).to("xla")
        return self._bitcast(carried, to_type=TYPES[dtype])

    def _from_device(self, dtype: str, tensor: Any) -> Bits:
        """Compute a tensor of this dtype on the device, and return its patterns."""
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


def _require_dtype(dtype: str) -> None:
    if dtype not in TYPES:
        raise Unsupported(f"torch_xla has no {dtype} on its device")


def _carrier(dtype: str) -> str:
    """Return the integer dtype of the same size, which copies to the device leave unchanged."""
    return f"int{format_named(dtype).bits}"


HEADER = """\
# torch_xla {version}: {case}
import os

os.environ |= {environment}

import numpy as np
import torch
import torch_xla
from torch_xla.core.xla_op_registry import register

"""

READ_AS = """\
# Patterns go as integers: on their own way NaNs of float16 turn quiet.
read_as = register("bitcast", lambda x, to_type: x.bitcast(to_type))
"""

CAST = """\
torch_xla.sync()
y = x.to(torch.{target})
torch_xla.sync()
"""


def _input_statements(dtype: str) -> str:
    """Return the statements that bind x to a tensor on the device, made from the array ``bits``."""
    entry = format_named(dtype)
    if entry.is_integral:
        return f'x = torch.from_numpy(bits).view(torch.{DTYPES[dtype]}).to("xla")\n'
    if entry.kind == "float":
        return _read_as_statements(f"bits.view(np.int{entry.bits})", TYPES[dtype])
    part = entry.entry.part
    parts = f"bits.view(np.int{format_named(part).bits}).reshape(-1, 2)"
    return _read_as_statements(parts, TYPES[part]) + "x = torch.view_as_complex(x)\n"


def _read_as_statements(bits: str, type_name: str) -> str:
    return (
        f'carried = torch.from_numpy({bits}).to("xla")\n'
        f'x = read_as(carried, to_type="{type_name}")\n'
    )


def _answers_expression(dtype: str) -> str:
    """Return the expression of the patterns in y, a tensor of this dtype on the device."""
    entry = format_named(dtype)
    if entry.is_integral:
        return f"y.cpu().numpy().view(np.{entry.storage})"
    if entry.kind == "float":
        return f'read_as(y, to_type="s{entry.bits}").cpu().numpy().view(np.{entry.storage})'
    storage = '"V16"' if entry.storage == "V16" else f"np.{entry.storage}"
    part = format_named(entry.entry.part).bits
    parts = f'read_as(torch.view_as_real(y), to_type="s{part}")'
    return f"{parts}.cpu().numpy().reshape(-1).view({storage})"
