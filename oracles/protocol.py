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

from specs.cases import Call, Case

Mask = NDArray[np.bool_]
Bits = NDArray[Any]
Floats = NDArray[np.float64]
"""Bit patterns in the storage of a format (``Format.storage``), of any shape."""

Bound = Callable[[], Bits]
"""Returns the answers to what its input buffer holds at the moment of the call."""

Swept = Callable[[int, int], Bits]
"""Gets a first pattern and a count; returns the answers to that many consecutive patterns."""

DeviceSwept = Callable[[int, int], Any]
"""Gets a first pattern and a count; returns the answers to these patterns on a device.

The answers are a torch tensor of signed integers, which is valid until the next call.
"""

MAX_ROW_LIMIT = 1 << 24
"""The largest number that ``row_limits`` may have.

Inputs are tested in a row of one element more. In the widest dtype, of 16 bytes, that is 256 MiB,
which a backend's process holds several times: as a message, as inputs and as answers.
"""
MAX_ROW_LIMITS = 16
"""The most numbers that ``row_limits`` may have: each costs one more request per case."""


def as_array(answer: Any) -> Any:
    """Return a numpy scalar as an array of rank 0, anything else unchanged.

    numpy returns a scalar from an operation on an array of rank 0.
    """
    return np.asarray(answer) if isinstance(answer, np.generic) else answer


class Unsupported(Exception):
    """The oracle does not offer what the case needs; the message is the reason."""


class InputsChanged(Exception):
    """The oracle wrote to the inputs of a conversion."""

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
        """Return the answers to a case's inputs, in their shape and the target format's storage.

        Raises ``Unsupported`` for a case that the system does not offer, and the system's own
        errors.
        """


if TYPE_CHECKING:
    from abc import ABCMeta as _ProtocolMeta

    from specs.chains import Company
else:
    _ProtocolMeta = type(Protocol)


class Capability(_ProtocolMeta):
    """The metaclass of optional protocols: ``isinstance`` tests whether an oracle has the members.

    It lists a protocol's members once, and so is faster than the metaclass of Python 3.11.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        """Return whether an oracle has every member; a method that is None counts as missing."""
        for name, is_data in _members(cls):
            if getattr(instance, name, None) is None and not (is_data and hasattr(instance, name)):
                return False
        return True


@cache
def _members(capability: type[Any]) -> tuple[tuple[str, bool], ...]:
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
    """An oracle that lists the dtypes it has; others raise ``Unsupported`` for a case they lack."""

    dtypes: tuple[str, ...]


@runtime_checkable
class WithCompiledShapes(Protocol, metaclass=Capability):
    """An oracle with ``compiles_shapes``: if true, each new shape costs a compilation.

    Then fewer shapes are tested.
    """

    compiles_shapes: bool


@runtime_checkable
class WithRowLimits(Protocol, metaclass=Capability):
    """An oracle that casts long tensors by other code than short ones.

    ``row_limits`` are the numbers of elements above which the code changes, each from 1 to
    ``MAX_ROW_LIMIT``. Inputs are tested in rows on both sides of each.
    """

    row_limits: Sequence[int]


@runtime_checkable
class WithRoad(Protocol, metaclass=Capability):
    """An oracle that names each case's kernel; for others, every case has a road of its own."""

    def road(self, case: Case) -> str:
        """Return a name of the case's kernel: cases with one name get equal answers to equal bits.

        Raises ``Unsupported`` for a case that ``cast`` does not support, if that is known without
        running the framework.
        """


@runtime_checkable
class WithBind(Protocol, metaclass=Capability):
    """An oracle that can cast one buffer's content repeatedly; of others, ``cast`` is called."""

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a function that casts, for a numeric case, what ``bits`` holds at each call.

        ``bits`` is contiguous and one-dimensional. The function returns as many patterns in the
        target's storage, on the road that ``cast`` takes. It may return the same array each time:
        the caller reads it before the next call and never writes to it. Both ``bind`` and the
        function may raise ``Unsupported``.
        """


@runtime_checkable
class WithSweep(Protocol, metaclass=Capability):
    """An oracle that generates consecutive inputs itself; others receive them as arrays."""

    def sweep(self, case: Case, lo: int, hi: int) -> Swept:
        """Return a function that casts consecutive patterns, all within ``range(lo, hi)``.

        The function is called for one part of the range after another; it may raise
        ``Unsupported``.
        """


@runtime_checkable
class WithDeviceSweep(Protocol, metaclass=Capability):
    """An oracle that can generate inputs on a device, and leave the answers there to be checked."""

    def device_sweep(self, case: Case, most: int) -> DeviceSwept:
        """Return a function that casts up to ``most`` consecutive patterns of a 32-bit source.

        Raises ``Unsupported`` if it cannot, as without a device: then the case is swept on the
        host.
        """


@runtime_checkable
class WithBitcastRoad(Protocol, metaclass=Capability):
    """An oracle that names the road of each bitcast; for others, every case has one of its own."""

    def bitcast_road(self, case: Case) -> str:
        """Return the name of a bitcast's road: on one road, equal tensors get equal answers.

        May raise ``Unsupported`` for a case for which ``bitcast`` does.
        """


@runtime_checkable
class WithBitcast(Protocol, metaclass=Capability):
    """An oracle that can reinterpret bits as another dtype."""

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Reinterpret the bits as the target dtype; return an array of the shape the system gives.

        Raises ``Unsupported`` for what the system does not offer, and the system's own error for
        what it refuses.
        """


@runtime_checkable
class WithBitcastMemory(Protocol, metaclass=Capability):
    """An oracle that can tell whether a bitcast shares memory; of others this is not judged."""

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Return whether the result of a bitcast lies in the memory of its input.

        Raises ``Unsupported`` where the system cannot tell: then sharing is not judged.
        """


@runtime_checkable
class WithBitcastInStorage(Protocol, metaclass=Capability):
    """An oracle whose tensors can begin in the middle of their storage."""

    def bitcast_in_storage(self, case: Case, bits: Bits) -> Bits:
        """Return the bitcast of a tensor that has elements of its storage before it.

        The storage begins at the last 64-byte boundary before ``bits``; ``storage_offset`` of
        ``oracles.memory_layouts`` counts the elements in between.
        """


@dataclass(frozen=True)
class Tensor:
    """A tensor after a call: its dtype, the kind of its device (such as ``cpu``), and its bits."""

    dtype: str
    device: str
    bits: Bits


@dataclass(frozen=True)
class Returned:
    """The result of a call, and the state of its receiver afterwards.

    ``tensors`` has the result's members by name, and ``receiver`` those of the receiver after the
    call. ``is_receiver`` means that the result is the receiver itself, ``shares_memory`` that it
    lies in the receiver's memory. ``outputs`` has, for each dtype in the call's ``inputs``, what
    the receiver, a layer, then computes for an input of that dtype: a tensor, or its error in one
    line.
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
        """Make a call on a tensor or layer whose members, by name, hold ``bits``.

        Raises the system's own error if the system refuses the call, and ``Unsupported`` if the
        receiver, the method or an argument cannot be created here, for example for lack of a
        device.
        """


@runtime_checkable
class WithChains(Protocol, metaclass=Capability):
    """An oracle that runs chains of casts as one program, which an optimizer may change.

    ``chain_roads`` names the roads on which it runs chains; the first is the default.
    """

    chain_roads: tuple[str, ...]

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> Sequence[Bits]:
        """Run all chains of a company as one program; return their answers in the same order.

        ``bits`` has each chain's input under the chain's index, as text. ``case`` is the first step
        of the first chain. Raises ``Unsupported`` if a chain cannot run, or did not run, on the
        company's road.
        """


@runtime_checkable
class WithReproduceChains(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts of chains."""

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that shows the results of a company's only chain."""


@runtime_checkable
class WithContainers(Protocol, metaclass=Capability):
    """A party that writes tensors into containers, or reads them, as a case says."""

    def write_container(self, case: Case, bits: Bits) -> Bits:
        """Return the bytes of a container with the tensor ``bits``, which has any memory layout.

        Raises ``Unsupported`` if the party does not write such a tensor, and the system's own error
        if the system refuses.
        """

    def read_container(self, case: Case, content: Bits) -> Tensor:
        """Return the tensor that the party reads from a container's bytes, with its dtype.

        Raises ``Unsupported`` or the system's own error, as ``write_container`` does.
        """


@runtime_checkable
class WithReproduceContainers(Protocol, metaclass=Capability):
    """A party that writes the statements of reproduction scripts; an empty text means none."""

    def reproduce_write(self, case: Case) -> str:
        """Return the statements that bind ``content`` to the container written from ``bits``."""

    def reproduce_read(self, case: Case) -> str:
        """Return the statements that bind ``y`` to the tensor read from ``content``."""


@runtime_checkable
class WithQuantize(Protocol, metaclass=Capability):
    """An oracle that quantizes and dequantizes: with a scale and zero point, or block by block."""

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> Mapping[str, Bits]:
        """Do the case's operation to tensors by name; return the results by name.

        | operation | takes | returns |
        |---|---|---|
        | quantize, dequantize | ``x``, ``scale``, and ``zero`` if there is a zero point | ``y`` |
        | dynamic-quantize | ``x`` | ``y``, ``scale``, ``zero`` |
        | block-quantize | ``x``, and ``global`` if there is a global scale | ``y``, ``scale`` |
        | block-dequantize | ``x``, ``scale``, and ``global`` if there is a global scale | ``y`` |

        Codes of less than a byte are in a byte each. Raises ``Unsupported`` for what the system
        does not offer, and the system's own error for what it refuses.
        """


@runtime_checkable
class WithReproduceQuantize(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts of quantization."""

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Return a self-contained script that shows the results for tensors by name."""


@runtime_checkable
class WithIdentity(Protocol, metaclass=Capability):
    """An oracle that can move bits into its own tensors and out again, for the smoke check."""

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return the bits after a round trip through a tensor of the dtype, without any cast.

        Raises ``Unsupported`` if the system lacks the dtype.
        """


@runtime_checkable
class WithReproduce(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts."""

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that shows the answers to ``bits``."""


@runtime_checkable
class WithReproduceBitcast(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts of bitcasts."""

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that shows the shape and bits of a bitcast's result."""


@runtime_checkable
class WithReproduceCall(Protocol, metaclass=Capability):
    """An oracle that writes reproduction scripts of calls."""

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that makes the call on members with these bits."""


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
"""By the name of each optional member: the protocol that declares it."""
OPERATIONS = ("cast", "bitcast", "call", "chains", "quantize", "sweep")
"""The methods that answer cases, in the order in which they are shown."""
ROADS: Mapping[str, str] = {"bitcast": "bitcast_road", "bitcast_shares_memory": "bitcast_road"}
"""By method: the member that names a case's road; cases on one road share answers to a tensor."""
VIEWING = ("bitcast",)
"""The methods whose answer may lie in the memory of its input."""


@cache
def returned_by(method: str) -> str:
    """Return the return annotation of an optional method, as its protocol or family writes it."""
    if method not in CAPABILITIES:
        from specs.operations import methods_of_families  # An adapter imports this module.

        return methods_of_families()[method]
    returned: str = getattr(CAPABILITIES[method], method).__annotations__["return"]
    return returned


def offers(oracle: object, method: str) -> bool:
    """Return whether an oracle has an optional method, and all other members of its protocol.

    A method of a family has no protocol here, and counts alone.
    """
    capability = CAPABILITIES.get(method)
    if capability is None:
        return callable(getattr(oracle, method, None))
    return isinstance(oracle, capability)


def claims_of(oracle: Oracle) -> tuple[str, ...] | None:
    """Return the oracle's claims; None if it has no ``claims`` and so claims every document."""
    return oracle.claims if isinstance(oracle, WithClaims) else None


def compiles_per_shape(oracle: Oracle) -> bool:
    """Return whether each new shape costs the oracle a compilation."""
    return isinstance(oracle, WithCompiledShapes) and bool(oracle.compiles_shapes)


def chain_roads_of(oracle: Oracle) -> tuple[str, ...]:
    """Return the roads on which the oracle runs chains of casts; empty if it runs no chains."""
    return tuple(map(str, oracle.chain_roads)) if isinstance(oracle, WithChains) else ()


def are_row_limits(limits: object) -> bool:
    """Return whether ``limits`` is valid as ``row_limits``.

    That is a sequence of at most ``MAX_ROW_LIMITS`` integers from 1 to ``MAX_ROW_LIMIT``.
    """
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
    """Return the oracle's ``row_limits`` as a tuple; empty if it has none."""
    return tuple(map(int, oracle.row_limits)) if isinstance(oracle, WithRowLimits) else ()
