"""Writes checkpoints byte by byte, as the formats' own pages describe them."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DTYPES = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "float8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "float8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "float4e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
}
SAFETENSORS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64",
}
GGML = {"float32": 0, "float16": 1, "float64": 28, "bfloat16": 30}


def safetensors_bytes(header: Mapping[str, Any] | str, data: bytes) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return len(text).to_bytes(8, "little") + text + data


def write_safetensors(path: Path, tensors: Mapping[str, Array]) -> Path:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, each in tensors.items():
        begin, data = len(data), data + each.tobytes()
        dtype = SAFETENSORS[each.dtype.name]
        header[name] = {"dtype": dtype, "shape": each.shape, "data_offsets": [begin, len(data)]}
    path.write_bytes(safetensors_bytes(header, data))
    return path


def gguf_string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_bytes(
    tensors: Mapping[str, Array | tuple[int, tuple[int, ...], bytes]],
    version: int = 3,
    alignment: int | None = None,
) -> bytes:
    """GGUF with metadata of all kinds; a tuple is a tensor's type, shape and bytes."""
    values = [
        gguf_string("general.name") + struct.pack("<I", 8) + gguf_string("a model"),
        gguf_string("flag") + struct.pack("<IB", 7, 1),
        gguf_string("words") + struct.pack("<IIQ", 9, 8, 2) + gguf_string("x") + gguf_string("yz"),
        gguf_string("nested") + struct.pack("<IIQIQhh", 9, 9, 1, 3, 2, -1, 1),
        gguf_string("sizes") + struct.pack("<IIQQQ", 9, 10, 2, 5, 6),
    ]
    if alignment is not None:
        values.append(gguf_string("general.alignment") + struct.pack("<II", 4, alignment))
    step = alignment or 32
    table, data = b"", b""
    for name, each in tensors.items():
        kind, shape, raw = (
            each if isinstance(each, tuple) else (GGML[each.dtype.name], each.shape, each.tobytes())
        )
        data += b"\xee" * (-len(data) % step)
        table += gguf_string(name) + struct.pack("<I", len(shape))
        table += b"".join(struct.pack("<Q", size) for size in reversed(shape))
        table += struct.pack("<IQ", kind, len(data))
        data += raw
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    head += b"".join(values) + table
    return head + b"\xee" * (-len(head) % step) + data


def weights(dtype: str, size: int = 3000, seed: int = 0) -> Array:
    """Numbers of all magnitudes, ties between values of narrow floats, and special ones."""
    chance = np.random.default_rng(seed)
    drawn = chance.standard_normal(size) * 2.0 ** chance.integers(-30, 20, size)
    ties = chance.integers(-64, 64, size) * 2.0 ** chance.integers(-14, 8, size)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, -464, 480, 1e-30, 2**-10, 2**-9]
    with np.errstate(all="ignore"):
        return np.concatenate([drawn, ties, special]).astype(DTYPES[dtype])


def brute_force(x: Array, target: str) -> dict[str, int]:
    """Counts the effects of a cast by numpy and ml_dtypes, element by element in float64."""
    with np.errstate(all="ignore"):
        y = x.astype(DTYPES[target])
        exact, made = x.astype(np.float64), y.astype(np.float64)
    least_normal = float(ml_dtypes.finfo(DTYPES[target]).smallest_normal)
    was_subnormal = np.abs(exact) < float(ml_dtypes.finfo(x.dtype).smallest_normal)
    both_nan = np.isnan(exact) & np.isnan(made)
    beyond = ~np.isfinite(made) & np.isfinite(exact)
    beyond |= np.isinf(exact) & ~np.isinf(made)
    return {
        "elements": x.size,
        "changed": int(np.count_nonzero((exact != made) & ~both_nan)),
        "out_of_range": int(np.count_nonzero(beyond)),
        "to_zero": int(np.count_nonzero((made == 0) & (exact != 0))),
        "to_subnormal": int(
            np.count_nonzero((made != 0) & (np.abs(made) < least_normal) & ~was_subnormal)
        ),
    }
