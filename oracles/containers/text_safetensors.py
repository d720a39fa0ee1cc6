"""The safetensors format after its README: header length, JSON header, elements.

Numbers are little-endian, in row-major order, and a header's `data_offsets` count from the end of
the header. The page says nothing about elements of less than a byte, so none are written here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from oracles.containers.party import tensor
from oracles.protocol import Bits, Tensor, Unsupported
from specs.formats import format_named

KEY = "x"
"""The name of the only tensor in a file."""
DTYPES: Mapping[str, str] = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8e4m3fn": "F8_E4M3",
    "float8e4m3fnuz": "F8_E4M3FNUZ",
    "float8e5m2": "F8_E5M2",
    "float8e5m2fnuz": "F8_E5M2FNUZ",
    "float8e8m0": "F8_E8M0",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
}
NAMES = {word: name for name, word in DTYPES.items()}


def write_safetensors(dtype: str, bits: Bits) -> bytes:
    """Return a file with one tensor; its header is padded with spaces to a multiple of 8 bytes."""
    if dtype not in DTYPES:
        raise Unsupported(f"the page of safetensors names no packing of {dtype}")
    entry = {"dtype": DTYPES[dtype], "shape": list(bits.shape), "data_offsets": [0, bits.nbytes]}
    header = json.dumps({KEY: entry}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + np.ascontiguousarray(bits).tobytes()


def read_safetensors(content: bytes) -> Tensor:
    """Return the only tensor of a file."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    [entry] = [entry for key, entry in header.items() if key != "__metadata__"]
    first, last = entry["data_offsets"]
    elements, dtype = content[8 + length :][first:last], NAMES.get(entry["dtype"], entry["dtype"])
    if dtype not in DTYPES:
        raise Unsupported(f"the page of safetensors names no packing of {dtype}")
    codes = np.frombuffer(elements, format_named(dtype).storage)
    return tensor(dtype, codes.reshape(entry["shape"]))
