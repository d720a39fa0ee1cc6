"""torch's ``Tensor.to(dtype)`` and ``Tensor.view(dtype)``, eager, compiled and on a device.

inductor compiles a function per pair, for all lengths. In chains it may keep more precision than a
dtype on the way has; with ``emulate_precision_casts`` it rounds there. Both are roads of `compile`.
"""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from collections.abc import Hashable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oracles.adapters.carriers import Carrying
from oracles.adapters.refusals import load
from oracles.adapters.script_text import UNEVEN
from oracles.adapters.scripted import Chained, Function, ScriptedOperation, Statements, call_steps
from oracles.adapters.torch_calls import SYNTAX, TorchCalls
from oracles.adapters.torch_carriers import CARRIERS, FEW_COMPILED, OF_CPU
from oracles.adapters.torch_devices import (
    DEVICE_ROADS,
    DeviceRoad,
    FallbackWatch,
    device_road,
    first_sentence,
    forbid_fallback,
    require_device,
    require_place,
)
from oracles.adapters.torch_quantize import Quantizer
from oracles.adapters.torch_tensors import (
    DTYPES,
    PAIRED,
    VIEWED,
    TorchTensors,
    patterns_text,
    shares_memory,
    tensor_text,
)
from oracles.memory_layouts import in_huge_pages
from oracles.protocol import Bits, Bound, DeviceSwept, NotInstalled, Returned, Unsupported
from specs.cases import CARRIER, Call, Case
from specs.formats import format_named

if TYPE_CHECKING:
    from specs.chains import Company

VARIANTS: tuple[str, ...] = (
    "view", "compile", "compile-emulated", "functionalized", "threads", "cuda", "decomposed",
)  # fmt: skip

OPEN_ROADS = DEVICE_ROADS

ALONE = {
    "view": ("bitcast", "bitcasts"),
    "compile-emulated": ("carry", "other operations"),
    "functionalized": ("carry", "other operations"),
    "decomposed": ("quantize", "quantization"),
}
"""The variants that offer one operation alone, and what it is called."""

EAGER, COMPILED = "eager", "compiled"
EMULATED = f"{COMPILED},emulate_precision_casts:on"
CHAIN_ROADS: Mapping[str | None, tuple[str, ...]] = {
    "compile": (COMPILED, EMULATED),
    **dict.fromkeys(ALONE, ()),
}
"""By variant, the roads of its chains; variants that are not listed have the eager road alone."""

OPTIONS = "fullgraph=True, dynamic=True"
EMULATE = f'{OPTIONS}, options={{"emulate_precision_casts": True}}'
"""The arguments of ``torch.compile``."""
MAKERS = {
    "compile": ("torch.compile", OPTIONS),
    "compile-emulated": ("torch.compile", EMULATE),
    "functionalized": ("torch.func.functionalize", ""),
}
"""By variant, the function that makes another of a carrier, and its further arguments."""

SIGNED = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
"""torch's signed integers by their bytes: it computes with few of the unsigned ones."""
HALF = 1 << 31


class Torch(Carrying, Chained):
    """Casts by ``Tensor.to`` and bitcasts by ``Tensor.view``, in the way that the variant names.

    Without a variant calls are eager. `compile` compiles them by inductor, and `cuda` has its
    tensors on a CUDA device. `view` offers bitcasts alone, and `decomposed` quantization alone, by
    the operations of exported graphs. `compile-emulated` and `functionalized` offer other
    operations that carry values, compiled with the rounding of eager calls, or without mutations.
    `threads` uses torch's default number of threads; all others use one.
    """

    name = "torch"
    header = "# torch {version}: {case}\nimport numpy as np\nimport torch\n\n"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {
        "cast": "Tensor.to",
        "bitcast": "Tensor.view",
        "carry": "an operation",
    }
    carriers = CARRIERS
    devices: Mapping[str | None, str] = {"cuda": "cuda"}
    """By variant, the torch device of its tensors; those of other variants are on the CPU."""
    claims: tuple[str, ...] = (
        "torch-tensor-to", "torch-sharded-tensor-to", "torch-module-type", "torch-view",
        "torch-carriers",
    )  # fmt: skip

    def __init__(self, variant: str | None = None) -> None:
        is_open = variant is not None and variant not in VARIANTS
        if is_open:
            forbid_fallback()
        self._torch: Any = load("torch", "torch")
        self._road: DeviceRoad | None = None
        if variant is not None and is_open:
            self._road = device_road(self._torch, variant, VARIANTS)
        super().__init__(torch=self._torch)
        self.version = str(self._torch.__version__)
        if variant != "threads":
            self._torch.set_num_threads(1)
        self._variant = variant
        self._device = self.devices.get(variant)
        if self._device is not None:
            require_device(self._torch, self._device)
        self._to = self._device
        self.chain_roads = CHAIN_ROADS.get(variant, (EAGER,))
        if self._road is not None:
            self._follow(self._road)
        self._tensors = TorchTensors(self._torch, self._device)
        # A compiled kernel serves all lengths, but only one rank.
        self.maker = MAKERS.get(variant or "", self.maker)
        self.compiles_shapes = self.maker[0] == "torch.compile"
        if self.compiles_shapes:
            self._dynamo = _compiler(self._torch)

    def _follow(self, road: DeviceRoad) -> None:
        self._device, self._to = road.device, road.to
        self._watch, self._watched = FallbackWatch(self._torch), set[Hashable]()
        if road.is_copy:
            self.chain_roads = ()
        if road.module:
            self.header = self.header.rstrip("\n") + f"\nimport {road.module}\n\n"
            self.version += f", {road.module} {road.version}".rstrip()

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that torch cannot cast or, for other operations, view."""
        if operation in ("cast", "carry"):
            self._tensors.castable(dtype)
        else:
            self._tensors.viewable(dtype)

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported as ``require_plain`` does, or if the variant lacks the operation."""
        super().require_parameters(operation, case)
        if self._variant in ALONE and operation != ALONE[self._variant][0]:
            offered = ALONE[self._variant][1]
            raise Unsupported(f"torch:{self._variant} offers {offered} alone; torch casts")
        if self._device != self._to and operation == "bitcast":
            raise Unsupported(f"torch:{self._variant} casts; torch:{self._device} views, too")
        if operation == "carry":
            self._require_carrier(case)

    def _require_carrier(self, case: Case) -> None:
        """Raise Unsupported for a carrier of the CPU on a device, or one that is not compiled."""
        carrier = case.mode[CARRIER]
        if self._device is not None and carrier in OF_CPU:
            raise Unsupported(f"{carrier} sets a mode of the CPU; torch carries by it")
        if self.compiles_shapes and carrier not in FEW_COMPILED.get((case.source, case.target), ()):
            raise Unsupported(f"torch:{self._variant} compiles a few carriers; torch has them all")

    def dtype_text(self, dtype: str) -> str:
        """Return the Python expression of torch's dtype."""
        return f"torch.{DTYPES[dtype]}"

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a tensor of this dtype, made from the array ``bits``."""
        return tensor_text(dtype, self._device)

    def input_text(self, dtype: str, bits: Bits) -> str:
        """Return the Python expression of a script's tensor of these bits.

        For an empty array it is ``torch.empty``, because torch cannot view the array's strides.
        """
        there = f', device="{self._device}"' if self._device else ""
        empty = f"torch.empty({bits.shape}, dtype=torch.{DTYPES[dtype]}{there})"
        return self.tensor_text(dtype) if bits.size else empty

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, a tensor of this dtype."""
        return patterns_text(dtype, self._device)

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that bind ``y`` to one ``to`` or one ``view`` of ``x``.

        In the variant `compile` they compile the operation once to a function, and call it.
        """
        method, target = "to" if operation == "cast" else "view", VIEWED[case.target]
        maker = "torch.compile" if self.compiles_shapes else ""
        there = f'"{self._to}", ' if self._to != self._device else ""
        return call_steps(f"x.{method}({there}torch.{target})", maker, OPTIONS)

    def cast_text(self, case: Case, x: str) -> str:
        """Return the Python expression that casts the expression ``x`` by one ``to``."""
        return f"{x}.to(torch.{DTYPES[case.target]})"

    def chain_steps(self, road: str, names: str, ends: str) -> Statements:
        """Return the statements that bind ``y`` to ``ends``, an expression in ``names``.

        ``names`` are separated by commas. The road says whether the expression is evaluated eagerly
        or compiled, and with which options.
        """
        maker = "" if road == EAGER else "torch.compile"
        return call_steps(ends, maker, EMULATE if road == EMULATED else OPTIONS, names)

    def form_of(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Hashable:
        """Return what a compiled function serves: a source dtype, and a rank or lengths.

        For a cast or a carrier it is the rank. For a view, which depends on whether lengths divide,
        it is each length, where 2 stands for all longer ones, and 4 in the last dimension of
        ``PAIRED`` dtypes. Without compilation the form is None.
        """
        if not self.compiles_shapes:
            return None
        if operation in ("cast", "carry"):
            return case.source, bits.ndim
        last = 4 if case.source in PAIRED else 2  # two codes share an element
        kinds = *(min(n, 2) for n in bits.shape[:-1]), *(min(n, last) for n in bits.shape[-1:])
        return case.source, kinds

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor that holds ``bits``, an array in any memory layout."""
        return self._tensors.tensor(dtype, bits)

    def patterns(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in a tensor; two codes that share a byte become two patterns.

        Raises Unsupported for a tensor that does not lie on the device of the results.
        """
        if self._to is not None:
            require_place(self._torch, tensor, self._to)
        return self._tensors.bits(dtype, tensor)

    def answer(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` after one ``to`` or ``view``, in memory of their own.

        Raises Unsupported as ``require`` does, and if torch lacks a kernel or pairs no codes of
        this shape.
        """
        make = self.made(operation, case, self.form_of(operation, case, bits))
        try:
            x = self.tensor(case.source, bits)
        except NotImplementedError as error:
            raise Unsupported(first_sentence(error)) from None
        return self._run(operation, make, case, x)

    def _run(self, operation: ScriptedOperation, make: Function, case: Case, x: Any) -> Bits:
        try:
            y = self._quietly(operation, make, x)
            codes = self.patterns(case.target, y)
        except NotImplementedError as error:
            raise Unsupported(first_sentence(error)) from None
        # A view shares x's memory, and `to` x's own dtype returns x: copy, so that the answer owns
        # its memory. numpy copies bytes unchanged; `clone` would turn every bool into 0 or 1.
        return codes.copy() if shares_memory(x, y) else codes

    def _quietly(self, operation: ScriptedOperation, make: Function, x: Any) -> Any:
        """Return ``make(x)``, without Python's warnings.

        torch warns about the discarded part of a complex source, and torch.compile about its own
        internals.
        """
        if self.compiles_shapes:
            self._mark(operation, x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self._road is None or not self._road.stays_on_device:
                return make(x)
            return self._on_device(operation, make, x)

    def _on_device(self, operation: ScriptedOperation, make: Function, x: Any) -> Any:
        """Return ``make(x)``, where the first call of a function is watched for a fallback."""
        require_place(self._torch, x, self._device or "")
        key = (operation, make)
        if key in self._watched:
            return make(x)
        made = self._watch.call(partial(make, x))
        self._watched.add(key)
        return made

    def _mark(self, operation: ScriptedOperation, x: Any) -> None:
        """Mark the lengths of ``x``, so that torch compiles one kernel for all of them.

        Those of a cast or a carrier are marked as unbacked. If they were only dynamic, 0 and 1
        would get other kernels, and the first length would decide whether the kernel for all others
        uses vectors. A view's lengths are marked as dynamic, but for 0 and 1.
        """
        for dimension, length in enumerate(x.shape):
            if operation in ("cast", "carry"):
                self._dynamo.decorators.mark_unbacked(x, dimension)
            elif length > 1:
                self._dynamo.mark_dynamic(x, dimension)

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the result of each chain of a company, all computed by one function.

        ``bits`` has the input of each chain under its index, as text. Raises Unsupported as
        ``require`` does, and if torch lacks a kernel.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return super().chains(case, company, bits)
            except NotImplementedError as error:
                raise Unsupported(first_sentence(error)) from None

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by one ``view``, which scales the last dimension.

        Raises Unsupported as ``answer`` does.
        """
        return self.answer("bitcast", case, bits)

    def bitcast_in_storage(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` after one ``view`` of a tensor that begins inside its storage.

        The tensor has the offset that ``storage_offset`` of ``oracles.memory_layouts`` counts for
        ``bits``.
        """
        make = self.made("bitcast", case, self.form_of("bitcast", case, bits))
        return self._run("bitcast", make, case, self._tensors.in_storage(case.source, bits))

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Return whether the result of a ``view`` lies in the memory of the tensor viewed."""
        make = self.made("bitcast", case, self.form_of("bitcast", case, bits))
        x = self.tensor(case.source, bits)
        return shares_memory(x, self._quietly("bitcast", make, x))

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a tensor, a sharded tensor or a module whose members hold ``bits``.

        Returns the call's result and the receiver's state. Raises Unsupported with any variant, and
        for what torch lacks.
        """
        if self._variant is not None:
            raise Unsupported(f"torch:{self._variant} makes no calls; torch does")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TorchCalls(self._torch, self._tensors).make(call, bits)

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return, as ``y``, the codes of ``x``, quantized per tensor or per channel.

        The variant `decomposed` also dequantizes codes. Raises Unsupported in the variants `view`,
        `compile` and `cuda`, and for what torch's quantization lacks.
        """
        return self._quantizer.quantize(case, tensors)

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Return a self-contained script that quantizes or dequantizes by torch.

        Raises Unsupported as ``quantize`` does, but for what shows only when torch runs.
        """
        header = self.header.format(version=self.version, case=case).rstrip() + "\n"
        return header + self._quantizer.statements(case, tensors)

    @cached_property
    def _quantizer(self) -> Quantizer:
        if self._variant not in (None, "threads", "decomposed"):
            raise Unsupported(f"torch:{self._variant} does not quantize; torch does")
        return Quantizer(self._torch, self._tensors, decomposed=self._variant == "decomposed")

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that casts ``bits`` into memory that calls reuse.

        In the variant `compile` each call returns new memory. On a device it is a call of ``cast``,
        because the inputs must be copied there anyway. Raises Unsupported as ``cast`` does.
        """
        self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
        if self._device is not None:
            return partial(self.cast, case, bits)
        x = self.tensor(case.source, bits)
        if self.compiles_shapes:
            make = self.made("cast", case, self.form_of("cast", case, bits))
            return partial(self._run, "cast", make, case, x)
        memory = in_huge_pages(len(bits), format_named(case.target).storage)
        y = self.tensor(case.target, memory)
        answer = self.patterns(case.target, y)

        def call() -> Bits:
            # ``to`` allocates and then does this same ``copy_``. The allocation adds 5 to 25 % at
            # 2^17 to 2^18 elements, and several times the cast where pages must be mapped.
            y.copy_(x)
            return answer

        return call

    def device_sweep(self, case: Case, most: int) -> DeviceSwept:
        """Return a call that casts up to ``most`` consecutive patterns on the device.

        The patterns are made on the device, and the answers stay there. Raises Unsupported on the
        CPU, for a source of other than 32 bits, for a target of more than 64, and as ``require``
        does.
        """
        self.require("cast", case)
        if self._device is None:
            raise Unsupported("the tensors are on the CPU")
        if self._road is not None:
            raise Unsupported("only torch:cuda makes its own inputs")
        source, target = map(self._tensors.castable, (case.source, case.target))
        return DeviceSweep(self._torch, self._device, source, target, most)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return the bits of a clone of a tensor of the dtype that holds ``bits``.

        Raises Unsupported if torch does not view the dtype.
        """
        # Two codes share an element: pad an odd number of them with another one.
        padded = np.resize(bits, bits.size + bits.size % 2) if dtype in PAIRED else bits
        back = self._tensors.bits(dtype, self.tensor(dtype, padded).clone())
        return back[: bits.size].reshape(bits.shape) if dtype in PAIRED else back

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that casts; raise Unsupported as ``require`` does."""
        return super().reproduce(case, self._as_compiled(bits))

    def reproduce_carry(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that carries; raise Unsupported as ``carry`` does."""
        return super().reproduce_carry(case, self._as_compiled(bits))

    def _as_compiled(self, bits: Bits) -> Bits:
        """Return ``bits``, or a row that repeats their only element where scripts compile.

        A script does not mark lengths as ``_mark`` does. So torch would compile another kernel for
        one element, whose answer may differ.
        """
        return np.resize(bits, UNEVEN) if self.compiles_shapes and bits.shape == (1,) else bits

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that views a tensor as another dtype.

        Raises Unsupported in the variants `compile`, `cuda` and `decomposed`, for dtypes that pack
        two codes in a byte, and as ``require`` does.
        """
        if self._variant not in (None, "view", "threads"):
            raise Unsupported(f"torch:{self._variant} writes no scripts of bitcasts")
        for dtype in (case.source, case.target):
            if dtype in PAIRED:
                raise Unsupported(f"scripts of torch pack no {dtype}")
            self.require_dtype("bitcast", dtype)
        return super().reproduce_bitcast(case, bits)

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that makes a call on torch's tensors.

        Raises Unsupported with any variant, and for calls that scripts cannot write.
        """
        if self._variant is not None:
            raise Unsupported(f"torch:{self._variant} makes no calls; torch does")
        statements = SYNTAX.call_statements(case, call, bits)
        return self.header.format(version=self.version, case=case) + statements


def _compiler(torch: Any) -> Any:
    """Return the module ``torch._dynamo``, after setting inductor to one process.

    It also turns torch's logs off, unless TORCH_LOGS is set. Raises NotInstalled if there is no C++
    compiler.
    """
    dynamo: Any = importlib.import_module("torch._dynamo")
    # By default torch starts a process per core, but here kernels are compiled one by one.
    config: Any = importlib.import_module("torch._inductor.config")
    config.compile_threads = 1
    if "TORCH_LOGS" not in os.environ:
        # A refusal is an answer; without this, torch also prints it with a page of its trace.
        torch._logging.set_logs(all=logging.CRITICAL)
    builder: Any = importlib.import_module("torch._inductor.cpp_builder")
    failure: Any = importlib.import_module("torch._inductor.exc").InvalidCxxCompiler
    try:
        builder.get_cpp_compiler()
    except failure as error:
        raise NotInstalled("torch:compile needs a C++ compiler, g++ or what CXX names") from error
    return dynamo


class DeviceSweep:
    """Casts consecutive patterns of a 32-bit source on a device, at most ``most`` in one call.

    The tensors are reused: the answers of a call last until the next one. The constructor raises
    Unsupported for another source, and for a target of more than 64 bits.
    """

    def __init__(self, torch: Any, device: str, source: Any, target: Any, most: int) -> None:
        if source.itemsize != 4 or target.itemsize not in SIGNED:
            raise Unsupported(f"{source} to {target} is not swept on a device")
        self._torch = torch
        self._device = torch.get_device_module(device)
        self._offsets = torch.arange(most, dtype=torch.int32, device=device)
        self._patterns = torch.empty_like(self._offsets)
        self._x = self._patterns.view(source)
        self._y = torch.empty(most, dtype=target, device=device)
        self._answers = self._y.view(getattr(torch, SIGNED[target.itemsize]))

    def __call__(self, first: int, count: int) -> Any:
        """Return the answers to ``count`` patterns from ``first`` on, but to no more than ``most``.

        They are a tensor of signed integers on the device.
        """
        # Beyond the largest signed integer the sum wraps around, as the patterns do.
        start = first - 2 * HALF if first >= HALF else first
        self._torch.add(self._offsets[:count], start, out=self._patterns[:count])
        self._y[:count].copy_(self._x[:count])
        # Wait here, so that errors of the device are raised and its time counts as the backend's.
        self._device.synchronize()
        return self._answers[:count]
