"""What an oracle is: it takes bit patterns of a case and gives bit patterns back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from specs.calls import Call
from specs.cases import Case

Bits = NDArray[Any]
"""Bit patterns in the storage of a format (``Format.storage``), of any shape."""

Bound = Callable[[], Bits]
"""A call that answers for whatever its input buffer holds just then."""

Swept = Callable[[int, int], Bits]
"""A call that answers so many patterns, from the first on."""


class Unsupported(Exception):
    """The oracle does not offer what the case asks for; the message is its reason."""


class NotInstalled(Exception):
    """The oracle's framework is not here; the message says how to get it."""


@runtime_checkable
class Oracle(Protocol):
    """The least an adapter must offer; ``claims`` may be absent and then means every document.

    A claim is a document's name, or ``name:version`` for one version of it.

    A true ``compiles_shapes`` says that each new shape costs a compilation: fewer are asked then.
    ``row_limits`` names the numbers of elements above which the system casts in another way: inputs
    are asked in rows on both sides of each.
    """

    name: str
    version: str

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case: the same shape, in the target format's storage."""
        ...


@runtime_checkable
class WithRoad(Protocol):
    """An oracle that says which cases share one kernel; others have one road per case."""

    def road(self, case: Case) -> str:
        """What selects the kernel: cases of one road get the same answers to the same bits.

        Raises ``Unsupported`` as ``cast`` would, where that is known without asking the framework.
        """
        ...


@runtime_checkable
class WithBind(Protocol):
    """An oracle that answers one buffer over and over; others are asked by ``cast``."""

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that answers a numeric case for what ``bits`` holds at each call.

        ``bits`` is contiguous and has one dimension. The call gives as many patterns in the
        target's storage, on the road that ``cast`` takes, and may give the same array every time:
        whoever calls reads it before the next call and writes nothing into it. Both ``bind`` and
        the call may raise ``Unsupported``.
        """
        ...


@runtime_checkable
class WithSweep(Protocol):
    """An oracle that makes consecutive inputs itself; others are given them."""

    def sweep(self, case: Case, lo: int, hi: int) -> Swept:
        """Prepare a call that answers consecutive patterns of a numeric source, all within bounds.

        Part after part is asked for; the call may raise ``Unsupported``.
        """
        ...


@runtime_checkable
class WithBitcast(Protocol):
    """An oracle that reads bits as another dtype; others do not offer the operation."""

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """The same bits as the target: an array of whatever shape the system gives them.

        A request that the system refuses raises the system's own error.
        """
        ...


@runtime_checkable
class WithBitcastMemory(Protocol):
    """An oracle that knows where a bitcast's result lies; of others this is not judged."""

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Whether the result of a bitcast lies in the memory of its input.

        Raises ``Unsupported`` where that cannot be told: then it is not judged.
        """
        ...


@dataclass(frozen=True)
class Tensor:
    """A tensor as it was found: its dtype, the kind of its device, and its bits."""

    dtype: str
    device: str
    bits: Bits


@dataclass(frozen=True)
class Returned:
    """What a call gave back, and what became of the thing that it was called on.

    Tensors go by their members' names. ``outputs`` is what a layer gives afterwards for each dtype
    of the call's ``inputs``: a tensor, or the layer's error in one line.
    """

    is_receiver: bool
    shares_memory: bool
    tensors: Mapping[str, Tensor]
    receiver: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor | str] = field(default_factory=dict)


@runtime_checkable
class WithCall(Protocol):
    """An oracle that makes a document's calls as they are written; others do not offer them."""

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a tensor or a layer whose members hold those bits.

        Raises the system's own error; ``Unsupported`` only where the receiver, the method or an
        argument cannot even be made here, a device that this machine has not, for instance.
        """
        ...
