"""HIP's headers: conversions of hip_fp8.h and its kin, compiled by clang++ for the processor."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from oracles.adapters.header_functions import HeaderArguments, HeaderFunctions
from oracles.adapters.refusals import require_variant
from oracles.protocol import NotInstalled

VARIANTS: tuple[str, ...] = ()

SATFINITE, NOSAT = "__HIP_SATFINITE", "__HIP_NOSAT"
ARGUMENTS: HeaderArguments = {
    "saturation": ("saturation", {"SATFINITE": SATFINITE, "NOSAT": NOSAT}),
    "saturate": ("saturation", {"1": SATFINITE, "0": NOSAT}),  # ONNX's
}
RAW: Mapping[str, str] = {
    "float64": "double",
    "float32": "float",
    "float16": "halfraw",
    "bfloat16": "bfloat16raw",
}
"""By dtype, its name in the functions for codes of 8 bits."""
CODES: Mapping[str, tuple[str, str]] = {
    "float8e4m3fn": ("__HIP_E4M3", "__hip_fp8_e4m3"),
    "float8e5m2": ("__HIP_E5M2", "__hip_fp8_e5m2"),
    "float8e4m3fnuz": ("__HIP_E4M3_FNUZ", "__hip_fp8_e4m3_fnuz"),
    "float8e5m2fnuz": ("__HIP_E5M2_FNUZ", "__hip_fp8_e5m2_fnuz"),
}
"""By dtype of 8 bits, its kind, and its class."""
TYPES: Mapping[str, str] = {
    "float64": "double",
    "float32": "float",
    "float16": "__half",
    "bfloat16": "__hip_bfloat16",
    **dict.fromkeys(CODES, "unsigned char"),
}
CALLS: Mapping[tuple[str, str], str] = {
    ("float32", "float16"): "__float2half(x[i])",
    ("float16", "float32"): "__half2float(x[i])",
    ("float32", "bfloat16"): "__float2bfloat16(x[i])",
    ("float64", "bfloat16"): "__double2bfloat16(x[i])",
    ("bfloat16", "float32"): "__bfloat162float(x[i])",
}
"""By pair, the function of the 16-bit types."""
WORDS = (
    "clang++ -x hip --offload-host-only -nogpuinc -nogpulib -no-hip-rt -w -O2",
    "-std=c++17 -include cstdint -include cstdlib -D__HIP_PLATFORM_AMD__",
)
"""The command: nothing is compiled for a GPU, and nothing is linked."""
USUAL = "/usr"
"""The folder in which distributions install the headers, unless ROCM_PATH names another."""
COMMAND = f"""\
(
        "{WORDS[0]}".split()
        + "{WORDS[1]}".split()
        + ["-I" + os.environ.get("ROCM_PATH", "{USUAL}") + "/include"]
    )"""


class HipHeaders(HeaderFunctions):
    """Casts by the functions that HIP's headers offer to the host."""

    name = "hip_headers"
    # The headers say which functions there are, and of their values that one mode saturates.
    claims: tuple[str, ...] = ()
    language = "hip"
    types = TYPES
    arguments = ARGUMENTS

    def __init__(self, variant: str | None = None) -> None:
        require_variant(self.name, variant, VARIANTS)
        if shutil.which("clang++") is None:
            raise NotInstalled("clang++ is missing: install it (apt-get install clang)")
        super().__init__("import os\n", os=os)
        self.version = self._version()

    def _version(self) -> str:
        folder = os.environ.get("ROCM_PATH", USUAL) + "/include"
        command = [*" ".join(WORDS).split(), f"-I{folder}", "-E", "-dM", "-"]
        code = "#include <hip/hip_version.h>\n#include <hip/hip_fp8.h>\n"
        done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
        found = dict(re.findall(r"#define HIP_VERSION_(MAJOR|MINOR|PATCH) (\d+)", done.stdout))
        if done.returncode or len(found) < 3:
            advice = "install libamdhip64-dev, or ROCm and set ROCM_PATH"
            raise NotInstalled(f"clang++ cannot read hip/hip_fp8.h: {advice}")
        return "{MAJOR}.{MINOR}.{PATCH}".format(**found)

    def expression(self, source: str, target: str, arguments: Mapping[str, str]) -> str | None:
        """Return the call that converts ``x[i]``; None if no function does."""
        if source in RAW and target in CODES:
            saturation = arguments.get("saturation", SATFINITE)
            return f"__hip_cvt_{RAW[source]}_to_fp8(x[i], {saturation}, {CODES[target][0]})"
        if source in CODES and target == "float16":
            return f"__hip_cvt_fp8_to_halfraw(x[i], {CODES[source][0]})"
        if source in CODES and target in RAW:
            return f"({TYPES[target]})reinterpret_cast<const {CODES[source][1]} &>(x[i])"
        return CALLS.get((source, target))

    def header_of(self, source: str, target: str) -> str:
        """Return the header that declares the functions for a pair."""
        return "hip/hip_fp8.h"

    def command_text(self) -> str:
        """Return the Python expression of the compiler's command and its flags."""
        return COMMAND
