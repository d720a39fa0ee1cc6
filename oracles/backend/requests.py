"""What can be requested of a backend: each kind of request is a value, without any method.

A judge makes requests and gets replies. It never knows how a request travels, whether others
travel with it, or what is done when it gets lost: that is the client's part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oracles.protocol import Bits
from oracles.tensor_batch import TensorBatch
from specs.calls import Call
from specs.cases import Case


@dataclass(frozen=True, eq=False)
class Cast:
    """Cast one tensor, in its own memory layout. The reply holds patterns in the same shape."""

    case: Case
    bits: Bits


@dataclass(frozen=True, eq=False)
class CastBatch:
    """Cast many tensors, each by a call of its own.

    The reply holds a ``BatchReply``. If the request ``is_shared``, cases on one road share one
    answer to equal tensors: for tensors that are too costly to be cast once more for every case.
    """

    case: Case
    batch: TensorBatch
    is_shared: bool = False


@dataclass(frozen=True, eq=False)
class CastAtOnce:
    """Cast many tensors from two threads at the same time. The reply holds a list of answers."""

    case: Case
    tensors: Sequence[Bits]


@dataclass(frozen=True, eq=False)
class Bitcast:
    """Reinterpret one tensor. The reply holds patterns in whatever shape the backend returned."""

    case: Case
    bits: Bits


@dataclass(frozen=True, eq=False)
class SharesMemory:
    """Say whether the result of a bitcast lies in the memory of its input."""

    case: Case
    bits: Bits


@dataclass(frozen=True, eq=False)
class MakeCall:
    """Make a call on a receiver whose members hold these bits. The reply holds a ``Returned``."""

    case: Case
    call: Call
    members: Mapping[str, Bits]


@dataclass(frozen=True, eq=False)
class Script:
    """Write a script that shows the answer to another request; the text is empty if it cannot."""

    shown: Cast | Bitcast | MakeCall

    @property
    def case(self) -> Case:
        """The case of the request that is shown."""
        return self.shown.case


@dataclass(frozen=True)
class Road:
    """Name the road of a case; empty if the backend fails to."""

    case: Case


Request = Cast | CastBatch | CastAtOnce | Bitcast | SharesMemory | MakeCall | Script | Road
