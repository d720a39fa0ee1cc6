"""CUDA's host headers: conversions of cuda_fp8.h and its kin, compiled by g++ for the processor."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from oracles.adapters.cuda_headers.expressions import ROUNDINGS, TYPES, expression, header_of
from oracles.adapters.header_functions import HeaderArguments, HeaderFunctions
from oracles.adapters.refusals import load_own, require_variant
from oracles.protocol import NotInstalled

VARIANTS: tuple[str, ...] = ()

SATFINITE, NOSAT = "__NV_SATFINITE", "__NV_NOSAT"
ARGUMENTS: HeaderArguments = {
    "saturation": ("saturation", {"SATFINITE": SATFINITE, "NOSAT": NOSAT}),
    "rounding": ("rounding", {each: each for each in ROUNDINGS}),
    # ONNX's parameters
    "saturate": ("saturation", {"1": SATFINITE, "0": NOSAT}),
    "round_mode": (
        "rounding",
        {"nearest": "cudaRoundNearest", "up": "cudaRoundPosInf", "down": "cudaRoundZero"},
    ),
}
COMMAND = '["g++", "-O2", *("-I" + each + "/include" for each in nvidia.cu13.__path__)]'


class CudaHeaders(HeaderFunctions):
    """Casts by the functions that CUDA's headers offer to the host."""

    name = "cuda_headers"
    claims: tuple[str, ...] = ("cuda-convert",)
    types = TYPES
    arguments = ARGUMENTS

    def __init__(self, variant: str | None = None) -> None:
        found: Any = load_own("nvidia.cu13", __file__)
        require_variant(self.name, variant, VARIANTS)
        if not any((Path(each) / "include" / "cuda_fp4.h").is_file() for each in found.__path__):
            raise NotInstalled("cuda_fp4.h is missing: pip install 'nvidia-cuda-runtime>=13'")
        if shutil.which("g++") is None:
            raise NotInstalled("g++ is missing: install it (apt-get install g++)")
        super().__init__("import nvidia.cu13\n", nvidia=__import__("nvidia"))
        self.version = version("nvidia-cuda-runtime")

    def expression(self, source: str, target: str, arguments: Mapping[str, str]) -> str | None:
        """Return the call that converts ``x[i]``; None if no function does."""
        return expression(source, target, **arguments)

    def header_of(self, source: str, target: str) -> str:
        """Return the header that declares the functions for a pair."""
        return header_of(source, target)

    def command_text(self) -> str:
        """Return the Python expression of the compiler's command and its flags."""
        return COMMAND
