"""numpy's ``astype`` and ``view`` between its own dtypes and those of ml_dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from oracles.adapters.refusals import first_line, load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import (
    bits_statement,
    mask_expression,
    print_loop,
    print_tensor,
)
from oracles.bit_packing import is_packed
from oracles.huge_pages import in_huge_pages
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

ML_DTYPES: Mapping[str, str] = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e4m3": "float8_e4m3",
    "float8e3m4": "float8_e3m4",
    "float8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float4e2m1": "float4_e2m1fn",
    "int4": "int4",
    "int2": "int2",
    "uint4": "uint4",
    "uint2": "uint2",
}
"""The dtypes that come from ml_dtypes; numpy has all others, under the same names."""

HEADER = """\
# ml_dtypes {version}: {case}
import ml_dtypes
import numpy as np

"""


class MlDtypes:
    """A cast by ``astype``, a bitcast by ``view``."""

    name = "ml_dtypes"
    # No document describes what ``astype`` does between these dtypes.
    claims: tuple[str, ...] = ()

    def __init__(self, variant: str | None = None) -> None:
        self._ml_dtypes: Any = load("ml_dtypes", "ml-dtypes")
        require_variant(self.name, variant, VARIANTS)
        self.version = f"{self._ml_dtypes.__version__}+numpy.{np.__version__}"

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``astype``."""
        require_plain(case, "astype")
        x, target = self._array(case.source, bits), self._dtype(case.target)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _bits(case.target, x.astype(target))
        except TypeError as error:
            raise Unsupported(first_line(error)) from None

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``view``, which scales the last dimension."""
        require_plain(case, "view")
        source, target = format_named(case.source), format_named(case.target)
        if "text" in (source.kind, target.kind):
            raise Unsupported("numpy views no text as another dtype")
        if source.bits != target.bits and (is_packed(source) or is_packed(target)):
            raise Unsupported("ml_dtypes stores every code of less than a byte in one of its own")
        y = self._array(case.source, bits).view(self._dtype(case.target))
        return _bits(case.target, y.copy())

    def bitcast_road(self, case: Case) -> str:
        """Return the pair: a bitcast has no parameters besides the tensor's own shape."""
        return plain_road(case, "view")

    def road(self, case: Case) -> str:
        """Return the pair: ``astype`` has no parameters."""
        require_plain(case, "astype")
        for dtype in (case.source, case.target):
            self._dtype(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that casts ``bits`` into an array that calls reuse."""
        self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
        if "string" in (case.source, case.target) or case.source.startswith("complex"):
            # Texts are objects. ``errstate`` does not silence the warning about a discarded part.
            return partial(self.cast, case, bits)
        x = self._array(case.source, bits)
        y = in_huge_pages(len(bits), self._dtype(case.target))
        answer = None if is_packed(format_named(case.target)) else _bits(case.target, y)

        def call() -> Bits:
            # ``astype`` allocates and then does this same assignment. The allocation costs nothing
            # where pages are at hand, and up to six times the cast where they must be mapped.
            with np.errstate(all="ignore"):
                np.copyto(y, x, casting="unsafe")
            return _bits(case.target, y) if answer is None else answer

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Copy an array of the dtype, and return the copy's bits."""
        return _bits(dtype, self._array(dtype, bits).copy())

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the case on numpy, without this project."""
        return self._script("astype", case, bits) + print_loop(case.source, case.target)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that views an array as another dtype, without this project."""
        return self._script("view", case, bits) + print_tensor(case.target)

    def _script(self, method: str, case: Case, bits: Bits) -> str:
        """Return a script up to the statement that binds ``answers``."""
        storage = format_named(case.target).storage
        from_bits = "astype" if case.source == "string" else "view"
        answers = f'y.view("{storage}")' if storage != "O" else "y.tolist()"
        return (
            HEADER.format(version=self.version, case=case)
            + f"{bits_statement(case.source, bits)}\n"
            + f"x = bits.{from_bits}({_expression(case.source)})\n"
            + f"y = x.{method}({_expression(case.target)})\n"
            + f"answers = {answers}{mask_expression(case.target)}\n"
        )

    def _array(self, dtype: str, bits: Bits) -> Bits:
        if dtype == "string":
            return np.asarray(bits, dtype=np.str_)
        return bits.view(self._dtype(dtype))

    def _dtype(self, dtype: str) -> np.dtype[Any]:
        if dtype == "string":
            return np.dtype(np.str_)
        if dtype not in ML_DTYPES:
            return np.dtype(dtype)
        scalar_type: Any = getattr(self._ml_dtypes, ML_DTYPES[dtype], None)
        if scalar_type is None:
            version = self._ml_dtypes.__version__
            raise Unsupported(f"ml_dtypes {version} has no {ML_DTYPES[dtype]}")
        found: np.dtype[Any] = np.dtype(scalar_type)
        return found


def _bits(dtype: str, array: Bits) -> Bits:
    """Return the patterns in an array; clears in place the bits above codes of less than a byte."""
    entry = format_named(dtype)
    if entry.kind == "text":
        return array.astype(object)
    codes: Bits = array.view(entry.storage)
    if is_packed(entry):
        np.bitwise_and(codes, np.uint8(entry.mask), out=codes)
    return codes


def _expression(dtype: str) -> str:
    if dtype == "string":
        return "np.str_"
    return f"ml_dtypes.{ML_DTYPES[dtype]}" if dtype in ML_DTYPES else f"np.{dtype}"
