"""pypto's ``cast`` on an Ascend processor, if the user has installed pypto.

This project has never run it: pypto's license allows its use on Ascend processors only. The adapter
is written from pypto's documentation, and does not use pypto's simulation on other hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Any

from oracles.adapters.dtype_table import names_in
from oracles.adapters.refusals import require_variant
from oracles.adapters.torch_tensors import TorchTensors
from oracles.protocol import Bits, NotInstalled, Unsupported
from specs.cases import Case

VARIANTS: tuple[str, ...] = ()

DEVICE = "npu"
TILE = 16

ADVICE = (
    "pypto is used only on a host with Ascend processors: install it there yourself, together with"
    " torch and torch_npu, under its own license"
)

DTYPES: Mapping[str, str] = names_in("pypto")

DEFAULT_MODES: Mapping[str, str] = {"mode": "CAST_NONE", "satmode": "off"}
"""The values of parameters that a case does not name."""


class Pypto:
    """Casts by ``pypto.cast``, on an Ascend processor."""

    name = "pypto"
    claims: tuple[str, ...] = ("pypto-cast",)

    def __init__(self, variant: str | None = None) -> None:
        try:
            self._pypto: Any = import_module("pypto")
            self._torch: Any = import_module("torch")
            import_module("torch_npu")
        except ImportError:
            raise NotInstalled(ADVICE) from None
        if not self._torch.npu.is_available():
            raise NotInstalled(ADVICE)
        require_variant(self.name, variant, VARIANTS)
        self.version = version("pypto")
        self._tensors = TorchTensors(self._torch)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by a kernel of one ``pypto.cast``.

        Raises Unsupported for a dtype that pypto lacks, or a `satmode` other than ``off``.
        """
        source, target, mode = self._dtype(case.source), self._dtype(case.target), self._mode(case)
        pypto, tile = self._pypto, [TILE] * bits.ndim

        def kernel(x: Any, y: Any) -> None:
            pypto.set_vec_tile_shapes(*tile)
            y.move(pypto.cast(x, target, mode))

        shape = [pypto.STATIC] * bits.ndim
        kernel.__annotations__ = {
            "x": pypto.Tensor(shape, source),
            "y": pypto.Tensor(shape, target),
        }
        run = pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})(kernel)
        x = self._tensors.tensor(case.source, bits.copy()).to(DEVICE)
        y = self._torch.empty(bits.shape, dtype=self._tensors.castable(case.target), device=DEVICE)
        run(x, y)
        return self._tensors.bits(case.target, y.cpu())

    def road(self, case: Case) -> str:
        """Return the pair of dtypes and the rounding mode as text, all that a cast depends on.

        Raises Unsupported as ``cast`` does.
        """
        self._mode(case)
        for dtype in (case.source, case.target):
            self._dtype(dtype)
        return f"{case.source}->{case.target}, {case.mode.get('mode', DEFAULT_MODES['mode'])}"

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a copy to the device and back.

        Raises Unsupported if pypto lacks the dtype.
        """
        self._dtype(dtype)
        x = self._tensors.tensor(dtype, bits.copy()).to(DEVICE)
        return self._tensors.bits(dtype, x.cpu()).copy()

    def _dtype(self, dtype: str) -> Any:
        if dtype not in DTYPES:
            raise Unsupported(f"pypto's cast has no dtype {dtype}")
        return getattr(self._pypto, DTYPES[dtype])

    def _mode(self, case: Case) -> Any:
        name = case.mode.get("mode", DEFAULT_MODES["mode"])
        if case.mode.get("satmode", DEFAULT_MODES["satmode"]) != DEFAULT_MODES["satmode"]:
            raise Unsupported("how satmode is given is not on the page that this adapter follows")
        return getattr(self._pypto.CastMode, name)
