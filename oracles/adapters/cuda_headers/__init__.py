"""CUDA's host headers: conversions of cuda_fp8.h and its kin, compiled by g++ for the processor."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from oracles.adapters.compiled_loops import CompiledLoops, Loop
from oracles.adapters.cuda_headers.expressions import ROUNDINGS, TYPES, expression, header
from oracles.adapters.refusals import load_own, require_plain, require_variant
from oracles.adapters.scripted import ScriptedOperation
from oracles.protocol import NotInstalled, Unsupported
from specs.cases import Case

VARIANTS: tuple[str, ...] = ()

SATURATIONS: Mapping[str, str] = {"1": "__NV_SATFINITE", "0": "__NV_NOSAT"}
"""By ONNX's value of ``saturate``, the header's."""
OTHERS: Mapping[str, str] = {
    "nearest": "cudaRoundNearest",
    "up": "cudaRoundPosInf",
    "down": "cudaRoundZero",
}
"""By ONNX's value of ``round_mode``, the header's."""
ARGUMENTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "saturation": ("saturation", {each[5:]: each for each in SATURATIONS.values()}),
    "rounding": ("rounding", {each: each for each in ROUNDINGS}),
    "saturate": ("saturation", SATURATIONS),
    "round_mode": ("rounding", OTHERS),
}
"""By a document's parameter, the argument that it is, and what its values are called there."""
COMMAND = '["g++", "-O2", *("-I" + each + "/include" for each in nvidia.cu13.__path__)]'


class CudaHeaders(CompiledLoops):
    """Casts by the functions that CUDA's headers offer to the host."""

    name = "cuda_headers"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "a conversion of CUDA's"}
    claims: tuple[str, ...] = ("cuda-convert",)
    language = "c++"

    def __init__(self, variant: str | None = None) -> None:
        found: Any = load_own("nvidia.cu13", __file__)
        require_variant(self.name, variant, VARIANTS)
        if not any((Path(each) / "include" / "cuda_fp4.h").is_file() for each in found.__path__):
            raise NotInstalled("cuda_fp4.h is missing: pip install 'nvidia-cuda-runtime>=13'")
        if shutil.which("g++") is None:
            raise NotInstalled("g++ is missing: install it (apt-get install g++)")
        super().__init__("import nvidia.cu13\n", nvidia=__import__("nvidia"))
        self.version = version("nvidia-cuda-runtime")

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype of which the headers have no type."""
        if dtype not in TYPES:
            raise Unsupported(f"CUDA's headers have no type of {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that are no argument, and pairs without a function."""
        others = tuple(each for each in case.modes if each[0] not in ARGUMENTS)
        require_plain(replace(case, modes=others), self.operations["cast"])
        for name, (_, values) in ARGUMENTS.items():
            if case.mode.get(name, next(iter(values))) not in values:
                raise Unsupported(f"CUDA's headers have no {name} {case.mode[name]}")

    def require(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported as ``require_parameters`` does, or for a pair without a function."""
        super().require(operation, case)
        self.loop(case)

    def loop(self, case: Case) -> Loop:
        """Return the loop of a case; raise Unsupported if no function makes the conversion."""
        arguments = {
            argument: values[case.mode[name]]
            for name, (argument, values) in ARGUMENTS.items()
            if name in case.mode
        }
        answer = expression(case.source, case.target, **arguments)
        if answer is None:
            said = "".join(f", {each}" for each in arguments.values())
            raise Unsupported(f"no function of CUDA's makes {case.source} {case.target}{said}")
        before = f'#include <{header(case.source, case.target)}>\n#include <cstdint>\nextern "C"\n'
        return Loop(TYPES[case.source], TYPES[case.target], answer, before)

    def command_text(self) -> str:
        """Return the Python expression of the compiler's command and its flags."""
        return COMMAND

    def road(self, case: Case) -> str:
        """Return the pair and the call that converts it; raise Unsupported as ``require`` does."""
        return f"{super().road(case)}: {self.loop(case).answer}"
