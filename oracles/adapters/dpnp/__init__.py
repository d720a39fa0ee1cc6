"""dpnp: numpy's ``astype`` on SYCL devices, also the CPU as a device of OpenCL's."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.refusals import load_own, require_plain
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.protocol import NotInstalled, Unsupported
from specs.cases import Case
from specs.formats import format_named

OPEN_ROADS: Mapping[str, str] = {"DEVICE": "a device of SYCL's, such as level_zero:gpu"}

DTYPES = (
    *("float64", "float32", "float16", "int64", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128"),
)
UNSAFE = "unsafe"
KNOWN_CASTING = ("no", "equiv", "safe", "same_kind", UNSAFE)

HEADER = """\
# dpnp {version}: {case}
import dpctl
import dpnp
import numpy as np

device = DEVICE
"""
ADVICE = (
    "dpctl finds no such device; pip's driver of the CPU is found if OCL_ICD_FILENAMES is the path"
    " of libintelocl.so in the environment's folder lib"
)


class Dpnp(Scripted):
    """Casts by ``astype`` in the memory of a SYCL device, by default SYCL's own choice."""

    name = "dpnp"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "astype in dpnp"}
    claims: tuple[str, ...] = ("numpy-astype:2.4",)
    dtypes = DTYPES

    def __init__(self, variant: str | None = None) -> None:
        dpnp: Any = load_own("dpnp", __file__)
        dpctl: Any = load_own("dpctl", __file__)
        default = "dpctl.select_default_device()"
        self.header = HEADER.replace(
            "DEVICE", f'dpctl.SyclDevice("{variant}")' if variant else default
        )
        try:
            device = dpctl.SyclDevice(variant) if variant else dpctl.select_default_device()
        except dpctl.SyclDeviceCreationError:
            if variant is None:
                raise NotInstalled(ADVICE) from None
            raise Unsupported(f"dpnp has no variant `{variant}`: {ADVICE}") from None
        super().__init__(dpnp=dpnp, device=device)
        self.version = str(dpnp.__version__)
        self._lacks = {"float16"} if not device.has_aspect_fp16 else set()
        self._lacks |= set() if device.has_aspect_fp64 else {"float64", "complex128"}

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that dpnp or its device lacks."""
        if dtype not in DTYPES or dtype in self._lacks:
            raise Unsupported(f"dpnp has no dtype {dtype} on this device")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that dpnp's ``astype`` lacks."""
        if case.mode.keys() == {"casting"} and case.mode["casting"] in KNOWN_CASTING:
            return
        require_plain(case, "astype in dpnp")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of an array on the device."""
        array = f"np.ascontiguousarray(bits).reshape(bits.shape).view(np.{np.dtype(dtype).name})"
        return f"dpnp.asarray(\n    {array}, device=device\n)"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f'dpnp.asnumpy(y).view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statement that casts an array on its device."""
        casting = case.mode.get("casting", UNSAFE)
        mode = "" if casting == UNSAFE else f', casting="{casting}"'
        return Statements(f"y = x.astype(dpnp.{np.dtype(case.target).name}{mode})\n")

    def road(self, case: Case) -> str:
        """Return the pair of dtypes and the casting mode, as text; raise Unsupported as a cast."""
        return f"{super().road(case)}, {case.mode.get('casting', UNSAFE)}"
