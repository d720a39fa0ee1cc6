"""The calls by which CUDA's headers convert an element ``x[i]`` of one type to another."""

from __future__ import annotations

from collections.abc import Mapping

RAW: Mapping[str, str] = {
    "float64": "double",
    "float32": "float",
    "float16": "halfraw",
    "bfloat16": "bfloat16raw",
}
"""By dtype, its name in the functions for codes of 8, 6 and 4 bits."""
HALVES: Mapping[str, str] = {"float16": "half", "bfloat16": "bfloat16"}
"""By dtype of 16 bits, its name in the functions of its own header."""
CODES: Mapping[str, tuple[str, str, str]] = {
    "float8e4m3fn": ("fp8", "__NV_E4M3", "__nv_fp8_e4m3"),
    "float8e5m2": ("fp8", "__NV_E5M2", "__nv_fp8_e5m2"),
    "float8e8m0": ("e8m0", "", "__nv_fp8_e8m0"),
    "float6e2m3": ("fp6", "__NV_E2M3", "__nv_fp6_e2m3"),
    "float6e3m2": ("fp6", "__NV_E3M2", "__nv_fp6_e3m2"),
    "float4e2m1": ("fp4", "__NV_E2M1", "__nv_fp4_e2m1"),
}
"""By dtype of at most 8 bits, its family in the names of functions, its kind, and its class."""
INTEGERS: Mapping[str, tuple[str, str]] = {
    "int64": ("ll", "int64_t"),
    "int32": ("int", "int32_t"),
    "int16": ("short", "int16_t"),
    "int8": ("char", "int8_t"),
    "uint64": ("ull", "uint64_t"),
    "uint32": ("uint", "uint32_t"),
    "uint16": ("ushort", "uint16_t"),
    "uint8": ("uchar", "uint8_t"),
}
"""By dtype, its name in functions, and its type."""
ROUNDINGS: Mapping[str, str] = {
    "cudaRoundNearest": "rn",
    "cudaRoundZero": "rz",
    "cudaRoundPosInf": "ru",
    "cudaRoundMinInf": "rd",
}
"""By rounding, how the names of functions end."""
TYPES: Mapping[str, str] = {
    "float64": "double",
    "float32": "float",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    **dict.fromkeys(CODES, "unsigned char"),
    **{dtype: in_c for dtype, (_, in_c) in INTEGERS.items()},
}
"""By dtype, the type of its elements."""


def header_of(source: str, target: str) -> str:
    """Return the header that declares the functions for a pair."""
    for dtype in (source, target):
        if dtype in CODES:
            return f"cuda_{CODES[dtype][0].replace('e8m0', 'fp8')}.h"
    return "cuda_fp16.h" if "float16" in (source, target) else "cuda_bf16.h"


def expression(
    source: str,
    target: str,
    saturation: str = "__NV_SATFINITE",
    rounding: str = "cudaRoundNearest",
) -> str | None:
    """Return the call that converts ``x[i]``; None if no function does.

    Where the functions of a pair have no saturation or rounding as an argument, it is ignored.
    """
    if target in CODES:
        return _encoding(source, target, saturation, rounding)
    return _decoding(source, target) if source in CODES else _of_halves(source, target, rounding)


def _encoding(source: str, target: str, saturation: str, rounding: str) -> str | None:
    family, kind, made = CODES[target]
    if source in INTEGERS and not source.endswith("int8"):
        return f"{made}(x[i]).__x"
    if source not in RAW or (family == "e8m0" and source == "float16"):
        return None
    match family:
        case "fp8":
            arguments = f"{saturation}, {kind}"
        case "e8m0":
            arguments = f"{saturation}, {rounding}"
        case _:
            arguments = f"{kind}, {rounding}"
    return f"__nv_cvt_{RAW[source]}_to_{family}(x[i], {arguments})"


def _decoding(source: str, target: str) -> str | None:
    family, kind, read = CODES[source]
    if target not in CODES and target not in HALVES:
        return f"({TYPES[target]})reinterpret_cast<const {read} &>(x[i])"
    if target not in HALVES or (family == "e8m0" and target == "float16"):
        return None
    raw = {"float16": "halfraw", "bfloat16": "bf16raw"}[target]
    return f"__nv_cvt_{family}_to_{raw}(x[i]{', ' if kind else ''}{kind})"


def _of_halves(source: str, target: str, rounding: str) -> str | None:
    if target in HALVES:
        half = HALVES[target]
        if source == "float64" and rounding == "cudaRoundNearest":
            return f"__double2{half}(x[i])"
        if source == "float32":
            return f"__float2{half}_{ROUNDINGS[rounding]}(x[i])"
        is_offered = target == "float16" or rounding == "cudaRoundNearest"
        if source in INTEGERS and not source.endswith("int8") and is_offered:
            return f"__{INTEGERS[source][0]}2{half}_{ROUNDINGS[rounding]}(x[i])"
    elif source in HALVES:
        half = HALVES[source]
        if target == "float32":
            return f"__{half}2float(x[i])"
        if target in INTEGERS:
            return f"__{half}2{INTEGERS[target][0]}_rz(x[i])"
    return None
