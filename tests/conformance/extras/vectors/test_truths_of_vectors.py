"""Processors, compilers and SoftFloat answer as exported vectors say, for every input of files.

The program that reads the files shares no code with the exporter and the harnesses.
"""

from __future__ import annotations

import importlib
import platform
import shutil
import subprocess
from collections.abc import Iterator
from ctypes import CDLL, c_uint8, c_uint64, c_void_p, cast, pointer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.extras.vectors.command import LIMIT, selected_cases, write_vectors

PROGRAM = Path(__file__).parent / "truths.c"
DOCUMENT = "ieee-casts:2019"
MODES = {"nearest-even": 0, "floor": 0x400, "ceil": 0x800, "toward-zero": 0xC00}
"""The roundings of x86, as <fenv.h> numbers them."""
INSTRUCTION = {"nearest-even": 0, "floor": 1, "ceil": 2, "toward-zero": 3}
"""The same, as F16C numbers them."""
SOFTFLOAT = {"nearest-even": 0, "toward-zero": 1, "floor": 2, "ceil": 3, "nearest-away": 4}
IN_C = {
    "float64": "double",
    "float32": "float",
    "float16": "_Float16",
    "bfloat16": "__bf16",
    "int64": "int64_t",
    "int32": "int32_t",
    "uint64": "uint64_t",
    "uint32": "uint32_t",
}
SHORT = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"} | {
    name: name.replace("uint", "ui").replace("int", "i") for name in ("int32", "uint32", "uint64")
}

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs are for x86-64"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler"),
]


class Pair(NamedTuple):
    """A cast in one rounding, and its exported file."""

    source: str
    target: str
    rounding: str = "nearest-even"
    kind: str = "casts"

    @property
    def case(self) -> str:
        return f"{DOCUMENT}/{self.source}/{self.target}"


def pairs(text: str, *roundings: str, kind: str = "casts") -> list[Pair]:
    """The pairs of a text such as `float32/float16 float16/float32`, in each rounding."""
    found = [each.split("/") for each in text.split()]
    return [Pair(*each, rounding, kind) for each in found for rounding in roundings]


NEAREST = "nearest-even"
NARROWED = "float32/float16 float32/bfloat16"
WIDENED = "float16/float32 bfloat16/float32 float32/float64"
FROM_64 = "float64/float32 float64/float16"
INTEGERS = "int32/float32 uint32/float32 uint64/float32 uint64/float64"

PAIRS = (NARROWED, WIDENED, FROM_64, INTEGERS)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[Pair, Path]:
    folder = tmp_path_factory.mktemp("vectors")
    told = [(each.source, each.target) for each in pairs(" ".join(PAIRS), NEAREST)]
    index = write_vectors(folder, selected_cases([DOCUMENT], told), LIMIT, 1, with_headers=False)
    found = {}
    for each in index.files:
        for case in each.cases:
            _, source, target, *modes = case.split("/")
            for rounding in [mode.partition(":")[2] for mode in modes] or SOFTFLOAT:
                found[Pair(source, target, rounding, each.kind)] = folder / each.file
    return found


class Truth:
    """The program, compiled for a pair of C types, and its counts."""

    def __init__(self, folder: Path, pair: Pair, types: tuple[str, str], convert: str) -> None:
        command = ["-O2", "-shared", "-fPIC", "-frounding-math", "-mf16c", "-Wl,-z,defs"]
        command += [f"-DFROM={types[0]}", f"-DTO={types[1]}", f"-DCONVERT(value)={convert}"]
        command += ["-DFLAGS"] if pair.kind == "flags" else []
        library = folder / "truth.so"
        for compiler in ("gcc", "clang"):
            if shutil.which(compiler) is not None:
                asked = [compiler, *command, "-o", library, PROGRAM, "-lm"]
                if subprocess.run(asked, capture_output=True).returncode == 0:
                    break
        else:
            pytest.skip(f"no compiler casts {types[0]} to {types[1]}")
        self.library = CDLL(str(library))

    def count(self, name: str) -> int:
        return c_uint64.in_dll(self.library, name).value

    def check(self, file: Path, mode: int = 0) -> None:
        assert self.library.check(str(file).encode(), mode) > 0
        first = f"{self.count('first_wrong'):#x}"
        assert (self.count("wrong"), first) == (0, "0x0")
        assert self.count("asked") > 0


def names(pair: Pair) -> str:
    return "-".join(pair)


@pytest.mark.parametrize("pair", pairs("float32/float16", *INSTRUCTION), ids=names)
def test_f16c_encodes_every_float32_so(files: dict[Pair, Path], pair: Pair, tmp_path: Path) -> None:
    convert = f"_cvtss_sh(value, {INSTRUCTION[pair.rounding]})"
    truth = Truth(tmp_path, pair, ("float", "uint16_t"), convert)
    truth.check(files[pair])
    assert truth.count("asked") == 2**32


def test_f16c_decodes_every_float16_so(files: dict[Pair, Path], tmp_path: Path) -> None:
    pair = Pair("float16", "float32")
    truth = Truth(tmp_path, pair, ("uint16_t", "float"), "_cvtsh_ss(value)")
    truth.check(files[pair])
    assert truth.count("asked") == 2**16


@pytest.mark.parametrize(
    "pair",
    [
        *pairs(f"{NARROWED} {WIDENED}", NEAREST),
        *pairs(f"{FROM_64} {INTEGERS}", *MODES),
        *pairs(FROM_64, *MODES, kind="flags"),
    ],
    ids=names,
)
def test_the_compiler_casts_so(files: dict[Pair, Path], pair: Pair, tmp_path: Path) -> None:
    target = IN_C[pair.target]
    truth = Truth(tmp_path, pair, (IN_C[pair.source], target), f"({target})value")
    truth.check(files[pair], MODES[pair.rounding])


@pytest.fixture
def softfloat() -> Iterator[Any]:
    if find_spec("softfloatpy") is None:
        pytest.skip("softfloatpy is not installed")
    library = CDLL(importlib.import_module("softfloatpy._core").__file__)
    yield library
    c_uint8.in_dll(library, "softfloat_roundingMode").value = 0


@pytest.mark.parametrize(
    "pair",
    [
        *pairs(f"{NARROWED} {WIDENED}", NEAREST),
        *pairs(f"{FROM_64} {INTEGERS}", *SOFTFLOAT),
        *pairs(f"{FROM_64} {NARROWED}", *SOFTFLOAT, kind="flags"),
    ],
    ids=names,
)
def test_softfloat_casts_so(
    files: dict[Pair, Path], softfloat: Any, pair: Pair, tmp_path: Path
) -> None:
    bits = {name: name.lstrip("bfloatuin") for name in (pair.source, pair.target)}
    types = (f"uint{bits[pair.source]}_t", f"uint{bits[pair.target]}_t")
    truth = Truth(tmp_path, pair, types, "given(value)")
    function = getattr(softfloat, f"{SHORT[pair.source]}_to_{SHORT[pair.target]}")
    c_void_p.in_dll(truth.library, "given").value = cast(function, c_void_p).value
    if pair.kind == "flags":
        flags = c_uint8.in_dll(softfloat, "softfloat_exceptionFlags")
        c_void_p.in_dll(truth.library, "raised").value = cast(pointer(flags), c_void_p).value
    c_uint8.in_dll(softfloat, "softfloat_roundingMode").value = SOFTFLOAT[pair.rounding]
    truth.check(files[pair])
