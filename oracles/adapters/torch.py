"""torch's ``Tensor.to(dtype)`` and ``Tensor.view(dtype)`` on the CPU, eager and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from oracles.adapters.lazy_import import first_line, load, require_variant
from oracles.adapters.plain_modes import require_plain
from oracles.adapters.script_text import given, printed
from oracles.adapters.torch_calls import Calls
from oracles.adapters.torch_compile import Compiler, Function
from oracles.adapters.torch_tensors import DTYPES, PAIRED, Tensors, shares_memory
from oracles.protocol import Bits, Bound, Returned, Unsupported
from specs.calls import Call
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("view", "compile", "threads")

HEADER = """\
# torch {version}: {case}
import numpy as np
import torch

"""

ASKED = {
    None: "y = x.to(torch.{target})\n",
    "compile": "y = torch.compile(lambda x: x.to(torch.{target}), dynamic=True)(x)\n",
}


class Torch:
    """A cast by ``to``, a bitcast by ``view``; `view` has nothing else, `compile` compiles both.

    `threads` takes as many as torch would by itself; the others take one.
    """

    name = "torch"
    claims: tuple[str, ...] = ("torch-tensor-to", "torch-module-type", "torch-view")

    def __init__(self, variant: str | None = None) -> None:
        self._torch: Any = load("torch", "torch")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._torch.__version__)
        if variant != "threads":
            self._torch.set_num_threads(1)
        self._variant = variant
        self._tensors = Tensors(self._torch)
        self._ready: Callable[[str, Any, Any], Function] = eager
        # Its kernels are for all lengths, but each rank has its own.
        self.compiles_shapes = variant == "compile"
        if self.compiles_shapes:
            self._ready = Compiler(self._torch)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``to``."""
        self._require_cast(case)
        return self._answer("to", case, bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``view``, which scales the last dimension."""
        require_plain(case, "Tensor.view")
        for dtype in (case.source, case.target):
            self._tensors.viewable(dtype)
        return self._answer("view", case, bits)

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Whether the result of a ``view`` lies in its tensor's memory."""
        x = self._tensors.tensor(case.source, bits)
        with warnings.catch_warnings():
            # The compiler warns of its own parts.
            warnings.simplefilter("ignore")
            view = self._ready("view", x, self._tensors.viewable(case.target))
            return shares_memory(x, view(x))

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a tensor, a sharded tensor or a module, as torch has the method."""
        if self._variant is not None:
            raise Unsupported(f"torch:{self._variant} makes no calls; torch does")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Calls(self._torch, self._tensors).made(call, bits)

    def road(self, case: Case) -> str:
        """The pair alone: ``to`` knows nothing of documents, versions and modes."""
        self._require_cast(case)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that casts ``bits`` into one tensor, or into a compiled call's."""
        self.cast(case, bits[:1])  # refuses what cannot be cast, in the same words
        x = self._tensors.tensor(case.source, bits)
        if self._variant == "compile":
            ready = self._ready("to", x, self._tensors.castable(case.target))
            return partial(self._asked, ready, x, case.target)
        y = self._torch.empty(len(bits), dtype=self._tensors.castable(case.target))
        answer = self._tensors.bits(case.target, y)

        def call() -> Bits:
            # ``to`` is an ``empty`` followed by this very ``copy_``. The fresh memory costs it 5 to
            # 25 % at 2^17 to 2^18 elements, and several times the cast where pages are mapped anew.
            y.copy_(x)
            return answer

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits into a tensor of the dtype, cloned, and out again."""
        # Of an odd number of codes, two of which share an element, the last one brings another.
        sent = np.resize(bits, bits.size + bits.size % 2) if dtype in PAIRED else bits
        back = self._tensors.bits(dtype, self._tensors.tensor(dtype, sent).clone())
        return back[: bits.size].reshape(bits.shape) if dtype in PAIRED else back

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks torch the same, without this project."""
        self._require_cast(case)
        source, target = DTYPES[case.source], DTYPES[case.target]
        way_in = "bits.view(np.complex128)" if source == "complex128" else "bits"
        out = format_named(case.target).storage
        way_out = 'y.numpy().view("V16")' if out == "V16" else f"y.view(torch.{out}).numpy()"
        return (
            HEADER.format(version=self.version, case=case)
            + f"{given(case.source, bits)}\n"
            + f"x = torch.from_numpy({way_in}).view(torch.{source})\n"
            + ASKED.get(self._variant, ASKED[None]).format(target=target)
            + f"answers = {way_out}\n"
            + printed(case.source, case.target)
        )

    def _require_cast(self, case: Case) -> None:
        require_plain(case, "Tensor.to")
        if self._variant == "view":
            raise Unsupported("torch:view offers bitcasts alone; torch casts")
        for dtype in (case.source, case.target):
            self._tensors.castable(dtype)

    def _answer(self, method: str, case: Case, bits: Bits) -> Bits:
        x = self._tensors.tensor(case.source, bits)
        with warnings.catch_warnings():
            # A complex source warns of its discarded part.
            warnings.simplefilter("ignore")
            ready = self._ready(method, x, self._tensors.viewable(case.target))
            try:
                return self._asked(ready, x, case.target)
            except NotImplementedError as error:
                raise Unsupported(first_line(error)) from None

    def _asked(self, ready: Function, x: Any, target: str) -> Bits:
        y = ready(x)
        codes = self._tensors.bits(target, y)
        # A view shares x's memory, and `to` x's own dtype returns x: copy, so that the answer does
        # not. numpy copies the bytes as they are; `clone` would turn every bool into 0 or 1.
        return codes.copy() if shares_memory(x, y) else codes


def eager(method: str, x: Any, target: Any) -> Function:
    """What answers ``x.to(target)`` or ``x.view(target)``."""
    return methodcaller(method, target)
