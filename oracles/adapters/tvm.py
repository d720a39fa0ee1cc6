"""TVM's ``astype`` and ``reinterpret``, compiled for the CPU by a target, or folded by relax."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import pairwise, starmap
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from oracles.adapters.dtype_table import names_in
from oracles.adapters.refusals import is_lacking, load, plain_road, require_plain
from oracles.adapters.script_text import (
    bits_statement,
    mask_expression,
    print_loop,
    print_statement,
    print_tensor,
)
from oracles.adapters.scripted import Function, ScriptedOperation, Statements
from oracles.adapters.tvm_targets import LLVM, TARGET_ROADS, target_named
from oracles.memory_layouts import is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case, Shape
from specs.formats import format_named

if TYPE_CHECKING:
    from specs.chains import Chain, Company

VARIANTS: tuple[str, ...] = ("static", "folded")
"""LLVM vectorizes and unrolls a loop of a known length (`static`) differently.

relax only folds (`folded`): what it compiles becomes the same program as without it.
"""

OPEN_ROADS = TARGET_ROADS

VERBS: Mapping[ScriptedOperation, str] = {
    "cast": "casts", "bitcast": "reinterprets", "copy": "copies",
}  # fmt: skip

DTYPES: Mapping[str, str] = names_in("tvm")


class Tvm:
    """Casts by ``astype`` and bitcasts by ``reinterpret``, in a compiled loop over the elements.

    The variant `static` compiles a loop for one shape. `folded` has relax fold a cast of a constant
    instead.
    """

    name = "tvm"
    claims: tuple[str, ...] = ("cinn-cast:tvm",)

    def __init__(self, variant: str | None = None) -> None:
        self._tvm: Any = load("tvm", "tvm")
        te, tirx = load("tvm.te", "tvm"), load("tvm.tirx", "tvm")
        self._names = {"tvm": self._tvm, "te": te, "tirx": tirx}
        self.version = str(self._tvm.__version__)
        self._target = LLVM
        if variant is not None and variant not in VARIANTS:
            self._target = target_named(self._tvm, variant, VARIANTS)
            self.version += f", {self._target.words}"
            variant = None
        self._variant = variant
        self.compiles_shapes = variant is not None
        self.chain_roads = () if variant == "folded" else ("loop",)
        # A compiler of C refuses by an error of its own.
        self._refusals: tuple[type[Exception], ...] = (self._tvm.error.InternalError, RuntimeError)
        if self._target is LLVM:
            self._refusals = self._refusals[:1]
        self._folding = RelaxFolding(self._tvm)
        self._lacks = lru_cache(None)(self._try)
        self._kernel = lru_cache(256 if variant else None)(self._compile)

    def bitcast_road(self, case: Case) -> str:
        """Return the pair of dtypes as text; raise Unsupported as ``require_plain`` does."""
        return plain_road(case, "reinterpret")

    def road(self, case: Case) -> str:
        """Return the pair of dtypes as text.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that TVM lacks.
        """
        require_plain(case, "astype")
        for dtype in (case.source, case.target):
            _name(dtype)
        return f"{case.source}->{case.target}"

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one loop of ``astype``, or (`folded`) by relax.

        Raises Unsupported for modes that ``require_plain`` refuses, and a dtype or a cast that TVM
        lacks. In `folded` it does so for codes of less than a byte, and if relax does not fold the
        constant.
        """
        require_plain(case, "astype")
        if self._variant == "folded":
            return self._folded(case.source, case.target, bits)
        return self._answer("cast", (case.source, case.target), bits)

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the result of each chain of a company, each computed by a loop of its own.

        ``bits`` has the input of each chain under its index, as text. Raises Unsupported for modes
        that ``require_plain`` refuses, and a dtype or a cast that TVM lacks.
        """
        pairs = zip(company.chains, company.inputs(bits), strict=True)
        return [self._answer("cast", self._path(chain), own) for chain, own in pairs]

    def _path(self, chain: Chain) -> tuple[str, ...]:
        for step in chain.steps:
            require_plain(step, "astype")
        return (chain.source, *(step.target for step in chain.steps))

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` after one loop of ``reinterpret``, which keeps the width and the shape.

        Raises Unsupported in the variant `folded`, for modes that ``require_plain`` refuses, and
        for a dtype that TVM lacks.
        """
        require_plain(case, "reinterpret")
        if self._variant == "folded":
            raise Unsupported("relax has no reinterpret that it could fold")
        return self._answer("bitcast", (case.source, case.target), bits)

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that copies ``bits`` into one tensor and casts it into another.

        All calls use the same two tensors. In the variant `folded` it is a call of ``cast``. Raises
        Unsupported as ``cast`` does.
        """
        require_plain(case, "astype")
        if self._variant == "folded":
            self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
            return partial(self.cast, case, bits)
        return self._bound("cast", (case.source, case.target), bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a compiled loop that copies each element.

        Raises Unsupported if TVM lacks the dtype.
        """
        return self._answer("copy", (dtype, dtype), bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that casts a tensor on TVM; raise Unsupported as ``road`` does.

        It is a row unless the shape is compiled: a loop of open length gets the flat elements.
        """
        self.road(case)
        given = bits.reshape(-1) if self._variant is None else bits
        pair = (case.source, case.target)
        return self._script("cast", pair, case, given) + print_statement(*pair, given)

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a script that runs the only chain of a company, whose input is a row, on TVM.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that TVM lacks.
        """
        [chain], [own] = company.chains, [*bits.values()]
        script = self._script("cast", self._path(chain), f"{chain.id} on {company.road}", own)
        return script + print_loop(chain.source, chain.target)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that does a bitcast of a row on TVM.

        Raises Unsupported for other shapes, in the variants, for modes that ``require_plain``
        refuses, and for a dtype that TVM lacks.
        """
        require_plain(case, "reinterpret")
        if self._variant is not None or bits.ndim != 1:
            raise Unsupported("scripts of tvm do bitcasts of rows alone, in a loop of open length")
        script = self._script("bitcast", (case.source, case.target), case, bits)
        return script + print_tensor(case.target)

    def _script(
        self, operation: ScriptedOperation, path: tuple[str, ...], asked: object, bits: Bits
    ) -> str:
        """Return a script that ends with the statement that binds ``answers``.

        ``path`` has the dtypes, from the source to the target. ``asked``, the case or the chain, is
        named in the first line.
        """
        source, target = path[0], path[-1]
        form = bits.shape if self._variant == "static" else None
        loop = _loop(operation, path, form, "{compiler}")
        body = FOLD if self._variant == "folded" else loop.text
        modules = {None: "te, tirx", "static": "te", "folded": "relax"}[self._variant]
        mask = mask_expression(target)
        return (
            HEADER.format(
                version=self.version,
                case=asked,
                modules=modules,
                bits=bits_statement(source, bits),
                source=_name(source),
                source_storage=format_named(source).storage,
            )
            + body.format(
                target=_name(target),
                storage=format_named(target).storage,
                compiler=self._target.text,
            )
            + (f"answers = answers{mask}\n" if mask else "")
        )

    def _answer(self, operation: ScriptedOperation, path: tuple[str, ...], bits: Bits) -> Bits:
        # A loop over the flat elements serves every shape: both operations work element by element.
        shape = bits.shape if self._variant == "static" else (bits.size,)
        answer = self._bound(operation, path, bits.reshape(shape))()
        return answer.reshape(bits.shape)

    def _bound(self, operation: ScriptedOperation, path: tuple[str, ...], bits: Bits) -> Bound:
        is_static = self._variant == "static"
        kernel = self._kernel(operation, path, bits.shape if is_static else None)
        counts = () if is_static else (bits.size,)
        # TVM needs memory aligned to 64 bytes, which numpy's seldom is.
        x, content = self._tensor(path[0], bits.shape)
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
        y = self._folding.answer(x, DTYPES[target], self._target.kind)
        raw = y._create_view((bits.size * np.dtype(entry.storage).itemsize,), "uint8")
        codes: Bits = np.from_dlpack(raw).view(entry.storage).reshape(bits.shape)
        return codes.copy()

    def _tensor(self, dtype: str, shape: Shape) -> tuple[Any, Bits]:
        """Return a tensor, and the array of its patterns in the same memory.

        TVM's tensors pack codes of less than a byte, but its compiled code reads a byte per code,
        beyond the tensor's end. So allocate a byte per code.
        """
        storage, count = np.dtype(format_named(dtype).storage), prod(shape)
        memory = self._tvm.runtime.empty((max(count, 1) * storage.itemsize,), "uint8")
        tensor = memory._create_view(shape, DTYPES[dtype])
        return tensor, np.from_dlpack(memory).view(storage)[:count].reshape(shape)

    def _compile(
        self, operation: ScriptedOperation, path: tuple[str, ...], shape: Shape | None
    ) -> Function:
        try:
            return self._generate(operation, path, shape)
        except self._refusals:
            if not any(starmap(partial(self._lacks, operation), pairwise(path))):
                raise
            words = f"{VERBS[operation]} {' to '.join(map(_name, path))}"
            code = f"code for {self._target.words}"
            raise Unsupported(f"TVM generates no {code} that {words}") from None

    def _try(self, operation: ScriptedOperation, source: str, target: str) -> bool:
        """Return whether TVM refuses to compile an operation on two dtypes, but compiles copies.

        The copies are of both dtypes for LLVM, which has all of them, and else of float32.
        """
        is_all = self._target is LLVM
        if is_all and operation != "cast":
            return False

        def copy() -> None:
            for dtype in (source, target) if is_all else ("float32",):
                self._generate("copy", (dtype, dtype), None)

        return is_lacking(
            self._refusals, partial(self._generate, operation, (source, target), None), copy
        )

    def _generate(
        self, operation: ScriptedOperation, path: tuple[str, ...], shape: Shape | None
    ) -> Function:
        names = dict(self._names)
        exec(_loop(operation, path, shape, self._target.text).once, names)
        kernel: Function = names["kernel"]
        return kernel


def _loop(
    operation: ScriptedOperation, path: tuple[str, ...], shape: Shape | None, target: str
) -> Statements:
    """Return the statements that compile a loop, and run it from the tensor x to y.

    Those that run it have places for `target` and `storage`. ``path`` has the dtypes, from the
    source to the target, and ``target`` is the expression of TVM's target. If ``shape`` is None,
    the loop takes its length as a further argument, because TVM reads none from a tensor of int4.
    """
    names, source = [*map(_name, path[1:])], _name(path[0])
    element = "a(*i)" + "".join(f'.astype("{name}")' for name in names)
    if operation != "cast":
        element = "a(*i)" if operation == "copy" else f'tirx.reinterpret("{names[0]}", a(*i))'
    is_open = shape is None
    once = COMPILE.format(
        length='n = tirx.Var("n", "int64")\n' if is_open else "",
        shape="(n,)" if is_open else shape,
        source=source,
        element=element,
        arguments="n, " if is_open else "",
        compiler=target,
    )
    run = f"kernel({'len(bits), ' if is_open else ''}x, y)\n"
    return Statements(f'y, answers = tensor("{{target}}", "{{storage}}")\n{run}', once)


class RelaxFolding:
    """Folds a relax function that casts a constant."""

    def __init__(self, tvm: Any) -> None:
        self._tvm = tvm
        self._relax: Any = load("tvm.relax", "tvm")

    def answer(self, tensor: Any, target: str, compiler: str) -> Any:
        """Return the tensor into which relax folds a cast of a constant tensor.

        ``target`` is TVM's name of a dtype, and ``compiler`` that of a TVM target. Raises
        Unsupported if relax leaves a call.
        """
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
    memory = tvm.runtime.empty((bits.size * np.dtype(storage).itemsize,), "uint8")
    content = np.from_dlpack(memory).view(storage).reshape(bits.shape)
    return memory._create_view(bits.shape, dtype), content


x, content = tensor("{source}", "{source_storage}")
content[...] = bits
"""

COMPILE = """\
{length}a = te.placeholder({shape}, "{source}", "a")
b = te.compute({shape}, lambda *i: {element})
kernel = tvm.compile(te.create_prim_func([{arguments}a, b]), {compiler})["main"]
"""

FOLD = """\
builder = relax.BlockBuilder()
with builder.function("main", []):
    with builder.dataflow():
        cast = builder.emit_output(relax.op.astype(relax.const(x), "{target}"))
    builder.emit_func_output(cast)
with tvm.target.Target({compiler}):
    module = relax.transform.FoldConstant()(relax.transform.LegalizeOps()(builder.get()))
y = module["main"].body.body.value
content = y._create_view((bits.size * np.dtype("{storage}").itemsize,), "uint8")
answers = np.from_dlpack(content).view("{storage}").reshape(bits.shape)
"""
