"""The base class of the adapters of numpy and ml_dtypes: casts by ``astype``, bitcasts by ``view``.

ml_dtypes registers its dtypes with numpy, so that both are arrays of the same kind.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np

from oracles.adapters.refusals import plain_road, require_plain
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

UNSAFE = "unsafe"
"""The casting mode of an ``astype`` that names none: it allows every cast."""


class NumpyArrays(ABC):
    """Casts by ``astype`` and bitcasts by ``view``, between the dtypes of a subclass."""

    header: str
    """The first lines of a script, with places for `version` and `case`."""
    version: str

    @abstractmethod
    def dtype(self, dtype: str) -> np.dtype[Any]:
        """Return numpy's dtype; raise Unsupported if there is none."""

    @abstractmethod
    def expression(self, dtype: str) -> str:
        """Return how a script writes a dtype."""

    def casting(self, case: Case) -> str:
        """Return the casting mode of a case; raise Unsupported for another parameter."""
        require_plain(case, "astype")
        return UNSAFE

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``astype``."""
        casting = self.casting(case)
        x, target = self.array(case.source, bits), self.dtype(case.target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return codes_of(case.target, x.astype(target, casting=casting))  # type: ignore[call-overload]

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``view``, which scales the last dimension."""
        require_plain(case, "view")
        source, target = format_named(case.source), format_named(case.target)
        self.dtype(case.source)
        dtype = self.dtype(case.target)
        if "text" in (source.kind, target.kind):
            raise Unsupported("numpy views no text as another dtype")
        if source.bits != target.bits and (is_packed(source) or is_packed(target)):
            raise Unsupported("ml_dtypes stores every code of less than a byte in one of its own")
        return codes_of(case.target, self.array(case.source, bits).view(dtype).copy())

    def bitcast_road(self, case: Case) -> str:
        """Return the pair: a bitcast has no parameters besides the tensor's own shape."""
        return plain_road(case, "view")

    def road(self, case: Case) -> str:
        """Return the pair, and the casting mode where it is not numpy's own default."""
        casting = self.casting(case)
        for dtype in (case.source, case.target):
            self.dtype(dtype)
        return f"{case.source}->{case.target}" + ("" if casting == UNSAFE else f", {casting}")

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that casts ``bits`` into an array that calls reuse."""
        casting = self.casting(case)
        if casting == UNSAFE:
            self.cast(case, bits[:1])  # refuses what ``cast`` refuses, for the same reason
        is_text = "string" in (case.source, case.target)
        if is_text or case.source.startswith("complex") or casting != UNSAFE:
            # Texts are objects. ``errstate`` does not silence the warning about a discarded part.
            # Other modes look at dtypes before a cast, or (`same_value`) at the values.
            return partial(self.cast, case, bits)
        x = self.array(case.source, bits)
        y = in_huge_pages(len(bits), self.dtype(case.target))
        answer = None if is_packed(format_named(case.target)) else codes_of(case.target, y)

        def call() -> Bits:
            # ``astype`` allocates and then does this same assignment. The allocation costs nothing
            # where pages are at hand, and up to six times the cast where they must be mapped.
            with np.errstate(all="ignore"):
                np.copyto(y, x, casting="unsafe")
            return codes_of(case.target, y) if answer is None else answer

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Copy an array of the dtype, and return the copy's bits."""
        return codes_of(dtype, self.array(dtype, bits).copy())

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the case on numpy, without this project."""
        casting = self.casting(case)
        mode = "" if casting == UNSAFE else f', casting="{casting}"'
        return self._script("astype", mode, case, bits) + print_loop(case.source, case.target)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that views an array as another dtype, without this project."""
        return self._script("view", "", case, bits) + print_tensor(case.target)

    def _script(self, method: str, mode: str, case: Case, bits: Bits) -> str:
        """Return a script up to the statement that binds ``answers``."""
        storage = format_named(case.target).storage
        from_bits = "astype" if case.source == "string" else "view"
        answers = f'y.view("{storage}")' if storage != "O" else "y.tolist()"
        return (
            self.header.format(version=self.version, case=case)
            + f"{bits_statement(case.source, bits)}\n"
            + f"x = bits.{from_bits}({self.expression(case.source)})\n"
            + f"y = x.{method}({self.expression(case.target)}{mode})\n"
            + f"answers = {answers}{mask_expression(case.target)}\n"
        )

    def array(self, dtype: str, bits: Bits) -> Bits:
        """Return an array of the dtype in the memory of the bits; of texts, a copy."""
        if dtype == "string":
            return np.asarray(bits, dtype=self.dtype(dtype))
        return bits.view(self.dtype(dtype))


def codes_of(dtype: str, array: Bits) -> Bits:
    """Return the patterns in an array; clears in place the bits above codes of less than a byte."""
    entry = format_named(dtype)
    if entry.kind == "text":
        return array.astype(object)
    codes: Bits = array.view(entry.storage)
    if is_packed(entry):
        np.bitwise_and(codes, np.uint8(entry.mask), out=codes)
    return codes
