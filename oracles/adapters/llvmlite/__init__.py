"""LLVM's conversion instructions, in functions that llvmlite compiles once per pair."""

from __future__ import annotations

import ctypes.util
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from oracles.adapters.llvmlite.script_lines import CALL, FUNCTION, HEADER, HOST, LOAD, PASSES
from oracles.adapters.refusals import load_own, require_plain, require_variant
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import Format, format_named

ROADS: Mapping[str | None, tuple[str, str]] = {
    None: (HOST, ""),
    "O3": (HOST, PASSES),
    "generic": ("", ""),
}
"""By variant: for which processor it compiles, and by which passes it optimizes first."""
VARIANTS: tuple[str, ...] = tuple(variant for variant in ROADS if variant)

FLOATS: Mapping[str, tuple[str, str]] = {
    "float64": ("double", "f64"),
    "float32": ("float", "f32"),
    "float16": ("half", "f16"),
    "bfloat16": ("bfloat", "bf16"),
}
"""By dtype, LLVM's type, and how the name of an intrinsic spells it."""
CALLED: Mapping[str, tuple[str, ...]] = {
    "float16": ("__truncsfhf2", "__truncdfhf2", "__extendhfsf2"),
    "bfloat16": ("__truncsfbf2", "__truncdfbf2"),
}
"""By dtype, the functions that compiled casts may call; without them the process would end."""
INTEGERS = tuple(f"{sign}int{bits}" for bits in (64, 32, 16, 8) for sign in ("", "u"))
SATURATING = ("range", "saturating")
"""The mode of a case that asks for a saturating cast, which is an intrinsic."""


class Llvmlite(Scripted):
    """Casts by an instruction of LLVM, or by an intrinsic where the case wants saturation."""

    name = "llvmlite"
    header = HEADER + LOAD + "\n"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "an instruction of LLVM"}
    claims: tuple[str, ...] = ("llvm-casts",)

    def __init__(self, variant: str | None = None) -> None:
        self._llvm: Any = load_own("llvmlite.binding", __file__)
        require_variant(self.name, variant, VARIANTS)
        package: Any = load_own("llvmlite", __file__)
        super().__init__(llvm=self._llvm, ctypes=ctypes)
        exec(LOAD, self.names)
        llvm = ".".join(map(str, self._llvm.llvm_version_info))
        self.version = f"{package.__version__} (LLVM {llvm})"
        self._machine, self._passes = ROADS[variant]

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that LLVM lacks, or that no library here can convert."""
        if dtype not in FLOATS and dtype not in INTEGERS:
            raise Unsupported(f"LLVM has no type {dtype}")
        if not all(map(self._llvm.address_of_symbol, CALLED.get(dtype, ()))):
            raise Unsupported(f"the library of this machine's compiler does not convert {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes and pairs without an instruction."""
        plain = tuple(mode for mode in case.modes if mode[0] != "range")
        require_plain(replace(case, modes=plain), self.operations["cast"])
        if {case.source, case.target} == {"float16", "bfloat16"}:
            raise Unsupported("LLVM has no conversion between half and bfloat")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns of this dtype, in a row of memory."""
        return "bits.copy()"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``."""
        return "y"

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that compile a pair's function once, and call it."""
        source, target = format_named(case.source), format_named(case.target)
        declaration, cast = _instruction(source, target, SATURATING in case.modes)
        once = FUNCTION.format(
            declaration=declaration,
            source=_type(source),
            target=_type(target),
            cast=cast,
            machine=self._machine,
            passes=self._passes,
        )
        return Statements(CALL.format(storage=target.storage), once)


def _type(dtype: Format) -> str:
    return FLOATS[dtype.name][0] if dtype.name in FLOATS else f"i{dtype.bits}"


def _instruction(source: Format, target: Format, saturates: bool) -> tuple[str, str]:
    """Return the declaration that is needed, if any, and the instruction on ``%value``."""
    ends = _type(source), _type(target)
    wider = target.bits > source.bits
    match source.name in FLOATS, target.name in FLOATS:
        case True, True:
            name = "fpext" if wider else "fptrunc"
        case True, False if saturates:
            intrinsic = f"@llvm.fpto{'si' if target.is_signed else 'ui'}.sat"
            call = f"{ends[1]} {intrinsic}.{ends[1]}.{FLOATS[source.name][1]}"
            return f"declare {call}({ends[0]})\n", f"call {call}({ends[0]} %value)"
        case True, False:
            name = "fptosi" if target.is_signed else "fptoui"
        case False, True:
            name = "sitofp" if source.is_signed else "uitofp"
        case _:
            name = ("sext" if source.is_signed else "zext") if wider else "trunc"
    return "", f"{'bitcast' if ends[0] == ends[1] else name} {ends[0]} %value to {ends[1]}"
