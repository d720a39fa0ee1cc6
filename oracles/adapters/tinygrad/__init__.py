"""tinygrad: ``Tensor.cast`` on a device, in a kernel that its renderer writes for each shape."""

from __future__ import annotations

import shutil
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from oracles.adapters.refusals import first_line, load_own
from oracles.adapters.road_words import parse_road
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.protocol import NotInstalled, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("python", "cpu:x86", "cpu:llvm")
OPEN_ROADS: Mapping[str, str] = {
    "DEVICE[:RENDERER]": "a device and a renderer as tinygrad's variable DEV spells them"
}

DTYPES: Mapping[str, str] = {
    **{
        dtype: dtype
        for dtype in (
            *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8"),
            *("uint64", "uint32", "uint16", "uint8", "bool"),
        )
    },
    "float8e4m3fn": "fp8e4m3",
    "float8e5m2": "fp8e5m2",
    "float8e4m3fnuz": "fp8e4m3fnuz",
    "float8e5m2fnuz": "fp8e5m2fnuz",
}
"""tinygrad's names of the dtypes that it has."""

HEADER = """\
# tinygrad {version}: {case}
import numpy as np
from tinygrad import Context, Tensor, dtypes

"""


class Tinygrad(Scripted):
    """Casts by ``Tensor.cast`` on the device of the variant, or on the CPU by clang's code."""

    name = "tinygrad"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "Tensor.cast"}
    claims: tuple[str, ...] = ()
    dtypes = tuple(DTYPES)
    compiles_shapes = True

    def __init__(self, variant: str | None = None) -> None:
        tinygrad: Any = load_own("tinygrad", __file__)
        self._target = _target(variant or "cpu")
        self._device = self._target.partition(":")[0]
        if self._device == "CPU" and shutil.which("clang") is None:
            raise NotInstalled("clang is missing: tinygrad compiles by it; have it on the PATH")
        try:
            with tinygrad.Context(DEV=self._target):
                _ = tinygrad.Device[self._device].renderer
        except Exception as error:
            raise Unsupported(
                f"tinygrad has no variant `{variant}`: {first_line(error)}"
            ) from error
        super().__init__(
            tinygrad=tinygrad,
            Context=tinygrad.Context,
            Tensor=tinygrad.Tensor,
            dtypes=tinygrad.dtypes,
        )
        self.version = str(load_own("importlib.metadata", __file__).version("tinygrad"))

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that tinygrad lacks."""
        if dtype not in DTYPES:
            raise Unsupported(f"tinygrad has no dtype {dtype}")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a tensor of this dtype, which copies the bits."""
        name = f"dtypes.{DTYPES[dtype]}"
        return f'Tensor(bits.tobytes(), "{self._device}", {name}).reshape(bits.shape)'

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of a copy of the patterns in ``y``.

        They are read from its buffer, which a tensor without elements has not.
        """
        raw = 'bytes(y._data() if y.numel() else b"")'
        return f"np.frombuffer({raw}, np.{format_named(dtype).storage}).reshape(y.shape)"

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that cast in a kernel of the device."""
        return Statements(
            f'with Context(DEV="{self._target}"):\n'
            f"    y = x.cast(dtypes.{DTYPES[case.target]}).realize()\n"
        )


def _target(variant: str) -> str:
    return ",".join(parse_road("tinygrad", variant, keys=()).words).upper()
