"""paddle's ``astype`` and ``view`` on the CPU, and its ``cast`` and ``view`` as static programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from oracles.adapters.lazy_import import first_line, require_variant
from oracles.adapters.paddle_calls import Calls, shares_memory
from oracles.adapters.paddle_programs import Executions, Programs
from oracles.adapters.paddle_script import reproduction
from oracles.adapters.paddle_tensors import Tensors, load_paddle
from oracles.adapters.plain_modes import require_plain
from oracles.protocol import Bits, Bound, Returned, Unsupported
from specs.calls import Call
from specs.cases import Case

VARIANTS: tuple[str, ...] = ("static", "executor")
"""A program of ``paddle.jit.to_static``, and one of ``paddle.static`` for its Executor."""

NO_KERNEL = "is not registered"
"""How paddle says that an operation lacks a dtype."""


class Paddle:
    """A cast by ``astype``, or (`static`, `executor`) by a program that was made before."""

    name = "paddle"
    claims: tuple[str, ...] = ("paddle-tensor-to", "paddle-layer-astype")

    def __init__(self, variant: str | None = None) -> None:
        self._paddle = load_paddle()
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._paddle.__version__)
        self._variant = variant
        self._tensors = Tensors(self._paddle)
        self._programs: Programs | Executions | None = None
        if variant is not None:
            make = Programs if variant == "static" else Executions
            self._programs = make(self._paddle, self._tensors)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one cast."""
        require_plain(case, "paddle's cast")
        cast = self._cast(case, bits.ndim)
        y = cast(self._tensors.tensor(case.source, bits))
        # To its own dtype a tensor goes as itself: the answer must not share the question's memory.
        return self._tensors.bits(case.target, y).copy()

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``view``, which scales the last dimension."""
        require_plain(case, "Tensor.view")
        x, view = self._tensors.tensor(case.source, bits), self._view(case, bits.ndim)
        try:
            return self._tensors.bits(case.target, view(x)).copy()
        except RuntimeError as error:
            if NO_KERNEL not in str(error):
                raise
            raise Unsupported(first_line(error)) from None

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Whether the result of a ``view`` begins where its tensor does."""
        x = self._tensors.tensor(case.source, bits)
        return shares_memory(x, x.view(self._tensors.dtype(case.target)))

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a tensor or a layer that holds those bits."""
        if self._programs is not None:
            raise Unsupported("a static program has no calls: they are made eagerly")
        return Calls(self._paddle, self._tensors).made(call, bits)

    def road(self, case: Case) -> str:
        """The pair alone: a cast knows nothing of documents, versions and modes."""
        require_plain(case, "paddle's cast")
        for dtype in (case.source, case.target):
            self._tensors.dtype(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that casts one and the same tensor, which is the memory of ``bits``."""
        self.cast(case, bits[:0])  # refuses what cannot be cast, in the same words
        is_shared = case.source == case.target or self._variant == "executor"
        if is_shared or not bits.flags.c_contiguous:
            # The answer would lie in the question's memory or in that of the next answer, or the
            # question in a copy.
            return partial(self.cast, case, bits)
        x, cast = self._tensors.tensor(case.source, bits), self._cast(case, bits.ndim)
        return lambda: self._tensors.bits(case.target, cast(x))

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits into a tensor of the dtype and out again."""
        return self._tensors.bits(dtype, self._tensors.tensor(dtype, bits)).copy()

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks paddle the same, without this project."""
        self.road(case)
        return reproduction(self.version, case, bits, road=self._variant)

    def _cast(self, case: Case, rank: int) -> Callable[[Any], Any]:
        if self._programs is not None:
            return self._programs.cast(case.source, case.target, rank)
        target = self._tensors.dtype(case.target)
        return lambda x: x.astype(target)

    def _view(self, case: Case, rank: int) -> Callable[[Any], Any]:
        if self._programs is not None:
            return self._programs.view(case.source, case.target, rank)
        target = self._tensors.dtype(case.target)
        return lambda x: x.view(target)
