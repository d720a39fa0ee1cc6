"""What the adapters have, and small makers of cases and bits."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named


@dataclass(frozen=True)
class Adapter:
    """Where an adapter is, what it imports, and which dtypes its framework lacks."""

    module: str
    class_name: str
    packages: tuple[str, ...]
    lacks: frozenset[str]

    def make(self, variant: str | None = None) -> Any:
        for package in self.packages:
            pytest.importorskip(package)
        return getattr(self.load(), self.class_name)(variant)

    def load(self) -> Any:
        return importlib.import_module(f"oracles.adapters.{self.module}")


FLOAT6 = frozenset({"float6e2m3", "float6e3m2"})
COMPLEX = frozenset({"complex64", "complex128"})
NOT_IN_ONNX = frozenset({"float8e4m3", "float8e3m4", "float8e4m3b11fnuz"})
SUB_BYTE = FLOAT6 | {"float4e2m1", "int4", "int2", "uint4", "uint2"}
ADAPTERS = {
    "ort": Adapter("ort", "Ort", ("onnxruntime", "onnx"), FLOAT6 | COMPLEX | NOT_IN_ONNX),
    "onnx": Adapter("onnx", "Onnx", ("onnx",), FLOAT6 | NOT_IN_ONNX),
    "torch": Adapter(
        "torch", "Torch", ("torch",), SUB_BYTE - {"float4e2m1"} | {"string"} | NOT_IN_ONNX
    ),
    "ml_dtypes": Adapter("ml_dtypes", "MlDtypes", ("ml_dtypes",), frozenset()),
}
ROADS = [("ort", None), ("ort", "folded"), ("onnx", None), ("torch", None), ("ml_dtypes", None)]
ALL = ("ort", "onnx", "torch", "ml_dtypes")
WITH_TEXT = ("ort", "onnx", "ml_dtypes")

Road = tuple[str, str | None]


def skip_without(package: str) -> None:
    """Skips a test without importing what the adapter is to import in its own way."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def onnx_case(source: str, target: str, version: int = 25, **modes: str) -> Case:
    return Case("onnx-cast", str(version), source, target, tuple(modes.items()))


def bits_of(dtype: str, patterns: list[Any]) -> Bits:
    """Patterns as numbers (or texts) in the dtype's storage."""
    storage = format_named(dtype).storage
    if storage == "V16":
        raw = b"".join(pattern.to_bytes(16, "little") for pattern in patterns)
        return np.frombuffer(raw, storage).copy()
    return np.array(patterns, storage)


def patterns_of(bits: Bits) -> list[Any]:
    """The way back from ``bits_of``."""
    if bits.dtype == np.dtype("V16"):
        return [int.from_bytes(pattern.tobytes(), "little") for pattern in bits]
    return list(bits.tolist())


def some_patterns(dtype: str, count: int = 4096) -> Bits:
    """Every pattern of up to 16 bits; a seeded sample of wider ones; a few texts."""
    entry = format_named(dtype)
    if entry.kind == "text":
        return np.array(["", "1.5", "-0", "a longer text than fits inline", "né\n"], object)
    if entry.bits <= 16:
        return np.arange(1 << entry.bits).astype(entry.storage)
    raw = np.random.default_rng(0).bytes(count * entry.bits // 8)
    return np.frombuffer(raw, entry.storage).copy()


def assert_same(got: Bits, expected: Bits) -> None:
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.tolist() == expected.tolist()


def layouts(bits: Bits) -> dict[str, Bits]:
    """Views of 12 patterns in layouts that a careless adapter would misread."""
    read_only = bits.copy()
    read_only.flags.writeable = False
    return {
        "strided": bits[::3],
        "reversed": bits[::-1],
        "transposed": bits.reshape(3, 4).T,
        "offset": bits[1:],
        "broadcast": np.broadcast_to(bits[:3], (2, 3)),
        "read-only": read_only,
    }


def run_script(script: str) -> list[str]:
    """What a script prints, line by line."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
