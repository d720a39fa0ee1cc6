"""The interface of an oracle: it gets the bit patterns of a case and returns bit patterns.

``Oracle`` is the part that every adapter implements. Each ``With…`` protocol is one optional
capability; test for it with ``isinstance``, never by the name of the attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from specs.calls import Call
from specs.cases import Case

Mask = NDArray[np.bool_]
Bits = NDArray[Any]
"""Bit patterns in the storage of a format (``Format.storage``), of any shape."""

Bound = Callable[[], Bits]
"""Answers for whatever its input buffer holds at the moment of the call."""

Swept = Callable[[int, int], Bits]
"""Takes a first pattern and a count, and answers that many consecutive patterns."""

DeviceSwept = Callable[[int, int], Any]
"""Takes a first pattern and a count, and answers on a device.

It returns a torch tensor of the patterns as signed integers, which lasts until the next call.
"""

MAX_ROW_LIMIT = 1 << 24
"""The largest number that ``row_limits`` may have.

Each case is asked in a row of one element more. In the widest dtype, of 16 bytes, that is 256 MiB,
which a backend's process holds several times: as a message, as inputs and as answers.
"""
MAX_ROW_LIMITS = 16
"""The most numbers that ``row_limits`` may have: each costs one more request of every case."""


class Unsupported(Exception):
    """The oracle does not offer what the case needs; the message is the reason."""


class InputsChanged(Exception):
    """The oracle wrote to the inputs that it was given."""

    def __init__(self) -> None:
        super().__init__("the backend writes to the inputs it is given")


class NotInstalled(Exception):
    """The oracle's framework is not installed; the message says how to get it."""


@runtime_checkable
class Oracle(Protocol):
    """The members that every adapter must have: a name, a version and ``cast``."""

    name: str
    version: str

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return the answers to a case's inputs, in their shape and the target format's storage."""
        ...


if TYPE_CHECKING:
    from abc import ABCMeta as _ProtocolMeta

    from specs.chains import Company
else:
    _ProtocolMeta = type(Protocol)


class Capability(_ProtocolMeta):
    """The metaclass of optional protocols: ``isinstance`` tests whether an oracle has the members.

    That of Python 3.11 would list the members of a protocol at every test.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        """Whether an oracle has every member; a method that is None does not count."""
        for name, is_data in _members(cls):
            if getattr(instance, name, None) is None and not (is_data and hasattr(instance, name)):
                return False
        return True


@cache
def _members(capability: type[Any]) -> tuple[tuple[str, bool], ...]:
    """The members of a capability, each with whether it holds data."""
    data = [(name, True) for name in vars(capability).get("__annotations__", {})]
    methods = [(name, False) for name in vars(capability) if not name.startswith("_")]
    return *data, *methods


@runtime_checkable
class WithClaims(Protocol, metaclass=Capability):
    """An oracle that names the documents it means to implement; others claim every document.

    A claim is a document's name, or ``name:version`` for one version of it.
    """

    claims: tuple[str, ...]


@runtime_checkable
class WithDtypes(Protocol, metaclass=Capability):
    """An oracle that lists its dtypes; the others raise ``Unsupported`` case by case."""

    dtypes: tuple[str, ...]


@runtime_checkable
class WithCompiledShapes(Protocol, metaclass=Capability):
    """An oracle that may compile for each new shape: where it does, fewer shapes are tested."""

    compiles_shapes: bool


@runtime_checkable
class WithRowLimits(Protocol, metaclass=Capability):
    """An oracle that casts long tensors in another way than short ones.

    ``row_limits`` are the numbers of elements above which the way changes, from 1 to
    ``MAX_ROW_LIMIT``. Inputs are tested in rows on both sides of each.
    """

    row_limits: Sequence[int]


@runtime_checkable
class WithRoad(Protocol, metaclass=Capability):
    """An oracle that says which cases share one kernel; for others every case is its own road."""

    def road(self, case: Case) -> str:
        """Name what selects the kernel: cases on one road get the same answers to the same bits.

        Raises ``Unsupported`` as ``cast`` would, where that is known without running the framework.
        """
        ...


@runtime_checkable
class WithBind(Protocol, metaclass=Capability):
    """An oracle that can answer one buffer repeatedly; others are called through ``cast``."""

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that answers a numeric case for what ``bits`` holds at each call.

        ``bits`` is contiguous and one-dimensional. The call returns as many patterns in the
        target's storage, on the road that ``cast`` takes. It may return the same array each time:
        the caller reads it before the next call and never writes to it. Both ``bind`` and the
        call may raise ``Unsupported``.
        """
        ...


@runtime_checkable
class WithSweep(Protocol, metaclass=Capability):
    """An oracle that generates consecutive inputs itself; others receive them as arrays."""

    def sweep(self, case: Case, lo: int, hi: int) -> Swept:
        """Prepare a call that answers consecutive patterns, all within ``range(lo, hi)``.

        The call is made for one part after another; it may raise ``Unsupported``.
        """
        ...


@runtime_checkable
class WithDeviceSweep(Protocol, metaclass=Capability):
    """An oracle that can make inputs on a device and leave the answers to be checked there."""

    def device_sweep(self, case: Case, most: int) -> DeviceSwept:
        """Prepare a call that answers consecutive patterns of a 32-bit source, ``most`` at once.

        Raises ``Unsupported`` if there is no device: then the case is swept on the host.
        """
        ...


@runtime_checkable
class WithBitcastRoad(Protocol, metaclass=Capability):
    """An oracle that says which bitcasts are the same to it; for others each case is its own."""

    def bitcast_road(self, case: Case) -> str:
        """Name what a bitcast depends on besides its tensor, as ``road`` does for a cast."""
        ...


@runtime_checkable
class WithBitcast(Protocol, metaclass=Capability):
    """An oracle that can reinterpret bits as another dtype."""

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Reinterpret the bits as the target: an array of whatever shape the system gives it.

        A request that the system refuses raises the system's own error.
        """
        ...


@runtime_checkable
class WithBitcastMemory(Protocol, metaclass=Capability):
    """An oracle that knows where a bitcast's result lies; for others this is not judged."""

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Return whether the result of a bitcast lies in the memory of its input.

        Raises ``Unsupported`` where the system cannot tell: then it is not judged.
        """
        ...


@runtime_checkable
class WithBitcastInStorage(Protocol, metaclass=Capability):
    """An oracle whose tensors can begin in the middle of their storage; others are not asked."""

    def bitcast_in_storage(self, case: Case, bits: Bits) -> Bits:
        """Bitcast a tensor whose storage begins at the last boundary of 64 bytes before ``bits``.

        ``storage_offset`` of ``oracles.memory_layouts`` counts the elements between the two.
        """
        ...


@dataclass(frozen=True)
class Tensor:
    """A tensor after a call: its dtype, the kind of its device, and its bits."""

    dtype: str
    device: str
    bits: Bits


@dataclass(frozen=True)
class Returned:
    """Holds the return value of a call, and the state of its receiver afterwards.

    ``is_receiver`` says that the call returned its receiver itself, and ``shares_memory`` that the
    result lies in the receiver's memory. Tensors are keyed by their members' names. ``outputs`` is
    what a layer computes afterwards for each dtype of the call's ``inputs``: a tensor, or the
    layer's error in one line.
    """

    is_receiver: bool
    shares_memory: bool
    tensors: Mapping[str, Tensor]
    receiver: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor | str] = field(default_factory=dict)


@runtime_checkable
class WithCall(Protocol, metaclass=Capability):
    """An oracle that makes calls exactly as a document writes them."""

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a tensor or a layer whose members hold those bits.

        Raises the system's own error. ``Unsupported`` means that the receiver, the method or an
        argument cannot be created here, for example on a device that this machine lacks.
        """
        ...


@runtime_checkable
class WithChains(Protocol, metaclass=Capability):
    """An oracle that makes casts of casts in one program, in which an optimizer may change them.

    ``chain_roads`` names the roads on which it makes chains; the first is the default.
    """

    chain_roads: tuple[str, ...]

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> Sequence[Bits]:
        """Answer all chains of a company in one program, each for the input under its number.

        ``case`` is the first step of the first one. Raises ``Unsupported`` if one of them cannot be
        made on the company's road, or was not made there.
        """
        ...


@runtime_checkable
class WithReproduceChains(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts of chains."""

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Write a self-contained script that shows the end of a company's only chain."""
        ...


@runtime_checkable
class WithContainers(Protocol, metaclass=Capability):
    """A party that writes tensors into containers and reads them back, as its case names them."""

    def write_container(self, case: Case, bits: Bits) -> Bits:
        """Return the bytes that it writes for an array in this memory layout.

        Raises ``Unsupported``, or the system's own error, for what it does not write.
        """
        ...

    def read_container(self, case: Case, content: Bits) -> Tensor:
        """Return the tensor that it reads, with the dtype that it gives it."""
        ...


@runtime_checkable
class WithReproduceContainers(Protocol, metaclass=Capability):
    """A party that writes reproduction scripts; an empty text stands for none."""

    def reproduce_write(self, case: Case) -> str:
        """Return the statements that bind ``content`` to the container written from ``bits``."""
        ...

    def reproduce_read(self, case: Case) -> str:
        """Return the statements that bind ``y`` to the tensor read from ``content``."""
        ...


@runtime_checkable
class WithQuantize(Protocol, metaclass=Capability):
    """An oracle that quantizes and dequantizes: with a scale and zero point, or block by block."""

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> Mapping[str, Bits]:
        """Do a case's operation to tensors, and return its results, all of them by name.

        | operation | takes | returns |
        |---|---|---|
        | quantize, dequantize | ``x``, ``scale``, and ``zero`` if there is a zero point | ``y`` |
        | dynamic-quantize | ``x`` | ``y``, ``scale``, ``zero`` |
        | block-quantize | ``x``, and ``global`` if there is a global scale | ``y``, ``scale`` |
        | block-dequantize | ``x``, ``scale``, and ``global`` | ``y`` |

        Codes of less than a byte are in a byte each. Raises ``Unsupported`` for what the system
        does not offer, and the system's own error for what it refuses.
        """
        ...


@runtime_checkable
class WithReproduceQuantize(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts of quantization."""

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Write a self-contained script that shows the results for these tensors."""
        ...


@runtime_checkable
class WithIdentity(Protocol, metaclass=Capability):
    """An oracle that can move bits into its own tensors and out again, for the smoke check."""

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return the bits after a round trip through a tensor of the dtype, without any cast."""
        ...


@runtime_checkable
class WithReproduce(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts."""

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Write a self-contained script that shows the answers to these bits."""
        ...


@runtime_checkable
class WithReproduceBitcast(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts of bitcasts."""

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Write a self-contained script that shows the shape and the bits of a bitcast."""
        ...


@runtime_checkable
class WithReproduceCall(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts of calls."""

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Write a self-contained script that makes a call on members that hold those bits."""
        ...


CAPABILITIES: Mapping[str, type[Any]] = {
    "claims": WithClaims,
    "dtypes": WithDtypes,
    "compiles_shapes": WithCompiledShapes,
    "row_limits": WithRowLimits,
    "road": WithRoad,
    "bind": WithBind,
    "sweep": WithSweep,
    "device_sweep": WithDeviceSweep,
    "bitcast": WithBitcast,
    "bitcast_road": WithBitcastRoad,
    "bitcast_shares_memory": WithBitcastMemory,
    "bitcast_in_storage": WithBitcastInStorage,
    "call": WithCall,
    "chains": WithChains,
    "chain_roads": WithChains,
    "write_container": WithContainers,
    "read_container": WithContainers,
    "reproduce_write": WithReproduceContainers,
    "reproduce_read": WithReproduceContainers,
    "quantize": WithQuantize,
    "identity": WithIdentity,
    "reproduce": WithReproduce,
    "reproduce_bitcast": WithReproduceBitcast,
    "reproduce_call": WithReproduceCall,
    "reproduce_chains": WithReproduceChains,
    "reproduce_quantize": WithReproduceQuantize,
}
"""The protocol of each optional member, for an oracle that forwards the members of another."""
OPERATIONS = ("cast", "bitcast", "call", "chains", "quantize", "sweep")
"""The methods that answer cases, in the order in which people see them."""
ROADS: Mapping[str, str] = {"bitcast": "bitcast_road", "bitcast_shares_memory": "bitcast_road"}
"""By method, the member that says which cases share its answers to one tensor."""
VIEWING = ("bitcast",)
"""The methods whose answer may lie in the memory of its input."""


@cache
def returned_by(method: str) -> str:
    """The type that an optional method returns, in the words of its protocol or its family."""
    if method not in CAPABILITIES:
        from specs.operations import methods_of_families  # An adapter imports this module.

        return methods_of_families()[method]
    returned: str = getattr(CAPABILITIES[method], method).__annotations__["return"]
    return returned


def offers(oracle: object, method: str) -> bool:
    """Whether an oracle has an optional method."""
    capability = CAPABILITIES.get(method)
    if capability is None:
        return callable(getattr(oracle, method, None))
    return isinstance(oracle, capability)


def claims_of(oracle: Oracle) -> tuple[str, ...] | None:
    """Return the oracle's claims, or None if it has none of its own and claims every document."""
    return oracle.claims if isinstance(oracle, WithClaims) else None


def compiles_per_shape(oracle: Oracle) -> bool:
    """Return whether each new shape costs the oracle a compilation."""
    return isinstance(oracle, WithCompiledShapes) and bool(oracle.compiles_shapes)


def chain_roads_of(oracle: Oracle) -> tuple[str, ...]:
    """Return the roads on which the oracle makes chains of casts; none if it makes no chains."""
    return tuple(map(str, oracle.chain_roads)) if isinstance(oracle, WithChains) else ()


def are_row_limits(limits: object) -> bool:
    """Return whether an oracle may have these ``row_limits``: a sequence of few whole numbers."""
    return (
        isinstance(limits, Sequence)
        and len(limits) <= MAX_ROW_LIMITS
        and all(_is_row_limit(each) for each in limits)
    )


def _is_row_limit(limit: object) -> bool:
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer):
        return False
    return 1 <= int(limit) <= MAX_ROW_LIMIT


def row_limits_of(oracle: Oracle) -> tuple[int, ...]:
    """Return the numbers of elements above which the oracle casts in another way."""
    return tuple(map(int, oracle.row_limits)) if isinstance(oracle, WithRowLimits) else ()
