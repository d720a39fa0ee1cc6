"""torch's ``Tensor.to(dtype)`` and ``Tensor.view(dtype)``, eager, compiled and on a device."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from operator import methodcaller
from typing import Any

import numpy as np

from oracles.adapters.call_scripts import CallSyntax
from oracles.adapters.refusals import first_line, load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import bits_statement, print_statement, print_tensor
from oracles.adapters.torch_calls import Calls
from oracles.adapters.torch_chains import chain_roads, chain_statement, ends_of
from oracles.adapters.torch_compile import Compiler, Function
from oracles.adapters.torch_device import DeviceSweep, require_device
from oracles.adapters.torch_quantize import Quantizer
from oracles.adapters.torch_tensors import DTYPES, PAIRED, VIEWED, Tensors, shares_memory
from oracles.huge_pages import in_huge_pages
from oracles.protocol import Bits, Bound, DeviceSwept, Returned, Unsupported
from specs.calls import Call
from specs.cases import Case
from specs.chains import Company
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("view", "compile", "threads", "cuda", "decomposed")

ALONE = {"view": "bitcasts alone", "decomposed": "quantization alone"}
"""The variants that do not cast, each with what it offers."""

HEADER = """\
# torch {version}: {case}
import numpy as np
import torch

"""

CAST_STATEMENTS = {
    None: "y = x.to(torch.{target})\n",
    "compile": "y = torch.compile(lambda x: x.to(torch.{target}), dynamic=True)(x)\n",
}


class Torch:
    """A cast by ``to``, a bitcast by ``view``; `compile` compiles both, `view` has only bitcasts.

    `decomposed` quantizes alone, by the operations that exported graphs have.

    `threads` uses torch's default number of threads; the other variants use one. `cuda` has its
    tensors on a CUDA device.
    """

    name = "torch"
    devices: Mapping[str | None, str] = {"cuda": "cuda"}
    """By variant, the torch device of its tensors; those of other variants are on the CPU."""
    claims: tuple[str, ...] = (
        "torch-tensor-to", "torch-sharded-tensor-to", "torch-module-type", "torch-view",
    )  # fmt: skip

    def __init__(self, variant: str | None = None) -> None:
        self._torch: Any = load("torch", "torch")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._torch.__version__)
        if variant != "threads":
            self._torch.set_num_threads(1)
        self._variant = variant
        self._device = self.devices.get(variant)
        if self._device is not None:
            require_device(self._torch, self._device)
        self._tensors = Tensors(self._torch, self._device)
        self.chain_roads = chain_roads(variant)
        self._function: Callable[[str, Any, Any], Function] = eager
        # A compiled kernel serves all lengths, but only one rank.
        self.compiles_shapes = variant == "compile"
        if self.compiles_shapes:
            self._function = Compiler(self._torch)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``to``."""
        self._require_cast(case)
        return self._answer("to", case, bits)

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        """Quantize by `quantize_per_tensor` or `quantize_per_channel`."""
        return self._quantizer.quantize(case, tensors)

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Return a script that quantizes by torch, without this project."""
        header = HEADER.format(version=self.version, case=case).rstrip() + "\n"
        return header + self._quantizer.statements(case, tensors)

    @cached_property
    def _quantizer(self) -> Quantizer:
        if self._variant not in (None, "threads", "decomposed"):
            raise Unsupported(f"torch:{self._variant} does not quantize; torch does")
        return Quantizer(self._torch, self._tensors, decomposed=self._variant == "decomposed")

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Answer chains with one ``to`` after another, all in one function."""
        paths = []
        for chain in company.chains:
            for step in chain.steps:
                self._require_cast(step)
            paths.append([self._tensors.castable(step.target) for step in chain.steps])
        pairs = zip(company.chains, bits.values(), strict=True)
        tensors = [self._tensors.tensor(chain.source, own) for chain, own in pairs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ends = ends_of(self._torch, company.road, paths, tensors)
            except NotImplementedError as error:
                raise Unsupported(first_line(error)) from None
            found = zip(company.chains, ends, strict=True)
            return [self._tensors.bits(chain.target, end).copy() for chain, end in found]

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``view``, which scales the last dimension."""
        require_plain(case, "Tensor.view")
        if self._variant == "decomposed":
            raise Unsupported("torch:decomposed offers quantization alone; torch casts")
        for dtype in (case.source, case.target):
            self._tensors.viewable(dtype)
        return self._answer("view", case, bits)

    def bitcast_in_storage(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``view`` of a tensor that has a storage offset."""
        x = self._tensors.in_storage(case.source, bits)
        with warnings.catch_warnings():
            # torch.compile warns about its own internals.
            warnings.simplefilter("ignore")
            view = self._function("view", x, self._tensors.viewable(case.target))
            return self._run(view, x, case.target)

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Whether the result of a ``view`` lies in its tensor's memory."""
        x = self._tensors.tensor(case.source, bits)
        with warnings.catch_warnings():
            # torch.compile warns about its own internals.
            warnings.simplefilter("ignore")
            view = self._function("view", x, self._tensors.viewable(case.target))
            return shares_memory(x, view(x))

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a tensor, a sharded tensor or a module."""
        if self._variant is not None:
            raise Unsupported(f"torch:{self._variant} makes no calls; torch does")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Calls(self._torch, self._tensors).make(call, bits)

    def bitcast_road(self, case: Case) -> str:
        """Return the pair: a bitcast has no parameters besides the tensor's own shape."""
        return plain_road(case, "Tensor.view")

    def road(self, case: Case) -> str:
        """Return the pair: ``to`` has no parameters that cases vary."""
        self._require_cast(case)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that casts ``bits`` into a tensor that calls reuse; not if compiled.

        On a device it is the whole cast: each call must copy the inputs there anyway.
        """
        self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
        if self._device is not None:
            return partial(self.cast, case, bits)
        x = self._tensors.tensor(case.source, bits)
        if self._variant == "compile":
            function = self._function("to", x, self._tensors.castable(case.target))
            return partial(self._run, function, x, case.target)
        memory = in_huge_pages(len(bits), format_named(case.target).storage)
        y = self._tensors.tensor(case.target, memory)
        answer = self._tensors.bits(case.target, y)

        def call() -> Bits:
            # ``to`` allocates and then does this same ``copy_``. The allocation adds 5 to 25 % at
            # 2^17 to 2^18 elements, and several times the cast where pages must be mapped.
            y.copy_(x)
            return answer

        return call

    def device_sweep(self, case: Case, most: int) -> DeviceSwept:
        """Prepare a call that makes inputs on the device and leaves the answers there."""
        self._require_cast(case)
        if self._device is None:
            raise Unsupported("the tensors are on the CPU")
        source, target = map(self._tensors.castable, (case.source, case.target))
        return DeviceSweep(self._torch, self._device, source, target, most)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Clone a tensor of the dtype, and return the clone's bits."""
        # Two codes share an element: pad an odd number of them with another one.
        padded = np.resize(bits, bits.size + bits.size % 2) if dtype in PAIRED else bits
        back = self._tensors.bits(dtype, self._tensors.tensor(dtype, padded).clone())
        return back[: bits.size].reshape(bits.shape) if dtype in PAIRED else back

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the case on torch, without this project."""
        self._require_cast(case)
        cast = CAST_STATEMENTS.get(self._variant, CAST_STATEMENTS[None])
        return (
            HEADER.format(version=self.version, case=case)
            + f"{bits_statement(case.source, bits)}\n"
            + f"x = {tensor_expression(case.source, self._device)}\n"
            + cast.format(target=DTYPES[case.target])
            + f"answers = {answers_expression(case.target, self._device)}\n"
            + print_statement(case.source, case.target, bits)
        )

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes one chain by torch, without this project."""
        [chain], [own] = company.chains, [*bits.values()]
        dtypes = [DTYPES[step.target] for step in chain.steps]
        return (
            HEADER.format(version=self.version, case=f"{chain.id} on {company.road}")
            + f"{bits_statement(chain.source, own)}\n"
            + f"x = {tensor_expression(chain.source, self._device)}\n"
            + chain_statement(company.road, dtypes)
            + f"answers = {answers_expression(chain.target, self._device)}\n"
            + print_statement(chain.source, chain.target, own)
        )

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that views a tensor as another dtype, without this project."""
        if self._variant not in (None, "view", "threads"):
            raise Unsupported(f"torch:{self._variant} writes no scripts of bitcasts")
        for dtype in (case.source, case.target):
            if dtype in PAIRED:
                raise Unsupported(f"scripts of torch pack no {dtype}")
            self._tensors.viewable(dtype)
        # An empty numpy array has strides of 0, which torch refuses to view.
        empty = f"torch.empty({bits.shape}, dtype=torch.{DTYPES[case.source]})"
        return (
            HEADER.format(version=self.version, case=case)
            + f"{bits_statement(case.source, bits)}\n"
            + f"x = {tensor_expression(case.source) if bits.size else empty}\n"
            + f"y = x.view(torch.{DTYPES[case.target]})\n"
            + print_tensor(case.target, answers_expression(case.target))
        )

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes a call on torch's tensors, without this project."""
        if self._variant is not None:
            raise Unsupported(f"torch:{self._variant} makes no calls; torch does")
        statements = CALL_SYNTAX.call_statements(case, call, bits)
        return HEADER.format(version=self.version, case=case) + statements

    def _require_cast(self, case: Case) -> None:
        require_plain(case, "Tensor.to")
        if self._variant in ALONE:
            raise Unsupported(f"torch:{self._variant} offers {ALONE[self._variant]}; torch casts")
        for dtype in (case.source, case.target):
            self._tensors.castable(dtype)

    def _answer(self, method: str, case: Case, bits: Bits) -> Bits:
        x = self._tensors.tensor(case.source, bits)
        with warnings.catch_warnings():
            # A complex source warns about its discarded part.
            warnings.simplefilter("ignore")
            function = self._function(method, x, self._tensors.viewable(case.target))
            try:
                return self._run(function, x, case.target)
            except NotImplementedError as error:
                raise Unsupported(first_line(error)) from None

    def _run(self, function: Function, x: Any, target: str) -> Bits:
        y = function(x)
        codes = self._tensors.bits(target, y)
        # A view shares x's memory, and `to` x's own dtype returns x: copy, so that the answer owns
        # its memory. numpy copies bytes unchanged; `clone` would turn every bool into 0 or 1.
        return codes.copy() if shares_memory(x, y) else codes


def tensor_expression(dtype: str, device: str | None = None) -> str:
    """Return the expression of a tensor of ``bits``."""
    array = "bits.view(np.complex128)" if dtype == "complex128" else "bits"
    there = f'.to("{device}")' if device else ""
    return f"torch.from_numpy({array}){there}.view(torch.{DTYPES[dtype]})"


def answers_expression(dtype: str, device: str | None = None) -> str:
    """Return the expression of the patterns in y."""
    storage, back = format_named(dtype).storage, ".cpu()" if device else ""
    if storage == "V16":
        return f'y{back}.numpy().view("V16")'
    return f"y.view(torch.{storage}){back}.numpy()"


def _ones(dtype: str) -> str:
    return f"torch.ones(1, dtype=torch.{DTYPES[dtype]})"


def _parameter(dtype: str, tensor: str) -> str:
    is_differentiable = format_named(dtype).kind in ("float", "complex")
    gradient = "" if is_differentiable else ", requires_grad=False"
    return f"torch.nn.Parameter({tensor}{gradient})"


CALL_SYNTAX = CallSyntax(
    "torch",
    {
        "dtype": lambda dtype: f"torch.{VIEWED[dtype]}",
        "device": lambda device: f'torch.device("{device}")',
        "gpu-tensor": lambda dtype: f'{_ones(dtype)}.to("cuda")',
        "memory-format": lambda name: f"torch.{name}_format",
    },
    tensor_expression,
    _ones,
    "torch.nn.Module()",
    _parameter,
)


def eager(method: str, x: Any, target: Any) -> Function:
    """Return the uncompiled function that answers ``x.to(target)`` or ``x.view(target)``."""
    return methodcaller(method, target)
