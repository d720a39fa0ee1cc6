"""ExecuTorch: ``Tensor.to`` as a program for devices, run by its portable kernels."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from importlib.metadata import version
from typing import Any, ClassVar

from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.adapters.torch_tensors import TorchTensors, patterns_text, tensor_text
from oracles.protocol import Bits, Unsupported
from specs.cases import Case

DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8"),
    *("uint8", "bool"),
)
"""The dtypes that its portable kernels convert."""

HEADER = """\
# executorch {version}: {case}
import numpy as np
import torch
from executorch.exir import to_edge
from executorch.runtime import Runtime

"""

EXPORT = """\
class Cast(torch.nn.Module):
    def forward(self, x):
        return x.to(torch.{target})

size = torch.export.Dim("size", min=0, max=1 << 16)
example = torch.zeros(2, dtype=torch.{source})
graph = torch.export.export(Cast(), (example,), dynamic_shapes=({{0: size}},))
program = Runtime.get().load_program(to_edge(graph).to_executorch().buffer)
"""

RUN = """\
method = program.load_method("forward")
parts = x.reshape(-1).contiguous().split(1 << 16)
y = torch.cat([method.execute([part])[0].clone() for part in parts]).reshape(x.shape)
"""


class Executorch(Scripted):
    """Casts by a program that is exported once per pair, for rows of up to 65536 elements."""

    name = "executorch"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "Tensor.to in ExecuTorch"}
    claims: tuple[str, ...] = ()
    dtypes = DTYPES

    def __init__(self, variant: str | None = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runtime: Any = load_own("executorch.runtime", __file__)
            exir: Any = load_own("executorch.exir", __file__)
        require_variant(self.name, variant, ())
        torch = load_own("torch", __file__)
        super().__init__(torch=torch, to_edge=exir.to_edge, Runtime=runtime.Runtime)
        self.version = version("executorch")
        self._tensors = TorchTensors(torch)

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that the portable kernels lack."""
        if dtype not in DTYPES:
            raise Unsupported(f"executorch has no kernel for {dtype}")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a tensor of this dtype."""
        return tensor_text(dtype)

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of this dtype that holds these patterns."""
        return self._tensors.tensor(dtype, bits)

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, a tensor of this dtype."""
        return patterns_text(dtype)

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that export the program of a pair once, and run it on rows."""
        return Statements(RUN, EXPORT.format(source=case.source, target=case.target))

    def _prepare(self, once: str, form: Hashable) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what torch.export says of torch's own code
            return super()._prepare(once, form)
