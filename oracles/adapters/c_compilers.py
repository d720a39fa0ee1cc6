"""gcc and clang: C's casts, each pair a loop that the compiler on the PATH makes a library of."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

from oracles.adapters.compiled_loops import CompiledLoops, Loop
from oracles.adapters.refusals import require_variant
from oracles.adapters.scripted import ScriptedOperation
from oracles.protocol import NotInstalled, Unsupported
from specs.cases import Case

SOFT = "soft"
"""The variant that calls the functions of the compiler's library, libgcc or compiler-rt."""
ROADS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "x87": ("", ("-mno-sse", "-mfpmath=387")),
    "f16c": ("F16C", ("-mf16c",)),
    "avx512": ("AVX512DQ", ("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl")),
    SOFT: ("", ()),
}
"""By variant, what the processor must have, and the flags.

With SSE at hand, gcc would still convert floats to integers by it.
"""
VARIANTS: tuple[str, ...] = tuple(ROADS)

DOCUMENT = "c-conversions"
IEC_60559 = "__STDC_IEC_559__"
"""The macro of implementations that conform to Annex F of C11; headers of a C library define it."""

TYPES: Mapping[str, str] = {
    "float64": "double",
    "float32": "float",
    "float16": "_Float16",
    "bfloat16": "__bf16",
    **{
        f"{sign}int{width}": f"{sign}int{width}_t"
        for width in (64, 32, 16, 8)
        for sign in ("", "u")
    },
    "bool": "_Bool",
}
"""By dtype, its type in C."""
OF_COMPILERS = frozenset({"float16", "bfloat16"})
"""The dtypes whose types are extensions."""

MODES: Mapping[str, str] = {"float64": "df", "float32": "sf", "float16": "hf", "bfloat16": "bf"}
"""By dtype, its name in the functions of the compiler's library; wider dtypes stand first."""
INTEGERS: Mapping[str, tuple[str, str]] = {
    "int64": ("", "di"),
    "int32": ("", "si"),
    "uint64": ("uns", "di"),
    "uint32": ("uns", "si"),
}
"""By integer dtype, the sign (empty or `uns`) and the name of its mode in function names."""

TRIAL = """\
int main(void) {{
    volatile float x = 0;
    volatile {name} y = ({name})x;
    return (int)(float)y;
}}
"""

CALL = """\
{declared}
int main(void) {{
    volatile {source} x = 0;
    volatile {target} y = {function}(x);
    return (int)y;
}}
"""


def soft_function(source: str, target: str) -> str | None:
    """Return the name of the library function that converts a pair; None if none has that name."""
    if source in MODES and target in MODES:
        order = [*MODES]
        first, second = order.index(source), order.index(target)
        if first == second or {first, second} == {2, 3}:
            return None
        return f"__{'trunc' if first < second else 'extend'}{MODES[source]}{MODES[target]}2"
    if source in MODES and target in INTEGERS:
        sign, integer = INTEGERS[target]
        return f"__fix{sign}{MODES[source]}{integer}"
    if source in INTEGERS and target in MODES:
        sign, integer = INTEGERS[source]
        return f"__float{sign.removesuffix('s')}{integer}{MODES[target]}"
    return None


class Compiler(CompiledLoops):
    """Casts by loops in C, a library for each pair; a subclass names the compiler."""

    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "a cast in C"}
    claims: tuple[str, ...] = (f"{DOCUMENT}:C11",)
    versions: ClassVar[tuple[str, ...]]
    """The macros whose values are the parts of its version."""

    def __init__(self, variant: str | None = None) -> None:
        if shutil.which(self.name) is None:
            advice = f"install it (apt-get install {self.name}) and have `{self.name}` on the PATH"
            raise NotInstalled(f"{self.name} is missing: {advice}")
        require_variant(self.name, variant, VARIANTS)
        super().__init__()
        macros = self._macros()
        if ("__clang__" in macros) != (self.name == "clang"):
            raise NotInstalled(
                f"`{self.name}` on the PATH is another compiler: put {self.name} first"
            )
        self.version = ".".join(macros[each] for each in self.versions)
        feature, self._flags = ROADS[variant] if variant else ("", ())
        if feature and f"__{feature}__" not in self._macros("-march=native"):
            raise Unsupported(f"{self.name}:{variant} needs a processor with {feature}")
        if not self._macros(*self._flags):
            raise Unsupported(f"{self.name} {self.version} takes no {' '.join(self._flags)} here")
        self._is_soft = variant == SOFT
        if self._is_soft:
            # The standard has casts, and says nothing of functions of a compiler's library.
            self.claims = ()
        elif IEC_60559 in self._macros(*self._flags, code="#include <stdint.h>\n"):
            self.claims = (*self.claims, f"{DOCUMENT}:C11-F")
        self._lacks = lru_cache(None)(self._try_type)
        self._declaration = lru_cache(None)(self._try_function)

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype of which C or this compiler has no type."""
        if dtype not in TYPES or (dtype in OF_COMPILERS and self._lacks(TYPES[dtype])):
            raise Unsupported(f"{self.name} {self.version} has no type of {dtype}")

    def require(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for a pair that C or the compiler's library does not convert."""
        super().require(operation, case)
        self.loop(case)

    def loop(self, case: Case) -> Loop:
        """Return the loop of C's cast, or of the library's function for the pair.

        Raises Unsupported if the library has none.
        """
        source, target = TYPES[case.source], TYPES[case.target]
        if not self._is_soft:
            return Loop(source, target, f"({target})x[i]")
        function = soft_function(case.source, case.target)
        declared = self._declaration(function, source, target) if function else None
        if declared is None:
            named = function or f"function for {case.source} to {case.target}"
            raise Unsupported(f"the library of {self.name} {self.version} has no {named}")
        return Loop(source, target, f"{function}(x[i])", declared)

    def command_text(self) -> str:
        """Return the Python expression of the compiler's command and its flags."""
        return "[" + ", ".join(f'"{word}"' for word in (self.name, "-O3", *self._flags)) + "]"

    def _macros(self, *flags: str, code: str = "") -> dict[str, str]:
        """Return the macros that are defined with these flags; none if the compiler refuses one."""
        done = self._run(*flags, "-dM", "-E", code=code)
        lines = (line.split(maxsplit=2) for line in done.stdout.splitlines())
        return {} if done.returncode else {line[1]: " ".join(line[2:]) for line in lines}

    def _try_type(self, name: str) -> bool:
        """Return whether the compiler lacks a type: no program that converts to it compiles."""
        with tempfile.TemporaryDirectory() as folder:
            code = TRIAL.format(name=name)
            done = self._run("-O3", *self._flags, "-o", folder + "/trial", code=code)
            return done.returncode != 0

    def _try_function(self, function: str, source: str, target: str) -> str | None:
        """Return the declaration of a library function; None if a program with it does not link."""
        declared = f"#include <stdint.h>\n{target} {function}({source});\n"
        names = {"declared": declared, "function": function, "source": source, "target": target}
        with tempfile.TemporaryDirectory() as folder:
            done = self._run("-O3", "-o", folder + "/trial", code=CALL.format(**names))
        return None if done.returncode else declared

    def _run(self, *words: str, code: str = "") -> subprocess.CompletedProcess[str]:
        command = [self.name, *words, "-x", "c", "-"]
        return subprocess.run(command, input=code, capture_output=True, text=True, check=False)


class Gcc(Compiler):
    """Casts by loops in C that gcc compiles."""

    name = "gcc"
    claims = (*Compiler.claims, f"{DOCUMENT}:C11-gcc")
    versions = ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")


class Clang(Compiler):
    """Casts by loops in C that clang compiles."""

    name = "clang"
    versions = ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")
