"""array-api-strict's ``astype``: a namespace with what the array API standard has, and no more."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from threading import Lock
from typing import Any, ClassVar

from oracles.adapters.array_api import CALLS, CASTS, Namespace
from oracles.adapters.array_api_carriers import CARRIERS, DOCUMENT
from oracles.adapters.carriers import Carrying
from oracles.adapters.dtype_table import names_in
from oracles.adapters.refusals import load, require_variant
from oracles.adapters.scripted import ScriptedOperation, Statements
from oracles.protocol import Bits, Bound, Returned, Unsupported
from specs.cases import Call, Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

DTYPES = tuple(names_in("api"))

HEADER = """\
# array-api-strict {version}: {case}
import array_api_strict as xp
import numpy as np

"""

NAMESPACE = Namespace(
    "array_api_strict", HEADER, "xp", "xp.asarray(bits.view(np.{}))", "np.from_dlpack({})"
)


class ArrayApiStrict(Carrying):
    """Casts by array-api-strict's ``astype``, makes calls of it, and carries by the standard."""

    name = "array_api_strict"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "astype"}
    claims: tuple[str, ...] = (CASTS, CALLS, DOCUMENT)
    dtypes = DTYPES
    carriers = CARRIERS

    def __init__(self, variant: str | None = None) -> None:
        self._xp: Any = load("array_api_strict", "array-api-strict")
        require_variant(self.name, variant, VARIANTS)
        super().__init__(xp=self._xp)
        self.version = str(self._xp.__version__)
        self._flags = Lock()

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that the array API standard lacks."""
        if dtype not in DTYPES:
            raise Unsupported(f"array-api-strict has no dtype {dtype}")

    def dtype_text(self, dtype: str) -> str:
        """Return the Python expression of a dtype of this name."""
        return f"xp.{dtype}"

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of an array of this dtype in the memory of ``bits``."""
        return NAMESPACE.array.format(dtype)

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f'np.from_dlpack(y).view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statement that binds ``y`` to one ``astype`` of ``x``."""
        return Statements(f"y = xp.astype(x, xp.{case.target})\n")

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one ``astype``, without warnings.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that the standard
        lacks.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().cast(case, bits)

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make an ``astype`` of the standard, and return its result and the array after it.

        A case of ``CALLS`` names the version of the standard that applies. A lock protects the
        flags that set this version, because they are the whole process's. Raises Unsupported for
        any other call, and for a dtype or a kind of argument that the library lacks.
        """
        context: AbstractContextManager[Any]
        context = self._flags_of(case.version) if case.document == CALLS else nullcontext()
        return NAMESPACE.make(self.names, call, bits, self._require_named, context)

    @contextmanager
    def _flags_of(self, version: str) -> Iterator[None]:
        with self._flags, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that it has no 2021.12 of its own
            with self._xp.ArrayAPIStrictFlags(api_version=version):
                yield

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call of ``cast``, which casts what ``bits`` holds at the moment of the call.

        Raises Unsupported as ``cast`` does.
        """
        self.require("cast", case)
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return the bits of an array of the dtype that is made from ``bits``.

        Raises Unsupported if the standard lacks the dtype.
        """
        self.require_dtype("cast", dtype)
        return self.patterns(dtype, self.tensor(dtype, bits.copy()))

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that makes an ``astype`` of the standard.

        Raises Unsupported for any other call, and for a kind of argument that the library lacks.
        """
        return NAMESPACE.call_script(self.version, case, call, bits)

    def _require_named(self, dtype: str) -> None:
        self.require_dtype("cast", dtype)
