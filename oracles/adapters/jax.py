"""jax's ``lax.convert_element_type`` and ``lax.bitcast_convert_type`` on the CPU."""

from __future__ import annotations

import os
import warnings
from functools import partial
from typing import Any

import numpy as np

from oracles.adapters.jax_roads import Function, Request, Roads
from oracles.adapters.jax_script import reproduction
from oracles.adapters.lazy_import import load, require_variant
from oracles.adapters.plain_modes import require_plain
from oracles.bit_packing import is_packed
from oracles.protocol import Bits, Bound
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("jit", "folded", "stablehlo")

CAST = "convert_element_type"
BITCAST = "bitcast_convert_type"

FOLDING_LIMITS = (1 << 16,)
"""Constants of more elements XLA folds by another evaluator, which does not answer alike."""


class Jax:
    """A cast by ``convert_element_type``, or (`stablehlo`) by the operation that it becomes."""

    name = "jax"
    claims: tuple[str, ...] = ("xla-bitcast-convert",)
    compiles_shapes = True

    def __init__(self, variant: str | None = None) -> None:
        # XLA cuts a loop into as many parts as it counts processors; it asks once and again.
        os.environ["NPROC"] = "1"
        jax = load("jax", "jax")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(jax.__version__)
        self._variant = variant
        self.row_limits = FOLDING_LIMITS if variant == "folded" else ()
        self._roads = Roads(jax, variant)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one conversion."""
        require_plain(case, CAST)
        return self._answer(Request("convert", case.source, case.target, bits.shape), bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one bitcast, in the shape that XLA gives it."""
        require_plain(case, BITCAST)
        return self._answer(Request("bitcast_convert", case.source, case.target, bits.shape), bits)

    def road(self, case: Case) -> str:
        """The pair alone: the conversion knows nothing of documents, versions and modes."""
        require_plain(case, CAST)
        for dtype in (case.source, case.target):
            self._roads.dtype(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that hands jax ``bits`` and reads the answer where it lies."""
        self.road(case)  # refuses what cannot be cast, in the same words
        if case.source == case.target:
            # To its own dtype an array goes as itself: the answer could be the question's memory.
            return partial(self.cast, case, bits)
        function = self._roads.function(Request("convert", case.source, case.target, bits.shape))
        return partial(self._run, function, case.target, bits.view(self._roads.dtype(case.source)))

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits into an array of the dtype and out again; but for the plain road, by a program."""
        return self._answer(Request(None, dtype, dtype, bits.shape), bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks jax the same, without this project."""
        self.road(case)
        return reproduction(self.version, case, bits, self._variant)

    def _answer(self, request: Request, bits: Bits) -> Bits:
        self._roads.dtype(request.target)
        x = bits.view(self._roads.dtype(request.source))
        return self._run(self._roads.function(request), request.target, x).copy()

    def _run(self, function: Function, target: str, x: Any) -> Bits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a complex source warns of its discarded part
            y = function(self._roads.on_device(x))
        entry = format_named(target)
        codes: Bits = np.asarray(y).view(entry.storage)
        # Of an array of rank 0 numpy would make a scalar.
        return np.asarray(codes & np.uint8(entry.mask)) if is_packed(entry) else codes
