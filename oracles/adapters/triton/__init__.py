"""Triton's ``tl.cast`` in a kernel, by its interpreter on the CPU or, as `cuda`, on a GPU."""

from __future__ import annotations

import linecache
import os
from collections.abc import Hashable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, ClassVar

from oracles.adapters.refusals import load_own, require_plain, require_variant
from oracles.adapters.scripted import Function, Scripted, ScriptedOperation, Statements
from oracles.adapters.torch_tensors import DTYPES, patterns_text, tensor_text
from oracles.adapters.triton.script_lines import HEADER, KERNEL, LAUNCH
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named

CUDA = "cuda"
VARIANTS: tuple[str, ...] = (CUDA,)

EIGHT_BITS = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
"""The dtypes that torch has tensors of; it has none of float8e4b15."""
FLOATS: tuple[str, ...] = ("float64", "float32", "float16", "bfloat16", *EIGHT_BITS)
INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")
ROUNDINGS: Mapping[tuple[str, str], str] = {
    ("fp_downcast_rounding", "unset"): "",
    ("fp_downcast_rounding", "rtne"): "rtne",
    ("fp_downcast_rounding", "rtz"): "rtz",
    ("round", "nearest-even"): "rtne",
    ("round", "toward-zero"): "rtz",
}
"""The value of ``fp_downcast_rounding``, by a case's parameter and its value; "" leaves it out."""


class Triton(Scripted):
    """Casts by ``tl.cast``, and with ``bitcast=True`` reads patterns as another dtype."""

    name = "triton"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {
        "cast": "tl.cast",
        "bitcast": "tl.cast with bitcast=True",
    }
    claims: tuple[str, ...] = ("triton-cast",)

    def __init__(self, variant: str | None = None) -> None:
        require_variant(self.name, variant, VARIANTS)
        # It is read when a function becomes a kernel, and when triton is imported.
        os.environ["TRITON_INTERPRET"] = "0" if variant else "1"
        triton: Any = load_own("triton", __file__)
        torch: Any = load_own("torch", __file__)
        if variant and not torch.cuda.is_available():
            raise Unsupported("torch sees no GPU; `triton` runs triton's interpreter on the CPU")
        self._device = variant
        self._one_at_a_time = Lock()
        self._block = "1024" if variant else "min(triton.next_power_of_2(x.numel()), 65536) or 1"
        self.header = HEADER.replace('"1"', '"0"') if variant else HEADER
        self.version = str(triton.__version__)
        super().__init__(torch=torch, triton=triton, tl=triton.language, linecache=linecache)

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that triton lacks, or torch has no tensor of."""
        if dtype not in FLOATS + INTEGERS:
            raise Unsupported(f"triton has no dtype {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for a mode or a pair that ``tl.cast`` lacks."""
        source, target = format_named(case.source), format_named(case.target)
        names = {source.name, target.name}
        if operation == "bitcast" and (source.bits != target.bits or "bool" in names):
            raise Unsupported("tl.cast with bitcast=True wants numbers of one width")
        mixed = names - {*FLOATS}
        if operation == "cast" and mixed and names & {*EIGHT_BITS}:
            raise Unsupported("tl.cast has no casts between floats of eight bits and integers")
        narrows = not mixed and source.bits > target.bits
        if _rounding(case) and not narrows:
            raise Unsupported("fp_downcast_rounding is only for casts to floats of fewer bits")
        plain = tuple(mode for mode in case.modes if mode not in ROUNDINGS)
        require_plain(replace(case, modes=plain), self.operations.get(operation, operation))

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a tensor of this dtype, made from ``bits``."""
        return tensor_text(dtype, self._device).replace("bits", "bits.copy()")

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, a tensor of this dtype."""
        return patterns_text(dtype, self._device)

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that make a kernel once, and launch it on the elements of x."""
        rounding = _rounding(case)
        options = f', fp_downcast_rounding="{rounding}"' if rounding else ""
        if operation == "bitcast":
            options = ", bitcast=True"
        name = rounding or operation
        launch = LAUNCH.format(dtype=DTYPES[case.target], block=self._block)
        return Statements(launch, KERNEL.format(name=name, options=options))

    def run(self, make: Function, case: Case, bits: Bits) -> Bits:
        """Return the answers to ``bits``; one thread at a time, as the interpreter patches `tl`."""
        with self._one_at_a_time:
            return super().run(make, case, bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` read as another dtype; raise Unsupported as ``require`` does."""
        return self.answer("bitcast", case, bits)


def _rounding(case: Case) -> str:
    """Return the value of ``fp_downcast_rounding`` for a case; empty if the case has none."""
    return next((ROUNDINGS[mode] for mode in case.modes if mode in ROUNDINGS), "")
