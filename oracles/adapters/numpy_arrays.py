"""The base class of the adapters of numpy and ml_dtypes: casts by ``astype``, bitcasts by ``view``.

ml_dtypes registers its dtypes with numpy, so that both are arrays of the same kind.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.refusals import require_plain
from oracles.adapters.script_text import mask_expression
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.memory_layouts import in_huge_pages, is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

UNSAFE = "unsafe"
"""The casting mode of an ``astype`` that names none: it allows every cast."""


class NumpyArrays(Scripted):
    """The base class of adapters that cast arrays by ``astype`` and bitcast them by ``view``.

    A subclass says which dtypes there are.
    """

    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "astype", "bitcast": "view"}

    @abstractmethod
    def dtype(self, dtype: str) -> np.dtype[Any]:
        """Return numpy's object for a dtype's name; raise Unsupported if numpy lacks the dtype."""

    @abstractmethod
    def expression(self, dtype: str) -> str:
        """Return the Python expression of this dtype in scripts."""

    def casting(self, case: Case) -> str:
        """Return the casting mode of a case, here always ``unsafe``.

        Raises Unsupported for modes that ``require_plain`` refuses, such as another casting mode.
        """
        require_plain(case, "astype")
        return UNSAFE

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that the subclass lacks."""
        self.dtype(dtype)

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported as ``casting`` does for a cast, and else as ``require_plain`` does."""
        if operation == "cast":
            self.casting(case)
        else:
            super().require_parameters(operation, case)

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of an array of this dtype, made from the array ``bits``.

        It lies in the memory of ``bits``; one of texts is a copy.
        """
        return f"bits.{'astype' if dtype == 'string' else 'view'}({self.expression(dtype)})"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        if dtype == "string":
            return "y.astype(object)"
        return f'y.view("{format_named(dtype).storage}"){mask_expression(dtype)}'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statement that binds ``y`` to one ``astype`` or one ``view`` of ``x``.

        The ``astype`` has the case's casting mode. Raises Unsupported for a cast as ``casting``
        does, and for a view of or as texts, or between widths if either is less than a byte.
        """
        target = self.expression(case.target)
        if operation == "bitcast":
            kept, read = format_named(case.source), format_named(case.target)
            if "text" in (kept.kind, read.kind):
                raise Unsupported("numpy views no text as another dtype")
            if kept.bits != read.bits and (is_packed(kept) or is_packed(read)):
                raise Unsupported(
                    "ml_dtypes stores every code of less than a byte in one of its own"
                )
            return Statements(f"y = x.view({target})\n")
        casting = self.casting(case)
        mode = "" if casting == UNSAFE else f', casting="{casting}"'
        return Statements(f"y = x.astype({target}{mode})\n")

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one ``astype``, without warnings.

        Raises Unsupported as ``casting`` does and for a dtype that the subclass lacks, and numpy's
        error for a cast that it refuses.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().cast(case, bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by one ``view``, which scales the last dimension.

        Raises Unsupported for modes that ``require_plain`` refuses, for a dtype that the subclass
        lacks, and as ``steps`` does.
        """
        return self.answer("bitcast", case, bits).copy()

    def road(self, case: Case) -> str:
        """Return the pair of dtypes as text, and the casting mode unless it is numpy's default.

        Raises Unsupported as ``casting`` does, and for a dtype that the subclass lacks.
        """
        casting = self.casting(case)
        return super().road(case) + ("" if casting == UNSAFE else f", {casting}")

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that casts ``bits`` into an array that calls reuse.

        For texts, complex sources and casting modes other than ``unsafe`` it is a call of ``cast``.
        Raises Unsupported as ``casting`` does and, in the mode ``unsafe``, the errors of ``cast``.
        """
        casting = self.casting(case)
        if casting == UNSAFE:
            self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
        is_text = "string" in (case.source, case.target)
        if is_text or case.source.startswith("complex") or casting != UNSAFE:
            # Texts are objects. ``errstate`` does not silence the warning about a discarded part.
            # Other modes look at dtypes before a cast, or (`same_value`) at the values.
            return partial(self.cast, case, bits)
        x = self.tensor(case.source, bits)
        y = in_huge_pages(len(bits), self.dtype(case.target))
        answer = None if is_packed(format_named(case.target)) else self.patterns(case.target, y)

        def call() -> Bits:
            # ``astype`` allocates and then does this same assignment. The allocation costs nothing
            # where pages are at hand, and up to six times the cast where they must be mapped.
            with np.errstate(all="ignore"):
                np.copyto(y, x, casting="unsafe")
            return self.patterns(case.target, y) if answer is None else answer

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return the bits of a copy of an array of the dtype that holds ``bits``.

        Raises Unsupported if the subclass lacks the dtype.
        """
        return self.patterns(dtype, self.tensor(dtype, bits).copy())
