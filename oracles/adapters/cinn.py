"""CINN, paddle's compiler, where paddle was built with it; no published wheel is.

This project has not run it: without CINN, paddle takes ``backend="CINN"`` and silently runs its own
kernels, and that is refused here. What CINN itself leaves to those kernels cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from oracles.adapters.cinn_builder import Builders
from oracles.adapters.lazy_import import require_variant
from oracles.adapters.paddle_programs import Programs
from oracles.adapters.paddle_script import reproduction
from oracles.adapters.paddle_tensors import Tensors, load_paddle
from oracles.adapters.plain_modes import require_plain
from oracles.protocol import Bits, Bound, NotInstalled, Returned
from specs.calls import Call
from specs.cases import Case

VARIANTS: tuple[str, ...] = ()

BACKEND = "CINN"

ADVICE = "no published wheel of paddle holds CINN: build paddle from source with -DWITH_CINN=ON"


class Cinn:
    """A cast by a static program that CINN compiles; bitcasts and calls by CINN's own builder."""

    name = "cinn"
    claims: tuple[str, ...] = (
        "cinn-cast",
        "cinn-bitcast-convert",
        "cinn-cast-calls",
        "cinn-bitcast-calls",
    )
    compiles_shapes = True

    def __init__(self, variant: str | None = None) -> None:
        try:
            paddle = load_paddle()
        except NotInstalled:
            raise NotInstalled(ADVICE) from None
        if not paddle.is_compiled_with_cinn():
            raise NotInstalled(ADVICE)
        require_variant(self.name, variant, VARIANTS)
        self.version = str(paddle.__version__)
        self._tensors = Tensors(paddle)
        self._programs = Programs(paddle, self._tensors, BACKEND)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one compiled cast."""
        require_plain(case, "CINN's cast")
        cast = self._programs.cast(case.source, case.target, bits.ndim)
        y = cast(self._tensors.tensor(case.source, bits))
        return self._tensors.bits(case.target, y).copy()

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``bitcast_convert`` of CINN's builder."""
        require_plain(case, "CINN's bitcast_convert")
        return Builders().bitcast(case.source, case.target, bits)

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on one of CINN's builders."""
        return Builders().call(call, bits)

    def road(self, case: Case) -> str:
        """The pair alone: a cast knows nothing of documents, versions and modes."""
        require_plain(case, "CINN's cast")
        for dtype in (case.source, case.target):
            self._tensors.dtype(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """A call that casts what ``bits`` holds."""
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits into a tensor of the dtype and out again."""
        return self._tensors.bits(dtype, self._tensors.tensor(dtype, bits)).copy()

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks CINN the same, without this project."""
        self.road(case)
        return reproduction(self.version, case, bits, road="static", backend=BACKEND)
