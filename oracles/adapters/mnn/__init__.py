"""MNN: ``cast`` of its expressions on the CPU."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named

NAMES: Mapping[str, str] = {"float32": "float", "int32": "int", "uint8": "uint8", "int8": "int8"}
"""By dtype, MNN's name for it. It has ``int64`` and ``double``, too, but answers in 32 bits."""
WITHOUT_CODE = frozenset({("uint8", "int8")})

HEADER = """\
# MNN {version}: {case}
import MNN
import MNN.expr as mnn
import numpy as np

"""


class Mnn(Scripted):
    """Casts by expressions. A tensor without axes is given as a row; MNN has none without elements.

    It reads no int8 array, so int8 is a target only.
    """

    name = "mnn"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "MNN's cast"}
    claims: tuple[str, ...] = ()
    dtypes = tuple(NAMES)

    def __init__(self, variant: str | None = None) -> None:
        require_variant(self.name, variant, ())
        package: Any = load_own("MNN", __file__)
        super().__init__(mnn=load_own("MNN.expr", __file__))
        self.version = str(package.version())

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that MNN has not, or that it moves in and out as another.

        A copy of int8 is one: MNN reads no array of it.
        """
        if dtype not in NAMES or (operation == "copy" and dtype == "int8"):
            raise Unsupported(f"MNN has no arrays of {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that a plain cast has not, and pairs that MNN cannot cast."""
        super().require_parameters(operation, case)
        if case.source == "int8" or (case.source, case.target) in WITHOUT_CODE:
            raise Unsupported(f"MNN has no cast from {case.source} to {case.target}")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of an expression of MNN's that holds the bits."""
        array = f'np.ascontiguousarray(bits).view("{dtype}")'
        return f"mnn.const({array}, [*bits.shape], mnn.NCHW, mnn.{NAMES[dtype]})"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an expression of this dtype.

        They are copied, because the array that ``read`` returns does not keep its memory.
        """
        return f'np.array(y.read()).view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statement that casts an expression."""
        return Statements(f"y = mnn.cast(x, mnn.{NAMES[case.target]})\n")

    def run(self, make: Any, case: Case, bits: Bits) -> Bits:
        """Run ``make`` on ``bits``; return the patterns of its result in the shape of ``bits``."""
        if not bits.size:
            return np.empty(bits.shape, format_named(case.target).storage)
        return super().run(make, case, np.atleast_1d(bits)).reshape(bits.shape)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a round trip through MNN; raise Unsupported for other dtypes."""
        self.require_dtype("copy", dtype)
        if not bits.size:
            return bits.copy()
        return super().identity(dtype, np.atleast_1d(bits)).reshape(bits.shape)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that casts by MNN; raise Unsupported as ``require`` does."""
        return super().reproduce(case, np.atleast_1d(bits))
