"""TVM's ``astype`` and ``reinterpret``, compiled for the CPU by LLVM, or folded by relax."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial, reduce
from math import prod
from typing import Any, Literal

import numpy as np

from oracles.adapters.refusals import load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import (
    bits_statement,
    mask_expression,
    print_loop,
    print_tensor,
)
from oracles.bit_packing import is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.chains import Company
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("static", "folded")
"""LLVM vectorizes and unrolls a loop of a known length (`static`) differently.

relax only folds (`folded`): what it compiles becomes the same program as without it.
"""

DTYPES: Mapping[str, str] = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e4m3": "float8_e4m3",
    "float8e3m4": "float8_e3m4",
    "float8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float4e2m1": "float4_e2m1fn",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "int4": "int4",
    "int2": "int2",
    "uint64": "uint64",
    "uint32": "uint32",
    "uint16": "uint16",
    "uint8": "uint8",
    "uint4": "uint4",
    "uint2": "uint2",
    "bool": "bool",
}

TARGET = "llvm"
"""Names no processor, so that the instructions are the same on all machines."""

MISSING_CAST = "to.MatchesCode(DLDataTypeCode::kDLFloat)"
"""The sign that the code generator lacks a cast between floats."""

CACHED_KERNELS = 256

Operation = Literal["cast", "bitcast", "copy"]
Shape = tuple[int, ...]
Path = tuple[str, ...]
"""The dtypes to which elements are cast, one after another."""
Kernel = Callable[..., None]
"""Takes the length, if that is not compiled in, and both tensors."""


class Tvm:
    """A cast by ``astype``, a bitcast by ``reinterpret``, in a compiled loop over the elements."""

    name = "tvm"
    claims: tuple[str, ...] = ("cinn-cast:tvm",)

    def __init__(self, variant: str | None = None) -> None:
        self._tvm: Any = load("tvm", "tvm")
        self._te: Any = load("tvm.te", "tvm")
        self._tirx: Any = load("tvm.tirx", "tvm")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._tvm.__version__)
        self._variant = variant
        self.compiles_shapes = variant is not None
        self.chain_roads = () if variant == "folded" else ("loop",)
        self._folding = Folding(self._tvm)
        self._kernel = lru_cache(CACHED_KERNELS if variant else None)(self._compile)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one loop of ``astype``."""
        require_plain(case, "astype")
        if self._variant == "folded":
            return self._folded(case.source, case.target, bits)
        return self._answer("cast", case.source, (case.target,), bits)

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Answer each chain with one loop of an ``astype`` after another."""
        ends = []
        for chain, own in zip(company.chains, bits.values(), strict=True):
            for step in chain.steps:
                require_plain(step, "astype")
            path = tuple(step.target for step in chain.steps)
            ends.append(self._answer("cast", chain.source, path, own))
        return ends

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one loop of ``reinterpret``, which keeps the width and the shape."""
        require_plain(case, "reinterpret")
        if self._variant == "folded":
            raise Unsupported("relax has no reinterpret that it could fold")
        return self._answer("bitcast", case.source, (case.target,), bits)

    def bitcast_road(self, case: Case) -> str:
        """Return the pair: a bitcast has no parameters besides the tensor's own shape."""
        return plain_road(case, "reinterpret")

    def road(self, case: Case) -> str:
        """Return the pair: ``astype`` has no parameters."""
        require_plain(case, "astype")
        for dtype in (case.source, case.target):
            _name(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that copies ``bits`` into one tensor and casts it into another."""
        require_plain(case, "astype")
        if self._variant == "folded":
            self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
            return partial(self.cast, case, bits)
        return self._bound("cast", case.source, (case.target,), bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Send bits through a loop that copies."""
        return self._answer("copy", dtype, (dtype,), bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the case on TVM, without this project."""
        self.road(case)
        script = self._script(f'a[i].astype("{DTYPES[case.target]}")', case, bits)
        return script + print_loop(case.source, case.target)

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes one chain on TVM, without this project."""
        [chain], [own] = company.chains, [*bits.values()]
        casts = "".join(f'.astype("{_name(step.target)}")' for step in chain.steps)
        ends = replace(case, target=chain.target)
        script = self._script(f"a[i]{casts}", ends, own, f"{chain.id} on {company.road}")
        return script + print_loop(chain.source, chain.target)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that does a bitcast of a row on TVM, without this project."""
        if self._variant is not None or bits.ndim != 1:
            raise Unsupported("scripts of tvm do bitcasts of rows alone, in a loop of open length")
        element = f'tirx.reinterpret("{_name(case.target)}", a[i])'
        return self._script(element, case, bits) + print_tensor(case.target)

    def _script(self, element: str, case: Case, bits: Bits, asked: str = "") -> str:
        """Return a script up to the statement that binds ``answers``."""
        has_open_length, is_folded = self._variant is None, self._variant == "folded"
        mask = mask_expression(case.target)
        mask_statement = f"answers = answers{mask}\n" if mask else ""
        return (HEADER + (FOLD if is_folded else COMPILE) + mask_statement).format(
            version=self.version,
            case=asked or case,
            bits=bits_statement(case.source, bits),
            modules="relax" if is_folded else "te, tirx" if has_open_length else "te",
            source=_name(case.source),
            target=_name(case.target),
            element=element,
            source_storage=format_named(case.source).storage,
            target_storage=format_named(case.target).storage,
            compiler=TARGET,
            length='tirx.Var("n", "int64")' if has_open_length else "len(bits)",
            arguments="n, " if has_open_length else "",
            count="len(bits), " if has_open_length else "",
        )

    def _answer(self, operation: Operation, source: str, path: Path, bits: Bits) -> Bits:
        # A loop over the flat elements serves every shape: both operations work element by element.
        shape = bits.shape if self._variant == "static" else (bits.size,)
        answer = self._bound(operation, source, path, bits.reshape(shape))()
        return answer.reshape(bits.shape)

    def _bound(self, operation: Operation, source: str, path: Path, bits: Bits) -> Bound:
        is_static = self._variant == "static"
        kernel = self._kernel(operation, source, path, bits.shape if is_static else None)
        counts = () if is_static else (bits.size,)
        # TVM needs memory aligned to 64 bytes, which numpy's seldom is.
        x, content = self._tensor(source, bits.shape)
        y, codes = self._tensor(path[-1], bits.shape)
        entry = format_named(path[-1])

        def call() -> Bits:
            np.copyto(content, bits)
            kernel(*counts, x, y)
            if is_packed(entry):
                np.bitwise_and(codes, np.uint8(entry.mask), out=codes)
            return codes

        return call

    def _folded(self, source: str, target: str, bits: Bits) -> Bits:
        for dtype in (target, source):
            name = _name(dtype)
            if is_packed(format_named(dtype)):
                raise Unsupported(f"TVM packs constants of {name}, but compiles a byte for each")
        entry = format_named(target)
        x, content = self._tensor(source, bits.shape)
        np.copyto(content, bits)
        y = self._folding.answer(x, DTYPES[target], TARGET)
        raw = y._create_view((bits.size * np.dtype(entry.storage).itemsize,), "uint8")
        codes: Bits = np.from_dlpack(raw).view(entry.storage).reshape(bits.shape)
        return codes.copy()

    def _tensor(self, dtype: str, shape: Shape) -> tuple[Any, Bits]:
        """Return a tensor and the array of its patterns.

        TVM's tensors pack codes of less than a byte, but its compiled code reads a byte per code,
        beyond the tensor's end. So allocate a byte per code.
        """
        storage, count = np.dtype(format_named(dtype).storage), prod(shape)
        memory = self._tvm.runtime.empty((max(count, 1) * storage.itemsize,), "uint8")
        tensor = memory._create_view(shape, DTYPES[dtype])
        return tensor, np.from_dlpack(memory).view(storage)[:count].reshape(shape)

    def _compile(
        self, operation: Operation, source: str, path: Path, shape: Shape | None
    ) -> Kernel:
        names = [*map(_name, path)]
        operations: Mapping[Operation, Callable[[Any], Any]] = {
            "cast": lambda element: reduce(lambda x, to: x.astype(to), names, element),
            "bitcast": lambda element: self._tirx.reinterpret(names[0], element),
            "copy": lambda element: element,
        }
        # An open length is a separate argument, since TVM reads none from a tensor of int4.
        counts = [] if shape is not None else [self._tirx.Var("n", "int64")]
        lengths = tuple(counts) if shape is None else shape
        a = self._te.placeholder(lengths, _name(source), "a")
        try:
            b = self._te.compute(lengths, lambda *index: operations[operation](a(*index)))
            program = self._te.create_prim_func([*counts, a, b])
            kernel: Kernel = self._tvm.compile(program, TARGET)["main"]
        except RuntimeError as error:
            if operation != "cast" or MISSING_CAST not in str(error):
                raise
            casts = " to ".join([DTYPES[source], *names])
            raise Unsupported(f"TVM generates no code for {TARGET} that casts {casts}") from None
        return kernel


class Folding:
    """Folds a relax function that casts a constant."""

    def __init__(self, tvm: Any) -> None:
        self._tvm = tvm
        self._relax: Any = load("tvm.relax", "tvm")

    def answer(self, tensor: Any, target: str, compiler: str) -> Any:
        """Return the folded cast of a constant tensor; raise Unsupported if relax left a call."""
        builder, relax = self._relax.BlockBuilder(), self._relax
        with builder.function("main", []):
            with builder.dataflow():
                cast = builder.emit_output(relax.op.astype(relax.const(tensor), target))
            builder.emit_func_output(cast)
        with self._tvm.target.Target(compiler):
            module = relax.transform.LegalizeOps()(builder.get())
            body = relax.transform.FoldConstant()(module)["main"].body
        if len(body.blocks):
            raise Unsupported("relax did not fold this, but left a call")
        return body.body.value


def _name(dtype: str) -> str:
    try:
        return DTYPES[dtype]
    except KeyError:
        raise Unsupported(f"tvm has no dtype {dtype}") from None


HEADER = """\
# tvm {version}: {case}
import numpy as np
import tvm
from tvm import {modules}

{bits}


def tensor(dtype, storage):  # a byte per code of less than a byte: so the compiled code reads it
    memory = tvm.runtime.empty((len(bits) * np.dtype(storage).itemsize,), "uint8")
    return memory._create_view((len(bits),), dtype), np.from_dlpack(memory).view(storage)


x, content = tensor("{source}", "{source_storage}")
content[:] = bits
"""

COMPILE = """\
n = {length}
a = te.placeholder((n,), "{source}", "a")
b = te.compute((n,), lambda i: {element})
kernel = tvm.compile(te.create_prim_func([{arguments}a, b]), "{compiler}")["main"]
y, answers = tensor("{target}", "{target_storage}")
kernel({count}x, y)
"""

FOLD = """\
builder = relax.BlockBuilder()
with builder.function("main", []):
    with builder.dataflow():
        cast = builder.emit_output(relax.op.astype(relax.const(x), "{target}"))
    builder.emit_func_output(cast)
with tvm.target.Target("{compiler}"):
    module = relax.transform.FoldConstant()(relax.transform.LegalizeOps()(builder.get()))
y = module["main"].body.body.value
content = y._create_view((len(bits) * np.dtype("{target_storage}").itemsize,), "uint8")
answers = np.from_dlpack(content).view("{target_storage}")
"""
