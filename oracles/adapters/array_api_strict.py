"""array-api-strict's ``astype``: a namespace with what the array API standard has, and no more."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from oracles.adapters.array_api import CALLS, CASTS, Namespace, NamespaceSyntax
from oracles.adapters.refusals import load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import bits_statement, print_loop
from oracles.protocol import Bits, Bound, Returned, Unsupported
from specs.calls import Call
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

DTYPES = (
    "float64", "float32", "int64", "int32", "int16", "int8",
    "uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128",
)  # fmt: skip

HEADER = """\
# array-api-strict {version}: {case}
import array_api_strict as xp
import numpy as np

"""

SYNTAX = NamespaceSyntax(HEADER, "xp", "xp.asarray(bits.view(np.{0}))", "np.from_dlpack({0})")


class ArrayApiStrict:
    """A cast by the namespace's ``astype``; a call by the ``astype`` of its document's version."""

    name = "array_api_strict"
    claims: tuple[str, ...] = (CASTS, CALLS)
    dtypes = DTYPES

    def __init__(self, variant: str | None = None) -> None:
        self._xp: Any = load("array_api_strict", "array-api-strict")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._xp.__version__)
        self._flags = Lock()
        self._namespace = Namespace(
            self.name, self._xp.astype, self._dtype, self._array, np.from_dlpack
        )

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``astype``."""
        self.road(case)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = self._xp.astype(self._array(case.source, bits), self._dtype(case.target))
        return np.from_dlpack(y).view(format_named(case.target).storage)

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call in the version of the standard that the case is about."""
        astype = self._xp.astype
        if case.document == CALLS:
            astype = partial(self._astype_of, case.version)
        return replace(self._namespace, astype=astype).make(call, bits)

    def road(self, case: Case) -> str:
        """Return the pair: the function has no parameter that changes values."""
        require_plain(case, "astype")
        for dtype in (case.source, case.target):
            self._dtype(dtype)
        return plain_road(case, "astype")

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that casts what ``bits`` holds at that moment."""
        self.road(case)
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Make an array of the dtype, and return its bits."""
        array = self._array(dtype, bits.copy())
        return np.from_dlpack(array).view(format_named(dtype).storage)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the case on array-api-strict, without this project."""
        self.road(case)
        return (
            HEADER.format(version=self.version, case=case)
            + f"{bits_statement(case.source, bits)}\n"
            + f"x = {SYNTAX.array.format(case.source)}\n"
            + f"y = xp.astype(x, xp.{case.target})\n"
            + f'answers = np.from_dlpack(y).view("{format_named(case.target).storage}")\n'
            + print_loop(case.source, case.target)
        )

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes a call, without this project."""
        return SYNTAX.call_script(self.version, case, call, bits)

    def _dtype(self, dtype: str) -> Any:
        if dtype not in DTYPES:
            raise Unsupported(f"array-api-strict has no dtype {dtype}")
        return getattr(self._xp, dtype)

    def _array(self, dtype: str, bits: Bits) -> Any:
        """Return an array in the memory of the bits."""
        self._dtype(dtype)
        return self._xp.asarray(bits.view(dtype))

    def _astype_of(self, version: str, *args: Any, **kwargs: Any) -> Any:
        """Call the ``astype`` of a version, under a lock: the flags are the whole process's."""
        with self._flags, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that it has no 2021.12 of its own
            with self._xp.ArrayAPIStrictFlags(api_version=version):
                return self._xp.astype(*args, **kwargs)
