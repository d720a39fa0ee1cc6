"""The truths that numbers are compared with."""

from __future__ import annotations

from importlib.util import find_spec

from lab.truths.apytypes_floats import Apytypes
from lab.truths.generic_floats import Gfloat
from lab.truths.llvm import CompiledByLlvm, FoldedByLlvm
from lab.truths.mpfr import Mpfr
from lab.truths.numpy_casts import MlDtypes, Numpy
from lab.truths.questions import Truth
from lab.truths.softfloat import SoftFloat

TRUTHS: tuple[Truth, ...] = (
    Mpfr(),
    SoftFloat(),
    Gfloat(),
    Apytypes(),
    FoldedByLlvm(),
    CompiledByLlvm(),
    Numpy(),
    MlDtypes(),
)


def missing_packages() -> list[str]:
    """The packages that truths need and that are not installed."""
    needed = dict.fromkeys([*(truth.package for truth in TRUTHS), "numba"])
    return [package for package in needed if find_spec(package) is None]
