"""wasmtime: WebAssembly's conversions compiled by Cranelift."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from oracles.adapters.refusals import load, require_variant
from oracles.adapters.script_text import bits_statement
from oracles.adapters.wasm_modules import (
    DETERMINISTIC,
    FULL,
    PAGE,
    Conversion,
    TrapError,
    answers_begin,
    bitcast_operation,
    cast_operation,
    copy_operation,
)
from oracles.protocol import Bits, Bound
from specs.cases import Case
from specs.formats import format_named

SETTINGS: Mapping[str, tuple[str, object]] = {
    "deterministic": ("cranelift_nan_canonicalization", True),
    "unoptimized": ("cranelift_opt_level", "none"),
}
"""By variant, its setting: one NaN in place of all, or a compiler that does not optimize."""
VARIANTS: tuple[str, ...] = tuple(SETTINGS)

SCRIPT = """\
# wasmtime {version}: {case}
import numpy as np
from wasmtime import {names}Instance, Module, Store, Trap

{bits}
{store}
module = Module(store.engine, \"\"\"{module}\"\"\")
f = Instance(store, module, []).exports(store)["f"]
for given in bits:
    try:
        print(hex(given), "->", hex(f(store, int(given)) & {mask:#x}))
    except Trap as trap:
        print(hex(given), "->", trap.message.splitlines()[-1].strip())
"""
CONFIGURED = """\
config = Config()
config.{} = {!r}
store = Store(Engine(config))"""


class Wasmtime:
    """Casts and bitcasts by WebAssembly modules that loop over their memory, run by wasmtime."""

    name = "wasmtime"
    claims: tuple[str, ...] = ("wasm-convert", "wasm-reinterpret")

    def __init__(self, variant: str | None = None) -> None:
        self._wasmtime: Any = load("wasmtime", "wasmtime")
        require_variant(self.name, variant, VARIANTS)
        self.version = version("wasmtime")
        self._setting = SETTINGS.get(variant or "")
        self._profiles = (FULL, DETERMINISTIC) if variant == "deterministic" else (FULL,)
        config = self._wasmtime.Config()
        if self._setting:
            setattr(config, *self._setting)
        self._engine = self._wasmtime.Engine(config)
        self._compiled = lru_cache(None)(self._compile)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one instruction; raise TrapError if it traps on an input.

        Raises Unsupported as ``cast_operation`` does. Only `deterministic` has the profile of that
        name.
        """
        return self._answer(cast_operation(case, self._profiles), bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by one instruction, or copied between dtypes of one type.

        Raises Unsupported as ``bitcast_operation`` does.
        """
        return self._answer(bitcast_operation(case), bits)

    def bitcast_road(self, case: Case) -> str:
        """Return the dtypes and any instruction, as text; raise Unsupported as ``bitcast`` does."""
        return bitcast_operation(case).road

    def road(self, case: Case) -> str:
        """Return the pair and the instruction, as text; raise Unsupported as ``cast`` does."""
        return cast_operation(case, self._profiles).road

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that copies ``bits`` into a module's memory and runs its loop.

        The answers lie in that memory. ``bind`` raises Unsupported as ``cast`` does, and the call
        raises TrapError.
        """
        loop = self._loop(cast_operation(case, self._profiles), bits.size)

        def call() -> Bits:
            np.copyto(loop.inputs, bits)
            return loop.run()

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a loop has loaded and stored them.

        Raises Unsupported if WebAssembly has no values of the dtype.
        """
        return self._answer(copy_operation(dtype), bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that casts on wasmtime; raise Unsupported as ``cast`` does."""
        return self._script(cast_operation(case, self._profiles), case, bits.reshape(-1))

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that bitcasts on wasmtime; raise Unsupported as ``bitcast`` does."""
        return self._script(bitcast_operation(case), case, bits.reshape(-1))

    def _answer(self, operation: Conversion, bits: Bits) -> Bits:
        loop = self._loop(operation, bits.size)
        np.copyto(loop.inputs, bits.reshape(-1))
        return loop.run().reshape(bits.shape).copy()

    def _loop(self, operation: Conversion, count: int) -> LoopInstance:
        return LoopInstance(
            self._wasmtime, self._engine, self._compiled(operation), operation, count
        )

    def _compile(self, operation: Conversion) -> Any:
        return self._wasmtime.Module(self._engine, operation.binary)

    def _script(self, operation: Conversion, case: Case, bits: Bits) -> str:
        return SCRIPT.format(
            version=self.version,
            case=case,
            names="Config, Engine, " if self._setting else "",
            bits=bits_statement(case.source, bits),
            store=CONFIGURED.format(*self._setting) if self._setting else "store = Store()",
            module=operation.text,
            mask=format_named(case.target).mask,
        )


class LoopInstance:
    """An instance of a module, with arrays in its memory for ``count`` inputs and their answers."""

    def __init__(
        self, wasmtime: Any, engine: Any, module: Any, operation: Conversion, count: int
    ) -> None:
        self._trap = wasmtime.Trap
        self._store = wasmtime.Store(engine)
        exports = wasmtime.Instance(self._store, module, []).exports(self._store)
        self._function, memory = exports["run"], exports["memory"]
        self._count, self._begin = count, answers_begin(operation, count)
        end = self._begin + count * operation.target_size
        memory.grow(self._store, max(0, -(-end // PAGE) - memory.size(self._store)))
        raw = memory.get_buffer_ptr(self._store)
        whole = np.asarray(_Memory(ctypes.addressof(raw), end, self._store))
        self.inputs = whole[: count * operation.source_size].view(
            format_named(operation.source).storage
        )
        self._answers = whole[self._begin :].view(format_named(operation.target).storage)

    def run(self) -> Bits:
        """Return the answers to ``inputs`` as an array in the memory; raise TrapError at a trap."""
        try:
            self._function(self._store, self._count, 0, self._begin)
        except self._trap as trap:
            raise TrapError(trap.message.splitlines()[-1].strip()) from None
        return self._answers


class _Memory:
    """Exposes the memory of a store to numpy as bytes; every array in it keeps the store alive."""

    def __init__(self, address: int, size: int, store: Any) -> None:
        self._store = store
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
        }
