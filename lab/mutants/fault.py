"""Faults and conditions, of which mutants are made.

A **fault** says what a backend answers instead of the right answer, and a **condition** when it
does: for which inputs, in which tensors, after which calls. Every fault can be planted under every
condition in every case, so a hundred lines describe tens of thousands of wrong backends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import get_ident
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.families.reference import Reference
from oracles.protocol import Bits
from oracles.reference.kernels import Unpacked, select_arrays, unpack
from reports.findings.wrong import CaseFormats, GivenAnswers, Wrong
from specs.cases import Case
from specs.formats import Format, format_named

REFERENCE = Reference()
"""The reference of all mutants of a process: sharing it saves computing answers again."""
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Row(CaseFormats):
    """Inputs of a cast in one row, with their fields and the right answers."""

    bits: Bits

    @cached_property
    def right(self) -> Bits:
        """The reference's answers."""
        return REFERENCE.cast(self.case, self.bits)

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """The inputs as words of 64 bits, in which arithmetic does not overflow early."""
        return self.bits.astype(np.uint64)

    @cached_property
    def answers(self) -> NDArray[np.uint64]:
        """The reference's answers as words of 64 bits."""
        return self.right.astype(np.uint64)

    @cached_property
    def parts(self) -> Unpacked:
        """Sign, significand, exponent and kind of each input."""
        return unpack(self.source, self.words, select_arrays)

    @cached_property
    def results(self) -> Unpacked:
        """Sign, significand, exponent and kind of each right answer."""
        return unpack(self.target, self.answers, select_arrays)

    def stored(self, codes: Any) -> Bits:
        """Return codes as patterns of the target, in its storage."""
        mask = np.uint64(self.target.mask)
        stored: Bits = (np.asarray(codes).astype(np.uint64) & mask).astype(self.target.storage)
        return np.broadcast_to(stored, self.bits.shape)

    def answered(self, bits: Any, **changes: Any) -> Bits:
        """The reference's answers to other inputs, of a case with some fields changed."""
        case = replace(self.case, **changes) if changes else self.case
        storage = format_named(case.source).storage
        return REFERENCE.cast(case, np.asarray(bits).astype(storage))

    def is_a(self, kind: str) -> Mask:
        """Return a mask of the inputs of a kind: ``nan``, ``infinity``, ``zero``, ``subnormal``."""
        return np.broadcast_to(getattr(self.parts, kind), self.bits.shape).astype(bool)

    def gives_a(self, kind: str) -> Mask:
        """Return a mask of right answers of a kind; the kinds are those of ``is_a``."""
        return np.broadcast_to(getattr(self.results, kind), self.bits.shape).astype(bool)

    @property
    def negative(self) -> Mask:
        """Which inputs have a negative sign."""
        return np.broadcast_to(self.parts.sign == 1, self.bits.shape)


@dataclass
class Past:
    """The calls of a backend so far.

    ``calls`` counts casts where its fault is planted, or all bitcasts, the present one included.
    ``last`` is the tensor of the call before.
    """

    calls: int = 0
    last: Any = None
    last_case: Case | None = None
    has_refused: bool = False
    kept: dict[Any, Any] = field(default_factory=dict)
    thread: int = field(default_factory=get_ident)
    begun: float = field(default_factory=monotonic)


Applies = Callable[[Format, Format], bool]
"""Whether a fault makes sense between two formats."""


def between_numbers(source: Format, target: Format) -> bool:
    """Whether both formats have one number per pattern."""
    return source.is_numeric and target.is_numeric


@dataclass(frozen=True)
class Fault:
    """A wrong way to answer a row of inputs.

    ``causes`` are the names of findings that would name it rightly, as shell patterns.
    """

    name: str
    kind: str
    answers: Callable[[Row], Bits]
    causes: tuple[str, ...]
    applies: Applies = between_numbers


def planted(wrong: Wrong, row: Row) -> Bits:
    """The answers of a backend that is wrong by a row of the table of casts, and only there."""
    found = wrong.answers(GivenAnswers(row.case, row.bits, row.right))
    return row.right if found is None else np.where(found.concerned, found.codes, row.right)


Spoils = Callable[[Row, Bits, Past], Any]
"""Takes the row of a tensor, the tensor and the past; returns whether, or which elements, fail."""
EVERYWHERE = "everywhere"


@dataclass(frozen=True)
class Condition:
    """When a fault changes answers.

    ``on`` names what the condition depends on. With ``inputs``, it is the value of each input
    alone, and with ``nothing`` the fault always shows. With any other, an input gets different
    answers at different places or times.
    """

    name: str
    on: str
    spoils: Spoils
    applies: Applies = field(default=lambda source, target: True)


Replaces = Callable[[Bits, Bits, Past], Any]
"""Takes a tensor, its right answers and the past, and returns the answers of a faulty backend."""


@dataclass(frozen=True)
class TensorFault:
    """A wrong way to treat a tensor as a whole.

    A fault that ``accepts`` a tensor answers it although the document wants it refused.
    """

    name: str
    kind: str
    replaces: Replaces
    causes: tuple[str, ...]
    accepts: Callable[[Bits], bool] = field(default=lambda bits: False)
