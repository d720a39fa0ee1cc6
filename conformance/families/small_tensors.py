"""Small tensors with all that a document allows for them, as a family lists them for a case.

They are few and telling, so that a file can hold them. A family finds what is allowed in two ways
that share no code, and ``agreed`` compares these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oracles.protocol import Bits
from specs.cases import Case, Shape
from specs.errors import IS_A_BUG, CastigateError
from specs.formats import Format

WORD = 64


class AllowedCodes(NamedTuple):
    """Codes whose bits under ``mask`` lie between both ends, included."""

    low: int
    high: int
    mask: int


Alternatives = tuple[AllowedCodes, ...]
"""The values that an element may have; if there are none, it may have any."""


class GivenTensor(NamedTuple):
    """A tensor that an operation takes: its name, and its codes in row-major order."""

    name: str
    form: Format
    shape: Shape
    codes: Sequence[int]


class AllowedTensor(NamedTuple):
    """A tensor that an operation returns, with what is allowed for each element.

    ``recommended`` has the indices of the elements for
    which the document only recommends what is allowed.
    """

    name: str
    form: Format
    shape: Shape
    allowed: Sequence[Alternatives]
    recommended: Sequence[int] = ()


class SmallRecord(NamedTuple):
    """One call of an operation: its attributes, the tensors that it takes, and those it returns."""

    attributes: Mapping[str, str]
    given: Sequence[GivenTensor]
    returned: Sequence[AllowedTensor]

    @property
    def is_open(self) -> bool:
        """Whether every element that is returned may be anything."""
        every = [each for tensor in self.returned for each in tensor.allowed]
        return bool(every) and not any(every)


class Records(NamedTuple):
    """The records of a case; without any, ``left_out`` says why."""

    records: Sequence[SmallRecord]
    left_out: str = ""


SmallTensors = Callable[[Case], Records]
"""Returns small tensors of a case, with what its document allows for them."""


def allowed_codes(form: Format, ranges: Iterable[range]) -> Alternatives:
    """Return some ranges of codes as few alternatives, one under a mask if only signs differ."""
    joined = [*_joined(ranges)]
    sign = 1 << (form.bits - 1)
    half = len(joined) // 2
    positive, negative = joined[:half], joined[half:]
    mask = form.mask
    if positive and [range(each.start + sign, each.stop + sign) for each in positive] == negative:
        joined, mask = positive, form.mask ^ sign
    return tuple(AllowedCodes(each.start, each.stop - 1, mask) for each in joined)


def _joined(ranges: Iterable[range]) -> Iterator[range]:
    """Yield the codes of some ranges as disjoint ones that rise, with gaps between them."""
    last: range | None = None
    for each in sorted(ranges, key=lambda one: one.start):
        if last is not None and each.start <= last.stop:
            last = range(last.start, max(last.stop, each.stop))
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def agreed(case: Case, name: str, one: Sequence[object], other: Sequence[object]) -> None:
    """Raise CastigateError unless two ways allow the same for each element of a tensor."""
    for at, (first, second) in enumerate(zip(one, other, strict=True)):
        if first != second:
            raise CastigateError(
                f"{case.id}: two definitions disagree on `{name}` at {at}: {first} or {second};"
                f" {IS_A_BUG}"
            )


def integers(bits: Bits) -> list[int]:
    """Return the codes of a tensor in row-major order as integers, also those of 128 bits."""
    flat = np.ascontiguousarray(bits).reshape(-1)
    if flat.dtype.kind != "V":
        return [int(code) for code in flat.tolist()]
    halves = flat.view("<u8").reshape(-1, 2).tolist()
    return [low | high << WORD for low, high in halves]
