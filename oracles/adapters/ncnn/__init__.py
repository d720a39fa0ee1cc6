"""ncnn: a network of one Cast layer, loaded once per pair of dtypes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named

NUMBERS: Mapping[str, int] = {"float32": 1, "float16": 2, "int8": 3, "bfloat16": 4}
"""By dtype, its number in the layer's parameters ``type_from`` and ``type_to``."""
PAIRS = frozenset(
    {
        *(("float32", "float16"), ("float16", "float32"), ("int8", "float32")),
        *(("float32", "bfloat16"), ("bfloat16", "float32")),
        *(("float32", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16")),
    }
)
"""The pairs that the layer converts; for others it reports success and leaves memory unset."""
MOST_AXES = 4

HEADER = """\
# ncnn {version}: {case}
import ncnn
import numpy as np

"""

ONCE = '''\
net = ncnn.Net()
net.load_param_mem("""7767517
2 2
Input x 0 1 x
Cast y 1 1 x y 0={source} 1={target}
""")
'''
EACH = """\
extractor = net.create_extractor()
extractor.input("x", x)
status, y = extractor.extract("y")
assert status == 0, status
"""


class Ncnn(Scripted):
    """Casts by networks of one Cast layer.

    A tensor of more axes than a ``Mat`` has, or of none, is given as a row. Without elements ncnn
    computes nothing.
    """

    name = "ncnn"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "ncnn's Cast"}
    claims: tuple[str, ...] = ()
    dtypes = tuple(NUMBERS)

    def __init__(self, variant: str | None = None) -> None:
        require_variant(self.name, variant, ())
        ncnn: Any = load_own("ncnn", __file__)
        super().__init__(ncnn=ncnn)
        self.version = str(ncnn.__version__)

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that no layer of ncnn converts."""
        if dtype not in NUMBERS:
            raise Unsupported(f"ncnn's Cast has no dtype {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that a plain cast has not, or a pair of dtypes without code.

        Where a dtype is lacking, ``require_dtype`` says so.
        """
        super().require_parameters(operation, case)
        pair = (case.source, case.target)
        if NUMBERS.keys() >= {*pair} and pair not in PAIRS:
            raise Unsupported(f"ncnn's Cast has no code from {case.source} to {case.target}")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a Mat with memory of its own.

        The name keeps the array alive, whose memory the first Mat borrows.
        """
        return "ncnn.Mat(array := np.ascontiguousarray(bits)).clone()"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, a Mat of this dtype."""
        return f'np.array(y).view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that load the network of a pair once, and run it on a Mat."""
        numbers = {"source": NUMBERS[case.source], "target": NUMBERS[case.target]}
        return Statements(EACH, ONCE.format(**numbers))

    def run(self, make: Any, case: Case, bits: Bits) -> Bits:
        """Return the patterns of what ``make`` returns for a Mat of ``bits``, in their shape."""
        if not bits.size:
            return np.empty(bits.shape, format_named(case.target).storage)
        return super().run(make, case, _row_if_needed(bits)).reshape(bits.shape)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a round trip through a Mat; raise Unsupported for other dtypes."""
        self.require_dtype("copy", dtype)
        if not bits.size:
            return bits.copy()
        return super().identity(dtype, _row_if_needed(bits)).reshape(bits.shape)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the layer; raise Unsupported as ``require`` does."""
        return super().reproduce(case, _row_if_needed(bits))


def _row_if_needed(bits: Bits) -> Bits:
    return bits if 0 < bits.ndim <= MOST_AXES else bits.reshape(-1)
